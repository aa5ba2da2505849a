/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The table: from a key and its hash to the position of the flow's record.
 *
 * Records lie in an array and never move. An index of 64-byte lines (flow/line.h) finds them: 15
 * entries of a 16-bit tag and a record's number. The hash chooses a home line and, by the tag, one
 * other line. A key's entry lies at home, or where that is full in the other line; where both are,
 * entries make room by moving to their own other line (cuckoo hashing with partial keys: B. Fan et
 * al., "MemC3", 2013). So a look-up reads one line, seldom two, however full the table is and however
 * much was deleted, and an entry moves though its record does not.
 *
 * Records are numbered with 17 bits, so that large tables consist of groups of at most 131,072 records
 * with lines of their own. The hash chooses the group; each is made for its part and eight standard
 * deviations.
 *
 * A table made for N flows takes N, whatever their keys. Should no line have room within a few moves,
 * or a group no record, the entry becomes a stray: it lies anywhere, and as long as there is a stray
 * every miss searches the whole index. With a secret hash that does not happen; it is there so that
 * nothing is ever wrong.
 *
 * Owned by one shard, used by its worker only. Nothing here knows time, states or wheels.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/line.h"
#include "flow/record.h"
#include "packet/hash.h"

#define FLOW_MAX_CAPACITY (UINT32_C(1) << 26)

/* The records of a group: a stack of those given back, and those never used. */
struct flow_group {
	uint32_t
		free; /* number of the first one; the next lies in its wheel_next; FLOW_NONE ends */
	uint32_t fresh; /* from here on never used */
};

struct flow_table {
	/* set once */
	struct flow_line *lines;
	struct flow_record *records;
	struct flow_group *groups;
	const struct hash_secret *secret;
	uint32_t n_groups;
	uint32_t group_lines;
	uint32_t group_records;
	uint32_t capacity;
	/* owner writes */
	uint32_t count;
	uint32_t n_strays;
};

/*
 * Makes a table for `capacity` flows (1..FLOW_MAX_CAPACITY). The secret stays the caller's and must
 * outlive the table; it is the one that the hashes handed in were made with. `mapping` says what
 * pages the memory has (enum mapping_flag). Returns 0, -EINVAL or -ENOMEM. flow_table_fini() on a
 * zeroed or failed table does nothing.
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
 * that of key[i]. The first lines of the records found are in the cache.
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
 * key. The caller sets its state to something else than FLOW_FREE. Returns FLOW_NONE when the table
 * holds its capacity.
 */
uint32_t flow_table_insert(struct flow_table *table, const struct flow_key *key, uint64_t hash);

/* Frees a record; its state becomes FLOW_FREE. */
void flow_table_remove(struct flow_table *table, uint32_t position);

/*
 * Makes an empty table as new: records are handed out from the first one again, so that walks over a
 * table are short when few flows follow many.
 */
void flow_table_restart(struct flow_table *table);

/* The next position in use at or after `position`, or FLOW_NONE. */
uint32_t flow_table_next(const struct flow_table *table, uint32_t position);

/* The next position at or after `position` that is or once was in use, or FLOW_NONE: for walks in steps. */
uint32_t flow_table_touched(const struct flow_table *table, uint32_t position);

static inline struct flow_record *flow_table_record(
	const struct flow_table *table, uint32_t position)
{
	return &table->records[position];
}
