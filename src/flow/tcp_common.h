/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common segment: data or its acknowledgement, in the window of a connection of which all is known.
 * Nearly every segment is that; it moves the window and nothing else. And the SYN or SYN-ACK of a handshake
 * that comes once more, which moves nothing. In a header of its own for walks that are compiled once per SIMD level.
 */

#include "flow/tcp_window.h"
#include "packet/simd.h"

#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_SSE42

#include <immintrin.h>

#define TCP_NUMBERS

/* What of a record a segment moves, and what it is held against: all in one vector. */
static_assert(offsetof(struct flow_record, tcp_max_end) ==
		      offsetof(struct flow_record, tcp_end) + 2 * sizeof(uint32_t),
	"four numbers in a row");

/*
 * By the end that a segment comes from: where each of its numbers belongs in that row, which is the end of its
 * sender's numbers, the end of the other's, and the limits of both, or these turned round; and how far the record may be
 * from them.
 */
struct tcp_places {
	struct {
		uint8_t wire[16]; /* sequence number and acknowledgement, as they lie in a header */
		uint8_t add[16];  /* its length and the window that it offers, in bytes */
	} where[2];
	struct {
		/* the sender's end moves on: it is to be behind, the others ahead */
		int32_t sign[4];
		uint32_t most[4]; /* and by so much at most */
	} bounds[2];
} __attribute__((aligned(32)));

#define TCP_NEW_MOST ((1 << 30) - 1)
#define TCP_PLACES                                                                              \
	{                                                                                       \
		.where = {{{3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4},                    \
				  {0, 1, 2, 3, 128, 128, 128, 128, 128, 128, 128, 128, 4, 5, 6, \
					  7}},                                                  \
			{{7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0},                      \
				{128, 128, 128, 128, 0, 1, 2, 3, 4, 5, 6, 7, 128, 128, 128,     \
					128}}},                                                 \
		.bounds = {{{-1, 1, 1, 1}, {TCP_NEW_MOST, TCP_ACK_LAG, INT32_MAX, UINT32_MAX}}, \
			{{1, -1, 1, 1}, {TCP_ACK_LAG, TCP_NEW_MOST, UINT32_MAX, INT32_MAX}}},   \
	}
static const struct tcp_places tcp_places = TCP_PLACES;

/* What is an end's own lies so far behind what is end 0's: from there on the first of each pair is that end's. */
#define TCP_PLACES_AN_END 32

static inline const struct tcp_places *tcp_places_of(size_t from)
{
	static_assert(sizeof(tcp_places.where[0]) == TCP_PLACES_AN_END &&
			      sizeof(tcp_places.bounds[0]) == TCP_PLACES_AN_END,
		"of both");
	return (const void *)((const uint8_t *)&tcp_places + from * TCP_PLACES_AN_END);
}

/* A segment's numbers in their places: from 8 bytes of a header, and as they were read. `places`: of the end. */
static inline __attribute__((always_inline)) __m128i tcp_numbers_on_wire(
	const uint8_t *numbers, const struct tcp_places *places)
{
	return _mm_shuffle_epi8(_mm_loadl_epi64((const void *)numbers),
		_mm_load_si128((const void *)places->where[0].wire));
}

static inline __attribute__((always_inline)) __m128i tcp_numbers_of(
	const struct tcp_segment *segment, unsigned from)
{
	static const uint8_t host[2][16] __attribute__((aligned(16))) = {
		{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7},
		{4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3},
	};

	return _mm_shuffle_epi8(
		_mm_loadl_epi64((const void *)segment), _mm_load_si128((const void *)host[from]));
}

/* Is any of the four above its bound? Without signs. */
static inline __attribute__((always_inline)) bool tcp_any_above(__m128i size, __m128i most)
{
#if SIMD_LEVEL >= SIMD_LEVEL_AVX512
	return _mm_cmpgt_epu32_mask(size, most) != 0;
#else
	__m128i odd = _mm_xor_si128(_mm_min_epu32(size, most), size);

	return !_mm_testz_si128(odd, odd);
#endif
}

/*
 * Does the segment bring nothing old, and an acknowledgement that is neither ahead nor far behind? Then it is in
 * the window whatever the windows are, and moves all that it moves forwards: that is done. (Below 2^30, as no
 * window is more.) `end` is the record's of the end that it comes from, so are `places`, and `numbers` are in these.
 * What the segment is beyond, it moves; since it is to be beyond neither the other's end nor its own limit, the sign of
 * each difference says what to keep.
 */
