/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A line of the table's index: 64 bytes, 15 entries of a tag (16 bits of the hash) and the number of a
 * record within its group (17 bits), and four small counts. For the table (flow/table.c) only.
 *
 * The counts say, for each class of tags, how many keys have their home here and lie in their other
 * line: a look-up that finds nothing at home is done when the count of its class is 0. They go up and
 * down with every move, so they forget what is gone; one that reaches its maximum stays there, and
 * look-ups of that class then read the other line too, needlessly.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LINE_SLOTS 15
#define LINE_ALL ((UINT32_C(1) << LINE_SLOTS) - 1)
#define LINE_RECORD_BITS 17

struct flow_line {
	uint16_t tag[LINE_SLOTS]; /* 0 = free */
	uint16_t low[LINE_SLOTS]; /* of the record's number */
	uint16_t high;		  /* a bit per slot: bit 16 of the record's number */
	uint16_t away;		  /* four counts of 4 bits */
} __attribute__((aligned(64)));

static_assert(sizeof(struct flow_line) == 64, "one cache line");

static inline uint16_t line_tag(uint64_t hash)
{
	uint16_t tag = (uint16_t)hash;

	return tag == 0 ? 1 : tag;
}

/* One bit for each slot whose tag is `tag`; tag 0: for each free slot. */
static inline uint32_t line_match(const struct flow_line *line, uint16_t tag)
{
#ifdef __SSE2__
	const __m128i *half = (const __m128i *)line;
	const __m128i wanted = _mm_set1_epi16((short)tag);

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(
		       _mm_cmpeq_epi16(half[0], wanted), _mm_cmpeq_epi16(half[1], wanted))) &
	       LINE_ALL;
#else
	uint32_t found = 0;

	for (unsigned slot = 0; slot < LINE_SLOTS; slot++)
		found |= (uint32_t)(line->tag[slot] == tag) << slot;
	return found;
#endif
}

static inline unsigned line_first(uint32_t slots)
{
	return (unsigned)__builtin_ctz(slots);
}

static inline uint32_t line_record(const struct flow_line *line, unsigned slot)
{
	return line->low[slot] | (uint32_t)(line->high >> slot & 1) << 16;
}

static inline void line_set(struct flow_line *line, unsigned slot, uint16_t tag, uint32_t record)
{
	line->tag[slot] = tag;
	line->low[slot] = (uint16_t)record;
	line->high = (uint16_t)((line->high & ~(1U << slot)) | (record >> 16 & 1) << slot);
}

/* The count of a tag's class: how far it lies shifted. */
static inline unsigned line_class(uint16_t tag)
{
	return tag >> 14 << 2;
}

static inline bool line_has_away(const struct flow_line *line, uint16_t tag)
{
	return line->away >> line_class(tag) & 15;
}

/* Whether a line is as new, but for counts that stick. */
static inline bool line_is_empty(const struct flow_line *line)
{
	for (unsigned shift = 0; shift < 16; shift += 4) {
		unsigned away = line->away >> shift & 15;

		if (away != 0 && away != 15)
			return false;
	}
	return line_match(line, 0) == LINE_ALL;
}

static inline void line_goes_away(struct flow_line *line, uint16_t tag)
{
	if ((line->away >> line_class(tag) & 15) != 15)
		line->away = (uint16_t)(line->away + (1U << line_class(tag)));
}

static inline void line_comes_home(struct flow_line *line, uint16_t tag)
{
	/* at its maximum the count is no longer known, and stays */
	if ((line->away >> line_class(tag) & 15) != 15)
		line->away = (uint16_t)(line->away - (1U << line_class(tag)));
}
