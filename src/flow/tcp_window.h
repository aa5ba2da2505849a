/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The window of a TCP connection: the check of a segment against it, how a segment moves it, and how a connection
 * closes. For the files of the TCP observer, whose users have flow/tcp.h.
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

/*
 * The record's notes (tcp_note). Of an open connection whose window was forgotten: the FIN or RST that an
 * end has sent, with tcp_end of that end as its number, waits for the other end's acknowledgement. In
 * FIN_0 and FIN_1 the first of these bits says that the FIN is acknowledged. In RESET: which end has
 * sent the RST, whether it went on all the same, and which ends had finished before.
 */
#define TCP_NOTE_FIN(end) (1u << (end))
#define TCP_NOTE_RST(end) (4u << (end))
#define TCP_NOTE_FINS 3u
#define TCP_NOTE_RST_BY_1 4u
#define TCP_NOTE_WENT_ON 8u

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

static inline bool tcp_is_odd(struct tcp_misfit misfit)
{
	return misfit.seq_ahead > 0 || misfit.seq_old > 0 || misfit.ack_ahead > 0 ||
	       misfit.ack_old > 0;
}

/* The check of tcp.h, with those sides left out that nothing is known of. */
struct tcp_misfit tcp_judge(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment);
/* A segment with an ACK, in the window, moves the window. */
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
/* A FIN or RST of this end waits for its proof. */
bool tcp_is_awaited(const struct flow_record *record, unsigned end);
/*
 * Moves towards the close: a FIN of this end, or an ACK of the other's. `to_end` is tcp_end of the
 * other end as it was before this segment: when that has finished, the number that acknowledges it.
 */
void tcp_close_by(struct flow_record *record, unsigned from, const struct tcp_segment *segment,
	uint32_t to_end);
/* The end that this segment acknowledges had sent a FIN, which is believed now, and acknowledged or not. */
void tcp_finish(struct flow_record *record, unsigned end, bool acknowledged);
/* A RST of this end counts. */
void tcp_reset(struct flow_record *record, unsigned from);
/* After a RST both ends went on: the state is what it was before. */
void tcp_unreset(struct flow_record *record);

/*
 * Both ends' segments agree on where they are, beyond what the record knows: it follows. `said` is what
 * end `by` said first, `end` the number behind it.
 */
bool tcp_agree(const struct flow_record *record, unsigned by, const struct tcp_segment *said,
	uint32_t end, const struct tcp_segment *answer);
void tcp_follow(struct flow_record *record, unsigned by, const struct tcp_segment *said,
	uint32_t end, const struct tcp_segment *answer);
/* Whether a segment that runs ahead may move the window along at all, once both ends agree. */
bool tcp_may_follow(const struct flow_record *record, unsigned from,
	const struct tcp_segment *segment, struct tcp_misfit misfit);
