/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp.h"

#include "flow/tcp_common.h"
#include "flow/tcp_open.h"

#define SYN_ACK_RST (TCP_SYN | TCP_ACK | TCP_RST)

static bool same_syn(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (!record->window_known) /* no answer before the RST: only the initiator's is known */
		return from == record->initiator && segment->seq + 1 == record->tcp_max_end[from];
	return tcp_segment_end(segment) == record->tcp_end[from];
}

/* TIME_WAIT: nothing moves, but a SYN beyond all that was sent opens anew (RFC 9293 section 3.10.7.4). */
static enum tcp_verdict track_time_wait(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	bool odd = tcp_is_odd(tcp_judge(record, from, segment));

	if ((segment->flags & SYN_ACK_RST) != TCP_SYN)
		return odd ? TCP_ODD : TCP_IN_WINDOW;
	if (tcp_beyond(segment->seq, record->tcp_end[from]) >= 0)
		return TCP_REOPEN;
	return odd ? TCP_PASSED : TCP_IN_WINDOW;
}

/*
 * After a RST: does this segment go on where its sender was? It brings something new, at or beyond the last
 * number seen, and within what the other end has allowed.
 */
static bool goes_on(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	int32_t more = tcp_beyond(segment->ack, record->tcp_end[to]);

	if (!record->window_known)
		return true;
	if (tcp_beyond(segment->seq, record->tcp_end[from]) < 0)
		return false;
	if (tcp_is_known(record, to) && tcp_beyond(segment->seq, record->tcp_max_end[from]) > 0)
		return false;
	if (more > 0 && (!tcp_is_known(record, from) ||
				tcp_beyond(segment->ack, record->tcp_max_end[to]) > 0))
		return false;
	if (more < -TCP_ACK_LAG)
		return false;
	return segment->payload > 0 || more > 0;
}

/*
 * RESET. Who has sent a RST sends nothing else any more, and who believed it answers with a RST. So when both
 * go on, first the one in whose name it came and then the other, the connection is what it was before.
 */
static enum tcp_verdict track_reset(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	uint8_t flags = segment->flags;
	unsigned by = !!(record->tcp_note & TCP_NOTE_RST_BY_1);

	if ((flags & SYN_ACK_RST) ==
		TCP_SYN) /* whom a RST answered may ask again with the same SYN */
		return same_syn(record, from, segment) ? TCP_IN_WINDOW : TCP_REOPEN;
	if ((flags & SYN_ACK_RST) == TCP_ACK &&
		(record->tcp_note & TCP_NOTE_FINS) != TCP_NOTE_FINS &&
		goes_on(record, from, segment)) {
		if (from == by) {
			uint32_t limit = segment->ack +
					 ((uint32_t)segment->window << tcp_shift_of(record, from));

			record->tcp_note = (record->tcp_note | TCP_NOTE_WENT_ON) & 0x0fu;
			if (record->window_known)
				record->tcp_max_end[!from] =
					tcp_later(record->tcp_max_end[!from], limit);
			return TCP_IN_WINDOW;
		}
		if (record->tcp_note & TCP_NOTE_WENT_ON) {
			uint32_t to_end = record->tcp_end[!from];

			tcp_unreset(record);
			tcp_move_window(record, from, segment);
			tcp_close_by(record, from, segment, to_end);
			return TCP_IN_WINDOW;
		}
	}
	return tcp_is_odd(tcp_judge(record, from, segment)) ? TCP_ODD : TCP_IN_WINDOW;
}

/* In SYN_RECEIVED: does an ACK of this end acknowledge the other's SYN? See tcp_window.h. */
static bool acks_syn(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint32_t after_syn = record->tcp_max_end[to];

	if (from == record->initiator)
		after_syn -= tcp_window_bytes(record, from);
	return tcp_between(segment->ack, after_syn, record->tcp_end[to]);
}

/*
 * A SYN with ACK that is in the window. It counts where its sender, or its acknowledgement, is still
 * new: picked up from the other end, and the end of a simultaneous open. Elsewhere it is a
 * retransmission, or somebody's guess, and changes nothing.
 */
