/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Random packets in mbufs with headroom, and what a change makes of their description. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/random_packet.h"

/* An mbuf with headroom, in segments of the given sizes. */
static inline struct rte_mbuf *mbuf_of(
	const struct frame *frame, size_t headroom, const uint16_t *sizes, size_t n_sizes)
{
	struct rte_mbuf *mbuf = frame_mbuf_sized(frame->bytes, frame->length, sizes, n_sizes);
	uint8_t *bytes = malloc(headroom + mbuf->data_len);

	assert_non_null(bytes);
	if (mbuf->data_len > 0)
		memcpy(bytes + headroom, mbuf->buf_addr, mbuf->data_len);
	free(mbuf->buf_addr);
	mbuf->buf_addr = bytes;
	mbuf->buf_len = (uint16_t)(headroom + mbuf->data_len);
	mbuf->data_off = (uint16_t)headroom;
	return mbuf;
}

/* All segments together are these bytes. */
static inline void check_bytes(const struct rte_mbuf *mbuf, const uint8_t *bytes, size_t length)
{
	uint8_t *there = malloc(length + 1);
	size_t at = 0;

	assert_non_null(there);
	assert_int_equal(mbuf->pkt_len, length);
	for (const struct rte_mbuf *segment = mbuf; segment != NULL; segment = segment->next) {
		assert_in_range(at + segment->data_len, 0, length);
		if (segment->data_len > 0)
			memcpy(there + at, rte_pktmbuf_mtod(segment, const uint8_t *),
				segment->data_len);
		at += segment->data_len;
	}
	assert_int_equal(at, length);
	assert_memory_equal(there, bytes, length);
	free(there);
}

static inline void push_tag(struct random_packet *packet, uint16_t tpid, uint16_t tci)
{
	memmove(&packet->tpid[1], &packet->tpid[0], packet->n_tags * sizeof(packet->tpid[0]));
	memmove(&packet->tci[1], &packet->tci[0], packet->n_tags * sizeof(packet->tci[0]));
	packet->tpid[0] = tpid;
	packet->tci[0] = tci;
	packet->n_tags++;
}

static inline void pop_tag(struct random_packet *packet)
{
	packet->n_tags--;
	memmove(&packet->tpid[0], &packet->tpid[1], packet->n_tags * sizeof(packet->tpid[0]));
	memmove(&packet->tci[0], &packet->tci[1], packet->n_tags * sizeof(packet->tci[0]));
}
