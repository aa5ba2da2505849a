/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common segment: data or its acknowledgement, in the window of a connection of which all is known.
 * Nearly every segment is that; it moves the window and nothing else. In a header of its own for walks
 * that are compiled once per SIMD level.
 */

#include "flow/tcp_parts.h"

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
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint32_t ours = tcp_window_bytes(record, from);
	uint32_t theirs = tcp_window_bytes(record, to);
	uint32_t lag = ours > TCP_ACK_LAG ? ours : TCP_ACK_LAG;
	uint32_t end = segment->seq + segment->payload;
	uint32_t limit = segment->ack + ((uint32_t)segment->window << tcp_shift_of(record, from));

	theirs += theirs == 0;
	/* the sign of any difference is the sign of all, or-ed */
	int32_t fits = tcp_beyond(record->tcp_max_end[from], segment->seq) |
		       tcp_beyond(end, record->tcp_end[from] - theirs) |
		       tcp_beyond(record->tcp_end[to], segment->ack) |
		       tcp_beyond(segment->ack, record->tcp_end[to] - lag);

	if (__builtin_expect(fits < 0, 0))
		return false;
	record->tcp_end[from] = tcp_later(record->tcp_end[from], end);
	record->tcp_max_end[to] = tcp_later(record->tcp_max_end[to], limit);
	if (segment->window > record->tcp_window[from])
		record->tcp_window[from] = segment->window;
	return true;
}

/* The same for who knows that the flow is FLOW_ESTABLISHED and both its windows are. */
static inline __attribute__((always_inline)) bool tcp_track_settled(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	const unsigned unusual = TCP_SYN | TCP_RST | TCP_FIN;
	unsigned to = !from;

	if (__builtin_expect((segment->flags & (unusual | TCP_ACK)) != TCP_ACK, 0))
		return false;

	uint32_t end = segment->seq + segment->payload;

	if (__builtin_expect(!tcp_is_next(record, from, segment, end), 0))
		return tcp_track_known(record, from, segment);

	uint32_t limit = segment->ack + ((uint32_t)segment->window << tcp_shift_of(record, from));

	record->tcp_end[from] = end;
	record->tcp_max_end[to] = tcp_later(record->tcp_max_end[to], limit);
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