static inline __attribute__((always_inline)) bool tcp_moves_on(struct flow_record *record,
	const struct flow_end_state *end, const struct tcp_places *places, __m128i numbers,
	uint32_t payload, uint32_t window)
{
	const uint64_t offered = (uint32_t)(window << (end->tcp_scale & FLOW_SCALE_SHIFT));
	void *at = (uint8_t *)record + offsetof(struct flow_record, tcp_end);
	__m128i known = _mm_loadu_si128(at);
	__m128i add = _mm_shuffle_epi8(_mm_cvtsi64_si128((int64_t)(offered << 32 | payload)),
		_mm_load_si128((const void *)places->where[0].add));
	__m128i left = _mm_sub_epi32(known, _mm_add_epi32(numbers, add));
	__m128i size = _mm_sign_epi32(left, _mm_load_si128((const void *)places->bounds[0].sign));

	if (__builtin_expect(
		    tcp_any_above(size, _mm_load_si128((const void *)places->bounds[0].most)), 0) ||
		__builtin_expect(window > end->tcp_window, 0))
		return false;
	_mm_storeu_si128(at, _mm_sub_epi32(known, _mm_min_epi32(left, _mm_setzero_si128())));
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
	       segment->window <= record->end[from].tcp_window;
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
	if (segment.window > record->end[from].tcp_window)
		record->end[from].tcp_window = segment.window;
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
	if (__builtin_expect(
		    !tcp_moves_on(record, &record->end[from], tcp_places_of(from),
			    tcp_numbers_of(segment, from), segment->payload, segment->window),
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

/*
 * Of a record in FLOW_SYN_RECEIVED both whose windows are known: is that the SYN of its handshake once more, or (`answers`:
 * it is of the responder) the SYN-ACK that answers it, without data? Such a segment is in the window and moves nothing,
 * whatever else is remembered of the flow (flow/tcp_memory.h). `numbers`: of sequence, and of acknowledgement in the low
 * half.
 */
static inline __attribute__((always_inline)) bool tcp_is_handshake_again(
	const struct flow_record *record, unsigned from, bool answers, uint64_t numbers,
	uint8_t flags)
{
	const unsigned kind = flags & (TCP_UNUSUAL | TCP_ACK);
	uint64_t known;

	memcpy(&known, record->tcp_end, sizeof(known));
	/* the sender's in the upper half, as it was before the SYN */
	known = (from ? known : known << 32 | known >> 32) - (UINT64_C(1) << 32);
	/* all flags are known: so the record's second line is read, and not written */
	if (flags & ~record->end[from].tcp_flags)
		return false;
	return answers ? kind == (TCP_SYN | TCP_ACK) && known == numbers
		       : kind == TCP_SYN && known >> 32 == numbers >> 32;
}

/* The same of any record: of one in FLOW_SYN_SENT, the SYN. The segment has no data. */
static inline __attribute__((always_inline)) bool tcp_comes_again(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	/* each in one read: else the compiler may store a part, and read more than that again */
	const unsigned status = ((const uint8_t *)&record->status)[FLOW_STATE_BYTE];
	const bool answers = status >> 7 != from;
	uint64_t numbers;

	static_assert(offsetof(struct tcp_segment, ack) ==
			      offsetof(struct tcp_segment, seq) + sizeof(uint32_t),
		"side by side");
	memcpy(&numbers, segment, sizeof(numbers));
	if ((status & (15 | 3 << 5)) == (FLOW_SYN_RECEIVED | 3 << 5))
		return tcp_is_handshake_again(
			record, from, answers, numbers << 32 | numbers >> 32, segment->flags);
	return (status & 15) == FLOW_SYN_SENT && !answers &&
	       (segment->flags & (TCP_UNUSUAL | TCP_ACK)) == TCP_SYN &&
	       segment->seq + 1 == record->tcp_max_end[from] &&
	       !(segment->flags & ~record->end[from].tcp_flags);
}

/*
 * The same for any flow; flow_tcp_track() is for the segments that it leaves. `plain`: also of a flow that is not plain
 * all segments are left.
 */
static inline __attribute__((always_inline)) bool tcp_track_common(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool plain)
{
	if (__builtin_expect((record->state != FLOW_ESTABLISHED) | (plain & record->not_plain) |
				     (record->window_known != 3),
		    0))
		return false;
	return tcp_track_settled(record, from, segment);
}
