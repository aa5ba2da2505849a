/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tsc.h"

#include <time.h>

#include "base/clock.h"

void tsc_clock_start(struct tsc_clock *clock)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	clock->start = rte_rdtsc();
	clock->us_per_2_64 =
		(uint64_t)(((unsigned __int128)CLOCK_US_PER_S << 64) / rte_get_tsc_hz());
	clock->origin_us = (uint64_t)now.tv_sec * CLOCK_US_PER_S + (uint64_t)now.tv_nsec / 1000;
}
