/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What only rules with COUNT or AGE need, or that have a handle of one: most have neither. Lives and ends
 * with its rule; under the port's lock.
 */

#include "drivers/flowsim/match/rule.h"
#include "drivers/flowsim/rules/age.h"
#include "drivers/flowsim/rules/indirect.h"

struct sim_rule_extra {
	struct rte_flow *rule;
	TAILQ_ENTRY(sim_rule_extra) of_count, of_age; /* the rules of a handle */
	struct sim_count reported;		      /* at the last query with reset */
	struct sim_age age;			      /* of an AGE that is the rule's own */
};

/*
 * The answers to a query, of a rule or of a handle: `now` is what was counted since the begin, `of` and
 * `serial` as sim_fault_count() has them.
 */
void sim_count_answer(struct sim_port *port, struct sim_count now, const void *of, uint64_t serial,
	struct sim_count *reported, struct rte_flow_query_count *answer);
void sim_age_answer(struct sim_port *port, struct sim_age *age, struct rte_flow_query_age *answer);
