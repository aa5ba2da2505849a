/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/router.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "route/hops.h"
#include "route/rib.h"
#include "route/router_private.h"
#include "route/sets.h"

#define TABLE_DEFAULT 253
#define TABLE_LOCAL 255

/* ------------------------------------------------------------------ the table */

static uint32_t value_of(const struct router *router, const struct rib_route *route)
{
	const struct routes_verdicts *verdicts = router->config.verdicts;

	switch ((enum kernel_route_kind)route->kind) {
	case KERNEL_UNICAST:
		return route->set != NULL ? route->set->value : verdicts->punt[PUNT_NO_ROUTE];
	case KERNEL_LOCAL:
	case KERNEL_BROADCAST:
		return verdicts->punt[PUNT_LOCAL];
	case KERNEL_MULTICAST:
		return verdicts->punt[PUNT_MULTICAST];
	case KERNEL_BLACKHOLE:
		return verdicts->discard[ACTION_DISCARD_BLACKHOLE];
	case KERNEL_UNREACHABLE:
	case KERNEL_PROHIBIT:
	case KERNEL_ONLY:
		break;
	}
	return verdicts->punt[PUNT_NO_ROUTE];
}

static void changed(struct router *router)
{
	router->changes++;
	atomic_fetch_add_explicit(router->config.generation, 1, memory_order_release);
}

/* Brings the table to what the best route of a prefix says. */
static void install(struct router *router, struct rib_prefix *prefix)
{
	struct fib *fib = router->routes.fib[prefix->prefix.version == 6];
	const uint32_t value = prefix->best == NULL ? FIB_NO_ROUTE : value_of(router, prefix->best);

	if (value == prefix->value)
		return;
	if (value == FIB_NO_ROUTE)
		(void)fib_delete(fib, &prefix->prefix);
	else if (fib_add(fib, &prefix->prefix, value) < 0) {
		router->refused++;
		return;
	}
	router->n_prefixes[prefix->prefix.version == 6] += prefix->value == FIB_NO_ROUTE;
	router->n_prefixes[prefix->prefix.version == 6] -= value == FIB_NO_ROUTE;
	prefix->value = value;
	changed(router);
}

static void install_each(void *context, struct map_node *node)
{
	install(context, MAP_ENTRY(node, struct rib_prefix, node));
}

/* Takes a route out, and lets go of what it had once the table has changed. */
static void remove_route(struct router *router, struct rib_prefix *prefix, struct rib_route *route)
{
	struct hop_set *set = route->set;

	rib_remove(&router->rib, prefix, route);
	install(router, prefix);
	rib_tidy(&router->rib, prefix);
	if (set != NULL)
		sets_put(&router->sets, set);
}

/* Enters a route with its set of hops, or changes the one that is there. Returns the prefix, or NULL: no memory. */
static struct rib_prefix *put_route(struct router *router, const struct route_prefix *at,
	const struct rib_route *route, struct hop_set *set)
{
	struct rib_prefix *prefix = rib_prefix(&router->rib, at);
	struct rib_route *known;
	struct hop_set *before = NULL;

	if (prefix == NULL)
		return NULL;
	known = rib_route(prefix, (enum rib_source)route->source, route->table, route->metric);
	if (known != NULL) {
		before = known->set;
		known->kind = route->kind;
		known->protocol = route->protocol;
		known->set = set;
	} else {
		known = malloc(sizeof(*known));
		if (known == NULL) {
			rib_tidy(&router->rib, prefix);
			return NULL;
		}
		*known = *route;
		known->set = set;
		rib_add(&router->rib, prefix, known);
	}
	install(router, prefix);
	if (before != NULL)
		sets_put(&router->sets, before);
	return prefix;
}

/* ------------------------------------------------------------------ neighbours */

/* The neighbour's address is one on its link, as routes have it. */
static bool is_on_link(const struct router *router, const struct kernel_neighbour *neighbour)
{
	const struct rib_prefix *prefix =
		rib_match(&router->rib, neighbour->version, neighbour->address);
	const struct rib_route *best = prefix == NULL ? NULL : rib_best(prefix);

	if (best == NULL || best->kind != KERNEL_UNICAST || best->set == NULL)
		return false;
	for (unsigned i = 0; i < best->set->n; i++)
		if (best->set->hops[i].version == 0 && !best->set->hops[i].dead &&
			best->set->hops[i].ifindex == neighbour->ifindex)
			return true;
	return false;
}

