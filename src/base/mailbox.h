/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A mailbox: how one thread hands fixed-size elements to one other, in order, without a lock.
 *
 * The elements are copied in and copied out. Both sides are fixed for the mailbox's life: a single
 * producer and a single consumer, though a side may move to another thread when something else
 * (a join, say) orders the two. Neither side ever waits: a push into a full mailbox and a pop from
 * an empty one do less than asked, and say so.
 *
 * Life-cycle: created by whoever starts the two threads, destroyed when both have ended. What is
 * still inside is forgotten. The memory is the mailbox's own, taken at creation; the ring is
 * DPDK's rte_ring, which needs no EAL for this use.
 */

#include <stddef.h>

struct mailbox;

/*
 * Makes room for `count` elements of `element_size` bytes (a multiple of 4). `name` is for
 * debuggers. Returns NULL with errno EINVAL for sizes that cannot be, or ENOMEM.
 */
struct mailbox *mailbox_create(const char *name, size_t element_size, unsigned count);

/* Producer: puts in as many of `n` elements as fit, the first ones first; returns how many. */
unsigned mailbox_push(struct mailbox *mailbox, const void *elements, unsigned n);

/* Consumer: takes out up to `max` elements; returns how many. */
unsigned mailbox_pop(struct mailbox *mailbox, void *elements, unsigned max);

/* How many elements are inside: exact for neither side while the other is at work. */
unsigned mailbox_count(const struct mailbox *mailbox);

/* How many would fit: for the producer a number that can only grow. */
unsigned mailbox_room(const struct mailbox *mailbox);

/* Accepts NULL. */
void mailbox_destroy(struct mailbox *mailbox);
