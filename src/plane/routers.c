/* SPDX-License-Identifier: BSD-3-Clause */
/* The routers of a plane, and the rings between its lcores and the host thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plane/plane_private.h"

bool plane_has_routers(const struct plane *plane)
{
	return plane_router_hops(plane) != 0;
}

uint32_t plane_router_hops(const struct plane *plane)
{
	const struct topology *topology = &plane->config.topology;
	uint32_t n = 0;

	for (unsigned domain = 0; domain < topology->n_domains; domain++)
		if (topology->router[domain])
			n += plane->config.routers[domain].n_hops;
	return n;
}

uint64_t plane_router_settled(const struct plane *plane)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < plane->config.n_workers; i++) {
		const uint64_t decided =
			policy_decided_routes(&plane_shard_lcore(plane, i)->policy);

		least = decided < least ? decided : least;
	}
	return least;
}

static uint64_t settled(void *plane)
{
	return plane_router_settled(plane);
}

static void set_mac(void *context, unsigned port, const uint8_t mac[6])
{
	struct plane *plane = context;

	atomic_store_explicit(
		&plane->router_ports[port].mac, router_mac(mac), memory_order_relaxed);
}

static int make_router(struct plane *plane, unsigned domain, uint32_t first_hop)
{
	const struct topology *topology = &plane->config.topology;
	const struct plane_router *given = &plane->config.routers[domain];
	struct router_config config = {
		.domain = domain,
		.table = given->table,
		.source_check = given->source_check,
		.n_ports = topology->size[domain],
		.max_routes = {given->max_routes[0], given->max_routes[1]},
		.first_hop = first_hop,
		.n_hops = given->n_hops,
		.verdicts = &plane->verdicts,
		.next_hops = plane->next_hops,
		.secret = &plane->secret,
		.qsbr = plane->qsbr,
		.generation = &plane->routes_generation,
		.settled = settled,
		.set_mac = set_mac,
		.context = plane,
	};
	struct error error;

	snprintf(config.name, sizeof(config.name), "%s", given->name);
	for (unsigned place = 0; place < config.n_ports; place++) {
		const unsigned port = topology_port(topology, domain, place);
		struct router_port_config *to = &config.ports[place];

		to->number = (uint16_t)port;
		memcpy(to->name, given->taps[place], sizeof(to->name));
		set_mac(plane, port, plane->config.port[port]->mac.addr_bytes);
	}

	const int ret = router_create(&plane->routers[domain], &config, &error);

	if (ret == 0)
		plane->routes[domain] = router_routes(plane->routers[domain]);
	return ret;
}

int plane_routers_make(struct plane *plane)
{
	const uint32_t n_hops = plane_router_hops(plane);
	uint32_t first = 0;
	int ret;

	if (n_hops == 0)
		return 0;
	ret = routes_verdicts_init(&plane->verdicts, plane->programs, n_hops);
	for (unsigned domain = 0; ret == 0 && domain < plane->config.topology.n_domains; domain++) {
		if (!plane->config.topology.router[domain])
			continue;
		ret = make_router(plane, domain, first);
		first += plane->config.routers[domain].n_hops;
	}
	return ret;
}

static int make_line(struct punt_line *line)
{
	line->event = -1;
	line->to_host.mailbox = mailbox_create("punts", sizeof(ring_element), PUNT_RING);
	line->from_host.mailbox = mailbox_create("frames", sizeof(ring_element), PUNT_RING);
	return line->to_host.mailbox == NULL || line->from_host.mailbox == NULL ? -ENOMEM : 0;
}

int plane_punt_lines_make(struct plane *plane)
{
	const struct topology *topology = &plane->config.topology;
	int ret = 0;

	for (unsigned domain = 0; domain < topology->n_domains; domain++)
		if (topology->router[domain])
			plane->line_of[domain] = (uint8_t)plane->n_routers++;
	if (plane->n_routers == 0)
		return 0;
	plane->lines = calloc((size_t)plane->n_lcores * plane->n_routers, sizeof(plane->lines[0]));
	if (plane->lines == NULL)
		return -ENOMEM;
	for (unsigned i = 0; ret == 0 && i < plane->n_lcores * plane->n_routers; i++)
		ret = make_line(&plane->lines[i]);
	for (unsigned i = 0; ret == 0 && i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];

		lcore->punt.lines = &plane->lines[(size_t)i * plane->n_routers];
		lcore->punt.n_lines = plane->n_routers;
		lcore->punt.line_of = plane->line_of;
		lcore->router_ports = plane->router_ports;
		for (unsigned reason = 0; reason < PUNT_N_REASONS; reason++)
			rate_limit_init(&lcore->punt.limit[reason],
				plane->config.punt_rates.rate[reason], plane->n_lcores);
	}
	return ret;
}

/* Packets that the host thread has not taken go back to their pools. */
static void empty(struct mailbox *mailbox)
{
	ring_element element;

	while (mailbox != NULL && mailbox_pop(mailbox, &element, 1) == 1)
		rte_pktmbuf_free(ring_packet(element));
}

void plane_routers_take_down(struct plane *plane)
{
	for (unsigned i = 0; plane->lines != NULL && i < plane->n_lcores * plane->n_routers; i++) {
		empty(plane->lines[i].to_host.mailbox);
		empty(plane->lines[i].from_host.mailbox);
		mailbox_destroy(plane->lines[i].to_host.mailbox);
		mailbox_destroy(plane->lines[i].from_host.mailbox);
	}
	free(plane->lines);
	for (unsigned i = 0; i < TOPOLOGY_MAX_DOMAINS; i++)
		router_destroy(plane->routers[i]);
}

struct router *plane_router(const struct plane *plane, unsigned domain)
{
	return domain < TOPOLOGY_MAX_DOMAINS ? plane->routers[domain] : NULL;
}

unsigned plane_n_punt_lines(const struct plane *plane)
{
	return plane->lines == NULL ? 0 : plane->n_lcores;
}

struct punt_line *plane_punt_line(const struct plane *plane, unsigned domain, unsigned number)
{
	return &plane->lcores[number].punt.lines[plane->line_of[domain]];
}

struct punt_line *plane_punt_line_of(const struct plane *plane, unsigned port)
{
	const struct lcore *lcore = plane_shard_lcore(plane, port % plane->config.n_workers);

	return &lcore->punt.lines[plane->line_of[plane->config.topology.domain[port]]];
}