static bool is_link_local(const struct kernel_neighbour *neighbour)
{
	return neighbour->version == 6 && neighbour->address[0] == 0xfe &&
	       (neighbour->address[1] & 0xc0) == 0x80;
}

static struct route_prefix prefix_of_neighbour(const struct kernel_neighbour *neighbour)
{
	struct route_prefix prefix = {
		.version = neighbour->version, .length = neighbour->version == 4 ? 32 : 128};

	memcpy(prefix.addr, neighbour->address, neighbour->version == 4 ? 4 : 16);
	return prefix;
}

/* A neighbour has a route to it alone while its link address is known and its prefix is on the link. */
static void look_at_neighbour(struct router *router, struct hop_neighbour *neighbour)
{
	const struct kernel_neighbour *kernel = &neighbour->kernel;
	const struct route_prefix at = prefix_of_neighbour(kernel);
	const struct rib_route route = {
		.kind = KERNEL_UNICAST, .source = RIB_NEIGHBOUR, .metric = kernel->ifindex};
	const bool wanted = kernel->valid && !is_link_local(kernel) &&
			    hops_link(&router->hops, kernel->ifindex) != NULL &&
			    is_on_link(router, kernel);

	if (wanted == neighbour->has_route)
		return;
	if (wanted) {
		struct kernel_hop hop = {
			.ifindex = kernel->ifindex, .version = kernel->version, .weight = 1};

		memcpy(hop.gateway, at.addr, sizeof(hop.gateway));

		struct hop_set *set = sets_get(&router->sets, &hop, 1);

		neighbour->has_route = set != NULL && put_route(router, &at, &route, set) != NULL;
		if (set != NULL && !neighbour->has_route)
			sets_put(&router->sets, set);
		return;
	}
	struct rib_prefix *prefix = rib_find(&router->rib, &at);

	neighbour->has_route = false;
	if (prefix != NULL)
		remove_route(router, prefix, rib_route(prefix, RIB_NEIGHBOUR, 0, kernel->ifindex));
}

struct within {
	struct router *router;
	const struct route_prefix *prefix; /* NULL: all */
};

static void look_within(void *context, struct map_node *node)
{
	const struct within *within = context;
	const struct route_prefix *prefix = within->prefix;
	struct hop_neighbour *neighbour = MAP_ENTRY(node, struct hop_neighbour, node);

	if (prefix != NULL) {
		if (neighbour->kernel.version != prefix->version)
			return;
		struct route_bits cut = route_bits_cut(
			route_bits_of(neighbour->kernel.address, prefix->version), prefix->length);
		const struct route_bits bits = route_bits_of(prefix->addr, prefix->version);

		if (cut.high != bits.high || cut.low != bits.low)
			return;
	}
	look_at_neighbour(within->router, neighbour);
}

/* A route to this prefix has changed: neighbours in it may be on their links now, or not any more. */
static void look_at_neighbours(struct router *router, const struct route_prefix *prefix)
{
	struct within within = {.router = router, .prefix = prefix};

	map_walk(&router->hops.neighbours, look_within, &within);
}

static void follow_neighbour(void *context, const struct kernel_neighbour *kernel, bool gone)
{
	struct router *router = context;

	/* what the kernel keeps of multicast groups is computed, and nobody routes to them */
	if (kernel->version == 6 ? kernel->address[0] == 0xff : kernel->address[0] >= 224)
		return;
	pthread_mutex_lock(&router->lock);
	struct hop_neighbour *neighbour = hops_set_neighbour(&router->hops, kernel, gone);

	if (neighbour != NULL)
		look_at_neighbour(router, neighbour);
	if (neighbour != NULL && gone)
		hops_forget_neighbour(&router->hops, neighbour);
	pthread_mutex_unlock(&router->lock);
}

/* ------------------------------------------------------------------ links */

static const struct router_port_config *find_port(const struct router *router, const char *name)
{
	for (unsigned i = 0; i < router->config.n_ports; i++)
		if (strcmp(router->config.ports[i].name, name) == 0)
			return &router->config.ports[i];
	return NULL;
}

/* The port that a link's packets leave by: its TAP's, or for a VLAN device that of the one below. */
static uint16_t port_of(const struct router *router, const struct kernel_link *link, uint16_t *vlan)
{
	const bool of_vrf = router->config.table != ROUTER_TABLE_MAIN;
	const struct router_port_config *port = find_port(router, link->name);
	const struct hop_link *parent;

	*vlan = 0;
	if (link->vrf_table != (of_vrf ? router->config.table : 0))
		return HOPS_NO_PORT;
	if (port != NULL)
		return port->number;
	parent = link->parent == 0 ? NULL : hops_link(&router->hops, link->parent);
	if (parent == NULL || parent->vlan != 0)
		return HOPS_NO_PORT;
	*vlan = link->vlan;
	return parent->port;
}

