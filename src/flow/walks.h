/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The table's burst functions of every SIMD level. For the table's own files only. */

#include "flow/table.h"

extern const struct flow_walks flow_walks_portable;
#ifdef __x86_64__
extern const struct flow_walks flow_walks_sse42;
extern const struct flow_walks flow_walks_avx2;
extern const struct flow_walks flow_walks_avx512;
#endif

static inline const struct flow_walks *flow_walks_of(enum simd_level level)
{
	switch (level) {
#ifdef __x86_64__
	case SIMD_SSE42:
		return &flow_walks_sse42;
	case SIMD_AVX2:
		return &flow_walks_avx2;
	case SIMD_AVX512:
		return &flow_walks_avx512;
#else
	case SIMD_SSE42:
	case SIMD_AVX2:
	case SIMD_AVX512:
#endif
	case SIMD_PORTABLE:
	case SIMD_N_LEVELS:
		break;
	}
	return &flow_walks_portable;
}
