/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells routes, neighbours and counts of a router to any thread. */
#include <stdlib.h>
#include <string.h>

#include "route/router_private.h"

const char *kernel_route_kind_name(enum kernel_route_kind kind)
{
	static const char *const names[] = {
		[KERNEL_UNICAST] = "unicast",
		[KERNEL_LOCAL] = "local",
		[KERNEL_BROADCAST] = "broadcast",
		[KERNEL_MULTICAST] = "multicast",
		[KERNEL_BLACKHOLE] = "blackhole",
		[KERNEL_UNREACHABLE] = "unreachable",
		[KERNEL_PROHIBIT] = "prohibit",
		[KERNEL_ONLY] = "kernel",
	};

	return names[kind];
}

void router_counters(struct router *router, struct router_counters *counters)
{
	pthread_mutex_lock(&router->lock);
	*counters = (struct router_counters){
		.routes = router->rib.n_routes,
		.neighbours = router->hops.neighbours.n,
		.prefixes = {router->n_prefixes[0], router->n_prefixes[1]},
		.hops = router->hops.hops.n,
		.groups = ROUTER_GROUPS - router->sets.n_free,
		.changes = router->changes,
		.hop_changes = router->hops.changes,
		.refused = router->refused,
		.full = router->sets.full,
		.dumps = router->dumps,
	};
	for (unsigned i = 0; i < router->hops.n_links; i++)
		counters->links += router->hops.links[i].port != HOPS_NO_PORT;
	pthread_mutex_unlock(&router->lock);
}

/* The next hop that a set took for one of its members; NULL: none. */
static const struct hop *taken_for(const struct hop_set *set, const struct kernel_hop *kernel)
{
	for (unsigned i = 0; i < set->n_taken; i++) {
		const struct hop *hop = set->taken[i];

		if (hop->at.ifindex == kernel->ifindex && hop->at.version == kernel->version &&
			memcmp(hop->at.address, kernel->gateway, sizeof(hop->at.address)) == 0)
			return hop;
	}
	return NULL;
}

static void view_hop(struct router *router, const struct hop_set *set,
	const struct kernel_hop *kernel, struct router_hop_view *view)
{
	const struct hop_link *link = hops_link(&router->hops, kernel->ifindex);
	const struct hop *hop = taken_for(set, kernel);
	const struct hop_neighbour *neighbour =
		hop == NULL ? NULL : hops_neighbour(&router->hops, &hop->at);

	*view = (struct router_hop_view){
		.ifindex = kernel->ifindex,
		.version = kernel->version,
		.weight = kernel->weight,
		.ours = link != NULL,
		.number = hop == NULL ? UINT32_MAX : hop->number,
	};
	memcpy(view->gateway, kernel->gateway, sizeof(view->gateway));
	if (link == NULL)
		return;
	memcpy(view->link, link->kernel.name, sizeof(view->link));
	view->port = link->port;
	view->vlan = link->vlan;
	view->mtu = link->kernel.mtu;
	if (neighbour == NULL)
		return;
	memcpy(view->mac, neighbour->kernel.mac, sizeof(view->mac));
	view->known = neighbour->kernel.valid && link->kernel.up && link->kernel.carrier;
}

const char *action_discard_name(enum action_discard discard)
{
	return action_drop_name((enum action_drop)(ACTION_DROP_MARTIAN + discard));
}

struct finding {
	struct router *router;
	uint32_t number;
	struct router_way *way;
};

/* A next hop by its number. */
static void find_hop(void *context, struct map_node *node)
{
	struct finding *finding = context;
	const struct hop *hop = MAP_ENTRY(node, struct hop, node);
	struct router_hop_view *view = &finding->way->hop;
	const struct hop_link *link = hops_link(&finding->router->hops, hop->at.ifindex);
	const struct hop_neighbour *neighbour = hops_neighbour(&finding->router->hops, &hop->at);

	if (hop->number != finding->number)
		return;
	finding->way->kind = ROUTER_WAY_HOP;
	view->ifindex = hop->at.ifindex;
	view->version = hop->at.version;
	view->number = hop->number;
	memcpy(view->gateway, hop->at.address, sizeof(view->gateway));
	if (link == NULL)
		return;
	view->ours = true;
	view->port = link->port;
	view->vlan = link->vlan;
	view->mtu = link->kernel.mtu;
	memcpy(view->link, link->kernel.name, sizeof(view->link));
	if (neighbour == NULL)
		return;
	memcpy(view->mac, neighbour->kernel.mac, sizeof(view->mac));
	view->known = neighbour->kernel.valid && link->kernel.up && link->kernel.carrier;
}

