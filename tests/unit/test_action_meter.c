/* SPDX-License-Identifier: BSD-3-Clause */

/* Meters against plain token buckets that are counted by hand, from several threads, and what profiles refuse. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "action/meter.h"

#define MS UINT64_C(1000000)
#define DROPS_RED (1u << RTE_COLOR_RED)

static struct action_meter *make(const struct action_meter_limits *limits, uint8_t drops)
{
	struct action_meter *meter = aligned_alloc(64, sizeof(*meter));
	struct action_meter_profile profile;
	struct error error;

	assert_non_null(meter);
	assert_int_equal(action_meter_profile_init(&profile, limits, &error), 0);
	action_meter_init(meter, &profile, drops, true);
	return meter;
}

static void expect(
	struct action_meter *meter, uint64_t now_ns, uint32_t bytes, enum rte_color color)
{
	const struct action_meter_answer answer = action_meter_color(meter, now_ns, bytes);

	assert_int_equal(answer.color, color);
	assert_int_equal(answer.drops, color == RTE_COLOR_RED);
}

/* 1,000 bytes a ms; 3,000 at once, and 2,000 more in excess. */
static void test_srtcm(void **state)
{
	const struct action_meter_limits limits = {
		.kind = ACTION_METER_SRTCM, .rate = {1000000}, .burst = {3000, 2000}};
	struct action_meter *meter = make(&limits, DROPS_RED);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		expect(meter, 0, 1000, RTE_COLOR_GREEN);
	for (unsigned i = 0; i < 2; i++)
		expect(meter, 0, 1000, RTE_COLOR_YELLOW);
	expect(meter, 0, 1, RTE_COLOR_RED);
	expect(meter, MS - 1000, 1000, RTE_COLOR_RED);
	expect(meter, MS, 1000, RTE_COLOR_GREEN);
	/* time that runs back stands still */
	expect(meter, 0, 1, RTE_COLOR_RED);
	/* both are full after 5 ms, and no fuller after an hour */
	for (unsigned hour = 0; hour < 3; hour++) {
		const uint64_t now_ns = 10 * MS + hour * 3600000 * MS;

		expect(meter, now_ns, 3000, RTE_COLOR_GREEN);
		expect(meter, now_ns, 2000, RTE_COLOR_YELLOW);
		expect(meter, now_ns, 1, RTE_COLOR_RED);
	}
	/* silence of years does not overflow */
	expect(meter, UINT64_C(1) << 58, 3000, RTE_COLOR_GREEN);
	action_meter_restart(meter);
	expect(meter, 0, 3000, RTE_COLOR_GREEN);
	free(meter);
}

static void test_trtcm(void **state)
{
	const struct action_meter_limits limits = {
		.kind = ACTION_METER_TRTCM, .packets = true, .rate = {1000, 2000}, .burst = {2, 3}};
	struct action_meter *meter = make(&limits, DROPS_RED);

	(void)state;
	expect(meter, 0, 9000, RTE_COLOR_GREEN);
	expect(meter, 0, 60, RTE_COLOR_GREEN);
	expect(meter, 0, 60, RTE_COLOR_YELLOW);
	expect(meter, 0, 60, RTE_COLOR_RED);
	expect(meter, MS, 60, RTE_COLOR_GREEN);
	expect(meter, MS, 60, RTE_COLOR_YELLOW);
	expect(meter, MS, 60, RTE_COLOR_RED);
	action_meter_enable(meter, false);
	expect(meter, MS, 60, RTE_COLOR_GREEN);
	action_meter_enable(meter, true);
	expect(meter, MS, 60, RTE_COLOR_RED);
	free(meter);
}

