/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/queue.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Of a message with what is kept of it before its bytes. */
static size_t place_of(size_t length)
{
	const size_t align = alignof(struct queued);

	return sizeof(struct queued) + (length + align - 1) / align * align;
}

int queue_init(struct queue *queue, size_t size)
{
	*queue = (struct queue){.bytes = malloc(size), .size = size};
	return queue->bytes == NULL ? -ENOMEM : 0;
}

void queue_fini(struct queue *queue)
{
	free(queue->bytes);
	queue->bytes = NULL;
}

uint8_t *queue_room(struct queue *queue, size_t most)
{
	const size_t needed = place_of(most);

	if (queue->n == 0)
		queue->first = queue->next = 0;
	if (queue->n != 0 && queue->next <= queue->first) {
		if (queue->first - queue->next < needed)
			return NULL;
	} else if (queue->size - queue->next < needed) {
		if (queue->n == 0 || queue->first < needed)
			return NULL;
		queue->end = queue->next;
		queue->next = 0;
	}
	return queue->bytes + queue->next + sizeof(struct queued);
}

void queue_add(struct queue *queue, const struct queued *message)
{
	memcpy(queue->bytes + queue->next, message, sizeof(*message));
	queue->next += place_of(message->length);
	queue->n++;
}

/* The place behind the message at `place`; from the last one before the end it goes on at the begin. */
static size_t behind(const struct queue *queue, size_t place)
{
	struct queued message;

	memcpy(&message, queue->bytes + place, sizeof(message));
	place += place_of(message.length);
	return queue->next <= queue->first && place == queue->end ? 0 : place;
}

const struct queued *queue_next(struct queue *queue, size_t *cursor, uint8_t **bytes)
{
	/* the cursor is a place and 1 more, so that 0 is none */
	const size_t place = *cursor == 0 ? queue->first : behind(queue, *cursor - 1);

	if (queue->n == 0 || (*cursor != 0 && place == queue->next))
		return NULL;
	const void *message = queue->bytes + place;

	*cursor = place + 1;
	*bytes = queue->bytes + place + sizeof(struct queued);
	return message;
}

void queue_drop(struct queue *queue)
{
	queue->first = behind(queue, queue->first);
	queue->n--;
}
