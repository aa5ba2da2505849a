/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The routes that sources have told, and what a follower is told of them. A source is the kernel, or a routing daemon that says
 * by FPM what it has given to the kernel. Of one version, table, prefix and metric the follower knows one route:
 *
 * - one that only the kernel can follow, where there is one; else
 * - the routing daemon's, since nothing of what it says is lost; else
 * - the kernel's first one: it may have several (fe80::/64 on each link).
 *
 * A route that names a nexthop object goes where that goes, once it is known; until then where it says itself; one that says
 * nothing either is not told.
 *
 * Messages of the kernel that do not fit what is known mean that some were lost, or that it has several routes of one key:
 * then a dump is to decide (KERNEL_ROUTES_UNSURE), and what is known stays until then. One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/hop_list.h"
#include "host/items.h"
#include "host/message.h"
#include "host/nexthops.h"

enum route_source {
	SOURCE_KERNEL,
	SOURCE_FPM,
	N_SOURCES,
};

#define KERNEL_ROUTES_UNSURE 1 /* a dump is to decide */

struct kernel_routes {
	struct items items;
	struct hop_lists lists;
	struct nexthops next_hops;
	const struct kernel_follower *follower;
	uint32_t order; /* of the route that was told last */
	uint32_t n[N_SOURCES];
	uint32_t n_only;  /* that the kernel alone can follow */
	uint64_t refused; /* there was no room for them */
	uint64_t cut;	  /* had more hops than count */
};

/* Takes memory for `max` routes. `follower` outlives it. 0 or -ENOMEM. */
int kernel_routes_init(
	struct kernel_routes *routes, uint32_t max, const struct kernel_follower *follower);
/* Accepts zeros. */
void kernel_routes_fini(struct kernel_routes *routes);

/* How a message came. */
struct route_stamp {
	enum route_source source;
	bool dump;	 /* in a dump: it is no newer than what was told since that began */
	uint32_t number; /* of the dump that goes on, or was last */
};

/* Returns 0 or KERNEL_ROUTES_UNSURE. */
int kernel_routes_take(struct kernel_routes *routes, const struct message_route *message, bool gone,
	const struct route_stamp *stamp);
int kernel_routes_take_next_hop(struct kernel_routes *routes,
	const struct message_next_hop *message, bool gone, const struct route_stamp *stamp);

/* Before the first dump of routes, and after the last. */
void kernel_routes_dump_begin(struct kernel_routes *routes);
void kernel_routes_dump_end(struct kernel_routes *routes);

/*
 * Removes what the source has not told again, looking at `n` of all routes from `*position` on. True: it is through. The
 * nexthop objects come at once, after the routes.
 */
bool kernel_routes_sweep(struct kernel_routes *routes, const struct route_stamp *stamp,
	uint32_t *position, uint32_t n);
void kernel_routes_sweep_next_hops(struct kernel_routes *routes, const struct route_stamp *stamp);
