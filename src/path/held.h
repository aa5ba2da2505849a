/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets held back: lists by number, in the order in which they came. A list's number is given out
 * with its first packet and free again when its last is taken. The packets are chained through their
 * private area, so a list costs 8 bytes.
 *
 * What is bounded is the number of buffers that they keep from others: a packet of several segments
 * counts as that many.
 *
 * Used by one thread.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#define HELD_NONE UINT32_MAX

struct held;

/* Returns 0 or -ENOMEM. */
int held_create(struct held **held, uint32_t max_buffers);
/* Accepts NULL. Nothing may be held. */
void held_destroy(struct held *held);

/*
 * Appends a packet to `list`, or to a new list for HELD_NONE. Returns the list's number, or HELD_NONE
 * when no more may be held.
 */
uint32_t held_add(struct held *held, uint32_t list, struct rte_mbuf *packet);

/* Takes the first packet off; NULL when there is none. `*list` becomes HELD_NONE with the last. */
struct rte_mbuf *held_take(struct held *held, uint32_t *list);

/* Packets held now. */
uint32_t held_count(const struct held *held);
