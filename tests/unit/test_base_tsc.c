/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/tsc.h"

#define HZ UINT64_C(2600000000)

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

static void *correct(void *argument)
{
	for (unsigned i = 1; i < 200000; i++)
		tsc_clock_correct_at(argument, HZ * (i + 10), 1000000 * (uint64_t)(i + 10));
	return NULL;
}

/* Readers see one rate or the other, never half of each. */
static void it_may_be_read_while_it_is_corrected(void **state)
{
	struct tsc_clock clock;
	pthread_t thread;

	(void)state;
	tsc_clock_start_at(&clock, 0, HZ, 0);
	assert_int_equal(pthread_create(&thread, NULL, correct, &clock), 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t told = tsc_clock_us(&clock, HZ * 300000);

		assert_true(told > UINT64_C(299000000000) && told < UINT64_C(301000000000));
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stays_with_the_systems_clock),
		cmocka_unit_test(what_is_far_off_is_made_good_without_a_jump),
		cmocka_unit_test(it_may_be_read_while_it_is_corrected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
