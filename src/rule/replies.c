/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/replies.h"

#include <errno.h>
#include <string.h>

#include "packet/headers.h"

/* Is an action the same for packets of either direction? */
static bool is_for_both(enum action_kind kind)
{
	return kind == ACTION_DROP || kind == ACTION_REJECT || kind == ACTION_DECREMENT_TTL ||
	       kind == ACTION_METER || kind == ACTION_POLICE || kind == ACTION_MIRROR;
}

/* Why replies cannot have a rule's verdict, or NULL. */
static const char *not_for_replies(const struct rule_effect *effect)
{
	if (effect->passes || effect->jump != 0)
		return "follow: the rule leaves its packets to others, so that it has no verdict";
	for (unsigned i = 0; i < effect->n; i++)
		if (!is_for_both(effect->list[i].kind))
			return "follow: an action of the rule changes packets or says where they "
			       "go, "
			       "which is not for replies";
	return NULL;
}

static bool is_drop(const struct rule_effect *effect)
{
	return effect->n > 0 &&
	       (effect->list[0].kind == ACTION_DROP || effect->list[0].kind == ACTION_REJECT);
}

int rule_replies_read(const struct rule_command *command, bool usual, struct rule_effect *effect,
	bool *follow, struct rule_refusal *refusal, struct error *error)
{
	const struct rule_argument *said = NULL, *next;
	const char *why = not_for_replies(effect);

	/* what is given twice counts as it was given last */
	for (unsigned i = 0; (next = rule_command_argument(command, RULE_ARG_REPLIES, i)) != NULL;
		i++)
		said = next;
	*follow = said != NULL ? said->number != 0 : usual;
	if (*follow && why != NULL && said != NULL) {
		*refusal = (struct rule_refusal){.part = RULE_PART_COMMAND, .word = "replies"};
		return error_set(error, -EINVAL, "replies %s", why);
	}
	*follow = *follow && why == NULL && !is_drop(effect);
	if (said != NULL && is_drop(effect) && effect->remark == NULL)
		effect->remark = "what is dropped has no replies: the word replies has no meaning";
	return 0;
}

unsigned rule_of_beginnings(const struct classifier_rule *rule, bool drops)
{
	/* the states that it does not ask for are those whose bits it wants to be 0 */
	const uint8_t not_asked = rule->mask.bits >> CLASSIFIER_STATE_SHIFT;
	const bool reverse = (rule->mask.bits & rule->value.bits & CLASSIFIER_REVERSE) != 0;
	const bool needs = reverse || (not_asked & (RULE_CT_NEW | RULE_CT_INVALID)) ==
					      (RULE_CT_NEW | RULE_CT_INVALID);
	struct classifier_rule all = classifier_rule_any(rule->id);

	if (needs)
		return RULE_NEEDS_BEGUN;
	if (!drops)
		return RULE_LETS_BEGIN;
	all.priority = rule->priority;
	/* for all ports, or for one of them: others have rules of their own */
	all.value.in_port = rule->value.in_port;
	all.mask.in_port = rule->mask.in_port;
	return memcmp(&all, rule, sizeof(all)) == 0 ? RULE_DROPS_ALL : 0;
}

static bool has_port_fields(const struct classifier_rule *rule)
{
	return rule->mask.proto != UINT8_MAX ||
	       (rule->value.proto != PROTO_ICMP && rule->value.proto != PROTO_ICMPV6);
}

void rule_replies_to(const struct classifier_rule *rule, struct classifier_rule *replies)
{
	const struct classifier_header *value = &rule->value, *mask = &rule->mask;

	*replies = classifier_rule_any(rule->id);
	memcpy(replies->value.src, value->dst, sizeof(value->dst));
	memcpy(replies->mask.src, mask->dst, sizeof(mask->dst));
	memcpy(replies->value.dst, value->src, sizeof(value->src));
	memcpy(replies->mask.dst, mask->src, sizeof(mask->src));
	replies->value.proto = value->proto;
	replies->mask.proto = mask->proto;
	replies->value.version = value->version;
	replies->mask.version = mask->version;
	replies->src_set = rule->dst_set;
	replies->dst_set = rule->src_set;
	if (!has_port_fields(rule))
		return;
	replies->src_port = rule->dst_port;
	replies->dst_port = rule->src_port;
}
