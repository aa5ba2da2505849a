/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Seeded packet streams: N flows whose packets are a function of a configuration and a number, so that
 * the same words give the same bytes on every machine, and any thread can write any packet without
 * having to remember one. The simulated NIC sends them, the benches and generators count on them.
 *
 * A flow has two streams, one a direction: stream 2 * flow + side. No two flows of a set share a key.
 * A stream's packets are all alike: same headers, same length; the payload is zeros. Checksums are
 * right (IPv4 header, TCP, UDP, SCTP's CRC-32c, ICMP). TCP streams are of connections that nobody saw
 * begin: ACK, the same numbers in each packet.
 *
 * A set does not change after it was made: any number of threads may use one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STREAM_MAX_FLOWS (1u << 26)
#define STREAM_MIN_BYTES 64
#define STREAM_MAX_BYTES 9216

enum stream_proto {
	STREAM_UDP,
	STREAM_TCP,
	STREAM_SCTP,
	STREAM_ICMP, /* echo request forward, echo reply back: ICMP or ICMPv6 */
	STREAM_N_PROTOS,
};

enum stream_sides {
	STREAM_FORWARD = 1,
	STREAM_REVERSE = 2,
	STREAM_BOTH = 3,
};

struct stream_config {
	uint32_t flows; /* 1 to STREAM_MAX_FLOWS */
	uint64_t seed;  /* of whatever is drawn; addresses and ports do not depend on it */
	/* How many of 256 flows are of each kind, spread evenly over their numbers; a share of protocols
	 * that is all 0 means UDP alone, else their sum is 256. */
	uint16_t proto_share[STREAM_N_PROTOS];
	uint16_t ipv6_share; /* 0 to 256 */
	uint16_t vlan_share; /* 0 to 256: one tag, its number drawn from 1 to 4094 by flow */
	/* Lengths in frame bytes without FCS, as everywhere. A flow's is drawn once from size_min to
	 * size_max (0: STREAM_MIN_BYTES), or with `imix` 7 : 4 : 1 of 64, 594 and 1518. */
	uint16_t size_min, size_max;
	bool imix;
};

struct stream_set;

/* Returns 0; -EINVAL with a text that names the word at fault; -ENOMEM. */
int stream_set_create(
	struct stream_set **set, const struct stream_config *config, struct error *error);

/* Accepts NULL. */
void stream_set_destroy(struct stream_set *set);

const struct stream_config *stream_set_config(const struct stream_set *set);

/* Length of the stream's frames, in bytes. */
uint16_t stream_length(const struct stream_set *set, uint32_t stream);

/*
 * Writes the stream's frame, stream_length() bytes, and returns its length. A single look at a line or
 * two of templates, some arithmetic, and the stores: what a burst calls is stream_write() in
 * traffic/stream_write.h, this is the same out of line.
 */
uint16_t stream_frame(const struct stream_set *set, uint32_t stream, uint8_t *frame);

/* True when all frames of the set are plain UDP over IPv4 of one length: the benches' usual set. */
bool stream_set_is_plain(const struct stream_set *set);
