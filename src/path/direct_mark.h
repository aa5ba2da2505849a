/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common marked packet: TCP or UDP over IPv4 without tags, options or fragments. It is compared with the
 * record that its mark names as it lies in the frame, and no key is made of it. For the short way's watching
 * walk, which is compiled once per SIMD level.
 */

#include <netinet/in.h>

#include "flow/account.h"
#include "offload/slots.h"
#include "packet/extract_common.h"

#define MARK_IPV4_OFFSET ETHERNET_LENGTH
#define MARK_UPPER_OFFSET (ETHERNET_LENGTH + IPV4_LENGTH)
#define MARK_LEAST (MARK_UPPER_OFFSET + TCP_LENGTH)

/* Protocols that such a packet may have. */
#define MARK_PROTOCOLS (1u << IPPROTO_TCP | 1u << IPPROTO_UDP)

/*
 * What of a packet can be said before its record is there: whether it is such a one. What its lengths and its
 * TCP header say is looked at when it is accounted: mark_account().
 */
static __rte_always_inline bool mark_is_common(const struct rte_mbuf *packet)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);

	/* frames are 60 bytes at least */
	if (unlikely(packet->data_len < MARK_LEAST))
		return false;

	uint32_t type = load_be32(bytes + 12) >> 8; /* and IP's version and header length */
	uint32_t fragment = load_be16(bytes + 20) & 0x3fff;
	uint32_t proto = bytes[MARK_IPV4_OFFSET + 9];

	return ((type ^ 0x080045) | fragment | (proto & 0xe0)) == 0 &&
	       (MARK_PROTOCOLS >> (proto & 31) & 1);
}

/* What packets of a burst are compared with, beside their records. */
struct mark_burst {
	uint32_t rest;	 /* the last four bytes of such keys without the protocol */
	unsigned side;	 /* that the packets came in by */
	uint64_t now_us; /* 48 bits */
	uint64_t
		settled; /* bits of a record's status, and what they are of flows that nothing changes */
	uint64_t settled_udp, settled_tcp;
};

/* Bits of struct flow_record's status: see there. */
#define MARK_STATE_SHIFT 48
#define MARK_KNOWN_SHIFT 53
#define MARK_OFFLOAD_SHIFT 56

static inline struct mark_burst mark_burst_of(unsigned port, uint64_t now_us)
{
	unsigned shift = MARK_OFFLOAD_SHIFT + OFFLOAD_STATE_BITS * (port % 2);
	uint64_t proven = (uint64_t)OFFLOAD_PROVEN << shift;

	return (struct mark_burst){
		.rest = (uint32_t)(FLOW_KEY_TAIL_IPV4 >> 32) | (port / 2) << 24,
		.side = port % 2,
		.now_us = now_us & CLOCK_MAX_US,
		.settled = UINT64_C(15) << MARK_STATE_SHIFT | UINT64_C(3) << MARK_KNOWN_SHIFT |
			   UINT64_C(7) << shift,
		.settled_udp = (uint64_t)FLOW_REPLIED << MARK_STATE_SHIFT | proven,
		.settled_tcp = (uint64_t)FLOW_ESTABLISHED << MARK_STATE_SHIFT |
			       UINT64_C(3) << MARK_KNOWN_SHIFT | proven,
	};
}

/* Is the packet one of the record's flow, from that end? */
static __rte_always_inline bool mark_verify(const struct mark_burst *burst,
	const struct flow_record *record, const uint8_t *header, unsigned from)
{
	uint32_t ports = load_32(header + IPV4_LENGTH);
	uint32_t turn = from << 4;
	uint32_t both, tail;

	memcpy(&both, &record->key.port[0], sizeof(both));
	memcpy(&tail, &record->key.zone, sizeof(tail));
	ports = ports << turn | ports >> ((32 - turn) & 31);

	/* the rest of an IPv4 address is zeros */
	uint32_t src = load_32(header + 12) ^ load_32(record->key.addr[from]);
	uint32_t dst = load_32(header + 16) ^ load_32(record->key.addr[!from]);

	return (src | dst | (ports ^ both) | (tail ^ (burst->rest | (uint32_t)header[9] << 16))) ==
	       0;
}

/*
 * Accounts a verified packet of a flow that is settled: both have sent, and its rule is proven. False, with
 * nothing changed, where there is more to it.
 */
static __rte_always_inline bool mark_account(const struct mark_burst *burst,
	struct flow_record *record, const struct rte_mbuf *packet, const uint8_t *header,
	unsigned from)
{
	uint64_t status = record->status;
	uint32_t packets = record->packets_low[from] + 1;
	uint32_t bytes = record->bytes_low[from] + packet->pkt_len;
	uint32_t length = load_be16(header + 2);
	/* a low half overflows once in 2^32 */
	bool over = (packets == 0) | (bytes < packet->pkt_len);

	if (header[9] == IPPROTO_TCP) {
		const struct tcp_segment tcp =
			tcp_fields(header + IPV4_LENGTH, length - IPV4_LENGTH);

		if (unlikely(over | ((status & burst->settled) != burst->settled_tcp) |
			     (length < IPV4_LENGTH + TCP_LENGTH) |
			     (header[IPV4_LENGTH + 12] < TCP_LENGTH << 2)) ||
			unlikely(!tcp_track_settled(record, from, &tcp)))
			return false;
		record->tcp_flags[from] |= tcp.flags;
	} else if (unlikely(over | ((status & burst->settled) != burst->settled_udp) |
			    (length < IPV4_LENGTH + sizeof(uint32_t)))) {
		return false;
	}
	record->packets_low[from] = packets;
	record->bytes_low[from] = bytes;
	record->status = (status & ~CLOCK_MAX_US) | burst->now_us;
	return true;
}
