/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What only rules with COUNT or AGE need, or that have a handle of one: most have neither. Lives and ends
 * with its rule; under the port's lock.
 */

#include "drivers/flowsim/age.h"
#include "drivers/flowsim/indirect.h"
#include "drivers/flowsim/rule.h"

struct sim_rule_extra {
	struct rte_flow *rule;
	TAILQ_ENTRY(sim_rule_extra) of_count, of_age; /* the rules of a handle */
	struct sim_count reported;		      /* at the last query with reset */
	struct sim_age age;			      /* of an AGE that is the rule's own */
};
