/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Routes and next hops as objects, for those verbs that tell of them. */

#include <jansson.h>

#include "plane/plane.h"
#include "route/router.h"

json_t *route_describe_hop(const struct plane_config *config, const struct router_hop_view *hop);
json_t *route_describe(const struct plane_config *config, const struct router_config *router,
	const struct router_route_view *route);