static bool syn_counts(const struct flow_record *record, unsigned from)
{
	if (record->state == FLOW_PICKED_UP)
		return !tcp_is_known(record, from);
	return record->state == FLOW_SYN_RECEIVED &&
	       (from == record->initiator || !tcp_is_known(record, !record->initiator));
}

/*
 * In SYN_RECEIVED the responder answers once more, with another sequence number: it did not keep the
 * first (SYN cookies, or another machine behind the same address).
 */
static bool answers_anew(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;

	return record->state == FLOW_SYN_RECEIVED && record->window_known == 3 &&
	       from != record->initiator && segment->ack == record->tcp_end[to] &&
	       segment->seq + 1 != record->tcp_max_end[from] - tcp_window_bytes(record, to);
}

static void open_by(struct flow_record *record, unsigned from)
{
	bool other_known = tcp_is_known(record, !from);
	bool simultaneous = !tcp_is_known(record, !record->initiator);

	if (record->state == FLOW_PICKED_UP && other_known && !tcp_is_known(record, from))
		record->state = FLOW_ESTABLISHED;
	else if (record->state == FLOW_SYN_RECEIVED && (from == record->initiator || simultaneous))
		record->state = FLOW_ESTABLISHED;
}

/* Open, and nothing of the other end is known since the window was forgotten. */
static bool is_doubtful(const struct flow_record *record, unsigned from)
{
	return record->state >= FLOW_ESTABLISHED && record->state <= FLOW_FIN_ACK_1 &&
	       !tcp_is_known(record, !from);
}

static uint32_t tcp_lag_of(const struct flow_record *record, unsigned end)
{
	uint32_t window = tcp_window_bytes(record, end);

	return window > TCP_ACK_LAG ? window : TCP_ACK_LAG;
}

/* What this end said that waits for its proof is taken back by what it says now. */
static void take_back(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	uint32_t behind = record->tcp_end[from] - tcp_segment_end(segment);
	uint32_t lag = tcp_lag_of(record, from);

	record->tcp_note = record->tcp_note & ~TCP_NOTE_RST(from) & 0x0fu;
	if (!tcp_has_finished(record, from) && behind > lag)
		record->tcp_note = record->tcp_note & ~TCP_NOTE_FIN(from) & 0x0fu;
}

/*
 * A segment with an ACK while nothing of the other end is known. What that end said, and what waits for its
 * proof, is held against the acknowledgement. Says whether this segment is tied to it, so that a FIN of its
 * own may be believed, too.
 */
static bool tcp_hear(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint32_t lag = tcp_lag_of(record, from);
	uint32_t behind = record->tcp_end[to] - segment->ack;
	bool follows = segment->seq == record->tcp_end[from];

	if (!tcp_is_awaited(record, to)) {
		/* where only the first fragment of the FIN was seen its number is beyond */
		return tcp_has_finished(record, to) && 0 - behind <= UINT16_MAX;
	}
	if (behind > lag) { /* it speaks of something else */
		record->tcp_note = record->tcp_note & ~TCP_NOTE_RST(to) & 0x0fu;
		if (!tcp_has_finished(record, to))
			record->tcp_note = record->tcp_note & ~TCP_NOTE_FIN(to) & 0x0fu;
		return false;
	}
	if (record->tcp_note & TCP_NOTE_RST(to)) {
		if (behind == 0)
			tcp_reset(record, to);
		return false;
	}
	if (behind != 0 && !follows)
		return false;
	tcp_finish(record, to, behind == 0);
	return true;
}

/* Both ends have told where they are: what fits that is believed now. */
static void settle(struct flow_record *record)
{
	for (unsigned end = 0; end < 2; end++) {
		record->tcp_note = record->tcp_note & ~TCP_NOTE_RST(end) & 0x0fu;
		if (tcp_is_awaited(record, end))
			tcp_finish(record, end, false);
	}
}

/*
 * A window was forgotten, and the segment begins with the exact number that was known before: its end has said
 * nothing since, and nobody guesses that number.
 */
