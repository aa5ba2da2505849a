/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_config_routers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

/* Routes that memory is taken for unless the configuration says more or less; it is used as they come. */
#define ROUTES_DEFAULT 2000000
#define ROUTES6_DEFAULT 500000
#define ROUTES_MOST 10000000

const char *run_router_key(enum run_router_key key)
{
	static const char *const names[RUN_ROUTER_N_KEYS] = {
		[RUN_ROUTER_NAME] = "name",
		[RUN_ROUTER_NETNS] = "netns",
		[RUN_ROUTER_TABLE] = "table",
		[RUN_ROUTER_SOURCE_CHECK] = "source-check",
		[RUN_ROUTER_ROUTES] = "routes",
		[RUN_ROUTER_ROUTES6] = "routes6",
		[RUN_ROUTER_FPM] = "fpm",
	};

	return names[key];
}

void run_router_init(struct run_router *router)
{
	*router = (struct run_router){
		.table = ROUTER_TABLE_MAIN, .max_routes = {ROUTES_DEFAULT, ROUTES6_DEFAULT}};
}

void run_router_fini(struct run_router *router)
{
	free(router->netns);
	router->netns = NULL;
}

/* A name of an interface, as the kernel takes it. */
static bool is_interface_name(const char *name, size_t size)
{
	for (const char *at = name; *at != '\0'; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr("/:%", *at) != NULL)
			return false;
	return *name != '\0' && strlen(name) < size && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static int set_name(
	struct run_router *router, const char *where, const char *value, struct error *error)
{
	if (!is_interface_name(value, sizeof(router->name)))
		return option_bad_value(where, value,
			"a router's name has 1 to 31 letters, digits and signs, none of them / : "
			"or %",
			error);
	memcpy(router->name, value, strlen(value) + 1);
	return 0;
}

static int set_table(
	struct run_router *router, const char *where, const char *value, struct error *error)
{
	if (strcmp(value, "main") == 0) {
		router->table = ROUTER_TABLE_MAIN;
		return 0;
	}
	return option_number(where, value, value, UINT32_MAX, &router->table, error);
}

static int set_source_check(
	struct run_router *router, const char *where, const char *value, struct error *error)
{
	for (unsigned i = 0; i < ROUTES_N_SOURCE_CHECKS; i++) {
		if (strcmp(value, routes_source_check_name((enum routes_source_check)i)) != 0)
			continue;
		router->source_check = (enum routes_source_check)i;
		return 0;
	}
	return option_bad_value(where, value, "it is off, loose or strict", error);
}

static int set_netns(
	struct run_router *router, const char *where, const char *value, struct error *error)
{
	if (*value == '\0')
		return option_bad_value(where, value, "a name or path is needed", error);
	free(router->netns);
	router->netns = strdup(value);
	return router->netns == NULL ? error_set(error, -ENOMEM, "out of memory") : 0;
}

static int set_fpm(
	struct run_router *router, const char *where, const char *value, struct error *error)
{
	router->fpm_port = 0;
	if (strcmp(value, "off") == 0)
		return 0;
	const int ret = option_number(where, value, value, UINT16_MAX, &router->fpm_port, error);

	if (ret == 0 && router->fpm_port == 0)
		return option_bad_value(
			where, value, "it is off, or a TCP port: FRR's is 2620", error);
	return ret;
}

int run_router_set(struct run_router *router, enum run_router_key key, const char *where,
	const char *value, struct error *error)
{
	switch (key) {
	case RUN_ROUTER_NAME:
		return set_name(router, where, value, error);
	case RUN_ROUTER_NETNS:
		return set_netns(router, where, value, error);
	case RUN_ROUTER_TABLE:
		return set_table(router, where, value, error);
	case RUN_ROUTER_SOURCE_CHECK:
		return set_source_check(router, where, value, error);
	case RUN_ROUTER_ROUTES:
		return option_number(
			where, value, value, ROUTES_MOST, &router->max_routes[0], error);
	case RUN_ROUTER_ROUTES6:
		return option_number(
			where, value, value, ROUTES_MOST, &router->max_routes[1], error);
	case RUN_ROUTER_FPM:
		return set_fpm(router, where, value, error);
	case RUN_ROUTER_N_KEYS:
		break;
	}
	return -EINVAL;
}

int run_router_add_port(struct run_router *router, unsigned port, const char *where,
	const char *tap, struct error *error)
{
	struct run_router_port *to = &router->ports[router->n_ports];

	if (router->n_ports == ROUTER_MAX_PORTS)
		return error_set(error, -EINVAL, "%s a router has %d ports at most", where,
			ROUTER_MAX_PORTS);
	if (!is_interface_name(tap, sizeof(to->tap)))
		return option_bad_value(where, tap,
			"this is to be the name of the port's network interface (name: NAME), "
			"which "
			"has 1 to 15 "
			"letters, digits and signs",
			error);
	for (unsigned i = 0; i < router->n_ports; i++)
		if (strcmp(router->ports[i].tap, tap) == 0)
			return option_bad_value(where, tap,
				"another port of the router has this name already", error);
	to->port = port;
	memcpy(to->tap, tap, strlen(tap) + 1);
	router->n_ports++;
	return 0;
}
