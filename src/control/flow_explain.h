/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What there is to say of one flow beyond its record. */

#include <jansson.h>

#include "plane/plane.h"

/*
 * The keys of `flow explain` that follow the record; `cpu` is the worker's processor or -1. NULL without
 * memory.
 */
json_t *flow_explain_record(struct plane *plane, const struct plane_flow *flow, int cpu);
