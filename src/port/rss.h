/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Symmetric RSS: the NIC spreads packets over queues by a hash that is the same for both directions of
 * a flow, and that we can compute too. It is Toeplitz with a key that repeats one pattern of 16 bits
 * (S. Woo, K. Park, "Scalable TCP session monitoring with symmetric receive-side scaling", 2012), for
 * which swapping addresses and ports changes nothing. The hash is good for choosing a queue and for
 * nothing else: it has 16 bits.
 *
 * The pattern is chosen at start, but it keeps nobody from aiming flows at one queue: the hash is a function of the
 * XOR of all 16-bit words of addresses and ports, and flows for which that is the same (addresses x.x.0.n with ports
 * n ^ c) have one queue under every pattern. Where that matters shards are chosen by the keyed hash
 * (plane/plane.h, PLANE_SHARDING_SOFTWARE); a worker that has far more than its share is told. Not every
 * pattern spreads well. Those taken here, 5,344 of them, send any 256 neighbours, addresses or ports, to
 * the 128 entries of the table two each. (0x6d5a, which many use, does not.)
 *
 * Which fields go into the hash depends on the kind of packet; a NIC may spread some kinds and leave
 * others on queue 0.
 */

#include <stdint.h>

#include <netinet/in.h>

#include "packet/key.h"

#define RSS_KEY_BYTES 52
#define RSS_RETA_MAX 512

enum rss_kind {
	RSS_IPV4_TCP,
	RSS_IPV4_UDP,
	RSS_IPV4_SCTP,
	RSS_IPV4_OTHER, /* addresses alone */
	RSS_IPV6_TCP,
	RSS_IPV6_UDP,
	RSS_IPV6_SCTP,
	RSS_IPV6_OTHER,
	RSS_N_KINDS,
};

/* A pattern out of 16 random bits; never 0. */
uint16_t rss_pattern(uint16_t random);

/* The key that repeats it. */
void rss_key(uint16_t pattern, uint8_t key[RSS_KEY_BYTES]);

/* The kind that a key's packets are of, when they are not fragments. */
static inline enum rss_kind rss_kind(const struct flow_key *key)
{
	/* without a branch: which protocol comes next is anybody's guess */
	unsigned kind = key->proto == IPPROTO_TCP    ? RSS_IPV4_TCP
			: key->proto == IPPROTO_UDP  ? RSS_IPV4_UDP
			: key->proto == IPPROTO_SCTP ? RSS_IPV4_SCTP
						     : RSS_IPV4_OTHER;

	return (enum rss_kind)(kind + (flow_key_version(key) == 4 ? RSS_IPV4_TCP : RSS_IPV6_TCP));
}

/* The hash that the NIC makes of packets with this key, in either direction. */
uint32_t rss_hash(uint16_t pattern, const struct flow_key *key);

/* The RTE_ETH_RSS_* flags that make a NIC spread these kinds, and the kinds that its flags allow. */
uint64_t rss_flags(uint64_t kinds);
uint64_t rss_kinds(uint64_t flow_type_rss_offloads);

/* Entry `i` of the indirection table of a port whose packets go to `n` queues. */
static inline uint16_t rss_queue(uint32_t hash, unsigned n)
{
	/* every table has a multiple of 128 entries or divides it, filled with (i % 128) % n */
	return (uint16_t)((hash & 127) % n);
}
