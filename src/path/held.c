/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/held.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping.h"
#include "path/packet.h"

/* A list in use holds its last packet, whose next_held is the first: a ring. */
union list {
	struct rte_mbuf *last;
	uintptr_t next_free; /* number + 1 of the next free list; 0 ends */
};

struct held {
	uint32_t max_buffers;
	uint32_t buffers; /* held, in all */
	uint32_t count;	  /* packets held */
	uint32_t fresh;	  /* lists from here on were never used */
	uintptr_t free;	  /* number + 1 */
	union list *lists;
};

int held_create(struct held **out, uint32_t max_buffers)
{
	struct held *held = calloc(1, sizeof(*held));

	if (held == NULL)
		return -ENOMEM;
	held->max_buffers = max_buffers;
	if (max_buffers != 0) {
		held->lists = mapping_create(max_buffers * sizeof(*held->lists), 0);
		if (held->lists == NULL) {
			free(held);
			return -ENOMEM;
		}
	}
	*out = held;
	return 0;
}

void held_destroy(struct held *held)
{
	if (held == NULL)
		return;
	mapping_destroy(held->lists, held->max_buffers * sizeof(*held->lists));
	free(held);
}

static uint32_t new_list(struct held *held)
{
	uint32_t list;

	if (held->free == 0)
		return held->fresh++;
	list = (uint32_t)(held->free - 1);
	held->free = held->lists[list].next_free;
	return list;
}

uint32_t held_add(struct held *held, uint32_t list, struct rte_mbuf *packet)
{
	if (packet->nb_segs > held->max_buffers - held->buffers)
		return HELD_NONE;
	held->buffers += packet->nb_segs;
	held->count++;
	if (list == HELD_NONE) {
		list = new_list(held);
		packet_meta(packet)->next_held = packet;
	} else {
		struct rte_mbuf *last = held->lists[list].last;

		packet_meta(packet)->next_held = packet_meta(last)->next_held;
		packet_meta(last)->next_held = packet;
	}
	held->lists[list].last = packet;
	return list;
}

struct rte_mbuf *held_take(struct held *held, uint32_t *list)
{
	if (*list == HELD_NONE)
		return NULL;
	struct rte_mbuf *last = held->lists[*list].last;
	struct rte_mbuf *first = packet_meta(last)->next_held;

	held->buffers -= first->nb_segs;
	held->count--;
	if (first == last) {
		held->lists[*list].next_free = held->free;
		held->free = (uintptr_t)*list + 1;
		*list = HELD_NONE;
	} else {
		packet_meta(last)->next_held = packet_meta(first)->next_held;
	}
	return first;
}

uint32_t held_count(const struct held *held)
{
	return held->count;
}
