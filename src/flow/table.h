/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The table: from a key and its hash to the position of the flow's record.
 *
 * A line is 64 bytes: 31 tags of 16 bits and a count. The hash chooses the home line and the tag;
 * the record of (line, slot) lies at position line * 31 + slot, so no index is stored and a record
 * never moves. A key whose home line is full goes to the next line with room, wrapping around; every
 * line it had to go past counts it in `passed`. A look-up walks on from its home line only while
 * `passed` is above 0, and removal counts down again, so there are no tombstones and misses stay
 * cheap after any amount of deleting. `passed` sticks at 65,535 (look-ups then walk further than they
 * need, and stay right).
 *
 * A table made for N flows takes N, whatever their keys: there are at least N slots, and probing
 * reaches every one. Memory is taken at creation; see flow_table_memory().
 *
 * Owned by one shard, used by its worker only. Nothing here knows time, states or wheels.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/record.h"
#include "packet/hash.h"

#define FLOW_LINE_SLOTS 31
#define FLOW_MAX_CAPACITY (UINT32_C(1) << 26)

struct flow_line {
	uint16_t tag[FLOW_LINE_SLOTS]; /* 0 = free */
	uint16_t passed;
} __attribute__((aligned(64)));

static_assert(sizeof(struct flow_line) == 64, "one cache line");

struct flow_table {
	/* set once */
	struct flow_line *lines;
	struct flow_record *records;
	const struct hash_secret *secret;
	uint32_t n_lines;
	uint32_t capacity;
	/* owner writes */
	uint32_t count;
};

/*
 * Makes a table for `capacity` flows (1..FLOW_MAX_CAPACITY). The secret stays the caller's and must
 * outlive the table; it is the one that the hashes handed in were made with. `mapping` says what
 * pages the memory has (enum mapping_flag). Returns 0, -EINVAL or -ENOMEM. flow_table_fini() on a zeroed or failed table does nothing.
 */
int flow_table_init(struct flow_table *table, uint32_t capacity, const struct hash_secret *secret,
	unsigned mapping);
void flow_table_fini(struct flow_table *table);

/* Bytes of memory taken. */
size_t flow_table_memory(const struct flow_table *table);

/* The position of the key's record, or FLOW_NONE. */
uint32_t flow_table_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash);

/*
 * The same for `n` keys (at most 64) in stages, so that their cache misses overlap: positions[i] is
 * that of key[i]. Records found are on their way into the cache.
 */
void flow_table_find_burst(const struct flow_table *table, const struct flow_key *const *keys,
	const uint64_t *hashes, uint32_t *positions, unsigned n);

/*
 * Fetches what look-ups of these hashes (at most 64) will need into the cache: for keys whose
 * look-ups come one by one, soon.
 */
void flow_table_prefetch(const struct flow_table *table, const uint64_t *hashes, unsigned n);

/*
 * Adds a key that is not in the table, and returns the position of its record: zeroed but for the
 * key. Returns FLOW_NONE when the table holds its capacity.
 */
uint32_t flow_table_insert(struct flow_table *table, const struct flow_key *key, uint64_t hash);

/* Frees the position of a record. */
void flow_table_remove(struct flow_table *table, uint32_t position);

/* The next position in use at or after `position`, or FLOW_NONE; walks lines, not records. */
uint32_t flow_table_next(const struct flow_table *table, uint32_t position);

static inline struct flow_record *flow_table_record(
	const struct flow_table *table, uint32_t position)
{
	return &table->records[position];
}
