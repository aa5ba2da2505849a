/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rules NICs may do: those that drop, and whose packets no other rule decides before them.
 *
 * Of each rule it is known what it is: a candidate, which drops; a guard, which does something else; or neither. A
 * candidate is compared with the guards, one after the other, until one comes before it and matches some of its packets:
 * the candidate stands behind that one, is in its list, and is compared anew only when that guard goes. A candidate that
 * has passed all guards fits. A new guard is compared with what fits at once, and is the last of the guards, where
 * candidates that are being compared will come to it.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "rule/replies.h"
#include "rule/rules_private.h"

enum kind { KIND_NONE, KIND_NEITHER, KIND_GUARD, KIND_CANDIDATE, KIND_FITS };

struct nic_slot {
	uint64_t
		behind_age; /* what stands before it, when that is still the rule in the slot `behind` */
	uint32_t behind;
	uint32_t at;  /* of KIND_FITS: where it is in `fits` */
	uint8_t kind; /* KIND_NONE: nothing is in the slot, or it was not looked at yet */
	uint8_t why; /* enum rule_nic, of what is no candidate, and of one that stands behind another */
	bool placed; /* rules_nic_next() gave it to the caller */
};

/* Rings: each slot is in one at most, and each guard has one of those behind it. */
struct nic_link {
	uint32_t last, next;
};

struct rules_nic {
	uint32_t max, n_fits;
	uint32_t begun;	  /* slots that were looked at */
	uint32_t highest; /* no rule that fits has a higher priority number, */
	uint64_t newest;  /* nor has any a higher rank */
	uint64_t compared;
	struct nic_slot *slots;
	struct nic_link *links;
	uint32_t waiting, arrived, guards; /* heads of rings, in `links` */
	/* a candidate that is being compared, and the guard that is next; RULES_NONE: there is none */
	uint32_t looked_at, guard;
	struct classifier_rule rule;
	uint32_t n_left;
	uint32_t *left; /* places */
	uint32_t *fits; /* slots */
};

/* Rings. */

static void ring_init(struct rules_nic *nic, uint32_t link)
{
	nic->links[link] = (struct nic_link){link, link};
}

static bool ring_is_empty(const struct rules_nic *nic, uint32_t head)
{
	return nic->links[head].next == head;
}

static void ring_add(struct rules_nic *nic, uint32_t head, uint32_t link)
{
	const uint32_t last = nic->links[head].last;

	nic->links[link] = (struct nic_link){last, head};
	nic->links[last].next = nic->links[head].last = link;
}

static void ring_cut(struct rules_nic *nic, uint32_t link)
{
	const struct nic_link cut = nic->links[link];

	nic->links[cut.last].next = cut.next;
	nic->links[cut.next].last = cut.last;
	ring_init(nic, link);
}

/* All of the one ring go to the end of the other. */
static void ring_move(struct rules_nic *nic, uint32_t head, uint32_t from)
{
	const struct nic_link moved = nic->links[from];
	const uint32_t last = nic->links[head].last;

	if (ring_is_empty(nic, from))
		return;
	nic->links[last].next = moved.next;
	nic->links[moved.next].last = last;
	nic->links[moved.last].next = head;
	nic->links[head].last = moved.last;
	ring_init(nic, from);
}

/* The ring of those that stand behind a guard. */
static uint32_t ring_behind(const struct rules *rules, uint32_t slot)
{
	return rules->n_slots + slot;
}

/* Life. */

static int nic_allocate(struct rules_nic *nic, uint32_t n_slots)
{
	nic->slots = calloc(n_slots, sizeof(*nic->slots));
	nic->links = calloc(2 * (size_t)n_slots + 3, sizeof(*nic->links));
	nic->left = calloc(nic->max, sizeof(*nic->left));
	nic->fits = calloc(nic->max, sizeof(*nic->fits));
	return nic->slots == NULL || nic->links == NULL || nic->left == NULL || nic->fits == NULL
		       ? -ENOMEM
		       : 0;
}

