/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The router's own struct, for what follows the kernel and for what shows it. */

#include <pthread.h>

#include "route/hops.h"
#include "route/rib.h"
#include "route/router.h"
#include "route/sets.h"

struct router {
	struct router_config config;
	pthread_mutex_t lock; /* over all that follows, but for what workers read */
	struct routes routes;
	struct route_group *groups;
	struct hops hops;
	struct sets sets;
	struct rib rib;
	router_resolve_fn resolve;
	void *resolve_context;
	uint64_t n_prefixes[2];
	uint64_t changes, refused, dumps;
	uint64_t retry_at; /* decisions that have to be in force before numbers are sought again */
};
