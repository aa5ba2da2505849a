/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of the blocking flow calls: see rules/flow_state.h. */

#include <stdio.h>

#include <rte_flow_driver.h>

struct sim_port;

/* The table of all, of which a port has what its kind of NIC does (flow.c). */
extern const struct rte_flow_ops sim_flow_ops;

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
