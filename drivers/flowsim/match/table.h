/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The live rules of a port's packets, found by tuple space search (V. Srinivasan, S. Suri, G. Varghese,
 * "Packet classification using tuple space search", 1999): the rules of a group with the same shape
 * (masks, layers, ranges) are a class with a hash table by value; a packet is looked up once in each
 * class, and the best rule wins. The classes of a group are looked through in the order of the best
 * rule that they may have, and the search stops where nothing better can follow. Rules of one class and
 * one value are a list, best first.
 *
 * sim_table_class() needs the port's lock. sim_table_insert() and sim_table_remove() need, while packets are matched in line, its rules lock for writing too.
 * sim_table_match() and sim_table_is_empty() need the rules lock for reading, or the port's lock.
 *
 * Insert and remove take the same time however many rules there are (values.h), but for rules of one
 * pattern with different priorities: such a list is walked from its end.
 */

#include "drivers/flowsim/match/links.h"
#include "drivers/flowsim/match/rule.h"
#include "drivers/flowsim/match/values.h"
#include "packet/hash.h"

#define SIM_MAX_CHAIN 8
#define SIM_MAX_IDLE_CLASSES 16

struct sim_group;
struct sim_index;

struct sim_class {
	struct sim_pattern shape; /* masks, layers, ranges; its values mean nothing */
	uint32_t n_rules;
	uint32_t pins; /* see sim_table_class() */
	struct sim_index
		*index; /* streams by this mask, where there are streams: packets/index.h */
	/* from here on: table.c's own */
	struct sim_group *group;
	struct sim_link known;	     /* of all classes, by domain, group and shape */
	TAILQ_ENTRY(sim_class) link; /* of its group's, or of those without rules */

	/* no rule in it is better than this: priority, then serial */
	uint32_t best_priority;
	uint64_t best_serial;
	uint64_t masks[SIM_VIEW_WORDS]; /* shape.mask, n_words of them */
	struct sim_values values;
};

/* From here to struct sim_verdict: of table.c, which changes it, and of table_match.c, which looks into it. */
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

/* Hashes n_words values of a class. */
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

/* What the rules make of a packet. */
struct sim_verdict {
	uint8_t n; /* rules taken, in order */
	struct rte_flow *chain[SIM_MAX_CHAIN];
	enum sim_fate fate;
	uint16_t queue, port;
	const struct sim_rss *rss;
	bool mark, flag;
	bool edits, meter, sample; /* of any rule in the chain: done one after the other */
	uint32_t mark_id;
};

/* Whether a view has the layers that the class asks for, none that it forbids, and lies in its ranges. */
bool sim_class_may_match(const struct sim_class *sort, const struct sim_view *view);

/* Whether the rule matches: the above, the values under the mask, and the port that it is for. */
bool sim_rule_match(const struct rte_flow *rule, const struct sim_view *view);

/* A class that ends takes its index with it: by `end_index`, which may be NULL where nobody makes any. */
struct sim_table *sim_table_create(void (*end_index)(struct sim_index *index));
void sim_table_destroy(struct sim_table *table); /* accepts NULL; empty by then */

/*
 * The class of a pattern in a group, made when it is the first of its kind; NULL without memory. It is
 * good until the next call of this, unless it has rules or `pins`: whoever else wants it to stay (a rule
 * of any state has its class until it is freed) counts these up and down. A class without both stays
 * while there are at most SIM_MAX_IDLE_CLASSES without rules, for its index.
 */
struct sim_class *sim_table_class(struct sim_table *table, enum sim_domain domain, uint32_t group,
	const struct sim_pattern *pattern);

/*
 * rule->sort, values, priority, serial and ingress are set, and stay as they are while it is in. A rule for
 * which there is no memory (when a table has to grow) is not put in, silently; remove takes that.
 */
void sim_table_insert(struct sim_table *table, struct rte_flow *rule);
/* Before either: what memory it will look at. */
void sim_table_prefetch(
	const struct sim_table *table, const struct sim_class *sort, const uint64_t values[]);
void sim_table_remove(struct sim_table *table, struct rte_flow *rule);

/*
 * The rules of `domain` (for received packets SIM_INGRESS, which looks into transfer rules first). The
 * view's port says where the packet arrived; rules for other ports do not match. The verdict is made
 * anew; what it points to is good as long as the lock is held.
 */
void sim_table_match(const struct sim_table *table, enum sim_domain domain,
	const struct sim_view *view, struct sim_verdict *verdict);

/* Whether a packet may meet any rule of that domain: a cheap look before parsing. */
bool sim_table_is_empty(const struct sim_table *table, enum sim_domain domain);
