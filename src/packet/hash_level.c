/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash for callers that are compiled once for all: this file is compiled for AVX2 alone. */
#include "packet/hash.h"

uint64_t hash_words_avx2(const struct hash_secret *secret, const uint64_t word[5])
{
	return hash_words(secret, word);
}
