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

/*
 * A frame of `length` bytes follows, by capture_writer_add(). 0 or a negative errno, as of every call from then on, but for
 * -EMSGSIZE: the frame is too long for a capture.
 */
int capture_writer_begin(struct capture_writer *writer, uint64_t time_us, uint32_t length);
int capture_writer_add(struct capture_writer *writer, const void *bytes, uint32_t n);
int capture_writer_flush(struct capture_writer *writer);
/* Those that are in the file, whole; a file ends with the last of them, also where there was no room for the next one. */
uint64_t capture_writer_frames(const struct capture_writer *writer);

/* 0, or why not all is in the file. Accepts NULL. */
int capture_writer_close(struct capture_writer *writer);
