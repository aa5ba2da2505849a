/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of conversations that rules ask for, and whether any rule lets a conversation begin. */
#include <errno.h>

#include "rule/grammar.h"
#include "rule/replies.h"
#include "rule/rules_private.h"

uint8_t rules_states_of(const struct classifier_rule *rule)
{
	const uint8_t mask = rule->mask.bits;
	uint8_t states = 0;

	if (mask & CLASSIFIER_STATES)
		states = (uint8_t)(~mask >> CLASSIFIER_STATE_SHIFT) & RULE_CT_ALL;
	return mask & (CLASSIFIER_FORWARD | CLASSIFIER_REVERSE) ? states | RULES_DIRECTION : states;
}

void rules_count_conversations(struct rules *rules, uint32_t slot, uint32_t by)
{
	const unsigned beginnings = rules->own[slot].beginnings;

	rules->n_let_begin += beginnings & RULE_LETS_BEGIN ? by : 0;
	rules->n_drop_all += beginnings & RULE_DROPS_ALL ? by : 0;
	if (rules->own[slot].made->limit.live)
		atomic_fetch_add_explicit(&rules->n_live_limits, by, memory_order_release);
	if (rules->slots[slot].states != 0 || rules->slots[slot].follows ||
		rules->own[slot].made->limit.given)
		atomic_fetch_add_explicit(&rules->n_of_conversations, by, memory_order_release);
}

bool rules_no_beginning(
	const struct rules *rules, const struct classifier_rule *rule, struct error *error)
{
	if (!(rule_of_beginnings(rule, false) & RULE_NEEDS_BEGUN) || rules->n_let_begin != 0 ||
		rules->n_drop_all == 0)
		return false;
	error_set(error, -ENOENT, RULES_NO_BEGINNING);
	return true;
}
