/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct tsc_clock;

/* Called where a reader has loaded one part of a rate, and not yet the others. */
static void between_loads(const struct tsc_clock *clock);

#define TSC_CLOCK_BETWEEN_LOADS(clock) between_loads(clock)

#include "base/tsc.h"

#define HZ UINT64_C(2600000000)

struct correction {
	uint64_t tsc, us;
};

static struct correction corrections[2];
static unsigned n_corrections;

static void between_loads(const struct tsc_clock *clock)
{
	unsigned n = n_corrections;

	/* they read the clock, too */
	n_corrections = 0;
	for (unsigned i = 0; i < n; i++)
		tsc_clock_correct_at((struct tsc_clock *)(uintptr_t)clock, corrections[i].tsc,
			corrections[i].us);
}

/* The counter is said to be `ppm` parts in a million faster than it is, for a day. */
static void a_day(long ppm)
{
	const uint64_t real_hz = (uint64_t)((int64_t)HZ - (int64_t)HZ / 1000000 * ppm);
	const uint64_t start_tsc = 77 * HZ, start_us = 5000000;
	struct tsc_clock clock;
	uint64_t before = 0;

	tsc_clock_start_at(&clock, start_tsc, HZ, start_us);
	assert_int_equal(tsc_clock_us(&clock, start_tsc), 0);
	assert_int_equal(tsc_clock_us(&clock, start_tsc - 1000), 0);
	for (uint64_t second = 1; second < 86400; second++) {
		uint64_t tsc = start_tsc + second * real_hz;
		uint64_t told = tsc_clock_us(&clock, tsc);

		assert_true(told >= before);
		if (second > 30)
			assert_true(llabs((long long)(told - second * 1000000)) <= 20);
		tsc_clock_correct_at(&clock, tsc, start_us + second * 1000000);
		/* no jump */
		assert_true(tsc_clock_us(&clock, tsc) - told <= 1);
		before = tsc_clock_us(&clock, tsc + 100);
		assert_true(before >= told);
	}
}

static void it_stays_with_the_systems_clock(void **state)
{
	(void)state;
	a_day(0);
	a_day(50);
	a_day(-50);
	a_day(1000);
}

/* The counter stands still for a while, as in a machine that is suspended. */
static void what_is_far_off_is_made_good_without_a_jump(void **state)
{
	struct tsc_clock clock;
	uint64_t tsc = HZ, us = 1000000, before;

	(void)state;
	tsc_clock_start_at(&clock, tsc, HZ, us);
	us += 100 * UINT64_C(1000000);
	for (unsigned second = 0; second < 400; second++) {
		before = tsc_clock_us(&clock, tsc);
		tsc += HZ;
		us += 1000000;
		uint64_t now = tsc_clock_us(&clock, tsc);

		assert_true(now >= before && now - before <= 2000001);
		tsc_clock_correct_at(&clock, tsc, us);
	}
	assert_true(llabs((long long)(tsc_clock_us(&clock, tsc) - (us - 1000000))) < 1000);
}

/* The system's clock, as a test sets it. */
static uint64_t system_now_us;

static uint64_t system_us(void)
{
	return system_now_us;
}

/* A clock that is corrected four times a second while a counter and the system's clock go on. */
struct run {
	struct tsc_clock clock;
	uint64_t tsc;
	uint64_t hz;
	uint64_t told; /* the last reading: none is before it */
};

static void begin_run(struct run *run, uint64_t tsc)
{
	*run = (struct run){.tsc = tsc, .hz = HZ};
	system_now_us = 7000000;
	tsc_clock_start_by(&run->clock, tsc, HZ, system_now_us, system_us);
}

static void read_it(struct run *run)
{
	uint64_t told = tsc_clock_us(&run->clock, run->tsc);

	assert_true(told >= run->told);
	run->told = told;
}

/* Time passes: read each millisecond, in which the clock goes on by a millisecond and a half at most, and by a half at least. */
static void pass(struct run *run, unsigned ms)
{
	for (unsigned i = 1; i <= ms; i++) {
		uint64_t before = run->told;

		run->tsc += run->hz / 1000;
		system_now_us += 1000;
		read_it(run);
		assert_in_range(run->told - before, 400, 2100);
		if (i % 250 == 0)
			tsc_clock_correct_at(&run->clock, run->tsc, system_now_us);
	}
}

/* How far the clock is from the system's. */
static uint64_t error_of(const struct run *run)
{
	return (uint64_t)llabs((long long)(run->told - (system_now_us - 7000000)));
}

/* A virtual machine is started from a copy: the counter is at 0 again, whatever it was. */
static void a_counter_that_begins_anew_stops_nothing(void **state)
{
	struct run run;

	(void)state;
	for (uint64_t first = 1; first < 100; first += 98) {
		begin_run(&run, first * 3600 * HZ);
		pass(&run, 10100);
		for (unsigned times = 0; times < 5; times++) {
			/* in the middle of what passes between two corrections */
			run.tsc = times;
			pass(&run, 3333);
			assert_in_range(error_of(&run), 0, 2000);
		}
	}
}

