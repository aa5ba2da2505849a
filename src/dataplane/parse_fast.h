/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Parses packets of the worker that receives them, without a note in the packet: for the stages that are compiled once
 * per SIMD level. What is not a whole packet of a flow that surely belongs here is for the parser (dataplane/parse.h).
 */

#include "dataplane/account.h"
#include "dataplane/pipeline.h"
#include "packet/extract_common.h"
#include "port/rss.h"

/* Every kind of packet that RSS may be trusted with. */
#define PARSE_ALL_KINDS ((1u << RSS_N_KINDS) - 1)

/* What all packets of a burst share. */
struct parse_fast {
	struct common common;
	unsigned kinds; /* that RSS is trusted with */
};

static inline struct parse_fast parse_fast_of(const struct lcore *lcore, const struct arrival *from)
{
	return (struct parse_fast){
		.common = {.wire = from->domain,
			.zone_vlan = lcore->zone_vlan,
			.flags = from->place != 0 ? PACKET_SIDE : 0},
		.kinds = lcore->worker.steer.n_shards == 1 ? PARSE_ALL_KINDS : from->trusted,
	};
}

/* A packet that is not common; its flags, or 0 when it is for the parser. */
static __rte_noinline uint8_t parse_rare(const struct lcore *lcore, const struct rte_mbuf *packet,
	unsigned domain, uint8_t flags, struct packet_info *info)
{
	const struct extract_options options = {
		.secret = lcore->secret, .zone_vlan = lcore->zone_vlan};

	/* those may have to be held, told to another flow, or dropped */
	if (extract(&options, packet, domain, info) != EXTRACT_IP || account_is_rare(info))
		return 0;
	/* the NIC may have made its hash of something else: the packet's shard is to be computed */
	if (lcore->worker.steer.n_shards > 1 && info->flags & (PACKET_CUT | PACKET_UNPLAIN))
		return 0;
	/* PACKET_CUT, or nothing but that there are ports: never 0 with this one */
	info->flags |= flags;
	return info->flags | PACKET_SIDE;
}

/* The packet's flags, or 0 when it is for the parser. */
static __rte_always_inline uint8_t parse_one(const struct lcore *lcore,
	const struct parse_fast *parse, const struct rte_mbuf *packet, struct packet_info *info)
{
	uint8_t flags = extract_common(&parse->common, packet, info);

	if (unlikely(flags == 0)) {
		flags = parse_rare(
			lcore, packet, (unsigned)parse->common.wire, parse->common.flags, info);
		if (flags == 0)
			return 0;
	}
	if (parse->kinds != PARSE_ALL_KINDS && !(parse->kinds >> rss_kind(&info->key) & 1))
		return 0;
	return flags;
}

/* So many packets of a burst were taken, and `burst->bytes` are theirs. */
static inline void parse_count(struct lcore *lcore, const struct burst *burst, unsigned n)
{
	struct path_counters *counters = &lcore->worker.counters[burst->from.domain];

	counters->received += n;
	counters->received_bytes += burst->bytes;
	lcore->ports[burst->from.port].rx_bytes += burst->bytes;
}
