/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A class's rules by their values: a hash table with open addresses, whose slots have the hash beside the
 * rule, so that looking at a slot costs no look at the rule. A slot has the best rule of its values; the
 * others hang on it (rte_flow.worse). It grows by doubling, and while it does the old table is looked
 * into as well: slots move over a few at each insert, so that no insert takes long.
 *
 * init and fini as their class; locks as table.h says. Rules are not owned.
 */

#include <stdbool.h>

#include "drivers/flowsim/match/rule.h"

/* Empty: both 0. Has been emptied in an old table: no rule, and a hash of 1. */
struct sim_slot {
	uint64_t hash;
	struct rte_flow *rule;
};

struct sim_values {
	struct sim_slot *slots;
	uint32_t n_slots; /* power of two */
	uint32_t n;	  /* different values */
	struct sim_slot *old;
	uint32_t n_old, moved;
};

/* Returns 0 or -ENOMEM. */
int sim_values_init(struct sim_values *values);
void sim_values_fini(struct sim_values *values);

/*
 * A rule of such values and hash comes and goes. `n_words` are the words of the class. False: there is no
 * memory, and no room is left.
 */
bool sim_values_insert(
	struct sim_values *values, uint64_t hash, struct rte_flow *rule, unsigned n_words);
void sim_values_remove(
	struct sim_values *values, uint64_t hash, struct rte_flow *rule, unsigned n_words);

/* It is empty: large memory is given back. */
void sim_values_shrink(struct sim_values *values);

static inline bool sim_values_equal(const uint64_t *a, const uint64_t *b, unsigned n)
{
	uint64_t different = 0;

	for (unsigned i = 0; i < n; i++)
		different |= a[i] ^ b[i];
	return different == 0;
}

static inline struct sim_slot *sim_slots_find(
	struct sim_slot *slots, uint32_t n_slots, uint64_t hash, const uint64_t *wanted, unsigned n)
{
	for (uint32_t i = (uint32_t)hash;; i++) {
		struct sim_slot *slot = &slots[i & (n_slots - 1)];

		if (slot->rule == NULL && slot->hash == 0)
			return NULL;
		if (slot->rule != NULL && slot->hash == hash &&
			sim_values_equal(slot->rule->values, wanted, n))
			return slot;
	}
}

/* NULL: there is none. */
static inline struct sim_slot *sim_values_find(
	const struct sim_values *values, uint64_t hash, const uint64_t *wanted, unsigned n_words)
{
	struct sim_slot *slot =
		sim_slots_find(values->slots, values->n_slots, hash, wanted, n_words);

	if (slot == NULL && values->old != NULL)
		slot = sim_slots_find(values->old, values->n_old, hash, wanted, n_words);
	return slot;
}

/* Whether a rule of the first priority and serial is taken before one of the second. */
static inline bool sim_goes_before(
	uint32_t priority, uint64_t serial, uint32_t priority2, uint64_t serial2)
{
	return priority != priority2 ? priority < priority2 : serial < serial2;
}
