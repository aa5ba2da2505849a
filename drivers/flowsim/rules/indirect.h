/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Indirect actions: a COUNT, an AGE or an RSS that several rules share by a handle. Under the port's
 * lock. A handle that a rule uses cannot be destroyed: -EBUSY. The counter of rules that are gone stays
 * in it, to the last packet: destroy the rules, query the handle, destroy it.
 */

#include "drivers/flowsim/match/handle.h"

struct sim_port;

/*
 * The work of both kinds of calls. What the port does not know, or not any more (any pointer), is -ENOENT;
 * create returns NULL and *error, negative; update takes what rte_flow_action_handle_update() does, for
 * AGE a struct rte_flow_update_age, for RSS a struct rte_flow_action. Faults (fail, dead) are asked here.
 */
struct sim_indirect *sim_indirect_create(struct sim_port *port,
	const struct rte_flow_action *action, int *error, struct sim_fault_at *fault);
int sim_indirect_destroy(struct sim_port *port, struct sim_indirect *indirect);
int sim_indirect_update(struct sim_port *port, struct sim_indirect *indirect, const void *update);
int sim_indirect_query(struct sim_port *port, struct sim_indirect *indirect, void *data);
bool sim_indirect_is(const struct sim_port *port, const struct sim_indirect *indirect);

/* All handles that no rule has go. */
void sim_indirects_drop(struct sim_port *port);

/* Packets and bytes of all its rules, gone and live; before faults of counters. */
struct sim_count sim_indirect_count(const struct sim_indirect *indirect);
