/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a port's flow calls need beside the rules themselves. Made by sim_rules_init(), when the port's
 * arguments and locks are there; unmade by sim_rules_fini(), when nobody receives and the firmware has
 * stopped (calls/calls.h).
 *
 * Blocking calls go one after the other, as through one command queue to the NIC: under `calls`, which is
 * taken before the port's lock and held while the NIC takes its time. They never sleep with the port's
 * lock: packets, the firmware and asynchronous calls go on meanwhile.
 */

#include <pthread.h>

#include <rte_flow_driver.h>

#include "drivers/flowsim/match/view.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/age.h"
#include "drivers/flowsim/rules/slab.h"

#define SIM_RULE_SIZES (SIM_VIEW_WORDS / 2 + 2)

struct sim_port;

struct sim_flow {
	pthread_mutex_t calls;
	struct rte_flow_ops ops; /* what this kind of NIC has, and nothing else */
	struct sim_ages ages;
	struct sim_actions_pool actions_pool;
	uint32_t n_keepers;		       /* rules in the table whose packets no host sees */
	struct sim_slab rules[SIM_RULE_SIZES]; /* by (words + 1) / 2 */
	struct sim_slab extras;
	struct sim_slab handles;
};
