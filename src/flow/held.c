/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/held.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping.h"
#include "packet/meta.h"

struct list {
	struct rte_mbuf *last; /* whose next_held is the first: a ring */
	uint32_t n;
	uint32_t next; /* of those that are ready, or free; HELD_NONE ends */
	struct fragment_ports ports;
	uint8_t fate; /* enum held_fate */
};

struct held {
	uint32_t max_buffers;
	uint32_t max_in_list;
	uint32_t buffers; /* held, in all */
	uint32_t count;	  /* packets held */
	uint32_t fresh;	  /* lists from here on were never used */
	uint32_t free;
	uint32_t first_ready, last_ready;
	struct rte_mbuf *oldest, *newest; /* of all */
	struct list *lists;
};

int held_create(struct held **out, uint32_t max_buffers, uint32_t max_in_list)
{
	struct held *held = calloc(1, sizeof(*held));

	if (held == NULL)
		return -ENOMEM;
	*held = (struct held){
		.max_buffers = max_buffers,
		.max_in_list = max_in_list,
		.free = HELD_NONE,
		.first_ready = HELD_NONE,
		.last_ready = HELD_NONE,
	};
	if (max_buffers != 0) {
		held->lists = mapping_create(max_buffers * sizeof(*held->lists), MAPPING_POPULATE);
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

bool held_could(const struct held *held, const struct rte_mbuf *packet)
{
	return packet->nb_segs <= held->max_buffers;
}

bool held_has_room(const struct held *held, const struct rte_mbuf *packet)
{
	return packet->nb_segs <= held->max_buffers - held->buffers;
}

static uint32_t new_list(struct held *held)
{
	uint32_t list = held->free;

	if (list == HELD_NONE)
		list = held->fresh++;
	else
		held->free = held->lists[list].next;
	held->lists[list] = (struct list){.next = HELD_NONE, .fate = HELD_WAITS};
	return list;
}

/* The chain of all, in the order of their arrival. */
static void chain(struct held *held, struct rte_mbuf *packet)
{
	packet_meta(packet)->older = held->newest;
	packet_meta(packet)->newer = NULL;
	if (held->newest == NULL)
		held->oldest = packet;
	else
		packet_meta(held->newest)->newer = packet;
	held->newest = packet;
}

static void unchain(struct held *held, struct rte_mbuf *packet)
{
	struct rte_mbuf *older = packet_meta(packet)->older, *newer = packet_meta(packet)->newer;

	if (older == NULL)
		held->oldest = newer;
	else
		packet_meta(older)->newer = newer;
	if (newer == NULL)
		held->newest = older;
	else
		packet_meta(newer)->older = older;
}

uint32_t held_add(struct held *held, uint32_t list, struct rte_mbuf *packet)
{
	if (list != HELD_NONE && held->lists[list].n == held->max_in_list)
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
	held->lists[list].n++;
	packet_meta(packet)->list = list;
	chain(held, packet);
	return list;
}

/* Takes the first packet of a list, and the list with its last one. */
static struct rte_mbuf *take_first(struct held *held, uint32_t number)
{
	struct list *list = &held->lists[number];
	struct rte_mbuf *first = packet_meta(list->last)->next_held;

	packet_meta(list->last)->next_held = packet_meta(first)->next_held;
	unchain(held, first);
	held->buffers -= first->nb_segs;
	held->count--;
	list->n--;
	return first;
}

static void give_back(struct held *held, uint32_t number)
{
	held->lists[number].next = held->free;
	held->free = number;
}

void held_settle(struct held *held, uint32_t list, enum held_fate fate, struct fragment_ports ports)
{
	held->lists[list].fate = (uint8_t)fate;
	held->lists[list].ports = ports;
	if (held->first_ready == HELD_NONE)
		held->first_ready = list;
	else
		held->lists[held->last_ready].next = list;
	held->last_ready = list;
}

struct rte_mbuf *held_take_ready(
	struct held *held, enum held_fate *fate, struct fragment_ports *ports)
{
	uint32_t number = held->first_ready;

	if (number == HELD_NONE)
		return NULL;
	struct list *list = &held->lists[number];
	struct rte_mbuf *packet = take_first(held, number);

	*fate = (enum held_fate)list->fate;
	*ports = list->ports;
	if (list->n == 0) {
		held->first_ready = list->next;
		give_back(held, number);
	}
	return packet;
}

struct rte_mbuf *held_oldest(const struct held *held)
{
	return held->oldest;
}

struct rte_mbuf *held_take_oldest(struct held *held, bool *last)
{
	uint32_t number = packet_meta(held->oldest)->list;
	struct rte_mbuf *packet = take_first(held, number);

	*last = held->lists[number].n == 0;
	if (*last)
		give_back(held, number);
	return packet;
}

uint32_t held_count(const struct held *held)
{
	return held->count;
}