/* RFC 4115: the excess bucket fills beside the committed one. */
static void test_excess(void **state)
{
	const struct action_meter_limits limits = {.kind = ACTION_METER_TRTCM_EXCESS,
		.rate = {1000000, 2000000},
		.burst = {1000, 1000}};
	struct action_meter *meter = make(&limits, DROPS_RED);

	(void)state;
	expect(meter, 0, 1000, RTE_COLOR_GREEN);
	expect(meter, 0, 1000, RTE_COLOR_YELLOW);
	expect(meter, 0, 1000, RTE_COLOR_RED);
	expect(meter, MS / 2, 1000, RTE_COLOR_YELLOW);
	expect(meter, MS, 1000, RTE_COLOR_GREEN);
	free(meter);
}

/* What passes in 10 s of a stream that is far above the rate is the rate to 0.05 %, and the burst. */
static void test_rates(void **state)
{
	static const uint64_t rates[] = {1, 7, 999, 12345, 333333, 1000003, 1250000000, 9876543210};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const uint64_t burst = rates[i] / 1000 + 1, unit = rates[i] / 5000 + 1;
		const struct action_meter_limits limits = {
			.kind = ACTION_METER_SRTCM, .rate = {rates[i]}, .burst = {burst, 0}};
		struct action_meter *meter = make(&limits, DROPS_RED);
		const double most = 10.0 * (double)rates[i] * 1.0005 + (double)burst;
		const double least = 10.0 * (double)rates[i] * 0.9995 - 2.0 * (double)unit;
		uint64_t passed = 0;

		for (uint64_t now_ns = 0; now_ns < 10000 * MS; now_ns += 100000)
			passed +=
				action_meter_color(meter, now_ns, (uint32_t)unit).drops ? 0 : unit;
		if ((double)passed > most || (double)passed < least)
			print_error(
				"rate %ju: %ju passed\n", (uintmax_t)rates[i], (uintmax_t)passed);
		assert_true((double)passed <= most && (double)passed >= least);
		free(meter);
	}
}

#define N_THREADS 4
#define N_ASKED 50000

static void *ask(void *meter)
{
	uintptr_t passed = 0;

	for (unsigned i = 0; i < N_ASKED; i++)
		passed += !action_meter_color(meter, 0, 60).drops;
	return (void *)passed;
}

/* At one time the burst passes, whoever asks, and not a packet more. */
static void test_threads(void **state)
{
	const struct action_meter_limits limits = {
		.kind = ACTION_METER_SRTCM, .packets = true, .rate = {1}, .burst = {100000, 23}};
	struct action_meter *meter = make(&limits, DROPS_RED);
	pthread_t threads[N_THREADS];
	uintptr_t passed = 0;

	(void)state;
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, meter), 0);
	for (unsigned i = 0; i < N_THREADS; i++) {
		void *part;

		assert_int_equal(pthread_join(threads[i], &part), 0);
		passed += (uintptr_t)part;
	}
	assert_int_equal(passed, 100023);
	free(meter);
}

static void test_refused(void **state)
{
	static const struct {
		struct action_meter_limits limits;
		const char *why;
	} rows[] = {
		{{ACTION_METER_SRTCM, false, {0}, {1, 1}}, "cir 0: it has to be 1 or more"},
		{{ACTION_METER_SRTCM, false, {1}, {0, 0}},
			"cbs and ebs are 0: no packet would ever fit them"},
		{{ACTION_METER_TRTCM, false, {2, 1}, {1, 1}}, "pir 1: it is less than cir 2"},
		{{ACTION_METER_TRTCM, false, {1, 2}, {1, 0}}, "pbs 0: no packet would ever fit it"},
		{{ACTION_METER_TRTCM_EXCESS, false, {0, 2}, {0, 0}},
			"ebs 0: no packet would ever fit it"},
		{{ACTION_METER_SRTCM, false, {UINT64_MAX}, {1, 1}},
			"cir 18446744073709551615: at most 12500000000000 a second"},
		{{ACTION_METER_SRTCM, false, {1}, {1, UINT64_MAX}},
			"ebs 18446744073709551615: at most 72057594037927936"},
	};
	struct action_meter_profile profile;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			action_meter_profile_init(&profile, &rows[i].limits, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_srtcm),
		cmocka_unit_test(test_trtcm),
		cmocka_unit_test(test_excess),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
