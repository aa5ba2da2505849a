/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * One rule in a NIC, made and removed by calls of rte_flow that wait for it; memory is the caller's. Rules of flows
 * (back_end.c) and of an operator (offload/static_rules.h) are both made here.
 */

#include <rte_flow.h>

#include "rteflow/provider.h"

struct flow_rule {
	struct rte_flow *flow;		       /* NULL: there is none */
	struct rte_flow_action_handle *handle; /* its counter, where that outlives it; else NULL */
	bool counts;
};

struct flow_request {
	uint16_t port_id;
	struct rte_flow_attr attr;
	const struct rte_flow_item *items;
	struct rte_flow_action
		*actions; /* an INDIRECT one is the first, and gets its counter here */
	bool taken;	  /* rules of this shape were taken before */
	bool others; /* other actions may do: -EOPNOTSUPP where the counter or rte_flow_validate() says no */
};

/* A counter's last value. `told` is false where it is not known. */
struct flow_last {
	bool told;
	struct provider_count count;
};

/* 0 or an answer of the provider, with `why`. */
int flow_rule_make(
	const struct flow_request *request, struct flow_rule *rule, struct provider_why *why);
/* Its counter: 0 or an answer. */
int flow_rule_count(uint16_t port_id, const struct flow_rule *rule, struct provider_count *count,
	struct provider_why *why);
/* 0, and the rule is none any more; or an answer, and it is there still. `last` may be NULL. */
int flow_rule_remove(
	uint16_t port_id, struct flow_rule *rule, struct flow_last *last, struct provider_why *why);
/* The NIC has no such rule any more: its counter goes, too. `last` may be NULL. */
void flow_rule_forget(uint16_t port_id, struct flow_rule *rule, struct flow_last *last);
