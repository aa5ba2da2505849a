/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Seeded packet streams: N flows whose packets are a function of a configuration and a number, so that
 * the same words give the same bytes on every machine, and any thread can write any packet without
 * having to remember one. The simulated NIC sends them, the benches and generators count on them.
 *
 * A flow has two streams, one a direction: stream 2 * flow + side. No two flows of a set share a key,
 * nor the pair of their addresses: each pair belongs to one flow, whatever set it is in.
 * A stream's packets are all alike: same headers, same length; the payload is zeros. Checksums are
 * right (IPv4 header, TCP, UDP, SCTP's CRC-32c, ICMP). TCP streams are of connections that nobody saw
 * begin: ACK, the same numbers in each packet.
 *
 * How a flow's ends are named (the initiator is called client):
 *	client	10.64.0.0/10 or 2001:db8:1::/48; port 32768 to 65535, changing with the flow
 *	server	10.0.0.0/16 or 198.18.0.0/16, that is below or above the client, as chance has it;
 *		2001:db8::/48 or 2001:db8:ffff::/48; port 5001
 * ICMP has an identifier in place of the client's port.
 *
 * A set does not change after it was made: any number of threads may use one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define STREAM_MAX_FLOWS (1u << 26)
#define STREAM_MIN_BYTES 64
#define STREAM_MAX_BYTES 9216
#define STREAM_NONE UINT32_MAX

enum stream_proto {
	STREAM_UDP,
	STREAM_TCP,
	STREAM_SCTP, /* a DATA chunk */
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
	uint64_t seed;	/* of whatever is drawn; addresses and ports do not depend on it */
	/* How many of 256 flows are of each kind, exactly so among any 256 flows in a row, spread evenly,
	 * and each as likely with the others as alone. Shares of protocols that are all 0 mean UDP
	 * alone, else their sum is 256. */
	uint16_t proto_share[STREAM_N_PROTOS];
	uint16_t ipv6_share; /* 0 to 256 */
	uint16_t vlan_share; /* 0 to 256: one tag, its number drawn from 1 to 4094 by flow */
	/* Lengths in frame bytes without FCS, as everywhere. A flow's is drawn once from size_min (0:
	 * STREAM_MIN_BYTES) to size_max (0: size_min), or with `imix` 7 : 4 : 1 of 64, 594 and 1518.
	 * A frame too short for its flow's headers is as long as these (at most 90 bytes). */
	uint16_t size_min, size_max;
	bool imix;
};

struct stream_set;

/* Returns 0; -EINVAL with a text that names the word at fault; -ENOMEM. */
int stream_set_create(
	struct stream_set **set, const struct stream_config *config, struct error *error);

/* Accepts NULL. */
void stream_set_destroy(struct stream_set *set);

/* Length of the stream's frames, in bytes. */
uint16_t stream_length(const struct stream_set *set, uint32_t stream);

/*
 * Writes the stream's frame, stream_length() bytes, and returns its length. A single look at a line or
 * two of templates, some arithmetic, and the stores: what a burst calls is stream_write() in
 * traffic/stream_write.h, this is the same out of line.
 */
uint16_t stream_frame(const struct stream_set *set, uint32_t stream, uint8_t *frame);

/*
 * The only stream that may send from `src` to `dst`, 4 or 16 bytes each by IP version; STREAM_NONE when
 * none does. A handful of operations, however many streams there are: a rule that names both addresses
 * need not be compared with every stream.
 */
uint32_t stream_find(
	const struct stream_set *set, unsigned version, const uint8_t *src, const uint8_t *dst);

/* True when all frames of the set are UDP over IPv4, or all TCP over IPv4, of one length: the benches' sets. */
bool stream_set_is_plain(const struct stream_set *set);
