/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A connection to a running engine, as docs/control.md has it: a greeting, one request, and the lines of
 * its answer, each read when it is asked for. Memory is that of the longest line.
 *
 * Life-cycle: cli_client_open(), cli_client_ask(), cli_client_next() until it returns no line,
 * cli_client_close(). A client belongs to one thread. Whatever comes from the other side is taken for
 * what somebody might have made up.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

/* The longest line of an answer, without its newline. */
#define CLI_LINE_MAX 1048576

struct cli_client {
	int fd;
	const char *path;
	/* Stop waiting for lines when nobody reads this descriptor any more; -1: none. */
	int reader;
	bool instant; /* nothing is waited for: cli_client_start() */
	char *buffer;
	size_t size, start, end; /* what is there but not taken: start to end */
	json_t *json;		 /* of the line taken last */
};

/* What cli_client_next() found. */
struct cli_line {
	const char *text; /* as it came, without its newline; until the next call */
	size_t length;
	const json_t *json; /* an object; until the next call */
};

/*
 * Connects and reads the greeting. `path` NULL: $XDG_RUNTIME_DIR/millrace.sock, else
 * /run/millrace.sock; it has to live as long as the client. Returns 0 or a negative errno with a line
 * that says what to do. cli_client_close() in every case.
 */
int cli_client_open(struct cli_client *client, const char *path, struct error *error);

/*
 * As cli_client_open(), but waits for nothing: requests may be sent at once, and the first line that comes is the
 * greeting, for cli_client_greeted(). As long as no whole line is there, cli_client_next() returns -EAGAIN.
 */
int cli_client_start(struct cli_client *client, const char *path, struct error *error);

/* Is the first line the greeting of an engine that this program can ask? Returns 0 or -EPROTO with a line. */
int cli_client_greeted(
	const struct cli_client *client, const json_t *greeting, struct error *error);

/* Sends a request. -E2BIG when it is longer than an engine reads. */
int cli_client_ask(
	struct cli_client *client, const char *ask, const json_t *with, struct error *error);

/*
 * Waits for the next line. Returns 1 with a line of the answer, 0 with the one that ends it, -EPIPE
 * when `reader` has gone, or another negative errno with a line.
 */
int cli_client_next(struct cli_client *client, struct cli_line *line, struct error *error);

void cli_client_close(struct cli_client *client);
