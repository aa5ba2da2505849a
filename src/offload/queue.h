/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The flows of one worker that wait to be handed to one port's installer: bounded; the busiest goes first,
 * and takes the place of the least busy when there is none left, if it is twice as busy. Sorted; of equal ones the earlier goes
 * first and stays longer. A flow that ends meanwhile stays in it: whoever takes it out sees that by its tag.
 *
 * One thread, the worker. All memory is in the struct.
 */

#include <stdbool.h>
#include <stdint.h>

#define QUEUE_SIZE 256

struct queue_entry {
	uint32_t rate;	   /* as offload/rate.h has it */
	uint32_t position; /* of the record */
	uint32_t tag;	   /* of the flow: a record may be given to another */
	uint8_t from;	   /* the key's end that the packets come from */
};

struct queue {
	unsigned n;
	struct queue_entry entry[QUEUE_SIZE]; /* the least busy first */
};

enum queue_answer {
	QUEUE_TAKEN,
	QUEUE_TOOK_PLACE, /* of the entry that is told */
	QUEUE_FULL,	  /* of busier ones, or such as are much alike */
};

enum queue_answer queue_put(
	struct queue *queue, struct queue_entry entry, struct queue_entry *displaced);
/* Who waits already (all but the rate is compared) is at least so busy by now, and moves up. */
void queue_raise(struct queue *queue, const struct queue_entry *entry);
/* The rate that a flow needs to get a place: 0, while there are some. */
uint32_t queue_needs(const struct queue *queue);
/* Takes the busiest one; false: the queue is empty. */
bool queue_take(struct queue *queue, struct queue_entry *entry);
