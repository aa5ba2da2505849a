/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Ports and wires as the user wrote them, on the command line or in a file, and how they become those of a configuration. */

#include "main/run_config.h"
#include "main/run_config_places.h"

/* Ports and wires before they are joined; the texts are the caller's. */
struct run_draft {
	struct {
		const char *name, *device;
		char where[RUN_WHERE_MAX];
	} ports[PLANE_MAX_PORTS];
	struct {
		const char *name[2];
		char where[RUN_WHERE_MAX];
	} wires[FLOW_MAX_WIRES];
	struct run_draft_router {
		const char *values[RUN_ROUTER_N_KEYS]; /* NULL: not said */
		struct {
			const char *port, *tap;
		} ports[ROUTER_MAX_PORTS];
		unsigned n_ports;
		char where[RUN_WHERE_MAX];
	} routers[TOPOLOGY_MAX_DOMAINS];
	unsigned n_ports, n_wires, n_routers;
};

/*
 * Makes the configuration's ports and wires, those given first and then names that are devices. Each
 * port has to end up in one wire.
 */
int run_config_join(struct run_config *config, const struct run_draft *draft, struct error *error);
