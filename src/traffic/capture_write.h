/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Captures written: pcap files of Ethernet frames, with microseconds.
 *
 * A writer is opened, written to and closed by one thread. It gathers what is written, so that others may see it later:
 * capture_writer_flush().
 */

#include <stdint.h>

#include "base/error.h"

struct capture_writer;

/* Makes the file, or empties it. 0, or a negative errno with a line that names the file. */
int capture_writer_open(struct capture_writer **writer, const char *path, struct error *error);

/* A frame of `length` bytes follows, by capture_writer_add(). 0 or a negative errno, as of every call from then on. */
int capture_writer_begin(struct capture_writer *writer, uint64_t time_us, uint32_t length);
int capture_writer_add(struct capture_writer *writer, const void *bytes, uint32_t n);
int capture_writer_flush(struct capture_writer *writer);

/* 0, or why not all is in the file. Accepts NULL. */
int capture_writer_close(struct capture_writer *writer);
