/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tsc.h"

#include <time.h>

#include "base/clock.h"
#include "base/monotonic.h"

/* An error is made good within this time, the clock running at most twice and at least half as fast. */
#define CORRECT_US 1000000.0

static void set_rate(struct tsc_clock *clock, uint64_t tsc, uint64_t us, double us_per_tick)
{
	unsigned n = atomic_load_explicit(&clock->n_rates, memory_order_relaxed);
	struct tsc_rate *rate = &clock->rates[n % 2];

	/* a reader that sees any of these will see that n_rates has moved on since */
	atomic_store_explicit(&rate->tsc, tsc, memory_order_release);
	atomic_store_explicit(&rate->us, us, memory_order_release);
	atomic_store_explicit(
		&rate->us_per_2_64, (uint64_t)(us_per_tick * 0x1p64), memory_order_release);
	atomic_store_explicit(&clock->n_rates, n + 1, memory_order_release);
}

void tsc_clock_start_at(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us)
{
	*clock = (struct tsc_clock){
		.start_us = us, .last_tsc = tsc, .last_us = us, .us_per_tick = 1e6 / (double)hz};
	set_rate(clock, tsc, 0, clock->us_per_tick);
}

void tsc_clock_start(struct tsc_clock *clock)
{
	struct timespec now;

	tsc_clock_start_at(clock, rte_rdtsc(), rte_get_tsc_hz(), monotonic_us());
	clock_gettime(CLOCK_REALTIME, &now);
	clock->origin_us = (uint64_t)now.tv_sec * CLOCK_US_PER_S + (uint64_t)now.tv_nsec / 1000;
}

void tsc_clock_correct_at(struct tsc_clock *clock, uint64_t tsc, uint64_t us)
{
	uint64_t told = tsc_clock_us(clock, tsc);
	double error_us = (double)(us - clock->start_us) - (double)told;

	if (us - clock->last_us < CLOCK_US_PER_S || tsc <= clock->last_tsc)
		return; /* too short a time to judge by */
	double rate = (double)(us - clock->last_us) / (double)(tsc - clock->last_tsc);

	rate *= 1 + error_us / CORRECT_US;
	rate = rate > 2 * clock->us_per_tick ? 2 * clock->us_per_tick : rate;
	rate = rate < clock->us_per_tick / 2 ? clock->us_per_tick / 2 : rate;
	clock->last_tsc = tsc;
	clock->last_us = us;
	set_rate(clock, tsc, told, rate);
}

void tsc_clock_correct(struct tsc_clock *clock)
{
	uint64_t tsc = rte_rdtsc();

	tsc_clock_correct_at(clock, tsc, monotonic_us());
}
