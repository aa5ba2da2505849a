/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Rates of all flows, from two looks at each: how many packets the first look found is remembered by
 * worker and position, with the flow's start, by which the second one knows that it is the same flow.
 *
 * 12 bytes for each position of the tables, taken at the start: who asks takes none. So one list at a time is
 * measured.
 */

#include <stdbool.h>
#include <stdint.h>

#include "flow/record.h"

struct plane;
struct flow_rates;

/* NULL without memory. */
struct flow_rates *flow_rates_create(const struct plane *plane);

/* Begins to measure: what was remembered is forgotten. `now_us` of the run: before the first look. */
void flow_rates_begin(struct flow_rates *rates, uint64_t now_us);

/* First look. 0, or -ERANGE for a position that cannot be. */
int flow_rates_remember(struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us);

/* Second look: packets a second since the first, or since then for a flow that is new. */
uint64_t flow_rates_of(const struct flow_rates *rates, unsigned worker, uint32_t position,
	const struct flow_record *record, uint64_t now_us);

/* Accepts NULL. */
void flow_rates_destroy(struct flow_rates *rates);
