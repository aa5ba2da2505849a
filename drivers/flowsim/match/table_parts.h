/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Inside of the table of rules (table.h): what those who change it and those who look into it share. */

#include <rte_common.h>

#include "drivers/flowsim/match/table.h"
#include "packet/hash.h"

TAILQ_HEAD(sim_classes, sim_class);

struct sim_group {
	enum sim_domain domain;
	uint32_t number;
	uint32_t n_classes;
	struct sim_classes classes; /* with rules; those that may have the best rule first */
	struct sim_link known;	    /* of all groups */
	struct sim_link live;	    /* of those with rules */
};

struct sim_table {
	struct hash_secret secret;
	void (*end_index)(struct sim_index *index);
	uint64_t n_rules[SIM_N_DOMAINS]; /* read without a lock by sim_table_is_empty() */
	/* only these are looked into by who matches: changed by insert and remove alone */
	struct sim_group *first[SIM_N_DOMAINS]; /* group 0, when it has rules */
	struct sim_links live;
	/* under the port's lock */
	struct sim_links groups;
	struct sim_links classes;
	struct sim_classes empty; /* without rules, the longest so first */
	uint32_t n_empty;
};

static inline uint64_t sim_table_hash_group(
	const struct sim_table *table, enum sim_domain domain, uint32_t group)
{
	return hash_fold(table->secret.word[0] ^ group, table->secret.word[1] ^ domain);
}

/* Of a class's values, n_words of them. */
static inline uint64_t sim_table_hash(
	const struct sim_table *table, const uint64_t *values, unsigned n)
{
	uint64_t hash = table->secret.word[2];
	unsigned i = 0;

	for (; i + 2 <= n; i += 2)
		hash = hash_fold(hash ^ values[i], values[i + 1] ^ table->secret.word[3]);
	if (i < n)
		hash = hash_fold(hash ^ values[i], table->secret.word[4]);
	return hash;
}

struct sim_group *sim_table_live_group(
	const struct sim_table *table, enum sim_domain domain, uint32_t number);
