/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the NIC sees of a packet: the bytes of its headers at fixed places, and which of them are there.
 * A rule's pattern is a value and a mask over the same bytes (pattern.h), so that matching is a compare.
 * Two levels: the outer headers, and those inside a tunnel. A header that is cut by the frame's end is
 * not there, nor is anything after it. Later fragments have no layer-4 header. The fields are as on the
 * wire, in network byte order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>

enum sim_layer {
	/* of either level; the inner ones are shifted by SIM_INNER */
	SIM_ETH = 1 << 0,
	SIM_VLAN = 1 << 1,	/* at least one tag */
	SIM_VLAN_MORE = 1 << 2, /* at least two */
	SIM_IPV4 = 1 << 3,
	SIM_IPV6 = 1 << 4,
	SIM_IPV6_FRAG = 1 << 5,
	SIM_TCP = 1 << 6,
	SIM_UDP = 1 << 7,
	SIM_SCTP = 1 << 8,
	SIM_ICMP = 1 << 9,
	SIM_ICMP6 = 1 << 10,
	SIM_INNER = 12, /* a shift */
	/* between them; at most one */
	SIM_VXLAN = 1 << 24, /* UDP port 4789 */
	SIM_GRE = 1 << 25,   /* protocol 47, version 0 */
	SIM_GRE_KEY = 1 << 26,
	SIM_GENEVE = 1 << 27, /* UDP port 6081 */
	SIM_GTPU = 1 << 28,   /* UDP port 2152, version 1, message 255 (G-PDU) */
};

/* 96 bytes, all zero where the header is not there. */
struct sim_level {
	uint8_t eth[14];    /* destination, source, type as it stands in the frame */
	uint8_t has_vlan;   /* 0 or 1, for the item's bit of that name */
	uint8_t has_more;   /* bit 0: a tag follows the first one, bit 1: the second one */
	uint8_t vlan[2][4]; /* TCI and the type behind it */
	uint8_t ip[40];	    /* 20 bytes of IPv4 without options, or 40 of IPv6 */
	uint8_t ipv6_frag[8];
	uint8_t l4[20];	     /* TCP without options 20, UDP 8, SCTP 12, ICMP and ICMPv6 8 */
	uint8_t ipv6_has[4]; /* the item's has_..._ext bits, bit 0 = has_hop_ext, little endian */
};

struct sim_view {
	struct sim_level level[2];
	uint8_t tunnel
		[16]; /* VXLAN, GENEVE, GTP-U 8 (GTP-U with its optional four: 12), GRE 4; its key
			       follows at 4 whether or not there is a checksum before it */
	uint32_t layers; /* enum sim_layer */
	uint16_t port;	 /* ethdev that it arrived at; SIM_NO_PORT = it is being sent */
	uint16_t unused;
	/*
	 * Not matched; where things lie in the frame, for edits and RSS, 0 = not there: the outer IP and
	 * layer-4 headers, and what begins the inner level.
	 */
	uint16_t l3_at, l4_at, inner_at;
	uint16_t length; /* at most UINT16_MAX */
} __attribute__((aligned(8)));

#define SIM_VIEW_BYTES 216u /* up to `port` inclusive, with `unused`: what a pattern covers */
#define SIM_VIEW_WORDS (SIM_VIEW_BYTES / 8)
#define SIM_NO_PORT UINT16_MAX

/*
 * Zeros, in pieces that compilers make stores of: of a few hundred bytes at once gcc makes a string
 * instruction, which takes three times as long. `n` is a constant.
 */
static inline __attribute__((always_inline)) void sim_clear(void *bytes, size_t n)
{
	size_t at = 0;

	for (; at + 32 <= n; at += 32)
		memset((uint8_t *)bytes + at, 0, 32);
	memset((uint8_t *)bytes + at, 0, n - at);
}

/* The word that bytes 8 * i to 8 * i + 7 of the view are. */
static inline uint64_t sim_view_word(const struct sim_view *view, unsigned i)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)view + i * sizeof(word), sizeof(word));
	return word;
}

/*
 * Looks at a frame's first `length` bytes, lying together. Any bytes; at most 8 IPv6 extension headers
 * and two tags are walked. The view's port stays as it is: the caller sets it, before or after.
 */
void sim_view_parse(struct sim_view *view, const uint8_t *frame, uint32_t length);

/* The same for an mbuf: a frame in several segments is looked at as far as the first goes. */
void sim_view_packet(struct sim_view *view, const struct rte_mbuf *packet);
