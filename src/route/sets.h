/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Sets of next hops that routes of a router have, each once, and what the routing table holds for a set: a verdict, or a
 * group of several next hops.
 *
 * A group's buckets are dealt by rendezvous hashing (Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit
 * Rates", IEEE/ACM ToN 6(1), 1998), weighted: each bucket goes to the member with the best draw. So a member that leaves
 * gives away its own buckets and no others move, and one that comes takes from all.
 *
 * One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "route/hops.h"
#include "route/routes.h"

struct hop_set {
	struct map_node node;
	uint32_t references;
	uint32_t value; /* in the routing table */
	uint32_t group; /* SETS_NO_GROUP: it needs none */
	bool starved;	/* there was no group or no next hop for it */
	unsigned n;
	unsigned n_taken; /* of `taken` */
	struct hop *taken[KERNEL_HOPS];
	struct kernel_hop hops[];
};
#define SETS_NO_GROUP UINT32_MAX

struct sets {
	struct hops *hops;
	struct routes *routes;
	struct map sets;
	uint32_t n_groups;
	uint32_t *free;
	uint64_t *free_since;
	uint32_t first_free, n_free;
	uint32_t n_starved;
	uint64_t full; /* times that there was no group or no next hop: then the kernel forwards */
};

/* `n_groups`: those of routes->groups. */
int sets_init(struct sets *sets, struct hops *hops, struct routes *routes, uint32_t n_groups);
void sets_fini(struct sets *sets);

/* Finds or makes the set, and takes a reference. NULL: no memory. */
struct hop_set *sets_get(struct sets *sets, const struct kernel_hop *hops, unsigned n);
void sets_put(struct sets *sets, struct hop_set *set);

/* Works out again what found no room. True: the value of a set has changed. */
bool sets_retry(struct sets *sets);

/* A link came, went or changed its place: works out again what sets with it are. True: the value of one has changed. */
bool sets_link_changed(struct sets *sets, uint32_t ifindex);
