/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the pieces of run_config share: the settings that command line and file have in common, and
 * the ports and wires as the user wrote them. `where` and errors are as in base/options.h.
 */

#include <getopt.h>

#include "main/run_config.h"
#include "main/run_config_places.h"

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

/* Ports and wires before they are joined; the texts are the caller's. */
struct run_draft {
	struct {
		const char *name, *device;
		char where[RUN_WHERE_MAX];
	} ports[PLANE_MAX_PORTS];
	struct {
		const char *name[2];
		char where[RUN_WHERE_MAX];
	} wires[FLOW_MAX_WIRES];
	struct run_draft_router {
		const char *values[RUN_ROUTER_N_KEYS]; /* NULL: not said */
		struct {
			const char *port, *tap;
		} ports[ROUTER_MAX_PORTS];
		unsigned n_ports;
		char where[RUN_WHERE_MAX];
	} routers[TOPOLOGY_MAX_DOMAINS];
	unsigned n_ports, n_wires, n_routers;
};

/*
 * Makes the configuration's ports and wires, those given first and then names that are devices. Each
 * port has to end up in one wire.
 */
int run_config_join(struct run_config *config, const struct run_draft *draft, struct error *error);

/*
 * Are the ports that offload leaves out ports of this configuration? Those of a list in a file have a
 * `where` each, by their number.
 */
typedef const char *(*run_where_fn)(
	const void *context, unsigned number, char where[RUN_WHERE_MAX]);
int run_config_check_except(const struct run_config *config, run_where_fn where,
	const void *context, struct error *error);

void run_config_init(struct run_config *config);

/* No output may write to the file of another one, or to one that is read. 0, or -EINVAL with a line. */
int run_config_check_files(const struct run_config *config, struct error *error);

/*
 * What is left to itself: the default socket; and what depends on more than one value. `where_slots`, `where_rate`,
 * `where_blocks` and `where_rules` are those of the slots, of the limit of rules a second, of the most blocks and of the
 * most rules.
 */
int run_config_complete(struct run_config *config, const char *where_slots, const char *where_rate,
	const char *where_blocks, const char *where_rules, struct error *error);

/* Keeps the name of the file that was read. */
int run_config_name(struct run_config *config, const char *file, struct error *error);
