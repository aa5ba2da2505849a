/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The routes of one router as workers read them: which verdict packets to an address have. A verdict is the number of an action
 * program (flow/verdict.h): to a next hop, to the kernel, or dropped.
 *
 * The table (route/fib.h) leads from an address to a verdict, or to a group of next hops with one verdict in each of its buckets;
 * a flow's hash chooses the bucket. Programs of next hops are all made at the start, one for each number, so that routes
 * come and go without any: what the number means is changed (action/next_hop.h).
 *
 * One thread, which follows the kernel (route/router.h), writes the table; workers read it under the RCU variable.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "action/action.h"
#include "action/programs.h"
#include "flow/verdict.h"
#include "packet/hash.h"
#include "route/fib.h"

/* Whether the source of a packet has to have a route back (RFC 3704). */
enum routes_source_check {
	ROUTES_SOURCE_OFF,
	ROUTES_SOURCE_LOOSE,  /* a route, by whatever port */
	ROUTES_SOURCE_STRICT, /* a route by the port that the packet came in by */
	ROUTES_N_SOURCE_CHECKS,
};
/* "off", "loose", "strict". */
const char *routes_source_check_name(enum routes_source_check check);

/* The programs that routers need, which all of them share. */
struct routes_verdicts {
	uint16_t punt[PUNT_N_REASONS];
	uint16_t discard[ACTION_N_DISCARDS];
	/* of next hop 0; that of number n is n more */
	uint16_t first_hop;
	uint32_t n_hops;
};

/* So many programs they are. */
#define ROUTES_VERDICTS(n_hops) (PUNT_N_REASONS + ACTION_N_DISCARDS + (n_hops))

/* Makes them, in a set of programs that is new but for the one that drops. Control's thread. Returns 0, -ENOSPC or -EINVAL. */
int routes_verdicts_init(
	struct routes_verdicts *verdicts, struct programs *programs, uint32_t n_hops);

#define ROUTE_BUCKETS 256

struct route_group {
	_Atomic uint16_t bucket[ROUTE_BUCKETS]; /* verdicts */
};

/* The table's values below this are verdicts; a group's is its number more. */
#define ROUTES_FIRST_GROUP UINT32_C(65536)

struct routes {
	/* set once */
	const struct routes_verdicts *verdicts;
	const struct next_hops *next_hops;
	const struct hash_secret *secret;
	struct fib *fib[2]; /* IPv4, IPv6 */
	struct route_group *groups;
	enum routes_source_check source_check;
	unsigned domain;
};

/* The verdict that a value of the table has for a flow with this hash; FIB_NO_ROUTE is one, too. */
static inline uint16_t routes_value_verdict(
	const struct routes *routes, uint32_t value, uint64_t flow_hash)
{
	if (value < ROUTES_FIRST_GROUP)
		return (uint16_t)value;
	if (value == FIB_NO_ROUTE)
		return routes->verdicts->punt[PUNT_NO_ROUTE];
	return atomic_load_explicit(&routes->groups[value - ROUTES_FIRST_GROUP]
					    .bucket[flow_hash >> 40 & (ROUTE_BUCKETS - 1)],
		memory_order_relaxed);
}

/*
 * Decides a flow of the router: verdicts that forward are replaced by those that its routes give, in each direction. With
 * strict checks of the source they stay, and each packet is looked up by itself.
 */
void routes_decide(
	const struct routes *routes, const struct flow_key *key, struct flow_decision *decision);

/* The verdict of one packet, which came in by `port` and is looked up by itself; what is no IP goes to the kernel. */
uint16_t routes_verdict_of(
	const struct routes *routes, const struct rte_mbuf *packet, unsigned port);

/* The same of its addresses: 16 bytes, of IPv4 the first 4. `port` counts with strict checks alone. */
uint16_t routes_verdict(const struct routes *routes, unsigned version, const uint8_t src[16],
	const uint8_t dst[16], uint64_t flow_hash, unsigned port);
