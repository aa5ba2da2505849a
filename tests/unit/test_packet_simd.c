/* SPDX-License-Identifier: BSD-3-Clause */
/* Which SIMD level is chosen. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packet/hash.h"
#include "packet/simd.h"

static const char *const words[SIMD_N_LEVELS] = {"portable", "sse42", "avx2", "avx512"};

/* The level that the program was started with: what is forced here is put back. */
static char *told;

static int put_back(void **state)
{
	(void)state;
	return told == NULL ? unsetenv(SIMD_VARIABLE) : setenv(SIMD_VARIABLE, told, 1);
}

static enum simd_level highest(void)
{
	enum simd_level level = SIMD_PORTABLE;

	for (unsigned i = 0; i < SIMD_N_LEVELS; i++)
		if (simd_has((enum simd_level)i))
			level = (enum simd_level)i;
	return level;
}

static void levels_have_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SIMD_N_LEVELS; i++)
		assert_string_equal(simd_name((enum simd_level)i), words[i]);
}

/* A CPU that has a level has those below it. */
static void levels_hold_one_another(void **state)
{
	(void)state;
	assert_true(simd_has(SIMD_PORTABLE));
	for (unsigned i = 1; i < SIMD_N_LEVELS; i++)
		assert_true(!simd_has((enum simd_level)i) || simd_has((enum simd_level)(i - 1)));
#ifndef __x86_64__
	assert_int_equal(highest(), SIMD_PORTABLE);
#endif
}

/* As tests/with_simd forces it. */
static void the_tests_run_under_the_level_that_they_name(void **state)
{
	struct hash_secret secret;

	(void)state;
	assert_int_equal(hash_secret_init(&secret), 0);
	assert_string_equal(simd_name(secret.simd), told == NULL ? words[highest()] : told);
}

static void the_highest_is_chosen(void **state)
{
	enum simd_level level = SIMD_N_LEVELS;

	(void)state;
	assert_int_equal(unsetenv(SIMD_VARIABLE), 0);
	assert_int_equal(simd_choose(&level), 0);
	assert_int_equal(level, highest());
	/* as good as not set */
	level = SIMD_N_LEVELS;
	assert_int_equal(setenv(SIMD_VARIABLE, "", 1), 0);
	assert_int_equal(simd_choose(&level), 0);
	assert_int_equal(level, highest());
}

static void each_is_forced_by_its_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SIMD_N_LEVELS; i++) {
		enum simd_level level = SIMD_N_LEVELS;
		struct hash_secret secret = {.simd = SIMD_N_LEVELS};
		bool has = simd_has((enum simd_level)i);

		assert_int_equal(setenv(SIMD_VARIABLE, words[i], 1), 0);
		assert_int_equal(simd_choose(&level), has ? 0 : -ENOTSUP);
		assert_int_equal(hash_secret_init(&secret), has ? 0 : -ENOTSUP);
		if (!has)
			continue;
		assert_int_equal(level, i);
		assert_int_equal(secret.simd, i);
	}
}

static void what_names_none_is_refused(void **state)
{
	static const char *const wrong[] = {"foo", "avx", "AVX2", "avx2 ", "avx5123", "1", "-1"};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		enum simd_level level;
		struct hash_secret secret;

		assert_int_equal(setenv(SIMD_VARIABLE, wrong[i], 1), 0);
		assert_int_equal(simd_choose(&level), -EINVAL);
		assert_int_equal(hash_secret_init(&secret), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(levels_hold_one_another),
		cmocka_unit_test(the_tests_run_under_the_level_that_they_name),
		cmocka_unit_test_teardown(the_highest_is_chosen, put_back),
		cmocka_unit_test_teardown(each_is_forced_by_its_name, put_back),
		cmocka_unit_test_teardown(what_names_none_is_refused, put_back),
	};
	const char *level = getenv(SIMD_VARIABLE);

	/* setenv() may move what getenv() told */
	told = level == NULL || *level == '\0' ? NULL : strdup(level);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(told);
	return failed;
}
