/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "traffic/sequence.h"

struct round {
	uint32_t *places;
	uint32_t n;
};

static struct round make(
	uint32_t flows, enum stream_sides sides, const struct sequence_config *config)
{
	struct round round;
	struct error error;

	assert_int_equal(sequence_create(&round.places, &round.n, flows, sides, config, &error), 0);
	return round;
}

static uint32_t *counts_of(struct round round, uint32_t streams)
{
	uint32_t *counts = calloc(streams, sizeof(*counts));

	assert_non_null(counts);
	for (uint32_t i = 0; i < round.n; i++) {
		assert_true(round.places[i] < streams);
		counts[round.places[i]]++;
	}
	return counts;
}

static void test_in_order(void **state)
{
	const struct sequence_config config = {.load = SEQUENCE_IN_ORDER};

	(void)state;
	for (enum stream_sides sides = STREAM_FORWARD; sides <= STREAM_BOTH; sides++) {
		struct round round = make(1000, sides, &config);

		assert_int_equal(round.n, sides == STREAM_BOTH ? 2000 : 1000);
		for (uint32_t i = 0; i < round.n; i++)
			assert_int_equal(round.places[i],
				sides == STREAM_BOTH ? i : 2 * i + (sides == STREAM_REVERSE));
		free(round.places);
	}
}

static void test_uniform_is_each_once(void **state)
{
	const struct sequence_config config = {.load = SEQUENCE_UNIFORM, .seed = 3};

	(void)state;
	for (enum stream_sides sides = STREAM_FORWARD; sides <= STREAM_BOTH; sides++) {
		struct round round = make(10000, sides, &config);
		uint32_t *counts = counts_of(round, 20000);
		unsigned in_place = 0;

		for (uint32_t stream = 0; stream < 20000; stream++)
			assert_int_equal(counts[stream], (sides >> (stream & 1)) & 1);
		/* shuffled: about one number is where it was */
		for (uint32_t i = 0; i < round.n; i++)
			in_place += round.places[i] == (sides == STREAM_BOTH ? i : 2 * i);
		assert_true(in_place < 12);
		free(counts);
		free(round.places);
	}
}

static uint64_t digest(struct round round)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (uint32_t i = 0; i < round.n; i++)
		for (unsigned byte = 0; byte < 4; byte++)
			hash = (hash ^ (round.places[i] >> 8 * byte & 0xff)) *
			       UINT64_C(0x100000001b3);
	free(round.places);
	return hash;
}

static void test_same_words_same_round(void **state)
{
	struct sequence_config uniform = {.load = SEQUENCE_UNIFORM, .seed = 1};
	struct sequence_config zipf = {.load = SEQUENCE_ZIPF, .seed = 1, .exponent = 1};

	(void)state;
	assert_int_equal(digest(make(5000, STREAM_BOTH, &uniform)), UINT64_C(0x73dc7d097edf1f45));
	assert_int_equal(digest(make(5000, STREAM_BOTH, &zipf)), UINT64_C(0x5fd2436f2d80ebec));
	uint64_t before[2] = {
		digest(make(5000, STREAM_BOTH, &uniform)), digest(make(5000, STREAM_BOTH, &zipf))};

	uniform.seed = zipf.seed = 2;
	assert_int_not_equal(digest(make(5000, STREAM_BOTH, &uniform)), before[0]);
	assert_int_not_equal(digest(make(5000, STREAM_BOTH, &zipf)), before[1]);
}

static int falling(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x < y) - (x > y);
}

