/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A rule's life, from the draft to the call that takes it away: see match/rule.h. Everything is under the
 * lock of the rule's port.
 */

#include "drivers/flowsim/match/rule.h"

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
 * Any state -> freed. Its packets are counted to the last: see sim_rule_count(). One with `use` is counted
 * there.
 */
void sim_rule_destroy(struct rte_flow *rule);

/* Packets and bytes since it went live, everything included, before faults of counters. */
struct sim_count sim_rule_count(const struct rte_flow *rule);

/* Whether `flow` is a rule of that port with an application's handle; any pointer. */
bool sim_rule_is(const struct sim_port *port, const struct rte_flow *flow);
