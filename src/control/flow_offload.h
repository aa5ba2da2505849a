/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Where a flow is handled, and why: the part of `flow explain` that is about NICs. */

#include <jansson.h>

#include "path/plane_offload.h"

/* "forward": of packets from the end that began the flow; "reverse". */
const char *flow_offload_direction(const struct flow_record *record, unsigned end);

/* Adds its keys, from `where` to `changes_lost`, to the line. */
void flow_offload_explain(json_t *line, struct plane *plane, const struct plane_flow *flow);