/* With few flows and many draws the sorted counts are in the order of ranks. */
static void check_chi_square(double exponent)
{
	enum { FLOWS = 20, PLACES = 1 << 21 };
	const struct sequence_config config = {
		.load = SEQUENCE_ZIPF, .exponent = exponent, .seed = 11, .n_places = PLACES};
	struct round round = make(FLOWS, STREAM_FORWARD, &config);
	uint32_t *streams = counts_of(round, 2 * FLOWS), counts[FLOWS];
	double all = 0, chi = 0;

	assert_int_equal(round.n, PLACES);
	for (unsigned i = 0; i < FLOWS; i++) {
		counts[i] = streams[2 * i];
		assert_int_equal(streams[2 * i + 1], 0);
		all += pow(i + 1, -exponent);
	}
	qsort(counts, FLOWS, sizeof(counts[0]), falling);
	for (unsigned i = 0; i < FLOWS; i++) {
		double expected = (double)PLACES * pow(i + 1, -exponent) / all;

		chi += (counts[i] - expected) * (counts[i] - expected) / expected;
	}
	/* 19 degrees of freedom: above 43.8 once in a thousand seeds */
	if (chi > 43.8)
		fail_msg("zipf:%g: chi-square %.1f", exponent, chi);
	free(streams);
	free(round.places);
}

static void test_zipf_frequencies(void **state)
{
	(void)state;
	check_chi_square(0.5);
	check_chi_square(0.99);
	check_chi_square(1);
	check_chi_square(1.2);
	check_chi_square(2);
}

/* The share of the busiest flows among many: sums of ranks, from theory. */
static void test_zipf_of_many(void **state)
{
	enum { FLOWS = 100000 };
	const struct sequence_config config = {.load = SEQUENCE_ZIPF, .exponent = 1, .seed = 4};
	struct round round = make(FLOWS, STREAM_BOTH, &config);
	uint32_t *streams = counts_of(round, 2 * FLOWS);
	uint32_t *counts = calloc(FLOWS, sizeof(*counts));
	uint64_t odd = 0, busiest = 0;
	double all = 0, expected = 0;

	(void)state;
	assert_non_null(counts);
	assert_int_equal(round.n, 8 * FLOWS);
	for (uint32_t i = 0; i < FLOWS; i++) {
		counts[i] = streams[2 * i] + streams[2 * i + 1];
		odd += streams[2 * i + 1];
		all += 1.0 / (i + 1);
	}
	qsort(counts, FLOWS, sizeof(counts[0]), falling);
	for (unsigned i = 0; i < 256; i++) {
		busiest += counts[i];
		expected += round.n / all / (i + 1);
	}
	/* to four standard deviations, and some for those that chance put among the first */
	assert_true(fabs((double)busiest - expected) < 4 * sqrt(expected) + 0.002 * expected);
	assert_true(fabs((double)odd - round.n / 2.0) < 2 * sqrt(round.n));
	/* whether they are busy does not follow from their numbers */
	uint64_t low = 0;

	for (uint32_t i = 0; i < FLOWS / 2; i++)
		low += streams[2 * i] + streams[2 * i + 1];
	assert_in_range(low, round.n * 3 / 10, round.n * 7 / 10);
	free(counts);
	free(streams);
	free(round.places);
}

/* Rounds of the two sides: in orders of their own, but the same flows are the busy ones. */
static void test_two_sides(void **state)
{
	enum { FLOWS = 1000 };
	struct sequence_config config = {.load = SEQUENCE_ZIPF, .exponent = 1, .seed = 9};
	struct round round[2];
	unsigned alike = 0;

	(void)state;
	for (unsigned side = 0; side < 2; side++)
		round[side] = make(FLOWS, side == 0 ? STREAM_FORWARD : STREAM_REVERSE, &config);
	uint32_t *counts[2] = {counts_of(round[0], 2 * FLOWS), counts_of(round[1], 2 * FLOWS)};

	assert_int_equal(round[0].n, round[1].n);
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		double forward = counts[0][2 * flow], reverse = counts[1][2 * flow + 1];

		assert_true(fabs(forward - reverse) < 6 * sqrt(forward + reverse + 1));
	}
	for (uint32_t i = 0; i < round[0].n; i++)
		alike += round[0].places[i] / 2 == round[1].places[i] / 2;
	/* by chance, the sum of the squares of their shares: 2.9 % */
	assert_in_range(alike, round[0].n * 2 / 100, round[0].n * 4 / 100);
	for (unsigned side = 0; side < 2; side++) {
		free(counts[side]);
		free(round[side].places);
	}
}

