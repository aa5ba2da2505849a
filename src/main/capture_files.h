/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The capture files that rules copy packets to (`sample`). Each worker of the plane hands its copies over in a mailbox;
 * a thread of its own writes them, one for all files. When the disk is slow the mailboxes are full: then workers lose
 * copies, which they count, and no time.
 *
 * All functions are for the thread that makes the engine.
 */

#include "base/error.h"
#include "plane/plane.h"

struct capture_files;

/* Makes the files, or empties them. 0, or a negative errno with a line; nothing was made then but files. */
int capture_files_open(
	struct capture_files **files, char *const *paths, unsigned n, struct error *error);

/* Told of lines for the user, from any thread. */
typedef void (*capture_files_say_fn)(void *context, const char *line);

/* Begins to write what the plane's workers copy. 0 or a negative errno with a line. */
int capture_files_start(struct capture_files *files, struct plane *plane, capture_files_say_fn say,
	void *context, struct error *error);

/*
 * Writes what is left and tells what is in each file. The workers have ended, and the plane is there still. Accepts NULL.
 */
void capture_files_destroy(struct capture_files *files);
