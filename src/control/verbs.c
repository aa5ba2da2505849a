/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/verbs.h"

const struct answer_verb *const answer_verbs[] = {
	&flow_list,
	&flow_explain,
	&flow_kill,
	&flow_block,
	&flow_unblock,
	&block_list,
	&rule_list,
	&rule_add,
	&rule_del,
	&rule_stage,
	&rule_diff,
	&rule_load,
	&rule_confirm,
	&rule_rollback,
	&rule_status,
	&rule_trace,
	&port_show,
	&worker_show,
	&wire_show,
	&domain_show,
	&route_show,
	&neighbour_show,
	&drop_show,
	&drop_follow,
	&export_show,
	&offload_show,
	&offload_events,
	&offload_check,
	&event_follow,
	&config_show,
};

const unsigned answer_n_verbs = sizeof(answer_verbs) / sizeof(answer_verbs[0]);
