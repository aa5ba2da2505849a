/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tsc.h"

#include "base/clock.h"
#include "base/monotonic.h"

/* An error is made good within this time, the clock running at most twice and at least half as fast. */
#define CORRECT_US 1000000.0
/* The counter is believed for so long after a correction. Beyond that, and if it ran back, the system's clock is asked. */
#define BELIEVE_US 1500000.0
/* Counters of two cores may differ by a thousandth of that. */
#define CORES_DIFFER 1000
/* A reading of two of the system's clocks is good if it took no longer, and the second one was set if it differs by more. */
#define READING_US 1000
#define STEP_US 2000
#define READINGS 3

static void set_rate(
	struct tsc_clock *clock, uint64_t tsc, uint64_t us, uint64_t system_us, double us_per_tick)
{
	unsigned n = atomic_load_explicit(&clock->n_rates, memory_order_relaxed);
	struct tsc_rate *rate = &clock->rates[n % 2];
	uint64_t most = (uint64_t)(BELIEVE_US / us_per_tick);

	if (clock->system_us == NULL)
		most = INT64_MAX;
	else if (clock->unmeasured)
		most = 0;

	/* a reader that sees any of these will see that n_rates has moved on since */
	atomic_store_explicit(&rate->tsc, tsc, memory_order_release);
	atomic_store_explicit(&rate->us, us, memory_order_release);
	atomic_store_explicit(&rate->system_us, system_us, memory_order_release);
	atomic_store_explicit(&rate->most_ticks, most, memory_order_release);
	atomic_store_explicit(
		&rate->us_per_2_64, (uint64_t)(us_per_tick * 0x1p64), memory_order_release);
	atomic_store_explicit(&clock->n_rates, n + 1, memory_order_release);
}

void tsc_clock_start_by(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us,
	uint64_t (*system_us)(void))
{
	*clock = (struct tsc_clock){
		.system_us = system_us,
		.start_us = us,
		.last_tsc = tsc,
		.last_us = us,
		.us_per_tick = 1e6 / (double)hz,
	};
	set_rate(clock, tsc, 0, us, clock->us_per_tick);
}

void tsc_clock_start_at(struct tsc_clock *clock, uint64_t tsc, uint64_t hz, uint64_t us)
{
	tsc_clock_start_by(clock, tsc, hz, us, NULL);
}

/* The two of the system's clocks, read together; false: not so that they could be compared. */
static bool read_wall(uint64_t *wall_us, uint64_t *system_us)
{
	for (unsigned i = 0; i < READINGS; i++) {
		uint64_t before_us = monotonic_us();
		struct timespec wall;

		clock_gettime(CLOCK_REALTIME, &wall);
		*wall_us = (uint64_t)wall.tv_sec * CLOCK_US_PER_S + (uint64_t)wall.tv_nsec / 1000;
		*system_us = monotonic_us();
		if (*system_us - before_us <= READING_US)
			return true;
	}
	return false;
}

void tsc_clock_start(struct tsc_clock *clock)
{
	uint64_t wall_us, system_us;

	tsc_clock_start_by(clock, rte_rdtsc(), rte_get_tsc_hz(), monotonic_us(), monotonic_us);
	/* however long it took: there is no better one yet */
	(void)read_wall(&wall_us, &system_us);
	(void)tsc_clock_wall_at(clock, wall_us, system_us);
}

static uint64_t load(const atomic_uint_fast64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

/*
 * What a rate tells when the system's clock is at `us`, whatever the counter says. If that is little beyond what it is
 * believed, some reader may have believed it up to there after a small leap: nothing before that is told any more.
 */
static uint64_t by_system(const struct tsc_rate *rate, uint64_t us, uint64_t ticks)
{
	uint64_t from_us = load(&rate->system_us), most = load(&rate->most_ticks);
	uint64_t passed_us = us > from_us ? us - from_us : 0;
	uint64_t most_us = (uint64_t)((unsigned __int128)most * load(&rate->us_per_2_64) >> 64);

	return load(&rate->us) + (ticks <= 2 * most && most_us > passed_us ? most_us : passed_us);
}

uint64_t tsc_clock_us_astray(
	const struct tsc_clock *clock, const struct tsc_rate *rate, uint64_t ticks)
{
	/* another core's counter may be some ticks behind */
	if (clock->system_us == NULL || -ticks <= load(&rate->most_ticks) / CORES_DIFFER)
		return load(&rate->us);
	return by_system(rate, clock->system_us(), ticks);
}

/*
 * The counter began anew, or leapt: what it told since the last correction is forgotten. How fast it counts may have
 * changed, too (another machine goes on with what this one began): it is not believed before that was measured.
 */
static void begin_anew(struct tsc_clock *clock, uint64_t tsc, uint64_t us)
{
	unsigned n = atomic_load_explicit(&clock->n_rates, memory_order_relaxed);
	uint64_t told = by_system(&clock->rates[(n - 1) % 2], us, tsc - clock->last_tsc);

	clock->last_tsc = tsc;
	clock->last_us = us;
	clock->unmeasured = true;
	set_rate(clock, tsc, told, us, clock->us_per_tick);
}

void tsc_clock_correct_at(struct tsc_clock *clock, uint64_t tsc, uint64_t us)
{
	double passed_us = (double)(us - clock->last_us), ticks = (double)(tsc - clock->last_tsc);

	if (clock->system_us != NULL &&
		(tsc < clock->last_tsc || ticks * clock->us_per_tick > passed_us + BELIEVE_US)) {
		begin_anew(clock, tsc, us);
		return;
	}
	if (us - clock->last_us < CLOCK_US_PER_S || tsc <= clock->last_tsc)
		return; /* too short a time to judge by */
	uint64_t told = tsc_clock_us(clock, tsc);
	double error_us = (double)(us - clock->start_us) - (double)told;
	double rate = passed_us / ticks;

	if (clock->unmeasured)
		clock->us_per_tick = rate;
	clock->unmeasured = false;
	rate *= 1 + error_us / CORRECT_US;
	rate = rate > 2 * clock->us_per_tick ? 2 * clock->us_per_tick : rate;
	rate = rate < clock->us_per_tick / 2 ? clock->us_per_tick / 2 : rate;
	clock->last_tsc = tsc;
	clock->last_us = us;
	set_rate(clock, tsc, told, us, rate);
}

int64_t tsc_clock_wall_at(struct tsc_clock *clock, uint64_t wall_us, uint64_t system_us)
{
	uint64_t before_us = atomic_load_explicit(&clock->origin_us, memory_order_relaxed);
	uint64_t origin_us = wall_us - (system_us - clock->start_us);
	int64_t step_us = (int64_t)(origin_us - before_us);

	if (before_us != 0 && step_us <= STEP_US && step_us >= -STEP_US)
		return 0;
	atomic_store_explicit(&clock->origin_us, origin_us, memory_order_relaxed);
	return before_us == 0 ? 0 : step_us;
}

int64_t tsc_clock_correct(struct tsc_clock *clock)
{
	uint64_t wall_us, system_us, tsc = rte_rdtsc();

	tsc_clock_correct_at(clock, tsc, monotonic_us());
	return read_wall(&wall_us, &system_us) ? tsc_clock_wall_at(clock, wall_us, system_us) : 0;
}