/* Stopped and gone on with: the counter has gone on, the system's monotonic clock has not. */
static void a_counter_that_leaps_does_not_age_anything(void **state)
{
	static const uint64_t leaps_s[] = {4, 20, 7200, 1000000};
	struct run run;

	(void)state;
	for (unsigned i = 0; i < sizeof(leaps_s) / sizeof(leaps_s[0]); i++) {
		begin_run(&run, 50 * HZ);
		pass(&run, 10100);
		run.tsc += leaps_s[i] * HZ;
		pass(&run, 20000);
		assert_in_range(error_of(&run), 0, 2000);
		/* back again */
		run.tsc -= leaps_s[i] * HZ;
		pass(&run, 20000);
		assert_in_range(error_of(&run), 0, 2000);
	}
}

/* A shorter one can't be told from a wrong rate at once: it is seen, and made good without a step. */
static void a_short_leap_is_made_good(void **state)
{
	struct run run;

	(void)state;
	begin_run(&run, 50 * HZ);
	pass(&run, 10100);
	run.tsc += 2 * HZ;
	for (unsigned ms = 1; ms <= 20000; ms++) {
		run.tsc += HZ / 1000;
		system_now_us += 1000;
		read_it(&run);
		assert_in_range(error_of(&run), 0, 2000000);
		if (ms % 250 == 0)
			tsc_clock_correct_at(&run.clock, run.tsc, system_now_us);
	}
	assert_in_range(error_of(&run), 0, 2000);
}

/* It goes on in another machine, whose counter is three times as fast. */
static void another_machines_counter_is_measured(void **state)
{
	struct run run;

	(void)state;
	begin_run(&run, 50 * HZ);
	pass(&run, 10100);
	run.tsc = 5;
	run.hz = HZ / 1000 * 2000;
	pass(&run, 900);
	run.hz = HZ / 1000 * 1500;
	run.tsc = 7;
	pass(&run, 30000);
	assert_in_range(error_of(&run), 0, 2000);
}

/* The one who corrects does not get its turn: the counter is not believed any more, and the clock is right still. */
static void it_goes_on_without_corrections(void **state)
{
	struct run run;

	(void)state;
	begin_run(&run, 50 * HZ);
	for (unsigned i = 0; i < 100; i++)
		pass(&run, 249);
	assert_in_range(error_of(&run), 0, 2000);
	run.tsc = 0;
	pass(&run, 249);
	assert_in_range(error_of(&run), 0, 2000);
}

/* Another core's counter is a little behind: that is not one that began anew. */
static void cores_differ_by_some_ticks(void **state)
{
	struct run run;

	(void)state;
	begin_run(&run, 50 * HZ);
	pass(&run, 1000);
	assert_int_equal(tsc_clock_us(&run.clock, run.tsc - 1000), run.told);
}

/* Somebody sets the machine's clock, either way; slow corrections of both of the system's clocks are nobody's business. */
static void a_clock_that_is_set_changes_unix_time_only(void **state)
{
	const uint64_t wall_us = UINT64_C(1700000000000000), hour_us = UINT64_C(3600000000);
	struct run run;

	(void)state;
	begin_run(&run, 50 * HZ);
	assert_int_equal(tsc_clock_wall_at(&run.clock, wall_us, system_now_us), 0);
	assert_int_equal(tsc_clock_origin_us(&run.clock), wall_us);
	pass(&run, 5000);
	assert_int_equal(tsc_clock_wall_at(&run.clock, wall_us + 5000000 + 900, system_now_us), 0);
	assert_int_equal(tsc_clock_origin_us(&run.clock), wall_us);
	assert_int_equal(
		tsc_clock_wall_at(&run.clock, wall_us + 5000000 + hour_us, system_now_us), hour_us);
	assert_int_equal(tsc_clock_origin_us(&run.clock), wall_us + hour_us);
	pass(&run, 5000);
	assert_int_equal(tsc_clock_wall_at(&run.clock, wall_us + 10000000, system_now_us),
		-(int64_t)hour_us);
	assert_int_equal(tsc_clock_origin_us(&run.clock), wall_us);
	assert_in_range(error_of(&run), 0, 2000);
}

/*
 * Two corrections come between a reader's loads, so that the place it reads from is written anew. It sees one rate or
 * the other, never half of each, which would be seconds off.
 */
static void it_may_be_read_while_it_is_corrected(void **state)
{
	struct tsc_clock clock;
	const uint64_t second = HZ;

	(void)state;
	tsc_clock_start_at(&clock, 0, HZ, 0);
	for (uint64_t i = 2; i < 2000; i += 2) {
		corrections[0] = (struct correction){i * second, i * 1000000};
		corrections[1] = (struct correction){(i + 1) * second, (i + 1) * 1000000};
		n_corrections = 2;
		uint64_t told = tsc_clock_us(&clock, (i + 2) * second);

		assert_int_equal(n_corrections, 0);
		assert_in_range(told, (i + 2) * 1000000 - 5, (i + 2) * 1000000 + 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stays_with_the_systems_clock),
		cmocka_unit_test(what_is_far_off_is_made_good_without_a_jump),
		cmocka_unit_test(a_counter_that_begins_anew_stops_nothing),
		cmocka_unit_test(a_counter_that_leaps_does_not_age_anything),
		cmocka_unit_test(a_short_leap_is_made_good),
		cmocka_unit_test(another_machines_counter_is_measured),
		cmocka_unit_test(it_goes_on_without_corrections),
		cmocka_unit_test(cores_differ_by_some_ticks),
		cmocka_unit_test(a_clock_that_is_set_changes_unix_time_only),
		cmocka_unit_test(it_may_be_read_while_it_is_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
