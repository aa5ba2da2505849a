/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where a line of a table's index lies, and where a key may. For the table's own files only. */

#include "flow/table.h"

#define PLACE_SHARE_BITS 40

struct place {
	uint32_t group;
	uint32_t line; /* within the group */
};

/* The line, counted through all groups. */
static inline uint32_t place_number(const struct flow_table *table, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * table->n_lines >> 32);
}

/* The group of a line so counted: a division, by multiplication with 2^40 over the lines of a group. */
static inline uint32_t place_group(const struct flow_table *table, uint32_t number)
{
	return (uint32_t)(number * (uint64_t)table->group_share >> PLACE_SHARE_BITS);
}

static inline struct place place_home(const struct flow_table *table, uint64_t hash)
{
	uint32_t number = place_number(table, hash);
	uint32_t group = place_group(table, number);

	return (struct place){.group = group, .line = number - group * table->group_lines};
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
	return place.group * table->group_records + place_line(table, place)->record[slot];
}
