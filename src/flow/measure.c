/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/measure.h"

#include <rte_common.h>

/* Sequence numbers wrap: a is behind b by so many. */
static int32_t behind(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

/* At most what fits, and at least 1, as 0 is not known. */
static uint32_t duration_us(uint64_t begin_us, uint64_t now_us)
{
	if (now_us <= begin_us)
		return 1;
	return (uint32_t)RTE_MIN(now_us - begin_us, (uint64_t)UINT32_MAX);
}

/* An answer can only be told to be one of several SYNs where there was one (P. Karn, C. Partridge, 1987). */
static void follow_handshake(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us)
{
	const struct tcp_segment *tcp = &info->tcp;
	const unsigned from = info->from;
	const uint8_t flags = tcp->flags & (TCP_SYN | TCP_ACK | TCP_RST);
	const bool is_answer = tcp->ack == measure->handshake_seq + 1;

	if (measure->handshake == FLOW_HANDSHAKE_SYN && flags == (TCP_SYN | TCP_ACK) &&
		from != measure->initiator && is_answer) {
		measure->told[from].answer_us = duration_us(measure->handshake_us, now_us);
		measure->handshake = FLOW_HANDSHAKE_SYN_ACK;
		measure->handshake_us = now_us;
		measure->handshake_seq = tcp->seq;
		return;
	}
	if (measure->handshake == FLOW_HANDSHAKE_SYN_ACK && flags == TCP_ACK &&
		from == measure->initiator && is_answer)
		measure->told[from].answer_us = duration_us(measure->handshake_us, now_us);
	measure->handshake = FLOW_HANDSHAKE_NONE;
}

/* How long a segment may be late without having been sent again. */
static uint32_t order_us(const struct flow_measure *measure)
{
	const uint32_t there = measure->told[0].answer_us, back = measure->told[1].answer_us;

	return there != 0 && back != 0 ? there + back : FLOW_MEASURE_ORDER_US;
}

static bool fills_gap(const struct flow_measure_end *end, uint32_t seq)
{
	return behind(end->gap_begin, seq) >= 0 && behind(seq, end->gap_end) > 0;
}

/* What is left of a gap, of which bytes from `seq` to `next` have come. */
static void fill_gap(struct flow_measure_end *end, uint32_t seq, uint32_t next)
{
	if (behind(next, end->gap_end) <= 0)
		end->gap_end = seq;
	else if (seq == end->gap_begin)
		end->gap_begin = next;
}

/* Where a segment's bytes lie among those that were sent. */
static void follow_bytes(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us)
{
	struct flow_measure_end *end = &measure->end[info->from];
	struct flow_measured *told = &measure->told[info->from];
	const struct tcp_segment *tcp = &info->tcp;
	const uint32_t length = tcp->payload + !!(tcp->flags & TCP_SYN) + !!(tcp->flags & TCP_FIN);
	const uint32_t seq = tcp->seq, next = seq + length;

	if (length == 0 || tcp->flags & TCP_RST)
		return;
	if (!end->known) {
		end->known = true;
		end->end = end->gap_begin = end->gap_end = next;
		return;
	}
	if (behind(end->end, seq) > 0) {
		if (end->gap_begin == end->gap_end) {
			end->gap_begin = end->end;
			end->gap_us = (uint32_t)now_us;
		}
		end->gap_end = seq;
		end->end = next;
	} else if (behind(end->end, next) > 0) {
		told->retransmissions += seq != end->end;
		end->end = next;
	} else if (fills_gap(end, seq)) {
		if ((uint32_t)now_us - end->gap_us <= order_us(measure))
			told->out_of_order++;
		else
			told->retransmissions++;
		fill_gap(end, seq, next);
	} else if (length > 1 || tcp->flags & (TCP_SYN | TCP_FIN) || next != end->end) {
		told->retransmissions++;
	}
}

void flow_measure_first(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us)
{
	*measure = (struct flow_measure){.initiator = info->from};
	if (info->flags & PACKET_TCP &&
		(info->tcp.flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN) {
		measure->handshake = FLOW_HANDSHAKE_SYN;
		measure->handshake_us = now_us;
		measure->handshake_seq = info->tcp.seq;
	}
	flow_measure_packet(measure, info, now_us);
}

void flow_measure_packet(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us)
{
	struct flow_measure_end *end = &measure->end[info->from];
	struct flow_measured *told = &measure->told[info->from];

	/* packets that were held back may come before others that were counted before them */
	if (end->heard && now_us > end->last_us)
		told->max_gap_us = RTE_MAX(told->max_gap_us, duration_us(end->last_us, now_us));
	end->last_us = end->heard ? RTE_MAX(end->last_us, now_us) : now_us;
	if (info->flags & PACKET_TCP && !(info->flags & PACKET_FRAGMENT)) {
		if (measure->handshake != FLOW_HANDSHAKE_NONE &&
			measure->end[measure->initiator].heard)
			follow_handshake(measure, info, now_us);
		told->zero_windows +=
			info->tcp.window == 0 && !(info->tcp.flags & (TCP_SYN | TCP_RST));
		follow_bytes(measure, info, now_us);
	}
	end->heard = true;
}

void flow_measure_began(
	struct flow_measure *measure, uint64_t first_us, uint64_t last_us, uint64_t packets)
{
	measure->end[measure->initiator].last_us = last_us;
	measure->handshake_us = first_us;
	if (packets > 1) {
		measure->handshake = FLOW_HANDSHAKE_NONE;
		measure->told[measure->initiator].retransmissions = (uint32_t)packets - 1;
	}
}

void flow_measure_restart(struct flow_measure *measure)
{
	for (unsigned from = 0; from < 2; from++)
		measure->told[from] =
			(struct flow_measured){.answer_us = measure->told[from].answer_us};
}
