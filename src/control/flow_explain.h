/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What there is to say of one flow beyond its record. */

#include <jansson.h>

#include "flow/record.h"
#include "path/plane.h"

/*
 * The keys of `flow explain` that follow the record, at `now_us` of the run's clock; `cpu` is the
 * worker's processor or -1. NULL without memory.
 */
json_t *flow_explain_record(const struct plane_config *config, const struct flow_record *record,
	uint64_t now_us, int cpu);
