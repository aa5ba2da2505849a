/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of the table that changes it: insert and remove. */
#include "flow/table_change.h"
#include "flow/free.h"
#include "flow/place.h"

/* Moves to make room: one gives 15 chances, two 15 * 15, three more than enough. */
#define MAX_MOVES 3

/*
 * Moves an entry to its other line, which has room. False when it is a stray and has no other line.
 * The record's key tells where the entry is at home.
 */
static bool move(struct flow_table *table, struct place from, unsigned slot, struct place to)
{
	struct flow_line *line = place_line(table, from);
	struct flow_line *target = place_line(table, to);
	const struct flow_record *record = &table->records[place_position(table, from, slot)];
	struct place home = place_home(table, flow_key_hash(table->secret, &record->key));
	uint16_t tag = line->tag[slot];

	if (place_equal(home, from))
		line_goes_away(line, tag);
	else if (place_equal(home, to))
		line_comes_home(target, tag);
	else
		return false;
	line_set(target, line_first(line_match(target, 0)), tag, line->record[slot]);
	line_clear(line, slot);
	return true;
}

static bool has_room(const struct flow_table *table, struct place place)
{
	return line_match(place_line(table, place), 0) != 0;
}

/* Moves one entry of a full line to its other line, if any of those has room. */
static bool move_one(struct flow_table *table, struct place place)
{
	for (unsigned slot = 0; slot < LINE_SLOTS; slot++) {
		struct place to = place_other(table, place, place_line(table, place)->tag[slot]);

		if (has_room(table, to) && move(table, place, slot, to))
			return true;
	}
	return false;
}

/*
 * Sees to a free slot in a line by up to `moves` moves. Each makes room one line further on, and may
 * leave it anywhere on the way, in this line too, also when it comes to nothing: so what lies where is
 * looked at anew after each.
 */
static bool make_room(struct flow_table *table, struct place place, unsigned moves)
{
	const struct flow_line *line = place_line(table, place);

	if (has_room(table, place))
		return true;
	if (moves == 0)
		return false;
	if (move_one(table, place))
		return true;
	for (unsigned slot = 0; slot < LINE_SLOTS && moves > 1; slot++) {
		make_room(table, place_other(table, place, line->tag[slot]), moves - 1);
		if (has_room(table, place) || move_one(table, place))
			return true;
	}
	return false;
}

/*
 * The line of a new entry: home, else the other, as soon as one has room. False when neither has any
 * and none can be made.
 */
static bool choose_line(
	struct flow_table *table, struct place home, uint16_t tag, struct place *place)
{
	struct place other = place_other(table, home, tag);

	for (unsigned moves = 0; moves <= MAX_MOVES; moves++) {
		if (!make_room(table, home, moves))
			make_room(table, other, moves);
		/* an attempt that came to nothing may have left room all the same */
		*place = has_room(table, home) ? home : other;
		if (has_room(table, *place))
			return true;
	}
	return false;
}

void table_enter(
	struct flow_table *table, struct place home, uint16_t tag, uint32_t group, uint32_t number)
{
	struct place place = {.group = group, .line = home.line};

	if (group != home.group || !choose_line(table, home, tag, &place)) {
		/* a group has more slots than records */
		while (!has_room(table, place))
			place.line = place.line + 1 == table->group_lines ? 0 : place.line + 1;
		table->n_strays++;
	} else if (!place_equal(place, home)) {
		line_goes_away(place_line(table, home), tag);
	}

	struct flow_line *line = place_line(table, place);

	line_set(line, line_first(line_match(line, 0)), tag, number);
}

uint32_t flow_table_insert(struct flow_table *table, const struct flow_key *key, uint64_t hash)
{
	struct place home = place_home(table, hash);
	uint32_t group = home.group;

	if (table->count == table->capacity)
		return FLOW_NONE;
	/* there is one somewhere while flows are below N */
	while (!free_has(table, group))
		group = group + 1 == table->n_groups ? 0 : group + 1;

	uint32_t number = free_take(table, group);
	uint32_t position = group * table->group_records + number;

	table->records[position] = (struct flow_record){.key = *key};
	table_enter(table, home, line_tag(hash), group, number);
	table->count++;
	return position;
}

/* Removes the entry of this record from a line, if it is there. */
static bool clear_in(struct flow_table *table, struct place place, uint32_t position)
{
	struct flow_line *line = place_line(table, place);
	uint32_t used = ~line_match(line, 0) & LINE_ALL;

	for (; used != 0; used &= used - 1) {
		if (place_position(table, place, line_first(used)) == position) {
			line_clear(line, line_first(used));
			return true;
		}
	}
	return false;
}

/* Returns the group in which it lay. */
static uint32_t clear_stray(struct flow_table *table, uint32_t position)
{
	struct place place = {0};

	while (!clear_in(table, place, position)) {
		if (++place.line == table->group_lines)
			place = (struct place){.group = place.group + 1};
	}
	table->n_strays--;
	return place.group;
}

void flow_table_remove(struct flow_table *table, uint32_t position)
{
	uint64_t hash = flow_key_hash(table->secret, &table->records[position].key);
	struct place home = place_home(table, hash);
	uint32_t group = home.group;
	uint16_t tag = line_tag(hash);

	if (!clear_in(table, home, position)) {
		if (clear_in(table, place_other(table, home, tag), position))
			line_comes_home(place_line(table, home), tag);
		else
			group = clear_stray(table, position);
	}
	free_give(table, group, position);
	table->count--;
}
