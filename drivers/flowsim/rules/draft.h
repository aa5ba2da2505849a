/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What an application asks for, read: a rule that is not one yet. */

#include "drivers/flowsim/match/rule.h"

/*
 * Parses and checks what an application asks for. Returns 0, or the errno that this kind of NIC says
 * and where the fault is. On success sim_draft_fini() or sim_rule_create() takes the actions.
 */
int sim_draft_parse(struct sim_draft *draft, struct sim_port *port,
	const struct rte_flow_attr *attr, const struct rte_flow_item items[],
	const struct rte_flow_action actions[], struct sim_fault_at *fault);
void sim_draft_fini(struct sim_draft *draft);

/* The first half of it: what is asked for, not whether this kind of NIC would take it. */
int sim_draft_read(struct sim_draft *draft, struct sim_port *port, const struct rte_flow_attr *attr,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct sim_fault_at *fault);
