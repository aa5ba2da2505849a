/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Whole files: read into memory, and replaced. Any thread. */

#include <stddef.h>

/*
 * Reads all that `path` has, which may be a pipe: `*size` bytes, with room for one more behind them. The caller frees
 * `*text`, also when it failed. 0; -EFBIG: there are more than `most` bytes; or another negative errno.
 */
int file_read_all(const char *path, size_t most, char **text, size_t *size);

/*
 * Puts `size` bytes in the place of the file at `path`, so that a reader gets all of the old bytes or all of the new ones,
 * also after a crash or a loss of power: they are written to a file beside it, which then takes its name. Owner and
 * mode stay as they were, as far as the process may set them; a file that was not there gets mode 0600. Of a symbolic
 * link the file that it leads to is replaced. 0 or a negative errno, and then the old file is there still.
 */
int file_replace(const char *path, const char *bytes, size_t size);
