/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/sets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int sets_init(struct sets *sets, struct hops *hops, struct routes *routes, uint32_t n_groups)
{
	*sets = (struct sets){.hops = hops, .routes = routes, .n_groups = n_groups};
	sets->free = calloc(n_groups, sizeof(sets->free[0]));
	sets->free_since = calloc(n_groups, sizeof(sets->free_since[0]));
	if (sets->free == NULL || sets->free_since == NULL || map_init(&sets->sets) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_groups; i++)
		sets->free[i] = i;
	sets->n_free = n_groups;
	return 0;
}

static void free_set(void *context, struct map_node *node)
{
	(void)context;
	free(MAP_ENTRY(node, struct hop_set, node));
}

void sets_fini(struct sets *sets)
{
	if (sets->sets.heads != NULL)
		map_walk(&sets->sets, free_set, NULL);
	map_fini(&sets->sets);
	free(sets->free);
	free(sets->free_since);
	*sets = (struct sets){0};
}

/* ------------------------------------------------------------------ groups */

static uint32_t take_group(struct sets *sets)
{
	const struct hops_config *config = &sets->hops->config;
	const uint64_t since = sets->free_since[sets->first_free];
	uint32_t group;

	if (sets->n_free == 0 || (since != 0 && config->settled(config->context) < since))
		return SETS_NO_GROUP;
	group = sets->free[sets->first_free];
	sets->first_free = (sets->first_free + 1) % sets->n_groups;
	sets->n_free--;
	return group;
}

static void give_group(struct sets *sets, uint32_t group)
{
	const struct hops_config *config = &sets->hops->config;
	const uint32_t at = (sets->first_free + sets->n_free) % sets->n_groups;

	sets->free[at] = group;
	sets->free_since[at] = config->now(config->context) + 1;
	sets->n_free++;
}

/* The smallest draw wins: exponentially distributed, with the weight as its rate. */
static double draw(const struct kernel_hop *hop, unsigned bucket)
{
	uint8_t bytes[32] = {0};

	memcpy(bytes, &hop->ifindex, sizeof(hop->ifindex));
	bytes[4] = hop->version;
	memcpy(bytes + 8, hop->gateway, sizeof(hop->gateway));
	memcpy(bytes + 24, &bucket, sizeof(bucket));
	const uint64_t hash = map_hash(bytes, sizeof(bytes));

	return -log(((double)(hash >> 11) + 0.5) / (double)(UINT64_C(1) << 53)) /
	       (hop->weight == 0 ? 1 : hop->weight);
}

struct member {
	const struct kernel_hop *hop;
	uint16_t verdict;
};

static void deal(struct route_group *group, const struct member *members, unsigned n)
{
	for (unsigned bucket = 0; bucket < ROUTE_BUCKETS; bucket++) {
		unsigned best = 0;
		double least = INFINITY;

		for (unsigned i = 0; i < n; i++) {
			const double drawn = draw(members[i].hop, bucket);

			if (drawn < least) {
				least = drawn;
				best = i;
			}
		}
		atomic_store_explicit(
			&group->bucket[bucket], members[best].verdict, memory_order_relaxed);
	}
}

/* ------------------------------------------------------------------ sets */

/* The next hop of a member, as a verdict; `group` as in hops_get(). False: there is no room for it. */
static bool member_verdict(struct sets *sets, struct hop_set *set, const struct kernel_hop *hop,
	const void *group, uint16_t *verdict)
{
	const struct routes_verdicts *verdicts = sets->routes->verdicts;
	struct hop_at at = {.ifindex = hop->ifindex, .version = hop->version};
	struct hop *taken;

	*verdict = verdicts->punt[PUNT_NO_ROUTE];
	if (hops_link(sets->hops, hop->ifindex) == NULL)
		return true;
	*verdict = verdicts->punt[PUNT_NO_NEIGHBOUR];
	if (hop->version == 0)
		return true;
	memcpy(at.address, hop->gateway, sizeof(at.address));
	taken = hops_get(sets->hops, &at, group);
	if (taken == NULL)
		return false;
	set->taken[set->n_taken++] = taken;
	*verdict = (uint16_t)(verdicts->first_hop + taken->number);
	return true;
}

static void give_back(struct sets *sets, struct hop *const *taken, unsigned n, uint32_t group)
{
	for (unsigned i = 0; i < n; i++)
		hops_put(sets->hops, taken[i]);
	if (group != SETS_NO_GROUP)
		give_group(sets, group);
}

