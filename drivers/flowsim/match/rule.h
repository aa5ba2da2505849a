/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A rule, from the call that asks for it to the one that takes it away.
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
struct sim_rule_extra; /* extra.h: counting with reset, ageing, handles */

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
	uint16_t
		asked_by; /* 0, or the ethdev it was created on (a transfer rule's other port) + 1 */
	uint32_t mark_id;
	/* shared by rules that do the same but for mark, age context, and handles of COUNT and AGE */
	struct sim_actions *actions;
	void *age_context;
	struct sim_indirect *count_handle, *age_handle; /* NULL: of its own, if any */
	struct sim_rule_extra *extra;			/* extra.h; NULL: neither COUNT nor AGE */
	struct sim_count count;	      /* what is settled; sim_rule_count() tells all */
	struct sim_template_use *use; /* async: of its template table, told when it goes; or NULL */
	/* of the table */
	struct sim_class *sort;		 /* rules with the same mask, and its list */
	struct rte_flow *worse, *better; /* same values; the best one's `better` is the worst one */
	uint64_t values[]; /* the pattern's words under the mask, sort->n_words of them */
};

#define SIM_RULE_MAGIC 0x666c6f77u

TAILQ_HEAD(sim_rules, rte_flow);

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

/*
 * A place in the port's table for the draft: counts against the size, the input sets, and the faults
 * that refuse. Pending. NULL and *error: -ENOSPC (or what the profile says instead), -ENOMEM, ...
 * Under the port's lock.
 */
struct rte_flow *sim_rule_create(
	struct sim_port *port, struct sim_draft *draft, int *error, struct sim_fault_at *fault);

/*
 * sim_rule_create() in two halves, for queues of templates: what a rule costs there has to be little.
 *
 * sim_rule_alloc(): memory for a rule with n_words values, not yet a handle; all but `values` is zero.
 * NULL without memory. Under the port's lock; queues keep some in stock, and their threads fill in port,
 * domain, group, priority, ingress, async, mark_id, age_context, use and values without it; count_handle
 * and age_handle too, so that `actions` without them are shared (handles in `actions` serve as well).
 *
 * sim_rule_admit(): all of sim_rule_create() that is behind parsing, under the port's lock: the size,
 * faults, serial, the list. `sort` is its class; `actions` are held by the caller (actions_pool.h), and
 * that hold is the rule's when 0 is returned. Input sets are not looked at. Else the rule is no handle,
 * and the caller's still.
 *
 * sim_rule_free(): of one that was not admitted. Under the port's lock.
 */
struct rte_flow *sim_rule_alloc(struct sim_port *port, unsigned n_words);
int sim_rule_admit(struct sim_port *port, struct rte_flow *rule, struct sim_class *sort,
	struct sim_actions *actions, struct sim_fault_at *fault);
void sim_rule_free(struct sim_port *port, struct rte_flow *rule, unsigned n_words);

/*
 * pending -> live (or lost, when that fault strikes): packets match from here on. One that is leaving
 * already, destroyed before its create was done, matches and goes on leaving.
 */
void sim_rule_go_live(struct rte_flow *rule);

/* live -> gone: packets no longer match; the application is not told. */
void sim_rule_forget(struct rte_flow *rule);

/*
 * Any state -> freed. Its packets are counted to the last: see sim_rule_count(). A rule with `use` is
 * told to sim_template_left() (template.h) before.
 */
void sim_rule_destroy(struct rte_flow *rule);

/* Packets and bytes since it went live, everything included, before faults of counters. */
struct sim_count sim_rule_count(const struct rte_flow *rule);

/* Whether `flow` is a rule of that port with an application's handle; any pointer. */
bool sim_rule_is(const struct sim_port *port, const struct rte_flow *flow);
