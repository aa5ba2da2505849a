/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/table.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_prefetch.h>

#include "base/mapping.h"
#include "flow/place.h"

#define MAX_BURST 64

/* What a table of 64 k flows and more may take with everything that belongs to it. */
#define BYTES_A_FLOW 144
#define BYTES_PROMISED_FROM 65536
/* Fragments, wheels and the rest of the shard, once. */
#define OTHER_BYTES (UINT64_C(736) << 10)

/* Entries a line is made for: four of five slots, so that most keys find room at home. */
#define LINE_FILL 12

#define GROUP_RECORDS (UINT32_C(1) << LINE_RECORD_BITS)

/* A part of the keys, chosen at random, and eight standard deviations. */
static uint32_t part_of(uint32_t capacity, uint32_t n_groups)
{
	uint32_t part = (capacity + n_groups - 1) / n_groups;
	uint32_t deviation = 1;

	if (n_groups == 1)
		return capacity;
	while (deviation * deviation < part)
		deviation++;
	return part + 8 * deviation;
}

static void choose_sizes(struct flow_table *table)
{
	uint32_t capacity = table->capacity;

	table->n_groups = 1;
	while (part_of(capacity, table->n_groups) > GROUP_RECORDS)
		table->n_groups++;
	table->group_records = part_of(capacity, table->n_groups);

	uint64_t lines = table->group_records / LINE_FILL + 1;
	uint64_t records = (uint64_t)table->group_records * table->n_groups;

	if (capacity >= BYTES_PROMISED_FROM) {
		uint64_t left = BYTES_A_FLOW * (uint64_t)capacity - OTHER_BYTES -
				records * sizeof(struct flow_record);
		uint64_t paid = left / sizeof(struct flow_line) / table->n_groups;

		if (paid < lines)
			lines = paid;
	}
	table->group_lines = (uint32_t)lines;
}

static size_t lines_size(const struct flow_table *table)
{
	return (size_t)table->n_groups * table->group_lines * sizeof(struct flow_line);
}

static size_t records_size(const struct flow_table *table)
{
	return (size_t)table->n_groups * table->group_records * sizeof(struct flow_record);
}

int flow_table_init(struct flow_table *table, uint32_t capacity, const struct hash_secret *secret,
	unsigned mapping)
{
	if (capacity == 0 || capacity > FLOW_MAX_CAPACITY)
		return -EINVAL;
	*table = (struct flow_table){.secret = secret, .capacity = capacity};
	choose_sizes(table);
	table->groups = calloc(table->n_groups, sizeof(*table->groups));
	table->lines = mapping_create(lines_size(table), mapping);
	table->records = mapping_create(records_size(table), mapping);
	if (table->groups == NULL || table->lines == NULL || table->records == NULL) {
		flow_table_fini(table);
		return -ENOMEM;
	}
	flow_table_restart(table);
	return 0;
}

void flow_table_restart(struct flow_table *table)
{
	for (uint32_t i = 0; i < table->n_groups; i++)
		table->groups[i] = (struct flow_group){.free = FLOW_NONE};
}

void flow_table_fini(struct flow_table *table)
{
	mapping_destroy(table->records, records_size(table));
	mapping_destroy(table->lines, lines_size(table));
	free(table->groups);
	*table = (struct flow_table){0};
}

size_t flow_table_memory(const struct flow_table *table)
{
	return lines_size(table) + records_size(table) + table->n_groups * sizeof(*table->groups);
}

/* Looks in one line. */
static uint32_t find_in(const struct flow_table *table, const struct flow_key *key,
	struct place place, uint16_t tag)
{
	const struct flow_line *line = place_line(table, place);

	for (uint32_t found = line_match(line, tag); found != 0; found &= found - 1) {
		uint32_t position = place_position(table, place, line_first(found));

		if (flow_key_equal(&table->records[position].key, key))
			return position;
	}
	return FLOW_NONE;
}

