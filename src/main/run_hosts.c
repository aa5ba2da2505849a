/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_hosts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/monotonic.h"
#include "host/host.h"
#include "main/run_loop.h"
#include "plane/plane.h"
#include "route/router.h"

/* Next hops of one router, and of all of them: each has an action program, of which there can be 65,000. */
#define HOPS_EACH 8192u
#define HOPS_ALL 49152u
/* Next hops that are in use are told to the kernel so often. */
#define USE_US 5000000

static const struct run_router *router_of(const struct run *run, unsigned domain)
{
	return &run->config.routers[domain - run->config.n_wires];
}

void run_hosts_fill(const struct run *run, struct plane_config *config)
{
	const unsigned n = run->config.n_routers;

	config->punt_rates = punt_usual_rates();
	for (unsigned i = 0; i < n; i++) {
		const struct run_router *from = &run->config.routers[i];
		struct plane_router *to = &config->routers[run->config.n_wires + i];

		snprintf(to->name, sizeof(to->name), "%s", from->name);
		for (unsigned place = 0; place < from->n_ports; place++)
			memcpy(to->taps[place], from->ports[place].tap, sizeof(to->taps[place]));
		to->table = from->table;
		to->source_check = from->source_check;
		to->max_routes[0] = from->max_routes[0];
		to->max_routes[1] = from->max_routes[1];
		to->n_hops = RTE_MIN(HOPS_EACH, HOPS_ALL / n);
	}
}

static void use_neighbour(void *host, uint32_t ifindex, unsigned version, const uint8_t address[16])
{
	host_neighbour_use(host, ifindex, (uint8_t)version, address);
}

static void say_event(void *context, const struct host_event *event)
{
	run_say(context, event->text);
}

static bool is_up(const struct run *run, unsigned port)
{
	return atomic_load_explicit(&run->ports[port]->link_up, memory_order_relaxed);
}

static void fill_tap(const struct run *run, const struct run_router *router, unsigned domain,
	unsigned place, struct taps_port *tap)
{
	const unsigned number = topology_port(&run->topology, domain, place);
	const struct port *port = run->ports[number];

	*tap = (struct taps_port){
		.port = number,
		.tap.mtu = port->mtu,
		.carrier = is_up(run, number),
		.line = plane_punt_line_of(run->plane, number),
		.pool = plane_pool(run->plane),
	};
	memcpy(tap->tap.name, router->ports[place].tap, sizeof(tap->tap.name));
	memcpy(tap->tap.mac, port->mac.addr_bytes, sizeof(tap->tap.mac));
}

static int start_one(struct run *run, unsigned domain, struct error *error)
{
	const struct run_router *given = router_of(run, domain);
	struct router *router = plane_router(run->plane, domain);
	struct taps_port taps[ROUTER_MAX_PORTS];
	struct punt_line *lines[PLANE_MAX_WORKERS + 2];
	const unsigned n_lines = plane_n_punt_lines(run->plane);
	int ret;

	for (unsigned i = 0; i < n_lines; i++)
		lines[i] = plane_punt_line(run->plane, domain, i);
	for (unsigned place = 0; place < given->n_ports; place++)
		fill_tap(run, given, domain, place, &taps[place]);

	const struct host_config config = {
		.space = given->netns,
		.taps = taps,
		.n_taps = given->n_ports,
		.lines = lines,
		.n_lines = n_lines,
		.follower = router_follower(router),
		.hooks = {.context = run, .event = say_event},
		.max_routes = given->max_routes[0] + given->max_routes[1],
		.fpm = given->fpm_port != 0,
		.fpm_port = (uint16_t)given->fpm_port,
	};

	ret = host_create(&run->hosts[domain], &config, error);
	if (ret == 0)
		router_on_resolve(router, use_neighbour, run->hosts[domain]);
	for (unsigned place = 0; ret == 0 && place < given->n_ports; place++)
		run->carriers |= (uint32_t)taps[place].carrier << taps[place].port;
	return ret;
}

int run_hosts_start(struct run *run, struct error *error)
{
	int ret = 0;

	for (unsigned domain = 0; ret == 0 && domain < run->topology.n_domains; domain++)
		if (run->topology.router[domain])
			ret = start_one(run, domain, error);
	return ret;
}

void run_hosts_stop(struct run *run)
{
	for (unsigned domain = 0; domain < TOPOLOGY_MAX_DOMAINS; domain++) {
		if (run->hosts[domain] == NULL)
			continue;
		router_on_resolve(plane_router(run->plane, domain), NULL, NULL);
		host_destroy(run->hosts[domain]);
		run->hosts[domain] = NULL;
	}
}

void run_hosts_tend(struct run *run)
{
	const uint64_t now_us = monotonic_us();
	const bool use = now_us - run->used_us >= USE_US;

	if (use)
		run->used_us = now_us;
	for (unsigned port = 0; port < run_n_ports(run); port++) {
		const unsigned domain = run->topology.domain[port];

		if (run->hosts[domain] == NULL)
			continue;
		if (is_up(run, port) != (run->carriers >> port & 1)) {
			run->carriers ^= UINT32_C(1) << port;
			host_set_carrier(run->hosts[domain], port, is_up(run, port));
		}
		if (use && run->topology.place[port] == 0)
			router_use_neighbours(plane_router(run->plane, domain));
	}
}
