/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The live rules of a port's packets, found by tuple space search (V. Srinivasan, S. Suri, G. Varghese,
 * "Packet classification using tuple space search", 1999): the rules of a group with the same mask are a
 * class with a hash table by value; a packet is looked up once in each class, and the best rule wins.
 * Rules with ranges are in a class too, by the fields that have none, and compared one by one.
 *
 * Writers hold the port's lock and, while packets are matched in line, its rules lock for writing;
 * sim_table_match() needs the rules lock for reading, or the port's lock.
 */

#include "drivers/flowsim/rule.h"

#define SIM_MAX_CHAIN 8

struct sim_group;

struct sim_class {
	TAILQ_ENTRY(sim_class) link;
	struct sim_group *group;
	struct sim_pattern shape; /* masks, layers, ranges; its values mean nothing */
	uint32_t n_rules;
	uint32_t pins; /* of those who know it without a rule in it: it stays while there are any */
	uint32_t n_buckets;	   /* power of two */
	struct rte_flow **buckets; /* each list best first: priority, then serial */
	struct sim_index
		*index; /* streams by this mask, made by resolve.c where there are streams; the
				      class ends it by sim_index_destroy() (index.h) */
};

struct sim_table;

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

struct sim_table *sim_table_create(void);
void sim_table_destroy(struct sim_table *table); /* accepts NULL; empty by then */

/*
 * The class of a pattern in a group, made when it is the first of its kind; NULL without memory. A
 * class without rules is kept while the table has few (SIM_MAX_IDLE_CLASSES), for its index, and while
 * `pins`, which whoever wants it counts up and down, is not 0.
 */
struct sim_class *sim_table_class(struct sim_table *table, enum sim_domain domain, uint32_t group,
	const struct sim_pattern *pattern);

void sim_table_insert(struct sim_table *table, struct rte_flow *rule);
void sim_table_remove(struct sim_table *table, struct rte_flow *rule);

/* The rules of `domain` (for received packets SIM_INGRESS, which looks into transfer rules first). */
void sim_table_match(const struct sim_table *table, enum sim_domain domain,
	const struct sim_view *view, struct sim_verdict *verdict);

/* Whether a packet may meet any rule of that domain: a cheap look before parsing. */
bool sim_table_is_empty(const struct sim_table *table, enum sim_domain domain);
