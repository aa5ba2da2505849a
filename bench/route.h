/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The files of the bench of the routing table share this: sets of routes, addresses under them, and the
 * contenders. One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "route/fib.h"

struct route_entry {
	struct route_prefix prefix;
	uint32_t next_hop;
};

/* All different, in the order of their addresses. */
struct route_set {
	unsigned version;
	struct route_entry *routes;
	uint32_t n;
};

/* "ipv4" and "ipv6"; ends with NULL. */
extern const char *const route_loads[];

/*
 * Makes a set: what a file has, or `n` routes by statistics of a real table; `n` 0: as many as the real
 * table had. Returns 0 or a negative errno, told on stderr. Freed by route_set_free().
 */
int route_set_make(struct route_set *set, const char *load, uint32_t n);
void route_set_free(struct route_set *set);

/* Random numbers, the same in each run. */
uint64_t route_random(uint64_t *state);

/* Addresses in host order for IPv4, in network order for IPv6. */
#define ROUTE_PART 1024
struct route_addresses {
	uint32_t v4[ROUTE_PART];
	uint8_t v6[ROUTE_PART][16];
};

/* Each under a route by chance, random where that does not ask. */
void route_addresses_draw(
	struct route_addresses *addresses, const struct route_set *set, uint64_t *random);

/* A contender: an empty table for a set. */
struct route_side {
	const char *name;
	/* DPDK's has so many percent more memory for longer prefixes than it should need */
	int (*create)(void **side, const struct route_set *set, uint32_t spare);
	void (*destroy)(void *side);
	/* 0 or more, or a negative errno */
	int (*add)(void *side, const struct route_prefix *prefix, uint32_t next_hop);
	int (*delete)(void *side, const struct route_prefix *prefix);
	/* looks `n` addresses from the `from`th on up, up to 64; returns a sum of next hops */
	uint64_t (*lookup)(void *side, const struct route_addresses *addresses, unsigned from,
		unsigned n, uint32_t *next_hops);
	size_t (*memory)(void *side);
};

/* Ours, the same with direct entries, and DPDK's for each IP version. */
extern const struct route_side route_ours, route_direct, route_rte_fib, route_rte_fib6;

/* The memory of DPDK that contenders use lies on this socket. */
extern int route_socket;
