/* SPDX-License-Identifier: BSD-3-Clause */
/* route show, neighbour show: what routers follow. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/route_view.h"
#include "control/verbs.h"
#include "route/router.h"

/* Prefixes whose routes are told in one turn. */
#define TURN_PREFIXES 64

enum route_key {
	ROUTE_PREFIX,
	ROUTE_LOOK_UP,
	ROUTE_N_KEYS,
};

static const struct request_key route_keys[ROUTE_N_KEYS] = {
	[ROUTE_PREFIX] = {.name = "prefix", .type = REQUEST_TEXT},
	[ROUTE_LOOK_UP] = {.name = "lookup", .type = REQUEST_TEXT},
};

/* How far an answer has come: the router, and its prefixes. */
struct route_state {
	unsigned domain;
	bool within; /* only what lies in `prefix` */
	struct route_prefix prefix;
	struct route_prefix *prefixes; /* NULL: those of the domain are not gathered yet */
	size_t n, at;
};

struct telling {
	struct answer *answer;
	const struct router *router;
	int ret;
};

static json_t *address_text(unsigned version, const uint8_t address[16])
{
	char text[INET6_ADDRSTRLEN];

	if (version == 0 ||
		inet_ntop(version == 4 ? AF_INET : AF_INET6, address, text, sizeof(text)) == NULL)
		return json_null();
	return json_string(text);
}

static json_t *mac_text(const uint8_t mac[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return json_string(text);
}

/* The kernel's numbers of who made a route (rtnetlink.h); others are told as numbers. */
static json_t *protocol_text(uint8_t protocol)
{
	static const struct {
		uint8_t number;
		const char *name;
	} known[] = {{2, "kernel"}, {3, "boot"}, {4, "static"}, {9, "ra"}, {12, "bird"},
		{16, "dhcp"}, {186, "bgp"}, {187, "isis"}, {188, "ospf"}, {189, "rip"},
		{196, "static"}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].number == protocol)
			return json_string(known[i].name);
	return json_integer(protocol);
}

json_t *route_describe_hop(const struct plane_config *config, const struct router_hop_view *hop)
{
	json_t *line = json_object();

	json_object_set_new(line, "gateway", address_text(hop->version, hop->gateway));
	json_object_set_new(line, "link", hop->ours ? answer_string(hop->link) : json_null());
	answer_number(line, "ifindex", hop->ifindex);
	answer_number(line, "weight", hop->weight);
	json_object_set_new(line, "state",
		json_string(!hop->ours		? "kernel"
			    : hop->version == 0 ? "on_link"
			    : hop->known	? "known"
						: "unknown"));
	if (!hop->ours)
		return line;
	json_object_set_new(line, "port", answer_string(config->port[hop->port]->name));
	answer_number(line, "vlan", hop->vlan);
	answer_number(line, "mtu", hop->mtu);
	json_object_set_new(line, "mac", hop->known ? mac_text(hop->mac) : json_null());
	return line;
}

json_t *route_describe(const struct plane_config *config, const struct router_config *router,
	const struct router_route_view *route)
{
	char prefix[ROUTE_PREFIX_TEXT_MAX];
	json_t *line = json_object(), *hops = json_array();

	for (unsigned i = 0; i < route->n_hops; i++)
		json_array_append_new(hops, route_describe_hop(config, &route->hops[i]));
	json_object_set_new(
		line, "prefix", json_string(route_prefix_format(&route->prefix, prefix)));
	answer_number(line, "domain", router->domain);
	json_object_set_new(line, "router", answer_string(router->name));
	json_object_set_new(line, "kind", json_string(kernel_route_kind_name(route->kind)));
	json_object_set_new(line, "source",
		json_string(route->neighbour ? "neighbour"
			    : route->address ? "address"
					     : "kernel"));
	json_object_set_new(line, "protocol", protocol_text(route->protocol));
	answer_number(line, "table", route->table);
	answer_number(line, "metric", route->metric);
	json_object_set_new(line, "best", json_boolean(route->best));
	json_object_set_new(line, "hops", hops);
	return line;
}

static bool tell_route(void *context, const struct router_route_view *route)
{
	struct telling *telling = context;

	telling->ret =
		answer_add(telling->answer, route_describe(plane_config(telling->answer->plane),
						    router_config(telling->router), route));
	return telling->ret == 0;
}

