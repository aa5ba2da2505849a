/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A fuzzer's bytes as what an application hands to a driver: items with spec, last and mask, actions with
 * their conf. Every structure lies in a heap buffer of rte_flow's size for its type, every list in one of
 * its own size, so that whoever reads beyond is caught.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/match/pattern.h"

#define KNOWN_TYPES 0x40

static inline void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

struct input {
	const uint8_t *data;
	size_t size;
};

static inline unsigned take_byte(struct input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* A buffer of its own, zeros where the input has ended. */
static inline void *take_bytes(struct input *input, size_t n)
{
	uint8_t *bytes = malloc(n);

	if (n > 0 && bytes == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)take_byte(input);
	return bytes;
}

static const size_t sizes[KNOWN_TYPES] = {
	[RTE_FLOW_ITEM_TYPE_ANY] = sizeof(struct rte_flow_item_any),
	[RTE_FLOW_ITEM_TYPE_PORT_ID] = sizeof(struct rte_flow_item_port_id),
	[RTE_FLOW_ITEM_TYPE_PORT_REPRESENTOR] = sizeof(struct rte_flow_item_ethdev),
	[RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT] = sizeof(struct rte_flow_item_ethdev),
	[RTE_FLOW_ITEM_TYPE_ETH] = sizeof(struct rte_flow_item_eth),
	[RTE_FLOW_ITEM_TYPE_VLAN] = sizeof(struct rte_flow_item_vlan),
	[RTE_FLOW_ITEM_TYPE_IPV4] = sizeof(struct rte_flow_item_ipv4),
	[RTE_FLOW_ITEM_TYPE_IPV6] = sizeof(struct rte_flow_item_ipv6),
	[RTE_FLOW_ITEM_TYPE_IPV6_FRAG_EXT] = sizeof(struct rte_flow_item_ipv6_frag_ext),
	[RTE_FLOW_ITEM_TYPE_TCP] = sizeof(struct rte_flow_item_tcp),
	[RTE_FLOW_ITEM_TYPE_UDP] = sizeof(struct rte_flow_item_udp),
	[RTE_FLOW_ITEM_TYPE_SCTP] = sizeof(struct rte_flow_item_sctp),
	[RTE_FLOW_ITEM_TYPE_ICMP] = sizeof(struct rte_flow_item_icmp),
	[RTE_FLOW_ITEM_TYPE_ICMP6] = sizeof(struct rte_flow_item_icmp6),
	[RTE_FLOW_ITEM_TYPE_VXLAN] = sizeof(struct rte_flow_item_vxlan),
	[RTE_FLOW_ITEM_TYPE_GENEVE] = sizeof(struct rte_flow_item_geneve),
	[RTE_FLOW_ITEM_TYPE_GTP] = sizeof(struct rte_flow_item_gtp),
	[RTE_FLOW_ITEM_TYPE_GTPU] = sizeof(struct rte_flow_item_gtp),
	[RTE_FLOW_ITEM_TYPE_GRE] = sizeof(struct rte_flow_item_gre),
	[RTE_FLOW_ITEM_TYPE_GRE_KEY] = sizeof(rte_be32_t),
};

struct list {
	struct rte_flow_item *items;
	unsigned n; /* in memory */
	bool plain; /* each has spec and mask, or nothing, and no last */
};

static inline void take_item(struct input *input, struct rte_flow_item *item, struct list *list)
{
	unsigned type = take_byte(input);
	unsigned parts;
	size_t size = 0;

	if (type >= KNOWN_TYPES) {
		void *wide = take_bytes(input, sizeof(item->type));

		memcpy(&item->type, wide, sizeof(item->type));
		free(wide);
	} else {
		item->type = (enum rte_flow_item_type)type;
	}
	if ((unsigned)item->type < KNOWN_TYPES)
		size = sizes[item->type];
	parts = take_byte(input);
	item->spec = parts & 1 ? take_bytes(input, size) : NULL;
	item->last = parts & 2 ? take_bytes(input, size) : NULL;
	item->mask = parts & 4 ? take_bytes(input, size) : NULL;
	if ((parts & 7) != 0 && (parts & 7) != 5 && item->type != RTE_FLOW_ITEM_TYPE_VOID)
		list->plain = false;
}

static inline struct list take_list(struct input *input)
{
	bool without_end = take_byte(input) & 2;
	unsigned n = take_byte(input) % SIM_MAX_ITEMS;
	struct list list = {.n = without_end ? SIM_MAX_ITEMS : n + 1, .plain = true};

	list.items = calloc(list.n, sizeof(*list.items));
	if (list.items == NULL)
		abort();
	for (unsigned i = 0; i < list.n; i++) {
		if (i < n)
			take_item(input, &list.items[i], &list);
		else if (without_end)
			list.items[i].type = RTE_FLOW_ITEM_TYPE_VOID;
	}
	return list;
}

static inline void free_part(const void *part)
{
	free((void *)(uintptr_t)part);
}

static inline void free_list(struct list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		free_part(list->items[i].spec);
		free_part(list->items[i].last);
		free_part(list->items[i].mask);
	}
	free(list->items);
}
