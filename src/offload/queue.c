/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/queue.h"

#include <string.h>

#include <rte_common.h>

/* The first entry that is at least so busy: before it a new one goes, behind all its equals in rank. */
static unsigned place_of(const struct queue *queue, uint32_t rate)
{
	unsigned from = 0, to = queue->n;

	while (from < to) {
		unsigned middle = (from + to) / 2;

		if (queue->entry[middle].rate < rate)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static void move(struct queue *queue, unsigned to, unsigned from, unsigned n)
{
	memmove(&queue->entry[to], &queue->entry[from], n * sizeof(queue->entry[0]));
}

enum queue_answer queue_put(
	struct queue *queue, struct queue_entry entry, struct queue_entry *displaced)
{
	unsigned place = place_of(queue, entry.rate);

	if (queue->n < QUEUE_SIZE) {
		move(queue, place + 1, place, queue->n - place);
		queue->entry[place] = entry;
		queue->n++;
		return QUEUE_TAKEN;
	}
	/* twice as busy: each change of places costs more than it brings where all are much alike */
	if (place == 0 || entry.rate / 2 < queue->entry[0].rate)
		return QUEUE_FULL;
	*displaced = queue->entry[0];
	move(queue, 0, 1, place - 1);
	queue->entry[place - 1] = entry;
	return QUEUE_TOOK_PLACE;
}

static bool queue_is_same(const struct queue_entry *a, const struct queue_entry *b)
{
	return a->position == b->position && a->tag == b->tag && a->from == b->from;
}

void queue_raise(struct queue *queue, const struct queue_entry *entry)
{
	unsigned at = 0;

	while (at < queue->n && !queue_is_same(&queue->entry[at], entry))
		at++;
	if (at == queue->n || queue->entry[at].rate >= entry->rate)
		return;
	unsigned place = place_of(queue, entry->rate) - 1;

	move(queue, at, at + 1, place - at);
	queue->entry[place] = *entry;
}

uint32_t queue_needs(const struct queue *queue)
{
	if (queue->n < QUEUE_SIZE)
		return 0;
	return (uint32_t)RTE_MAX(1u, RTE_MIN(2 * (uint64_t)queue->entry[0].rate, UINT32_MAX));
}

bool queue_take(struct queue *queue, struct queue_entry *entry)
{
	if (queue->n == 0)
		return false;
	*entry = queue->entry[--queue->n];
	return true;
}
