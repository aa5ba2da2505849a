/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Rules without a plane, with all that they need: of an engine that reads captures, or to be checked. */

#include <stdbool.h>
#include <stdint.h>

#include "action/programs.h"
#include "base/error.h"
#include "packet/hash.h"
#include "rule/rules.h"

/* Zeroed: there are none. */
struct lone_rules {
	struct rules *rules;
	struct programs *programs;
	struct rte_rcu_qsbr *qsbr;
};

/*
 * Room for `max` rules, read by so many workers. `topology` NULL: they may name any port; `secret` NULL: a new one. 0 or
 * a negative errno with a line; lone_rules_fini() follows in any case.
 */
int lone_rules_create(struct lone_rules *lone, uint32_t max, unsigned n_workers,
	const struct topology *topology, bool zone_vlan, const struct hash_secret *secret,
	struct error *error);
void lone_rules_fini(struct lone_rules *lone);
