/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The bytes of an FPM connection as messages: frames, each with a header of four bytes (version, type, length with the
 * header in network order) and netlink messages. Nothing is believed of the peer. One thread's.
 */

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/message.h"
#include "host/mirror.h"

#define FRAMES_BYTES (256 << 10)

struct frames {
	struct mirror *mirror; /* outlives it */
	uint64_t messages, skipped;
	/* a removal of a route that waits for the next message */
	bool holds;
	struct message_route held; /* the route that it removes */
	size_t n;		   /* bytes that are there */
	char bytes[FRAMES_BYTES];
	union {
		struct nlmsghdr first;
		char bytes[UINT16_MAX + 1];
	} frame; /* one frame's messages, aligned */
	union {
		struct nlmsghdr message;
		char bytes[UINT16_MAX + 1];
	} removal;
};

/* A new connection begins. */
void frames_begin(struct frames *frames, struct mirror *mirror);
/* Returns the room for the next bytes, and its size; frames_take() takes them. */
static inline char *frames_room(struct frames *frames, size_t *room)
{
	*room = sizeof(frames->bytes) - frames->n;
	return frames->bytes + frames->n;
}

/* `n` more bytes are there: gives the mirror what is complete. 0 or -EBADMSG: the peer does not keep to the protocol. */
int frames_take(struct frames *frames, size_t n);
/* The removal that waits takes place. */
void frames_flush(struct frames *frames);
