/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Messages as a stream of bytes: a TCP connection, with TLS or without, or a file, which for lines of JSON may be a FIFO or
 * standard output. It never waits, and comes back by itself: what ends, or cannot be opened, is tried again once a second.
 *
 * Life-cycle: stream_open(), then stream_ready() before each stream_put(), stream_close(). Used by one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "export/outlet.h"
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
	struct tls *tls;      /* NULL: without */
	int fd;		      /* of a connection */
	struct outlet outlet; /* of a file */
	enum stream_state state;
	bool truncate;	     /* a file is emptied when it is opened */
	uint64_t retry_ms;   /* not before */
	uint64_t give_up_ms; /* on what is being set up */
	unsigned sessions;   /* so many were begun */
	struct error why;    /* there is none, or the last one ended */
};

/*
 * `target` outlives the stream. A file is opened here, and emptied if `truncate`; a collector is connected to later, and
 * a FIFO without a reader is opened when there is one. Returns 0 or a negative errno with a line.
 */
int stream_open(struct stream *stream, const struct export_target *target, bool truncate,
	struct error *error);
void stream_close(struct stream *stream);

/* Does what is to be done for a session. True: there is one. `now_ms` is any clock that does not run back. */
bool stream_ready(struct stream *stream, uint64_t now_ms);

/*
 * `begun` bytes of the message that `bytes` goes on with were put before. Returns how many bytes were taken, -EAGAIN for
 * none at the moment, or another negative errno: the session is over, and what was begun is to be sent again in the next
 * one. Of a file what was begun is taken back.
 */
ssize_t stream_put(
	struct stream *stream, const void *bytes, size_t length, size_t begun, uint64_t now_ms);

/* Of a file: takes back the last `begun` bytes, if they are still its last. */
void stream_take_back(struct stream *stream, size_t begun);

/* Has the collector closed the connection, or gone from the FIFO? Then the session is over. */
bool stream_ended(struct stream *stream, uint64_t now_ms);

/* Of a file: opens it by its name anew; `begun` as above. */
void stream_reopen(struct stream *stream, size_t begun, uint64_t now_ms);

/* Waits until something can be taken, at most `ms`. */
void stream_wait(const struct stream *stream, int ms);
