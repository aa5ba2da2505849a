/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the files of the TCP observer share: tcp_window.c (the check, and how a segment moves the
 * window), tcp_open.c (first segments, handshake, pick-up) and tcp.c (all further segments, with the
 * common case in front). Not for others: flow/tcp.h is.
 *
 * window_known says of an end that a segment of its own with an ACK has been seen: its window counts,
 * and the other end's limit (max_end) is known by it. Before the handshake's answer nothing is: in
 * SYN_SENT max_end of the initiator stands at its SYN's sequence number + 1, the least that an answer
 * must acknowledge. In SYN_RECEIVED max_end of the responder stands at its SYN's sequence number + 1
 * + the initiator's window, from which the former is had again. With a simultaneous open the
 * responder's window is not yet known in SYN_RECEIVED, which tells the two apart.
 */

#include "flow/tcp.h"

/* An acknowledgement may lag this far behind, however small the window (after van Rooij). */
#define TCP_ACK_LAG 66000
/* Window of an end that has not told: the largest there can be. */
#define TCP_WINDOW_UNKNOWN ((uint32_t)UINT16_MAX << 14)
/* A gap in the capture up to this length is followed. */
#define TCP_RESYNC_MAX (1 << 26)

/* How far `a` is beyond `b`, modulo 2^32. */
static inline int32_t tcp_beyond(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline uint32_t tcp_later(uint32_t a, uint32_t b)
{
	return tcp_beyond(a, b) > 0 ? a : b;
}

/* low <= value <= high */
static inline bool tcp_between(uint32_t value, uint32_t low, uint32_t high)
{
	return value - low <= high - low;
}

static inline bool tcp_is_known(const struct flow_record *record, unsigned end)
{
	return record->window_known >> end & 1;
}

/* An unknown scale is judged as the largest, 14 (RFC 7323 section 2.3). */
static inline unsigned tcp_shift_of(const struct flow_record *record, unsigned end)
{
	return record->end[end].tcp_scale & FLOW_SCALE_SHIFT;
}

static inline uint32_t tcp_window_bytes(const struct flow_record *record, unsigned end)
{
	return (uint32_t)record->end[end].tcp_window << tcp_shift_of(record, end);
}

/* Sequence numbers that a segment takes (RFC 9293 section 3.4). */
static inline uint32_t tcp_segment_end(const struct tcp_segment *segment)
{
	return segment->seq + segment->payload + !!(segment->flags & TCP_SYN) +
	       !!(segment->flags & TCP_FIN);
}

/* By how much a segment misses the window, on each of its four sides; 0 or less is inside. */
struct tcp_misfit {
	int32_t seq_ahead;
	int32_t seq_old;
	int32_t ack_ahead;
	int32_t ack_old;
};

/* The check of tcp.h, with those sides left out that nothing is known of. */
struct tcp_misfit tcp_judge(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* A segment with an ACK, in the window or followed across a gap, moves the window. */
void tcp_move_window(struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/*
 * The scale option of a SYN. Both ends must have it, or neither scales (RFC 7323 section 2.2): a SYN
 * without it makes both 0, and 0 is not changed by the other end's option, only unknown is.
 */
void tcp_learn_scale(struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* A SYN's window in the units that its end's windows are kept in, rounded up. */
uint16_t tcp_offered_units(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment);

/* Nothing follows a FIN: its end of the sequence numbers stands. */
bool tcp_has_finished(const struct flow_record *record, unsigned end);
/*
 * Moves towards the close: a FIN of this end, or an ACK of the other's. `to_end` is tcp_end of the
 * other end as it was before this segment: when that has finished, the number that acknowledges it.
 */
void tcp_close_by(struct flow_record *record, unsigned from, const struct tcp_segment *segment,
	uint32_t to_end);

/* The responder's SYN, with or without ACK: both ends' windows as RFC 9293 section 3.5 has them. */
void tcp_answer_syn(struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* Any segment in SYN_SENT. */
enum tcp_verdict tcp_track_syn_sent(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* A SYN without ACK in PICKED_UP. */
enum tcp_verdict tcp_track_late_syn(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment);