int rules_nic_begin(struct rules *rules, uint32_t max)
{
	struct rules_nic *nic = calloc(1, sizeof(*nic));

	if (nic == NULL)
		return -ENOMEM;
	rules->nic = nic;
	nic->max = max;
	nic->looked_at = RULES_NONE;
	if (nic_allocate(nic, rules->n_slots) < 0) {
		rules_nic_end(rules);
		return -ENOMEM;
	}
	nic->waiting = 2 * rules->n_slots;
	nic->arrived = nic->waiting + 1;
	nic->guards = nic->waiting + 2;
	ring_init(nic, nic->waiting);
	ring_init(nic, nic->arrived);
	ring_init(nic, nic->guards);
	return 0;
}

void rules_nic_end(struct rules *rules)
{
	if (rules->nic == NULL)
		return;
	free(rules->nic->slots);
	free(rules->nic->links);
	free(rules->nic->left);
	free(rules->nic->fits);
	free(rules->nic);
	rules->nic = NULL;
}

/* What a rule says by itself. */

static bool is_in_force(const struct rules *rules, uint32_t slot)
{
	return rules->own[slot].text != NULL && rules->own[slot].full != CLASSIFIER_NONE;
}

static bool drops(const struct rules *rules, uint32_t slot)
{
	return rules->slots[slot].verdict == FLOW_VERDICT_DROP && !rules->slots[slot].logs &&
	       !rules->own[slot].hands_on;
}

/* Why a rule with this verdict is none that only drops. */
static enum rule_nic reason_of_actions(uint16_t verdict, bool logs)
{
	if (flow_verdict_rejects(verdict))
		return RULE_NIC_REJECTS;
	return logs ? RULE_NIC_LOGS : RULE_NIC_ACTIONS;
}

static enum rule_nic look_at(const struct rules *rules, uint32_t slot)
{
	struct classifier_rule rule;
	struct rule_nic_items items;

	if (!is_in_force(rules, slot) || !drops(rules, slot))
		return reason_of_actions(rules->slots[slot].verdict, rules->slots[slot].logs);
	if (rules->own[slot].group != 0)
		return RULE_NIC_GROUP;
	if (rules->own[slot].made->uses != NULL)
		return RULE_NIC_SHARED;
	classifier_get(rules->full, rules->own[slot].full, &rule);
	return rule_nic_pattern(&rule, &items);
}

/* Is it one that NICs must not come before? Replies that follow a rule do so whatever else matches them. */
static bool is_guard(const struct rules *rules, uint32_t slot)
{
	return is_in_force(rules, slot) && !drops(rules, slot) &&
	       (rules->own[slot].group == 0 || rules->slots[slot].follows);
}

/* Pairs. */

static bool comes_before(const struct rules_own *one, const struct rules_own *other)
{
	return one->priority != other->priority ? one->priority < other->priority
						: one->rank < other->rank;
}

/* Why a guard keeps a rule that drops from NICs; RULE_NIC_FITS: it does not. */
static enum rule_nic kept_by(const struct rules *rules, uint32_t guard, const struct rules_own *own,
	const struct classifier_rule *rule)
{
	const struct rules_own *before = &rules->own[guard];
	struct classifier_rule other, replies;

	if (!rules->slots[guard].follows && !comes_before(before, own))
		return RULE_NIC_FITS;
	classifier_get(rules->full, before->full, &other);
	if (before->group == 0 && comes_before(before, own) && rule_nic_overlap(&other, rule))
		return RULE_NIC_BEHIND;
	if (!rules->slots[guard].follows)
		return RULE_NIC_FITS;
	rule_replies_to(&other, &replies);
	return rule_nic_overlap(&replies, rule) ? RULE_NIC_REPLIES : RULE_NIC_FITS;
}

