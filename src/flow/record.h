/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The record of a flow: 128 bytes, two adjacent cache lines, one for both directions.
 *
 * Line 1 is what every packet touches: the key, the low halves of the counters, the time last seen
 * and the state. Line 2 is touched when bytes overflow their low half, by TCP, at learning and at the end.
 *
 * Pairs are indexed by the key's end (0 or 1) that a packet comes from; which end is the initiator
 * is a bit of the state. "Forward" is the initiator's direction.
 *
 * Times are microseconds since the start of the run, 48 bits (8.9 years; see base/clock.h for what
 * happens beyond). Packets are counted to 47 bits, bytes to 64.
 *
 * A record belongs to one shard and is written by that shard's worker alone. It never moves while
 * its flow lives.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/key.h"

/* Position of a record in its shard's table; FLOW_NONE is no record. */
#define FLOW_NONE UINT32_MAX

/*
 * Where the protocol stands. The four TCP close states follow RFC 9293 section 3.3.2 as an observer
 * in the middle sees them (docs/flow-life.md has the table).
 */
enum flow_state {
	FLOW_FREE = 0,
	/* embryonic: only one side has spoken, or the handshake is not complete */
	FLOW_REQUEST,	   /* not TCP: only the initiator has sent */
	FLOW_PICKED_UP,	   /* TCP met in mid-conversation, one side so far */
	FLOW_SYN_SENT,	   /* the initiator's SYN */
	FLOW_SYN_RECEIVED, /* SYN of the responder too */
	/* open */
	FLOW_REPLIED,	  /* not TCP: both have sent */
	FLOW_ESTABLISHED, /* TCP */
	/* closing */
	FLOW_FIN_0,	/* FIN from end 0 */
	FLOW_FIN_1,	/* FIN from end 1 */
	FLOW_FIN_BOTH,	/* FIN from both, not both acknowledged */
	FLOW_FIN_ACK_0, /* both, end 0's acknowledged */
	FLOW_FIN_ACK_1, /* both, end 1's acknowledged */
	FLOW_TIME_WAIT, /* both, both acknowledged */
	FLOW_RESET,	/* RST that fits the window */
	FLOW_N_STATES,
};

/* The phases of the design: new -> open -> closing -> ended. */
enum flow_phase {
	FLOW_PHASE_NEW,
	FLOW_PHASE_OPEN,
	FLOW_PHASE_CLOSING,
	FLOW_N_PHASES,
};

enum flow_end {
	FLOW_END_FIN,
	FLOW_END_RST,
	FLOW_END_IDLE,
	FLOW_END_ACTIVE, /* a report of a flow that lives on */
	FLOW_END_EVICTED,
	FLOW_END_KILLED, /* by whoever runs the engine */
	FLOW_END_SHUTDOWN,
	FLOW_N_ENDS,
};

/*
 * An end's window scale, 0 to 14, or this. What is not known is judged as the largest (RFC 7323 section 2.3): its low
 * five bits are that, so that either is what a window is shifted by (FLOW_SCALE_SHIFT).
 */
#define FLOW_SCALE_UNKNOWN (32 | 14)
#define FLOW_SCALE_SHIFT 31

/*
 * The low halves of what came from an end, in one word, so that a packet adds to it once: flow_count_packet(). When
 * bytes overflow, once in 2^32, that is carried on, and packets are, too, if they are half of what the word has room
 * for (FLOW_PACKETS_CARRY). As packets have bytes, they never reach the other half before that. 2^47 packets and 2^64
 * bytes of an end can be told: at 148 million packets a second, which is 100 Gb/s of the shortest, eleven days.
 */
union flow_count {
	struct {
		uint32_t packets_low, bytes_low;
	};
	uint64_t both;
};

#define FLOW_PACKETS_CARRY (UINT32_C(1) << 31)
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes are the upper half");

