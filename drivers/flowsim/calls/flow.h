/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a port's flow calls need beside the rules themselves. Made by sim_rules_init(), when the port's
 * arguments and locks are there; unmade by sim_rules_fini(), when nobody receives and the firmware has
 * stopped (sim.h has both, and sim_rules_stopped()).
 *
 * Blocking calls go one after the other, as through one command queue to the NIC: under `calls`, which is
 * taken before the port's lock and held while the NIC takes its time. They never sleep with the port's
 * lock: packets, the firmware and asynchronous calls go on meanwhile.
 */

#include <pthread.h>
#include <stdio.h>

#include <rte_flow_driver.h>

#include "drivers/flowsim/match/view.h"
#include "drivers/flowsim/rules/age.h"
#include "drivers/flowsim/rules/slab.h"

#define SIM_RULE_SIZES (SIM_VIEW_WORDS / 2 + 2)

struct sim_port;

struct sim_flow {
	pthread_mutex_t calls;
	struct rte_flow_ops ops; /* what this kind of NIC has, and nothing else */
	struct sim_ages ages;
	uint32_t n_keepers;		       /* rules in the table whose packets no host sees */
	struct sim_slab rules[SIM_RULE_SIZES]; /* by (words + 1) / 2 */
	struct sim_slab extras;
	struct sim_slab handles;
};

/*
 * All rules go but for ghosts and for what an asynchronous operation is at work on. Handles stay, until
 * the port is closed. Without the port's lock.
 */
void sim_rules_drop_all(struct sim_port *port);

/* Calls of indirect actions, for the table in flow.c (flow_indirect.c). */
struct rte_flow_action_handle *sim_flow_handle_create(struct rte_eth_dev *dev,
	const struct rte_flow_indir_action_conf *conf, const struct rte_flow_action *action,
	struct rte_flow_error *error);
int sim_flow_handle_destroy(struct rte_eth_dev *dev, struct rte_flow_action_handle *handle,
	struct rte_flow_error *error);
int sim_flow_handle_update(struct rte_eth_dev *dev, struct rte_flow_action_handle *handle,
	const void *update, struct rte_flow_error *error);
int sim_flow_handle_query(struct rte_eth_dev *dev, const struct rte_flow_action_handle *handle,
	void *data, struct rte_flow_error *error);

/* One rule, or all when NULL, in words; under the port's lock (dump.c). */
void sim_dump(const struct sim_port *port, const struct rte_flow *rule, FILE *file);
