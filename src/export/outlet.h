/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The far end of an output: one open file, FIFO, pipe, terminal or socket, and how bytes go into it.
 * No buffer and no policy; export/output.h has both.
 *
 * A patient outlet (replay) writes as any program does: it waits for its reader, and a file is
 * emptied when it is opened. An impatient one (a live engine) never waits: what would block says
 * -EAGAIN. It appends to a file, and ends a line that an earlier writer left cut. A FIFO that nobody
 * reads it does not open at all (-ENXIO), so that no opening waits either.
 *
 * An inherited standard output is not made non-blocking, since others may write to it too: a pipe or
 * terminal is opened once more through /proc where that works, and otherwise written to in pieces
 * that fit whenever poll() says that there is room.
 *
 * Life-cycle: outlet_open(), then everything else, then outlet_close(). The memory is the caller's.
 * Used by one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct outlet {
	int fd;		/* -1: not open */
	bool ours;	/* opened here, hence closed here */
	bool impatient; /* see above */
	bool file;	/* a regular file */
	bool fifo;	/* has a name, so a reader may come and go */
	bool socket;
	bool terminal; /* somebody watches */
	bool pieces;   /* blocks unless written to in pieces */
	bool binary;   /* no lines: none is ended that is cut. Set by the user, once it is open */
	bool begun;    /* something was written */
};

/* NULL is standard output. Returns 0 or a negative errno; `fd` is then -1. */
int outlet_open(struct outlet *outlet, const char *path, bool impatient);

/* Would a new outlet_open() by the same name make a difference? A file or FIFO with a name. */
bool outlet_reopens(const struct outlet *outlet);

/* Writes once. Returns how many bytes were taken, at least 1, or a negative errno. */
ssize_t outlet_put(struct outlet *outlet, const char *bytes, size_t length);

/* Waits until something can be taken, at most `ms`. */
void outlet_wait(const struct outlet *outlet, int ms);

/* Has the reader gone, if that can be told without writing? */
bool outlet_deserted(const struct outlet *outlet);

/*
 * Takes the last `length` bytes out of a file again, if they are still its last. Returns whether they
 * are gone.
 */
bool outlet_take_back(struct outlet *outlet, size_t length);

/* Returns 0 or a negative errno: some file systems tell only now that there was no room. */
int outlet_close(struct outlet *outlet);
