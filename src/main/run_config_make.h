/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The steps that command line and file share to make a configuration: it is begun with every default, checked where values
 * depend on one another, and completed.
 */

#include "main/run_config.h"
#include "main/run_config_places.h"

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
 * Fills in the default socket, and checks values that depend on one another. `where_slots`, `where_rate`,
 * `where_blocks` and `where_rules` are those of the slots, of the limit of rules a second, of the most blocks and of the
 * most rules.
 */
int run_config_complete(struct run_config *config, const char *where_slots, const char *where_rate,
	const char *where_blocks, const char *where_rules, struct error *error);

/* Keeps the name of the file that was read. */
int run_config_name(struct run_config *config, const char *file, struct error *error);