/* Sets of next hops with this link, and neighbours on it, mean something else. */
static void link_moved(struct router *router, uint32_t ifindex)
{
	if (sets_link_changed(&router->sets, ifindex))
		map_walk(&router->rib.prefixes, install_each, router);
	look_at_neighbours(router, NULL);
	changed(router);
}

static void follow_link(void *context, const struct kernel_link *link, bool gone)
{
	struct router *router = context;
	uint16_t vlan, port;

	pthread_mutex_lock(&router->lock);
	const struct hop_link *known = hops_link(&router->hops, link->ifindex);
	const uint16_t before = known == NULL ? HOPS_NO_PORT : known->port;

	port = gone ? HOPS_NO_PORT : port_of(router, link, &vlan);
	if (port == HOPS_NO_PORT)
		hops_remove_link(&router->hops, link->ifindex);
	else if (!hops_set_link(&router->hops, link, port, vlan))
		port = HOPS_NO_PORT;
	if (port != before)
		link_moved(router, link->ifindex);
	if (port != HOPS_NO_PORT && vlan == 0 && router->config.set_mac != NULL)
		router->config.set_mac(router->config.context, port, link->mac);
	pthread_mutex_unlock(&router->lock);
}

/* Numbers that were given up are free once all flows were decided without them. */
static void retry_starved(struct router *router)
{
	if (router->sets.n_starved == 0 ||
		router->config.settled(router->config.context) < router->retry_at)
		return;
	router->retry_at =
		atomic_load_explicit(router->config.generation, memory_order_relaxed) + 1;
	if (sets_retry(&router->sets))
		map_walk(&router->rib.prefixes, install_each, router);
}

/* ------------------------------------------------------------------ addresses and routes */

static void follow_address(void *context, const struct kernel_address *address, bool gone)
{
	struct router *router = context;
	struct route_prefix at = {
		.version = address->version, .length = address->version == 4 ? 32 : 128};
	/* an address of several links is a route of each */
	const struct rib_route route = {
		.kind = KERNEL_LOCAL, .source = RIB_ADDRESS, .metric = address->ifindex};
	struct rib_prefix *prefix;
	struct rib_route *known;

	memcpy(at.addr, address->address, address->version == 4 ? 4 : 16);
	pthread_mutex_lock(&router->lock);
	prefix = rib_find(&router->rib, &at);
	known = prefix == NULL ? NULL : rib_route(prefix, RIB_ADDRESS, 0, address->ifindex);
	/* one that is not yet known to be ours alone is nobody's */
	if (!gone && !address->tentative && hops_link(&router->hops, address->ifindex) != NULL)
		(void)put_route(router, &at, &route, NULL);
	else if (known != NULL)
		remove_route(router, prefix, known);
	pthread_mutex_unlock(&router->lock);
}

static bool is_followed(const struct router *router, uint32_t table)
{
	if (router->config.table != ROUTER_TABLE_MAIN)
		return table == router->config.table;
	return table == ROUTER_TABLE_MAIN || table == TABLE_LOCAL || table == TABLE_DEFAULT;
}

static void follow_route(void *context, const struct kernel_route *kernel, bool gone)
{
	struct router *router = context;
	struct route_prefix at = {.version = kernel->version, .length = kernel->length};
	const struct rib_route route = {
		.table = kernel->table,
		.metric = kernel->metric,
		.kind = (uint8_t)kernel->kind,
		.protocol = kernel->protocol,
		.source = RIB_KERNEL,
	};
	struct hop_set *set = NULL;

	memcpy(at.addr, kernel->prefix, kernel->version == 4 ? 4 : 16);
	if (!is_followed(router, kernel->table) || !route_prefix_valid(&at))
		return;
	pthread_mutex_lock(&router->lock);
	if (gone) {
		struct rib_prefix *prefix = rib_find(&router->rib, &at);
		struct rib_route *known = prefix == NULL ? NULL
							 : rib_route(prefix, RIB_KERNEL,
								   kernel->table, kernel->metric);

		if (known != NULL)
			remove_route(router, prefix, known);
	} else {
		if (kernel->kind == KERNEL_UNICAST)
			set = sets_get(&router->sets, kernel->hops, kernel->n_hops);
		if (put_route(router, &at, &route, set) == NULL && set != NULL)
			sets_put(&router->sets, set);
	}
	look_at_neighbours(router, &at);
	retry_starved(router);
	pthread_mutex_unlock(&router->lock);
}

