/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What an ethdev has of this directory: its tables of flow and meter calls, and what of a port is made when
 * it is probed and unmade when it goes. init returns 0 or a negative errno; fini also where init failed or
 * was never called.
 */

#include <ethdev_driver.h>
#include <rte_flow_driver.h>
#include <rte_mtr_driver.h>

struct sim_port;

/* The port's tables of calls; NULL: it has none. */
const struct rte_flow_ops *sim_flow_ops_get(const struct sim_port *port);
const struct rte_mtr_ops *sim_mtr_ops_get(const struct sim_port *port);

/* The table and what else rules need; fini frees those that are there still, and shared actions. */
int sim_rules_init(struct sim_port *port);
void sim_rules_fini(struct sim_port *port);

/* Flow queues: after the firmware was started; fini stops it. sim_async_calls() when all else is there. */
int sim_async_init(struct sim_port *port);
void sim_async_fini(struct sim_port *port);
void sim_async_calls(struct rte_eth_dev *dev);

/*
 * For the firmware (port/firmware.h): sim_async_work() does what is due, *worked: something was, and returns
 * when the next is, UINT64_MAX: none; sim_async_waits() tells whether something was pushed that it has not
 * seen: any thread, no lock.
 */
uint64_t sim_async_work(struct sim_port *port, uint64_t now, bool *worked);
bool sim_async_waits(const struct sim_port *port);

/* The device was stopped: rules go unless the profile keeps them. Without the port's lock. */
void sim_rules_stopped(struct sim_port *port);
