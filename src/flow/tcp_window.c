/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp_parts.h"

/* The window of a SYN is never scaled (RFC 7323 section 2.2). */
static uint32_t offered_bytes(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned shift = segment->flags & TCP_SYN ? 0 : tcp_shift_of(record, from);

	return (uint32_t)segment->window << shift;
}

uint16_t tcp_offered_units(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned shift = segment->flags & TCP_SYN ? tcp_shift_of(record, from) : 0;

	return (uint16_t)((segment->window + (1u << shift) - 1) >> shift);
}

void tcp_learn_scale(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	if (segment->scale == TCP_SCALE_NONE) {
		unsigned scale = record->end[!from].tcp_scale;
		uint32_t window = record->end[!from].tcp_window;

		/* what the other end's SYN offered was stored in units that now do not hold */
		if (scale != FLOW_SCALE_UNKNOWN)
			window <<= scale;
		record->end[!from].tcp_window =
			(uint16_t)(window < UINT16_MAX ? window : UINT16_MAX);
		record->end[0].tcp_scale = 0;
		record->end[1].tcp_scale = 0;
	} else if (record->end[from].tcp_scale == FLOW_SCALE_UNKNOWN) {
		record->end[from].tcp_scale = segment->scale < 14 ? segment->scale : 14;
	}
}

struct tcp_misfit tcp_judge(
	const struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	struct tcp_misfit misfit = {0};

	if (!record->window_known)
		return misfit;
	uint32_t ours =
		tcp_is_known(record, from) ? tcp_window_bytes(record, from) : TCP_WINDOW_UNKNOWN;
	uint32_t theirs =
		tcp_is_known(record, to) ? tcp_window_bytes(record, to) : TCP_WINDOW_UNKNOWN;

	/* a keep-alive lies one before the end (RFC 9293 section 3.8.4), whatever the window */
	theirs += theirs == 0;
	misfit.seq_old = tcp_beyond(record->tcp_end[from] - theirs, tcp_segment_end(segment));
	if (tcp_is_known(record, to))
		misfit.seq_ahead = tcp_beyond(segment->seq, record->tcp_max_end[from]);
	if (segment->flags & TCP_ACK) {
		uint32_t lag = ours > TCP_ACK_LAG ? ours : TCP_ACK_LAG;

		misfit.ack_old = tcp_beyond(record->tcp_end[to] - lag, segment->ack);
		if (tcp_is_known(record, to))
			misfit.ack_ahead = tcp_beyond(segment->ack, record->tcp_end[to]);
	}
	return misfit;
}

void tcp_move_window(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	unsigned to = !from;
	uint32_t end = tcp_segment_end(segment);
	uint32_t limit = segment->ack + offered_bytes(record, from, segment);
	uint16_t units = tcp_offered_units(record, from, segment);

	if (!record->window_known) {
		if (!tcp_has_finished(record, from))
			record->tcp_end[from] = end;
		if (!tcp_has_finished(record, to))
			record->tcp_end[to] = segment->ack;
		record->tcp_max_end[from] = end;
		record->tcp_max_end[to] = limit;
	} else {
		record->tcp_end[from] = tcp_later(record->tcp_end[from], end);
		record->tcp_end[to] = tcp_later(record->tcp_end[to], segment->ack);
		record->tcp_max_end[to] = tcp_later(record->tcp_max_end[to], limit);
	}
	if (!tcp_is_known(record, from) || units > record->end[from].tcp_window)
		record->end[from].tcp_window = units;
	record->window_known = (record->window_known | 1u << from) & 3;
}

/* What the closing states stand for, and back: bits of one FIN may be set without the other. */
enum closing {
	FIN_OF_0 = 1 << 0,
	FIN_OF_1 = 1 << 1,
	ACKED_0 = 1 << 2,
	ACKED_1 = 1 << 3,
};

static const uint8_t closing_bits[FLOW_N_STATES] = {
	[FLOW_FIN_0] = FIN_OF_0,
	[FLOW_FIN_1] = FIN_OF_1,
	[FLOW_FIN_BOTH] = FIN_OF_0 | FIN_OF_1,
	[FLOW_FIN_ACK_0] = FIN_OF_0 | FIN_OF_1 | ACKED_0,
	[FLOW_FIN_ACK_1] = FIN_OF_0 | FIN_OF_1 | ACKED_1,
	[FLOW_TIME_WAIT] = FIN_OF_0 | FIN_OF_1 | ACKED_0 | ACKED_1,
};

static const uint8_t closing_states[16] = {
	[FIN_OF_0] = FLOW_FIN_0,
	[FIN_OF_0 | ACKED_0] = FLOW_FIN_0, /* the FIN of end 1 will acknowledge it again */
	[FIN_OF_1] = FLOW_FIN_1,
	[FIN_OF_1 | ACKED_1] = FLOW_FIN_1,
	[FIN_OF_0 | FIN_OF_1] = FLOW_FIN_BOTH,
	[FIN_OF_0 | FIN_OF_1 | ACKED_0] = FLOW_FIN_ACK_0,
	[FIN_OF_0 | FIN_OF_1 | ACKED_1] = FLOW_FIN_ACK_1,
	[FIN_OF_0 | FIN_OF_1 | ACKED_0 | ACKED_1] = FLOW_TIME_WAIT,
};

bool tcp_has_finished(const struct flow_record *record, unsigned end)
{
	return closing_bits[record->state] >> end & 1;
}

void tcp_close_by(struct flow_record *record, unsigned from, const struct tcp_segment *segment,
	uint32_t to_end)
{
	unsigned bits = closing_bits[record->state];
	unsigned to = !from;

	if ((segment->flags & (TCP_FIN | TCP_SYN)) == TCP_FIN)
		bits |= (unsigned)FIN_OF_0 << from;
	if ((bits >> to & 1) && segment->ack == to_end)
		bits |= (unsigned)ACKED_0 << to;
	if (bits != 0)
		record->state = closing_states[bits] & 0x0fu;
}
