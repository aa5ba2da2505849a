/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A mirror of what the kernel knows: messages go in, and a follower is told what differs. It reads nothing by itself, knows no
 * sockets and no clock: host/watch.h and host/fpm.h feed it.
 *
 * A dump tells everything again. What it has not named, and no message has told since it began, is removed by the sweep
 * after it and not before, so that nothing that still holds is ever withdrawn. Messages that show that others were lost, or that
 * the kernel removes routes without a message (a link or an address went), ask for a dump: MIRROR_UNSURE.
 *
 * Its memory is bounded: routes by a number of the configuration, everything else by numbers that no router has. What has no
 * room is counted, and is not followed. One thread's.
 */

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/kernel_routes.h"
#include "route/kernel.h"

#define MIRROR_UNSURE KERNEL_ROUTES_UNSURE

#define MIRROR_MAX_ROUTES 2000000u

struct mirror;

struct mirror_counts {
	uint32_t links, addresses, neighbours;
	uint32_t routes[N_SOURCES];
	uint32_t only_kernel;	/* of these routes: what the kernel alone can follow */
	uint32_t foreign_rules; /* policy rules (`ip rule`) that are not followed */
	uint32_t next_hops;	/* objects */
	uint64_t refused;	/* had no room */
	uint64_t cut;		/* routes and groups with more hops than count */
	uint64_t malformed;	/* messages that could not be read */
};

/* `max_routes`: of all sources together. 0, or -ENOMEM with a line. */
int mirror_create(struct mirror **mirror, uint32_t max_routes,
	const struct kernel_follower *follower, struct error *error);
/* Accepts NULL. */
void mirror_destroy(struct mirror *mirror);

/*
 * Takes one message; of FPM only those of routes and nexthop objects count. `dump`: the kernel tells it as part of a dump. Returns 0, MIRROR_UNSURE, or
 * -EBADMSG: it is malformed, and changes nothing.
 */
int mirror_take(
	struct mirror *mirror, enum route_source source, const struct nlmsghdr *message, bool dump);

/* A dump of the source's begins: all that it knows is to be named again. */
void mirror_begin(struct mirror *mirror, enum route_source source);
/*
 * The dump is complete: sweeps, `n` routes at a time. Returns true when it is through; then the follower has been told synced(),
 * if the source is the kernel.
 */
bool mirror_sweep(struct mirror *mirror, enum route_source source, uint32_t n);

void mirror_counts(const struct mirror *mirror, struct mirror_counts *counts);
/* The ifindex of the link with this name; 0: there is none. */
uint32_t mirror_ifindex(const struct mirror *mirror, const char *name);
/* One policy rule that is not followed, as text; false: there is none. */
bool mirror_foreign_rule(const struct mirror *mirror, char *text, size_t size);