/* Works out what the table holds for a set whose old next hops have been set aside. */
static void resolve_set(struct sets *sets, struct hop_set *set)
{
	const uint16_t kernel = sets->routes->verdicts->punt[PUNT_NO_ROUTE];
	struct member members[KERNEL_HOPS];
	unsigned n = 0;
	bool room = true;

	sets->n_starved -= set->starved;
	set->starved = false;
	set->n_taken = 0;
	set->group = SETS_NO_GROUP;
	for (unsigned i = 0; i < set->n; i++)
		if (!set->hops[i].dead)
			members[n++].hop = &set->hops[i];
	for (unsigned i = 0; room && i < n; i++)
		room = member_verdict(
			sets, set, members[i].hop, n > 1 ? set : NULL, &members[i].verdict);
	if (room && n > 1) {
		set->group = take_group(sets);
		room = set->group != SETS_NO_GROUP;
	}
	if (!room) {
		set->starved = true;
		sets->n_starved++;
		sets->full++;
		give_back(sets, set->taken, set->n_taken, SETS_NO_GROUP);
		set->n_taken = 0;
	}
	if (!room || n == 0) {
		set->value = kernel;
		return;
	}
	if (n == 1) {
		set->value = members[0].verdict;
		return;
	}
	hops_join(set->taken, set->n_taken);
	deal(&sets->routes->groups[set->group], members, n);
	set->value = ROUTES_FIRST_GROUP + set->group;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct kernel_hop));
}

/* The same hops in an order of their own, with no byte left to chance. */
static void put_in_order(struct kernel_hop *to, const struct kernel_hop *from, unsigned n)
{
	memset(to, 0, n * sizeof(*to));
	for (unsigned i = 0; i < n; i++) {
		to[i].ifindex = from[i].ifindex;
		to[i].version = from[i].version;
		if (from[i].version != 0)
			memcpy(to[i].gateway, from[i].gateway, from[i].version == 4 ? 4 : 16);
		to[i].weight = from[i].weight;
		to[i].dead = from[i].dead;
	}
	qsort(to, n, sizeof(*to), compare);
}

struct hop_set *sets_get(struct sets *sets, const struct kernel_hop *hops, unsigned n)
{
	struct kernel_hop ordered[KERNEL_HOPS];
	struct hop_set *set;
	uint64_t hash;

	n = n < KERNEL_HOPS ? n : KERNEL_HOPS;
	put_in_order(ordered, hops, n);
	hash = map_hash(ordered, n * sizeof(ordered[0]));
	for (struct map_node *node = map_chain(&sets->sets, hash); node != NULL;
		node = node->next) {
		set = MAP_ENTRY(node, struct hop_set, node);
		if (node->hash != hash || set->n != n ||
			memcmp(set->hops, ordered, n * sizeof(ordered[0])) != 0)
			continue;
		set->references++;
		return set;
	}
	set = calloc(1, sizeof(*set) + n * sizeof(ordered[0]));
	if (set == NULL)
		return NULL;
	set->references = 1;
	set->n = n;
	memcpy(set->hops, ordered, n * sizeof(ordered[0]));
	map_insert(&sets->sets, &set->node, hash);
	resolve_set(sets, set);
	return set;
}

void sets_put(struct sets *sets, struct hop_set *set)
{
	if (--set->references > 0)
		return;
	sets->n_starved -= set->starved;
	give_back(sets, set->taken, set->n_taken, set->group);
	map_remove(&sets->sets, &set->node);
	free(set);
}

struct of_link {
	struct sets *sets;
	uint32_t ifindex;
	bool changed;
};

/* True: its value has changed. */
static bool resolve_again(struct sets *sets, struct hop_set *set)
{
	struct hop *before[KERNEL_HOPS];
	const unsigned n = set->n_taken;
	const uint32_t value = set->value, group = set->group;

	/* the new ones first, so that those that stay keep their numbers */
	memcpy(before, set->taken, n * sizeof(before[0]));
	resolve_set(sets, set);
	give_back(sets, before, n, group);
	return set->value != value;
}

static void resolve_of_link(void *context, struct map_node *node)
{
	struct of_link *of = context;
	struct hop_set *set = MAP_ENTRY(node, struct hop_set, node);
	bool named = false;

	for (unsigned i = 0; i < set->n; i++)
		named |= set->hops[i].ifindex == of->ifindex;
	if (named)
		of->changed |= resolve_again(of->sets, set);
}

static void resolve_starved(void *context, struct map_node *node)
{
	struct of_link *of = context;
	struct hop_set *set = MAP_ENTRY(node, struct hop_set, node);

	if (set->starved)
		of->changed |= resolve_again(of->sets, set);
}

bool sets_retry(struct sets *sets)
{
	struct of_link of = {.sets = sets};

	map_walk(&sets->sets, resolve_starved, &of);
	return of.changed;
}

bool sets_link_changed(struct sets *sets, uint32_t ifindex)
{
	struct of_link of = {.sets = sets, .ifindex = ifindex};

	map_walk(&sets->sets, resolve_of_link, &of);
	return of.changed;
}
