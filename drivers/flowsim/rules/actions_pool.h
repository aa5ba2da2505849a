/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Rules that do the same share one sim_actions: a NIC has a million rules and a handful of things that
 * they do. "The same" leaves out the mark's id and the context of AGE, which the rule keeps (in what is
 * held here they are 0 and NULL); ids of marks of SAMPLE's copies are part of it. Handles of indirect
 * actions are compared as pointers, and their `users` are the rule's business.
 *
 * A port has a pool; all zeroes is an empty one. Any thread, with or without the port's lock; what is
 * held does not change, but for the meter behind it, and lasts until the last release.
 */

#include <rte_spinlock.h>

#include "drivers/flowsim/match/actions.h"

struct sim_port;
struct sim_actions_entry;

struct sim_actions_pool {
	rte_spinlock_t lock;
	uint32_t n_entries;
	uint32_t n_buckets; /* power of two, or 0 */
	struct sim_actions_entry **buckets;
};

/*
 * The shared actions that do what `parsed` says, with one user more. What `parsed` owned is the pool's or
 * freed, and *parsed may go. NULL and errno: ENOMEM, or ENOENT when its meter has gone meanwhile; then
 * `parsed` is the caller's still.
 */
struct sim_actions *sim_actions_hold(struct sim_port *port, struct sim_actions *parsed);

/* One user more of what is held already: an addition. */
void sim_actions_share(struct sim_port *port, struct sim_actions *held);

/* One user less; the last one's release frees. Accepts NULL. Nobody may read them any longer. */
void sim_actions_release(struct sim_port *port, struct sim_actions *held);

/* With the port; nothing is held by then. */
void sim_actions_pool_fini(struct sim_actions_pool *pool);
