/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_HEADS 64

int map_init(struct map *map)
{
	*map = (struct map){.n_heads = FIRST_HEADS};
	map->heads = calloc(map->n_heads, sizeof(struct map_node *));
	return map->heads == NULL ? -ENOMEM : 0;
}

void map_fini(struct map *map)
{
	free(map->heads);
	*map = (struct map){0};
}

uint64_t map_hash(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ n;

	for (; n > 0; at += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
		uint64_t word = 0;

		memcpy(&word, at, n < 8 ? n : 8);
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	hash *= UINT64_C(0xc4ceb9fe1a85ec53);
	return hash ^ hash >> 29;
}

static void grow(struct map *map)
{
	const uint32_t n = map->n_heads * 2;
	struct map_node **heads = calloc(n, sizeof(struct map_node *));

	if (heads == NULL)
		return;
	for (uint32_t i = 0; i < map->n_heads; i++) {
		struct map_node *next;

		for (struct map_node *node = map->heads[i]; node != NULL; node = next) {
			next = node->next;
			node->next = heads[node->hash & (n - 1)];
			heads[node->hash & (n - 1)] = node;
		}
	}
	free(map->heads);
	map->heads = heads;
	map->n_heads = n;
}

void map_insert(struct map *map, struct map_node *node, uint64_t hash)
{
	if (map->n >= map->n_heads && map->n_heads < UINT32_C(1) << 30)
		grow(map);
	node->hash = hash;
	node->next = map->heads[hash & (map->n_heads - 1)];
	map->heads[hash & (map->n_heads - 1)] = node;
	map->n++;
}

void map_remove(struct map *map, struct map_node *node)
{
	struct map_node **at = &map->heads[node->hash & (map->n_heads - 1)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	map->n--;
}

void map_walk(struct map *map, void (*each)(void *context, struct map_node *node), void *context)
{
	for (uint32_t i = 0; i < map->n_heads; i++) {
		struct map_node *next;

		for (struct map_node *node = map->heads[i]; node != NULL; node = next) {
			next = node->next;
			each(context, node);
		}
	}
}
