/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Nexthop objects (`ip nexthop`): a number that stands for a hop or for a group of others, so that many routes change by one
 * message. Each space has numbers of its own: the kernel, and each
 * connection of a routing daemon, which may give a number to something else than the one before. An object that routes name is there before it is known, and after it is
 * gone. One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/hop_list.h"
#include "host/items.h"
#include "host/message.h"

struct nexthop {
	struct item item;
	uint32_t id, space; /* its key */
	bool known;
	bool is_group;
	bool cut;
	enum kernel_route_kind kind; /* as the object itself says */
	/* what it stands for now */
	enum kernel_route_kind resolved;
	struct hop_list *hops; /* NULL: none */
	uint32_t routes;       /* for host/kernel_routes.h: the first route that names it, plus 1 */
	unsigned n_members;
	struct message_member *members;
	struct kernel_hop hop;
};

/* The hops that an object stood for before. */
struct nexthop_before {
	bool known;
	enum kernel_route_kind resolved;
	struct hop_list *hops;
};

struct nexthops {
	struct items items;
	struct hop_lists *lists; /* outlives it */
	/* an object stands for something else now; called in nexthops_take() and nexthops_forget() */
	void (*changed)(
		void *context, const struct nexthop *next_hop, const struct nexthop_before *before);
	void *context;
};

/* Sets `items` and `lists`. 0 or -ENOMEM. */
int nexthops_init(struct nexthops *next_hops, struct hop_lists *lists, uint32_t max);
void nexthops_fini(struct nexthops *next_hops);

/* The object with this number, made where it is not there; NULL: there is no room for more. */
struct nexthop *nexthops_get(struct nexthops *next_hops, uint32_t space, uint32_t id);
/* The object; NULL: there is none. */
struct nexthop *nexthops_find(const struct nexthops *next_hops, uint32_t space, uint32_t id);
/* Takes what a message says of an object. Returns the object; NULL: there is no room. */
struct nexthop *nexthops_take(
	struct nexthops *next_hops, uint32_t space, const struct message_next_hop *message);
/* It is gone. */
void nexthops_forget(struct nexthops *next_hops, struct nexthop *next_hop);
/* The last route that named it does so no more. */
void nexthops_unused(struct nexthops *next_hops, struct nexthop *next_hop);
