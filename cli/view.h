/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How an answer is shown as text: line by line as it comes, so that a list may be of any length. One
 * view for each verb; cli_show is what they share while an answer comes. The lines are borrowed.
 */

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "cli/args.h"
#include "cli/table.h"

struct cli_show {
	FILE *out;
	const struct cli_args *args;
	uint64_t lines;	    /* that came before this one */
	int64_t now_us;	    /* Unix time when the answer began */
	struct table table; /* for views that are tables */
};

struct cli_view {
	void (*line)(struct cli_show *show, const json_t *line);
	/* After the last line; `end` is the line that ended the answer. May be NULL. */
	void (*end)(struct cli_show *show, const json_t *end);
};

extern const struct cli_view cli_flow_list, cli_flow_explain, cli_flow_kill;
extern const struct cli_view cli_flow_block, cli_flow_unblock, cli_block_list;
extern const struct cli_view cli_rule_list, cli_rule_add, cli_rule_del, cli_rule_trace;
extern const struct cli_view cli_rule_diff, cli_rule_load, cli_rule_confirm, cli_rule_status;
extern const struct cli_view cli_port_show, cli_worker_show, cli_wire_show;
extern const struct cli_view cli_domain_show, cli_route_show, cli_neighbour_show;
extern const struct cli_view cli_drop_show, cli_drop_follow;
extern const struct cli_view cli_export_show;
extern const struct cli_view cli_offload_show, cli_offload_events, cli_offload_check;
extern const struct cli_view cli_event_follow, cli_config_show;
extern const struct cli_view cli_config_diff, cli_config_apply, cli_config_confirm;
extern const struct cli_view cli_config_status;
