/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Records on their way into the cache, for those who account many: a record is asked for with fetch_record(), a burst
 * or so before it is read, and whoever then reads the first line alone calls fetch_rest().
 *
 * A record of a large table comes whole, into the second cache. Into the nearest a core waits for so few lines at a time
 * that it would stop for the last ones. And a line that is asked for without its neighbour, or whose neighbour is not
 * read after all, hardly comes in time on AMD's Zen 4: with 131,072 marked UDP flows a packet took 48 to 52 cycles
 * above the floor with its first line fetched into the nearest cache, 68 to 75 into the second, 71 to 75 with both in
 * the second and one read, and 28 to 31 with both fetched there and read (docs/benchmarks.md, "mark").
 */

#include <stdbool.h>

#include <rte_prefetch.h>

#include "flow/record.h"

/* `both`: both lines will be needed. `far`: of a table that does not lie in the nearest caches. */
static inline __attribute__((always_inline)) void fetch_record(
	const struct flow_record *record, bool both, bool far)
{
	if (far) {
		rte_prefetch1(record);
		rte_prefetch1(&record->end);
		return;
	}
	rte_prefetch0(record);
	if (both)
		rte_prefetch0(&record->end);
}

/* The record's first line is being read, and nothing of the second will be. */
static inline __attribute__((always_inline)) void fetch_rest(
	const struct flow_record *record, bool far)
{
	if (far)
		rte_prefetch0(&record->end);
}
