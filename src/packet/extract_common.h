/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of extraction: the common packet, TCP or UDP straight after an IP header without options or
 * extension headers, not a fragment, whole in its first segment as far as it is read. Everything else is
 * left to extract(). In a header of its own for walks that are compiled once per SIMD level.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "packet/extract.h"
#include "packet/headers.h"
#include "packet/simd.h"
#include "packet/words.h"

/* RFC 9293 section 3.1, RFC 7323 section 2. */
enum {
	TCP_OPTION_END = 0,
	TCP_OPTION_NOP = 1,
	TCP_OPTION_SCALE = 3,
	TCP_OPTION_SCALE_LENGTH = 3,
	TCP_MAX_SCALE = 14,
	TCP_MAX_OPTIONS = 40,
};

static inline size_t tcp_header_length(const uint8_t *header)
{
	return (size_t)(header[12] >> 4) * 4;
}

/*
 * The window scale among a SYN's options, as far as they are there. A scale above 14 counts as 14
 * (RFC 7323 section 2.3); of several the last counts, as it does for the end hosts.
 */
static inline uint8_t tcp_scale(const uint8_t *options, size_t length)
{
	uint8_t scale = TCP_SCALE_NONE;
	size_t at = 0;

	while (at < length && options[at] != TCP_OPTION_END) {
		if (options[at] == TCP_OPTION_NOP) {
			at++;
			continue;
		}
		if (length - at < 2)
			break;

		size_t option_length = options[at + 1];

		if (option_length < 2 || option_length > length - at)
			break;
		if (options[at] == TCP_OPTION_SCALE && option_length == TCP_OPTION_SCALE_LENGTH)
			scale = options[at + 2] < TCP_MAX_SCALE ? options[at + 2] : TCP_MAX_SCALE;
		at += option_length;
	}
	return scale;
}

#if defined(SIMD_LEVEL) && SIMD_LEVEL >= SIMD_LEVEL_SSE42

#include <immintrin.h>

static_assert(sizeof(struct tcp_segment) == sizeof(__m128i) &&
		      offsetof(struct tcp_segment, ack) == 4 &&
		      offsetof(struct tcp_segment, payload) == 8 &&
		      offsetof(struct tcp_segment, window) == 12 &&
		      offsetof(struct tcp_segment, flags) == 14,
	"the order of tcp_fields_of()");

/* A segment's header from its byte 4 on: sequence number, acknowledgement, flags and window, as they are kept. */
static inline struct tcp_segment tcp_fields_of(const uint8_t *header, uint32_t payload)
{
	const __m128i take = _mm_set_epi8(-1, 9, 10, 11, -1, -1, -1, -1, 4, 5, 6, 7, 0, 1, 2, 3);
	const __m128i rest = _mm_insert_epi32(
		_mm_set_epi32((int)((uint32_t)TCP_SCALE_NONE << 24), 0, 0, 0), (int)payload, 2);
	__m128i fields = _mm_or_si128(
		rest, _mm_shuffle_epi8(_mm_loadu_si128((const void *)(header + 4)), take));
	struct tcp_segment tcp;

	memcpy(&tcp, &fields, sizeof(tcp));
	return tcp;
}

#else

static inline struct tcp_segment tcp_fields_of(const uint8_t *header, uint32_t payload)
{
	return (struct tcp_segment){
		.seq = load_be32(header + 4),
		.ack = load_be32(header + 8),
		.payload = payload,
		.window = load_be16(header + 14),
		.flags = header[13],
		.scale = TCP_SCALE_NONE,
	};
}

#endif

/* All but the scale. `length` is that of the segment with its header, which is no longer. */
static inline struct tcp_segment tcp_fields(const uint8_t *header, size_t length)
{
	return tcp_fields_of(header, (uint32_t)(length - tcp_header_length(header)));
}

/* Does what common_upper() does, for the segment alone. `there` bytes lie at `header`, of it and perhaps of what is behind it. */
static __rte_always_inline bool common_tcp(
	const uint8_t *header, size_t length, size_t there, struct tcp_segment *tcp)
{
	if (unlikely(there < TCP_LENGTH))
		return false;

	const size_t header_length = tcp_header_length(header);

	if (unlikely(header_length < TCP_LENGTH || header_length > length))
		return false;
	*tcp = tcp_fields(header, length);
	if (likely(!(header[13] & TCP_SYN) || header_length == TCP_LENGTH))
		return true;
	if (header_length > there)
		return false;
	tcp->scale = tcp_scale(header + TCP_LENGTH, header_length - TCP_LENGTH);
	return true;
}

/* What a burst's packets have in common. */
struct common {
	uint64_t wire;
	const struct hash_secret *secret; /* NULL: the hash is left out */
	bool zone_vlan;
	uint8_t flags; /* that all of them get */
};

/*
 * All but the key. `upper` is an offset, at which the frame has 4 bytes at least; `length` is what the IP
 * header leaves to the upper layer. Returns the packet's flags, or 0 when something is not common.
 */
