/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "offload/histogram.h"
#include "traffic/draw.h"

static struct histogram *made(void)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));

	assert_non_null(histogram);
	return histogram;
}

static void of_none_there_is_no_time(void **state)
{
	struct histogram *histogram = made();

	(void)state;
	assert_int_equal(histogram_at(histogram, 0.5), 0);
	free(histogram);
}

/* A time alone is told to 6 %, never as too short, and the longest exactly. */
static void each_time_lies_in_its_step(void **state)
{
	struct draw draw = {.seed = 1};

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct histogram *histogram = made();
		uint64_t ns = draw_next(&draw) >> (22 + draw_next(&draw) % 42);

		histogram_add(histogram, ns);
		histogram_add(histogram, UINT64_C(1) << 60);
		uint64_t told = histogram_at(histogram, 0.5);

		assert_true(told >= ns);
		assert_true(told - ns <= ns / 16);
		assert_true(histogram_at(histogram, 1) == UINT64_C(1) << 60);
		assert_int_equal(histogram->times, 2);
		assert_true(histogram->sum_ns == ns + (UINT64_C(1) << 60));
		free(histogram);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#define N_TIMES 10000

/* As sorting all of them tells. */
static void shares_are_those_of_the_sorted_times(void **state)
{
	static uint64_t times[N_TIMES];
	const double shares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	struct histogram *histogram = made();
	struct draw draw = {.seed = 2};

	(void)state;
	for (unsigned i = 0; i < N_TIMES; i++) {
		times[i] = draw_next(&draw) >> (30 + draw_next(&draw) % 30);
		histogram_add(histogram, times[i]);
	}
	qsort(times, N_TIMES, sizeof(times[0]), compare);
	for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		unsigned rank = (unsigned)ceil(shares[i] * N_TIMES);
		uint64_t exact = times[rank ? rank - 1 : 0];
		uint64_t told = histogram_at(histogram, shares[i]);

		assert_true(told >= exact && told - exact <= exact / 16);
	}
	assert_true(histogram->max_ns == times[N_TIMES - 1]);
	assert_true(histogram_at(histogram, 1) == times[N_TIMES - 1]);
	free(histogram);
}

/* At each power of two, by counting the times themselves. */
static void those_below_a_power_of_two_are_counted_exactly(void **state)
{
	static uint64_t times[N_TIMES];
	struct histogram *histogram = made();
	struct draw draw = {.seed = 3};

	(void)state;
	for (unsigned i = 0; i < N_TIMES; i++) {
		/* many of them at a power of two, or beside it */
		times[i] = i % 3 == 0 ? draw_next(&draw) >> (24 + draw_next(&draw) % 40)
				      : (UINT64_C(1) << draw_next(&draw) % 40) - i % 3 + 1;
		histogram_add(histogram, times[i]);
	}
	for (unsigned bits = 0; bits <= 40; bits++) {
		uint64_t below = 0;

		for (unsigned i = 0; i < N_TIMES; i++)
			below += times[i] < UINT64_C(1) << bits;
		assert_int_equal(histogram_below(histogram, bits), below);
	}
	assert_int_equal(histogram_below(histogram, 64), N_TIMES);
	free(histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_none_there_is_no_time),
		cmocka_unit_test(each_time_lies_in_its_step),
		cmocka_unit_test(shares_are_those_of_the_sorted_times),
		cmocka_unit_test(those_below_a_power_of_two_are_counted_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
