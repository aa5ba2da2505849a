/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Frames for tests, built header by header from the front, and mbufs around them.
 *
 *	struct frame f;
 *
 *	frame_start(&f);
 *	frame_tag(&f, 0x8100, 7);
 *	frame_ipv4(&f, "10.0.0.1", "10.0.0.2", 17);
 *	frame_udp(&f, 1000, 53);
 *	frame_fill(&f, 8);
 *	frame_finish(&f);
 *
 * Lengths and IPv4 checksums are set by frame_finish(); a test that wants a wrong one overwrites it
 * after that, at f.ip[0] or f.upper. IP headers nest: what an ICMP error quotes is one more.
 *
 * The mbufs need no EAL. Every segment lies in a heap buffer of exactly its size, so that a
 * sanitizer sees a read beyond it. Everything fails by assertion.
 */

#include <arpa/inet.h>
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#define FRAME_MAX_IP 4

struct frame {
	uint8_t bytes[4096];
	size_t length;
	size_t ip[FRAME_MAX_IP]; /* where the IP headers start, outermost first */
	unsigned n_ip;
	size_t upper; /* where the header added last starts */
};

static inline void put_be16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void put_be32(uint8_t *at, uint32_t value)
{
	put_be16(at, value >> 16);
	put_be16(at + 2, value & 0xffff);
}

/* Adds `n` zero bytes and returns where they start. */
static inline uint8_t *frame_add(struct frame *frame, size_t n)
{
	uint8_t *at = frame->bytes + frame->length;

	assert(n <= sizeof(frame->bytes) - frame->length);
	memset(at, 0, n);
	frame->upper = frame->length;
	frame->length += n;
	return at;
}

/* Two MAC addresses; the ethertype comes with the next header, or by frame_type(). */
static inline void frame_start(struct frame *frame)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	memset(frame, 0, sizeof(*frame));
	memcpy(frame_add(frame, sizeof(macs)), macs, sizeof(macs));
}

static inline void frame_type(struct frame *frame, unsigned ethertype)
{
	put_be16(frame_add(frame, 2), ethertype);
}

static inline void frame_tag(struct frame *frame, unsigned ethertype, unsigned tci)
{
	frame_type(frame, ethertype);
	put_be16(frame_add(frame, 2), tci);
}

/* `n` bytes of data that are not zero. */
static inline void frame_fill(struct frame *frame, size_t n)
{
	uint8_t *at = frame_add(frame, n);

	for (size_t i = 0; i < n; i++)
		at[i] = (uint8_t)(0x61 + i % 26);
}

static inline void frame_ip_start(struct frame *frame, unsigned ethertype)
{
	assert(frame->n_ip < FRAME_MAX_IP);
	if (frame->n_ip == 0)
		frame_type(frame, ethertype);
	frame->ip[frame->n_ip++] = frame->length;
}

/* An IPv4 header with `n_options` bytes of options (a multiple of 4; no-operation). */
static inline void frame_ipv4_options(
	struct frame *frame, const char *src, const char *dst, unsigned proto, size_t n_options)
{
	frame_ip_start(frame, 0x0800);

	uint8_t *at = frame_add(frame, 20 + n_options);

	at[0] = (uint8_t)(0x40 | (20 + n_options) / 4);
	at[8] = 64;
	at[9] = (uint8_t)proto;
	memset(at + 20, 1, n_options);
	assert(inet_pton(AF_INET, src, at + 12) == 1);
	assert(inet_pton(AF_INET, dst, at + 16) == 1);
}

static inline void frame_ipv4(struct frame *frame, const char *src, const char *dst, unsigned proto)
{
	frame_ipv4_options(frame, src, dst, proto, 0);
}

/* Makes the innermost IP header, an IPv4 one, a fragment; `offset` in bytes. */
static inline void frame_ipv4_fragment(struct frame *frame, unsigned id, unsigned offset, bool more)
{
	uint8_t *at = frame->bytes + frame->ip[frame->n_ip - 1];

	put_be16(at + 4, id);
	put_be16(at + 6, offset / 8 | (more ? 0x2000 : 0));
}

static inline void frame_ipv6(
	struct frame *frame, const char *src, const char *dst, unsigned next_header)
{
	frame_ip_start(frame, 0x86dd);

	uint8_t *at = frame_add(frame, 40);

	at[0] = 0x60;
	at[6] = (uint8_t)next_header;
	at[7] = 64;
	assert(inet_pton(AF_INET6, src, at + 8) == 1);
	assert(inet_pton(AF_INET6, dst, at + 24) == 1);
}

