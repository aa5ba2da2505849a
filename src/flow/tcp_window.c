/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/tcp_window.h"

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
		/* a FIN's number stands, and what waits for its proof is kept as long as it may come */
		if (!tcp_has_finished(record, from) && !tcp_is_awaited(record, from))
			record->tcp_end[from] = end;
		if (!tcp_has_finished(record, to) && !tcp_is_awaited(record, to))
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
	[FIN_OF_0 | ACKED_0] = FLOW_FIN_0, /* a note says so */
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

bool tcp_is_awaited(const struct flow_record *record, unsigned end)
{
	if (record->state < FLOW_ESTABLISHED || record->state > FLOW_FIN_ACK_1)
		return false;
	return record->tcp_note & TCP_NOTE_RST(end) ||
	       (record->tcp_note & TCP_NOTE_FIN(end) && !tcp_has_finished(record, end));
}

static unsigned closing_of(const struct flow_record *record)
{
	unsigned bits = closing_bits[record->state];

	if (record->state == FLOW_FIN_0 && record->tcp_note & TCP_NOTE_FIN(0))
		bits |= ACKED_0;
	if (record->state == FLOW_FIN_1 && record->tcp_note & TCP_NOTE_FIN(1))
		bits |= ACKED_1;
	return bits;
}

static void set_closing(struct flow_record *record, unsigned bits)
{
	unsigned fins = bits & (FIN_OF_0 | FIN_OF_1);
	unsigned acked = bits >> 2;
	/* whose FIN still waits for its proof */
	unsigned note = record->tcp_note & ~fins;

	if (fins == FIN_OF_0 || fins == FIN_OF_1)
		note |= fins & acked;
	record->tcp_note = note & 0x0fu;
	if (bits != 0)
		record->state = closing_states[bits] & 0x0fu;
}

void tcp_close_by(struct flow_record *record, unsigned from, const struct tcp_segment *segment,
	uint32_t to_end)
{
	unsigned bits = closing_of(record);
	unsigned to = !from;

	if ((segment->flags & (TCP_FIN | TCP_SYN)) == TCP_FIN)
		bits |= (unsigned)FIN_OF_0 << from;
	if ((bits >> to & 1) && segment->ack == to_end)
		bits |= (unsigned)ACKED_0 << to;
	if (bits != 0)
		set_closing(record, bits);
}

void tcp_finish(struct flow_record *record, unsigned end, bool acknowledged)
{
	unsigned bits = closing_of(record) | (unsigned)FIN_OF_0 << end;

	if (acknowledged)
		bits |= (unsigned)ACKED_0 << end;
	set_closing(record, bits);
}

void tcp_reset(struct flow_record *record, unsigned from)
{
	unsigned fins = closing_bits[record->state] & TCP_NOTE_FINS;

	/* an attempt that was refused does not go on */
	if (record->state == FLOW_SYN_SENT)
		fins = TCP_NOTE_FINS;
	record->tcp_note = (fins | (from ? TCP_NOTE_RST_BY_1 : 0)) & 0x0fu;
	record->state = FLOW_RESET;
}

void tcp_unreset(struct flow_record *record)
{
	unsigned fins = record->tcp_note & TCP_NOTE_FINS;

	record->state = fins == 0 ? FLOW_ESTABLISHED : closing_states[fins] & 0x0fu;
	record->tcp_note = 0;
}

bool tcp_may_follow(const struct flow_record *record, unsigned from,
	const struct tcp_segment *segment, struct tcp_misfit misfit)
{
	if (record->window_known != 3 || record->state < FLOW_SYN_RECEIVED ||
		record->state > FLOW_FIN_ACK_1)
		return false;
	if (misfit.seq_old > 0 || misfit.ack_old > 0)
		return false;
	if (misfit.seq_ahead <= 0 && misfit.ack_ahead <= 0)
		return false;
	if (misfit.seq_ahead > TCP_RESYNC_MAX || misfit.ack_ahead > TCP_RESYNC_MAX)
		return false;
	if (tcp_has_finished(record, from) &&
		tcp_beyond(tcp_segment_end(segment), record->tcp_end[from]) > 0)
		return false;
	if (misfit.ack_ahead > 0 && tcp_has_finished(record, !from))
		return false;
	/* from these numbers acks_syn() tells a genuine ACK: they are not to be talked away */
	if (record->state == FLOW_SYN_RECEIVED && from != record->initiator)
		return misfit.seq_ahead <= 0;
	return true;
}

static uint32_t window_lag_of(const struct flow_record *record, unsigned end)
{
	uint32_t window = tcp_window_bytes(record, end);

	return window > TCP_ACK_LAG ? window : TCP_ACK_LAG;
}

bool tcp_agree(const struct flow_record *record, unsigned by, const struct tcp_segment *said,
	uint32_t end, const struct tcp_segment *answer)
{
	uint32_t answered = tcp_segment_end(answer);
	uint32_t lag = window_lag_of(record, by);
	/* one of them has to acknowledge what is new of the other */
	bool proven = tcp_beyond(answer->ack, record->tcp_end[by]) > 0 ||
		      (tcp_beyond(said->ack, record->tcp_end[!by]) > 0 &&
			      tcp_beyond(answered, said->ack) >= 0);

	return proven && tcp_between(answer->ack, end - window_lag_of(record, !by), end) &&
	       tcp_between(said->ack, answered - lag, answered + lag);
}

void tcp_follow(struct flow_record *record, unsigned by, const struct tcp_segment *said,
	uint32_t end, const struct tcp_segment *answer)
{
	unsigned other = !by;
	struct tcp_segment first = *said;

	if (record->state == FLOW_SYN_RECEIVED || record->state == FLOW_PICKED_UP)
		record->state = FLOW_ESTABLISHED;
	/* only what was acknowledged is proven to be a FIN */
	if (answer->ack != end)
		first.flags &= (uint8_t)~TCP_FIN;
	first.seq = end - first.payload - !!(first.flags & TCP_FIN);
	first.flags &= (uint8_t)~TCP_SYN;
	record->tcp_max_end[by] = tcp_later(record->tcp_max_end[by], answer->ack);
	tcp_move_window(record, by, &first);

	uint32_t by_end = record->tcp_end[by];

	tcp_move_window(record, other, answer);
	tcp_close_by(record, by, &first, record->tcp_end[other]);
	tcp_close_by(record, other, answer, by_end);
}
