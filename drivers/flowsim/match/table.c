/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/table.h"

#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

/* What a walk over empty classes does at most for a new one. */
#define MAX_LOOKS 4

struct sim_table *sim_table_create(void (*end_index)(struct sim_index *index))
{
	struct sim_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->end_index = end_index;
	TAILQ_INIT(&table->empty);
	if (sim_links_init(&table->live) < 0 || sim_links_init(&table->groups) < 0 ||
		sim_links_init(&table->classes) < 0 || hash_secret_init(&table->secret) < 0) {
		sim_table_destroy(table);
		return NULL;
	}
	return table;
}

static struct sim_group *find_group(
	const struct sim_link *link, enum sim_domain domain, uint32_t number, size_t link_at)
{
	for (; link != NULL; link = link->next) {
		uintptr_t at = (uintptr_t)link - link_at;
		struct sim_group *group = (struct sim_group *)at;

		if (group->domain == domain && group->number == number)
			return group;
	}
	return NULL;
}

struct sim_group *sim_table_live_group(
	const struct sim_table *table, enum sim_domain domain, uint32_t number)
{
	uint64_t hash;

	if (number == 0)
		return table->first[domain];
	hash = sim_table_hash_group(table, domain, number);
	return find_group(sim_links_first(&table->live, hash), domain, number,
		offsetof(struct sim_group, live));
}

/* Made when it is not there. */
static struct sim_group *known_group(
	struct sim_table *table, enum sim_domain domain, uint32_t number)
{
	uint64_t hash = sim_table_hash_group(table, domain, number);
	struct sim_group *group = find_group(sim_links_first(&table->groups, hash), domain, number,
		offsetof(struct sim_group, known));

	if (group != NULL)
		return group;
	group = calloc(1, sizeof(*group));
	if (group == NULL)
		return NULL;
	group->domain = domain;
	group->number = number;
	group->known.hash = group->live.hash = hash;
	TAILQ_INIT(&group->classes);
	sim_links_add(&table->groups, &group->known);
	return group;
}

static void drop_group(struct sim_table *table, struct sim_group *group)
{
	if (group->n_classes > 0)
		return;
	sim_links_remove(&table->groups, &group->known);
	free(group);
}

static uint64_t hash_shape(const struct sim_table *table, enum sim_domain domain, uint32_t group,
	const struct sim_pattern *shape)
{
	const uint64_t *secret = table->secret.word;
	uint64_t hash = hash_fold(sim_table_hash_group(table, domain, group) ^ shape->layers,
		secret[2] ^ shape->n_ranges);

	for (unsigned i = 0; i < shape->n_words; i++)
		hash = hash_fold(hash ^ shape->mask[shape->words[i]], secret[3] ^ shape->words[i]);
	for (unsigned i = 0; i < shape->n_ranges; i++) {
		const struct sim_range *range = &shape->ranges[i];

		hash = hash_fold(hash ^ range->low, secret[4] ^ range->high);
		hash = hash_fold(hash ^ range->mask, secret[5] ^ range->at ^ range->size << 16);
	}
	return hash;
}

static bool same_shape(const struct sim_pattern *a, const struct sim_pattern *b)
{
	if (a->layers != b->layers || a->n_words != b->n_words || a->n_ranges != b->n_ranges ||
		memcmp(a->words, b->words, a->n_words) != 0)
		return false;
	for (unsigned i = 0; i < a->n_words; i++)
		if (a->mask[a->words[i]] != b->mask[a->words[i]])
			return false;
	for (unsigned i = 0; i < a->n_ranges; i++) {
		const struct sim_range *one = &a->ranges[i], *other = &b->ranges[i];

		if (one->at != other->at || one->size != other->size || one->mask != other->mask ||
			one->low != other->low || one->high != other->high)
			return false;
	}
	return true;
}

static struct sim_class *find_class(const struct sim_table *table, uint64_t hash,
	enum sim_domain domain, uint32_t group, const struct sim_pattern *shape)
{
	for (struct sim_link *link = sim_links_first(&table->classes, hash); link != NULL;
		link = link->next) {
		struct sim_class *sort = container_of(link, struct sim_class, known);

		if (link->hash == hash && sort->group->domain == domain &&
			sort->group->number == group && same_shape(&sort->shape, shape))
			return sort;
	}
	return NULL;
}

static void destroy_class(const struct sim_table *table, struct sim_class *sort)
{
	if (sort->index != NULL)
		table->end_index(sort->index);
	sim_values_fini(&sort->values);
	free(sort);
}

/* One that nobody needs makes room, if one is found soon. */
static void drop_empty(struct sim_table *table)
{
	for (unsigned i = 0; table->n_empty >= SIM_MAX_IDLE_CLASSES && i < MAX_LOOKS; i++) {
		struct sim_class *sort = TAILQ_FIRST(&table->empty);

		TAILQ_REMOVE(&table->empty, sort, link);
		if (sort->pins > 0) {
			TAILQ_INSERT_TAIL(&table->empty, sort, link);
			continue;
		}
		table->n_empty--;
		sim_links_remove(&table->classes, &sort->known);
		sort->group->n_classes--;
		drop_group(table, sort->group);
		destroy_class(table, sort);
	}
}

static struct sim_class *create_class(
	struct sim_table *table, struct sim_group *group, const struct sim_pattern *pattern)
{
	struct sim_class *sort = calloc(1, sizeof(*sort));

