/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A line that tells how far a long piece of work has come. It appears on a terminal only, not before
 * half a second has passed, and leaves nothing behind. Used by one thread; cheap enough for once a
 * burst.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *stream;
	bool on;
	bool shown;
	uint64_t size;	   /* bytes to read in all, 0 = not known */
	uint64_t begin_us; /* by the monotonic clock, as the next one */
	uint64_t next_us;  /* not again before */
};

/*
 * Begins. `wanted` false keeps it silent: say so when the same terminal shows something else
 * meanwhile.
 */
void progress_start(struct progress *progress, FILE *stream, uint64_t size, bool wanted);

/* So many bytes and packets have been read. */
void progress_update(struct progress *progress, uint64_t position, uint64_t packets);

/* Erases the line; call before anything else is printed. It comes back with the next update. */
void progress_clear(struct progress *progress);
