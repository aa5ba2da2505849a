/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Extraction: from the bytes of a frame to the key of its flow, the key's hash, and what the flow
 * engine wants to know of its headers.
 *
 * Read are Ethernet (of captures other links too, see packet/link.h), any number of VLAN tags (0x8100,
 * 0x88a8, 0x9100, 0x9200), the outermost IPv4 or IPv6 header, the authentication header (51) behind
 * either, IPv6's other extension headers (hop-by-hop 0, routing 43, fragment 44, destination options
 * 60, mobility 135, HIP 139, shim6 140), and the ports of TCP, UDP, UDP-Lite, SCTP and DCCP.
 * Everything else is known by addresses and protocol alone. No checksum is tested.
 *
 * A frame may be cut anywhere and spread over any number of segments; nothing beyond its bytes is
 * read, and nothing is written to it. The work is linear in the length of the headers.
 *
 * What is not whole is told, not guessed:
 * - EXTRACT_MALFORMED: no link header, a cut VLAN tag, a cut or impossible IP header.
 * - a cut extension header, or ports of which fewer than 4 bytes are there (in the frame or within
 *   the IP datagram's declared length): PACKET_CUT, ports 0.
 * - a later fragment has no ports of its own: PACKET_LATER_FRAGMENT, ports 0.
 *
 * A datagram length that cannot be (below its header, or IPv6 payload length 0) is taken to be what
 * the frame holds. A length above the frame's bytes stands, since captures are cut and it is needed
 * for TCP's sequence numbers.
 *
 * Pure: no state, callable from any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "packet/hash.h"
#include "packet/key.h"
#include "packet/link.h"

enum extract_result {
	EXTRACT_IP,	   /* `info` is filled */
	EXTRACT_NON_IP,	   /* a whole frame that carries something else */
	EXTRACT_MALFORMED, /* see above */
};

enum packet_flag {
	PACKET_FIRST_FRAGMENT = 1 << 0, /* offset 0, more to come */
	PACKET_LATER_FRAGMENT = 1 << 1, /* offset above 0 */
	PACKET_CUT = 1 << 2,		/* the upper layer's ports are not there */
	PACKET_TCP = 1 << 3,		/* `tcp` is filled: see below */
	PACKET_ICMP_ERROR = 1 << 4,	/* an ICMP or ICMPv6 error; see quote.h */
	PACKET_HAS_PORTS = 1 << 5,	/* the ports in the key were read from the packet */
	PACKET_FRAGMENT = PACKET_FIRST_FRAGMENT | PACKET_LATER_FRAGMENT,
	PACKET_SIDE = 1 << 6, /* came in by the wire's second port; set by whoever received it */
	/*
	 * Its headers are such that NICs may read them otherwise than extract() does: IPv4 options, IPv6 extension
	 * headers, more than two VLAN tags, or a datagram length that cannot be. More of that: extract_is_plain().
	 */
	PACKET_UNPLAIN = 1 << 7,
};

/*
 * A TCP segment as the state machine wants it; all in host order. It is there when the header's 20 bytes are, and its
 * own length (RFC 9293 section 3.1, data offset) is neither below these nor beyond the end of the datagram, or of its
 * first fragment.
 */
struct tcp_segment {
	uint32_t seq;
	uint32_t ack;
	uint32_t payload; /* bytes of data, by the datagram's declared length */
	uint16_t window;  /* as written, unscaled; of ICMP, type in the upper byte, and code */
	uint8_t flags;	  /* FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128 */
	uint8_t scale;	  /* window scale of a SYN: 0..14, or TCP_SCALE_NONE without the option */
};

#define TCP_SCALE_NONE 0xff

/*
 * The flow that an ICMP error quotes is known, and its packets are let pass; `answers` as in struct flow_packet_ct
 * (flow/verdict.h). It stands in the segment, of which an ICMP message has but the window.
 */
static inline void segment_set_related(struct tcp_segment *icmp, uint32_t answers)
{
	icmp->flags = 1;
	icmp->ack = answers;
}

static inline bool segment_is_related(const struct tcp_segment *icmp)
{
	return icmp->flags != 0;
}

enum tcp_flag {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_URG = 0x20,
};

struct packet_info {
	struct flow_key key; /* zone as asked; wire as given */
	uint64_t hash;	     /* flow_key_hash() of the key */
	struct tcp_segment tcp;
	/*
	 * Of a fragment: the identification, host order; with IPv4 the header's own protocol stands
	 * in bits 16 to 23, since the key's is that of what follows an authentication header.
	 */
	uint32_t fragment_id;
	uint32_t bytes;	    /* frame bytes without FCS */
	uint16_t l4_offset; /* of the upper layer, or of a cut extension header; 65535: beyond it */
	uint8_t flags;	    /* enum packet_flag */
	uint8_t from;	    /* the key's end that sent it: 0 or 1 */
	/* set for fragments only, both in units of 8 bytes: */
	uint16_t fragment_offset; /* or-ed with PACKET_MORE_FRAGMENTS unless it is the last */
	uint16_t fragment_length; /* rounded up */
};

#define PACKET_MORE_FRAGMENTS 0x8000u

struct extract_options {
	const struct hash_secret *secret;
	bool zone_vlan;	   /* zone = VLAN id of the outermost tag, 0 without one */
	bool wire_is_link; /* captures: the number of the wire is an enum link_type */
};

/* What a frame begins with that came over `wire`. */
static inline enum link_type extract_link(const struct extract_options *options, unsigned wire)
{
	return options->wire_is_link ? (enum link_type)wire : LINK_ETHERNET;
}

/*
 * Reads one frame that came over `wire` (0..15). `info` is written only for EXTRACT_IP, and then
 * in full.
 */
enum extract_result extract(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, struct packet_info *info);

/*
 * Can a NIC be expected to read the packet as extract() did, and so to match a rule with its key, or to make the same
 * hash of it? Not where it is unplain, cut or a fragment, nor where the datagram does not fit the frame, or the upper
 * layer's header the datagram, or the IPv4 checksum is wrong, or the NIC said that one is. For where few packets come.
 */
bool extract_is_plain(const struct rte_mbuf *frame, const struct packet_info *info);

/*
 * What an IP frame has beside an Ethernet header's 14 bytes and its IP packet, by that packet's own word: VLAN tags and
 * padding. Below 0 where its link header is shorter, or the frame lacks its last `missing` bytes, as in captures. Where the
 * length cannot be, or is more than the whole frame had, the packet is taken to be what the frame holds.
 */
int32_t extract_excess(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, uint32_t missing);

/* Sets protocol and ports of a later fragment as its first fragment had them, and the hash anew. */
void extract_set_upper(const struct extract_options *options, struct packet_info *info,
	uint8_t proto, rte_be16_t src_port, rte_be16_t dst_port);

/* The ports of a packet in its own order, and its addresses. */
static inline rte_be16_t packet_src_port(const struct packet_info *info)
{
	return info->key.port[info->from];
}

static inline rte_be16_t packet_dst_port(const struct packet_info *info)
{
	return info->key.port[!info->from];
}
