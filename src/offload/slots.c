/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/slots.h"

#include <errno.h>

#include <netinet/in.h>
#include <string.h>

#include "base/mapping.h"

/* Slots that one turn looks at. */
#define DRAINED_A_TURN 64

/* Bits for the numbers of `n` slots: one at least, as there has to be another number. */
static unsigned bits_for(uint32_t n)
{
	unsigned bits = 1;

	while (bits < 32 && (UINT64_C(1) << bits) < n)
		bits++;
	return bits;
}

/* Values that the generation can have, 0 among them, when the highest number is n - 1. */
static uint32_t generations_of(uint32_t mark_max, uint32_t n)
{
	uint64_t generations = ((uint64_t)(mark_max - (n - 1)) >> bits_for(n)) + 1;

	return generations < UINT32_MAX ? (uint32_t)generations : UINT32_MAX;
}

uint32_t slots_fit(const struct slots_config *config)
{
	uint32_t wanted = config->n, workers = config->n_workers, best = 0;

	if (wanted == 0 || workers == 0)
		return 0;
	if (wanted < workers)
		wanted = workers;
	/* with so many bits for the number, the last generation still has to hold all of them */
	for (unsigned bits = 1; bits <= bits_for(wanted); bits++) {
		uint64_t last = (uint64_t)SLOT_GENERATIONS << bits;
		uint64_t n = UINT64_C(1) << bits;

		if (last > config->mark_max)
			break;
		if (n > config->mark_max - last + 1)
			n = config->mark_max - last + 1;
		if (n > wanted)
			n = wanted;
		n -= n % workers;
		if (n > best)
			best = (uint32_t)n;
	}
	return best;
}

/* Where the generations of a number begin (splitmix64's finish): 0 to generations - 2. */
static uint32_t begin_of(const struct slots *slots, uint32_t slot)
{
	uint64_t number = slots->random + (slots->first + slot + 1) * UINT64_C(0x9e3779b97f4a7c15);

	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	number ^= number >> 31;
	return (uint32_t)((number >> 32) * (slots->generations - 1) >> 32);
}

/* Of a slot that names nobody; what it was is seen from it as long as rules may bring it. */
static struct slot_name nobody(uint32_t last_mark)
{
	return (struct slot_name){.mark = last_mark ^ 1, .target = SLOT_NOBODY};
}

int slots_init(struct slots *slots, const struct slots_config *config)
{
	uint32_t n = slots_fit(config);

	*slots = (struct slots){0};
	if (n == 0 || config->worker >= config->n_workers)
		return -EINVAL;
	slots->number_bits = bits_for(n);
	slots->generations = generations_of(config->mark_max, n);
	slots->n = n / config->n_workers;
	slots->first = config->worker * slots->n;
	slots->random = config->random;
	slots->n_fresh = slots->n;
	slots->head = slots->tail = slots->drains = SLOT_NONE;
	slots->names =
		mapping_create(slots->n * sizeof(*slots->names), MAPPING_HUGE | MAPPING_POPULATE);
	slots->slots =
		mapping_create(slots->n * sizeof(*slots->slots), MAPPING_HUGE | MAPPING_POPULATE);
	if (!slots->names || !slots->slots) {
		slots_fini(slots);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < slots->n; i++)
		slots->names[i] = nobody(slots_place(slots, i));
	return 0;
}

void slots_fini(struct slots *slots)
{
	mapping_destroy(slots->names, slots->n * sizeof(*slots->names));
	mapping_destroy(slots->slots, slots->n * sizeof(*slots->slots));
	*slots = (struct slots){0};
}

size_t slots_memory(const struct slots *slots)
{
	return slots->n * (sizeof(*slots->names) + sizeof(*slots->slots));
}

/* Since it was given back. */
static bool has_drained(const struct slots *slots, const struct slot *slot)
{
	return slots->now_us - slot->back_us >= SLOT_DRAIN_US &&
	       slots->turns - slot->back_turn >= SLOT_DRAIN_TURNS;
}

void slots_turn(struct slots *slots, uint64_t now_us)
{
	slots->now_us = now_us;
	slots->turns++;
	for (unsigned i = 0; i < DRAINED_A_TURN && slots->drains != SLOT_NONE; i++) {
		const struct slot *slot = &slots->slots[slots->drains];

		if (!has_drained(slots, slot))
			return;
		slots->drains = slot->next;
		slots->n_draining--;
	}
}

/* Of those that were never used first; SLOT_NONE: there is none. */
static uint32_t free_one(struct slots *slots)
{
	uint32_t slot = slots->head;

	if (slots->n_fresh > 0)
		return slots->n - slots->n_fresh--;
	if (slot == slots->drains)
		return SLOT_NONE;
	slots->head = slots->slots[slot].next;
	if (slots->head == SLOT_NONE)
		slots->tail = SLOT_NONE;
	return slot;
}

uint32_t slots_take(struct slots *slots, const struct flow_key *key, uint32_t position)
{
	bool fresh = slots->n_fresh > 0;
	uint32_t slot = free_one(slots);

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	uint32_t generation = fresh ? begin_of(slots, slot) : slots->slots[slot].generation;

	/* 1 to generations - 1, round and round */
	generation = generation + 1 < slots->generations ? generation + 1 : 1;
	slots->slots[slot] = (struct slot){
		.key = *key,
		.position = position,
		.generation = generation,
	};
	slots->names[slot] = (struct slot_name){
		.mark = slots_mark(slots, slot),
		.target = position << SLOT_FORM_BITS | (key->proto == IPPROTO_TCP ? SLOT_TCP : 0),
	};
	slots->n_used++;
	return slot;
}

void slots_sever(struct slots *slots, uint32_t slot)
{
	slots->names[slot] = nobody(slots_mark(slots, slot));
	slots->slots[slot].position = FLOW_NONE;
}

void slots_give_back(struct slots *slots, uint32_t slot)
{
	struct slot *back = &slots->slots[slot];

	slots->names[slot] = nobody(slots_place(slots, slot));
	back->next = SLOT_NONE;
	back->back_us = slots->now_us;
	back->back_turn = slots->turns;
	if (slots->tail != SLOT_NONE)
		slots->slots[slots->tail].next = slot;
	else
		slots->head = slot;
	slots->tail = slot;
	if (slots->drains == SLOT_NONE)
		slots->drains = slot;
	slots->n_used--;
	slots->n_draining++;
}

bool slots_is_given(const struct slots *slots, uint32_t mark)
{
	uint32_t slot = slots_of_mark(slots, mark);

	if (slot == SLOT_NONE || mark >> slots->number_bits == 0 || slots_mark(slots, slot) != mark)
		return false;
	/* in use, severed or not; or what was in flight may come yet */
	return slots->names[slot].mark == mark || slots->names[slot].mark == (mark ^ 1) ||
	       !has_drained(slots, &slots->slots[slot]);
}
