/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where flow records go: a file, standard output or a pipe, through one buffer.
 *
 * In replay the first failure (disk full, reader gone, ...) ends the writing: it is kept with one
 * clear line; after it everything written is dropped and counted, so that the engine can go on and
 * still tell its summary. A reader is waited for, however slow it is.
 *
 * A live output outlasts failures. It appends to its file. While nothing can be written the buffer
 * keeps what it has room for, what comes beyond that is lost and counted, and writing is tried again
 * every so often; a line that was cut goes on where it was cut, so that the file has whole lines and
 * at most, for as long as the failure lasts, a cut one at its end. A FIFO without a reader is such a
 * failure; each new reader of a FIFO begins with a whole line. (What a pipe has taken counts as
 * written: what a reader leaves in it when it goes is gone.) A reader that takes nothing, or not
 * enough, is not waited for: what the buffer has no room for is lost and counted, so that it costs
 * nobody else anything. Only from export_output_hurry() on is it waited for, and for a limited time.
 *
 * Life-cycle: open, write, close. Used by one thread, the exporter, but for the functions that say
 * otherwise. SIGPIPE must be ignored by the process, or blocked in that thread, and SIGXFSZ too where
 * the size of files has a limit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct export_output;

/* Longest record. */
#define EXPORT_OUTPUT_MAX ((size_t)64 * 1024)

/* Why a record is lost that an output was given. */
enum export_loss {
	EXPORT_LOSS_WRITE,  /* nothing could be written: a full disk, a fault of it */
	EXPORT_LOSS_READER, /* the reader of a pipe or FIFO was gone, or took none */
	EXPORT_N_LOSSES,
};

/* How long a live output waits, and what it has room for; where 0, a good number. */
struct export_output_limits {
	unsigned retry_ms; /* between two tries after a failure: 100 */
	unsigned stall_ms; /* in a hurry, for a reader that takes nothing: 2,000 */
	unsigned hurry_ms; /* in a hurry, in all: 60,000 */
	size_t buffer;	   /* bytes, at least EXPORT_OUTPUT_MAX: 32 MiB */
};

/* How it stands with an output, as of one moment. */
struct export_output_state {
	int failure;		   /* the negative errno of why nothing can be written now, or 0 */
	unsigned n_failures;	   /* how often that began */
	unsigned n_reopened;	   /* how often the path was opened anew */
	unsigned n_not_reopened;   /* how often that failed */
	struct error why;	   /* of the last failure */
	struct error not_reopened; /* why the last reopening failed */
};

/*
 * Opens `path` for replay (created or emptied); NULL or "-" is standard output. Returns 0 or a
 * negative errno.
 */
int export_output_open(struct export_output **output, const char *path, struct error *error);

/*
 * Opens `path` for a live engine (created if missing, appended to). A FIFO without a reader is no
 * error: see above. `limits` may be NULL. Returns 0 or a negative errno.
 */
int export_output_open_live(struct export_output **output, const char *path,
	const struct export_output_limits *limits, struct error *error);

/* Appends `length` bytes: one record, its newline included. Never fails: see above. */
void export_output_write(struct export_output *output, const char *bytes, size_t length);

/* Hands on what is buffered; of a live output, as far as that goes without waiting. */
void export_output_flush(struct export_output *output);

/* Does what other threads asked for. Costs next to nothing when they did not. */
void export_output_tend(struct export_output *output);

/*
 * From any thread: a live output with a path is to be opened anew by its name, before long. Only if
 * that works is the old file closed; else writing goes on to it. See the state for how it went.
 */
void export_output_reopen(struct export_output *output);
/* Is that still to be done? */
bool export_output_reopening(const struct export_output *output);

/* From any thread: the end is near; a live output no longer waits for its reader without limit. */
void export_output_hurry(struct export_output *output);

/* From any thread. */
void export_output_state(struct export_output *output, struct export_output_state *state);

/* The path, or "standard output", fit for a line of text. From any thread. */
const char *export_output_name(const struct export_output *output);

/*
 * Records written, and records lost after a failure (whole or in part). What is neither is still in
 * the buffer.
 */
uint64_t export_output_written(const struct export_output *output);
uint64_t export_output_lost(const struct export_output *output);
/* Of these, the ones that were lost for that reason. */
uint64_t export_output_lost_by(const struct export_output *output, enum export_loss loss);

/*
 * Writes what is buffered, a live output in a hurry, and counts what remains as lost. After that
 * only its counters and state can be asked for.
 */
void export_output_end(struct export_output *output);

/*
 * Ends it if need be, and closes. Returns 0, or the negative errno of what failed (of a live output:
 * and still did at the end), with its line in `error`. Accepts NULL.
 */
int export_output_close(struct export_output *output, struct error *error);
