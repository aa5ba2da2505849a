/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The busiest of many flows: of all reports shown, keeps copies of the N with the most bytes, both
 * directions together. A flow that is reported several times (active reports) stands there once for
 * each. Used by one thread.
 */

#include "flow/report.h"

struct top;

/* Room for `count` reports, at least 1. Returns NULL without memory. */
struct top *top_create(unsigned count);

/* Shows a report; it is copied if it ranks. */
void top_add(struct top *top, const struct flow_report *report);

/*
 * Sorts what was kept, most bytes first, and returns it; `n` is how many. Among equals the order of
 * start, then of the key. Ends the adding.
 */
const struct flow_report *top_sorted(struct top *top, unsigned *n);

/* Bytes of both directions. */
uint64_t top_bytes(const struct flow_report *report);

/* Accepts NULL. */
void top_destroy(struct top *top);
