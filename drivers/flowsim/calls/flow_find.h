/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of the flow calls: a handle that an application gives, and the port that has the rule. */

struct rte_flow;
struct sim_port;

/*
 * The port of the NIC whose rule it is, of those that were created on `port`; its lock is held then. NULL,
 * and no lock held, when there is none. Any pointer; without any port's lock.
 */
struct sim_port *sim_find_rule(struct sim_port *port, const struct rte_flow *rule);
