/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The rules of an engine that reads captures: from a file at the start, never changed. All packets come in by port 0. */

#include "base/error.h"
#include "main/engine.h"
#include "main/lone_rules.h"
#include "policy/policy.h"

/* Those of the engine's configuration, as large as the file has lines. 0 or a negative errno with a line; lone_rules_fini() follows in any case. */
int engine_rules_load(struct lone_rules *rules, const struct engine_config *engine,
	const struct hash_secret *secret, struct error *error);

/* What flows are decided by; with a NULL `decide` where there are no rules. */
struct policy_others engine_rules_policy(const struct lone_rules *rules);
