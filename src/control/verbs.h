/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* All requests that control answers, by the file that each lives in. */

#include "control/answer.h"

/* flow_list.c */
extern const struct answer_verb flow_list;
/* flow.c */
extern const struct answer_verb flow_explain;
extern const struct answer_verb flow_kill;
/* block.c, block_list.c */
extern const struct answer_verb flow_block;
extern const struct answer_verb flow_unblock;
extern const struct answer_verb block_list;
/* rule.c, rule_load.c, rule_trace.c */
extern const struct answer_verb rule_list;
extern const struct answer_verb rule_add;
extern const struct answer_verb rule_del;
extern const struct answer_verb rule_stage;
extern const struct answer_verb rule_diff;
extern const struct answer_verb rule_load;
extern const struct answer_verb rule_confirm;
extern const struct answer_verb rule_rollback;
extern const struct answer_verb rule_status;
extern const struct answer_verb rule_trace;
/* port.c, worker.c, wire.c, drop.c, export.c, event.c, config.c */
extern const struct answer_verb port_show;
extern const struct answer_verb worker_show;
extern const struct answer_verb wire_show;
extern const struct answer_verb domain_show;
extern const struct answer_verb route_show;
extern const struct answer_verb neighbour_show;
extern const struct answer_verb drop_show;
/* drop_follow.c */
extern const struct answer_verb drop_follow;
extern const struct answer_verb export_show;
extern const struct answer_verb event_follow;
extern const struct answer_verb config_show;
/* config_apply.c */
extern const struct answer_verb config_stage;
extern const struct answer_verb config_diff;
extern const struct answer_verb config_apply;
extern const struct answer_verb config_confirm;
extern const struct answer_verb config_rollback;
extern const struct answer_verb config_status;
/* offload.c, offload_events.c, offload_check.c */
extern const struct answer_verb offload_show;
extern const struct answer_verb offload_events;
extern const struct answer_verb offload_check;

/* Every verb, in the order of docs/control.md. */
extern const struct answer_verb *const control_verbs[];
extern const unsigned control_n_verbs;
