/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The system's monotonic clock, for those who wait, tend and show progress: never for the time of a
 * packet or flow, which is the clock of the run (base/clock.h).
 */

#include <stdint.h>
#include <time.h>

static inline uint64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
