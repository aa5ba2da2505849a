/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Writing the frames of streams in the loop that sends them: the inline part of traffic/stream.h.
 *
 * A plain set needs no memory but a template for each direction: addresses, ports and checksums are computed from the
 * stream's number while the frame is put together in registers, and each byte is stored once, in aligned
 * words. So whoever reads the frame next, in words of whatever size, does not wait for stores that
 * overlap.
 */

#include <stdint.h>
#include <string.h>

#ifdef __SSE4_1__
#include <smmintrin.h>
#endif

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "traffic/stream.h"

#define STREAM_HEADER_MAX 96

/* The headers of a kind of flow in one direction; what changes with the flow is 0. */
struct stream_template {
	uint8_t bytes[STREAM_HEADER_MAX];
	uint32_t ip_sum; /* of the IPv4 header, as 16-bit words in host order; lengths not in it */
	uint32_t l4_sum; /* of the upper header and protocol number */
	uint8_t l3, l4;	 /* offsets */
	uint8_t header;	 /* bytes of all headers */
	uint8_t least;	 /* bytes of the shortest frame */
};

#define STREAM_N_KINDS 16 /* enum stream_proto, and these */
#define STREAM_KIND_IPV6 4
#define STREAM_KIND_VLAN 8

struct stream_set {
	/* of plain sets */
	uint8_t plain_frame[2][STREAM_MIN_BYTES] __attribute__((aligned(64)));
	uint32_t plain_ip_sum, plain_l4_sum; /* with their lengths */
	uint16_t plain_length;		     /* 0: the set is not plain */
	bool plain_tcp;			     /* else UDP */
	/* of all */
	uint8_t kind[256]; /* by the low bits of a flow's number */
	struct stream_config config;
	struct stream_template template[STREAM_N_KINDS][2];
	uint32_t *sctp_crc;	 /* by length of an SCTP packet / 4; NULL: no SCTP */
	uint32_t crc_table[256]; /* CRC-32c, a byte at a time */
};

/* Fills the templates of all kinds that the set's flows are of, and what SCTP needs. 0 or -ENOMEM. */
int stream_set_fill(struct stream_set *set);

/* The kind of a flow. */
static inline unsigned stream_kind(const struct stream_set *set, uint32_t flow)
{
	return set->kind[flow & 255];
}

/* What the ends of a flow are called by: 26 bits, another for each flow, in no order. */
#define STREAM_SPREAD UINT32_C(0x278dde5) /* 2^26 by the golden ratio */
#define STREAM_SHIFT UINT32_C(0x155ca3)
#define STREAM_SERVER_PORT 5001

static inline uint32_t stream_name(uint32_t flow)
{
	return (flow * STREAM_SPREAD + STREAM_SHIFT) & (STREAM_MAX_FLOWS - 1);
}

#define STREAM_CLIENT UINT32_C(0x0a400000)

static inline uint32_t stream_client_ipv4(uint32_t name)
{
	return STREAM_CLIENT | (name & 0x3fffff);
}

/* The bits of the name that the client's address lacks, and some more; .1, .17, .33 and so on. */
#define STREAM_SERVER_LOW UINT32_C(0x0a000001)
#define STREAM_SERVER_HIGH UINT32_C(0xc6120001)

static inline uint32_t stream_server_ipv4(uint32_t name)
{
	uint32_t high = -(name >> 13 & 1) & (STREAM_SERVER_LOW ^ STREAM_SERVER_HIGH);

	return (STREAM_SERVER_LOW ^ high) | (name >> 10 & 0xfff0);
}

static inline uint32_t stream_client_port(uint32_t name)
{
	return 0x8000 | (name >> 4 & 0x7fff);
}

/* 16 bytes as they stand in a frame. */
struct stream_address {
	rte_be64_t word[2];
};

static inline void stream_client_ipv6(uint32_t name, struct stream_address *address)
{
	address->word[0] = rte_cpu_to_be_64(UINT64_C(0x20010db800010000) | (name & 0xffff));
	address->word[1] = rte_cpu_to_be_64(UINT64_C(0x020000fffe000000) | name >> 16);
}

static inline void stream_server_ipv6(uint32_t name, struct stream_address *address)
{
	uint64_t subnet = (name >> 13 & 1) * UINT64_C(0xffff0000) | name >> 14;

	address->word[0] = rte_cpu_to_be_64(UINT64_C(0x20010db800000000) | subnet);
	address->word[1] = rte_cpu_to_be_64(1);
}

