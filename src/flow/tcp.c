/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp.h"

#include "flow/tcp_common.h"

static bool same_syn(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (!record->window_known) /* no answer before the RST: only the initiator's is known */
		return from == record->initiator && segment->seq + 1 == record->tcp_max_end[from];
	return tcp_segment_end(segment) == record->tcp_end[from];
}

/* TIME_WAIT and RESET: nothing moves, but a new SYN opens anew (RFC 9293 section 3.10.7.4). */
static enum tcp_verdict track_closed(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	struct tcp_misfit misfit = tcp_judge(record, from, segment);

	if ((segment->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN) {
		if (record->state == FLOW_RESET) {
			/* whom a RST answered may ask again with the very same SYN */
			return same_syn(record, from, segment) ? TCP_IN_WINDOW : TCP_REOPEN;
		}
		if (tcp_beyond(segment->seq, record->tcp_end[from]) >= 0)
			return TCP_REOPEN;
	}
	if (misfit.seq_ahead > 0 || misfit.seq_old > 0 || misfit.ack_ahead > 0 ||
		misfit.ack_old > 0)
		return TCP_ODD;
	return TCP_IN_WINDOW;
}

/* In SYN_RECEIVED: does an ACK of this end acknowledge the other's SYN? See tcp_parts.h. */
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
 * new: picked up from the other end, and the second half of a simultaneous open. Elsewhere it is a
 * retransmission, or somebody's guess, and changes nothing.
 */
static bool syn_counts(const struct flow_record *record, unsigned from)
{
	if (record->state == FLOW_PICKED_UP)
		return !tcp_is_known(record, from);
	return record->state == FLOW_SYN_RECEIVED && !tcp_is_known(record, !record->initiator);
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

/* Whether a segment that runs ahead may move the window along. A bare FIN may not: it is so easily forged. */
static bool may_resync(const struct flow_record *record, unsigned from,
	const struct tcp_segment *segment, struct tcp_misfit misfit)
{
	if (misfit.seq_ahead > 0 && segment->payload == 0 && segment->flags & TCP_FIN)
		return false;
	if (misfit.seq_ahead > TCP_RESYNC_MAX || misfit.ack_ahead > TCP_RESYNC_MAX)
		return false;
	if (misfit.ack_ahead > 0 && tcp_has_finished(record, !from))
		return false;
	/* from these numbers acks_syn() tells a genuine ACK: they are not to be talked away */
	if (record->state == FLOW_SYN_RECEIVED && from != record->initiator)
		return misfit.seq_ahead <= 0;
	return true;
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

/* Segments with an ACK and neither RST nor (but where it counts) SYN, as far as their time. */
static enum tcp_verdict track_data(struct flow_record *record, unsigned from,
	const struct tcp_segment *segment, struct tcp_misfit misfit, bool strict)
{
	unsigned to = !from;
	bool ahead = misfit.seq_ahead > 0 || misfit.ack_ahead > 0;
	int32_t past_end = tcp_beyond(tcp_segment_end(segment), record->tcp_end[from]);
	struct tcp_segment moved = *segment;

	if (tcp_has_finished(record, from) && past_end > 0)
		return TCP_ODD;
	/* a FIN with later data already seen is no FIN of this conversation */
	if (record->window_known && (segment->flags & (TCP_FIN | TCP_SYN)) == TCP_FIN &&
		past_end < 0)
		return TCP_ODD;
	if (ahead && (strict || !may_resync(record, from, segment, misfit)))
		return TCP_ODD;
	if (record->state == FLOW_SYN_RECEIVED && !acks_syn(record, from, segment) &&
		(from == record->initiator || !tcp_is_known(record, from)))
		return TCP_ODD;
	if (ahead) {
		moved.flags &= (uint8_t)~TCP_FIN;
		/* what allowed it was lost too: assume it acknowledged all before this segment */
		if (misfit.seq_ahead > 0)
			record->tcp_max_end[from] = segment->seq + tcp_window_bytes(record, to);
	}
	/* nothing is known, but that the other end has finished: somewhere beyond what was seen */
	if (!record->window_known && tcp_has_finished(record, to))
		record->tcp_end[to] = tcp_later(record->tcp_end[to], segment->ack);
	uint32_t to_end = record->tcp_end[to];

	open_by(record, from);
	tcp_move_window(record, from, &moved);
	if (ahead)
		return TCP_ODD;
	tcp_close_by(record, from, segment, to_end);
	return TCP_IN_WINDOW;
}

/* Everything but the common case. */
static __attribute__((noinline)) enum tcp_verdict track_rare(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool strict)
{
	uint8_t flags = segment->flags;

	if (record->state == FLOW_TIME_WAIT || record->state == FLOW_RESET)
		return track_closed(record, from, segment);
	if (record->state == FLOW_SYN_SENT)
		return tcp_track_syn_sent(record, from, segment);
	if (record->state == FLOW_PICKED_UP && (flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN)
		return tcp_track_late_syn(record, from, segment);

	struct tcp_misfit misfit = tcp_judge(record, from, segment);
	bool ahead = misfit.seq_ahead > 0 || misfit.ack_ahead > 0;

	if ((flags & (TCP_SYN | TCP_ACK | TCP_RST)) == (TCP_SYN | TCP_ACK) &&
		answers_anew(record, from, segment)) {
		tcp_answer_syn(record, from, segment);
		return TCP_IN_WINDOW;
	}
	if (misfit.seq_old > 0 || misfit.ack_old > 0)
		return TCP_ODD;
	if (flags & TCP_RST) {
		if (ahead)
			return TCP_ODD;
		record->state = FLOW_RESET;
		return TCP_IN_WINDOW;
	}
	if (flags & TCP_SYN) {
		if (ahead)
			return TCP_ODD;
		if (!(flags & TCP_ACK) || !syn_counts(record, from))
			return TCP_IN_WINDOW;
		if (record->state == FLOW_PICKED_UP)
			tcp_learn_scale(record, from, segment);
	} else if (!(flags & TCP_ACK)) {
		return TCP_ODD; /* RFC 9293 section 3.10.7.4, fifth: dropped by its receiver */
	}
	return track_data(record, from, segment, misfit, strict);
}

enum tcp_verdict flow_tcp_track(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool strict)
{
	if (__builtin_expect(tcp_track_common(record, from, segment), 1))
		return TCP_IN_WINDOW;
	return track_rare(record, from, segment, strict);
}

void flow_tcp_forget_window(struct flow_record *record)
{
	if (flow_phase((enum flow_state)record->state) == FLOW_PHASE_NEW)
		return; /* the handshake's numbers are still needed, and short */
	record->window_known = 0;
}
