/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the compiler may use for a SIMD level is what simd_has() asks of the CPU: the macros that a level's
 * options define, as the compiler lists them (PREDEFINED: where the build has put that), against
 * packet/simd_needs.h.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "packet/simd.h"
#include "packet/simd_needs.h"

#define MACROS_MAX 1024
#define NAME_MAX_BYTES 64

struct macros {
	unsigned n;
	char name[MACROS_MAX][NAME_MAX_BYTES];
};

#define NAME_OF(macro, word) #macro,
static const char *const needs_sse42[] = {SIMD_NEEDS_SSE42(NAME_OF) NULL};
static const char *const needs_avx2[] = {SIMD_NEEDS_AVX2(NAME_OF) NULL};
static const char *const needs_avx512[] = {SIMD_NEEDS_AVX512(NAME_OF) NULL};
static const char *const *const needs[SIMD_N_LEVELS] = {
	[SIMD_SSE42] = needs_sse42, [SIMD_AVX2] = needs_avx2, [SIMD_AVX512] = needs_avx512};

/* What follows from others: how wide vectors may be, and that FMA is there. */
static const char *const follow[] = {"__FP_FAST_", "__EVEX"};

static void read_macros(enum simd_level level, struct macros *macros)
{
	char line[1024];
	FILE *file;

	snprintf(line, sizeof(line), "%s/predefined_%s.txt", PREDEFINED, simd_name(level));
	file = fopen(line, "r");
	assert_non_null(file);
	macros->n = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		assert_true(macros->n < MACROS_MAX);
		assert_int_equal(sscanf(line, "#define %63[^ (]", macros->name[macros->n]), 1);
		macros->n++;
	}
	fclose(file);
	/* a compiler that listed nothing would let all pass */
	assert_true(macros->n > 100);
}

static bool has(const struct macros *macros, const char *name)
{
	for (unsigned i = 0; i < macros->n; i++)
		if (strcmp(macros->name[i], name) == 0)
			return true;
	return false;
}

static bool asked(enum simd_level level, const char *name)
{
	for (unsigned below = SIMD_SSE42; below <= level; below++)
		for (unsigned i = 0; needs[below][i] != NULL; i++)
			if (strcmp(needs[below][i], name) == 0)
				return true;
	return false;
}

static bool follows(const char *name)
{
	for (unsigned i = 0; i < sizeof(follow) / sizeof(follow[0]); i++)
		if (strncmp(name, follow[i], strlen(follow[i])) == 0)
			return true;
	return false;
}

static void what_the_compiler_may_use_is_asked_for(void **state)
{
	static struct macros portable, macros;

	(void)state;
	read_macros(SIMD_PORTABLE, &portable);
	for (unsigned level = SIMD_SSE42; level < SIMD_N_LEVELS; level++) {
		read_macros((enum simd_level)level, &macros);
		for (unsigned i = 0; i < macros.n; i++) {
			const char *name = macros.name[i];

			if (!has(&portable, name) && !follows(name) &&
				!asked((enum simd_level)level, name))
				fail_msg("%s may use %s: simd_has() does not ask for it",
					simd_name((enum simd_level)level), name);
		}
	}
}

/* Else a CPU that could do it would be denied a level. */
static void no_more_is_asked_for(void **state)
{
	static struct macros macros;

	(void)state;
	for (unsigned level = SIMD_SSE42; level < SIMD_N_LEVELS; level++) {
		read_macros((enum simd_level)level, &macros);
		for (unsigned i = 0; needs[level][i] != NULL; i++)
			if (!has(&macros, needs[level][i]))
				fail_msg("%s does not use %s: simd_has() asks for it",
					simd_name((enum simd_level)level), needs[level][i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_compiler_may_use_is_asked_for),
		cmocka_unit_test(no_more_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
