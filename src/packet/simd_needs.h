/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a level's instructions take of the CPU, beside what those below it take: all that the compiler may
 * use by its -march and -m options (src/meson.build), by the macro that says so, and the word by which
 * __builtin_cpu_supports() is asked. simd_has() asks them all, and a test compares the macros with the
 * compiler's own. For simd.c and that test only.
 *
 * There is no word for two of them that every compiler's run-time understands, but x86-64-v2 has them.
 */
/* clang-format off */
#define SIMD_NEEDS_SSE42(need) \
	need(__SSE3__, "sse3") \
	need(__SSSE3__, "ssse3") \
	need(__SSE4_1__, "sse4.1") \
	need(__SSE4_2__, "sse4.2") \
	need(__CRC32__, "sse4.2") \
	need(__POPCNT__, "popcnt") \
	need(__LAHF_SAHF__, "x86-64-v2") \
	need(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16, "x86-64-v2")

#define SIMD_NEEDS_AVX2(need) \
	need(__XSAVE__, "xsave") \
	need(__AVX__, "avx") \
	need(__AVX2__, "avx2") \
	need(__BMI__, "bmi") \
	need(__BMI2__, "bmi2") \
	need(__F16C__, "f16c") \
	need(__FMA__, "fma") \
	need(__LZCNT__, "lzcnt") \
	need(__MOVBE__, "movbe") \
	need(__AES__, "aes")

#define SIMD_NEEDS_AVX512(need) \
	need(__AVX512F__, "avx512f") \
	need(__AVX512BW__, "avx512bw") \
	need(__AVX512CD__, "avx512cd") \
	need(__AVX512DQ__, "avx512dq") \
	need(__AVX512VL__, "avx512vl") \
	need(__VAES__, "vaes")
/* clang-format on */
