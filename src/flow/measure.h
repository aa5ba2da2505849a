/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What is measured of a flow, where that was asked for: how long each end took to answer the other's part of the TCP
 * handshake, segments that were sent again or came out of order, windows that were closed, and the longest silence. A shard
 * that measures has a row beside each record. Packets of flows that are not measured touch none.
 *
 * A segment counts as sent again when it brings no byte beyond those that its end has sent before, or some of these once
 * more. One that fills a gap counts as out of order when it does so within the time of the handshake, or within
 * FLOW_MEASURE_ORDER_US where that is not known; later it must be another copy of one that was lost before it
 * came here. A keep-alive (RFC 9293 section 3.8.4) is neither. Of several gaps at once the first and the last byte are
 * known, so that what lies between them counts as a part of one.
 *
 * Pure; used by the shard's worker.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "packet/extract.h"

#define FLOW_MEASURE_ORDER_US 3000

/* Of the packets from one end; since the last report, but for `answer_us`. */
struct flow_measured {
	uint32_t
		answer_us; /* its SYN-ACK after the SYN, or its ACK after the SYN-ACK; 0: not known */
	uint32_t retransmissions;
	uint32_t out_of_order;
	uint32_t zero_windows; /* segments that say so, but for SYN and RST */
	uint32_t max_gap_us;   /* between two packets; at most UINT32_MAX */
};

/* What an end has sent, as far as it is needed to judge what it sends next. */
struct flow_measure_end {
	uint64_t last_us;	     /* of its last packet, clock of the run */
	uint32_t end;		     /* highest sequence number + 1 */
	uint32_t gap_begin, gap_end; /* sequence numbers that have not come; alike: there is none */
	uint32_t gap_us;	     /* when that was seen, low part */
	bool heard;		     /* there was a packet */
	bool known;		     /* `end` is */
};

enum flow_handshake {
	FLOW_HANDSHAKE_NONE,	/* not seen from its beginning, or over */
	FLOW_HANDSHAKE_SYN,	/* one SYN has come */
	FLOW_HANDSHAKE_SYN_ACK, /* and its answer */
};

/* The row beside a record. Pairs are by the key's end. */
struct flow_measure {
	struct flow_measured told[2];
	struct flow_measure_end end[2];
	uint64_t handshake_us; /* when its last part came */
	uint32_t handshake_seq;
	uint8_t handshake; /* enum flow_handshake */
	uint8_t initiator;
};

static_assert(sizeof(struct flow_measure) == 120, "docs/records.md says so");

/* A flow begins with this packet. */
void flow_measure_first(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us);
/* It had begun with so many packets like this one before that was known: the first and the last came at these times. */
void flow_measure_began(
	struct flow_measure *measure, uint64_t first_us, uint64_t last_us, uint64_t packets);
/* A further packet of it. */
void flow_measure_packet(
	struct flow_measure *measure, const struct packet_info *info, uint64_t now_us);
/* All that was counted until now has been reported. */
void flow_measure_restart(struct flow_measure *measure);
