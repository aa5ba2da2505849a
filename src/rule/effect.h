/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The meaning of a rule's actions: what is done with packets in software, as a list of actions
 * (action/action.h). What cannot be done is refused by its name. The functions keep no state.
 */

#include <stdbool.h>
#include <stdint.h>

#include "action/action.h"
#include "base/error.h"
#include "rule/classifier.h"
#include "rule/command.h"
#include "rule/pattern.h"
#include "rule/shared.h"

/* Things that several rules share, of which a rule may name so many. */
#define RULE_EFFECT_USES 8

struct rule_effect {
	struct action list[ACTION_LIST_MAX];
	unsigned n;
	uint32_t jump; /* group in which the search goes on; 0: none */
	bool passes;   /* later rules decide, as if this one were not there */
	bool marked;
	uint32_t mark;
	bool logs;	/* what comes to it is told */
	uint32_t age_s; /* seconds of silence that end its flows; 0: as their protocol has it */
	/* what it shares: the caller counts the rules that it keeps */
	struct rule_use *uses[RULE_EFFECT_USES];
	unsigned n_uses;
	/* what of the rule has no meaning in software, or NULL */
	const char *remark;
};

/*
 * Reads the actions of a command whose pattern has become `rule`. 0; or -ENOTSUP: software cannot do it; or
 * -EINVAL: it makes no sense. Then `error` begins with the word.
 */
int rule_effect_read(const struct rule_command *command, const struct rule_ground *ground,
	const struct classifier_rule *rule, struct rule_effect *effect,
	struct rule_refusal *refusal, struct error *error);
