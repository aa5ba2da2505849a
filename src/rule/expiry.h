/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A timing wheel for numbered entries: each may be filed under the second at which it is due.
 *
 * Three levels of 256 slots (1 s, 256 s and 65,536 s wide) hold doubly linked lists of positions.
 * Filing and taking off are O(1); an entry moves down a level at most twice before it is due. An
 * entry due later than 194 days from now is filed again each time that its slot comes up.
 *
 * The owner gives the memory for the links, one for each position, and keeps it until the end. All
 * calls belong to one thread. Times are whole seconds of the run and never go back.
 */

#include <stdbool.h>
#include <stdint.h>

#define EXPIRY_NONE UINT32_MAX
#define EXPIRY_LEVELS 3
#define EXPIRY_SLOTS 256

struct expiry_link {
	uint32_t prev, next; /* positions */
	uint32_t due_s;
	uint32_t slot; /* level * EXPIRY_SLOTS + slot; EXPIRY_NONE: not filed */
};

struct expiry {
	struct expiry_link *links;
	uint64_t now_s;		       /* all that was due until then has been told */
	uint32_t filed[EXPIRY_LEVELS]; /* entries by level */
	uint32_t head[EXPIRY_LEVELS * EXPIRY_SLOTS];
};

/* Told for each entry that is due; it is off the wheel then, and may be filed again. */
typedef void (*expiry_due_fn)(void *context, uint32_t position);

/* An empty wheel at second 0; `n` links become unfiled. */
void expiry_init(struct expiry *expiry, struct expiry_link *links, uint32_t n);

/* Files an entry that is not filed. A second that has passed counts as the next one. */
void expiry_add(struct expiry *expiry, uint32_t position, uint32_t due_s);

/* Takes an entry off; does nothing when it is not filed. */
void expiry_remove(struct expiry *expiry, uint32_t position);

/* Moves on to `now_s` and tells every entry that is due by then, earlier seconds first. */
void expiry_advance(struct expiry *expiry, uint64_t now_s, expiry_due_fn due, void *context);
