/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * All routes of a router by their prefixes, from all sources: of a prefix with several, the best one is in force. Better is
 * the table that the kernel asks first, then the lower metric.
 *
 * One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "route/kernel.h"
#include "route/map.h"
#include "route/prefix.h"
#include "route/sets.h"

/* The source of a route; for the same prefix, one of the kernel's is better than a neighbour. */
enum rib_source {
	RIB_KERNEL,
	RIB_ADDRESS,   /* an address of the router's own */
	RIB_NEIGHBOUR, /* a neighbour on a link */
};

struct rib_route {
	struct rib_route *next; /* the next best */
	uint32_t table, metric;
	uint8_t kind; /* enum kernel_route_kind */
	uint8_t protocol;
	uint8_t source;	     /* enum rib_source */
	uint8_t rank;	     /* of source and table; lower is better */
	uint32_t holders;    /* of an address: links that have it */
	struct hop_set *set; /* NULL: it has no next hops */
};

struct rib_prefix {
	struct map_node node;
	struct route_prefix prefix;
	struct rib_route *best;
	uint32_t value; /* in the routing table, or FIB_NO_ROUTE */
};

struct rib {
	struct map prefixes;
	uint64_t n_routes;
	uint32_t n_length[2][129]; /* prefixes of each length that are not neighbours' alone */
};

int rib_init(struct rib *rib);
/* The objects that routes point to stay the caller's. */
void rib_fini(struct rib *rib);

struct rib_prefix *rib_find(const struct rib *rib, const struct route_prefix *prefix);
/* Finds or makes it; NULL: no memory. */
struct rib_prefix *rib_prefix(struct rib *rib, const struct route_prefix *prefix);
/* Without routes it is removed. */
void rib_tidy(struct rib *rib, struct rib_prefix *prefix);

/* The route of that source, table and metric; NULL: there is none. */
struct rib_route *rib_route(
	const struct rib_prefix *prefix, enum rib_source source, uint32_t table, uint32_t metric);
/* Puts a route in its place, which it owns from then on; or takes it out. */
void rib_add(struct rib *rib, struct rib_prefix *prefix, struct rib_route *route);
void rib_remove(struct rib *rib, struct rib_prefix *prefix, struct rib_route *route);

/* The longest prefix with a route other than a neighbour's that holds an address; NULL: none. */
struct rib_prefix *rib_match(const struct rib *rib, unsigned version, const uint8_t address[16]);
/* Its best route that is no neighbour's. */
struct rib_route *rib_best(const struct rib_prefix *prefix);
