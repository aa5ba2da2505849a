/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The bytes of a capture on their way from a file, a pipe or standard input to libpcap, as a FILE
 * that knows its position even on a pipe. Used by traffic/capture.c alone, one thread.
 *
 * Four things that libpcap 1.10 refuses or cuts, though the packets can be read, are put right on the
 * way:
 *
 * - A pcapng file whose interfaces have different snapshot lengths (each capture of two interfaces
 *   with different settings, most merged files). Every interface is shown to libpcap without a
 *   limit. A Simple Packet Block needs the limit to say how much of the packet is there; where it
 *   matters the block is shown as an Enhanced Packet Block, which says so itself.
 * - A pcapng file with interfaces of different link types. Every interface is shown as Ethernet,
 *   and the packets of those that are not as blocks of a type that libpcap skips; they are counted
 *   here.
 * - A pcap file with packets longer than its snapshot length. It too is shown without a limit.
 * - A pcap file with a version above 2.4. The magic number, not the version, says what the packet
 *   headers look like.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum capture_format {
	CAPTURE_UNKNOWN,
	CAPTURE_GZIP, /* known for the sake of a better message */
	CAPTURE_PCAP,
	CAPTURE_PCAPNG,
};

/* How far the walk over the blocks of a pcapng file has come, ahead of what libpcap has read. */
struct capture_blocks {
	uint64_t interfaces; /* in all sections */
	uint64_t ethernet;   /* those of link type Ethernet */
	uint64_t foreign_packets;
	uint16_t foreign_link_type; /* of the first interface that is not Ethernet */
	bool ended;		    /* the file ended where a block ends */
};

struct capture_source;

/*
 * Opens `path` ("-" is standard input) and looks at its first bytes. `name` is what error texts call
 * it. Returns 0, or a negative errno as capture_open() does.
 */
int capture_source_open(
	struct capture_source **source, const char *path, const char *name, struct error *error);

enum capture_format capture_source_format(const struct capture_source *source);
const struct capture_blocks *capture_source_blocks(const struct capture_source *source);

/* Size of a regular file, else 0. */
uint64_t capture_source_size(const struct capture_source *source);

/* The bytes as libpcap shall see them; NULL without memory. Closing it leaves the source open. */
FILE *capture_source_stream(struct capture_source *source);

/* Accepts NULL. The stream must be closed by then. */
void capture_source_close(struct capture_source *source);
