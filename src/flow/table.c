/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping.h"
#include "flow/find.h"
#include "flow/fragments.h"
#include "flow/tcp_memory.h"
#include "flow/walks.h"

/* What a table of 64 k flows and more may take with everything that belongs to it. */
#define BYTES_A_FLOW 144
#define BYTES_PROMISED_FROM 65536
/* Wheels and the rest of the shard, once. */
#define OTHER_BYTES (UINT64_C(36) << 10)

/*
 * Entries a line is made for: three of five slots. Then 2 keys in 1,000 lie in their other line, and the
 * processor's guess that a key is at home is right; fuller lines would be fewer, but wrong guesses cost
 * more than the cache has to say about it.
 */
#define LINE_FILL 9

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
		uint64_t other = OTHER_BYTES + fragments_bytes(fragments_for(capacity)) +
				 tcp_memory_bytes(capacity);
		uint64_t left = BYTES_A_FLOW * (uint64_t)capacity - other -
				records * sizeof(struct flow_record);
		uint64_t paid = left / sizeof(struct flow_line) / table->n_groups;

		if (paid < lines)
			lines = paid;
	}
	table->group_lines = (uint32_t)lines;
	table->n_lines = table->group_lines * table->n_groups;
	table->free_ahead = FLOW_BURST / table->n_groups + 2;
	table->group_share =
		table->n_groups == 1
			? 0
			: (uint32_t)((UINT64_C(1) << PLACE_SHARE_BITS) / table->group_lines + 1);
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
	*table = (struct flow_table){
		.walks = flow_walks_of(secret->simd), .secret = secret, .capacity = capacity};
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
		table->groups[i] = (struct flow_group){.block = FLOW_NONE};
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

void flow_table_prefetch(const struct flow_table *table, const uint64_t *hashes, unsigned n)
{
	struct flow_look_up up;

	up.n = n;
	for (unsigned i = 0; i < n; i++)
		find_fetch(table, &up, i, hashes[i]);
	find_candidates(table, &up, 0, false);
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
