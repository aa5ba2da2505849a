/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/topology.h"

#include <errno.h>

static int add_domain(struct topology *topology, const uint8_t *peer, unsigned n)
{
	const unsigned domain = topology->n_domains, first = topology->n_ports;

	if (domain == TOPOLOGY_MAX_DOMAINS || n > TOPOLOGY_MAX_PORTS - first)
		return -ENOSPC;
	if (n == 0)
		return -EINVAL;
	for (unsigned place = 0; place < n; place++) {
		topology->domain[first + place] = (uint8_t)domain;
		topology->place[first + place] = (uint8_t)place;
		topology->peer[first + place] = (uint8_t)(first + peer[place]);
	}
	topology->first[domain] = (uint8_t)first;
	topology->size[domain] = (uint8_t)n;
	topology->n_ports = (uint8_t)(first + n);
	topology->n_domains = (uint8_t)(domain + 1);
	return (int)domain;
}

int topology_add(struct topology *topology, const uint8_t *peer, unsigned n)
{
	if (n <= TOPOLOGY_MAX_PORTS)
		for (unsigned place = 0; place < n; place++)
			if (peer[place] >= n || peer[place] == place)
				return -EINVAL;
	return add_domain(topology, peer, n);
}

/* The peer is where bursts are sent at once; the next port serves as well as any. */
int topology_add_router(struct topology *topology, unsigned n)
{
	uint8_t peer[TOPOLOGY_MAX_PORTS];
	int domain;

	if (n > TOPOLOGY_MAX_PORTS)
		return -ENOSPC;
	for (unsigned place = 0; place < n; place++)
		peer[place] = (uint8_t)((place + 1) % n);
	domain = add_domain(topology, peer, n);
	if (domain >= 0)
		topology->router[domain] = true;
	return domain;
}

int topology_add_wire(struct topology *topology)
{
	static const uint8_t peer[2] = {1, 0};

	return topology_add(topology, peer, 2);
}

struct topology topology_of_wires(unsigned n)
{
	struct topology topology = {0};

	while (topology.n_domains < n && topology_add_wire(&topology) >= 0)
		;
	return topology;
}

bool topology_is_wire(const struct topology *topology, unsigned domain)
{
	return topology->size[domain] == 2 && !topology->router[domain];
}
