/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of packet/hash.h: the hash by AES rounds, for what is compiled with them.
 *
 * The three parts of a key go through two rounds each, beside one another; then their sum through two.
 * Two rounds let one byte of difference reach every byte in a way that depends on the key, and no
 * way that differences take through both is likelier than 2^-30 (J. Daemen and V. Rijmen, "The Design of
 * Rijndael", 2002, section 9.5: five active S-boxes in two rounds).
 */

#include <immintrin.h>

#include "packet/hash.h"

#define HASH_AES_KEYS (HASH_SECRET_WORDS / 2)

/* The secret in registers: for loops, whose stores the compiler cannot tell from the secret's words. */
struct hash_aes {
	__m128i key[HASH_AES_KEYS];
};

static inline __attribute__((always_inline)) struct hash_aes hash_aes_of(
	const struct hash_secret *secret)
{
	struct hash_aes aes;

	for (unsigned i = 0; i < HASH_AES_KEYS; i++)
		aes.key[i] = _mm_loadu_si128((const __m128i *)&secret->word[2 * i]);
	return aes;
}

/* The two halves of what comes out, which are yet to be added. */
static inline __attribute__((always_inline)) __m128i hash_rounds_aes(
	const struct hash_aes *aes, __m128i first, __m128i second, __m128i third)
{
	__m128i a = _mm_aesenc_si128(_mm_xor_si128(first, aes->key[0]), aes->key[1]);
	__m128i b = _mm_aesenc_si128(_mm_xor_si128(second, aes->key[2]), aes->key[3]);
	__m128i c = _mm_aesenc_si128(_mm_xor_si128(third, aes->key[4]), aes->key[5]);

	/* a round ends by adding its key: what one part adds, the next may take along */
	a = _mm_aesenc_si128(a, aes->key[6]);
	b = _mm_aesenc_si128(b, a);
	c = _mm_aesenc_si128(c, b);
	c = _mm_aesenc_si128(c, aes->key[7]);
	return _mm_aesenc_si128(c, aes->key[8]);
}

static inline __attribute__((always_inline)) uint64_t hash_parts_aes(
	const struct hash_aes *aes, __m128i first, __m128i second, __m128i third)
{
	__m128i c = hash_rounds_aes(aes, first, second, third);

	return (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(c, _mm_unpackhi_epi64(c, c)));
}

static inline __attribute__((always_inline)) uint64_t hash_words_aes(
	const struct hash_aes *aes, const uint64_t word[5])
{
	return hash_parts_aes(aes, _mm_set_epi64x((long long)word[1], (long long)word[0]),
		_mm_set_epi64x((long long)word[3], (long long)word[2]),
		_mm_cvtsi64_si128((long long)word[4]));
}

/* From memory, without a way through other registers. */
static inline __attribute__((always_inline)) __m128i hash_rounds_of_40_bytes(
	const struct hash_aes *aes, const uint8_t *bytes)
{
	return hash_rounds_aes(aes, _mm_loadu_si128((const __m128i *)bytes),
		_mm_loadu_si128((const __m128i *)(bytes + 16)),
		_mm_loadl_epi64((const __m128i *)(bytes + 32)));
}

static inline __attribute__((always_inline)) uint64_t hash_40_bytes_aes(
	const struct hash_aes *aes, const uint8_t *bytes)
{
	__m128i c = hash_rounds_of_40_bytes(aes, bytes);

	return (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(c, _mm_unpackhi_epi64(c, c)));
}

#ifdef __VAES__

/* Four secrets beside one another, for four keys at once. */
struct hash_aes_four {
	__m512i key[HASH_AES_KEYS];
};

static inline __attribute__((always_inline)) struct hash_aes_four hash_aes_four_of(
	const struct hash_aes *aes)
{
	struct hash_aes_four four;

	for (unsigned i = 0; i < HASH_AES_KEYS; i++)
		four.key[i] = _mm512_broadcast_i32x4(aes->key[i]);
	return four;
}

static inline __attribute__((always_inline)) __m512i hash_gather_16(
	const struct flow_key *const keys[4], size_t offset)
{
	const __m128i *at[4];

	for (unsigned i = 0; i < 4; i++)
		at[i] = (const __m128i *)((const uint8_t *)keys[i] + offset);
	__m256i low = _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128(at[0])), _mm_loadu_si128(at[1]), 1);
	__m256i high = _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128(at[2])), _mm_loadu_si128(at[3]), 1);

	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline __attribute__((always_inline)) __m512i hash_gather_8(
	const struct flow_key *const keys[4], size_t offset)
{
	__m128i at[4];

	for (unsigned i = 0; i < 4; i++)
		at[i] = _mm_loadl_epi64((const __m128i *)((const uint8_t *)keys[i] + offset));
	__m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(at[0]), at[1], 1);
	__m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(at[2]), at[3], 1);

	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* The hashes of four keys. */
static inline __attribute__((always_inline)) __m256i hash_keys_aes(
	const struct hash_aes_four *aes, const struct flow_key *const keys[4])
{
	__m512i a = _mm512_xor_si512(hash_gather_16(keys, 0), aes->key[0]);
	__m512i b = _mm512_xor_si512(hash_gather_16(keys, 16), aes->key[2]);
	__m512i c = _mm512_xor_si512(hash_gather_8(keys, 32), aes->key[4]);
	const __m512i low = _mm512_set_epi64(0, 0, 0, 0, 6, 4, 2, 0);

	a = _mm512_aesenc_epi128(a, aes->key[1]);
	b = _mm512_aesenc_epi128(b, aes->key[3]);
	c = _mm512_aesenc_epi128(c, aes->key[5]);
	a = _mm512_aesenc_epi128(a, aes->key[6]);
	b = _mm512_aesenc_epi128(b, a);
	c = _mm512_aesenc_epi128(c, b);
	c = _mm512_aesenc_epi128(c, aes->key[7]);
	c = _mm512_aesenc_epi128(c, aes->key[8]);
	c = _mm512_xor_si512(c, _mm512_unpackhi_epi64(c, c));
	return _mm512_castsi512_si256(_mm512_permutexvar_epi64(low, c));
}

#elif defined(__AVX2__)

/* Four keys are hashed beside one another by rounds on 16 bytes. */
struct hash_aes_four {
	struct hash_aes aes;
};

static inline __attribute__((always_inline)) struct hash_aes_four hash_aes_four_of(
	const struct hash_aes *aes)
{
	return (struct hash_aes_four){*aes};
}

/* The hashes of four keys: the halves of two are added at once. */
static inline __attribute__((always_inline)) __m256i hash_keys_aes(
	const struct hash_aes_four *four, const struct flow_key *const keys[4])
{
	__m128i of[4];

	for (unsigned i = 0; i < 4; i++)
		of[i] = hash_rounds_of_40_bytes(&four->aes, keys[i]->addr[0]);
	__m128i low =
		_mm_xor_si128(_mm_unpacklo_epi64(of[0], of[1]), _mm_unpackhi_epi64(of[0], of[1]));
	__m128i high =
		_mm_xor_si128(_mm_unpacklo_epi64(of[2], of[3]), _mm_unpackhi_epi64(of[2], of[3]));

	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

#endif
