/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_hash as a contender, three times: at its best, as it is used most (a key of 40 bytes: then half of
 * the slots straddle two cache lines, and keys are compared by memcmp()), and for readers without locks.
 *
 * At its best: the key is padded to 48 bytes, which with the pointer to the record makes a slot of one
 * cache line and a comparison by SIMD; look-ups in bulk of 64; records are prefetched, or not where that
 * is better. The hash is CRC-32c in two chains side by side, made by rte_hash or before it by the caller,
 * inline, whatever is better. Its user has a record of 64 bytes for each flow, given out and taken back in
 * order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lcore.h>
#include <rte_prefetch.h>

#include "base/mapping.h"
#include "bench/crc.h"
#include "bench/table.h"
#include "bench/table_heap.h"

#define PADDED_KEY 48
#define LINE 64

/* Tables for fewer flows may refuse some below 0.875 of them. */
#define SMALL 1024

/* Ways: bit 0, hashes are made inline, before; bit 1, records are not prefetched. */
#define WAY_INLINE 1u
#define WAY_NO_PREFETCH 2u

struct record {
	uint32_t packets[2];
	uint32_t bytes[2];
	uint64_t last_seen_us;
	uint8_t state;
	uint8_t rest[39];
} __attribute__((aligned(LINE)));

static_assert(sizeof(struct record) == LINE, "one line");

/* Of two writers each has a half of the records. */
#define PARTS 4
struct part {
	uint32_t next;
} __attribute__((aligned(LINE)));

struct theirs {
	struct rte_hash *hash;
	struct table_heap heap;
	struct record *records;
	uint32_t n_records;
	uint32_t next; /* record to be given out */
	struct part part[PARTS];
	bool by_inline;	 /* changes with hashes made before */
	bool free_apart; /* a deleted key's place is freed by the caller */
	bool writers;
};

static size_t needs_of(const struct table_config *config, size_t slot)
{
	/* keys, eight to a bucket, and the ring of free slots; more for what each thread keeps */
	size_t keys = config->flows + 1u + (config->writers ? RTE_MAX_LCORE * 63u : 0);
	size_t buckets = rte_align32pow2(config->flows) / 8 + 1;

	return keys * slot + buckets * LINE * (config->brim ? 2 : 1) +
	       rte_align32pow2((uint32_t)keys + 1) * sizeof(uint32_t) +
	       config->held * sizeof(struct record);
}

static size_t needs_padded(const struct table_config *config)
{
	return needs_of(config, LINE);
}

static inline uint32_t crc_of_key(const void *key)
{
	uint64_t word[5];

	memcpy(word, key, sizeof(word));
	uint32_t a = bench_crc(word[1], bench_crc(word[0], 0));
	uint32_t b = bench_crc(word[3], bench_crc(word[2], 1));

	return bench_crc((uint64_t)a << 32 | b, bench_crc(word[4], 2));
}

/* What is beyond 40 bytes is padding. */
static uint32_t crc_for_hash(const void *key, uint32_t length, uint32_t seed)
{
	(void)length;
	(void)seed;
	return crc_of_key(key);
}

static void destroy(void *side)
{
	struct theirs *theirs = side;

	rte_hash_free(theirs->hash);
	table_heap_destroy(&theirs->heap);
	mapping_destroy(theirs->records, theirs->n_records * sizeof(struct record));
	free(theirs);
}

static int create_of(void **side, const struct table_config *config, uint32_t key_bytes,
	rte_hash_function function, uint8_t flags, size_t needed)
{
	struct theirs *theirs = aligned_alloc(LINE, sizeof(*theirs));
	static unsigned n;
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters parameters = {.name = name,
		.entries = config->flows,
		.key_len = key_bytes,
		.hash_func = function,
		.extra_flag = flags};

	if (theirs == NULL)
		return -ENOMEM;
	memset(theirs, 0, sizeof(*theirs));
	snprintf(name, sizeof(name), "table%u", n++);
	/* only with these do the last of its entries find a place, and of few buckets any */
	if (config->brim || config->flows < SMALL)
		parameters.extra_flag |= RTE_HASH_EXTRA_FLAGS_EXT_TABLE;
	if (config->writers)
		parameters.extra_flag |= RTE_HASH_EXTRA_FLAGS_MULTI_WRITER_ADD;
	theirs->n_records = config->held;
	theirs->writers = config->writers;
	theirs->free_apart = flags & RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF;
	theirs->by_inline = function == crc_for_hash;
	theirs->records = mapping_create(theirs->n_records * sizeof(struct record),
		config->small_pages ? MAPPING_SMALL : MAPPING_HUGE);

	int ret = theirs->records == NULL
			  ? -ENOMEM
			  : table_heap_create(&theirs->heap, needed + needed / 16 + (16 << 20),
				    config->small_pages);
	if (ret == 0) {
		parameters.socket_id = theirs->heap.socket;
		theirs->hash = rte_hash_create(&parameters);
		ret = theirs->hash == NULL ? -ENOMEM : 0;
	}
	if (ret < 0)
		destroy(theirs);
	else
		*side = theirs;
	return ret;
}

