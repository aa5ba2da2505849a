/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The routers of a configuration: docs/configuration.md has the keys. */

#include <stdint.h>

#include "base/error.h"
#include "plane/plane.h"

struct run_router_port {
	unsigned port; /* its place in the configuration's ports */
	char tap[16];  /* the name of its TAP */
};

struct run_router {
	char name[ROUTER_NAME_MAX];
	char *netns; /* name or path of the TAPs' network namespace; NULL: that of the process */
	uint32_t table;
	enum routes_source_check source_check;
	uint32_t max_routes[2]; /* of IPv4 and IPv6 */
	uint32_t fpm_port;	/* a routing daemon may connect to it; 0: FPM is off */
	unsigned n_ports;
	struct run_router_port ports[ROUTER_MAX_PORTS];
};

/* Keys with one value. */
enum run_router_key {
	RUN_ROUTER_NAME,
	RUN_ROUTER_NETNS,
	RUN_ROUTER_TABLE,
	RUN_ROUTER_SOURCE_CHECK,
	RUN_ROUTER_ROUTES,
	RUN_ROUTER_ROUTES6,
	RUN_ROUTER_FPM,
	RUN_ROUTER_N_KEYS,
};
const char *run_router_key(enum run_router_key key);

void run_router_init(struct run_router *router);
void run_router_fini(struct run_router *router);

/* Sets what a key says; `where` and errors are as in base/options.h. */
int run_router_set(struct run_router *router, enum run_router_key key, const char *where,
	const char *value, struct error *error);
/* Adds a port, whose place the caller knows. */
int run_router_add_port(struct run_router *router, unsigned port, const char *where,
	const char *tap, struct error *error);
