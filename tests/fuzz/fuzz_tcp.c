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

#include "flow/tcp.h"

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

/* All that is not TCP's is as it was. */
static void check_others(const struct flow_record *record, const struct flow_record *before)
{
	struct flow_record now = *record;

	now.state = before->state;
	now.window_known = before->window_known;
	memcpy(now.tcp_end, before->tcp_end, sizeof(now.tcp_end));
	memcpy(now.tcp_max_end, before->tcp_max_end, sizeof(now.tcp_max_end));
	for (unsigned end = 0; end < 2; end++) {
		now.end[end].tcp_window = before->end[end].tcp_window;
		now.end[end].tcp_scale = before->end[end].tcp_scale;
	}
	check(memcmp(&now, before, sizeof(now)) == 0);
}

static void begin(struct flow_record *record, unsigned from, const struct tcp_segment *segment)
{
	memset(record, 0x5a, sizeof(*record));
	record->state = FLOW_FREE;
	record->initiator = from & 1;
	struct flow_record before = *record;

	flow_tcp_first(record, from, segment);
	check_others(record, &before);
	check(is_tcp_state(record->state));
}

static void track(
	struct flow_record *record, unsigned from, const struct tcp_segment *segment, bool strict)
{
	struct flow_record before = *record;
	bool closed = before.state == FLOW_TIME_WAIT || before.state == FLOW_RESET;
	enum tcp_verdict verdict = flow_tcp_track(record, from, segment, strict);

	check_others(record, &before);
	check(is_tcp_state(record->state));
	/* nothing leaves the closed states, and closing does not become open again */
	check(!closed || record->state == before.state);
	check(flow_phase(record->state) >= flow_phase(before.state));
	if (verdict == TCP_REOPEN || (verdict == TCP_ODD && strict))
		check(memcmp(record, &before, sizeof(before)) == 0);
	/* what is odd does not close, and only a SYN opens anew, in a closed state */
	if (verdict == TCP_ODD && flow_phase(record->state) == FLOW_PHASE_CLOSING)
		check(record->state == before.state);
	if (verdict == TCP_REOPEN) {
		check(closed && (segment->flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN);
		begin(record, from, segment);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow_record record;
	bool begun = false;

	if (size == 0)
		return 0;
	memset(&record, 0, sizeof(record));
	for (size_t at = 1; at + 8 <= size; at += 8) {
		unsigned from = data[at] & 1;
		struct tcp_segment segment = segment_from(&record, from, data + at);

		/* as after a time in hardware, when nobody looked */
		if ((data[at] & 0xa0) == 0xa0)
			record.window_known = 0;
		if (begun)
			track(&record, from, &segment, data[0] & 1);
		else
			begin(&record, from, &segment);
		begun = true;
	}
	return 0;
}
