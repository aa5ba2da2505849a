/* SPDX-License-Identifier: BSD-3-Clause */

/* Policers, compared with buckets of tokens that are counted exactly. */

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "action/policer.h"

#define NS_PER_S 1000000000

/* Tokens times 10^9, so that a nanosecond adds a whole number of them. */
struct bucket {
	unsigned __int128 tokens;
	struct policer_limit limit;
};

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void bucket_fill(struct bucket *bucket, uint64_t elapsed_ns)
{
	unsigned __int128 most = (unsigned __int128)bucket->limit.burst * NS_PER_S;

	bucket->tokens += (unsigned __int128)bucket->limit.rate * elapsed_ns;
	if (bucket->tokens > most)
		bucket->tokens = most;
}

static bool bucket_has(const struct bucket *bucket, uint32_t units)
{
	return bucket->tokens >= (unsigned __int128)units * NS_PER_S;
}

static void bucket_take(struct bucket *bucket, uint32_t units)
{
	bucket->tokens -= (unsigned __int128)units * NS_PER_S;
}

/* RFC 2698 section 3, color-blind. */
static enum policer_color wanted_color(struct bucket bucket[2], bool two_rates, uint32_t units)
{
	if (!bucket_has(&bucket[0], units))
		return POLICER_RED;
	bucket_take(&bucket[0], units);
	if (!two_rates)
		return POLICER_GREEN;
	if (!bucket_has(&bucket[1], units))
		return POLICER_YELLOW;
	bucket_take(&bucket[1], units);
	return POLICER_GREEN;
}

/* Rates whose unit takes a whole number of 2^-32 ns: every single color is right. */
static void exact(void **state)
{
	static const struct policer_options rows[] = {
		{.peak = {1000000, 5000}},
		{.peak = {125000000, 9000}, .committed = {62500000, 3000}},
		{.peak = {1000, 7}, .committed = {500, 3}, .packets = true},
		{.peak = {1, 2}, .packets = true},
		{.peak = {1000000000, 1518}, .committed = {1000000000, 1}},
	};
	uint64_t random = 1;

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct bucket bucket[2] = {
			{.limit = rows[row].peak}, {.limit = rows[row].committed}};
		uint64_t mean_ns =
			(rows[row].packets ? 1 : 700) * UINT64_C(800000000) / rows[row].peak.rate;
		uint64_t now_ns = UINT64_C(1) << 60;
		unsigned seen[3] = {0};
		struct policer policer;
		struct error error;

		assert_int_equal(policer_init(&policer, &rows[row], &error), 0);
		bucket_fill(&bucket[0], now_ns);
		bucket_fill(&bucket[1], now_ns);
		for (unsigned i = 0; i < 300000; i++) {
			uint32_t bytes = 60 + (uint32_t)(random_next(&random) % 1459);
			uint64_t elapsed_ns = random_next(&random) % (2 * mean_ns + 1);
			uint32_t units = rows[row].packets ? 1 : bytes;

			if (random_next(&random) % 1000 == 0)
				elapsed_ns *= 1000;
			now_ns += elapsed_ns;
			bucket_fill(&bucket[0], elapsed_ns);
			bucket_fill(&bucket[1], elapsed_ns);

			enum policer_color color = policer_color(&policer, now_ns, bytes);

			assert_int_equal(
				color, wanted_color(bucket, rows[row].committed.rate != 0, units));
			seen[color]++;
		}
		print_message(
			"row %zu: %u green, %u yellow, %u red\n", row, seen[0], seen[1], seen[2]);
		assert_true(seen[POLICER_RED] > 1000);
	}
}

/* Any rate: what passes of twice as much is the rate, to a millionth, and the burst. */
static void any_rate(void **state)
{
	static const uint64_t rates[] = {
		3, 999, 1234567, 12500000, 1250000000, 12500000000, 50000000001};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		const struct policer_options options = {.peak = {rates[i], 10000}};
		unsigned __int128 offered_fraction = 0;
		struct policer policer;
		uint64_t passed = 0, now_ns = 0;
		const unsigned n = 2000000, bytes = 1000;

		assert_int_equal(policer_init(&policer, &options, &error), 0);
		for (unsigned packet = 0; packet < n; packet++) {
			if (policer_color(&policer, now_ns, bytes) == POLICER_GREEN)
				passed += bytes;
			/* half the time that the packet takes at this rate */
			offered_fraction +=
				((unsigned __int128)bytes * NS_PER_S << 32) / rates[i] / 2;
			now_ns = (uint64_t)(offered_fraction >> 32);
		}

		uint64_t wanted =
			10000 + (uint64_t)((unsigned __int128)rates[i] * now_ns / NS_PER_S);
		uint64_t apart = passed > wanted ? passed - wanted : wanted - passed;

		print_message("%" PRIu64 ": passed %" PRIu64 ", wanted %" PRIu64 "\n", rates[i],
			passed, wanted);
		/* a packet, a nanosecond's worth, and a millionth */
		assert_true(apart <= bytes + rates[i] / NS_PER_S + 1 + wanted / 1000000);
	}
}

static void burst_passes_whole(void **state)
{
	const struct policer_options options = {.peak = {7777777, 1518}};
	struct policer policer;
	struct error error;

	(void)state;
	assert_int_equal(policer_init(&policer, &options, &error), 0);
	assert_int_equal(policer_color(&policer, 5, 1519), POLICER_RED);
	assert_int_equal(policer_color(&policer, 5, 1518), POLICER_GREEN);
	assert_int_equal(policer_color(&policer, 5, 1), POLICER_RED);
	/* time that runs back is waited for */
	assert_int_equal(policer_color(&policer, 0, 1), POLICER_RED);
	assert_int_equal(policer_color(&policer, UINT64_MAX >> 1, 1518), POLICER_GREEN);
}

static void bad_options(void **state)
{
	static const struct {
		struct policer_options options;
		const char *text;
	} rows[] = {
		{{.peak = {0, 5}},
			"policer: the rate 0: it has to be 1 to 12500000000000 a second"},
		{{.peak = {12500000000001, 5}}, "policer: the rate 12500000000001: it has to be 1 "
						"to 12500000000000 a second"},
		{{.peak = {5, 0}}, "policer: the burst 0: no packet would ever pass"},
		{{.peak = {5, 5}, .committed = {5, 0}},
			"policer: committed burst 0: no packet would ever pass"},
		{{.peak = {5, 5}, .committed = {6, 1}},
			"policer: committed rate 6 is above the peak rate 5"},
		{{.peak = {1, 150000}},
			"policer: the burst 150000 takes longer than 39 hours at 1 a second"},
		{{.peak = {1, UINT64_MAX}}, "policer: the burst 18446744073709551615 takes longer "
					    "than 39 hours at 1 a second"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policer policer;
		struct error error = {.text = ""};

		assert_int_equal(policer_init(&policer, &rows[i].options, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(any_rate),
		cmocka_unit_test(burst_passes_whole),
		cmocka_unit_test(bad_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
