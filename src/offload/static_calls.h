/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The calls to a NIC that make, count and remove one rule of an operator's that drops: offload/static_rules.h decides
 * which rule and when. All are made in the installer's thread of the port; memory is the caller's.
 */

#include <rte_flow.h>

#include "rteflow/provider.h"
#include "rule/classifier.h"

/* A rule in the NIC. */
struct static_made {
	struct rte_flow *flow;		       /* NULL: there is none */
	struct rte_flow_action_handle *handle; /* its counter, where that outlives it */
	bool counts;
};

/* Makes a rule that drops, with a counter if that can be. 0 or an answer of the provider, with `why`. */
int static_make(uint16_t port_id, const struct classifier_rule *rule, struct static_made *made,
	struct provider_why *why);
/* Its counter: 0 or an answer. */
int static_count(uint16_t port_id, const struct static_made *made, struct provider_count *count);
/*
 * Removes it: 0, or an answer and it is there still. `count` becomes what it had at last; false in `counted`: that is not
 * known.
 */
int static_unmake(uint16_t port_id, struct static_made *made, struct provider_count *count,
	bool *counted, struct provider_why *why);
/* The counter of a rule that is gone: true with what it had at last. */
bool static_let_go(uint16_t port_id, struct static_made *made, struct provider_count *count);
