/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a rule is; its life is rules/rule_life.h's.
 *
 *   draft (parsed, checked) -> pending (accepted, on its way into the NIC) -> live -> leaving -> freed
 *
 * Faults make two more states: `lost` (accepted, and the application believes in it, but the NIC does
 * not have it) and `gone` (was live; the NIC forgot it). The application's handle is the rule itself
 * until destroy has answered.
 *
 * A rule belongs to the port that it was created on. Everything here is under that port's lock.
 */

#include <sys/queue.h>

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/match/pattern.h"

struct sim_port;
struct sim_class;
struct sim_rule_extra; /* rules/extra.h: counting with reset, ageing, handles */

enum sim_domain { SIM_INGRESS, SIM_EGRESS, SIM_TRANSFER, SIM_N_DOMAINS };

enum sim_rule_state {
	SIM_RULE_PENDING,
	SIM_RULE_LIVE,
	SIM_RULE_LOST,
	SIM_RULE_GONE,
	SIM_RULE_LEAVING, /* destroy was asked for and has not been done */
};

/* What was asked for, parsed; on the stack of the call. `actions` owns memory until a rule took it. */
struct sim_draft {
	enum sim_domain domain;
	uint32_t group;
	uint32_t priority;
	struct sim_pattern pattern;
	struct sim_actions actions;
};

/*
 * A rule of a template table has that of its pattern template (calls/template.h): where to count it when it
 * goes for good, or did not come to be. By one writer at a time, under the port's lock.
 */
struct sim_rule_use {
	uint64_t *left;
};

/* Packets and bytes that matched. Added to by whoever receives (relaxed atomics), read by control. */
struct sim_count {
	uint64_t hits;
	uint64_t bytes;
};

struct rte_flow {
	TAILQ_ENTRY(rte_flow) link; /* all rules of the port, oldest first */
	struct sim_port *port;
	uint32_t magic; /* SIM_RULE_MAGIC while it is a handle */
	enum sim_rule_state state;
	enum sim_domain domain;
	uint32_t group, priority;
	uint64_t serial;  /* rising; the older of two rules of one priority wins */
	uint16_t ingress; /* the ethdev whose packets it is for */
	bool async;
	bool ghost; /* left by an earlier run: no application has its handle */
	bool in_table, in_input_sets;
	bool uncounted; /* the NIC was reset: what it counted is gone, too */
	uint16_t
		asked_by; /* 0, or the ethdev it was created on (a transfer rule's other port) + 1 */
	uint32_t mark_id;
	/* shared by rules that do the same but for mark, age context, and handles of COUNT and AGE */
	struct sim_actions *actions;
	void *age_context;
	struct sim_indirect *count_handle, *age_handle; /* NULL: of its own, if any */
	struct sim_rule_extra *extra;			/* NULL: neither COUNT nor AGE */
	struct sim_count count;	  /* what is settled; sim_rule_count() tells all */
	struct sim_rule_use *use; /* async: of its template table; or NULL */
	/* of the table */
	struct sim_class *sort;		 /* rules with the same mask, and its list */
	struct rte_flow *worse, *better; /* same values; the best one's `better` is the worst one */
	uint64_t values[]; /* the pattern's words under the mask, sort->n_words of them */
};

#define SIM_RULE_MAGIC 0x666c6f77u

TAILQ_HEAD(sim_rules, rte_flow);
