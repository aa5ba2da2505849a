/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/wheel.h"

/* A record whose list begins with it points back to the slot instead of a record. */
#define HEAD_BIT (UINT32_C(1) << 31)

#define N_LEVELS 3

static const struct level {
	unsigned first; /* slot */
	unsigned n_slots;
	unsigned shift; /* log2 of the ticks in a slot */
} levels[N_LEVELS] = {
	{0, 256, 0},
	{256, 256, 8},
	{512, 64, 16},
};

static unsigned slot_of(const struct level *level, uint64_t tick)
{
	return level->first + (unsigned)((tick >> level->shift) & (level->n_slots - 1));
}

static uint64_t span_of(const struct level *level)
{
	return (uint64_t)level->n_slots << level->shift;
}

void wheel_init(struct wheel *wheel, struct flow_record *records)
{
	*wheel = (struct wheel){.records = records};
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		wheel->head[i] = FLOW_NONE;
}

void wheel_add(struct wheel *wheel, uint32_t position, uint64_t due)
{
	unsigned level = 0;

	if (due <= wheel->tick)
		due = wheel->tick + 1;
	while (level < N_LEVELS - 1 && due - wheel->tick >= span_of(&levels[level]))
		level++;
	if (due - wheel->tick >= span_of(&levels[level]))
		due = wheel->tick + span_of(&levels[level]) - 1;

	unsigned slot = slot_of(&levels[level], due);
	struct flow_record *record = &wheel->records[position];

	record->wheel_prev = HEAD_BIT | slot;
	record->wheel_next = wheel->head[slot];
	if (wheel->head[slot] != FLOW_NONE)
		wheel->records[wheel->head[slot]].wheel_prev = position;
	wheel->head[slot] = position;
	wheel->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
	wheel->count++;
}

void wheel_remove(struct wheel *wheel, uint32_t position)
{
	const struct flow_record *record = &wheel->records[position];
	uint32_t next = record->wheel_next;
	uint32_t prev = record->wheel_prev;

	if (next != FLOW_NONE)
		wheel->records[next].wheel_prev = prev;
	if (prev & HEAD_BIT) {
		unsigned slot = prev & ~HEAD_BIT;

		wheel->head[slot] = next;
		if (next == FLOW_NONE)
			wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	} else {
		wheel->records[prev].wheel_next = next;
	}
	wheel->count--;
}

/* The distance from `slot` of a level to the next occupied one, itself included, going round. */
static unsigned distance(const struct wheel *wheel, const struct level *level, unsigned slot)
{
	for (unsigned i = 0; i < level->n_slots;) {
		unsigned at = level->first + ((slot - level->first + i) & (level->n_slots - 1));
		uint64_t word = wheel->occupied[at / 64] >> at % 64;

		if (word != 0) {
			/* a bit beyond the start belongs to the far end of the round */
			unsigned found = i + (unsigned)__builtin_ctzll(word);

			return found < level->n_slots ? found : level->n_slots;
		}
		i += 64 - at % 64;
	}
	return level->n_slots;
}

uint64_t wheel_next_tick(const struct wheel *wheel, uint64_t until)
{
	uint64_t next = until;

	if (wheel->count == 0)
		return until;
	for (unsigned i = 0; i < N_LEVELS; i++) {
		const struct level *level = &levels[i];
		/* a slot is worked off at the first of its ticks */
		uint64_t first = (wheel->tick >> level->shift) + 1;
		unsigned ahead = distance(wheel, level, slot_of(level, first << level->shift));

		if (ahead < level->n_slots && (first + ahead) << level->shift < next)
			next = (first + ahead) << level->shift;
	}
	return next;
}

/* Hands every record of a slot to its owner, who knows when it really is due. */
static void work_off(struct wheel *wheel, unsigned slot, wheel_due_fn due, void *context)
{
	uint32_t position = wheel->head[slot];

	wheel->head[slot] = FLOW_NONE;
	wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	while (position != FLOW_NONE) {
		uint32_t next = wheel->records[position].wheel_next;

		if (next != FLOW_NONE)
			__builtin_prefetch(&wheel->records[next]);
		wheel->count--;
		due(context, position);
		position = next;
	}
}

void wheel_turn(struct wheel *wheel, uint64_t tick, wheel_due_fn due, void *context)
{
	wheel->tick = tick;
	for (unsigned i = N_LEVELS; i-- > 0;) {
		if ((tick & ((UINT64_C(1) << levels[i].shift) - 1)) == 0)
			work_off(wheel, slot_of(&levels[i], tick), due, context);
	}
}

unsigned wheel_oldest(const struct wheel *wheel, uint32_t *positions, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_LEVELS; i++) {
		const struct level *level = &levels[i];
		uint64_t number = (wheel->tick >> level->shift) + 1;

		for (unsigned seen = 0; seen < level->n_slots; seen++, number++) {
			unsigned slot = slot_of(level, number << level->shift);
			unsigned ahead = distance(wheel, level, slot);

			seen += ahead;
			if (seen >= level->n_slots)
				break;
			number += ahead;
			uint32_t position = wheel->head[slot_of(level, number << level->shift)];

			for (; position != FLOW_NONE;
				position = wheel->records[position].wheel_next) {
				if (n == max)
					return n;
				positions[n++] = position;
			}
		}
	}
	return n;
}
