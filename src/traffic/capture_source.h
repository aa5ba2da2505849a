/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The bytes of a capture from a file, a pipe or standard input, with a position even on a pipe. Used by
 * traffic/capture.c and capture_pcapng.c alone, one thread.
 *
 * A pcapng file is looked at and skipped through in place. A pcap file is libpcap's to read, from a
 * FILE; two things in its header that libpcap 1.10 would refuse or cut by, though the packets can be
 * read, are put right on the way:
 *
 * - Packets longer than the snapshot length. The file is shown without a limit.
 * - A version above 2.4. The magic number, not the version, says what the packet headers look like.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

enum capture_format {
	CAPTURE_UNKNOWN,
	CAPTURE_PCAP,
	CAPTURE_PCAPNG,
};

/* What a pcap file says in front of all packets, in its own words. */
struct capture_pcap_header {
	uint32_t snaplen;
	uint8_t fcs; /* bytes of check sequence at the end of each packet; 0 = none or not known */
};

struct capture_source;

/*
 * Opens `path` ("-" is standard input) and looks at its first bytes. `name` is what error texts call
 * it. Returns 0, or a negative errno as capture_open() does.
 */
int capture_source_open(
	struct capture_source **source, const char *path, const char *name, struct error *error);

enum capture_format capture_source_format(const struct capture_source *source);

/* Of a pcap file. */
const struct capture_pcap_header *capture_source_pcap(const struct capture_source *source);

/* A compressed file: what unpacks it, and in `name` what packed it. NULL for any other. */
const char *capture_source_unpack(const struct capture_source *source, const char **name);

/* Size of a regular file, else 0. */
uint64_t capture_source_size(const struct capture_source *source);

/*
 * Shows the next bytes of the file, `wanted` of them and what has come along, fewer only at the end of
 * the file. Returns how many, or -1 with errno. They stay until the next look.
 */
ssize_t capture_source_look(struct capture_source *source, size_t wanted, const uint8_t **bytes);

/* Passes over the next `n` bytes. Returns how many there were, fewer at the end or after a failure. */
uint64_t capture_source_skip(struct capture_source *source, uint64_t n);

/* Did reading ever fail, or was it always the end of the file? */
bool capture_source_failed(const struct capture_source *source);

/* Bytes that were passed over, or read from the stream. */
uint64_t capture_source_position(const struct capture_source *source);

/* A pcap file as libpcap shall see it; NULL without memory. Closing it leaves the source open. */
FILE *capture_source_stream(struct capture_source *source);

/* Accepts NULL. The stream must be closed by then. */
void capture_source_close(struct capture_source *source);
