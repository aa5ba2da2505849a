/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/slots.h"

#include <assert.h>
#include <errno.h>

#include <netinet/in.h>
#include <string.h>

#include <rte_common.h>

#include "base/mapping.h"
#include "packet/hash.h"

/* Slots of one position that are in force: more are not given, so that all of them are looked at quickly. */
#define MOST_OF_POSITION 16
/* Severed ones of one hash that are looked at for a key. */
#define MOST_SEVERED 16
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

/* The last generation, when the highest number is n - 1. */
static uint32_t last_generation_of(uint32_t mark_max, uint32_t n)
{
	uint32_t last = (mark_max - (n - 1)) >> bits_for(n);

	return last < SLOT_LAST_GENERATION ? last : SLOT_LAST_GENERATION;
}

/* How many positions of records there are, where marks of seven generations can name them all; else 0. */
static uint32_t positions_of(const struct slots_config *config)
{
	uint64_t n = (uint64_t)config->positions * config->n_workers;

	if (n == 0 || n > UINT32_MAX / SLOT_POSITION_GENERATIONS)
		return 0;
	uint64_t last = (uint64_t)SLOT_POSITION_GENERATIONS << bits_for((uint32_t)n);

	/* in the last generation, too */
	return last + n - 1 <= config->mark_max ? (uint32_t)n : 0;
}

/* Of slots, so many that eight generations are left. */
static uint32_t numbers_of(const struct slots_config *config, uint32_t wanted)
{
	uint32_t best = 0;

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
		n -= n % config->n_workers;
		if (n > best)
			best = (uint32_t)n;
	}
	return best;
}

uint32_t slots_fit(const struct slots_config *config)
{
	uint32_t wanted = config->n, workers = config->n_workers;

	if (wanted == 0 || workers == 0)
		return 0;
	if (wanted < workers)
		wanted = workers;
	return positions_of(config) != 0 ? wanted - wanted % workers : numbers_of(config, wanted);
}

