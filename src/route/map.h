/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A hash table whose nodes lie in the things that it has: chains, which grow as things come. One thread's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map {
	struct map_node **heads;
	uint32_t n_heads; /* a power of two */
	uint32_t n;
};

/* The thing that a node lies in. */
#define MAP_ENTRY(node, type, member) ((type *)((char *)(node) - offsetof(type, member)))

/* Returns 0 or -ENOMEM. */
int map_init(struct map *map);
/* The nodes are the caller's. Accepts zeros. */
void map_fini(struct map *map);

/* A hash of bytes, the same in each run: what is in these tables comes from the machine's own kernel. */
uint64_t map_hash(const void *bytes, size_t n);

/* The first node of a chain that may have this hash; its `next` may, too. */
static inline struct map_node *map_chain(const struct map *map, uint64_t hash)
{
	return map->heads[hash & (map->n_heads - 1)];
}

/* Never fails: where there is no memory for a larger table, the chains get longer. */
void map_insert(struct map *map, struct map_node *node, uint64_t hash);
void map_remove(struct map *map, struct map_node *node);

/* Calls `each` with every node; it may remove and free that node. */
void map_walk(struct map *map, void (*each)(void *context, struct map_node *node), void *context);
