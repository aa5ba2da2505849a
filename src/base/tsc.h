/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The clock of a live run: microseconds since its start, from the processor's time stamp counter, by a
 * multiplication and no division.
 *
 * How fast the counter counts is known to some parts in 100,000 only, a second a day. So whoever
 * started the clock holds it against the system's monotonic one every second or so, and it is led back
 * gently: it never jumps, and never runs back. Any thread may read it meanwhile.
 */

#include <stdatomic.h>
#include <stdint.h>

#include <rte_cycles.h>

/* From a point on, so fast. */
struct tsc_rate {
	atomic_uint_fast64_t tsc, us;
	atomic_uint_fast64_t us_per_2_64; /* microseconds a tick, times 2^64 */
};

struct tsc_clock {
	uint64_t origin_us; /* Unix time of clock 0 */
	uint64_t start_tsc; /* at clock 0 */
	uint64_t start_us;  /* of the system's clock */
	double us_per_tick; /* as the counter is said to be */
	uint64_t last_tsc;  /* at the last correction */
	uint64_t last_us;
	atomic_uint n_rates; /* the last one counts, at (n_rates - 1) % 2 */
	struct tsc_rate rates[2];
};

/* Clock 0 is now. */
void tsc_clock_start(struct tsc_clock *clock);

/* Call every second or so. One thread. */
void tsc_clock_correct(struct tsc_clock *clock);

/* The same by a counter and a system's clock (in microseconds) that the caller has read. */
void tsc_clock_start_at(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us);
void tsc_clock_correct_at(struct tsc_clock *clock, uint64_t tsc, uint64_t us);

static inline uint64_t tsc_clock_us(const struct tsc_clock *clock, uint64_t tsc)
{
	unsigned n;
	uint64_t us;

	do {
		n = atomic_load_explicit(&clock->n_rates, memory_order_acquire);
		const struct tsc_rate *rate = &clock->rates[(n - 1) % 2];
		/*
		 * Two corrections later the same place is written anew. Who reads something new here
		 * sees below that n_rates has moved on.
		 */
		uint64_t from = atomic_load_explicit(&rate->tsc, memory_order_acquire);
		uint64_t base_us = atomic_load_explicit(&rate->us, memory_order_acquire);
		uint64_t speed = atomic_load_explicit(&rate->us_per_2_64, memory_order_acquire);
		/* another core's counter may be some ticks behind */
		uint64_t ticks = tsc > from ? tsc - from : 0;

		us = base_us + (uint64_t)((unsigned __int128)ticks * speed >> 64);
	} while (atomic_load_explicit(&clock->n_rates, memory_order_relaxed) != n);
	return us;
}
