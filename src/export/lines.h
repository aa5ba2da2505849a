/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Lines waiting to be written: a buffer of whole lines from which bytes are taken in pieces of any
 * size. The line that is cut by that, of which a part is taken, stays in the buffer from its begin.
 *
 * Life-cycle: lines_init(), lines_fini(); the buffer is its own. Used by one thread.
 */

#include <stdbool.h>
#include <stddef.h>

struct lines {
	char *buffer;
	size_t size;
	size_t line;   /* where the first line begins */
	size_t start;  /* what is not taken: at the begin of the first line, or within it */
	size_t length; /* end of the bytes */
	size_t n;      /* lines not taken to their end */
};

/* A buffer of `size` bytes. Returns 0 or -ENOMEM. */
int lines_init(struct lines *lines, size_t size);
void lines_fini(struct lines *lines);

/* Is there room for `length` bytes? May move what is there. */
bool lines_fit(struct lines *lines, size_t length);

/* Appends a line, its newline included, for which there is room. */
void lines_add(struct lines *lines, const char *bytes, size_t length);

/* What is not taken; NULL when that is nothing. */
const char *lines_bytes(const struct lines *lines, size_t *length);

/* Takes `length` bytes from the front; returns how many lines end in them. */
size_t lines_take(struct lines *lines, size_t length);

/* Of the line that is cut: how many bytes are still to be taken, and how many are taken; 0 if none. */
size_t lines_cut_rest(const struct lines *lines);
size_t lines_cut_begin(const struct lines *lines);

/* The cut line is whole again, or forgotten. */
void lines_cut_restore(struct lines *lines);
void lines_cut_drop(struct lines *lines);

/* Forgets everything; returns how many lines that were. */
size_t lines_clear(struct lines *lines);
