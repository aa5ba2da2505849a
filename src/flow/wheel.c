/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/wheel.h"

#include <rte_prefetch.h>

/* The first and the last record of a list point to the slot instead of another record. */
#define SLOT_BIT (UINT32_C(1) << 31)

#define N_LEVELS 3

static const struct level {
	unsigned first; /* slot */
	unsigned n_slots;
	unsigned shift; /* log2 of the ticks in a slot */
} levels[N_LEVELS] = {
	{0, 512, 0},
	{512, 256, 9},
	{768, 64, 17},
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
	uint32_t last = wheel->tail[slot];

	record->wheel_next = SLOT_BIT | slot;
	wheel->tail[slot] = position;
	if (wheel->head[slot] == FLOW_NONE) {
		record->wheel_prev = SLOT_BIT | slot;
		wheel->head[slot] = position;
		wheel->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
	} else {
		record->wheel_prev = last;
		wheel->records[last].wheel_next = position;
	}
	wheel->count++;
}

static void empty(struct wheel *wheel, unsigned slot)
{
	wheel->head[slot] = FLOW_NONE;
	wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

void wheel_remove(struct wheel *wheel, uint32_t position)
{
	const struct flow_record *record = &wheel->records[position];
	uint32_t next = record->wheel_next;
	uint32_t prev = record->wheel_prev;

	if (next & prev & SLOT_BIT) {
		empty(wheel, next & ~SLOT_BIT);
	} else if (prev & SLOT_BIT) {
		wheel->head[prev & ~SLOT_BIT] = next;
		wheel->records[next].wheel_prev = prev;
	} else if (next & SLOT_BIT) {
		wheel->tail[next & ~SLOT_BIT] = prev;
		wheel->records[prev].wheel_next = next;
	} else {
		wheel->records[prev].wheel_next = next;
		wheel->records[next].wheel_prev = prev;
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

/* Hands the records of a slot to their owner, who knows when each really is due. */
static bool wheel_work_off(
	struct wheel *wheel, unsigned slot, wheel_due_fn due, void *context, unsigned *budget)
{
	uint32_t position;

	while ((position = wheel->head[slot]) != FLOW_NONE) {
		uint32_t next = wheel->records[position].wheel_next;

		if (*budget == 0)
			return false;
		--*budget;
		if (!(next & SLOT_BIT)) {
			rte_prefetch0(&wheel->records[next].wheel_next);
			rte_prefetch0(&wheel->records[next]);
		}
		wheel_remove(wheel, position);
		due(context, position);
	}
	return true;
}

static bool begins_slot(const struct level *level, uint64_t tick)
{
	return (tick & ((UINT64_C(1) << level->shift) - 1)) == 0;
}

bool wheel_turn(
	struct wheel *wheel, uint64_t tick, wheel_due_fn due, void *context, unsigned *budget)
{
	bool done = true;

	wheel->tick = tick;
	for (unsigned i = N_LEVELS; done && i-- > 0;) {
		if (begins_slot(&levels[i], tick))
			done = wheel_work_off(
				wheel, slot_of(&levels[i], tick), due, context, budget);
	}
	wheel->begun = !done;
	return done;
}

/* A level's way from its next slot round to its last. */
struct round {
	uint64_t number; /* of the slot, counted from tick 0; only occupied ones are stopped at */
	uint64_t end;
};

static void go_on(const struct wheel *wheel, const struct level *level, struct round *round)
{
	if (round->number < round->end)
		round->number +=
			distance(wheel, level, slot_of(level, round->number << level->shift));
	if (round->number > round->end)
		round->number = round->end;
}

static unsigned copy_list(
	const struct wheel *wheel, unsigned slot, uint32_t *positions, unsigned max)
{
	unsigned n = 0;

	for (uint32_t position = wheel->head[slot]; n < max && !(position & SLOT_BIT);
		position = wheel->records[position].wheel_next)
		positions[n++] = position;
	return n;
}

unsigned wheel_oldest(const struct wheel *wheel, uint32_t *positions, unsigned max)
{
	struct round rounds[N_LEVELS];
	unsigned n = 0;

	for (unsigned i = 0; i < N_LEVELS; i++) {
		rounds[i].number = wheel->tick >> levels[i].shift;
		/* the slot of now is over, unless it was begun and not finished */
		if (!wheel->begun || !begins_slot(&levels[i], wheel->tick))
			rounds[i].number++;
		rounds[i].end = rounds[i].number + levels[i].n_slots;
		go_on(wheel, &levels[i], &rounds[i]);
	}
	while (n < max) {
		uint64_t first = UINT64_MAX;
		unsigned best = N_LEVELS;

		/* of slots that begin together the wider first: what lies there was filed before */
		for (unsigned i = 0; i < N_LEVELS; i++) {
			uint64_t tick = rounds[i].number << levels[i].shift;

			if (rounds[i].number < rounds[i].end && tick <= first) {
				first = tick;
				best = i;
			}
		}
		if (best == N_LEVELS)
			break;
		n += copy_list(wheel, slot_of(&levels[best], first), &positions[n], max - n);
		rounds[best].number++;
		go_on(wheel, &levels[best], &rounds[best]);
	}
	return n;
}