static int create_padded(void **side, const struct table_config *config)
{
	return create_of(side, config, PADDED_KEY, crc_for_hash,
		config->writers ? RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY : 0, needs_padded(config));
}

static int create_naive(void **side, const struct table_config *config)
{
	return create_of(
		side, config, sizeof(struct flow_key), rte_hash_crc, 0, needs_padded(config));
}

static int create_lf(void **side, const struct table_config *config)
{
	return create_of(side, config, PADDED_KEY, crc_for_hash,
		RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF, needs_padded(config));
}

static size_t memory(const void *side)
{
	const struct theirs *theirs = side;

	return table_heap_used(&theirs->heap) + theirs->n_records * sizeof(struct record);
}

static bool has(const void *side, const struct table_key *key)
{
	const struct theirs *theirs = side;

	return rte_hash_lookup(theirs->hash, key) >= 0;
}

static inline uint64_t find(const struct theirs *theirs, unsigned way,
	const struct flow_key *const *keys, uint32_t *hashes, void **data, unsigned n)
{
	const void **pointers = (const void **)(uintptr_t)keys;
	uint64_t hits = 0;

	if (way & WAY_INLINE) {
		for (unsigned i = 0; i < n; i++)
			hashes[i] = crc_of_key(keys[i]);
		rte_hash_lookup_with_hash_bulk_data(theirs->hash, pointers, hashes, n, &hits, data);
	} else {
		rte_hash_lookup_bulk_data(theirs->hash, pointers, n, &hits, data);
	}
	return hits;
}

static inline void count(struct record *record, uint64_t now)
{
	record->packets[0]++;
	record->bytes[0] += TABLE_PACKET_BYTES;
	record->last_seen_us = now;
}

static void look_up(
	void *side, unsigned way, const struct table_chunk *chunk, unsigned n, unsigned burst)
{
	uint32_t hashes[TABLE_BURST];
	void *data[TABLE_BURST];

	for (unsigned i = 0; i < n; i += burst)
		find(side, way, &chunk->pointers[i], hashes, data, RTE_MIN(burst, n - i));
}

static void update(void *side, unsigned way, const struct table_chunk *chunk, unsigned n,
	unsigned burst, uint64_t now)
{
	uint32_t hashes[TABLE_BURST];
	void *data[TABLE_BURST];

	for (unsigned i = 0; i < n; i += burst) {
		unsigned part = RTE_MIN(burst, n - i);
		uint64_t hits = find(side, way, &chunk->pointers[i], hashes, data, part);

		for (unsigned j = 0; !(way & WAY_NO_PREFETCH) && j < part; j++)
			if (likely(hits >> j & 1))
				rte_prefetch0(data[j]);
		for (unsigned j = 0; j < part; j++)
			if (likely(hits >> j & 1))
				count(data[j], now);
	}
}

/* A record of a writer's own half: DPDK numbers two threads one after the other. */
static struct record *take_part(struct theirs *theirs)
{
	unsigned number = rte_lcore_id();
	uint32_t half = theirs->n_records / 2;
	struct part *part = &theirs->part[number % PARTS];
	struct record *record = &theirs->records[(number & 1) * half + part->next];

	if (++part->next == half)
		part->next = 0;
	return record;
}

/* A record for a flow that begins. */
static inline struct record *take(struct theirs *theirs)
{
	struct record *record = &theirs->records[theirs->next];

	if (unlikely(theirs->writers))
		record = take_part(theirs);
	else if (++theirs->next == theirs->n_records)
		theirs->next = 0;
	*record = (struct record){.state = 1};
	return record;
}

static inline struct record *add(struct theirs *theirs, const void *key, uint32_t hash)
{
	struct record *record = take(theirs);
	int ret = theirs->by_inline
			  ? rte_hash_add_key_with_hash_data(theirs->hash, key, hash, record)
			  : rte_hash_add_key_data(theirs->hash, key, record);

	return ret == 0 ? record : NULL;
}

static bool insert(void *side, const struct table_chunk *chunk, unsigned n, uint32_t *positions)
{
	struct theirs *theirs = side;

	(void)positions;
	for (unsigned i = 0; i < n; i++) {
		const void *key = chunk->pointers[i];

		if (unlikely(add(theirs, key, theirs->by_inline ? crc_of_key(key) : 0) == NULL))
			return false;
	}
	return true;
}

static inline void remove_key(struct theirs *theirs, const void *key)
{
	int32_t position = theirs->by_inline
				   ? rte_hash_del_key_with_hash(theirs->hash, key, crc_of_key(key))
				   : rte_hash_del_key(theirs->hash, key);

	if (theirs->free_apart)
		rte_hash_free_key_with_position(theirs->hash, position);
}

