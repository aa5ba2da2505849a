/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Segments made from bytes, eight each. Numbers are chosen near those that the record knows, so that
 * many segments fit, with some from anywhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "flow/tcp_memory.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* A number near one of the record's, by the bytes given. */
static uint32_t near(const struct flow_record *record, unsigned end, uint8_t base, uint8_t offset)
{
	uint32_t by = (uint32_t)(int8_t)offset;

	switch (base & 7) {
	case 0:
	case 1:
	case 2:
		return record->tcp_end[end];
	case 3:
		return record->tcp_end[end] + by;
	case 4:
		return record->tcp_max_end[end] + by;
	case 5:
		return record->tcp_end[end] - ((uint32_t)record->end[!end].tcp_window << (by & 15));
	case 6:
		return record->tcp_end[end] + (by << 18);
	default:
		return (uint32_t)offset << 24 | (uint32_t)base << 16;
	}
}

static struct tcp_segment segment_from(
	const struct flow_record *record, unsigned from, const uint8_t *bytes)
{
	static const uint8_t usual[8] = {
		TCP_ACK,
		TCP_ACK | TCP_PSH,
		TCP_SYN,
		TCP_SYN | TCP_ACK,
		TCP_FIN | TCP_ACK,
		TCP_RST,
		TCP_RST | TCP_ACK,
		TCP_ACK,
	};
	uint8_t flags = bytes[0] & 0x40 ? bytes[1] & 0x3f : usual[bytes[0] >> 1 & 7];

	return (struct tcp_segment){
		.seq = near(record, from, bytes[2], bytes[3]),
		.ack = near(record, !from, bytes[4], bytes[5]),
		.payload = bytes[6] & 0x80 ? (uint32_t)bytes[6] << 4 : bytes[6] & 3,
		.window = (uint16_t)(bytes[7] << 8 | bytes[1]),
		.flags = flags,
		.scale = bytes[0] & 0x10 ? TCP_SCALE_NONE : bytes[6] & 15,
	};
}

static bool is_tcp_state(unsigned state)
{
	return state == FLOW_ESTABLISHED ||
	       (state >= FLOW_PICKED_UP && state <= FLOW_SYN_RECEIVED) ||
	       (state >= FLOW_FIN_0 && state <= FLOW_RESET);
}

/* All that is not TCP's is as it was. Who began may be told by a late SYN. */
static void check_others(const struct flow_record *record, const struct flow_record *before)
{
	struct flow_record now = *record;

	now.state = before->state;
	if (before->state == FLOW_PICKED_UP && record->state == FLOW_ESTABLISHED)
		now.initiator = before->initiator;
	now.window_known = before->window_known;
	now.tcp_note = before->tcp_note;
	memcpy(now.tcp_end, before->tcp_end, sizeof(now.tcp_end));
	memcpy(now.tcp_max_end, before->tcp_max_end, sizeof(now.tcp_max_end));
	for (unsigned end = 0; end < 2; end++) {
		now.end[end].tcp_window = before->end[end].tcp_window;
		now.end[end].tcp_scale = before->end[end].tcp_scale;
	}
	check(memcmp(&now, before, sizeof(now)) == 0);
}

/* What the record counts tells which SYN may be its own. */
static void count(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	flow_count_packet(record, from, 54 + segment->payload);
	record->end[from].tcp_flags |= segment->flags;
}

static void begin(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	memset(record, 0x5a, sizeof(*record));
	record->state = FLOW_FREE;
	record->initiator = from & 1;
	record->offload = 0;
	flow_set_counts(record, 0, 0, 0);
	flow_set_counts(record, 1, 0, 0);
	struct flow_record before = *record;

	flow_tcp_first(record, from, segment);
	check_others(record, &before);
	check(is_tcp_state(record->state));
	count(record, from, segment);
}

/* What one segment may do, by its flags. */
static void check_moves(const struct flow_record *record, const struct flow_record *before,
	const struct tcp_segment *segment)
{
	bool moved = record->state != before->state;

	check(is_tcp_state(record->state));
	check(before->state != FLOW_TIME_WAIT || !moved);
	/* closing does not become open again, but for a reset that nobody heeded */
	check(flow_phase(record->state) >= flow_phase(before->state) ||
		before->state == FLOW_RESET);
	if (segment->flags & TCP_RST)
		check(!moved || record->state == FLOW_RESET);
	else if ((segment->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		check(!moved || before->state == FLOW_PICKED_UP);
	/* a RST of before may wait for its acknowledgement */
	else if (moved && record->state == FLOW_RESET)
		check(before->tcp_note != 0);
}

static void track(struct tcp_memory *memory, struct flow_record *record, unsigned from,
	const struct tcp_segment *segment, uint64_t now_us, bool strict)
{
	struct flow_record before = *record;
	struct tcp_remembered first;
	const struct tcp_sight sight = {
		.now_us = now_us, .bytes = 54 + segment->payload, .from = from, .segment = segment};
	enum tcp_verdict verdict = tcp_memory_track(memory, record, &sight, strict, &first);

	check(memory->n_used <= memory->n_sets * TCP_MEMORY_WAYS);
	check_others(record, &before);
	check_moves(record, &before, segment);
	if (verdict != TCP_IN_WINDOW)
		check(memcmp(record, &before, sizeof(before)) == 0);
	if (verdict == TCP_REOPEN) {
		check(flow_phase(before.state) == FLOW_PHASE_CLOSING);
		check((segment->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN);
		begin(record, from, segment);
	} else if (verdict == TCP_ANEW) {
		/* a SYN, and what answers it or follows it */
		check((first.segment.flags & (TCP_SYN | TCP_RST)) == TCP_SYN);
		check(segment->flags & TCP_ACK);
		begin(record, first.from, &first.segment);
		flow_tcp_track(record, from, segment);
		count(record, from, segment);
	} else if (verdict != TCP_ODD || !strict) {
		count(record, from, segment);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hash_secret secret;
	static struct tcp_memory memory;
	struct flow_record record;
	bool begun = false;

	if (size == 0)
		return 0;
	if (memory.sets == NULL)
		check(tcp_memory_init(&memory, 1, &secret) == 0);
	tcp_memory_clear(&memory);
	memset(&record, 0, sizeof(record));
	for (size_t at = 1; at + 8 <= size; at += 8) {
		unsigned from = data[at] & 1;
		struct tcp_segment segment = segment_from(&record, from, data + at);

		/* as after a time in hardware, when nobody looked */
		if ((data[at] & 0xa0) == 0xa0)
			flow_tcp_forget_window(&record);
		if (begun)
			track(&memory, &record, from, &segment, at, data[0] & 1);
		else
			begin(&record, from, &segment);
		begun = true;
	}
	return 0;
}
