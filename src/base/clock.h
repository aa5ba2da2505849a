/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Time, as the engine knows it: the clock of the run, in microseconds since the run began. Whoever
 * receives packets sets it: in replay it is the capture's own time, in tests whatever the test says.
 * It never runs back.
 *
 * Records keep 48 bits of it, 8.9 years. The clock stops there: a run that could last longer is ended
 * and begun anew before that (in replay, at a gap of CLOCK_GAP_US, or with that much left).
 */

#include <stdint.h>

#define CLOCK_US_PER_S UINT64_C(1000000)
#define CLOCK_MAX_US ((UINT64_C(1) << 48) - 1)

/* Longer than any timeout: after such a silence no flow can be alive. 1.1 years. */
#define CLOCK_GAP_US (UINT64_C(1) << 45)

/*
 * Flows age by ticks of half a second. The record of an idle flow is made at the first tick at which its time-out is over,
 * so that half a second is left for everything else that may delay it before it is a second late.
 */
#define CLOCK_TICKS_PER_S UINT64_C(2)
#define CLOCK_TICK_US (CLOCK_US_PER_S / CLOCK_TICKS_PER_S)

/* The tick that `us` lies in. */
static inline uint64_t clock_tick(uint64_t us)
{
	return us / CLOCK_TICK_US;
}

/* The first tick that does not begin before `us`. */
static inline uint64_t clock_tick_from(uint64_t us)
{
	return (us + CLOCK_TICK_US - 1) / CLOCK_TICK_US;
}

/* The whole second that `us` lies in. */
static inline uint64_t clock_second(uint64_t us)
{
	return us / CLOCK_US_PER_S;
}

/* The first whole second that is not before `us`. */
static inline uint64_t clock_second_from(uint64_t us)
{
	return (us + CLOCK_US_PER_S - 1) / CLOCK_US_PER_S;
}
