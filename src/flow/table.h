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
 * Records are numbered with 16 bits, so that large tables consist of groups of at most 65,536 records
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

#include <rte_prefetch.h>

#include "flow/line.h"
#include "flow/record.h"
#include "packet/hash.h"

#define FLOW_MAX_CAPACITY (UINT32_C(1) << 26)

/* Keys that a burst function takes at most. */
#define FLOW_BURST 64

/* How many numbers of free records lie beside one another: most are taken and given back here. */
#define FLOW_GROUP_FREE 125

/*
 * The records of a group: those never used, and a stack of those given back. Its top lies here; what does
 * not fit lies in the second lines of free records, fifteen numbers in each, one after the other.
 */
struct flow_group {
	uint32_t fresh; /* from here on never used */
	uint32_t
		block; /* the last free record that holds numbers of others; FLOW_NONE: none does */
	uint32_t n_free;
	uint32_t free[FLOW_GROUP_FREE];
};

/*
 * A look-up of a burst on its way. It goes in three steps, each of which begins to fetch what the next one
 * reads: flow_look_up_begin() the lines of the index, flow_look_up_find() the records, flow_look_up_end()
 * tells. Whoever has other work does it between the steps, best the steps of the bursts before and after:
 * then a look-up in a table larger than the caches waits for memory hardly at all.
 *
 * The keys must stay where they are. The table may be changed between the steps: a key that was removed in
 * between is not found, and one that was inserted in between may not be found.
 */
struct flow_look_up {
	unsigned n; /* keys: at most FLOW_BURST */
	const struct flow_key *key[FLOW_BURST];
	uint64_t hash[FLOW_BURST];
	const struct flow_line *home[FLOW_BURST];
	struct flow_record *group[FLOW_BURST];	/* the first of the key's group */
	struct flow_record *record[FLOW_BURST]; /* that it may be, or NULL */
};

struct flow_table;

/* The burst functions below, compiled for one SIMD level. */
struct flow_walks {
	void (*begin)(const struct flow_table *table, struct flow_look_up *look_up);
	void (*find)(const struct flow_table *table, struct flow_look_up *look_up);
	void (*end)(
		const struct flow_table *table, struct flow_look_up *look_up, uint32_t *positions);
	void (*look_up)(const struct flow_table *table, const struct flow_key *const *keys,
		uint64_t *hashes, uint32_t *positions, unsigned n);
	void (*find_hashed)(const struct flow_table *table, const struct flow_key *const *keys,
		const uint64_t *hashes, uint32_t *positions, unsigned n);
	void (*hash)(const struct flow_table *table, const struct flow_key *const *keys,
		uint64_t *hashes, unsigned n);
	void (*insert)(struct flow_table *table, const struct flow_key *const *keys,
		const uint64_t *hashes, uint32_t *positions, unsigned n);
	void (*remove_find)(const struct flow_table *table, const uint32_t *positions, unsigned n);
	void (*remove)(struct flow_table *table, const uint32_t *positions, unsigned n);
};

struct flow_table {
	/* set once */
	const struct flow_walks *walks; /* of the secret's level */
	struct flow_line *lines;
	struct flow_record *records;
	struct flow_group *groups;
	const struct hash_secret *secret;
	uint32_t group_share; /* 2^40 over group_lines, rounded up; 0 with one group */
	uint32_t n_lines;     /* of all groups */
	uint32_t n_groups;
	uint32_t group_lines;
	uint32_t group_records;
	uint32_t free_ahead; /* records that a burst takes from a group, about */
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

/* All positions are below that: in a large table there are more than its capacity. */
static inline uint32_t flow_table_positions(const struct flow_table *table)
{
	return table->n_groups * table->group_records;
}

/* Bytes of memory taken. */
size_t flow_table_memory(const struct flow_table *table);

/* The position of the key's record, or FLOW_NONE. */
uint32_t flow_table_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash);

/*
 * The same for `n` keys (at most FLOW_BURST) in stages, so that their cache misses overlap: positions[i] is
 * that of key[i]. The first lines of the records found are in the cache.
 */
static inline void flow_table_find_burst(const struct flow_table *table,
	const struct flow_key *const *keys, const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	table->walks->find_hashed(table, keys, hashes, positions, n);
}

/* The same for keys whose hashes are not known yet: they are made on the way, and told. */
static inline void flow_table_look_up_burst(const struct flow_table *table,
	const struct flow_key *const *keys, uint64_t *hashes, uint32_t *positions, unsigned n)
{
	table->walks->look_up(table, keys, hashes, positions, n);
}

/*
 * Whether it pays to do other work between the steps: not in a table that lies in the nearest caches, out of
 * which another burst's packets would only push this one's.
 */
static inline bool flow_look_up_waits(const struct flow_table *table)
{
	return table->capacity >= 16384;
}

/* The steps of a look-up, for keys whose number and pointers the caller has set. */
static inline void flow_look_up_begin(const struct flow_table *table, struct flow_look_up *look_up)
{
	table->walks->begin(table, look_up);
}

static inline void flow_look_up_find(const struct flow_table *table, struct flow_look_up *look_up)
{
	table->walks->find(table, look_up);
}

/* positions[i] is that of key[i]. */
static inline void flow_look_up_end(
	const struct flow_table *table, struct flow_look_up *look_up, uint32_t *positions)
{
	table->walks->end(table, look_up, positions);
}

/*
 * Fetches what look-ups of these hashes (at most FLOW_BURST) will need into the cache: for keys whose
 * look-ups come one by one, soon.
 */
void flow_table_prefetch(const struct flow_table *table, const uint64_t *hashes, unsigned n);

/*
 * Adds a key that is not in the table, and returns the position of its record: zeroed but for the
 * key. The caller sets its state to something else than FLOW_FREE. Returns FLOW_NONE when the table
 * holds its capacity.
 */
uint32_t flow_table_insert(struct flow_table *table, const struct flow_key *key, uint64_t hash);

/* The hashes of `n` keys (at most FLOW_BURST), by the table's secret. */
static inline void flow_table_hash_burst(const struct flow_table *table,
	const struct flow_key *const *keys, uint64_t *hashes, unsigned n)
{
	table->walks->hash(table, keys, hashes, n);
}

/*
 * Adds `n` keys (at most FLOW_BURST), all different and none in the table, as flow_table_insert() would
 * one by one, which is what becomes of the table; their cache misses overlap.
 */
static inline void flow_table_insert_burst(struct flow_table *table,
	const struct flow_key *const *keys, const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	table->walks->insert(table, keys, hashes, positions, n);
}

/* Frees a record; its state becomes FLOW_FREE. */
void flow_table_remove(struct flow_table *table, uint32_t position);

/*
 * What flow_table_remove_burst() will read, for whoever knows before: first the records, then, when they
 * have come, the lines of their keys.
 */
static inline void flow_table_remove_begin(
	const struct flow_table *table, const uint32_t *positions, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&table->records[positions[i]]);
}

static inline void flow_table_remove_find(
	const struct flow_table *table, const uint32_t *positions, unsigned n)
{
	table->walks->remove_find(table, positions, n);
}

/* Frees `n` records (at most FLOW_BURST), all different; their cache misses overlap. */
static inline void flow_table_remove_burst(
	struct flow_table *table, const uint32_t *positions, unsigned n)
{
	table->walks->remove(table, positions, n);
}

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

static inline uint32_t flow_table_position_of(
	const struct flow_table *table, const struct flow_record *record)
{
	return (uint32_t)(record - table->records);
}
