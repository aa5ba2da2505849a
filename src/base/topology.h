/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Which ports forward to one another. Every port belongs to one domain, a set of ports, and has a peer in it: the port
 * that its packets go to unless an action says otherwise. A wire is a domain of two ports, each the other's peer. A
 * router is a domain of any number of ports, whose packets go where their next hops are.
 *
 * Ports and domains are numbered in the order in which they are added, from 0. A port also has a place in its domain,
 * from 0, in the order in which the domain was given. Of a wire these two places are its sides.
 *
 * A topology is filled before anybody reads it, and never changed after that: any thread may read it. It owns no
 * memory. Nothing outside of this file knows which numbers the ports of a domain have.
 */

#include <stdbool.h>
#include <stdint.h>

#define TOPOLOGY_MAX_PORTS 32
#define TOPOLOGY_MAX_DOMAINS 16

struct topology {
	uint8_t n_ports, n_domains;
	uint8_t domain[TOPOLOGY_MAX_PORTS];  /* of each port */
	uint8_t place[TOPOLOGY_MAX_PORTS];   /* of each port, in its domain */
	uint8_t peer[TOPOLOGY_MAX_PORTS];    /* of each port */
	uint8_t size[TOPOLOGY_MAX_DOMAINS];  /* ports of each domain */
	uint8_t first[TOPOLOGY_MAX_DOMAINS]; /* port of each domain: its others follow */
	bool router[TOPOLOGY_MAX_DOMAINS];
};

/*
 * Adds a domain of `n` ports, which are those after the last one so far; `peer` has the place of each one's peer.
 * Returns its number; -EINVAL: a port has no peer in the domain, or is its own; -ENOSPC: there are too many of them.
 */
int topology_add(struct topology *topology, const uint8_t *peer, unsigned n);
/* Adds a wire. Returns its number, or -ENOSPC. */
int topology_add_wire(struct topology *topology);
/* Adds a router of `n` ports, 1 or more. Returns its number, -EINVAL or -ENOSPC. */
int topology_add_router(struct topology *topology, unsigned n);
/* So many wires and nothing else, TOPOLOGY_MAX_DOMAINS at most. */
struct topology topology_of_wires(unsigned n);

/* A domain of two ports that are each other's peers, and no router. */
bool topology_is_wire(const struct topology *topology, unsigned domain);

/* The port at a place of a domain. */
static inline unsigned topology_port(
	const struct topology *topology, unsigned domain, unsigned place)
{
	return topology->first[domain] + place;
}
