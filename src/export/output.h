/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Where flow records go: a file, standard output or a pipe, through one buffer.
 *
 * The first failure (disk full, reader gone, ...) is kept with one clear line; after it everything
 * written is dropped and counted, so that the engine can go on and still tell its summary. SIGPIPE
 * must be ignored by the process. Used by one thread, the exporter.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct export_output;

/* Opens `path` for writing (created or emptied); NULL or "-" is standard output. */
int export_output_open(struct export_output **output, const char *path, struct error *error);

/* Appends `length` bytes: one record, its newline included. Never fails: see above. */
void export_output_write(struct export_output *output, const char *bytes, size_t length);

/* Hands on what is buffered. */
void export_output_flush(struct export_output *output);

/* Records written, and records lost after a failure (whole or in part). */
uint64_t export_output_written(const struct export_output *output);
uint64_t export_output_lost(const struct export_output *output);

/*
 * Flushes and closes. Returns 0, or the negative errno of the first failure, with its line in
 * `error`. Accepts NULL.
 */
int export_output_close(struct export_output *output, struct error *error);
