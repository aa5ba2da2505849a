/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The clock of a live run: microseconds since its start, from the processor's time stamp counter, by a
 * multiplication and no division.
 *
 * How fast the counter counts is known to some parts in 100,000 only, a second a day. So whoever
 * started the clock holds it against the system's monotonic one every second or so, and it is led back
 * gently: it never jumps, and never runs back. Any thread may read it meanwhile.
 *
 * The counter itself may begin anew or leap: in a virtual machine that is stopped, copied or moved, in any that was
 * suspended. A reader who finds it so asks the system's monotonic clock instead, until the next correction takes the
 * counter from there. So the clock goes on as if nothing had been.
 *
 * What Unix time clock 0 has is another matter: it changes when somebody sets the machine's clock, which the next
 * correction finds out. The clock of the run takes no notice.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

/* A test does here what another thread may do between two loads of a reader. */
#ifndef TSC_CLOCK_BETWEEN_LOADS
#define TSC_CLOCK_BETWEEN_LOADS(clock) (void)(clock)
#endif

/* From a point on, so fast. */
struct tsc_rate {
	atomic_uint_fast64_t tsc, us;
	atomic_uint_fast64_t us_per_2_64; /* microseconds a tick, times 2^64 */
	atomic_uint_fast64_t system_us;	  /* of the system's clock, at that point */
	atomic_uint_fast64_t most_ticks;  /* the counter is believed up to so many from there */
};

struct tsc_clock {
	_Atomic uint64_t origin_us; /* Unix time of clock 0, as the machine's clock is set now */
	uint64_t (*system_us)(
		void);	    /* the system's monotonic clock; NULL: the counter never errs */
	uint64_t start_us;  /* of the system's clock */
	double us_per_tick; /* as the counter is said to be */
	bool unmeasured;    /* it may be another now */
	uint64_t last_tsc;  /* at the last correction */
	uint64_t last_us;
	atomic_uint n_rates; /* the last one counts, at (n_rates - 1) % 2 */
	struct tsc_rate rates[2];
};

/* Clock 0 is now. */
void tsc_clock_start(struct tsc_clock *clock);

/*
 * Call every second or so. One thread. Returns by how many microseconds the machine's clock was set forward (or back,
 * below 0) since the last call; 0: it was not.
 */
int64_t tsc_clock_correct(struct tsc_clock *clock);

/* The same by a counter and a system's clock (in microseconds) that the caller has read. */
void tsc_clock_start_at(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us);
void tsc_clock_start_by(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us,
	uint64_t (*system_us)(void));
void tsc_clock_correct_at(struct tsc_clock *clock, uint64_t tsc, uint64_t us);
/* Unix time and the system's clock of one moment. Returns what tsc_clock_correct() does. */
int64_t tsc_clock_wall_at(struct tsc_clock *clock, uint64_t wall_us, uint64_t system_us);

/* For tsc_clock_us(): the counter is so many ticks from a rate's, which can't be right. */
uint64_t tsc_clock_us_astray(
	const struct tsc_clock *clock, const struct tsc_rate *rate, uint64_t ticks);

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

		TSC_CLOCK_BETWEEN_LOADS(clock);
		uint64_t base_us = atomic_load_explicit(&rate->us, memory_order_acquire);
		uint64_t speed = atomic_load_explicit(&rate->us_per_2_64, memory_order_acquire);
		uint64_t most = atomic_load_explicit(&rate->most_ticks, memory_order_acquire);
		uint64_t ticks = tsc - from;

		us = base_us + (uint64_t)((unsigned __int128)ticks * speed >> 64);
		if (unlikely(ticks > most))
			us = tsc_clock_us_astray(clock, rate, ticks);
	} while (atomic_load_explicit(&clock->n_rates, memory_order_relaxed) != n);
	return us;
}

/* Unix time in microseconds of clock 0. */
static inline uint64_t tsc_clock_origin_us(const struct tsc_clock *clock)
{
	return atomic_load_explicit(&clock->origin_us, memory_order_relaxed);
}