static void stop_fitting(struct rules *rules, uint32_t slot)
{
	struct rules_nic *nic = rules->nic;
	struct nic_slot *own = &nic->slots[slot];
	const uint32_t other = nic->fits[--nic->n_fits];

	nic->fits[own->at] = other;
	nic->slots[other].at = own->at;
	if (own->placed)
		nic->left[nic->n_left++] = rules->own[slot].place;
	own->placed = false;
	own->kind = KIND_CANDIDATE;
	ring_cut(nic, slot);
}

static void put_behind(struct rules *rules, uint32_t slot, uint32_t guard, enum rule_nic why)
{
	struct nic_slot *own = &rules->nic->slots[slot];

	own->behind = guard;
	own->behind_age = rules->own[guard].age;
	own->why = (uint8_t)why;
	ring_cut(rules->nic, slot);
	ring_add(rules->nic, ring_behind(rules, guard), slot);
}

/* A new guard: what fits, comes after it and shares packets with it does not fit any more. */
static void strike_out(struct rules *rules, uint32_t guard)
{
	struct rules_nic *nic = rules->nic;
	const struct rules_own *own = &rules->own[guard];
	struct classifier_rule other;
	enum rule_nic why;
	uint32_t i = 0;

	if (nic->n_fits == 0 ||
		(!rules->slots[guard].follows &&
			(own->priority > nic->highest ||
				(own->priority == nic->highest && own->rank > nic->newest))))
		return;
	while (i < nic->n_fits) {
		const uint32_t slot = nic->fits[i];
		const struct rules_own *candidate = &rules->own[slot];

		nic->compared++;
		classifier_get(rules->full, candidate->full, &other);
		why = kept_by(rules, guard, candidate, &other);
		if (why == RULE_NIC_FITS) {
			i++;
			continue;
		}
		stop_fitting(rules, slot);
		put_behind(rules, slot, guard, why);
	}
}

static void take_in(struct rules *rules, uint32_t slot)
{
	struct rules_nic *nic = rules->nic;
	struct nic_slot *own = &nic->slots[slot];

	*own = (struct nic_slot){.behind = RULES_NONE, .kind = KIND_NEITHER};
	ring_init(nic, slot);
	own->why = (uint8_t)look_at(rules, slot);
	if (own->why == RULE_NIC_FITS) {
		own->kind = KIND_CANDIDATE;
		ring_add(nic, nic->waiting, slot);
	} else if (is_guard(rules, slot)) {
		own->kind = KIND_GUARD;
		ring_init(nic, ring_behind(rules, slot));
		ring_add(nic, nic->guards, slot);
		strike_out(rules, slot);
	}
}

static void begin_next(struct rules *rules)
{
	const uint32_t slot = rules->nic->begun++;

	if (rules->own[slot].text != NULL)
		take_in(rules, slot);
}

void rules_nic_added(struct rules *rules, uint32_t slot)
{
	struct rules_nic *nic = rules->nic;

	if (nic == NULL)
		return;
	if (slot < nic->begun)
		take_in(rules, slot);
	/* where nothing fits it is left to rules_nic_step() */
	while (nic->n_fits > 0 && nic->begun <= slot)
		begin_next(rules);
}

void rules_nic_removed(struct rules *rules, uint32_t slot)
{
	struct rules_nic *nic = rules->nic;

	if (nic == NULL || nic->slots[slot].kind == KIND_NONE)
		return;
	struct nic_slot *own = &nic->slots[slot];

	if (nic->looked_at == slot)
		nic->looked_at = RULES_NONE;
	if (own->kind == KIND_GUARD) {
		if (nic->guard == slot)
			nic->guard = nic->links[slot].next;
		/* they find out that nothing is before them when they are asked */
		ring_move(nic, nic->waiting, ring_behind(rules, slot));
	} else if (own->kind == KIND_FITS) {
		stop_fitting(rules, slot);
	}
	ring_cut(nic, slot);
	own->kind = KIND_NONE;
}

