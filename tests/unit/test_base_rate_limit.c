/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rate_limit.h"

#define SECOND UINT64_C(1000000)

/* How many pass in a time that begins then, when one wants to at each microsecond. */
static unsigned passed(struct rate_limit *limit, uint64_t from_us, uint64_t us)
{
	unsigned n = 0;

	for (uint64_t i = 0; i < us; i++) {
		if (!rate_limit_has(limit, from_us + i))
			continue;
		rate_limit_take(limit);
		n++;
	}
	return n;
}

static void test_rate(void **state)
{
	struct rate_limit limit;

	(void)state;
	rate_limit_init(&limit, 1000, 1);
	/* what was saved up, and what comes */
	assert_int_equal(passed(&limit, 0, SECOND), 100 + 999);
	assert_int_equal(passed(&limit, SECOND, SECOND), 1000);
	/* of a silence no more than a tenth of a second is saved up */
	assert_int_equal(passed(&limit, 100 * SECOND, SECOND), 100 + 999);
}

static void test_parts(void **state)
{
	struct rate_limit limit;

	(void)state;
	rate_limit_init(&limit, 1000, 4);
	assert_int_equal(passed(&limit, 0, SECOND), 25 + 249);
	/* less than one a second for each */
	rate_limit_init(&limit, 1, 4);
	assert_int_equal(passed(&limit, 0, SECOND), 1);
	assert_int_equal(passed(&limit, SECOND, 2 * SECOND), 0);
	assert_int_equal(passed(&limit, 3 * SECOND, 2 * SECOND), 1);
}

static void test_ends(void **state)
{
	struct rate_limit limit;

	(void)state;
	rate_limit_init(&limit, 0, 1);
	assert_int_equal(passed(&limit, 0, SECOND), 0);
	rate_limit_init(&limit, RATE_LIMIT_MAX, 1);
	assert_int_equal(passed(&limit, UINT64_C(1) << 47, SECOND), SECOND);
	/* the clock begins anew, and nothing is made up for */
	rate_limit_init(&limit, 10, 1);
	assert_int_equal(passed(&limit, 50 * SECOND, 10), 1);
	assert_int_equal(passed(&limit, 0, SECOND / 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