static int look_up(struct answer *answer, const char *text, struct error *error)
{
	const struct plane_config *config = plane_config(answer->plane);
	struct router_route_view *view;
	struct route_prefix address;
	int ret = 0;

	if (route_prefix_parse(&address, text, error) < 0 ||
		address.length != (address.version == 4 ? 32 : 128))
		return request_bad(error, "route show", "lookup", text, "an address is needed");
	view = malloc(sizeof(*view));
	if (view == NULL)
		return -ENOMEM;
	for (unsigned domain = 0; ret == 0 && domain < config->topology.n_domains; domain++) {
		struct router *router = plane_router(answer->plane, domain);

		if (router != NULL && router_look_up(router, address.version, address.addr, view))
			ret = answer_add(
				answer, route_describe(config, router_config(router), view));
	}
	free(view);
	return ret;
}

static int begin_routes(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct route_state *state = calloc(1, sizeof(*state));
	const char *prefix = values[ROUTE_PREFIX].text;

	if (state == NULL)
		return error_set(error, -ENOMEM, "no memory for the answer");
	answer->state = state;
	if (values[ROUTE_LOOK_UP].given) {
		state->domain = TOPOLOGY_MAX_DOMAINS;
		return look_up(answer, values[ROUTE_LOOK_UP].text, error);
	}
	state->within = values[ROUTE_PREFIX].given;
	if (state->within && route_prefix_parse(&state->prefix, prefix, error) < 0)
		return request_bad(error, "route show", "prefix", prefix,
			"an address or a prefix like 10.0.0.0/8 is needed");
	return 0;
}

/* The next prefixes of a router. */
static int turn_routes(struct answer *answer, struct error *error)
{
	struct route_state *state = answer->state;
	struct router *router = state->domain < TOPOLOGY_MAX_DOMAINS
					? plane_router(answer->plane, state->domain)
					: NULL;
	struct telling telling = {.answer = answer, .router = router};

	if (state->domain >= plane_config(answer->plane)->topology.n_domains)
		return ANSWER_END;
	if (router != NULL && state->prefixes == NULL) {
		state->n = router_prefixes(
			router, state->within ? &state->prefix : NULL, &state->prefixes);
		if (state->prefixes == NULL)
			return error_set(error, -ENOMEM, "no memory for the list of routes");
	}
	for (unsigned i = 0; telling.ret == 0 && state->at < state->n && i < TURN_PREFIXES; i++)
		router_routes_to(router, &state->prefixes[state->at++], tell_route, &telling);
	if (telling.ret < 0)
		return telling.ret;
	if (state->at == state->n) {
		free(state->prefixes);
		state->prefixes = NULL;
		state->n = state->at = 0;
		state->domain++;
	}
	return ANSWER_GO;
}

static void end_routes(struct answer *answer)
{
	struct route_state *state = answer->state;

	if (state != NULL)
		free(state->prefixes);
	free(state);
	answer->state = NULL;
}

const struct answer_verb route_show = {
	.ask = "route show",
	.keys = route_keys,
	.n_keys = ROUTE_N_KEYS,
	.begin = begin_routes,
	.turn = turn_routes,
	.end = end_routes,
};

static bool tell_neighbour(void *context, const struct router_neighbour_view *neighbour)
{
	struct telling *telling = context;
	const struct router_config *router = router_config(telling->router);
	const struct kernel_neighbour *kernel = &neighbour->kernel;
	json_t *line = json_object();

	json_object_set_new(line, "address", address_text(kernel->version, kernel->address));
	answer_number(line, "domain", router->domain);
	json_object_set_new(line, "router", answer_string(router->name));
	json_object_set_new(line, "link", answer_string(neighbour->link));
	json_object_set_new(line, "mac", kernel->valid ? mac_text(kernel->mac) : json_null());
	json_object_set_new(line, "state",
		json_string(kernel->reachable ? "reachable"
			    : kernel->valid   ? "stale"
					      : "unknown"));
	json_object_set_new(line, "on_link", json_boolean(neighbour->used));
	telling->ret = answer_add(telling->answer, line);
	return telling->ret == 0;
}

static int begin_neighbours(
	struct answer *answer, const struct request_value *values, struct error *error)
{
	struct telling telling = {.answer = answer};

	(void)values;
	(void)error;
	for (unsigned domain = 0; telling.ret == 0 && domain < TOPOLOGY_MAX_DOMAINS; domain++) {
		struct router *router = plane_router(answer->plane, domain);

		telling.router = router;
		if (router != NULL)
			router_neighbours(router, tell_neighbour, &telling);
	}
	return telling.ret;
}

const struct answer_verb neighbour_show = {
	.ask = "neighbour show",
	.begin = begin_neighbours,
};