void router_way_of(struct router *router, uint16_t verdict, struct router_way *way)
{
	const struct routes_verdicts *verdicts = router->config.verdicts;
	const uint32_t number = (uint32_t)verdict - verdicts->first_hop;
	struct finding finding = {.router = router, .number = number, .way = way};

	*way = (struct router_way){.kind = ROUTER_WAY_OTHER};
	for (unsigned i = 0; i < PUNT_N_REASONS; i++)
		if (verdict == verdicts->punt[i])
			*way = (struct router_way){
				.kind = ROUTER_WAY_PUNT, .punt = (enum punt_reason)i};
	for (unsigned i = 0; i < ACTION_N_DISCARDS; i++)
		if (verdict == verdicts->discard[i])
			*way = (struct router_way){
				.kind = ROUTER_WAY_DISCARD, .discard = (enum action_discard)i};
	if (verdict < verdicts->first_hop || number >= verdicts->n_hops)
		return;
	pthread_mutex_lock(&router->lock);
	map_walk(&router->hops.hops, find_hop, &finding);
	pthread_mutex_unlock(&router->lock);
}

static void view_route(struct router *router, const struct rib_prefix *prefix,
	const struct rib_route *route, struct router_route_view *view)
{
	view->prefix = prefix->prefix;
	view->table = route->table;
	view->metric = route->source == RIB_KERNEL ? route->metric : 0;
	view->kind = (enum kernel_route_kind)route->kind;
	view->protocol = route->protocol;
	view->best = route == prefix->best;
	view->neighbour = route->source == RIB_NEIGHBOUR;
	view->address = route->source == RIB_ADDRESS;
	view->n_hops = route->set == NULL ? 0 : route->set->n;
	for (unsigned i = 0; i < view->n_hops; i++)
		view_hop(router, route->set, &route->set->hops[i], &view->hops[i]);
}

bool router_look_up(struct router *router, unsigned version, const uint8_t address[16],
	struct router_route_view *view)
{
	const struct fib *fib = router->routes.fib[version == 6];
	struct rib_prefix *found = NULL;
	struct route_prefix prefix;

	pthread_mutex_lock(&router->lock);
	if (fib_match(fib, address, &prefix) != FIB_NO_ROUTE)
		found = rib_find(&router->rib, &prefix);
	if (found != NULL && found->best != NULL)
		view_route(router, found, found->best, view);
	else
		found = NULL;
	pthread_mutex_unlock(&router->lock);
	return found != NULL;
}

void router_routes_to(struct router *router, const struct route_prefix *prefix,
	router_route_fn each, void *context)
{
	struct router_route_view *view = malloc(sizeof(*view));
	bool more = view != NULL;

	pthread_mutex_lock(&router->lock);
	const struct rib_prefix *found = rib_find(&router->rib, prefix);

	for (const struct rib_route *route = found == NULL ? NULL : found->best;
		more && route != NULL; route = route->next) {
		view_route(router, found, route, view);
		more = each(context, view);
	}
	pthread_mutex_unlock(&router->lock);
	free(view);
}

struct gathering {
	const struct route_prefix *within; /* NULL: all */
	struct route_prefix *prefixes;
	size_t n, room;
};

static bool gather(void *context, const struct route_prefix *prefix, uint32_t next_hop)
{
	struct gathering *gathering = context;
	const struct route_prefix *within = gathering->within;

	(void)next_hop;
	if (within != NULL) {
		const struct route_bits bits = route_bits_cut(
			route_bits_of(prefix->addr, prefix->version), within->length);
		const struct route_bits of = route_bits_of(within->addr, within->version);

		if (prefix->length < within->length || bits.high != of.high || bits.low != of.low)
			return true;
	}
	if (gathering->n == gathering->room)
		return false;
	gathering->prefixes[gathering->n++] = *prefix;
	return true;
}

size_t router_prefixes(
	struct router *router, const struct route_prefix *within, struct route_prefix **prefixes)
{
	struct gathering gathering = {.within = within};

	pthread_mutex_lock(&router->lock);
	gathering.room = router->n_prefixes[0] + router->n_prefixes[1];
	gathering.prefixes = malloc((gathering.room + 1) * sizeof(gathering.prefixes[0]));
	for (unsigned i = 0; gathering.prefixes != NULL && i < 2; i++)
		if (within == NULL || (within->version == 6) == (i == 1))
			fib_walk(router->routes.fib[i], gather, &gathering);
	pthread_mutex_unlock(&router->lock);
	*prefixes = gathering.prefixes;
	return gathering.n;
}

struct telling {
	struct router *router;
	router_neighbour_fn each;
	void *context;
	bool more;
};

static void tell_neighbour(void *context, struct map_node *node)
{
	struct telling *telling = context;
	const struct hop_neighbour *neighbour = MAP_ENTRY(node, struct hop_neighbour, node);
	const struct hop_link *link = hops_link(&telling->router->hops, neighbour->kernel.ifindex);
	struct router_neighbour_view view = {
		.kernel = neighbour->kernel, .used = neighbour->has_route};

	if (link == NULL || !telling->more)
		return;
	memcpy(view.link, link->kernel.name, sizeof(view.link));
	telling->more = telling->each(telling->context, &view);
}

void router_neighbours(struct router *router, router_neighbour_fn each, void *context)
{
	struct telling telling = {.router = router, .each = each, .context = context, .more = true};

	pthread_mutex_lock(&router->lock);
	map_walk(&router->hops.neighbours, tell_neighbour, &telling);
	pthread_mutex_unlock(&router->lock);
}