static void test_zipf_places(void **state)
{
	struct sequence_config config = {.load = SEQUENCE_ZIPF, .exponent = 1};
	static const struct {
		uint32_t flows, asked, places;
		enum stream_sides sides;
	} cases[] = {
		{1, 0, 1 << 16, STREAM_FORWARD},
		{20000, 0, 80000, STREAM_FORWARD},
		{20000, 0, 160000, STREAM_BOTH},
		{2000000, 0, 1 << 22, STREAM_REVERSE},
		{1000, 17, 17, STREAM_BOTH},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config.n_places = cases[i].asked;
		struct round round = make(cases[i].flows, cases[i].sides, &config);

		assert_int_equal(round.n, cases[i].places);
		for (uint32_t j = 0; j < round.n; j++) {
			assert_true(round.places[j] < 2 * cases[i].flows);
			assert_true(cases[i].sides >> (round.places[j] & 1) & 1);
		}
		free(round.places);
	}
}

static void test_what_is_refused(void **state)
{
	struct sequence_config config = {.load = SEQUENCE_UNIFORM};
	uint32_t *places, n;
	struct error error;

	(void)state;
	assert_int_equal(sequence_create(&places, &n, 0, STREAM_BOTH, &config, &error), -EINVAL);
	assert_int_equal(
		sequence_create(&places, &n, STREAM_MAX_FLOWS + 1, STREAM_BOTH, &config, &error),
		-EINVAL);
	assert_int_equal(
		sequence_create(&places, &n, 1, (enum stream_sides)0, &config, &error), -EINVAL);
	assert_string_equal(error.text, "sides: 0 is none of 1, 2 and 3");
	config.load = SEQUENCE_ZIPF;
	for (double exponent = -1; exponent < 6; exponent += 5.5) {
		config.exponent = exponent;
		assert_int_equal(
			sequence_create(&places, &n, 1, STREAM_BOTH, &config, &error), -EINVAL);
	}
	config.exponent = NAN;
	assert_int_equal(sequence_create(&places, &n, 1, STREAM_BOTH, &config, &error), -EINVAL);
}

static void test_words(void **state)
{
	static const struct {
		const char *word;
		enum sequence_load load;
		double exponent;
	} right[] = {
		{"order", SEQUENCE_IN_ORDER, 1},
		{"uniform", SEQUENCE_UNIFORM, 1},
		{"zipf", SEQUENCE_ZIPF, 1},
		{"zipf:0.8", SEQUENCE_ZIPF, 0.8},
		{"zipf:4", SEQUENCE_ZIPF, 4},
	};
	static const char *const wrong[] = {"", "zipf:", "zipf:0", "zipf:4.1", "zipf:-1", "zipf:1x",
		"zipf:nan", "zipf:1e0", "zipf:0x1", "zipf:1.1.1", "zipf: 1", "Uniform", "ordered"};
	struct sequence_config config;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		assert_int_equal(sequence_load_parse(&config, right[i].word, &error), 0);
		assert_int_equal(config.load, right[i].load);
		assert_true(fabs(config.exponent - right[i].exponent) < 1e-12);
	}
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sequence_load_parse(&config, wrong[i], &error), -EINVAL);
	assert_int_equal(sequence_load_parse(&config, "uniforn", &error), -EINVAL);
	assert_string_equal(error.text,
		"'uniforn' is no load: order, uniform, zipf or zipf:S; did you mean uniform");
	assert_int_equal(sequence_load_parse(&config, "zipf:9", &error), -EINVAL);
	assert_string_equal(error.text, "'zipf:9': the exponent is a number above 0 and at most 4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_uniform_is_each_once),
		cmocka_unit_test(test_same_words_same_round),
		cmocka_unit_test(test_zipf_frequencies),
		cmocka_unit_test(test_zipf_of_many),
		cmocka_unit_test(test_two_sides),
		cmocka_unit_test(test_zipf_places),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("traffic/sequence", tests, NULL, NULL);
}
