/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A ring between two lcores: packets, notes and markers, in order. A marker stands between two
 * packets and says that the sender has taken its part of a snapshot there (dataplane/snapshot.h).
 *
 * What does not fit is not taken. A marker that does not fit waits, and nothing passes it: what would
 * come after is not taken either.
 *
 * One lcore pushes and one pops, as in base/mailbox.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/mailbox.h"

/* A packet, or a marker: an odd number. */
typedef uintptr_t ring_element;

struct ring {
	struct mailbox *mailbox;
	/* the pusher's */
	uint32_t marker; /* the snapshot whose marker waits for room; 0: none */
};

static inline bool ring_is_marker(ring_element element)
{
	return element & 1;
}

static inline uint32_t ring_marker_snapshot(ring_element element)
{
	return (uint32_t)(element >> 1);
}

/* Pushes the marker that waits; false when there still is no room. */
static inline bool ring_push_marker(struct ring *ring)
{
	ring_element element = (ring_element)ring->marker << 1 | 1;

	if (ring->marker == 0)
		return true;
	if (mailbox_push(ring->mailbox, &element, 1) == 0)
		return false;
	ring->marker = 0;
	return true;
}

/* Returns how many of the packets were taken, the first ones first. */
static inline unsigned ring_push(struct ring *ring, struct rte_mbuf **packets, unsigned n)
{
	return ring_push_marker(ring) ? mailbox_push(ring->mailbox, packets, n) : 0;
}

static inline unsigned ring_pop(struct ring *ring, ring_element *elements, unsigned max)
{
	return mailbox_pop(ring->mailbox, elements, max);
}

static inline struct rte_mbuf *ring_packet(ring_element element)
{
	return (struct rte_mbuf *)element;
}
