/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Messages as a stream of bytes: a TCP connection, with TLS or without, or a file. It never waits, and comes back by
 * itself: a connection that ends, or cannot be made, is tried again once a second.
 *
 * Life-cycle: stream_open(), then stream_ready() before each stream_put(), stream_close(). Used by one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "export/resolve.h"
#include "export/target.h"

struct tls;

enum stream_state {
	STREAM_DOWN,
	STREAM_CONNECTING,
	STREAM_SHAKING, /* TLS */
	STREAM_UP,
};

struct stream {
	const struct export_target *target;
	struct resolved to;
	struct tls *tls; /* NULL: without */
	int fd;
	enum stream_state state;
	bool truncate;	     /* a file is emptied when it is opened */
	uint64_t retry_ms;   /* not before */
	uint64_t give_up_ms; /* on what is being set up */
	uint64_t whole;	     /* of a file: bytes of whole messages */
	unsigned sessions;   /* so many were begun */
	struct error why;    /* there is none, or the last one ended */
};

/*
 * `target` outlives the stream. A file is opened here, and emptied if `truncate`; a collector is connected to later.
 * Returns 0 or a negative errno with a line.
 */
int stream_open(struct stream *stream, const struct export_target *target, bool truncate,
	struct error *error);
void stream_close(struct stream *stream);

/* Does what is to be done for a session. True: there is one. `now_ms` is any clock that does not run back. */
bool stream_ready(struct stream *stream, uint64_t now_ms);

/*
 * Returns how many bytes were taken, -EAGAIN for none at the moment, or another negative errno: the session is over, and
 * what was begun is to be sent again in the next one. Of a file what was begun is taken back.
 */
ssize_t stream_put(struct stream *stream, const void *bytes, size_t length, uint64_t now_ms);
/* What was put until here is a whole message. */
void stream_whole(struct stream *stream);

/* Has the collector closed the connection? Then the session is over. */
bool stream_ended(struct stream *stream, uint64_t now_ms);

/* Of a file: opens it by its name anew. */
void stream_reopen(struct stream *stream, uint64_t now_ms);

/* Waits until something can be taken, at most `ms`. */
void stream_wait(const struct stream *stream, int ms);
