/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/rib.h"

#include <stdlib.h>
#include <string.h>

#include "route/fib.h"

/* The kernel's numbers of its tables. */
#define TABLE_DEFAULT 253
#define TABLE_LOCAL 255

int rib_init(struct rib *rib)
{
	*rib = (struct rib){0};
	return map_init(&rib->prefixes);
}

static void free_prefix(void *context, struct map_node *node)
{
	struct rib_prefix *prefix = MAP_ENTRY(node, struct rib_prefix, node);
	struct rib_route *next;

	(void)context;
	for (struct rib_route *route = prefix->best; route != NULL; route = next) {
		next = route->next;
		free(route);
	}
	free(prefix);
}

void rib_fini(struct rib *rib)
{
	if (rib->prefixes.heads != NULL)
		map_walk(&rib->prefixes, free_prefix, NULL);
	map_fini(&rib->prefixes);
	*rib = (struct rib){0};
}

static uint64_t prefix_hash(const struct route_prefix *prefix)
{
	return map_hash(prefix, sizeof(*prefix));
}

struct rib_prefix *rib_find(const struct rib *rib, const struct route_prefix *prefix)
{
	const uint64_t hash = prefix_hash(prefix);

	for (struct map_node *node = map_chain(&rib->prefixes, hash); node != NULL;
		node = node->next) {
		struct rib_prefix *found = MAP_ENTRY(node, struct rib_prefix, node);

		if (node->hash == hash && memcmp(&found->prefix, prefix, sizeof(*prefix)) == 0)
			return found;
	}
	return NULL;
}

struct rib_prefix *rib_prefix(struct rib *rib, const struct route_prefix *prefix)
{
	struct rib_prefix *found = rib_find(rib, prefix);

	if (found != NULL)
		return found;
	found = calloc(1, sizeof(*found));
	if (found == NULL)
		return NULL;
	found->prefix = *prefix;
	found->value = FIB_NO_ROUTE;
	map_insert(&rib->prefixes, &found->node, prefix_hash(prefix));
	return found;
}

void rib_tidy(struct rib *rib, struct rib_prefix *prefix)
{
	if (prefix->best != NULL)
		return;
	map_remove(&rib->prefixes, &prefix->node);
	free(prefix);
}

struct rib_route *rib_route(
	const struct rib_prefix *prefix, enum rib_source source, uint32_t table, uint32_t metric)
{
	for (struct rib_route *route = prefix->best; route != NULL; route = route->next)
		if (route->source == source && route->table == table && route->metric == metric)
			return route;
	return NULL;
}

static uint8_t rank_of(const struct rib_route *route)
{
	if (route->source == RIB_NEIGHBOUR)
		return 4;
	if (route->source == RIB_ADDRESS)
		return 0;
	if (route->table == TABLE_LOCAL)
		return 1;
	return route->table == TABLE_DEFAULT ? 3 : 2;
}

static bool is_better(const struct rib_route *a, const struct rib_route *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->metric < b->metric;
}

static uint32_t *count_of(struct rib *rib, const struct rib_prefix *prefix)
{
	return &rib->n_length[prefix->prefix.version == 6][prefix->prefix.length];
}

void rib_add(struct rib *rib, struct rib_prefix *prefix, struct rib_route *route)
{
	struct rib_route **at = &prefix->best;
	const bool had = rib_best(prefix) != NULL;

	route->rank = rank_of(route);
	while (*at != NULL && !is_better(route, *at))
		at = &(*at)->next;
	route->next = *at;
	*at = route;
	rib->n_routes += route->source == RIB_KERNEL;
	*count_of(rib, prefix) += !had && rib_best(prefix) != NULL;
}

void rib_remove(struct rib *rib, struct rib_prefix *prefix, struct rib_route *route)
{
	struct rib_route **at = &prefix->best;

	while (*at != route)
		at = &(*at)->next;
	*at = route->next;
	rib->n_routes -= route->source == RIB_KERNEL;
	*count_of(rib, prefix) -= route->source != RIB_NEIGHBOUR && rib_best(prefix) == NULL;
	free(route);
}

struct rib_route *rib_best(const struct rib_prefix *prefix)
{
	return prefix->best != NULL && prefix->best->source != RIB_NEIGHBOUR ? prefix->best : NULL;
}

struct rib_prefix *rib_match(const struct rib *rib, unsigned version, const uint8_t address[16])
{
	struct route_prefix prefix = {.version = (uint8_t)version};
	const struct route_bits bits = route_bits_of(address, version);

	for (int length = version == 4 ? 32 : 128; length >= 0; length--) {
		struct rib_prefix *found;

		if (rib->n_length[version == 6][length] == 0)
			continue;
		memset(prefix.addr, 0, sizeof(prefix.addr));
		route_bits_to(route_bits_cut(bits, (unsigned)length), prefix.addr);
		prefix.length = (uint8_t)length;
		found = rib_find(rib, &prefix);
		if (found != NULL && rib_best(found) != NULL)
			return found;
	}
	return NULL;
}
