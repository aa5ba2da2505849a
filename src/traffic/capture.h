/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Captures read, packet by packet: pcap by libpcap, pcapng by traffic/capture_pcapng.h; of the link
 * types that packet/link.h lists.
 *
 * A capture is opened, read to its end or to where it breaks, and closed, all by one thread. A
 * packet's bytes stay until the next call. They are without a check sequence where the file says that
 * its packets have one.
 *
 * A pcapng file may mix interfaces of several link types: packets of those that are not read are left
 * out, and the end of the file says how many.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "packet/link.h"

/*
 * A capture's times are whatever its writer put there. Those before 1970 read as 0, those beyond
 * 2^53 - 1 us (June 2255, and what every JSON reader holds exactly) as that. Packets of a pcapng
 * Simple Packet Block have no time and read as 0.
 */
#define CAPTURE_TIME_MAX_US ((UINT64_C(1) << 53) - 1)

/* No packet is longer: what libpcap takes at most from one packet. */
#define CAPTURE_LENGTH_MAX 262144

struct capture;

struct capture_packet {
	const uint8_t *bytes;
	uint32_t length;      /* captured bytes */
	uint32_t wire_length; /* as the capture says; a damaged one may say less than `length` */
	uint64_t time_us;     /* Unix time as written in the capture, microseconds */
	enum link_type link;  /* what the bytes begin with */
};

/*
 * Opens a capture; "-" is standard input. Returns 0 and a capture that the caller closes, or
 * -ENOENT, -EISDIR, -EACCES, -ENODATA (empty file), -EINVAL (not a capture), -EBADMSG (cut or
 * damaged before the first packet), -EPROTONOSUPPORT (a link type that is not read, which the text
 * names, or a later version of the format), each with one clear line that names the file.
 */
int capture_open(struct capture **capture, const char *path, struct error *error);

/*
 * Reads the next packet. Returns 1 with `packet` filled, 0 at the end of the file, -EBADMSG when
 * the capture is cut or damaged: the text says after how many packets and bytes, and why; or
 * -EPROTONOSUPPORT at a section of a later version, or at the end of a file of which packets of other
 * link types were left out. After 0
 * or an error every further call returns the same.
 */
int capture_next(struct capture *capture, struct capture_packet *packet, struct error *error);

/* How far the reading is: bytes read so far, and the file's size (0 when it is not known). */
uint64_t capture_position(const struct capture *capture);
uint64_t capture_size(const struct capture *capture);

/* Accepts NULL. */
void capture_close(struct capture *capture);
