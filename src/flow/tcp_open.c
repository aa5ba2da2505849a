/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp_open.h"

#include "flow/tcp_window.h"

/* Begins with a SYN that has no ACK: it says what its sender has, and anchors nothing else. */
static void begin_with_syn(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	record->window_known = 0;
	record->end[0].tcp_scale = FLOW_SCALE_UNKNOWN;
	record->end[1].tcp_scale = FLOW_SCALE_UNKNOWN;
	record->end[!from].tcp_window = 0;
	tcp_learn_scale(record, from, segment);
	record->end[from].tcp_window = tcp_offered_units(record, from, segment);
	record->tcp_end[from] = tcp_segment_end(segment);
	record->tcp_max_end[from] = segment->seq + 1;
	record->tcp_end[!from] = 0;
	record->tcp_max_end[!from] = 0;
}

void flow_tcp_first(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	uint8_t flags = segment->flags;

	record->state = FLOW_PICKED_UP;
	record->tcp_note = 0;
	if ((flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN) {
		begin_with_syn(record, from, segment);
		record->state = FLOW_SYN_SENT;
		return;
	}
	record->window_known = 0;
	record->end[!from].tcp_window = 0;
	record->end[0].tcp_scale = FLOW_SCALE_UNKNOWN;
	record->end[1].tcp_scale = FLOW_SCALE_UNKNOWN;
	if (flags & TCP_SYN)
		tcp_learn_scale(record, from, segment);
	tcp_move_window(record, from, segment);
	if (!(flags & TCP_ACK) || flags & TCP_RST)
		record->window_known = 0; /* neither anchors the other end */
	if (flags & TCP_RST)
		tcp_reset(record, from);
	else
		tcp_close_by(record, from, segment, 0);
}

void tcp_answer_syn(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned initiator = !from;

	tcp_learn_scale(record, from, segment);
	record->end[from].tcp_window = tcp_offered_units(record, from, segment);
	record->tcp_end[from] = tcp_segment_end(segment);
	record->tcp_max_end[from] = segment->seq + 1 + tcp_window_bytes(record, initiator);
	record->window_known = (1u << initiator) & 3;
	if (segment->flags & TCP_ACK) {
		record->tcp_max_end[initiator] = segment->ack + segment->window;
		record->window_known = 3;
	}
	record->state = FLOW_SYN_RECEIVED;
}

/*
 * The answer to a SYN was missed, or comes out of order: from this segment on, the conversation goes
 * on as one met in the middle, but what the initiator's SYN told is kept.
 */
static void met_in_the_middle(struct flow_record *record, unsigned from, unsigned initiator,
	const struct tcp_segment *segment)
{
	uint32_t sent = record->tcp_end[initiator];

	record->state = FLOW_PICKED_UP;
	tcp_move_window(record, from, segment);
	record->tcp_end[initiator] = tcp_later(record->tcp_end[initiator], sent);
	tcp_close_by(record, from, segment, 0);
}

/*
 * The initiator speaks again before an answer was seen. A RST of another number answers what the other
 * end has said of an earlier conversation (RFC 9293 section 3.5.1), and has to arrive there.
 */
static enum tcp_verdict initiator_in_syn_sent(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	uint32_t after_syn = record->tcp_max_end[from];
	uint8_t flags = segment->flags;

	if (flags & TCP_RST) {
		if (segment->seq != after_syn && segment->seq != record->tcp_end[from])
			return TCP_PASSED;
		tcp_reset(record, from);
		return TCP_IN_WINDOW;
	}
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		/* the same again: fast open data may be left out or come later */
		record->tcp_end[from] = tcp_later(record->tcp_end[from], tcp_segment_end(segment));
		return TCP_IN_WINDOW;
	}
	uint32_t first = segment->seq + !!(flags & TCP_SYN);

	if (!(flags & TCP_ACK) || !tcp_between(first, after_syn, record->tcp_end[from]))
		return TCP_ODD;
	met_in_the_middle(record, from, from, segment);
	return TCP_IN_WINDOW;
}

/*
 * The first words of the responder (RFC 9293 section 3.10.7.3). What acknowledges something else is of an
 * earlier conversation that it has not ended; the initiator answers with the RST that ends it.
 */
static enum tcp_verdict responder_in_syn_sent(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint8_t flags = segment->flags;

	if (!(flags & TCP_ACK) ||
		!tcp_between(segment->ack, record->tcp_max_end[to], record->tcp_end[to]))
		return (flags & (TCP_ACK | TCP_RST)) == TCP_ACK ? TCP_PASSED : TCP_ODD;
	if (flags & TCP_RST) {
		tcp_reset(record, from);
	} else if (flags & TCP_SYN) {
		tcp_answer_syn(record, from, segment);
	} else {
		met_in_the_middle(record, from, to, segment);
	}
	return TCP_IN_WINDOW;
}

enum tcp_verdict tcp_track_syn_sent(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (from == record->initiator)
		return initiator_in_syn_sent(record, from, segment);
	return responder_in_syn_sent(record, from, segment);
}

bool tcp_take_late_syn(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint32_t end = tcp_segment_end(segment);

	if (!tcp_is_known(record, to) || tcp_is_known(record, from) ||
		!tcp_between(record->tcp_end[from], segment->seq + 1, end))
		return false;
	tcp_learn_scale(record, from, segment);
	record->end[from].tcp_window = tcp_offered_units(record, from, segment);
	record->tcp_end[from] = end;
	record->tcp_max_end[to] = record->tcp_end[to] + segment->window;
	record->window_known = 3;
	record->state = FLOW_ESTABLISHED;
	/* who sent the SYN began; but a network card may have a rule that knows it otherwise */
	if (record->offload == 0)
		record->initiator = from & 1;
	return true;
}
