/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Extraction: from the bytes of a frame to the key of its flow, the key's hash, and what the flow
 * engine wants to know of its headers.
 *
 * Read are Ethernet, any number of VLAN tags (0x8100, 0x88a8, 0x9100, 0x9200), the outermost IPv4
 * or IPv6 header, IPv6 extension headers (hop-by-hop 0, routing 43, fragment 44, authentication 51,
 * destination options 60, mobility 135, HIP 139, shim6 140), and the ports of TCP, UDP, UDP-Lite,
 * SCTP and DCCP. Everything else is known by addresses and protocol alone. No checksum is tested.
 *
 * A frame may be cut anywhere and spread over any number of segments; nothing beyond its bytes is
 * read, and nothing is written to it. The work is linear in the length of the headers.
 *
 * What is not whole is told, not guessed:
 * - EXTRACT_MALFORMED: no Ethernet header, a cut VLAN tag, a cut or impossible IP header.
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

enum extract_result {
	EXTRACT_IP,	   /* `info` is filled */
	EXTRACT_NON_IP,	   /* a whole Ethernet frame that carries something else */
	EXTRACT_MALFORMED, /* see above */
};

enum packet_flag {
	PACKET_FIRST_FRAGMENT = 1 << 0, /* offset 0, more to come */
	PACKET_LATER_FRAGMENT = 1 << 1, /* offset above 0 */
	PACKET_CUT = 1 << 2,		/* the upper layer's ports are not there */
	PACKET_TCP = 1 << 3,		/* `tcp` is filled: 20 bytes of TCP header are there */
	PACKET_ICMP_ERROR = 1 << 4,	/* an ICMP or ICMPv6 error; see quote.h */
	PACKET_HAS_PORTS = 1 << 5,	/* the ports in the key were read from the packet */
	PACKET_FRAGMENT = PACKET_FIRST_FRAGMENT | PACKET_LATER_FRAGMENT,
	PACKET_SIDE = 1 << 6, /* came in by the wire's second port; set by whoever received it */
};

/* A TCP segment as the state machine wants it; all in host order. */
struct tcp_segment {
	uint32_t seq;
	uint32_t ack;
	uint32_t payload; /* bytes of data, by the datagram's declared length */
	uint16_t window;  /* as written, unscaled */
	uint8_t flags;	  /* FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128 */
	uint8_t scale;	  /* window scale of a SYN: 0..14, or TCP_SCALE_NONE without the option */
};

#define TCP_SCALE_NONE 0xff

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
	uint32_t fragment_id; /* of a fragment: identification, host order */
	uint32_t bytes;	      /* frame bytes without FCS */
	uint16_t l4_offset; /* of the upper layer, or of a cut extension header; 65535: beyond it */
	uint8_t flags;	    /* enum packet_flag */
	uint8_t from;	    /* the key's end that sent it: 0 or 1 */
};

struct extract_options {
	const struct hash_secret *secret;
	bool zone_vlan; /* zone = VLAN id of the outermost tag, 0 without one */
};

/*
 * Reads one frame that came over `wire` (0..15). `info` is written only for EXTRACT_IP, and then
 * in full.
 */
enum extract_result extract(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, struct packet_info *info);

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
