/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * From rte_flow actions to a struct sim_actions. Under the port's lock.
 */

#include "drivers/flowsim/match/actions.h"

struct sim_port;

/*
 * Reads at most SIM_MAX_ACTIONS actions up to END. Errors as sim_pattern_parse(); -EINVAL for a NULL
 * conf where one is needed, a queue or port that is not there, two fates (JUMP and PASSTHRU are fates
 * too), a jump to the rule's own or a lower group; -ENOTSUP for what this NIC does not know. Of MARK,
 * FLAG, COUNT and AGE the last one counts, as rte_flow has it; edits add up. `port` says who asks;
 * handles of indirect actions must be of that port. The group is the rule's. On success
 * sim_actions_fini() frees what it owns, or a pool takes it (actions_pool.h).
 *
 * In SAMPLE: MARK, FLAG, QUEUE, RSS, DROP, ports and edits. A copy without fate goes as if there were no
 * rules.
 */
int sim_actions_parse(struct sim_actions *actions, struct sim_port *port, uint32_t group,
	const struct rte_flow_action list[], struct sim_fault_at *fault);
void sim_actions_fini(struct sim_actions *actions);

/* The bit of `named` for an action type that this NIC knows (the type itself, below 64); -1: unknown. */
int sim_action_bit(enum rte_flow_action_type type);

/*
 * One action on its own, as rte_flow_action_handle_create() gets it: reads RSS's conf. -EINVAL, -ENOTSUP.
 */
int sim_actions_parse_rss(struct sim_rss *rss, const struct sim_port *port,
	const struct rte_flow_action *action, struct sim_fault_at *fault);