static __rte_always_inline uint8_t common_upper(const struct common *common,
	const struct rte_mbuf *frame, const uint8_t *header, size_t upper, size_t length,
	uint64_t proto, struct packet_info *info)
{
	uint8_t flags = common->flags | PACKET_HAS_PORTS;

	if (likely(proto == PROTO_UDP)) {
		if (unlikely(length < sizeof(uint32_t)))
			return 0;
		info->tcp = (struct tcp_segment){0};
	} else {
		if (unlikely(proto != PROTO_TCP ||
			     !common_tcp(header, length, frame->data_len - upper, &info->tcp)))
			return 0;
		flags |= PACKET_TCP;
	}
	info->fragment_id = 0;
	info->bytes = frame->pkt_len;
	info->l4_offset = (uint16_t)upper;
	info->flags = flags;
	return flags;
}

/*
 * An IPv4 packet whose header begins at `offset`. It is read in the pieces that it was written in: where
 * another thread or the kernel has only just copied it here, a wider load would wait for several stores.
 */
static __rte_always_inline uint8_t common_ipv4(const struct common *common,
	const struct rte_mbuf *frame, size_t offset, uint64_t zone, struct packet_info *info)
{
	const size_t upper = offset + IPV4_LENGTH;
	const uint8_t *header = rte_pktmbuf_mtod_offset(frame, const uint8_t *, offset);

	if (unlikely(frame->data_len < upper + sizeof(uint32_t)))
		return 0;

	uint64_t proto = header[9];
	size_t length = load_be16(header + 2);

	/* 20 bytes of header; neither more fragments to come nor an offset */
	if (unlikely(header[0] != 0x45 || load_be16(header + 6) & 0x3fff || length < IPV4_LENGTH))
		return 0;

	uint8_t flags = common_upper(
		common, frame, header + IPV4_LENGTH, upper, length - IPV4_LENGTH, proto, info);

	if (likely(flags != 0))
		key_write_ipv4(load_32(header + 12), load_32(header + 16),
			load_32(header + IPV4_LENGTH),
			zone << 32 | proto << 48 | common->wire << 56 | FLOW_KEY_TAIL_IPV4,
			common->secret, info);
	return flags;
}

static __rte_always_inline uint8_t common_ipv6(const struct common *common,
	const struct rte_mbuf *frame, size_t offset, uint64_t zone, struct packet_info *info)
{
	const size_t upper = offset + IPV6_LENGTH;
	const uint8_t *header = rte_pktmbuf_mtod_offset(frame, const uint8_t *, offset);
	struct key_parts parts;

	if (unlikely(frame->data_len < upper + sizeof(uint32_t) || header[0] >> 4 != 6))
		return 0;

	/* Length 0 has its own meaning: it leaves nothing here, and comes to extract(). */
	size_t length = load_be16(header + 4);

	parts.proto = header[6];

	uint8_t flags =
		common_upper(common, frame, header + IPV6_LENGTH, upper, length, parts.proto, info);

	if (unlikely(flags == 0))
		return 0;
	parts.src = address_load(header + 8);
	parts.dst = address_load(header + 24);
	parts.ports = load_32(header + IPV6_LENGTH);
	parts.zone = zone;
	parts.version_wire = FLOW_KEY_VERSION_WIRE(6, common->wire);
	key_parts_write(&parts, common->secret, info);
	return flags;
}

/* Behind one VLAN tag. */
static __rte_noinline uint8_t common_tagged(
	const struct common *common, const struct rte_mbuf *frame, struct packet_info *info)
{
	const uint8_t *tag = rte_pktmbuf_mtod_offset(frame, const uint8_t *, ETHERNET_LENGTH);
	const size_t offset = ETHERNET_LENGTH + VLAN_TAG_LENGTH;
	uint64_t zone = common->zone_vlan ? load_be16(tag) & 0x0fff : 0;
	uint16_t type = load_be16(tag + VLAN_TAG_LENGTH - sizeof(type));

	if (type == ETHERTYPE_IPV4)
		return common_ipv4(common, frame, offset, zone, info);
	return type == ETHERTYPE_IPV6 ? common_ipv6(common, frame, offset, zone, info) : 0;
}

/*
 * Fills `info` and returns its flags, never 0; or returns 0, with nothing written, when the frame is not
 * common.
 */
static __rte_always_inline uint8_t extract_common(
	const struct common *common, const struct rte_mbuf *frame, struct packet_info *info)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);

	if (unlikely(frame->data_len < ETHERNET_LENGTH + VLAN_TAG_LENGTH))
		return 0;

	uint16_t type = load_be16(bytes + ETHERNET_LENGTH - sizeof(uint16_t));

	if (likely(type == ETHERTYPE_IPV4))
		return common_ipv4(common, frame, ETHERNET_LENGTH, 0, info);
	if (type == ETHERTYPE_IPV6)
		return common_ipv6(common, frame, ETHERNET_LENGTH, 0, info);
	return ethertype_is_vlan(type) ? common_tagged(common, frame, info) : 0;
}
