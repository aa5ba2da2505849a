/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the kernel answers by rtnetlink: one interface, or all of them with their addresses and default
 * routes. Names, states and numbers of one interface come in one answer, so that nothing can change
 * between them. Interfaces are those of the calling thread's network namespace.
 */

#include <arpa/inet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define NETLINK_KIND_MAX 16
#define NETLINK_ADDRESS_MAX (INET6_ADDRSTRLEN + 4)

struct netlink_link {
	unsigned index;
	unsigned mtu;
	bool up;      /* set up by the administrator */
	bool running; /* and its link is up */
	bool alone; /* its siblings on one parent do not hear it: a macvlan of another mode than bridge */
	unsigned master; /* of what it is a member: a bridge, a bond; 0: of nothing */
	/* its parent (of a VLAN), its other end (of a veth), or two of its own (of hsr); 0: none */
	unsigned lower[2];
	/* the namespace that `lower` lies in, by this one's number for it; negative: the same */
	int lower_space;
	char name[IF_NAMESIZE];
	char kind[NETLINK_KIND_MAX]; /* "bridge", "veth"; "" for a network card */
};

struct netlink_address {
	unsigned index;			/* the interface that has it */
	char text[NETLINK_ADDRESS_MAX]; /* "10.0.0.5/24" */
};

/* An interface that a default route leads to. */
struct netlink_route {
	unsigned index;
};

/* Of one moment, or nearly: each list is one answer of the kernel. */
struct netlink_state {
	unsigned n_links, n_addresses, n_routes;
	struct netlink_link *links;
	struct netlink_address *addresses; /* none of the link alone (fe80::/10) */
	struct netlink_route *routes;
};

/* The interface with this index. 0, -ENODEV (there is none), or another negative errno: nothing learned. */
int netlink_link(struct netlink_link *link, unsigned index);

/*
 * All interfaces, addresses and default routes. 0, or a negative errno and an empty state;
 * netlink_state_fini() frees it.
 */
int netlink_state_init(struct netlink_state *state);
void netlink_state_fini(struct netlink_state *state);
