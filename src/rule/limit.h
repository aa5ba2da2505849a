/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The limit that a rule sets to the flows of a source (item `source`): what it says, from a command. No state. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rule/effect.h"
#include "rule/pattern.h"

/* Numbers of a limit are at most this. */
#define RULE_LIMIT_MAX 1000000u

struct rule_limit {
	bool given; /* false: the rule has none */
	bool live;  /* of live flows; else of new ones */
	uint32_t above;
	uint32_t per_s, burst; /* of new flows */
	uint8_t prefix4, prefix6;
};

/*
 * Reads the item of a command whose pattern has become `rule`, and whose actions `effect`. 0; or -EINVAL or -ENOTSUP, and
 * then `error` begins with the word.
 */
int rule_limit_read(const struct rule_command *command, const struct rule_ground *ground,
	const struct classifier_rule *rule, const struct rule_effect *effect,
	struct rule_limit *limit, struct rule_refusal *refusal, struct error *error);
