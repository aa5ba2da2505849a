/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A router follows the kernel: links, addresses, neighbours and routes as they are told become next hops (route/hops.h) and
 * the table that workers look up (route/routes.h).
 *
 * A route without a gateway has a next hop for each address: every neighbour that is known on its link has a route of its own,
 * and packets to the others go to the kernel, which finds them out. Local and broadcast addresses go to the kernel, too, and
 * whatever it alone can answer or forward.
 *
 * A change is in force for new flows when the call returns. Those that live are decided again: the number of the decisions
 * (`generation`) is raised.
 *
 * The follower's functions are one thread's. Those that look a router up may be called by another one; a lock, which no worker
 * takes, is between them.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "route/kernel.h"
#include "route/prefix.h"
#include "route/routes.h"

#define ROUTER_MAX_PORTS 32
#define ROUTER_NAME_MAX 32

/* Groups of next hops of a router, at most. */
#define ROUTER_GROUPS 1024

/* The kernel's table `main`, which stands for the tables that the kernel asks without a VRF. */
#define ROUTER_TABLE_MAIN 254

struct router_port_config {
	char name[16];	 /* of its TAP */
	uint16_t number; /* in the topology */
};

struct router_config {
	char name[ROUTER_NAME_MAX];
	unsigned domain;
	uint32_t table; /* ROUTER_TABLE_MAIN, or that of a VRF */
	enum routes_source_check source_check;
	unsigned n_ports;
	struct router_port_config ports[ROUTER_MAX_PORTS];
	uint64_t max_routes[2];	    /* of IPv4 and IPv6, that memory is taken for */
	uint32_t first_hop, n_hops; /* numbers of next hops that are the router's */
	const struct routes_verdicts *verdicts;
	struct next_hops *next_hops;
	const struct hash_secret *secret;
	struct rte_rcu_qsbr *qsbr;
	/* raised by the router when something has changed; and up to which all workers have decided all flows */
	atomic_uint_fast64_t *generation;
	uint64_t (*settled)(void *context);
	/* the link address of a port is this one from now on; may be NULL */
	void (*set_mac)(void *context, unsigned port, const uint8_t mac[6]);
	void *context;
};

struct router;

/* Returns 0 or a negative errno with a line. */
int router_create(struct router **router, const struct router_config *config, struct error *error);
/* Accepts NULL. The workers have stopped. */
void router_destroy(struct router *router);

const struct router_config *router_config(const struct router *router);
/* The view of a router that its workers read. */
struct routes *router_routes(struct router *router);

/* The follower that is to be told of the kernel. */
struct kernel_follower router_follower(struct router *router);

/*
 * Called on the follower's thread when the link address of a next hop is not known: the kernel should find it out. NULL, and by
 * default: nobody is asked.
 */
typedef void (*router_resolve_fn)(
	void *context, uint32_t ifindex, unsigned version, const uint8_t address[16]);
void router_on_resolve(struct router *router, router_resolve_fn resolve, void *context);

/* ------------------------- any thread */

/* Asks for all neighbours of next hops in use that are not known to be reachable now: once in some seconds. */
void router_use_neighbours(struct router *router);

struct router_counters {
	uint64_t routes, neighbours, links;
	uint64_t prefixes[2];
	uint64_t hops, groups; /* in use */
	uint64_t changes;      /* of the table */
	uint64_t hop_changes;
	uint64_t refused; /* prefixes that found no room in the table */
	uint64_t
		full; /* sets of next hops that found no number: the kernel forwards their packets */
	uint64_t dumps; /* of the kernel's state that were complete */
};
void router_counters(struct router *router, struct router_counters *counters);

/* A next hop of a route. */
struct router_hop_view {
	uint32_t ifindex;
	char link[16];
	uint8_t version; /* of the gateway; 0: on the link */
	uint8_t gateway[16];
	uint16_t weight;
	bool ours;	 /* it goes by a port of the router's; else the kernel forwards */
	bool known;	 /* the link address is known, and the link is up */
	uint32_t number; /* of the next hop, where it has one; else UINT32_MAX */
	uint16_t port, vlan;
	uint8_t mac[6];
	uint32_t mtu;
};

struct router_route_view {
	struct route_prefix prefix;
	uint32_t table, metric;
	enum kernel_route_kind kind;
	uint8_t protocol;
	bool best;	/* else there is a better one to this prefix */
	bool neighbour; /* made of a neighbour on a link; */
	bool address;	/* or of an address of the router's */
	unsigned n_hops;
	struct router_hop_view hops[KERNEL_HOPS];
};

/* "unicast", "local", ... */
const char *kernel_route_kind_name(enum kernel_route_kind kind);

/* The route that packets to an address take. False: none. */
bool router_look_up(struct router *router, unsigned version, const uint8_t address[16],
	struct router_route_view *route);

/* The meaning of the verdict of a flow. */
enum router_way_kind {
	ROUTER_WAY_OTHER, /* a rule's, or none: each packet is looked up */
	ROUTER_WAY_HOP,
	ROUTER_WAY_PUNT,
	ROUTER_WAY_DISCARD,
};
struct router_way {
	enum router_way_kind kind;
	enum punt_reason punt;
	enum action_discard discard;
	struct router_hop_view hop;
};
void router_way_of(struct router *router, uint16_t verdict, struct router_way *way);
/* "martian", "blackhole", "source". */
const char *action_discard_name(enum action_discard discard);

/* Told of a route; false ends the walk. It must not call the router. */
typedef bool (*router_route_fn)(void *context, const struct router_route_view *route);

/*
 * The prefixes that have routes, in their order, IPv4 first: all, or those in this one. Says how many; the caller frees them. NULL: no
 * memory.
 */
size_t router_prefixes(
	struct router *router, const struct route_prefix *within, struct route_prefix **prefixes);
/* The routes to exactly this prefix, the best first. */
void router_routes_to(struct router *router, const struct route_prefix *prefix,
	router_route_fn each, void *context);

struct router_neighbour_view {
	struct kernel_neighbour kernel;
	char link[16];
	bool used; /* packets to its address go to it straight */
};
typedef bool (*router_neighbour_fn)(void *context, const struct router_neighbour_view *neighbour);
void router_neighbours(struct router *router, router_neighbour_fn each, void *context);
