/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The free records of a table's groups: last given back, first taken, since that one is still in the
 * cache. For the table's own files only.
 */

#include <string.h>

#include <rte_prefetch.h>

#include "flow/table.h"

/* Numbers in the second line of a free record, and the number of the next such record after them. */
#define FREE_BLOCK 15

struct free_block {
	uint32_t number[FREE_BLOCK];
	uint32_t next;
} __attribute__((may_alias));

static_assert(sizeof(struct free_block) == 64, "the second line");

static inline struct free_block *free_block_of(
	const struct flow_table *table, uint32_t group, uint32_t number)
{
	return (struct free_block *)&table->records[(size_t)group * table->group_records + number]
		.end;
}

static inline bool free_has(const struct flow_table *table, uint32_t group)
{
	const struct flow_group *from = &table->groups[group];

	return from->n_free != 0 || from->block != FLOW_NONE || from->fresh < table->group_records;
}

/* Takes fifteen numbers out of a record, and the record itself. There is room for them. */
static inline void free_unpack(struct flow_table *table, uint32_t group)
{
	struct flow_group *from = &table->groups[group];
	const struct free_block *block = free_block_of(table, group, from->block);

	from->free[from->n_free++] = from->block;
	memcpy(&from->free[from->n_free], block->number, sizeof(block->number));
	from->n_free += FREE_BLOCK;
	from->block = block->next;
	if (from->block != FLOW_NONE)
		rte_prefetch0(free_block_of(table, group, from->block));
}

/*
 * The number of a record. The caller knows that the group has one. The record that will be taken about a
 * burst later begins to come from memory.
 */
static inline uint32_t free_take(struct flow_table *table, uint32_t group)
{
	struct flow_group *from = &table->groups[group];

	if (from->n_free <= table->free_ahead && from->block != FLOW_NONE)
		free_unpack(table, group);
	if (from->n_free == 0)
		return from->fresh++;

	uint32_t number = from->free[--from->n_free];

	if (from->n_free > table->free_ahead) {
		uint32_t later = from->free[from->n_free - 1 - table->free_ahead];
		const struct flow_record *record =
			&table->records[(size_t)group * table->group_records + later];

		rte_prefetch0(record);
		rte_prefetch0(&record->end);
	}
	return number;
}

/* Puts the fifteen oldest numbers away, into a free record. */
static inline void free_pack(struct flow_table *table, uint32_t group, uint32_t number)
{
	struct flow_group *to = &table->groups[group];
	struct free_block *block = free_block_of(table, group, number);

	memcpy(block->number, to->free, sizeof(block->number));
	block->next = to->block;
	to->block = number;
	to->n_free -= FREE_BLOCK;
	memmove(to->free, &to->free[FREE_BLOCK], to->n_free * sizeof(to->free[0]));
}

static inline void free_give(struct flow_table *table, uint32_t group, uint32_t position)
{
	struct flow_group *to = &table->groups[group];
	uint32_t number = position - group * table->group_records;

	table->records[position].state = FLOW_FREE;
	/* no key is like that: a look-up that is on its way does not take it for a flow */
	table->records[position].key.version_wire = 0;
	if (to->n_free == FLOW_GROUP_FREE)
		free_pack(table, group, number);
	else
		to->free[to->n_free++] = number;
}
