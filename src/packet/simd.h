/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * SIMD levels: sets of instructions for which the burst walks are compiled, one source once per level
 * (src/meson.build). One level is chosen at start, with the hash secret (packet/hash.h), and holds for
 * everything that is found by that secret's hashes.
 *
 * What is compiled once per level sees SIMD_LEVEL, the number of its level; what is compiled once for
 * all does not. Symbols that every level has end with the level's word: SIMD_SYMBOL(name).
 *
 * Pure; any thread.
 */

#include <stdbool.h>

/* As numbers, for the preprocessor. */
#define SIMD_LEVEL_PORTABLE 0
#define SIMD_LEVEL_SSE42 1
#define SIMD_LEVEL_AVX2 2
#define SIMD_LEVEL_AVX512 3

enum simd_level {
	SIMD_PORTABLE = SIMD_LEVEL_PORTABLE, /* plain C, as on other CPUs than x86 */
	SIMD_SSE42 = SIMD_LEVEL_SSE42,	     /* x86-64-v2 */
	SIMD_AVX2 = SIMD_LEVEL_AVX2,	     /* x86-64-v3 and AES */
	SIMD_AVX512 = SIMD_LEVEL_AVX512,     /* x86-64-v4 and AES on whole vectors */
	SIMD_N_LEVELS,
};

#define SIMD_JOIN_(name, word) name##_##word
#define SIMD_JOIN(name, word) SIMD_JOIN_(name, word)
/* SIMD_WORD comes from the build: portable, sse42, avx2 or avx512. */
#define SIMD_SYMBOL(name) SIMD_JOIN(name, SIMD_WORD)

/* "portable", "sse42", "avx2", "avx512". */
const char *simd_name(enum simd_level level);

/* Whether this CPU has it. */
bool simd_has(enum simd_level level);

/* The environment variable by which a level is forced, for tests and comparisons. */
#define SIMD_VARIABLE "MILLRACE_SIMD"

/*
 * The level to use: the one that MILLRACE_SIMD names, else the highest that the CPU has. Returns 0,
 * -EINVAL when the variable names none, or -ENOTSUP when the CPU lacks it.
 */
int simd_choose(enum simd_level *level);
