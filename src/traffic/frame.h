/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Frames from bytes: mbufs whose data lies in heap buffers of exactly the frame's size, attached as
 * external, so that whoever reads past the end of a frame is found by the address sanitizer (it sees
 * nothing inside a mempool). A frame longer than 65,535 bytes, the most an mbuf can hold, becomes a
 * chain of segments.
 */

#include <stdint.h>

#include <rte_mbuf.h>

/* A pool of `n` mbufs without data room, `priv_size` private bytes each. NULL and rte_errno. */
struct rte_mempool *frame_pool_create(const char *name, unsigned n, uint16_t priv_size);

/*
 * Copies `length` bytes into a new frame, in segments of at most `max_segment` (1..65,535) bytes.
 * NULL when the pool or the heap is exhausted.
 */
struct rte_mbuf *frame_make(
	struct rte_mempool *pool, const void *bytes, uint32_t length, uint16_t max_segment);