static void fit(struct rules *rules, uint32_t slot)
{
	struct rules_nic *nic = rules->nic;
	const struct rules_own *own = &rules->own[slot];

	if (nic->n_fits == 0) {
		nic->highest = 0;
		nic->newest = 0;
	}
	nic->highest = RTE_MAX(nic->highest, own->priority);
	nic->newest = RTE_MAX(nic->newest, own->rank);
	nic->slots[slot].kind = KIND_FITS;
	nic->slots[slot].why = RULE_NIC_FITS;
	nic->slots[slot].behind = RULES_NONE;
	nic->slots[slot].at = nic->n_fits;
	nic->fits[nic->n_fits++] = slot;
	ring_cut(nic, slot);
	/* one that leaves its old place still gets another when it has */
	if (own->place == RULES_NONE)
		ring_add(nic, nic->arrived, slot);
}

/* Compares the candidate with the next guards. Returns how many pairs are left. */
static uint32_t compare_on(struct rules *rules, uint32_t pairs)
{
	struct rules_nic *nic = rules->nic;
	const uint32_t slot = nic->looked_at;
	enum rule_nic why;

	for (; nic->guard != nic->guards && pairs > 0; pairs--) {
		const uint32_t guard = nic->guard;

		nic->guard = nic->links[guard].next;
		nic->compared++;
		why = kept_by(rules, guard, &rules->own[slot], &nic->rule);
		if (why == RULE_NIC_FITS)
			continue;
		put_behind(rules, slot, guard, why);
		nic->looked_at = RULES_NONE;
		return pairs - 1;
	}
	if (nic->guard == nic->guards) {
		fit(rules, slot);
		nic->looked_at = RULES_NONE;
	}
	return pairs;
}

/* Looks at the next slot, or goes on with a candidate. False: there is nothing to do. */
static bool step_once(struct rules *rules, uint32_t *pairs)
{
	struct rules_nic *nic = rules->nic;

	if (nic->begun < rules->n_begun) {
		begin_next(rules);
		--*pairs;
		return true;
	}
	if (nic->n_fits == nic->max || ring_is_empty(nic, nic->waiting))
		return false;
	if (nic->looked_at == RULES_NONE) {
		nic->looked_at = nic->links[nic->waiting].next;
		nic->guard = nic->links[nic->guards].next;
		classifier_get(rules->full, rules->own[nic->looked_at].full, &nic->rule);
		--*pairs;
	}
	*pairs = compare_on(rules, *pairs);
	return true;
}

bool rules_nic_step(struct rules *rules, uint32_t pairs)
{
	while (pairs > 0)
		if (!step_once(rules, &pairs))
			return false;
	return true;
}

/* For the caller. */

bool rules_nic_next(struct rules *rules, struct rules_nic_rule *rule)
{
	struct rules_nic *nic = rules->nic;
	const uint32_t slot = nic->links[nic->arrived].next;

	if (slot == nic->arrived)
		return false;
	ring_cut(nic, slot);
	nic->slots[slot].placed = true;
	*rule = (struct rules_nic_rule){.slot = slot, .age = rules->own[slot].age};
	rules_nic_get(rules, slot, &rule->rule);
	return true;
}

bool rules_nic_left(struct rules *rules, uint32_t *place)
{
	if (rules->nic->n_left == 0)
		return false;
	*place = rules->nic->left[--rules->nic->n_left];
	return true;
}

void rules_nic_get(const struct rules *rules, uint32_t slot, struct classifier_rule *rule)
{
	classifier_get(rules->full, rules->own[slot].full, rule);
}

uint64_t rules_nic_compared(const struct rules *rules)
{
	return rules->nic == NULL ? 0 : rules->nic->compared;
}

enum rule_nic rules_nic_look(const struct rules *rules, uint32_t slot, uint32_t *behind)
{
	const struct rules_nic *nic = rules->nic;

