/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The clock of a live run: microseconds since its start, from the processor's time stamp counter, by a
 * multiplication and no division. Set once, read by any thread.
 */

#include <stdint.h>

#include <rte_cycles.h>

struct tsc_clock {
	uint64_t start;	      /* TSC at clock 0 */
	uint64_t us_per_2_64; /* microseconds a tick, times 2^64 */
	uint64_t origin_us;   /* Unix time of clock 0 */
};

/* Clock 0 is now. */
void tsc_clock_start(struct tsc_clock *clock);

static inline uint64_t tsc_clock_us(const struct tsc_clock *clock, uint64_t tsc)
{
	/* another core's counter may be some ticks behind */
	uint64_t ticks = tsc > clock->start ? tsc - clock->start : 0;

	return (uint64_t)((unsigned __int128)ticks * clock->us_per_2_64 >> 64);
}
