/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where a flow is handled, and why: the part of `flow explain` that is about NICs. */

#include <jansson.h>

#include "plane/plane.h"

/* "forward": of packets from the end that began the flow; "reverse". */
const char *flow_offload_direction(const struct flow_record *record, unsigned end);

/* Of a wire, the port by which packets of a direction come usually: that of the flow's first packet, or the other. */
unsigned flow_offload_port(
	const struct plane *plane, const struct flow_record *record, unsigned from);

/* The direction has a rule at that port, or it is on its way there or back. */
bool flow_offload_rule_is_at(const struct plane_flow *flow, unsigned from, unsigned port);

/* Adds its keys, from `where` to `changes_lost`, to the line. */
void flow_offload_explain(json_t *line, struct plane *plane, const struct plane_flow *flow);
