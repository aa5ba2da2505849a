/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where a line of a table's index lies, and where a key may. For the table's own files only. */

#include "flow/table.h"

struct place {
	uint32_t group;
	uint32_t line; /* within the group */
};

static inline struct place place_home(const struct flow_table *table, uint64_t hash)
{
	uint64_t group = (hash >> 32) * table->n_groups;
	uint64_t line = (uint64_t)(uint32_t)group * table->group_lines;

	return (struct place){.group = (uint32_t)(group >> 32), .line = (uint32_t)(line >> 32)};
}

/*
 * The other line of an entry, wherever it lies: the two add up to a number that its tag chooses. Both
 * may be the same.
 */
static inline struct place place_other(
	const struct flow_table *table, struct place place, uint16_t tag)
{
	uint64_t spread = tag * UINT32_C(0x9e3779b1); /* 2^32 over the golden ratio */
	uint32_t sum = (uint32_t)((uint32_t)spread * (uint64_t)table->group_lines >> 32);

	place.line = sum >= place.line ? sum - place.line : sum + table->group_lines - place.line;
	return place;
}

static inline bool place_equal(struct place a, struct place b)
{
	return a.group == b.group && a.line == b.line;
}

static inline struct flow_line *place_line(const struct flow_table *table, struct place place)
{
	return &table->lines[(size_t)place.group * table->group_lines + place.line];
}

/* The position of the record of an entry. */
static inline uint32_t place_position(
	const struct flow_table *table, struct place place, unsigned slot)
{
	return place.group * table->group_records + line_record(place_line(table, place), slot);
}
