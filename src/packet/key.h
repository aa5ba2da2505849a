/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The key of a flow: 40 bytes that name a conversation between two endpoints on one wire.
 *
 * Both directions make the same key: the endpoint with the lower address comes first, and with
 * equal addresses the one with the lower port. Which end a packet comes from is not in the key;
 * extraction says it beside the key (packet/extract.h).
 *
 * An IPv4 address lies in the first 4 of its 16 bytes, the other 12 are zero. Ports are 0 for
 * protocols that have none. The whole key is compared and hashed as bytes: it has no padding, and
 * whoever makes one by hand starts from a zeroed one.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "packet/simd.h"

#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX2
#include <immintrin.h>
#endif

#define FLOW_KEY_VERSION_WIRE(version, wire) ((uint8_t)((version) << 4 | (wire)))
#define FLOW_MAX_WIRES 16

struct flow_key {
	uint8_t addr[2][16];  /* lower endpoint's address first, network order */
	rte_be16_t port[2];   /* in the order of the addresses */
	uint16_t zone;	      /* tenant or VLAN number, host order; 0 unless asked for */
	uint8_t proto;	      /* IP protocol number of the upper layer */
	uint8_t version_wire; /* IP version (4 or 6) in the high nibble, wire in the low one */
};

static_assert(sizeof(struct flow_key) == 40, "the key has no room to spare");

static inline uint8_t flow_key_version(const struct flow_key *key)
{
	return key->version_wire >> 4;
}

static inline uint8_t flow_key_wire(const struct flow_key *key)
{
	return key->version_wire & 0x0f;
}

static inline bool flow_key_equal(const struct flow_key *a, const struct flow_key *b)
{
#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX512
	const __mmask8 words = (1u << sizeof(*a) / 8) - 1;

	return _mm512_mask_cmpneq_epi64_mask(words, _mm512_maskz_loadu_epi64(words, a),
		       _mm512_maskz_loadu_epi64(words, b)) == 0;
#elif defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX2
	/* the last 32 bytes overlap the first: two vectors of each */
	const uint8_t *of_a = (const uint8_t *)a, *of_b = (const uint8_t *)b;
	const __m256i first = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)of_a),
		_mm256_loadu_si256((const __m256i *)of_b));
	const __m256i last = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(of_a + 8)),
		_mm256_loadu_si256((const __m256i *)(of_b + 8)));
	const __m256i differs = _mm256_or_si256(first, last);

	return _mm256_testz_si256(differs, differs);
#else
	return memcmp(a, b, sizeof(*a)) == 0;
#endif
}

/*
 * Makes the key of a packet from `src` to `dst`. Addresses are given as 16 bytes (IPv4: 4 and 12
 * zeros). Returns the end that the packet comes from: 0 when src became the first endpoint, else
 * 1. A packet whose two ends are the same comes from end 0.
 */
static inline unsigned flow_key_make(struct flow_key *key, const uint8_t src[16],
	const uint8_t dst[16], rte_be16_t src_port, rte_be16_t dst_port)
{
	int order = memcmp(src, dst, 16);

	if (order == 0)
		order = (int)rte_be_to_cpu_16(src_port) - (int)rte_be_to_cpu_16(dst_port);
	unsigned end = order > 0;

	memcpy(key->addr[end], src, 16);
	memcpy(key->addr[!end], dst, 16);
	key->port[end] = src_port;
	key->port[!end] = dst_port;
	return end;
}
