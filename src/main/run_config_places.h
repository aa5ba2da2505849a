/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where the keys of a file in YAML stand: a first, light pass over it, so that whatever is found wrong
 * later can be told with its line.
 *
 * The pass refuses what no configuration needs and what a reader could choke on: aliases (a few lines
 * that stand for millions), deep nesting, keys said twice, keys that are not words, zero bytes, more
 * than one document. What the keys are called, and what may stand there, it does not know.
 *
 * A path says where in the file's structure: "timeouts.udp-new", "wires[0][1]"; the whole file is "".
 *
 * Life-cycle: run_places_read(), run_places_destroy(). The bytes need not outlive the first.
 */

#include <stddef.h>

#include "base/error.h"

#define RUN_PATH_MAX 192
#define RUN_KEY_MAX 48 /* a longer key is cut where it is shown */

/* "FILE:LINE: PATH:", as complaints begin. */
#define RUN_WHERE_MAX 384

struct run_places;

/* `name` is the file's, for people; copied. Returns 0, -EBADMSG or -ENOMEM with a line. */
int run_places_read(struct run_places **places, const char *name, const char *bytes, size_t size,
	struct error *error);
/* Accepts NULL. */
void run_places_destroy(struct run_places *places);

/* The line of what stands at `path`; 0: nothing does. */
unsigned run_places_line(const struct run_places *places, const char *path);

/* "FILE:LINE: PATH:" of what stands at `path`; without the line where nothing does. Returns `where`. */
const char *run_places_where(
	const struct run_places *places, const char *path, char where[RUN_WHERE_MAX]);
