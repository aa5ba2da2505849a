/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Messages that wait to be sent, in order, in memory of a fixed size.
 *
 * A message is written where queue_room() says, and is in the queue from queue_add() on. Its bytes stay where they are
 * until queue_drop(). Used by one thread.
 */

#include <stddef.h>
#include <stdint.h>

/* What a message has in it. */
struct queued {
	uint32_t length;	  /* bytes */
	uint32_t records;	  /* that count for the sequence number */
	uint64_t packets, octets; /* of the flows in them */
};

struct queue {
	uint8_t *bytes;
	size_t size;
	size_t first, next; /* where the first message is, and where the next one will be */
	size_t end;	    /* of what is used behind `next`, when it is before `first` */
	size_t n;
};

/* Returns 0 or -ENOMEM. */
int queue_init(struct queue *queue, size_t size);
void queue_fini(struct queue *queue);

/* Where a message of at most so many bytes can be written; NULL: there is no room. */
uint8_t *queue_room(struct queue *queue, size_t most);
/* What was written there last is a message. */
void queue_add(struct queue *queue, const struct queued *message);

/*
 * Walks over the messages: begin with a cursor of 0. NULL behind the last one. The message's bytes, which may be
 * changed, are at `*bytes`.
 */
const struct queued *queue_next(struct queue *queue, size_t *cursor, uint8_t **bytes);

/* Takes out the first message; there has to be one. */
void queue_drop(struct queue *queue);
