/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The keyed hash of a flow key and of a datagram's identity.
 *
 * A secret taken from the kernel's randomness at start is mixed into every word, so that nobody
 * who does not know it can choose keys that collide. There are two constructions, and the secret says
 * by its SIMD level which one is in use:
 * - AES rounds, where the level has them (AVX2 and above): each 16 bytes go through two rounds under
 *   keys of their own (one round would let differences of one byte cancel whatever the keys are), what
 *   comes out is added and goes through two more. See packet/hash_aes.h.
 * - else portable C: each pair of words is folded by one 64 x 64 -> 128 bit multiplication (the
 *   construction of wyhash and MUM), and what comes out of all is folded once more. Without that the shard's bits
 *   follow the low bits of the last word: with one secret in 130, 64 ports in a row had the same shard of two.
 *
 * Users take different bits, so that they do not depend on one another: the table's line from bits
 * 32..63, its tag from bits 0..15, the shard from bits 16..31.
 *
 * A secret is set once, before the first hash, and read by every thread after that.
 */

#include <stdint.h>
#include <string.h>

#include "packet/key.h"
#include "packet/simd.h"

#define HASH_SECRET_WORDS 18

struct hash_secret {
	uint64_t word[HASH_SECRET_WORDS];
	enum simd_level simd; /* of the hash, and of the walks that use it */
};

/*
 * Fills the secret from the kernel's randomness, for the level of simd_choose(). Returns 0, or a
 * negative errno: those of simd_choose(), or that there is no randomness.
 */
int hash_secret_init(struct hash_secret *secret);

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_words_portable(const struct hash_secret *secret, const uint64_t word[5])
{
	uint64_t a = hash_fold(word[0] ^ secret->word[0], word[1] ^ secret->word[1]);
	uint64_t b = hash_fold(word[2] ^ secret->word[2], word[3] ^ secret->word[3]);
	uint64_t sum = hash_fold(a ^ word[4] ^ secret->word[4], b ^ secret->word[5]);

	return hash_fold(sum ^ secret->word[6], secret->word[7]);
}

#ifdef __x86_64__
/* By AES rounds, for what is compiled once for all (packet/hash_level.c). */
uint64_t hash_words_avx2(const struct hash_secret *secret, const uint64_t word[5]);
#endif

#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX2
#include "packet/hash_aes.h"
#endif

/*
 * The secret as a loop wants it: with AES rounds its keys, in registers; else where it is. hash_words()
 * makes one for each hash.
 */
#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX2

typedef struct hash_aes hash_ready;

static inline __attribute__((always_inline)) hash_ready hash_ready_of(
	const struct hash_secret *secret)
{
	return hash_aes_of(secret);
}

static inline __attribute__((always_inline)) uint64_t hash_ready_words(
	const hash_ready *ready, const uint64_t word[5])
{
	return hash_words_aes(ready, word);
}

static inline __attribute__((always_inline)) uint64_t hash_ready_key(
	const hash_ready *ready, const struct flow_key *key)
{
	return hash_40_bytes_aes(ready, key->addr[0]);
}

#else

typedef const struct hash_secret *hash_ready;

static inline hash_ready hash_ready_of(const struct hash_secret *secret)
{
	return secret;
}

static inline uint64_t hash_ready_words(const hash_ready *ready, const uint64_t word[5])
{
#if !defined(SIMD_LEVEL) && defined(__x86_64__)
	if ((*ready)->simd >= SIMD_AVX2)
		return hash_words_avx2(*ready, word);
#endif
	return hash_words_portable(*ready, word);
}

static inline uint64_t hash_ready_key(const hash_ready *ready, const struct flow_key *key)
{
	uint64_t word[5];

	memcpy(word, key, sizeof(word));
	return hash_ready_words(ready, word);
}

#endif

/* For 40 bytes that are still in registers. */
static inline uint64_t hash_words(const struct hash_secret *secret, const uint64_t word[5])
{
	const hash_ready ready = hash_ready_of(secret);

	return hash_ready_words(&ready, word);
}

static inline uint64_t flow_key_hash(const struct hash_secret *secret, const struct flow_key *key)
{
	const hash_ready ready = hash_ready_of(secret);

	return hash_ready_key(&ready, key);
}

/* The shard of a flow among `n_shards` (1..65536). */
static inline unsigned hash_shard(uint64_t hash, unsigned n_shards)
{
	return (unsigned)((((uint32_t)hash >> 16) * (uint64_t)n_shards) >> 16);
}