struct flow_record {
	/* line 1 */
	struct flow_key key;
	union flow_count count[2]; /* by end: flow_count_packet() */
	union {
		struct {
			uint64_t last_seen_us : 48;
			uint64_t state : 4; /* enum flow_state */
			uint64_t
				not_plain : 1; /* a verdict is other than 0, or by_port, or measured */
			uint64_t window_known : 2; /* bit n: the window of end n is being tracked */
			uint64_t initiator : 1;	   /* the key's end that sent the first packet */
			uint64_t
				offload : 8; /* 3 bits a direction: where the NIC stands (offload/state.h) */
		};
		uint64_t status; /* all of it: flow_status() */
	};

	/* line 2 */
	struct flow_end_state {
		uint32_t bytes_high;
		uint16_t tcp_window; /* largest window seen, in units of 2^scale */
		uint8_t tcp_flags;   /* all flags seen, or-ed */
		uint8_t tcp_scale;   /* of its windows: 0 to 14, or FLOW_SCALE_UNKNOWN */
	} end[2];
	uint64_t start_us : 48;
	uint64_t icmp_errors : 8; /* that quoted this flow; stays at 255 */
	/* bit n: rules for packets of end n did what they were to */
	uint64_t nic_proven : 2;
	uint64_t
		tcp_note : 4; /* what a TCP end has said and is not believed yet: flow/tcp_window.h */
	uint64_t heard : 2;   /* enum flow_heard: on which ports of the wire (flow/sides.h) */
	uint16_t packets_high[2]; /* in units of FLOW_PACKETS_CARRY */
	uint16_t verdict[2];	  /* action programs; 0 = forward */
	uint32_t tcp_end[2];	  /* highest sequence number sent + 1 */
	uint32_t tcp_max_end[2];  /* highest the other side allows to be sent + 1 */
	uint8_t side : 1;	  /* place of the port that the initiator's packets come in by */
	uint8_t was_dropped : 1;  /* packets were dropped by verdicts: flow/verdict.h */
	uint8_t by_port : 1; /* packets that cross (flow_sides_cross()) are decided by themselves */
	uint8_t by_rule : 1; /* what drops its packets is a rule, not a block */
	uint8_t measured : 1; /* there is a row for it: flow/measure.h */
	uint8_t spare : 3;    /* 0 */
	uint8_t back_off;     /* of offload retries, a nibble a direction (offload/state.h) */
	uint8_t reason[2];    /* per direction: why the offload state is what it is */
	uint32_t
		slot; /* number by which NICs name the flow, or a time and ports (offload/state.h) */
	uint32_t wheel_next; /* neighbours on the ageing wheel (flow/wheel.h) */
	uint32_t wheel_prev;
} __attribute__((aligned(64)));

/* The byte of `status` that has the state in its low half, whether the flow is plain, and who is the initiator. */
#define FLOW_STATE_BYTE 6
#define FLOW_NOT_PLAIN_BIT (1u << 4)
#define FLOW_INITIATOR_BIT (1u << 7)

static_assert(sizeof(struct flow_record) == 128, "two lines, a third line is not");
static_assert(offsetof(struct flow_record, end) == 64, "line 1 is what a packet touches");

/* A rule of the flow is in a NIC, or on its way there or back: a state is 3 or more (offload/state.h). */
static inline bool flow_is_in_nic(const struct flow_record *record)
{
	unsigned state[2] = {record->offload & 7, record->offload >> 3 & 7};

	return state[0] >= 3 || state[1] >= 3;
}

/*
 * The status of a new flow, in one word: set field by field, the word could not be loaded before each of the
 * stores is done.
 */
static inline uint64_t flow_status(uint64_t last_seen_us, enum flow_state state, unsigned initiator)
{
	return last_seen_us | (uint64_t)state << 48 | (uint64_t)initiator << 55;
}

static inline uint64_t flow_packets(const struct flow_record *record, unsigned end)
{
	return (uint64_t)record->packets_high[end] * FLOW_PACKETS_CARRY +
	       record->count[end].packets_low;
}

/*
 * Both ends count this after an active report, until the next packet comes: no packet, and so many bytes that any
 * packet's overflow. So it is not counted in passing, and flow_begin_again() sees to it. As packets have bytes, no
 * count is ever the same by chance.
 */
