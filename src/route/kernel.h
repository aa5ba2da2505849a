/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Links, addresses, neighbours and routes of the kernel, as a follower is told. The host module reads it from
 * netlink (host/); a router (route/router.h) follows.
 *
 * One thread calls a follower. A route of the same version, table, prefix and metric replaces the one before. An object
 * that was not told again in a dump is gone: the reader of the kernel finds out by mark and sweep, and says so.
 */

#include <stdbool.h>
#include <stdint.h>

/* Next hops of one route, at most. */
#define KERNEL_HOPS 64

enum kernel_route_kind {
	KERNEL_UNICAST,
	KERNEL_LOCAL,
	KERNEL_BROADCAST,
	KERNEL_MULTICAST,
	KERNEL_BLACKHOLE,
	KERNEL_UNREACHABLE,
	KERNEL_PROHIBIT,
	KERNEL_ONLY, /* not followed: the kernel forwards by itself (encapsulation and the like) */
};

struct kernel_hop {
	uint32_t ifindex;
	uint8_t version; /* of the gateway: 0 (none: on the link), 4 or 6 */
	uint8_t gateway[16];
	uint16_t weight;
	bool dead;
};

struct kernel_route {
	uint8_t version, length;
	uint8_t prefix[16];
	uint32_t table, metric;
	enum kernel_route_kind kind;
	uint8_t protocol;
	unsigned n_hops;
	const struct kernel_hop *hops;
};

struct kernel_link {
	uint32_t ifindex;
	char name[16];
	uint8_t mac[6];
	uint32_t mtu;
	bool up, carrier;
	uint32_t parent; /* of a VLAN device: the ifindex below, else 0 */
	uint16_t vlan;
	uint32_t vrf_table; /* of its l3mdev master, else 0 */
};

struct kernel_address {
	uint32_t ifindex;
	uint8_t version, length;
	uint8_t address[16];
	bool tentative;
};

struct kernel_neighbour {
	uint32_t ifindex;
	uint8_t version;
	uint8_t address[16];
	uint8_t mac[6];
	/* has a MAC that may be used: REACHABLE, STALE, DELAY, PROBE, PERMANENT, NOARP */
	bool valid;
	bool reachable;
};

/* `gone`: the thing was deleted; then only what names it counts. */
struct kernel_follower {
	void *context;
	void (*link)(void *context, const struct kernel_link *link, bool gone);
	void (*address)(void *context, const struct kernel_address *address, bool gone);
	void (*neighbour)(void *context, const struct kernel_neighbour *neighbour, bool gone);
	void (*route)(void *context, const struct kernel_route *route, bool gone);
	/* the first dump, and each later one, is complete */
	void (*synced)(void *context);
};
