/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rules NICs may do: those that drop, and whose packets no other rule decides before them. */
#include "rule/rules_private.h"

/* Rules that do not drop and that are looked at, and pairs that are compared, at most: about a tenth of a second. */
#define LOOKED_AT 262144
#define COMPARED 8388608

uint64_t rules_changes(const struct rules *rules)
{
	return rules->changes;
}

static bool is_in_force(const struct rules *rules, uint32_t slot)
{
	return rules->own[slot].text != NULL && rules->own[slot].full != CLASSIFIER_NONE;
}

static bool drops(const struct rules *rules, uint32_t slot)
{
	return rules->slots[slot].verdict == FLOW_VERDICT_DROP && !rules->own[slot].hands_on;
}

/* What the rule alone says. */
static enum rule_nic look_at(const struct rules *rules, uint32_t slot, struct classifier_rule *rule)
{
	struct rule_nic_items items;

	if (!is_in_force(rules, slot) || !drops(rules, slot))
		return RULE_NIC_ACTIONS;
	if (rules->own[slot].group != 0)
		return RULE_NIC_GROUP;
	classifier_get(rules->full, rules->own[slot].full, rule);
	return rule_nic_pattern(rule, &items);
}

static uint32_t take_candidates(struct rules *rules, struct rules_nic_rule *list, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		struct rules_own *own = &rules->own[slot];
		struct classifier_rule rule;

		if (own->text == NULL)
			continue;
		own->nic = (uint8_t)look_at(rules, slot, &rule);
		own->behind = RULES_NONE;
		if (own->nic != RULE_NIC_FITS)
			continue;
		if (n == max)
			own->nic = RULE_NIC_MANY;
		else
			list[n++] = (struct rules_nic_rule){slot, own->age, rule};
	}
	return n;
}

static bool comes_before(const struct rules_own *one, const struct rules_own *other)
{
	return one->priority != other->priority ? one->priority < other->priority
						: one->age < other->age;
}

/* Strikes out what another rule decides in part. Returns how many are left. */
static uint32_t strike_out(
	struct rules *rules, uint32_t slot, struct rules_nic_rule *list, uint32_t n)
{
	const struct rules_own *own = &rules->own[slot];
	struct classifier_rule rule;
	uint32_t left = 0;

	classifier_get(rules->full, own->full, &rule);
	for (uint32_t i = 0; i < n; i++) {
		struct rules_own *candidate = &rules->own[list[i].slot];

		if (!comes_before(own, candidate) || !rule_nic_overlap(&rule, &list[i].rule)) {
			list[left++] = list[i];
			continue;
		}
		candidate->nic = RULE_NIC_BEHIND;
		candidate->behind = slot;
	}
	return left;
}

uint32_t rules_nic_plan(struct rules *rules, struct rules_nic_rule *list, uint32_t max)
{
	uint32_t n = take_candidates(rules, list, max), looked_at = 0;
	uint64_t compared = 0;

	for (uint32_t slot = 0; slot < rules->n_begun && n > 0; slot++) {
		if (!is_in_force(rules, slot) || rules->own[slot].group != 0 || drops(rules, slot))
			continue;
		compared += n;
		if (++looked_at > LOOKED_AT || compared > COMPARED) {
			/* those that are not compared stay in software */
			while (n > 0)
				rules->own[list[--n].slot].nic = RULE_NIC_MANY;
			break;
		}
		n = strike_out(rules, slot, list, n);
	}
	return n;
}

void rules_nic_set(struct rules *rules, uint32_t slot, uint32_t place)
{
	rules->own[slot].place = place;
}

void rules_nic_add(struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes)
{
	rules->own[slot].nic_packets += packets;
	rules->own[slot].nic_bytes += bytes;
}

void rules_nic_tell(
	struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes, bool counts)
{
	rules->own[slot].now_packets = packets;
	rules->own[slot].now_bytes = bytes;
	rules->own[slot].nic_uncounted = !counts;
}
