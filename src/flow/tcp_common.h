/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common segment: data or its acknowledgement, in the window of a connection of which all is known.
 * Nearly every segment is that; it moves the window and nothing else. In a header of its own for walks
 * that are compiled once per SIMD level.
 */

#include "flow/tcp_parts.h"
#include "packet/simd.h"

#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_SSE42

#include <immintrin.h>

#define TCP_NUMBERS

/* What of a record a segment moves, and what it is held against: all in one vector. */
static_assert(offsetof(struct flow_record, tcp_max_end) ==
		      offsetof(struct flow_record, tcp_end) + 2 * sizeof(uint32_t),
	"four numbers in a row");

/* A segment's sequence number, its acknowledgement, and both again. */
static inline __attribute__((always_inline)) __m128i tcp_numbers_of(
	const struct tcp_segment *segment)
{
	__m128i numbers = _mm_loadl_epi64((const void *)segment);

	return _mm_unpacklo_epi64(numbers, numbers);
}

/*
 * Does the segment bring nothing old, and an acknowledgement that is neither ahead nor far behind? Then it is in
 * the window whatever the windows are, and moves all that it moves forwards: that is done. (Below 2^30, as no
 * window is more.) The numbers of the record and what the segment makes of them are, in this order: the end of
 * who sends, the end of the other, the limits of both. What the segment is beyond, it moves; since it is to be
 * beyond neither the other's end nor its own limit, the sign of each difference says what to keep.
 */
static inline __attribute__((always_inline)) bool tcp_moves_on(struct flow_record *record,
	unsigned from, __m128i numbers, uint32_t payload, uint16_t window)
{
	/* its own inverse */
	static const uint8_t order[2][16] __attribute__((aligned(16))) = {
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11},
	};
	const __m128i most = _mm_set_epi32(-1, INT32_MAX, TCP_ACK_LAG, (1 << 30) - 1);
	const uint32_t offered = (uint32_t)window << tcp_shift_of(record, from);
	uint8_t *at = (uint8_t *)record + offsetof(struct flow_record, tcp_end);
	const __m128i turn = _mm_load_si128((const void *)order[from]);
	__m128i known = _mm_shuffle_epi8(_mm_loadu_si128((const void *)at), turn);
	__m128i next = _mm_add_epi32(
		numbers, _mm_insert_epi32(_mm_cvtsi32_si128((int)payload), (int)offered, 3));
	__m128i left = _mm_sub_epi32(known, next);
	__m128i size = _mm_sign_epi32(left, _mm_set_epi32(1, 1, 1, -1));

	__m128i odd = _mm_xor_si128(_mm_min_epu32(size, most), size);

	if (__builtin_expect(!_mm_testz_si128(odd, odd), 0) ||
		__builtin_expect(window > record->tcp_window[from], 0))
		return false;
	next = _mm_castps_si128(_mm_blendv_ps(
		_mm_castsi128_ps(known), _mm_castsi128_ps(next), _mm_castsi128_ps(left)));
	_mm_storeu_si128((void *)at, _mm_shuffle_epi8(next, turn));
	return true;
}

#endif

/*
 * Does the segment bring nothing old, and an acknowledgement that is neither ahead nor far behind? Then it is in
 * the window whatever the windows are, and moves all that it moves forwards. (Below 2^30, as no window is more.)
 */
static inline __attribute__((always_inline)) bool tcp_is_next(const struct flow_record *record,
	unsigned from, const struct tcp_segment *segment, uint32_t end)
{
	const uint32_t lag = record->tcp_end[!from] - segment->ack;

	return tcp_beyond(record->tcp_max_end[from], segment->seq) >= 0 &&
	       end - record->tcp_end[from] < UINT32_C(1) << 30 &&
	       (lag <= TCP_ACK_LAG || lag <= tcp_window_bytes(record, from)) &&
	       segment->window <= record->tcp_window[from];
}

/*
 * tcp_judge() and tcp_move_window() for the case where all is known, without a branch between. False, with
 * nothing changed, for any other segment. By itself: it wants many registers, and is seldom asked.
 */
static __attribute__((noinline, unused)) bool tcp_track_known(
	struct flow_record *record, unsigned from, struct tcp_segment segment)
{
	unsigned to = !from;
	uint32_t ours = tcp_window_bytes(record, from);
	uint32_t theirs = tcp_window_bytes(record, to);
	uint32_t lag = ours > TCP_ACK_LAG ? ours : TCP_ACK_LAG;
	uint32_t end = segment.seq + segment.payload;
	uint32_t limit = segment.ack + ((uint32_t)segment.window << tcp_shift_of(record, from));

	theirs += theirs == 0;
	/* the sign of any difference is the sign of all, or-ed */
	int32_t fits = tcp_beyond(record->tcp_max_end[from], segment.seq) |
		       tcp_beyond(end, record->tcp_end[from] - theirs) |
		       tcp_beyond(record->tcp_end[to], segment.ack) |
		       tcp_beyond(segment.ack, record->tcp_end[to] - lag);

	if (__builtin_expect(fits < 0, 0))
		return false;
	record->tcp_end[from] = tcp_later(record->tcp_end[from], end);
	record->tcp_max_end[to] = tcp_later(record->tcp_max_end[to], limit);
	if (segment.window > record->tcp_window[from])
		record->tcp_window[from] = segment.window;
	return true;
}

#define TCP_UNUSUAL (TCP_SYN | TCP_RST | TCP_FIN)

/* The same for who knows that the flow is FLOW_ESTABLISHED and both its windows are. */
static inline __attribute__((always_inline)) bool tcp_track_settled(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (__builtin_expect((segment->flags & (TCP_UNUSUAL | TCP_ACK)) != TCP_ACK, 0))
		return false;
#ifdef TCP_NUMBERS
	if (__builtin_expect(!tcp_moves_on(record, from, tcp_numbers_of(segment), segment->payload,
				     segment->window),
		    0))
		return tcp_track_known(record, from, *segment);
#else
	unsigned to = !from;
	uint32_t end = segment->seq + segment->payload;

	if (__builtin_expect(!tcp_is_next(record, from, segment, end), 0))
		return tcp_track_known(record, from, *segment);

	uint32_t limit = segment->ack + ((uint32_t)segment->window << tcp_shift_of(record, from));

	record->tcp_end[from] = end;
	record->tcp_max_end[to] = tcp_later(record->tcp_max_end[to], limit);
#endif
	return true;
}

/* The same for any flow; flow_tcp_track() is for the segments that it leaves. */
static inline __attribute__((always_inline)) bool tcp_track_common(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (__builtin_expect((record->state != FLOW_ESTABLISHED) | (record->window_known != 3), 0))
		return false;
	return tcp_track_settled(record, from, segment);
}