/* What comes before the first generation of a number (splitmix64's finish). */
static uint32_t begin_of(const struct slots *slots, uint32_t number)
{
	uint64_t x =
		slots->random + (slots->first_number + number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return (uint32_t)((x >> 32) * slots->last_generation >> 32);
}

/* How many hashes there are of severed slots' keys. */
static size_t severed_of(const struct slots *slots)
{
	return slots->n != 0 ? (size_t)1 << bits_for(slots->n) : 0;
}

static void *map(size_t n, size_t size)
{
	return mapping_create(n * size, MAPPING_HUGE | MAPPING_POPULATE);
}

/* How many rows of tags there are. */
static size_t rows(const struct slots *slots)
{
	return slots->row == 0 ? 1 : slots->n_rows;
}

/* Tags of all numbers of the domain (slots_tags()), of which only this worker's are ever written. */
static size_t tags_size(const struct slots *slots)
{
	return rows(slots) * sizeof(*slots->tags) << slots->number_bits;
}

static uint16_t *make_tags(const struct slots *slots)
{
	uint16_t *all = mapping_create(tags_size(slots), MAPPING_HUGE);

	if (all == NULL)
		return NULL;
	all += slots->first_number;
	/* its own are there before packets need them */
	for (size_t i = 0; i < rows(slots); i++)
		memset(all + i * slots->row, 0, slots->n_numbers * sizeof(*all));
	return all;
}

/* Numbers that are positions lead to slots, those of slots to positions. */
static int slots_make(struct slots *slots, bool by_position)
{
	const uint32_t n = slots->n_numbers;
	uint32_t **other = by_position ? &slots->newest : &slots->positions;

	slots->tags = make_tags(slots);
	slots->generations = map(n, sizeof(*slots->generations));
	slots->slots = map(slots->n, sizeof(*slots->slots));
	*other = map(n, sizeof(**other));
	slots->severed = map(severed_of(slots), sizeof(*slots->severed));
	if (!slots->tags || !slots->generations || !slots->slots || !*other || !slots->severed) {
		slots_fini(slots);
		return -ENOMEM;
	}
	memset(*other, 0xff, n * sizeof(**other));
	memset(slots->severed, 0xff, severed_of(slots) * sizeof(*slots->severed));
	return 0;
}

int slots_init(struct slots *slots, const struct slots_config *config)
{
	uint32_t n = slots_fit(config);
	uint32_t positions = n != 0 ? positions_of(config) : 0;
	uint32_t numbers = positions != 0 ? positions : n;

	*slots = (struct slots){0};
	if (n == 0 || config->worker >= config->n_workers)
		return -EINVAL;
	slots->n = n / config->n_workers;
	slots->first = config->worker * slots->n;
	slots->n_numbers = numbers / config->n_workers;
	slots->first_number = config->worker * slots->n_numbers;
	slots->number_bits = bits_for(numbers);
	slots->last_generation = last_generation_of(config->mark_max, numbers);
	if (config->n_ports > 2) {
		slots->n_rows = config->n_ports + 1;
		slots->row = (size_t)1 << slots->number_bits;
	}
	slots->random = config->random;
	slots->n_fresh = slots->n;
	slots->head = slots->tail = slots->drains = SLOT_NONE;
	return slots_make(slots, positions != 0);
}

void slots_fini(struct slots *slots)
{
	const uint32_t n = slots->n_numbers;

	if (slots->tags != NULL)
		mapping_destroy(slots->tags - slots->first_number, tags_size(slots));
	mapping_destroy(slots->generations, n * sizeof(*slots->generations));
	mapping_destroy(slots->positions, n * sizeof(*slots->positions));
	mapping_destroy(slots->newest, n * sizeof(*slots->newest));
	mapping_destroy(slots->severed, severed_of(slots) * sizeof(*slots->severed));
	mapping_destroy(slots->slots, slots->n * sizeof(*slots->slots));
	*slots = (struct slots){0};
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

/* Rules of it may be there, or packets in flight that have its mark. */
static bool is_in_force(const struct slots *slots, const struct slot *slot)
{
	return slot->used || !has_drained(slots, slot);
}

/* Of a position's slots those that are in force stay, from the newest one to the oldest: so many. */
static unsigned prune(struct slots *slots, uint32_t position)
{
	uint32_t *link = &slots->newest[position];
	unsigned n = 0;

	while (*link != SLOT_NONE) {
		struct slot *slot = &slots->slots[*link];

		if (is_in_force(slots, slot)) {
			link = &slot->older;
			n++;
		} else {
			*link = slot->older;
		}
	}
	return n;
}

/* It is none of its last position's any more. */
static void unchain(struct slots *slots, uint32_t slot)
{
	uint32_t *link = &slots->newest[slots->slots[slot].number];

	while (*link != SLOT_NONE && *link != slot)
		link = &slots->slots[*link].older;
	if (*link == slot)
		*link = slots->slots[slot].older;
}

/* Of those that were never used first; SLOT_NONE: there is none. */
static uint32_t free_one(const struct slots *slots)
{
	if (slots->n_fresh > 0)
		return slots->n - slots->n_fresh;
	return slots->head == slots->drains ? SLOT_NONE : slots->head;
}

static void take_free_one(struct slots *slots, uint32_t slot)
{
	if (slots->n_fresh > 0) {
		slots->n_fresh--;
		return;
	}
	slots->head = slots->slots[slot].next;
	if (slots->head == SLOT_NONE)
		slots->tail = SLOT_NONE;
	if (slots->newest != NULL)
		unchain(slots, slot);
}

/* 1 to the last one, round and round. */
static uint32_t generation_after(const struct slots *slots, uint32_t generation)
{
	return generation < slots->last_generation ? generation + 1 : 1;
}

static bool has_generation(const struct slots *slots, uint32_t position, uint32_t generation)
{
	uint32_t slot = slots->newest[position];

	while (slot != SLOT_NONE && slots->slots[slot].generation != generation)
		slot = slots->slots[slot].older;
	return slot != SLOT_NONE;
}

/* The next one that no rule may have; 0: there is none. */
static uint32_t next_generation(struct slots *slots, uint32_t number)
{
	uint32_t last = slots->generations[number];
	uint32_t next = generation_after(slots, last != 0 ? last : begin_of(slots, number));

	if (slots->newest == NULL)
		return next;
	unsigned in_force = prune(slots, number);

	if (in_force >= RTE_MIN(slots->last_generation, (uint32_t)MOST_OF_POSITION))
		return 0;
	while (has_generation(slots, number, next))
		next = generation_after(slots, next);
	return next;
}

uint32_t slots_take(struct slots *slots, const struct flow_key *key, uint32_t position)
{
	const bool by_position = slots->newest != NULL;
	const uint32_t slot = free_one(slots);

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	const uint32_t number = by_position ? position : slot;

	assert(number < slots->n_numbers);
	const uint32_t generation = next_generation(slots, number);

	if (generation == 0)
		return SLOT_NONE;
	take_free_one(slots, slot);
	slots->slots[slot] = (struct slot){
		.key = *key,
		.position = position,
		.number = number,
		.generation = generation,
		.older = by_position ? slots->newest[number] : SLOT_NONE,
		.used = true,
	};
	if (by_position)
		slots->newest[number] = slot;
	else
		slots->positions[number] = position;
	/* read by others: slots_gave() */
	__atomic_store_n(&slots->generations[number], (uint16_t)generation, __ATOMIC_RELAXED);
	slots->tags[number] = (uint16_t)(SLOT_GIVEN | generation << SLOT_FORM_BITS |
					 (key->proto == IPPROTO_TCP ? SLOT_TCP : 0));
	slots->n_used++;
	return slot;
}

/* The port where packets of that end had the mark has it no more, unless it is for the other end's by now. */
static void clear_row(struct slots *slots, struct slot *slot, unsigned from)
{
	uint16_t *tag = &slots->tags[slot->row[from] * slots->row + slot->number];

	if (slot->row[from] != 0 && (*tag & SLOT_FROM) == (from != 0 ? SLOT_FROM : 0))
		*tag = 0;
	slot->row[from] = 0;
}

void slots_set_from(struct slots *slots, uint32_t number, unsigned place, unsigned from)
{
	struct slot *slot = &slots->slots[number];
	uint16_t *tag = &slots->tags[slot->number];

	if (slots->row == 0) {
		*tag = (uint16_t)(from != (place != 0) ? *tag | SLOT_FROM : *tag & ~SLOT_FROM);
		return;
	}
	clear_row(slots, slot, from);
	slot->row[from] = (uint8_t)(place + 1);
	tag[(place + 1) * slots->row] = (uint16_t)(*tag | (from != 0 ? SLOT_FROM : 0));
}

/* Its mark names nobody any more; the number may name another flow by now. */
static void clear_tag(struct slots *slots, uint32_t number)
{
	struct slot *slot = &slots->slots[number];

	if (slots_position(slots, slots_mark(slots, number)) == FLOW_NONE)
		return;
	slots->tags[slot->number] = 0;
	for (unsigned from = 0; from < 2; from++)
		clear_row(slots, slot, from);
}

/* Where a key's severed slots begin; of ports that somebody chose they are not to lie together. */
static uint32_t *severed_home(const struct slots *slots, const struct flow_key *key)
{
	uint64_t words[sizeof(*key) / sizeof(uint64_t)], hash = slots->random;

	memcpy(words, key, sizeof(words));
	for (unsigned i = 0; i < RTE_DIM(words); i++)
		hash = hash_fold(hash ^ words[i], UINT64_C(0x9e3779b97f4a7c15)) ^ slots->random;
	return &slots->severed[hash & (severed_of(slots) - 1)];
}

static void link_severed(struct slots *slots, uint32_t slot)
{
	struct slot *severed = &slots->slots[slot];
	uint32_t *home = severed_home(slots, &severed->key);

	severed->severed = true;
	severed->severed_before = SLOT_NONE;
	severed->severed_after = *home;
	if (*home != SLOT_NONE)
		slots->slots[*home].severed_before = slot;
	*home = slot;
	slots->n_severed++;
}

static void unlink_severed(struct slots *slots, uint32_t slot)
{
	struct slot *severed = &slots->slots[slot];

	if (severed->severed_before != SLOT_NONE)
		slots->slots[severed->severed_before].severed_after = severed->severed_after;
	else
		*severed_home(slots, &severed->key) = severed->severed_after;
	if (severed->severed_after != SLOT_NONE)
		slots->slots[severed->severed_after].severed_before = severed->severed_before;
	severed->severed = false;
	slots->n_severed--;
}

uint32_t slots_severed(const struct slots *slots, const struct flow_key *key, uint32_t slot)
{
	if (slots->n_severed == 0)
		return SLOT_NONE;
	slot = slot != SLOT_NONE ? slots->slots[slot].severed_after : *severed_home(slots, key);
	for (unsigned i = 0; slot != SLOT_NONE; i++, slot = slots->slots[slot].severed_after) {
		if (i == MOST_SEVERED)
			return SLOT_NONE;
		if (flow_key_equal(&slots->slots[slot].key, key))
			break;
	}
	return slot;
}

void slots_sever(struct slots *slots, uint32_t slot)
{
	clear_tag(slots, slot);
	slots->slots[slot].position = FLOW_NONE;
	if (!slots->slots[slot].severed)
		link_severed(slots, slot);
}

void slots_give_back(struct slots *slots, uint32_t slot)
{
	struct slot *back = &slots->slots[slot];

	clear_tag(slots, slot);
	if (back->severed)
		unlink_severed(slots, slot);
	back->used = false;
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

uint32_t slots_of_mark(const struct slots *slots, uint32_t mark)
{
	uint32_t number = slots_number(slots, mark), slot;

	if (number == SLOT_NONE)
		return SLOT_NONE;
	if (slots->newest == NULL)
		return slots_mark(slots, number) == mark ? number : SLOT_NONE;
	slot = slots->newest[number];
	while (slot != SLOT_NONE && slots_mark(slots, slot) != mark)
		slot = slots->slots[slot].older;
	return slot;
}

bool slots_is_given(const struct slots *slots, uint32_t mark)
{
	uint32_t slot = slots_of_mark(slots, mark);

	return slot != SLOT_NONE && is_in_force(slots, &slots->slots[slot]);
}

bool slots_gave(const struct slots *slots, uint32_t mark)
{
	const uint32_t number = slots_number(slots, mark);

	return number != SLOT_NONE && __atomic_load_n(&slots->generations[number],
					      __ATOMIC_RELAXED) == mark >> slots->number_bits;
}
