/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The options of `millrace run`, and the settings among them that a file may have, too, by the same names. `where` and errors
 * are as in base/options.h.
 */

#include <getopt.h>

#include "main/run_config.h"

/* After those of the engine. */
enum run_option {
	RUN_OPTION_THREADS = ENGINE_OPTIONS_END,
	RUN_OPTION_SHARDING,
	RUN_OPTION_POLL,
	RUN_OPTION_PIN,
	RUN_OPTION_ONE_ARMED,
	RUN_OPTION_OUTPUT,
	RUN_OPTION_EXPORT,
	RUN_OPTION_SOCKET,
	RUN_OPTION_FORCE,
	RUN_OPTION_TELEMETRY,
	/* in the order of enum run_offload_key */
	RUN_OPTION_OFFLOAD,
	RUN_OPTION_OFFLOAD_MODE,
	RUN_OPTION_OFFLOAD_THRESHOLD,
	RUN_OPTION_OFFLOAD_SLOTS,
	RUN_OPTION_OFFLOAD_RULES,
	RUN_OPTION_OFFLOAD_RULES_PER_SECOND,
	RUN_OPTION_OFFLOAD_COUNTERS,
	RUN_OPTION_OFFLOAD_RESTART,
	RUN_OPTION_OFFLOAD_RULES_IN_NIC,
	RUN_OPTION_OFFLOAD_EXCEPT,
	/* in the order of enum run_blocks_key */
	RUN_OPTION_BLOCKS,
	RUN_OPTION_BLOCKS_MAX,
	RUN_OPTION_BLOCKS_REASONS,
	RUN_OPTION_METRICS,
	/* in the order of enum run_rules_key */
	RUN_OPTION_RULES,
	RUN_OPTION_RULES_MAX,
	RUN_OPTION_RULES_REJECT_RATE,
	RUN_OPTION_RULES_LOG_RATE,
	RUN_OPTION_RULES_REPLIES,
	RUN_OPTION_RULES_PICKUP,
	/* the command line's alone */
	RUN_OPTION_PORT,
	RUN_OPTION_WIRE,
	RUN_OPTION_CONFIG,
	RUN_OPTION_FOREGROUND,
	RUN_OPTION_HELP,
};

extern const struct option run_options[];

/* Those with one value that a file may set too, under the option's own name; in the order of the help. */
#define RUN_N_SETTINGS 16
extern const int run_settings[RUN_N_SETTINGS];

int run_config_set(struct run_config *config, int id, const char *where, const char *value,
	struct error *error);