static void follow_synced(void *context)
{
	struct router *router = context;

	pthread_mutex_lock(&router->lock);
	router->dumps++;
	pthread_mutex_unlock(&router->lock);
}

struct kernel_follower router_follower(struct router *router)
{
	return (struct kernel_follower){
		.context = router,
		.link = follow_link,
		.address = follow_address,
		.neighbour = follow_neighbour,
		.route = follow_route,
		.synced = follow_synced,
	};
}

/* ------------------------------------------------------------------ life */

static uint64_t generation_now(void *context)
{
	const struct router *router = context;

	return atomic_load_explicit(router->config.generation, memory_order_relaxed);
}

static uint64_t generation_settled(void *context)
{
	const struct router *router = context;

	return router->config.settled(router->config.context);
}

static void resolve_hop(void *context, const struct hop_at *at)
{
	const struct router *router = context;

	if (router->resolve != NULL)
		router->resolve(router->resolve_context, at->ifindex, at->version, at->address);
}

void router_on_resolve(struct router *router, router_resolve_fn resolve, void *context)
{
	router->resolve = resolve;
	router->resolve_context = context;
}

static void use_hop(void *context, struct map_node *node)
{
	struct router *router = context;
	const struct hop *hop = MAP_ENTRY(node, struct hop, node);
	const struct hop_neighbour *neighbour = hops_neighbour(&router->hops, &hop->at);

	if (neighbour == NULL || !neighbour->kernel.reachable)
		resolve_hop(router, &hop->at);
}

void router_use_neighbours(struct router *router)
{
	pthread_mutex_lock(&router->lock);
	map_walk(&router->hops.hops, use_hop, router);
	retry_starved(router);
	pthread_mutex_unlock(&router->lock);
}

static int make(struct router *router)
{
	const struct router_config *config = &router->config;
	const struct hops_config hops = {
		.next_hops = config->next_hops,
		.first = config->first_hop,
		.n = config->n_hops,
		.settled = generation_settled,
		.now = generation_now,
		.context = router,
		.resolve = resolve_hop,
		.resolve_context = router,
	};
	int ret = rib_init(&router->rib);

	router->groups = aligned_alloc(64, ROUTER_GROUPS * sizeof(router->groups[0]));
	if (router->groups == NULL)
		return -ENOMEM;
	memset(router->groups, 0, ROUTER_GROUPS * sizeof(router->groups[0]));
	router->routes = (struct routes){
		.verdicts = config->verdicts,
		.next_hops = config->next_hops,
		.secret = config->secret,
		.groups = router->groups,
		.source_check = config->source_check,
		.domain = config->domain,
	};
	for (unsigned i = 0; ret == 0 && i < 2; i++) {
		const struct fib_config fib = {
			.version = i == 0 ? 4 : 6,
			.memory = fib_memory_for(i == 0 ? 4 : 6, config->max_routes[i]),
			.simd = config->secret->simd,
			.qsbr = config->qsbr,
		};

		ret = fib_create(&router->routes.fib[i], &fib);
	}
	if (ret == 0)
		ret = hops_init(&router->hops, &hops);
	if (ret == 0)
		ret = sets_init(&router->sets, &router->hops, &router->routes, ROUTER_GROUPS);
	return ret;
}

int router_create(struct router **out, const struct router_config *config, struct error *error)
{
	struct router *router = calloc(1, sizeof(*router));
	int ret;

	if (router == NULL)
		return error_set(error, -ENOMEM, "no memory for router %s", config->name);
	router->config = *config;
	pthread_mutex_init(&router->lock, NULL);
	ret = make(router);
	if (ret < 0) {
		router_destroy(router);
		return error_set(error, ret, "no memory for the routes of router %s", config->name);
	}
	*out = router;
	return 0;
}

void router_destroy(struct router *router)
{
	if (router == NULL)
		return;
	sets_fini(&router->sets);
	hops_fini(&router->hops);
	rib_fini(&router->rib);
	for (unsigned i = 0; i < 2; i++)
		fib_destroy(router->routes.fib[i]);
	free(router->groups);
	pthread_mutex_destroy(&router->lock);
	free(router);
}

const struct router_config *router_config(const struct router *router)
{
	return &router->config;
}

struct routes *router_routes(struct router *router)
{
	return &router->routes;
}
