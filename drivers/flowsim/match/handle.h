/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a handle of an indirect action is, and what is watched of a rule or a handle that ages. Rules and
 * packets follow the handle; what is done with it is rules/indirect.h's and rules/age.h's. Under the port's
 * lock, but for `rss`, which packets read under the rules lock.
 */

#include "drivers/flowsim/match/rule.h"

enum sim_age_state {
	SIM_AGE_OFF,	 /* nothing is watched: no timeout */
	SIM_AGE_WATCHED, /* had a packet, or has been told of */
	SIM_AGE_TELL,	 /* silent, and get_aged_flows has not been called since */
};

struct sim_age {
	TAILQ_ENTRY(sim_age) link;   /* all that are watched, longest not looked at first */
	TAILQ_ENTRY(sim_age) tell;   /* SIM_AGE_TELL, the first to be silent first */
	const struct rte_flow *rule; /* whose packets: a rule's, */
	const struct rte_flow_action_handle *handle; /* or those of all rules of a handle */
	void *context;
	enum sim_age_state state;
	bool told; /* of this silence */
	uint32_t seconds;
	uint64_t at_ms; /* the look that saw the last packet, or the begin */
	uint64_t hits;	/* at that look */
	uint64_t looked_ms;
};

TAILQ_HEAD(sim_age_list, sim_age);

struct rte_flow_action_handle {
	TAILQ_ENTRY(rte_flow_action_handle) link;
	struct sim_port *port;
	enum rte_flow_action_type type;	    /* COUNT, AGE, RSS */
	uint32_t users;			    /* rules that have it, in any state */
	TAILQ_HEAD(, sim_rule_extra) rules; /* these rules (rules/extra.h): COUNT, AGE */
	struct sim_count count;		    /* of rules that are gone */
	struct sim_count reported;	    /* at the last query with reset */
	struct sim_age age;
	struct sim_rss *rss; /* RSS: owned */
	bool uncounted;	     /* the NIC was reset since it was made */
};

TAILQ_HEAD(sim_indirects, rte_flow_action_handle);
