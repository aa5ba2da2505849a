/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of packet/: a frame of any number of segments, read from front to back.
 *
 * The reader stays at the segment it read last, so that a walk over many headers passes every
 * segment once. Offsets therefore never go down from one call to the next.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct reader {
	const struct rte_mbuf *segment;
	size_t start; /* the segment's first byte, as an offset into the frame */
	size_t limit; /* nothing at or above it is read; may be lowered on the way */
};

static inline struct reader reader_of(const struct rte_mbuf *frame)
{
	return (struct reader){.segment = frame, .start = 0, .limit = frame->pkt_len};
}

static inline void reader_lower_limit(struct reader *reader, size_t limit)
{
	if (limit < reader->limit)
		reader->limit = limit;
}

/* True when the frame has `n` bytes at `offset`. */
static inline bool reader_has(const struct reader *reader, size_t offset, size_t n)
{
	return n <= reader->limit && offset <= reader->limit - n;
}

/* Gathers bytes that lie in more than one segment. */
const uint8_t *reader_gather(
	const struct rte_mbuf *segment, size_t offset, size_t n, uint8_t *scratch);

/*
 * The `n` bytes (1 or more) at `offset`: where they lie, or copied into `scratch`, which has room
 * for them. NULL when they are not all there.
 */
static inline const uint8_t *reader_peek(
	struct reader *reader, size_t offset, size_t n, uint8_t *scratch)
{
	if (!reader_has(reader, offset, n))
		return NULL;
	while (offset - reader->start >= reader->segment->data_len) {
		if (reader->segment->next == NULL)
			return NULL;
		reader->start += reader->segment->data_len;
		reader->segment = reader->segment->next;
	}

	size_t at = offset - reader->start;

	if (n <= reader->segment->data_len - at)
		return rte_pktmbuf_mtod_offset(reader->segment, const uint8_t *, at);
	return reader_gather(reader->segment, at, n, scratch);
}
