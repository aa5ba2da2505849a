/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Indirect actions: a COUNT, an AGE or an RSS that several rules share by a handle. Under the port's
 * lock. A handle that a rule uses cannot be destroyed: -EBUSY. The counter of rules that are gone stays
 * in it, to the last packet: destroy the rules, query the handle, destroy it.
 */

#include "drivers/flowsim/actions.h"
#include "drivers/flowsim/rule.h"

#define SIM_INDIRECT_MAGIC 0x696e6469u

struct rte_flow_action_handle {
	TAILQ_ENTRY(rte_flow_action_handle) link;
	struct sim_port *port;
	uint32_t magic;
	enum rte_flow_action_type type; /* COUNT, AGE, RSS */
	uint32_t users;			/* rules that have it */
	struct sim_count count;		/* of rules that are gone */
	struct sim_count reported;
	struct sim_rss rss;
	uint32_t age_seconds;
	void *age_context;
	uint64_t aged_at, aged_hits;
	bool aged;
};

TAILQ_HEAD(sim_indirects, rte_flow_action_handle);

/* The struct that actions.h names. */
#define sim_indirect rte_flow_action_handle

/* The work of both kinds of calls; errors as rte_flow.h. */
struct sim_indirect *sim_indirect_create(struct sim_port *port,
	const struct rte_flow_action *action, int *error, struct sim_fault_at *fault);
int sim_indirect_destroy(struct sim_port *port, struct sim_indirect *indirect);
int sim_indirect_update(struct sim_port *port, struct sim_indirect *indirect, const void *update);
int sim_indirect_query(struct sim_port *port, struct sim_indirect *indirect, void *data);
bool sim_indirect_is(const struct sim_port *port, const struct sim_indirect *indirect);

/* Packets and bytes of all its rules, gone and live. */
struct sim_count sim_indirect_count(const struct sim_indirect *indirect);