	if (sort == NULL)
		return NULL;
	if (sim_values_init(&sort->values) < 0) {
		free(sort);
		return NULL;
	}
	sort->shape = *pattern;
	memset(sort->shape.value, 0, sizeof(sort->shape.value));
	for (unsigned i = 0; i < pattern->n_words; i++)
		sort->masks[i] = pattern->mask[pattern->words[i]];
	sort->group = group;
	group->n_classes++;
	TAILQ_INSERT_TAIL(&table->empty, sort, link);
	table->n_empty++;
	return sort;
}

struct sim_class *sim_table_class(struct sim_table *table, enum sim_domain domain, uint32_t group,
	const struct sim_pattern *pattern)
{
	uint64_t hash = hash_shape(table, domain, group, pattern);
	struct sim_class *sort = find_class(table, hash, domain, group, pattern);
	struct sim_group *home;

	if (sort != NULL)
		return sort;
	drop_empty(table);
	home = known_group(table, domain, group);
	if (home == NULL)
		return NULL;
	sort = create_class(table, home, pattern);
	if (sort == NULL) {
		drop_group(table, home);
		return NULL;
	}
	sort->known.hash = hash;
	sim_links_add(&table->classes, &sort->known);
	return sort;
}

void sim_table_destroy(struct sim_table *table)
{
	if (table == NULL)
		return;
	for (uint32_t i = 0; i < table->classes.n_heads && table->classes.heads != NULL; i++)
		while (table->classes.heads[i] != NULL) {
			struct sim_link *link = table->classes.heads[i];
			struct sim_class *sort = container_of(link, struct sim_class, known);

			table->classes.heads[i] = link->next;
			sort->group->n_classes--;
			drop_group(table, sort->group);
			destroy_class(table, sort);
		}
	sim_links_fini(&table->live);
	sim_links_fini(&table->groups);
	sim_links_fini(&table->classes);
	free(table);
}

/* Its place among the group's classes, by the best rule that it may have. */
static void rank_class(struct sim_class *sort)
{
	struct sim_classes *classes = &sort->group->classes;
	struct sim_class *before = TAILQ_LAST(classes, sim_classes);

	while (before != NULL && sim_goes_before(sort->best_priority, sort->best_serial,
					 before->best_priority, before->best_serial))
		before = TAILQ_PREV(before, sim_classes, link);
	if (before != NULL)
		TAILQ_INSERT_AFTER(classes, before, sort, link);
	else
		TAILQ_INSERT_HEAD(classes, sort, link);
}

/* A rule is put in: its class, and its group, may have been without. */
static void note_best(struct sim_table *table, struct sim_class *sort, const struct rte_flow *rule)
{
	struct sim_group *group = sort->group;

	if (sort->n_rules > 0) {
		if (!sim_goes_before(
			    rule->priority, rule->serial, sort->best_priority, sort->best_serial))
			return;
		TAILQ_REMOVE(&group->classes, sort, link);
	} else {
		TAILQ_REMOVE(&table->empty, sort, link);
		table->n_empty--;
		if (TAILQ_EMPTY(&group->classes)) {
			sim_links_add(&table->live, &group->live);
			if (group->number == 0)
				table->first[group->domain] = group;
		}
	}
	sort->best_priority = rule->priority;
	sort->best_serial = rule->serial;
	rank_class(sort);
}

static void note_none(struct sim_table *table, struct sim_class *sort)
{
	struct sim_group *group = sort->group;

	sim_values_shrink(&sort->values);

	TAILQ_REMOVE(&group->classes, sort, link);
	if (TAILQ_EMPTY(&group->classes)) {
		sim_links_remove(&table->live, &group->live);
		if (group->number == 0)
			table->first[group->domain] = NULL;
	}
	TAILQ_INSERT_TAIL(&table->empty, sort, link);
	table->n_empty++;
}

static uint64_t hash_rule(const struct sim_table *table, const struct rte_flow *rule)
{
	return sim_table_hash(table, rule->values, rule->sort->shape.n_words);
}

void sim_table_prefetch(
	const struct sim_table *table, const struct sim_class *sort, const uint64_t values[])
{
	uint64_t hash = sim_table_hash(table, values, sort->shape.n_words);

	rte_prefetch0(&sort->values.slots[(uint32_t)hash & (sort->values.n_slots - 1)]);
	if (sort->values.old != NULL)
		rte_prefetch0(&sort->values.old[(uint32_t)hash & (sort->values.n_old - 1)]);
}

void sim_table_insert(struct sim_table *table, struct rte_flow *rule)
{
	struct sim_class *sort = rule->sort;
	unsigned n_words = sort->shape.n_words;

	rule->better = NULL;
	if (!sim_values_insert(&sort->values, hash_rule(table, rule), rule, n_words))
		return;
	note_best(table, sort, rule);
	sort->n_rules++;
	__atomic_fetch_add(&table->n_rules[sort->group->domain], 1, __ATOMIC_RELAXED);
}

void sim_table_remove(struct sim_table *table, struct rte_flow *rule)
{
	struct sim_class *sort = rule->sort;

	if (rule->better == NULL)
		return;
	sim_values_remove(&sort->values, hash_rule(table, rule), rule, sort->shape.n_words);
	rule->better = NULL;
	sort->n_rules--;
	if (sort->n_rules == 0)
		note_none(table, sort);
	__atomic_fetch_sub(&table->n_rules[sort->group->domain], 1, __ATOMIC_RELAXED);
}
