/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * TCP as an observer in the middle sees it: the state of the connection (RFC 9293 section 3.3.2)
 * and a window check for every segment (after G. van Rooij, "Real Stateful TCP Packet Filtering in
 * IP Filter", 2000; window scale by RFC 7323).
 *
 * Per end we keep the highest sequence number sent + 1 (tcp_end), the highest that the other side
 * allows + 1 (tcp_max_end) and the largest window it offered (tcp_window, in units of its scale).
 * A segment from end d is in the window when, o being the other end and all comparisons modulo
 * 2^32,
 *   seq      <= max_end[d]                        it does not start beyond what o allows
 *   seq+len  >= end[d] - window[o]                it is not older than what o could still want
 *   ack      <= end[o]                            it acknowledges nothing that was never sent
 *   ack      >= end[o] - max(window[d], 66000)    and nothing from long ago
 * and both windows are known (a flow met in mid-conversation learns them from the first packet each
 * way, with the most lenient scale).
 *
 * What one end says alone moves nothing that matters, since anybody may forge it:
 * - A segment outside the window moves nothing at all. Data that runs ahead of what was seen (a
 *   capture that lost packets) moves the window when the other end acknowledges it, and a SYN on ports
 *   in use begins a new conversation when it is answered: flow/tcp_memory.h.
 * - A RST counts at the exact next number only (RFC 5961 section 3.2). If both ends go on in order
 *   after it, the connection is open again.
 * - Where the window was forgotten, a FIN or RST counts when the other end has acknowledged its number;
 *   also when it has the exact number of an end that has said nothing since.
 *
 * In TIME_WAIT nothing changes any more: segments are judged, and only a SYN calls for a fresh record.
 *
 * Pure: writes only the record given. Line 2 of the record must be at hand.
 */

#include <stdbool.h>

#include "flow/record.h"
#include "packet/extract.h"

enum tcp_verdict {
	TCP_IN_WINDOW,
	TCP_ODD,    /* outside the window; counted, dropped when strict */
	TCP_PASSED, /* outside the window; counted, but let pass: its receiver has to answer it */
	TCP_REOPEN, /* a SYN that begins a new conversation on the key of a closed one: the caller
		     * ends the old record and calls flow_tcp_first() on a fresh one */
	TCP_ANEW,   /* of tcp_memory_track() alone */
};

/* The first segment of a record (state FLOW_FREE, initiator = from): sets state and window. */
void flow_tcp_first(struct flow_record *record, unsigned from, const struct tcp_segment *segment);

/*
 * Every further segment. With TCP_ODD, TCP_PASSED and TCP_REOPEN the record is unchanged. tcp_flags are
 * or-ed in by the caller, in any case.
 */
enum tcp_verdict flow_tcp_track(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment);

/*
 * Lets the window be learned anew from the next segment each way: after a segment in the window of which
 * only the first fragment tells, so that nobody knows where it ends, and for flows that come back from
 * hardware. Nothing during the handshake.
 */
void flow_tcp_forget_window(struct flow_record *record);

/*
 * An open connection of which a FIN or RST was seen that is not proven yet. It ends early if it falls
 * silent; with a RST, as `rst`.
 */
static inline bool flow_tcp_is_doubted(const struct flow_record *record)
{
	return record->state == FLOW_ESTABLISHED && record->tcp_note != 0;
}
bool flow_tcp_has_unproven_rst(const struct flow_record *record);
