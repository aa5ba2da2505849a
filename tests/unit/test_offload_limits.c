/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/limits.h"

#define RULES 200000

static void a_percentile_is_one_of_the_times(void **state)
{
	uint64_t times[100];

	(void)state;
	assert_int_equal(limits_percentile(times, 0, 0.5), 0);
	/* in no order */
	for (unsigned i = 0; i < 100; i++)
		times[i] = (i * 37 % 100) + 1;
	assert_int_equal(limits_percentile(times, 100, 0.5), 51);
	assert_int_equal(limits_percentile(times, 100, 0.99), 100);
	assert_int_equal(limits_percentile(times, 100, 1), 100);
	assert_int_equal(limits_percentile(times, 1, 0.99), 1);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct flow_key));
}

static void no_two_rules_are_alike(void **state)
{
	struct flow_key *keys = calloc(RULES, sizeof(*keys));

	(void)state;
	assert_non_null(keys);
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++) {
		for (uint32_t i = 0; i < RULES; i++) {
			struct offload_rule rule;

			/* from everywhere in the range */
			limits_rule(&rule, (enum provider_kind)kind,
				(uint32_t)((uint64_t)i * LIMITS_MAX_RULES / RULES));
			keys[i] = rule.key;
			assert_int_equal(provider_kind(&rule.key), kind);
			assert_int_not_equal(rule.mark, 0);
			assert_true(rule.mark <= 0xffef);
		}
		qsort(keys, RULES, sizeof(*keys), compare);
		for (uint32_t i = 1; i < RULES; i++)
			assert_int_not_equal(compare(&keys[i - 1], &keys[i]), 0);
	}
	free(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_percentile_is_one_of_the_times),
		cmocka_unit_test(no_two_rules_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
