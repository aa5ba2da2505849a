/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Nexthop objects (`ip nexthop`): a number that stands for a hop or for a group of others, so that many routes change by one
 * message. Each source has numbers of its own. An object that routes name is there before it is known, and after it is
 * gone. One thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "host/hops.h"
#include "host/items.h"
#include "host/message.h"

struct next_hop {
	struct item item;
	uint32_t id, source; /* its key */
	bool known;
	bool is_group;
	bool cut;
	enum kernel_route_kind kind; /* as the object itself says */
	/* what it stands for now */
	enum kernel_route_kind resolved;
	struct hops *hops; /* NULL: none */
	uint32_t routes;   /* for host/routes.h: the first route that names it, plus 1 */
	unsigned n_members;
	struct message_member *members;
	struct kernel_hop hop;
};

struct next_hops {
	struct items items;
	struct hop_lists *lists; /* outlives it */
	/* an object stands for something else now; called in next_hops_take() and next_hops_forget() */
	void (*changed)(void *context, struct next_hop *next_hop);
	void *context;
};

/* Sets `items` and `lists`. 0 or -ENOMEM. */
int next_hops_init(struct next_hops *next_hops, struct hop_lists *lists, uint32_t max);
void next_hops_fini(struct next_hops *next_hops);

/* The object with this number, made where it is not there; NULL: there is no room for more. */
struct next_hop *next_hops_get(struct next_hops *next_hops, uint32_t source, uint32_t id);
/* The object; NULL: there is none. */
struct next_hop *next_hops_find(const struct next_hops *next_hops, uint32_t source, uint32_t id);
/* What is said of an object. Returns it; NULL: there is no room. */
struct next_hop *next_hops_take(
	struct next_hops *next_hops, uint32_t source, const struct message_next_hop *message);
/* It is gone. */
void next_hops_forget(struct next_hops *next_hops, struct next_hop *next_hop);
/* The last route that named it does so no more. */
void next_hops_unused(struct next_hops *next_hops, struct next_hop *next_hop);