static void remove_keys(void *side, const struct table_chunk *chunk, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		remove_key(side, chunk->pointers[i]);
}

/*
 * Ways of churn: of flows that end the hashes are known, as if they lay in their records; or what is read
 * to delete them is fetched, too, by being looked up in the same call as the packets' keys, of the burst
 * with which they end or of the one before. Nothing but a look-up fetches what lies in the table.
 */
enum { CHURN_HASH_KNOWN, CHURN_FETCHED, CHURN_FETCHED_BEFORE, CHURN_WAYS };

static void prepare(struct table_churn *what)
{
	for (unsigned i = 0; i < TABLE_CHURN_CHANGES; i++)
		what->ended_hashes[i] = crc_of_key(&what->ended[i]);
}

/* What a call of churn looks up: a burst's packets, and flows that end with it or with the next one. */
#define CHURN_KEYS (TABLE_CHURN_BURST + 2 * TABLE_CHURN_NEW)
static_assert(CHURN_KEYS <= RTE_HASH_LOOKUP_BULK_MAX, "one call");

struct churn_call {
	const void *keys[CHURN_KEYS];
	uint32_t hashes[CHURN_KEYS];
	void *data[CHURN_KEYS];
};

static inline uint64_t churn_find(const struct theirs *theirs, unsigned way,
	const struct table_churn *what, unsigned burst, struct churn_call *call)
{
	/* flows that end: of this burst, or from the next one's to its end; the first has both */
	unsigned first = (burst + (way == CHURN_FETCHED_BEFORE && burst != 0)) * TABLE_CHURN_NEW;
	unsigned last = (burst + 1 + (way == CHURN_FETCHED_BEFORE)) * TABLE_CHURN_NEW;
	unsigned n = TABLE_CHURN_BURST;
	uint64_t hits = 0;

	memcpy(call->keys, &what->chunk.pointers[burst * TABLE_CHURN_BURST],
		TABLE_CHURN_BURST * sizeof(call->keys[0]));
	for (unsigned i = 0; i < TABLE_CHURN_BURST; i++)
		call->hashes[i] = crc_of_key(call->keys[i]);
	last = way == CHURN_HASH_KNOWN ? first : RTE_MIN(last, (unsigned)TABLE_CHURN_CHANGES);
	for (unsigned i = first; i < last; i++) {
		call->keys[n] = &what->ended[i];
		call->hashes[n++] = what->ended_hashes[i];
	}
	rte_hash_lookup_with_hash_bulk_data(
		theirs->hash, call->keys, call->hashes, n, &hits, call->data);
	return hits;
}

static void churn(void *side, unsigned way, struct table_churn *what, uint64_t now)
{
	struct theirs *theirs = side;

	for (unsigned burst = 0; burst < TABLE_CHURN_BURSTS; burst++) {
		struct churn_call call;
		uint64_t hits = churn_find(theirs, way, what, burst, &call);
		void **data = call.data;

		for (unsigned i = 0; i < TABLE_CHURN_BURST; i++)
			if (likely(hits >> i & 1))
				rte_prefetch0(data[i]);
		for (unsigned i = 0; i < TABLE_CHURN_BURST; i++) {
			if (unlikely(!(hits >> i & 1)))
				data[i] = add(theirs, call.keys[i], call.hashes[i]);
			if (likely(data[i] != NULL))
				count(data[i], now);
		}
		for (unsigned i = burst * TABLE_CHURN_NEW; i < (burst + 1) * TABLE_CHURN_NEW; i++)
			rte_hash_del_key_with_hash(
				theirs->hash, &what->ended[i], what->ended_hashes[i]);
	}
}

const struct table_contender table_rte_hash = {
	.name = "rte_hash",
	.look_up_ways = 2,
	.update_ways = 4,
	.churn_ways = CHURN_WAYS,
	.needs = needs_padded,
	.create = create_padded,
	.destroy = destroy,
	.memory = memory,
	.has = has,
	.look_up = look_up,
	.update = update,
	.insert = insert,
	.remove = remove_keys,
	.prepare = prepare,
	.churn = churn,
};

const struct table_contender table_rte_hash_naive = {
	.name = "rte_hash_naive",
	.look_up_ways = 1,
	.update_ways = 1,
	.needs = needs_padded,
	.create = create_naive,
	.destroy = destroy,
	.memory = memory,
	.has = has,
	.look_up = look_up,
	.update = update,
	.insert = insert,
	.remove = remove_keys,
};

const struct table_contender table_rte_hash_lf = {
	.name = "rte_hash_lf",
	.look_up_ways = 2,
	.update_ways = 4,
	.needs = needs_padded,
	.create = create_lf,
	.destroy = destroy,
	.memory = memory,
	.has = has,
	.look_up = look_up,
	.update = update,
	.insert = insert,
	.remove = remove_keys,
};
