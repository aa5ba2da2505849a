/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/values.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping.h"

#define FIRST_SLOTS 8
#define MAX_SLOTS (1u << 30)
#define MAPPED_SLOTS (1u << 17) /* from here on by 2 MB pages */
#define KEPT_SLOTS (1u << 12)	/* when it is empty */
#define MOVED_AT_ONCE 8
#define GONE 1

static struct sim_slot *slots_create(uint32_t n)
{
	if (n >= MAPPED_SLOTS)
		return mapping_create(n * sizeof(struct sim_slot), MAPPING_HUGE);
	return calloc(n, sizeof(struct sim_slot));
}

static void slots_destroy(struct sim_slot *slots, uint32_t n)
{
	if (n >= MAPPED_SLOTS)
		mapping_destroy(slots, n * sizeof(struct sim_slot));
	else
		free(slots);
}

int sim_values_init(struct sim_values *values)
{
	*values = (struct sim_values){.slots = slots_create(FIRST_SLOTS), .n_slots = FIRST_SLOTS};
	return values->slots != NULL ? 0 : -ENOMEM;
}

void sim_values_fini(struct sim_values *values)
{
	slots_destroy(values->old, values->n_old);
	slots_destroy(values->slots, values->n_slots);
}

void sim_values_shrink(struct sim_values *values)
{
	struct sim_values small;

	if (values->n_slots <= KEPT_SLOTS || sim_values_init(&small) < 0)
		return;
	sim_values_fini(values);
	*values = small;
}

/* Into the new table, where there is room. */
static void put(struct sim_values *values, uint64_t hash, struct rte_flow *rule)
{
	uint32_t i = (uint32_t)hash & (values->n_slots - 1);

	while (values->slots[i].rule != NULL)
		i = (i + 1) & (values->n_slots - 1);
	values->slots[i] = (struct sim_slot){.hash = hash, .rule = rule};
}

/* More than an insert adds, so that all have moved long before the new table is full. */
static void move_some(struct sim_values *values)
{
	for (unsigned i = 0; i < MOVED_AT_ONCE && values->moved < values->n_old; i++) {
		struct sim_slot *slot = &values->old[values->moved++];

		if (slot->rule == NULL)
			continue;
		put(values, slot->hash, slot->rule);
		*slot = (struct sim_slot){.hash = GONE};
	}
	if (values->moved < values->n_old)
		return;
	slots_destroy(values->old, values->n_old);
	values->old = NULL;
	values->n_old = 0;
}

/* At 5/8. Without memory it fills up further and gets slower; the last slot is never taken. */
static bool grow(struct sim_values *values)
{
	struct sim_slot *slots;

	if (values->n < values->n_slots / 8 * 5)
		return true;
	if (values->old != NULL || values->n_slots >= MAX_SLOTS)
		return values->n + 1 < values->n_slots;
	slots = slots_create(values->n_slots * 2);
	if (slots == NULL)
		return values->n + 1 < values->n_slots;
	values->old = values->slots;
	values->n_old = values->n_slots;
	values->moved = 0;
	values->slots = slots;
	values->n_slots *= 2;
	return true;
}

static bool goes_before(const struct rte_flow *rule, const struct rte_flow *other)
{
	return sim_goes_before(rule->priority, rule->serial, other->priority, other->serial);
}

/* Into the list of rules of the same values. */
static void insert_among(struct sim_slot *slot, struct rte_flow *rule)
{
	struct rte_flow *best = slot->rule;
	struct rte_flow *better = best->better; /* the worst of all, most likely the one before */

	if (goes_before(rule, best)) {
		rule->better = best->better;
		rule->worse = best;
		best->better = rule;
		slot->rule = rule;
		return;
	}
	while (goes_before(rule, better))
		better = better->better;
	rule->better = better;
	rule->worse = better->worse;
	if (rule->worse != NULL)
		rule->worse->better = rule;
	else
		best->better = rule;
	better->worse = rule;
}

bool sim_values_insert(
	struct sim_values *values, uint64_t hash, struct rte_flow *rule, unsigned n_words)
{
	struct sim_slot *slot;

	if (values->old != NULL)
		move_some(values);
	slot = sim_values_find(values, hash, rule->values, n_words);
	if (slot != NULL) {
		insert_among(slot, rule);
		return true;
	}
	if (!grow(values))
		return false;
	rule->worse = NULL;
	rule->better = rule;
	put(values, hash, rule);
	values->n++;
	return true;
}

/* What stands behind it moves up, where that does not take it before its own place. */
static void empty(struct sim_values *values, struct sim_slot *slot)
{
	uint32_t mask = values->n_slots - 1;
	uint32_t hole = (uint32_t)(slot - values->slots);

	for (uint32_t i = (hole + 1) & mask; values->slots[i].rule != NULL; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)values->slots[i].hash & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		values->slots[hole] = values->slots[i];
		hole = i;
	}
	values->slots[hole] = (struct sim_slot){0};
}

void sim_values_remove(
	struct sim_values *values, uint64_t hash, struct rte_flow *rule, unsigned n_words)
{
	struct sim_slot *slot = sim_values_find(values, hash, rule->values, n_words);
	struct rte_flow *best = slot->rule;

	if (best != rule) {
		rule->better->worse = rule->worse;
		if (rule->worse != NULL)
			rule->worse->better = rule->better;
		else
			best->better = rule->better;
	} else if (rule->worse != NULL) {
		rule->worse->better = rule->better;
		slot->rule = rule->worse;
	} else {
		values->n--;
		if (values->old != NULL && slot >= values->old &&
			slot < values->old + values->n_old)
			*slot = (struct sim_slot){.hash = GONE};
		else
			empty(values, slot);
	}
}
