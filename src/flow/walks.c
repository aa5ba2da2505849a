/* SPDX-License-Identifier: BSD-3-Clause */
/* The table's burst functions: compiled once per SIMD level. */
#include "flow/walks.h"
#include "flow/find.h"
#include "flow/free.h"
#include "flow/table_change.h"

static inline uint32_t position_of(const struct flow_table *table, const struct flow_record *record)
{
	return record == NULL ? FLOW_NONE : (uint32_t)(record - table->records);
}

static void walks_begin(const struct flow_table *table, struct flow_look_up *up)
{
	find_hash(table, up);
}

static void find(const struct flow_table *table, struct flow_look_up *up)
{
	find_candidates(table, up, 0, false);
}

static inline __attribute__((always_inline)) void confirm(
	const struct flow_table *table, const struct flow_look_up *up, uint32_t *positions)
{
	const struct flow_table at = *table;

#ifndef __clang__
#pragma GCC unroll 4
#endif
	for (unsigned i = 0; i < up->n; i++)
		positions[i] = position_of(&at, find_confirm(table, up, i));
}

static void end(const struct flow_table *table, struct flow_look_up *up, uint32_t *positions)
{
	confirm(table, up, positions);
}

static void find_hashed(const struct flow_table *table, const struct flow_key *const *keys,
	const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	const struct flow_table at = *table;
	struct flow_look_up up;

	up.n = n;
	for (unsigned i = 0; i < n; i++) {
		up.key[i] = keys[i];
		find_fetch(&at, &up, i, hashes[i]);
	}
	find_candidates(table, &up, 0, false);
	confirm(table, &up, positions);
}

static void look_up(const struct flow_table *table, const struct flow_key *const *keys,
	uint64_t *hashes, uint32_t *positions, unsigned n)
{
	struct flow_look_up up;

	up.n = n;
	memcpy(up.key, keys, n * sizeof(*keys));
	find_hash(table, &up);
	find_candidates(table, &up, 0, false);
	confirm(table, &up, positions);
	memcpy(hashes, up.hash, n * sizeof(*hashes));
}

static void hash(const struct flow_table *table, const struct flow_key *const *keys,
	uint64_t *hashes, unsigned n)
{
	find_hashes(table, keys, hashes, n);
}

/* Where a burst of changes takes place. */
struct change {
	struct flow_line *home[FLOW_BURST];
	uint32_t group[FLOW_BURST];
	uint32_t number[FLOW_BURST]; /* of the record in its group */
};

static inline void change_at(
	const struct flow_table *table, struct change *change, unsigned i, uint64_t hash)
{
	uint32_t number = place_number(table, hash);

	change->home[i] = &table->lines[number];
	change->group[i] = place_group(table, number);
	rte_prefetch0(change->home[i]);
}

/* The record of an entry to come, and both its lines on their way. */
static inline struct flow_record *take(struct flow_table *table, struct change *change, unsigned i)
{
	struct flow_record *record;

	change->number[i] = free_take(table, change->group[i]);
	record = &table->records[(size_t)change->group[i] * table->group_records +
				 change->number[i]];
	rte_prefetch0(record);
	rte_prefetch0(&record->end);
	return record;
}

static inline void enter(struct flow_table *table, const struct change *change, unsigned i,
	uint64_t hash, uint32_t number)
{
	uint32_t room = line_match(change->home[i], 0);

	if (__builtin_expect(room != 0, 1))
		line_set(change->home[i], line_first(room), line_tag(hash), number);
	else
		table_enter(
			table, place_home(table, hash), line_tag(hash), change->group[i], number);
}

/* A record is chosen before its line is looked at, so that both come from memory at the same time. */
static void walks_insert(struct flow_table *table, const struct flow_key *const *keys,
	const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	struct flow_record *record[FLOW_BURST];
	struct change change;
	bool room = n <= table->capacity - table->count;
	unsigned n_taken = 0;

	for (unsigned i = 0; i < n; i++)
		change_at(table, &change, i, hashes[i]);
	while (room && n_taken < n && free_has(table, change.group[n_taken])) {
		record[n_taken] = take(table, &change, n_taken);
		n_taken++;
	}
	table->count += n_taken;
	for (unsigned i = 0; i < n_taken; i++) {
		memset(record[i], 0, sizeof(*record[i]));
		memcpy(&record[i]->key, keys[i], sizeof(*keys[i]));
		enter(table, &change, i, hashes[i], change.number[i]);
		positions[i] = position_of(table, record[i]);
	}
	/* a full table, or a full group */
	for (unsigned i = n_taken; i < n; i++)
		positions[i] = flow_table_insert(table, keys[i], hashes[i]);
}

/* Removes the entry from its home line; false when it is not there. */
static inline bool leave_home(struct flow_line *home, uint16_t tag, uint32_t number)
{
	for (uint32_t found = line_match(home, tag); found != 0; found &= found - 1) {
		if (home->record[line_first(found)] == number) {
			line_clear(home, line_first(found));
			return true;
		}
	}
	return false;
}

static void remove_find(const struct flow_table *table, const uint32_t *positions, unsigned n)
{
	const hash_ready ready = hash_ready_of(table->secret);
	struct change change;

	for (unsigned i = 0; i < n; i++)
		change_at(table, &change, i,
			hash_ready_key(&ready, &table->records[positions[i]].key));
}

static void remove_all(struct flow_table *table, const uint32_t *positions, unsigned n)
{
	const hash_ready ready = hash_ready_of(table->secret);
	struct change change;
	uint16_t tag[FLOW_BURST];

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&table->records[positions[i]]);
	for (unsigned i = 0; i < n; i++) {
		uint64_t hash = hash_ready_key(&ready, &table->records[positions[i]].key);

		tag[i] = line_tag(hash);
		change_at(table, &change, i, hash);
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t number = positions[i] - change.group[i] * table->group_records;

		if (leave_home(change.home[i], tag[i], number)) {
			free_give(table, change.group[i], positions[i]);
			table->count--;
		} else {
			flow_table_remove(table, positions[i]);
		}
	}
}

const struct flow_walks SIMD_SYMBOL(flow_walks) = {
	.begin = walks_begin,
	.find = find,
	.end = end,
	.look_up = look_up,
	.find_hashed = find_hashed,
	.hash = hash,
	.insert = walks_insert,
	.remove_find = remove_find,
	.remove = remove_all,
};
