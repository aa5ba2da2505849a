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
 * As rules_create(), with programs and an RCU variable of their own, and if `config` has none, a secret. 0 or a negative
 * errno with a line; lone_rules_fini() follows in any case.
 */
int lone_rules_create(
	struct lone_rules *lone, const struct rules_config *config, struct error *error);
void lone_rules_fini(struct lone_rules *lone);
