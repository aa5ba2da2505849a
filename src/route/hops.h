/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Next hops of a router by interface and address, the neighbours that tell their link addresses, and the links that
 * they lie on. A next hop is valid while its link is up and its neighbour has a link address: each change is a store to its
 * number (action/next_hop.h), however many flows go there.
 *
 * Next hops of a group (route/sets.h) have numbers of the group's own. One that was valid and is not any more leads
 * to another one of its group at once, so that a lost link moves all its flows by one store.
 *
 * A number that is no longer needed is used again when every worker has decided all its flows anew since.
 *
 * One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "action/next_hop.h"
#include "route/kernel.h"
#include "route/map.h"

#define HOPS_MAX_LINKS 256

/* A link of the kernel's that packets may leave by. */
struct hop_link {
	struct kernel_link kernel;
	uint16_t port; /* HOPS_NO_PORT: none of the router's */
	uint16_t vlan; /* of the tag, or 0 */
};
#define HOPS_NO_PORT UINT16_MAX

struct hop_neighbour {
	struct map_node node;
	struct kernel_neighbour kernel;
	bool has_route; /* a route to it alone was made: route/router.h */
};

/* The way out for packets to an interface. */
struct hop_at {
	uint32_t ifindex;
	uint8_t version;
	uint8_t address[16];
};

struct hop {
	struct map_node node;
	struct hop_at at;
	const void *group; /* NULL: everybody's who has no group */
	uint32_t number;
	uint32_t references;
	struct hop *next_of_group; /* a ring; itself without a group */
	bool was_valid;
};

struct hops_config {
	struct next_hops *next_hops;
	uint32_t first, n; /* numbers */
	/* which number of the decisions is in force for all flows of all workers; and that of now */
	uint64_t (*settled)(void *context);
	uint64_t (*now)(void *context);
	void *context;
	/* somebody should find out the link address; NULL: nobody does */
	void (*resolve)(void *resolve_context, const struct hop_at *at);
	void *resolve_context;
};

struct hops {
	struct hops_config config;
	struct hop_link links[HOPS_MAX_LINKS];
	unsigned n_links;
	struct map hops, neighbours;
	uint32_t *
		free; /* a ring of numbers, oldest first, and from which decisions on each is not used */
	uint64_t *free_since;
	uint32_t first_free, n_free;
	uint64_t full; /* times that there was no number */
	uint64_t changes;
};

int hops_init(struct hops *hops, const struct hops_config *config);
void hops_fini(struct hops *hops);

/* A link is there, changed, or (`port` HOPS_NO_PORT) no longer one of ours. False: there are too many. */
bool hops_set_link(struct hops *hops, const struct kernel_link *link, uint16_t port, uint16_t vlan);
void hops_remove_link(struct hops *hops, uint32_t ifindex);
/* NULL: it is none of a router's. */
const struct hop_link *hops_link(const struct hops *hops, uint32_t ifindex);

/*
 * A neighbour is there, changed, or gone. Returns what is known of it, NULL: nothing. One that is gone is not valid any more,
 * and is to be forgotten by the caller.
 */
struct hop_neighbour *hops_set_neighbour(
	struct hops *hops, const struct kernel_neighbour *neighbour, bool gone);
void hops_forget_neighbour(struct hops *hops, struct hop_neighbour *neighbour);
struct hop_neighbour *hops_neighbour(struct hops *hops, const struct hop_at *at);

/* Takes a next hop, or a reference to it. NULL: there is no number or no memory left. */
struct hop *hops_get(struct hops *hops, const struct hop_at *at, const void *group);
/* The members of one group get to know one another. */
void hops_join(struct hop *const *members, unsigned n);
/* Gives a reference back. */
void hops_put(struct hops *hops, struct hop *hop);