/* 64 bits of a frame, from their value in network order. */
static inline void stream_store_64(uint8_t *at, uint64_t value)
{
	value = rte_cpu_to_be_64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint64_t stream_load_64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return rte_be_to_cpu_64(value);
}

/*
 * The checksum for a sum of 32-bit words that did not overflow. Added to itself with its halves
 * exchanged, the low half's carry is what comes round into the high one.
 */
static inline uint32_t stream_checksum(uint32_t sum)
{
	return ~(sum + (sum << 16 | sum >> 16)) >> 16;
}

/* For plain sets alone. */
static inline uint16_t stream_write_plain(
	const struct stream_set *set, uint32_t stream, uint8_t *data)
{
	const uint8_t *frame = set->plain_frame[stream & 1];
	uint32_t name = stream_name(stream >> 1);
	uint32_t client = stream_client_ipv4(name), server = stream_server_ipv4(name);
	uint32_t swap = (client ^ server) & -(stream & 1);
	uint32_t src = client ^ swap, dst = server ^ swap;
	uint32_t port = stream_client_port(name);
	uint32_t turn = (stream & 1) << 4;
	uint64_t ports = (uint64_t)port << 16 | STREAM_SERVER_PORT;
	uint32_t ip_checksum = stream_checksum(set->plain_ip_sum + client + server);
	uint32_t l4_checksum = stream_checksum(set->plain_l4_sum + client + server + port);
	uint16_t length = set->plain_length;
	uint64_t fourth = stream_load_64(frame + 40), fifth = stream_load_64(frame + 48);

	if (likely(!set->plain_tcp)) {
		/* 0 would say that there is none: RFC 768 */
		l4_checksum |= -(l4_checksum == 0) & 0xffff;
		fourth |= (uint64_t)l4_checksum << 48;
	} else {
		fifth |= (uint64_t)l4_checksum << 32;
	}
	ports = (ports << turn | ports >> (32 - turn)) & UINT32_MAX;
	memcpy(data, frame, 24);
	stream_store_64(data + 24, (uint64_t)ip_checksum << 48 | (uint64_t)src << 16 | dst >> 16);
	stream_store_64(data + 32,
		(uint64_t)dst << 48 | ports << 16 | (stream_load_64(frame + 32) & UINT16_MAX));
	stream_store_64(data + 40, fourth);
	stream_store_64(data + 48, fifth);
	memset(data + 56, 0, 8);
	if (unlikely(length > STREAM_MIN_BYTES))
		memset(data + STREAM_MIN_BYTES, 0, (size_t)length - STREAM_MIN_BYTES);
	return length;
}

#ifdef __SSE4_1__

/* One for the other where `side` is all ones. */
static inline __m128i stream_choose(__m128i forward, __m128i reverse, __m128i side)
{
	return _mm_blendv_epi8(forward, reverse, side);
}

static inline __m128i stream_checksum_4(__m128i sum)
{
	__m128i turned = _mm_shufflehi_epi16(_mm_shufflelo_epi16(sum, 0xb1), 0xb1);

	return _mm_srli_epi32(_mm_xor_si128(_mm_add_epi32(sum, turned), _mm_set1_epi32(-1)), 16);
}

/* A frame of its template and of what changes: its checksums, addresses and ports. */
static inline void stream_store_plain(
	const uint8_t *frame, __m128i words, uint8_t *data, const bool tcp)
{
	/* bytes of `words`: 0 the upper checksum, 2 IP's, 4 source, 8 destination, 12 ports; -1: 0 */
	const __m128i second =
		_mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 3, 2, 7, 6, 5, 4, 11, 10);
	const __m128i third = _mm_setr_epi8(
		9, 8, 15, 14, 13, 12, -1, -1, tcp ? -1 : 1, tcp ? -1 : 0, -1, -1, -1, -1, -1, -1);
	const __m128i last =
		_mm_setr_epi8(-1, -1, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	const __m128i *from = (const __m128i *)frame;
	__m128i *to = (__m128i *)data;

	_mm_storeu_si128(&to[0], from[0]);
	_mm_storeu_si128(&to[1], _mm_or_si128(_mm_shuffle_epi8(words, second), from[1]));
	_mm_storeu_si128(&to[2], _mm_or_si128(_mm_shuffle_epi8(words, third), from[2]));
	_mm_storeu_si128(&to[3],
		tcp ? _mm_or_si128(_mm_shuffle_epi8(words, last), from[3]) : _mm_setzero_si128());
}

/*
 * As stream_write_plain() for four streams, but for what is beyond the first 64 bytes. `tcp` is the set's
 * plain_tcp, as a constant.
 */
