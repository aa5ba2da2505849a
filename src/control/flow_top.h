/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The flows that have most of something, kept while all of them pass by; the others are forgotten. */

#include <stdint.h>

#include "flow/report.h"

struct flow_top_entry {
	struct flow_record record;
	struct flow_offload offload;
	struct flow_dropped dropped;
	struct flow_rules rules;
	struct flow_measured measure[2];
	uint64_t value;	  /* by which they rank */
	uint64_t packets; /* and among equals, by this */
	unsigned worker;
};

struct flow_top;

/* Room for `count` flows, at least 1. NULL without memory. */
struct flow_top *flow_top_create(unsigned count);
/* Shows a flow, which has its value and all before it; it is copied if it ranks. */
void flow_top_add(struct flow_top *top, const struct flow_top_entry *flow);
/* The flows that were kept, in order. Ends the adding. */
const struct flow_top_entry *flow_top_sorted(struct flow_top *top, unsigned *n);
/* Accepts NULL. */
void flow_top_destroy(struct flow_top *top);
