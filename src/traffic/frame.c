/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/frame.h"

#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

/* The header of a buffer; the frame's bytes follow and end the allocation. */
struct buffer {
	struct rte_mbuf_ext_shared_info shared;
	uint8_t bytes[];
};

static void free_buffer(void *address, void *buffer)
{
	(void)address;
	free(buffer);
}

struct rte_mempool *frame_pool_create(const char *name, unsigned n, uint16_t priv_size)
{
	struct rte_pktmbuf_pool_private priv = {.mbuf_priv_size = priv_size};

	/*
	 * Without hugepages the default pool puts one mbuf on each 4 KiB page; packed as here they
	 * have no IO address, which nothing but software ports can do without.
	 */
	return rte_mempool_create(name, n, (unsigned)sizeof(struct rte_mbuf) + priv_size,
		n >= 4096 ? 256 : 0, sizeof(priv), rte_pktmbuf_pool_init, &priv, rte_pktmbuf_init,
		NULL, SOCKET_ID_ANY, rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);
}

static struct rte_mbuf *segment(struct rte_mempool *pool, const uint8_t *bytes, uint16_t length)
{
	struct buffer *buffer = malloc(sizeof(*buffer) + length);
	struct rte_mbuf *mbuf = buffer == NULL ? NULL : rte_pktmbuf_alloc(pool);

	if (mbuf == NULL) {
		free(buffer);
		return NULL;
	}
	memcpy(buffer->bytes, bytes, length);
	buffer->shared.free_cb = free_buffer;
	buffer->shared.fcb_opaque = buffer;
	rte_mbuf_ext_refcnt_set(&buffer->shared, 1);
	rte_pktmbuf_attach_extbuf(mbuf, buffer->bytes, 0, length, &buffer->shared);
	mbuf->data_off = 0;
	mbuf->data_len = length;
	mbuf->pkt_len = length;
	return mbuf;
}

struct rte_mbuf *frame_make(
	struct rte_mempool *pool, const void *bytes, uint32_t length, uint16_t max_segment)
{
	const uint8_t *next = bytes;
	struct rte_mbuf *frame = NULL;
	struct rte_mbuf *last = NULL;
	uint16_t segments = 0;
	uint32_t left = length;

	do {
		uint16_t piece = (uint16_t)RTE_MIN(left, max_segment);
		struct rte_mbuf *mbuf = segment(pool, next, piece);

		if (mbuf == NULL) {
			rte_pktmbuf_free(frame);
			return NULL;
		}
		if (frame == NULL)
			frame = mbuf;
		else
			last->next = mbuf;
		last = mbuf;
		frame->nb_segs = ++segments;
		next += piece;
		left -= piece;
	} while (left != 0);
	frame->pkt_len = length;
	return frame;
}
