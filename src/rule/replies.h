/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Whether the replies to a rule's packets follow the rule: the other direction of the conversation takes its verdict,
 * and is not searched for by itself. The functions keep no state.
 */

#include <stdbool.h>

#include "base/error.h"
#include "rule/classifier.h"
#include "rule/command.h"
#include "rule/effect.h"
#include "rule/pattern.h"

/*
 * Reads the word of a command whose actions have become `effect`; without it `usual` holds, as far as the actions can be
 * done to replies. 0; or -EINVAL: they cannot, and the command says that they are to be. May add a remark to the effect.
 */
int rule_replies_read(const struct rule_command *command, bool usual, struct rule_effect *effect,
	bool *follow, struct rule_refusal *refusal, struct error *error);

/* How a rule bears on the beginning of conversations. */
#define RULE_LETS_BEGIN 1u  /* it may let packets pass that begin one, or leave them to others */
#define RULE_DROPS_ALL 2u   /* it drops whatever comes to it */
#define RULE_NEEDS_BEGUN 4u /* it matches nothing unless one has begun */
unsigned rule_of_beginnings(const struct classifier_rule *rule, bool drops);

/* Whatever replies to a rule's packets match, and perhaps more: addresses and ports are those of the other direction. */
void rule_replies_to(const struct classifier_rule *rule, struct classifier_rule *replies);
