/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Whole files in memory. Any thread. */

#include <stddef.h>

/*
 * Reads all that `path` has, which may be a pipe: `*size` bytes, with room for one more behind them. The caller frees
 * `*text`, also when it failed. 0; -EFBIG: there are more than `most` bytes; or another negative errno.
 */
int file_read_all(const char *path, size_t most, char **text, size_t *size);