#define FLOW_COUNT_FRESH ((uint64_t)UINT32_MAX << 32)

/* Nothing came since the record's last active report. */
static inline bool flow_is_fresh(const struct flow_record *record)
{
	return record->count[0].both == FLOW_COUNT_FRESH && record->packets_high[0] == 0;
}

static inline uint64_t flow_bytes(const struct flow_record *record, unsigned end)
{
	if (flow_is_fresh(record))
		return 0;
	return (uint64_t)record->end[end].bytes_high << 32 | record->count[end].bytes_low;
}

/* After a packet's bytes were more than the low half had room for, which is then what is left of them. */
static inline void flow_carry(struct flow_record *record, unsigned end)
{
	record->end[end].bytes_high++;
	if (record->count[end].packets_low < FLOW_PACKETS_CARRY)
		return;
	record->count[end].packets_low -= FLOW_PACKETS_CARRY;
	record->packets_high[end]++;
}

/* A packet as both counters of an end have it: packets, and bytes in the upper half. */
static inline uint64_t flow_count_of(uint32_t bytes)
{
	return (uint64_t)bytes << 32 | 1;
}

/* From here on the record has a packet more of that end. */
static inline void flow_count_packet(struct flow_record *record, unsigned end, uint32_t bytes)
{
	uint64_t *both = &record->count[end].both;

	if (__builtin_add_overflow(*both, flow_count_of(bytes), both))
		flow_carry(record, end);
}

/* Whatever was counted of that end before is forgotten. */
static inline void flow_set_counts(
	struct flow_record *record, unsigned end, uint64_t packets, uint64_t bytes)
{
	record->count[end].packets_low = packets % FLOW_PACKETS_CARRY;
	record->packets_high[end] = (uint16_t)(packets / FLOW_PACKETS_CARRY);
	record->count[end].bytes_low = (uint32_t)bytes;
	record->end[end].bytes_high = (uint32_t)(bytes >> 32);
}

/* Counts nothing from here on, from the next packet's time on, as after an active report. */
static inline void flow_set_fresh(struct flow_record *record)
{
	for (unsigned end = 0; end < 2; end++) {
		flow_set_counts(record, end, 0, 0);
		record->count[end].both = FLOW_COUNT_FRESH;
	}
}

/* The first packet after an active report is about to be counted: it came at `came_us`. */
static inline void flow_begin_again(struct flow_record *record, uint64_t came_us)
{
	flow_set_counts(record, 0, 0, 0);
	flow_set_counts(record, 1, 0, 0);
	record->start_us = came_us & ((UINT64_C(1) << 48) - 1);
}

/*
 * What flow_carry() does, where the record may have been fresh before the packet was added: then there is one packet of
 * that end, and nothing to be carried.
 */
static inline void flow_carry_or_begin(struct flow_record *record, unsigned end, uint64_t came_us)
{
	uint32_t bytes = record->count[end].bytes_low + 1;

	if (record->count[end].packets_low != 1 || record->packets_high[end] != 0) {
		flow_carry(record, end);
		return;
	}
	flow_begin_again(record, came_us);
	flow_set_counts(record, end, 1, bytes);
}

/*
 * ICMP type in the upper byte, and code, of the first packet that came from that end; 0 of other protocols. It lies where
 * TCP has a window.
 */
static inline uint16_t flow_icmp_type_code(const struct flow_record *record, unsigned end)
{
	return record->key.proto == 1 || record->key.proto == 58 ? record->end[end].tcp_window : 0;
}

/* Names as users meet them: "new", "open", "closing". */
const char *flow_phase_name(enum flow_phase phase);
enum flow_phase flow_phase(enum flow_state state);
/* "fin", "rst", "idle", "active", "evicted", "killed", "shutdown". */
const char *flow_end_name(enum flow_end reason);
/* The state in words of its protocol: "syn-sent", "time-wait", "request", ... */
const char *flow_state_name(enum flow_state state);