	*behind = RULES_NONE;
	if (nic == NULL)
		return look_at(rules, slot);
	const struct nic_slot *own = &nic->slots[slot];

	if (own->kind == KIND_NONE)
		return RULE_NIC_PENDING;
	if (own->kind != KIND_CANDIDATE)
		return (enum rule_nic)own->why;
	if (own->behind != RULES_NONE && rules->own[own->behind].text != NULL &&
		rules->own[own->behind].age == own->behind_age) {
		*behind = own->behind;
		return (enum rule_nic)own->why;
	}
	return nic->n_fits == nic->max ? RULE_NIC_MANY : RULE_NIC_PENDING;
}

/* Rules that are looked at in place of one that is compared field by field. */
#define VISITS_OF_PAIR 16

/* Looks for a guard that comes before a rule and shares packets with it. */
static enum rule_nic find_guard(const struct rules *rules, const struct rules_own *own,
	const struct classifier_rule *rule, uint32_t *visits, uint32_t *behind)
{
	enum rule_nic why;

	for (uint32_t slot = 0; slot < rules->n_begun; slot++) {
		if (*visits < 1 + VISITS_OF_PAIR)
			return RULE_NIC_PENDING;
		--*visits;
		if (!is_guard(rules, slot))
			continue;
		*visits -= VISITS_OF_PAIR;
		why = kept_by(rules, slot, own, rule);
		if (why != RULE_NIC_FITS) {
			*behind = slot;
			return why;
		}
	}
	return RULE_NIC_FITS;
}

enum rule_nic rules_nic_foresee(
	const struct rules *rules, uint32_t slot, uint32_t *visits, uint32_t *behind)
{
	const enum rule_nic why = look_at(rules, slot);
	struct classifier_rule rule;

	*behind = RULES_NONE;
	if (why != RULE_NIC_FITS)
		return why;
	classifier_get(rules->full, rules->own[slot].full, &rule);
	return find_guard(rules, &rules->own[slot], &rule, visits, behind);
}

enum rule_nic rules_nic_foresee_made(const struct rules *rules, const struct rules_made *made,
	uint32_t *visits, uint32_t *behind)
{
	const struct rules_own own = {.priority = made->rule.priority, .rank = UINT64_MAX};
	struct rule_nic_items items;
	enum rule_nic why;

	*behind = RULES_NONE;
	if (made->verdict != FLOW_VERDICT_DROP || made->logs || made->passes ||
		made->rule.jump != 0)
		return reason_of_actions(made->verdict, made->logs);
	if (made->rule.group != 0)
		return RULE_NIC_GROUP;
	if (made->uses != NULL)
		return RULE_NIC_SHARED;
	why = rule_nic_pattern(&made->rule, &items);
	return why == RULE_NIC_FITS ? find_guard(rules, &own, &made->rule, visits, behind) : why;
}

void rules_nic_set(struct rules *rules, uint32_t slot, uint32_t place)
{
	struct rules_nic *nic = rules->nic;

	rules->own[slot].place = place;
	if (place == RULES_NONE && nic != NULL && nic->slots[slot].kind == KIND_FITS &&
		!nic->slots[slot].placed && ring_is_empty(nic, slot))
		ring_add(nic, nic->arrived, slot);
}

void rules_nic_add(struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes)
{
	struct rules_own *own = &rules->own[slot];

	if (packets > own->now_packets)
		own->seen_us = rules->now_us;
	own->nic_packets += packets;
	own->nic_bytes += bytes;
}

void rules_nic_tell(
	struct rules *rules, uint32_t slot, uint64_t packets, uint64_t bytes, bool counts)
{
	struct rules_own *own = &rules->own[slot];

	if (packets > own->now_packets)
		own->seen_us = rules->now_us;
	own->now_packets = packets;
	own->now_bytes = bytes;
	own->nic_uncounted = !counts;
}