static bool is_silent_since(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	return record->window_known == 0 && !tcp_is_awaited(record, from) &&
	       segment->seq == record->tcp_end[from];
}

/*
 * Segments with an ACK and neither RST nor (but where it counts) SYN, as far as their time. A FIN that is
 * proven is its own proof (is_silent_since()).
 */
static enum tcp_verdict track_data(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool proven)
{
	unsigned to = !from;
	bool finishes = (segment->flags & (TCP_FIN | TCP_SYN)) == TCP_FIN;
	bool believed = true;
	int32_t past_end = tcp_beyond(tcp_segment_end(segment), record->tcp_end[from]);
	struct tcp_segment said = *segment;

	if (tcp_has_finished(record, from) && past_end > 0)
		return TCP_ODD;
	/* a FIN with later data already seen is no FIN of this conversation */
	if (record->window_known && finishes && past_end < 0)
		return TCP_ODD;
	if (record->state == FLOW_SYN_RECEIVED && !acks_syn(record, from, segment) &&
		(from == record->initiator || !tcp_is_known(record, from)))
		return TCP_ODD;
	if (!record->window_known && tcp_has_finished(record, to) &&
		tcp_beyond(segment->ack, record->tcp_end[to]) > UINT16_MAX)
		return TCP_ODD;
	if (record->tcp_note != 0 && record->state >= FLOW_ESTABLISHED)
		take_back(record, from, segment);
	if (is_doubtful(record, from)) {
		believed =
			tcp_hear(record, from, segment) || tcp_has_finished(record, from) || proven;
		if (record->state == FLOW_RESET)
			return TCP_IN_WINDOW;
	}
	/* nothing is known, but that the other end has finished: somewhere beyond what was seen */
	if (!record->window_known && tcp_has_finished(record, to))
		record->tcp_end[to] = tcp_later(record->tcp_end[to], segment->ack);
	uint32_t to_end = record->tcp_end[to];

	open_by(record, from);
	tcp_move_window(record, from, segment);
	if (record->tcp_note != 0 && record->window_known == 3)
		settle(record);
	if (finishes && !believed) {
		record->tcp_note = (record->tcp_note | TCP_NOTE_FIN(from)) & 0x0fu;
		said.flags &= (uint8_t)~TCP_FIN;
	}
	tcp_close_by(record, from, &said, to_end);
	return TCP_IN_WINDOW;
}

/*
 * A RST counts where its receiver awaits the next number (RFC 5961 section 3.2), which is behind all that was
 * sent, or what the receiver has last acknowledged, as far as its largest window tells. One below the FIN
 * is what hosts send who have closed and answer data, and what hosts believe then.
 */
static bool is_exact(const struct flow_record *record, unsigned from, uint32_t seq)
{
	uint32_t behind = record->tcp_end[from] - seq;

	if (behind == 0 || (behind == 1 && tcp_has_finished(record, from)))
		return true;
	return tcp_is_known(record, !from) && behind <= INT32_MAX &&
	       seq == record->tcp_max_end[from] - tcp_window_bytes(record, !from);
}

/*
 * A RST in an open connection whose window was forgotten: it waits for its proof, unless it is its own proof
 * (is_silent_since()).
 */
static void doubt_rst(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	bool is_anchored = record->window_known != 0 || tcp_is_awaited(record, from);
	bool answers_fin = segment->flags & TCP_ACK && tcp_is_awaited(record, to) &&
			   segment->ack == record->tcp_end[to];

	if (is_silent_since(record, from, segment) || answers_fin) {
		tcp_reset(record, from);
		return;
	}
	if (record->tcp_note & TCP_NOTE_RST(from) || !is_anchored)
		record->tcp_end[from] = segment->seq;
	if (record->tcp_end[from] == segment->seq)
		record->tcp_note = (record->tcp_note | TCP_NOTE_RST(from)) & 0x0fu;
}

