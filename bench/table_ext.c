/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_table_hash_ext as a contender: buckets of four that are continued elsewhere when they are full, half
 * as many buckets as keys. The record lies in the table's own entry, which saves a pointer. It takes keys
 * from packets; here the key is all there is of a packet.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_prefetch.h>
#include <rte_table_hash.h>

#include "bench/crc.h"
#include "bench/table.h"
#include "bench/table_heap.h"

#define KEY_BYTES 64 /* a power of two, says the table */

struct record {
	uint32_t packets[2];
	uint32_t bytes[2];
	uint64_t last_seen_us;
	uint8_t state;
	uint8_t rest[39];
};

static_assert(sizeof(struct table_key) == KEY_BYTES, "zeros and all");
static_assert(sizeof(struct record) == 64, "one line");

struct theirs {
	struct table_heap heap;
	void *table;
};

#define OPS rte_table_hash_ext_ops

static size_t needs(const struct table_config *config)
{
	/* key and record; buckets of 32 bytes, and as many as it could take to continue; two stacks */
	return rte_align32pow2(config->flows) *
	       (KEY_BYTES + sizeof(struct record) + 32 / 2 + 32 / 4 + 2 * sizeof(uint32_t) + 1);
}

/* In two chains, as for rte_hash; what is beyond 40 bytes is 0, and the mask is all ones. */
static uint64_t hash_key(void *key, void *mask, uint32_t key_bytes, uint64_t seed)
{
	uint64_t word[5];

	(void)mask;
	(void)key_bytes;
	(void)seed;
	memcpy(word, key, sizeof(word));
	uint32_t a = bench_crc(word[1], bench_crc(word[0], 0));
	uint32_t b = bench_crc(word[3], bench_crc(word[2], 1));

	return bench_crc((uint64_t)a << 32 | b, bench_crc(word[4], 2));
}

static void destroy(void *side)
{
	struct theirs *theirs = side;

	if (theirs->table != NULL)
		OPS.f_free(theirs->table);
	table_heap_destroy(&theirs->heap);
	free(theirs);
}

static int create(void **side, const struct table_config *config)
{
	struct theirs *theirs = calloc(1, sizeof(*theirs));
	struct rte_table_hash_params params = {
		.name = "table",
		.key_size = KEY_BYTES,
		.key_offset = 0,
		.n_keys = rte_align32pow2(config->flows),
		.n_buckets = rte_align32pow2(config->flows) / 2,
		.f_hash = hash_key,
	};

	if (theirs == NULL)
		return -ENOMEM;
	int ret = table_heap_create(&theirs->heap, needs(config) + needs(config) / 16 + (16 << 20),
		config->small_pages);

	if (ret == 0) {
		theirs->table = OPS.f_create(&params, theirs->heap.socket, sizeof(struct record));
		ret = theirs->table == NULL ? -ENOMEM : 0;
	}
	if (ret < 0)
		destroy(theirs);
	else
		*side = theirs;
	return ret;
}

static size_t memory(const void *side)
{
	return table_heap_used(&((const struct theirs *)side)->heap);
}

/* The keys, as packets that begin with them. */
static inline struct rte_mbuf **packets_of(const struct flow_key *const *keys)
{
	return (struct rte_mbuf **)(uintptr_t)keys;
}

static bool has(const void *side, const struct table_key *key)
{
	const struct flow_key *pointer = &key->key;
	uint64_t hits = 0;
	void *entry;

	OPS.f_lookup(((const struct theirs *)side)->table, packets_of(&pointer), 1, &hits, &entry);
	return hits != 0;
}

static inline uint64_t find(
	void *side, const struct flow_key *const *keys, unsigned n, void **entries)
{
	uint64_t hits = 0;

	OPS.f_lookup(((struct theirs *)side)->table, packets_of(keys), UINT64_MAX >> (64 - n),
		&hits, entries);
	return hits;
}

static void look_up(
	void *side, unsigned way, const struct table_chunk *chunk, unsigned n, unsigned burst)
{
	void *entries[TABLE_BURST];

	(void)way;
	for (unsigned i = 0; i < n; i += burst)
		find(side, &chunk->pointers[i], RTE_MIN(burst, n - i), entries);
}

static void update(void *side, unsigned way, const struct table_chunk *chunk, unsigned n,
	unsigned burst, uint64_t now)
{
	void *entries[TABLE_BURST];

	(void)way;
	for (unsigned i = 0; i < n; i += burst) {
		unsigned part = RTE_MIN(burst, n - i);
		uint64_t hits = find(side, &chunk->pointers[i], part, entries);

		for (unsigned j = 0; j < part; j++)
			if (likely(hits >> j & 1))
				rte_prefetch0(entries[j]);
		for (unsigned j = 0; j < part; j++) {
			struct record *record = entries[j];

			if (unlikely(!(hits >> j & 1)))
				continue;
			record->packets[0]++;
			record->bytes[0] += TABLE_PACKET_BYTES;
			record->last_seen_us = now;
		}
	}
}

static bool insert(void *side, const struct table_chunk *chunk, unsigned n, uint32_t *positions)
{
	(void)positions;
	for (unsigned i = 0; i < n; i++) {
		struct record record = {.state = 1};
		void *entry;
		int found;

		if (OPS.f_add(((struct theirs *)side)->table, (void *)(uintptr_t)chunk->pointers[i],
			    &record, &found, &entry) != 0)
			return false;
	}
	return true;
}

static void remove_keys(void *side, const struct table_chunk *chunk, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int found;

		OPS.f_delete(((struct theirs *)side)->table, (void *)(uintptr_t)chunk->pointers[i],
			&found, NULL);
	}
}

const struct table_contender table_rte_table_hash_ext = {
	.name = "rte_table_hash_ext",
	.look_up_ways = 1,
	.update_ways = 1,
	.needs = needs,
	.create = create,
	.destroy = destroy,
	.memory = memory,
	.has = has,
	.look_up = look_up,
	.update = update,
	.insert = insert,
	.remove = remove_keys,
};
