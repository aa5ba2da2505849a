/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule/expiry.h"

#define SLOT_BITS 8
#define SPAN(level) (UINT64_C(1) << SLOT_BITS * ((level) + 1))
#define LEVEL(slot) ((slot) / EXPIRY_SLOTS)

void expiry_init(struct expiry *expiry, struct expiry_link *links, uint32_t n)
{
	*expiry = (struct expiry){.links = links};
	for (unsigned i = 0; i < EXPIRY_LEVELS * EXPIRY_SLOTS; i++)
		expiry->head[i] = EXPIRY_NONE;
	for (uint32_t i = 0; i < n; i++)
		links[i].slot = EXPIRY_NONE;
}

static void file(struct expiry *expiry, uint32_t position)
{
	struct expiry_link *link = &expiry->links[position];
	uint64_t due_s = link->due_s, ahead_s = due_s - expiry->now_s;
	unsigned level = 0;

	while (level < EXPIRY_LEVELS - 1 && ahead_s >= SPAN(level))
		level++;
	if (ahead_s >= SPAN(level))
		due_s = expiry->now_s + SPAN(level) - 1;
	link->slot = level * EXPIRY_SLOTS + (due_s >> SLOT_BITS * level) % EXPIRY_SLOTS;
	link->prev = EXPIRY_NONE;
	link->next = expiry->head[link->slot];
	if (link->next != EXPIRY_NONE)
		expiry->links[link->next].prev = position;
	expiry->head[link->slot] = position;
	expiry->filed[level]++;
}

void expiry_add(struct expiry *expiry, uint32_t position, uint32_t due_s)
{
	if (due_s <= expiry->now_s)
		due_s = (uint32_t)expiry->now_s + 1;
	expiry->links[position].due_s = due_s;
	file(expiry, position);
}

void expiry_remove(struct expiry *expiry, uint32_t position)
{
	struct expiry_link *link = &expiry->links[position];

	if (link->slot == EXPIRY_NONE)
		return;
	if (link->prev == EXPIRY_NONE)
		expiry->head[link->slot] = link->next;
	else
		expiry->links[link->prev].next = link->next;
	if (link->next != EXPIRY_NONE)
		expiry->links[link->next].prev = link->prev;
	expiry->filed[LEVEL(link->slot)]--;
	link->slot = EXPIRY_NONE;
}

/* Files the entries of the slot that begins now again, by what is left until they are due. */
static void cascade(struct expiry *expiry, unsigned level)
{
	unsigned slot = (unsigned)(expiry->now_s >> SLOT_BITS * level) % EXPIRY_SLOTS;
	uint32_t *head = &expiry->head[level * EXPIRY_SLOTS + slot];
	uint32_t position = *head;

	/* an entry due much later may go back into this slot: the list is taken off first */
	*head = EXPIRY_NONE;
	while (position != EXPIRY_NONE) {
		uint32_t next = expiry->links[position].next;

		expiry->filed[level]--;
		file(expiry, position);
		position = next;
	}
}

static void run_second(struct expiry *expiry, expiry_due_fn due, void *context)
{
	for (unsigned level = EXPIRY_LEVELS - 1; level > 0; level--)
		if (expiry->now_s % SPAN(level - 1) == 0)
			cascade(expiry, level);
	uint32_t *head = &expiry->head[expiry->now_s % EXPIRY_SLOTS];

	while (*head != EXPIRY_NONE) {
		uint32_t position = *head;

		expiry_remove(expiry, position);
		due(context, position);
	}
}

void expiry_advance(struct expiry *expiry, uint64_t now_s, expiry_due_fn due, void *context)
{
	while (expiry->now_s < now_s) {
		uint64_t next_s = expiry->now_s + 1;

		/* nothing happens before a slot of the lowest level that holds entries begins */
		for (unsigned level = 0; level < EXPIRY_LEVELS && expiry->filed[level] == 0;
			level++)
			next_s = (expiry->now_s / SPAN(level) + 1) * SPAN(level);
		if (next_s > now_s) {
			expiry->now_s = now_s;
			return;
		}
		expiry->now_s = next_s;
		run_second(expiry, due, context);
	}
}