static enum tcp_verdict track_rst(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	struct tcp_misfit misfit = tcp_judge(record, from, segment);

	if (record->state >= FLOW_ESTABLISHED && record->window_known != 3 &&
		!tcp_has_finished(record, from)) {
		doubt_rst(record, from, segment);
		return TCP_IN_WINDOW;
	}
	bool nothing_known = record->window_known == 0 && record->state == FLOW_PICKED_UP;

	if (nothing_known || is_exact(record, from, segment->seq)) {
		tcp_reset(record, from);
		return TCP_IN_WINDOW;
	}
	return misfit.seq_ahead > 0 || misfit.seq_old > 0 ? TCP_ODD : TCP_IN_WINDOW;
}

/*
 * A SYN without ACK on ports in use moves nothing: it is its receiver who knows what it is, and answers. Outside
 * the window it is let pass for that (RFC 9293 section 3.10.7.4, RFC 5961 section 4).
 */
static enum tcp_verdict track_syn(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (record->state == FLOW_SYN_SENT) {
		if (from == record->initiator && segment->seq + 1 == record->tcp_max_end[from])
			return tcp_track_syn_sent(record, from, segment);
		return TCP_IN_WINDOW;
	}
	if (record->state == FLOW_PICKED_UP) {
		tcp_take_late_syn(record, from, segment);
		return TCP_IN_WINDOW;
	}
	struct tcp_misfit misfit = tcp_judge(record, from, segment);

	return misfit.seq_ahead > 0 || misfit.seq_old > 0 ? TCP_PASSED : TCP_IN_WINDOW;
}

/* While one end alone has told where it is, what does not fit that is as good: it is learned anew. */
static void anchor_anew(struct flow_record *record)
{
	if (record->window_known == 3 ||
		(record->state != FLOW_ESTABLISHED && record->state != FLOW_PICKED_UP))
		return;
	record->window_known = 0;
	record->tcp_note = 0;
}

/* Everything but the common case. */
static __attribute__((noinline)) enum tcp_verdict track_rare(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	uint8_t flags = segment->flags;

	if (record->state == FLOW_TIME_WAIT)
		return track_time_wait(record, from, segment);
	if (record->state == FLOW_RESET)
		return track_reset(record, from, segment);
	if ((flags & SYN_ACK_RST) == TCP_SYN)
		return track_syn(record, from, segment);
	if (record->state == FLOW_SYN_SENT)
		return tcp_track_syn_sent(record, from, segment);
	if (flags & TCP_RST)
		return track_rst(record, from, segment);

	bool odd = tcp_is_odd(tcp_judge(record, from, segment));
	bool proven = is_silent_since(record, from, segment);

	if ((flags & TCP_SYN) && answers_anew(record, from, segment)) {
		tcp_answer_syn(record, from, segment);
		return TCP_IN_WINDOW;
	}
	if (!(flags & TCP_ACK))
		return TCP_ODD; /* RFC 9293 section 3.10.7.4, fifth: dropped by its receiver */
	if (flags & TCP_SYN) {
		if (odd)
			return TCP_ODD;
		if (!syn_counts(record, from))
			return TCP_IN_WINDOW;
		if (record->state == FLOW_PICKED_UP)
			tcp_learn_scale(record, from, segment);
	} else if (odd) {
		anchor_anew(record);
		if (tcp_is_odd(tcp_judge(record, from, segment)))
			return TCP_ODD;
	}
	return track_data(record, from, segment, proven);
}

enum tcp_verdict flow_tcp_track(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (__builtin_expect(tcp_track_common(record, from, segment, false), 1))
		return TCP_IN_WINDOW;
	return track_rare(record, from, segment);
}

void flow_tcp_forget_window(struct flow_record *record)
{
	if (flow_phase((enum flow_state)record->state) == FLOW_PHASE_NEW)
		return; /* the handshake's numbers are still needed, and short */
	record->window_known = 0;
}

bool flow_tcp_has_unproven_rst(const struct flow_record *record)
{
	return record->state >= FLOW_ESTABLISHED && record->state <= FLOW_FIN_ACK_1 &&
	       record->tcp_note & (TCP_NOTE_RST(0) | TCP_NOTE_RST(1));
}