static inline __attribute__((always_inline)) void stream_write_plain_4(const struct stream_set *set,
	const uint32_t streams[4], uint8_t *const data[4], const bool tcp)
{
	/* one by one: a caller's array that is in registers stays there */
	__m128i stream =
		_mm_setr_epi32((int)streams[0], (int)streams[1], (int)streams[2], (int)streams[3]);
	__m128i side = _mm_srai_epi32(_mm_slli_epi32(stream, 31), 31);
	__m128i name = _mm_and_si128(_mm_add_epi32(_mm_mullo_epi32(_mm_srli_epi32(stream, 1),
							   _mm_set1_epi32((int)STREAM_SPREAD)),
					     _mm_set1_epi32((int)STREAM_SHIFT)),
		_mm_set1_epi32((int)STREAM_MAX_FLOWS - 1));
	__m128i client = _mm_or_si128(
		_mm_and_si128(name, _mm_set1_epi32(0x3fffff)), _mm_set1_epi32((int)STREAM_CLIENT));
	__m128i high = _mm_srai_epi32(_mm_slli_epi32(name, 18), 31);
	__m128i server =
		_mm_or_si128(_mm_and_si128(_mm_srli_epi32(name, 10), _mm_set1_epi32(0xfff0)),
			stream_choose(_mm_set1_epi32((int)STREAM_SERVER_LOW),
				_mm_set1_epi32((int)STREAM_SERVER_HIGH), high));
	__m128i port = _mm_or_si128(_mm_and_si128(_mm_srli_epi32(name, 4), _mm_set1_epi32(0x7fff)),
		_mm_set1_epi32(0x8000));
	__m128i addresses = _mm_add_epi32(client, server);
	__m128i ip =
		stream_checksum_4(_mm_add_epi32(addresses, _mm_set1_epi32((int)set->plain_ip_sum)));
	__m128i l4 = stream_checksum_4(_mm_add_epi32(
		_mm_add_epi32(addresses, port), _mm_set1_epi32((int)set->plain_l4_sum)));
	__m128i none = _mm_srli_epi32(_mm_cmpeq_epi32(l4, _mm_setzero_si128()), 16);
	/* of UDP 0 would say that there is none */
	__m128i upper = tcp ? l4 : _mm_or_si128(l4, none);
	__m128i checksums = _mm_or_si128(upper, _mm_slli_epi32(ip, 16));
	__m128i src = stream_choose(client, server, side);
	__m128i dst = stream_choose(server, client, side);
	__m128i server_port = _mm_set1_epi32(STREAM_SERVER_PORT);
	__m128i ports = stream_choose(_mm_or_si128(_mm_slli_epi32(port, 16), server_port),
		_mm_or_si128(_mm_slli_epi32(server_port, 16), port), side);
	/* four of each become one of each, four times */
	__m128i a = _mm_unpacklo_epi32(checksums, src), b = _mm_unpackhi_epi32(checksums, src);
	__m128i c = _mm_unpacklo_epi32(dst, ports), d = _mm_unpackhi_epi32(dst, ports);

	stream_store_plain(
		set->plain_frame[streams[0] & 1], _mm_unpacklo_epi64(a, c), data[0], tcp);
	stream_store_plain(
		set->plain_frame[streams[1] & 1], _mm_unpackhi_epi64(a, c), data[1], tcp);
	stream_store_plain(
		set->plain_frame[streams[2] & 1], _mm_unpacklo_epi64(b, d), data[2], tcp);
	stream_store_plain(
		set->plain_frame[streams[3] & 1], _mm_unpackhi_epi64(b, d), data[3], tcp);
}

#endif

/* As stream_frame(). */
static inline uint16_t stream_write(const struct stream_set *set, uint32_t stream, uint8_t *data)
{
	if (likely(set->plain_length != 0))
		return stream_write_plain(set, stream, data);
	return stream_frame(set, stream, data);
}

/*
 * The frames of four streams at once, each as long as stream_length() says: where the set is plain, and
 * the processor a usual one, several times as fast as one by one.
 */
static inline void stream_write_4(
	const struct stream_set *set, const uint32_t streams[4], uint8_t *const data[4])
{
#ifdef __SSE4_1__
	if (likely(set->plain_length == STREAM_MIN_BYTES)) {
		if (likely(!set->plain_tcp))
			stream_write_plain_4(set, streams, data, false);
		else
			stream_write_plain_4(set, streams, data, true);
		return;
	}
#endif
	for (unsigned i = 0; i < 4; i++)
		stream_write(set, streams[i], data[i]);
}