static uint32_t find_stray(const struct flow_table *table, const struct flow_key *key, uint16_t tag)
{
	struct place place;

	for (place.group = 0; place.group < table->n_groups; place.group++) {
		for (place.line = 0; place.line < table->group_lines; place.line++) {
			uint32_t position = find_in(table, key, place, tag);

			if (position != FLOW_NONE)
				return position;
		}
	}
	return FLOW_NONE;
}

uint32_t flow_table_find(const struct flow_table *table, const struct flow_key *key, uint64_t hash)
{
	struct place home = place_home(table, hash);
	uint16_t tag = line_tag(hash);
	uint32_t position = find_in(table, key, home, tag);

	if (position == FLOW_NONE && line_has_away(place_line(table, home), tag))
		position = find_in(table, key, place_other(table, home, tag), tag);
	if (position == FLOW_NONE && table->n_strays != 0)
		position = find_stray(table, key, tag);
	return position;
}

/*
 * The line that every packet touches; who needs the other fetches it. By DPDK's prefetch and not the
 * compiler's: gcc takes a function that does nothing but __builtin_prefetch() for one without effect,
 * and leaves its calls out.
 */
static inline void prefetch_record(const struct flow_table *table, uint32_t position)
{
	rte_prefetch0(&table->records[position]);
}

/* The first record of a line whose tag fits, or FLOW_NONE; it is fetched. */
static inline uint32_t candidate(const struct flow_table *table, struct place place, uint16_t tag)
{
	uint32_t found = line_match(place_line(table, place), tag), position;

	if (found == 0)
		return FLOW_NONE;
	position = place_position(table, place, line_first(found));
	prefetch_record(table, position);
	return position;
}

static void prefetch_lines(const struct flow_table *table, const uint64_t *hashes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(place_line(table, place_home(table, hashes[i])));
}

/*
 * The records that the keys may be: those at home, and of the others those in the other line, which is
 * fetched for all who need it before any of them looks.
 */
static void candidates(
	const struct flow_table *table, const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	struct place others[MAX_BURST];
	uint8_t elsewhere[MAX_BURST];
	unsigned n_elsewhere = 0;

	for (unsigned i = 0; i < n; i++) {
		struct place home = place_home(table, hashes[i]);
		uint16_t tag = line_tag(hashes[i]);

		positions[i] = candidate(table, home, tag);
		if (positions[i] != FLOW_NONE || !line_has_away(place_line(table, home), tag))
			continue;
		others[n_elsewhere] = place_other(table, home, tag);
		rte_prefetch0(place_line(table, others[n_elsewhere]));
		elsewhere[n_elsewhere++] = (uint8_t)i;
	}
	for (unsigned i = 0; i < n_elsewhere; i++)
		positions[elsewhere[i]] =
			candidate(table, others[i], line_tag(hashes[elsewhere[i]]));
}

void flow_table_find_burst(const struct flow_table *table, const struct flow_key *const *keys,
	const uint64_t *hashes, uint32_t *positions, unsigned n)
{
	prefetch_lines(table, hashes, n);
	candidates(table, hashes, positions, n);
	for (unsigned i = 0; i < n; i++) {
		bool sure = positions[i] == FLOW_NONE
				    ? table->n_strays == 0
				    : flow_key_equal(&table->records[positions[i]].key, keys[i]);

		if (!sure)
			positions[i] = flow_table_find(table, keys[i], hashes[i]);
	}
}

void flow_table_prefetch(const struct flow_table *table, const uint64_t *hashes, unsigned n)
{
	uint32_t positions[MAX_BURST];

	prefetch_lines(table, hashes, n);
	candidates(table, hashes, positions, n);
}

uint32_t flow_table_touched(const struct flow_table *table, uint32_t position)
{
	for (uint32_t group = position / table->group_records; group < table->n_groups; group++) {
		uint32_t first = group * table->group_records;

		if (position < first)
			position = first;
		if (position < first + table->groups[group].fresh)
			return position;
	}
	return FLOW_NONE;
}

uint32_t flow_table_next(const struct flow_table *table, uint32_t position)
{
	do {
		position = flow_table_touched(table, position);
		if (position == FLOW_NONE || table->records[position].state != FLOW_FREE)
			return position;
	} while (++position != FLOW_NONE);
	return FLOW_NONE;
}