/* An IPv6 extension header of `length` bytes with `units` in its length field. */
static inline void frame_extension(
	struct frame *frame, unsigned next_header, unsigned units, size_t length)
{
	uint8_t *at = frame_add(frame, length);

	at[0] = (uint8_t)next_header;
	at[1] = (uint8_t)units;
}

/* An IPv6 fragment header; `offset` in bytes. */
static inline void frame_ipv6_fragment(
	struct frame *frame, unsigned next_header, uint32_t id, unsigned offset, bool more)
{
	uint8_t *at = frame_add(frame, 8);

	at[0] = (uint8_t)next_header;
	put_be16(at + 2, (offset & 0xfff8) | more);
	put_be32(at + 4, id);
}

static inline void frame_udp(struct frame *frame, unsigned src_port, unsigned dst_port)
{
	uint8_t *at = frame_add(frame, 8);

	put_be16(at, src_port);
	put_be16(at + 2, dst_port);
	put_be16(at + 4, 8);
}

struct frame_tcp {
	unsigned src_port;
	unsigned dst_port;
	uint32_t seq;
	uint32_t ack;
	unsigned flags;
	unsigned window;
	const uint8_t *options;
	size_t n_options; /* a multiple of 4 */
};

static inline void frame_tcp(struct frame *frame, const struct frame_tcp *tcp)
{
	uint8_t *at = frame_add(frame, 20 + tcp->n_options);

	put_be16(at, tcp->src_port);
	put_be16(at + 2, tcp->dst_port);
	put_be32(at + 4, tcp->seq);
	put_be32(at + 8, tcp->ack);
	at[12] = (uint8_t)((20 + tcp->n_options) / 4 << 4);
	at[13] = (uint8_t)tcp->flags;
	put_be16(at + 14, tcp->window);
	if (tcp->n_options > 0)
		memcpy(at + 20, tcp->options, tcp->n_options);
}

/* The 8 bytes that begin an ICMP or ICMPv6 message. */
static inline void frame_icmp(struct frame *frame, unsigned type, unsigned code)
{
	uint8_t *at = frame_add(frame, 8);

	at[0] = (uint8_t)type;
	at[1] = (uint8_t)code;
}

/* Lengths as if every IP datagram reached to the end, and IPv4 header checksums. */
static inline void frame_finish(struct frame *frame)
{
	for (unsigned i = 0; i < frame->n_ip; i++) {
		uint8_t *ip = frame->bytes + frame->ip[i];
		unsigned length = (unsigned)(frame->length - frame->ip[i]);
		uint32_t sum = 0;

		if (ip[0] >> 4 == 6) {
			put_be16(ip + 4, length - 40);
			continue;
		}
		put_be16(ip + 2, length);
		put_be16(ip + 10, 0);
		for (unsigned at = 0; at < (ip[0] & 0x0fu) * 4; at += 2)
			sum += (unsigned)ip[at] << 8 | ip[at + 1];
		sum = (sum & 0xffff) + (sum >> 16);
		put_be16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
	}
}

static inline void frame_mbuf_free(struct rte_mbuf *mbuf)
{
	while (mbuf != NULL) {
		struct rte_mbuf *next = mbuf->next;

		free(mbuf->buf_addr);
		free(mbuf);
		mbuf = next;
	}
}

/*
 * An mbuf of the frame whose segments have the given sizes; what they leave over comes in segments
 * as large as they may be. Sizes may be 0, and may reach beyond the frame.
 */
static inline struct rte_mbuf *frame_mbuf_sized(
	const uint8_t *bytes, size_t length, const uint16_t *sizes, size_t n_sizes)
{
	struct rte_mbuf *first = NULL;
	struct rte_mbuf **link = &first;
	size_t done = 0;
	size_t i = 0;

	do {
		size_t part = i < n_sizes ? sizes[i] : UINT16_MAX;
		struct rte_mbuf *mbuf = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*mbuf));

		assert(mbuf != NULL);
		memset(mbuf, 0, sizeof(*mbuf));
		if (part > length - done)
			part = length - done;
		mbuf->buf_addr = malloc(part);
		assert(mbuf->buf_addr != NULL || part == 0);
		if (part > 0)
			memcpy(mbuf->buf_addr, bytes + done, part);
		mbuf->buf_len = mbuf->data_len = (uint16_t)part;
		mbuf->refcnt = 1;
		*link = mbuf;
		link = &mbuf->next;
		first->nb_segs++;
		done += part;
		i++;
	} while (done < length);
	first->pkt_len = (uint32_t)length;
	return first;
}

/* In one segment. */
static inline struct rte_mbuf *frame_mbuf(const uint8_t *bytes, size_t length)
{
	return frame_mbuf_sized(bytes, length, NULL, 0);
}
