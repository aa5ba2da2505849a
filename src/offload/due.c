/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/due.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t bucket(const struct due *due, uint64_t tick)
{
	return due->n + (uint32_t)(tick % DUE_ROW);
}

static uint32_t row_bucket(const struct due *due, uint64_t row)
{
	return due->n + DUE_ROW + (uint32_t)(row % DUE_ROWS);
}

int due_init(struct due *due, uint32_t n)
{
	const uint32_t all = n + DUE_ROW + DUE_ROWS;

	*due = (struct due){.n = n, .link = calloc(all, sizeof(due->link[0]))};
	if (due->link == NULL)
		return -ENOMEM;
	for (uint32_t i = n; i < all; i++)
		due->link[i].before = due->link[i].next = i;
	return 0;
}

void due_fini(struct due *due)
{
	free(due->link);
	*due = (struct due){0};
}

/* Puts a slot at the end of a bucket. */
static void append(struct due *due, uint32_t head, uint32_t slot)
{
	struct due_link *link = due->link;
	const uint32_t last = link[head].before;

	link[slot].before = last;
	link[slot].next = head;
	link[last].next = slot;
	link[head].before = slot;
}

static void unlink_slot(struct due *due, uint32_t slot)
{
	struct due_link *link = due->link;

	link[link[slot].before].next = link[slot].next;
	link[link[slot].next].before = link[slot].before;
}

static void put(struct due *due, uint32_t slot)
{
	const uint64_t tick = due->link[slot].tick;

	append(due,
		tick - due->tick < DUE_ROW ? bucket(due, tick) : row_bucket(due, tick / DUE_ROW),
		slot);
}

void due_remove(struct due *due, uint32_t slot)
{
	if (due->link[slot].tick == 0)
		return;
	unlink_slot(due, slot);
	due->link[slot].tick = 0;
	due->filed--;
}

void due_file(struct due *due, uint32_t slot, uint64_t at_us)
{
	/* the row before the one that is worked off has the last row's bucket */
	const uint64_t last = (due->tick / DUE_ROW + DUE_ROWS) * DUE_ROW - 1;
	uint64_t tick = at_us >> DUE_TICK_BITS;

	if (tick <= due->tick)
		tick = due->tick + 1;
	else if (tick > last)
		tick = last;
	due_remove(due, slot);
	due->link[slot].tick = tick;
	due->filed++;
	put(due, slot);
}

void due_hasten(struct due *due, uint32_t slot, uint64_t at_us)
{
	const uint64_t filed = due->link[slot].tick;

	if (filed == 0 || at_us >> DUE_TICK_BITS < filed)
		due_file(due, slot, at_us);
}

/* Brings slots of the row that has begun into level 0; false: there are more. */
static bool bring_row(struct due *due, unsigned *budget)
{
	const uint32_t head = row_bucket(due, due->tick / DUE_ROW);

	for (uint32_t slot; (slot = due->link[head].next) != head; (*budget)--) {
		if (*budget == 0)
			return false;
		unlink_slot(due, slot);
		if (due->link[slot].tick < due->tick)
			due->link[slot].tick = due->tick;
		put(due, slot);
	}
	return true;
}

unsigned due_take(struct due *due, uint64_t now_us, uint32_t *slots, unsigned max, unsigned *budget)
{
	const uint64_t now = now_us >> DUE_TICK_BITS, round = (uint64_t)DUE_ROW * DUE_ROWS;
	unsigned n = 0;

	if (due->filed == 0 && due->tick < now)
		due->tick = now;
	/* all buckets are passed in a round, which is enough after any pause */
	if (now > due->tick + 2 * round) {
		due->tick += ((now - due->tick) / round - 1) * round;
		due->row_left = true;
	}
	while (n < max && due->tick <= now) {
		if (due->row_left && !bring_row(due, budget))
			break;
		due->row_left = false;
		const uint32_t head = bucket(due, due->tick);

		for (uint32_t slot; n < max && *budget > 0 && (slot = due->link[head].next) != head;
			(*budget)--) {
			due_remove(due, slot);
			slots[n++] = slot;
		}
		if (due->tick == now || due->link[head].next != head)
			break;
		due->tick++;
		due->row_left = due->tick % DUE_ROW == 0;
	}
	return n;
}

void due_hurry(struct due *due)
{
	struct due_link *link = due->link;

	for (uint32_t row = 0; row < DUE_ROWS; row++) {
		const uint32_t from = due->n + DUE_ROW + row,
			       to = bucket(due, due->tick + 1 + 2 * row);
		const uint32_t first = link[from].next, last = link[from].before;

		if (first == from)
			continue;
		/* in front of the bucket's head: behind what it has */
		link[first].before = link[to].before;
		link[link[to].before].next = first;
		link[last].next = to;
		link[to].before = last;
		link[from].before = link[from].next = from;
	}
}
