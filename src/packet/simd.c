/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/simd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packet/simd_needs.h"

static const char *const names[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = "portable",
	[SIMD_SSE42] = "sse42",
	[SIMD_AVX2] = "avx2",
	[SIMD_AVX512] = "avx512",
};

const char *simd_name(enum simd_level level)
{
	return names[level];
}

bool simd_has(enum simd_level level)
{
	if (level == SIMD_PORTABLE)
		return true;
#ifdef __x86_64__
	__builtin_cpu_init();

#define AND_HAS(macro, word) &&__builtin_cpu_supports(word)
	bool v2 = true SIMD_NEEDS_SSE42(AND_HAS);
	bool v3 = v2 SIMD_NEEDS_AVX2(AND_HAS);
	bool v4 = v3 SIMD_NEEDS_AVX512(AND_HAS);
#undef AND_HAS

	return level == SIMD_SSE42 ? v2 : level == SIMD_AVX2 ? v3 : v4;
#else
	return false;
#endif
}

int simd_choose(enum simd_level *out)
{
	const char *forced = getenv(SIMD_VARIABLE);

	if (forced == NULL || *forced == '\0') {
		unsigned level = SIMD_N_LEVELS - 1;

		while (!simd_has((enum simd_level)level))
			level--;
		*out = (enum simd_level)level;
		return 0;
	}
	for (unsigned level = 0; level < SIMD_N_LEVELS; level++) {
		if (strcmp(forced, names[level]) != 0)
			continue;
		*out = (enum simd_level)level;
		return simd_has(*out) ? 0 : -ENOTSUP;
	}
	return -EINVAL;
}
