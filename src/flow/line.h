/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A line of the table's index: 64 bytes, 15 entries of a tag (15 bits of the hash) and the number of a
 * record within its group (16 bits), and eight small counts. For the table (flow/table.c) only.
 *
 * The counts say, for each class of tags, how many keys have their home here and lie in their other
 * line: a look-up that finds nothing at home is done when the count of its class is 0. They go up and
 * down with every move, so they forget what is gone; one that reaches its maximum stays there, and
 * look-ups of that class then read the other line too, needlessly.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "packet/simd.h"

/* Where nothing is said of a level, what every x86-64 has. */
#if defined(__SSE2__) && (!defined(SIMD_LEVEL) || SIMD_LEVEL != SIMD_LEVEL_PORTABLE)
#include <immintrin.h>
#define LINE_SIMD
#endif

#define LINE_SLOTS 15
/*
 * LINE_ALL is what line_match() returns when all slots match: a bit each. One comparison of 32 bytes gives two bits for each slot, of which
 * the lower one is kept: packing them together would cost more than it saves.
 */
#if defined(SIMD_LEVEL) && SIMD_LEVEL == SIMD_LEVEL_AVX2
#define LINE_PAIRS
#define LINE_ALL UINT32_C(0x15555555)
#define LINE_BITS 2
#else
#define LINE_ALL ((UINT32_C(1) << LINE_SLOTS) - 1)
#define LINE_BITS 1
#endif
#define LINE_RECORD_BITS 16
#define LINE_CLASSES 8

struct flow_line {
	uint16_t tag[LINE_SLOTS]; /* 0 = free */
	uint16_t record[LINE_SLOTS];
	uint32_t away; /* eight counts of 4 bits */
} __attribute__((aligned(64)));

static_assert(sizeof(struct flow_line) == 64, "one cache line");
static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "line_match() counts tags from the low end");

static inline uint16_t line_tag(uint64_t hash)
{
	return (uint16_t)(hash | 1); /* 0 is a free slot's */
}

/* The slots whose tag is `tag`, for line_first(), a bit each; tag 0: the free slots. */
static inline uint32_t line_match(const struct flow_line *line, uint16_t tag)
{
#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_AVX512
	return _mm256_cmpeq_epi16_mask(*(const __m256i *)line, _mm256_set1_epi16((short)tag)) &
	       LINE_ALL;
#elif defined(LINE_PAIRS)
	/* the last pair of bytes is no tag but the first record's number */
	return (uint32_t)_mm256_movemask_epi8(
		       _mm256_cmpeq_epi16(*(const __m256i *)line, _mm256_set1_epi16((short)tag))) &
	       LINE_ALL;
#elif defined(LINE_SIMD)
	const __m128i *half = (const __m128i *)line;
	const __m128i wanted = _mm_set1_epi16((short)tag);

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(
		       _mm_cmpeq_epi16(half[0], wanted), _mm_cmpeq_epi16(half[1], wanted))) &
	       LINE_ALL;
#else
	/* four tags a word: the top bit of a part is 0 afterwards where that part was 0 before */
	const uint64_t low = UINT64_C(0x7fff7fff7fff7fff), ones = UINT64_C(0x0001000100010001);
	uint32_t found = 0;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)line + 8 * i, sizeof(word));
		word ^= tag * ones;
		word = ~(((word & low) + low) | word) >> 15 & ones;
		/* bits 0, 16, 32 and 48 to 48, 49, 50 and 51 */
		found |= (uint32_t)(word * UINT64_C(0x0001000200040008) >> 48 & 15) << 4 * i;
	}
	return found & LINE_ALL;
#endif
}

static inline unsigned line_first(uint32_t slots)
{
	return (unsigned)__builtin_ctz(slots) / LINE_BITS;
}

static inline void line_set(struct flow_line *line, unsigned slot, uint16_t tag, uint32_t record)
{
	line->tag[slot] = tag;
	line->record[slot] = (uint16_t)record;
}

static inline void line_clear(struct flow_line *line, unsigned slot)
{
	line->tag[slot] = 0;
}

/* The count of a tag's class: how far it lies shifted. */
static inline unsigned line_class(uint16_t tag)
{
	return tag >> 13 << 2;
}

static inline bool line_has_away(const struct flow_line *line, uint16_t tag)
{
	return line->away >> line_class(tag) & 15;
}

/* Whether a line is as new, but for counts that stick. */
static inline bool line_is_empty(const struct flow_line *line)
{
	for (unsigned shift = 0; shift < 4 * LINE_CLASSES; shift += 4) {
		unsigned away = line->away >> shift & 15;

		if (away != 0 && away != 15)
			return false;
	}
	return line_match(line, 0) == LINE_ALL;
}

static inline void line_goes_away(struct flow_line *line, uint16_t tag)
{
	if ((line->away >> line_class(tag) & 15) != 15)
		line->away += UINT32_C(1) << line_class(tag);
}

static inline void line_comes_home(struct flow_line *line, uint16_t tag)
{
	/* at its maximum the count is no longer known, and stays */
	if ((line->away >> line_class(tag) & 15) != 15)
		line->away -= UINT32_C(1) << line_class(tag);
}
