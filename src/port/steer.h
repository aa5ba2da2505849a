/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Steering: which shard a key belongs to. It is a function of the key alone, the same for every
 * lcore and at all times, so that no flow is ever in two shards.
 *
 * Without RSS the shard is a slice of the key's keyed hash. Where a port spreads packets by symmetric
 * RSS (port/rss.h), the function is that of the NIC: then packets of the kinds that it spreads arrive
 * where they belong, and nobody needs to compute it for them. That they do is checked for every packet
 * that begins a flow (dataplane/learn.h); everything else, fragments and what is not plain, is steered by computing.
 * By configuration it is the keyed hash all the same: with that of the NIC flows can be aimed at one shard (port/rss.h).
 *
 * Set once, read by all.
 */

#include <stdbool.h>

#include "packet/extract.h"
#include "port/rss.h"

struct steer {
	unsigned n_shards;
	uint16_t rss_pattern; /* 0: the shard is not the NIC's to choose */
};

static inline unsigned steer_shard(const struct steer *steer, const struct packet_info *info)
{
	if (steer->n_shards == 1)
		return 0;
	if (steer->rss_pattern != 0)
		return rss_queue(rss_hash(steer->rss_pattern, &info->key), steer->n_shards);
	return hash_shard(info->hash, steer->n_shards);
}

/*
 * Trust in a port's RSS, as one lcore has it of one queue: packets of the kinds that it is trusted with are where they
 * belong, and their shard is not computed. It is lost, for one kind, when TRUST_PACKETS plain packets that begin flows
 * came to the wrong worker within TRUST_WINDOW_US: one or two may be a stranger's, made so that the NIC reads them
 * otherwise. It is tried again after a second, doubled each time up to ten minutes; after a second again where it has
 * held for ten times as long as it was lost. Whether it is trusted or not, each packet comes to its own shard.
 *
 * Pure; used by one thread.
 */
#define TRUST_PACKETS 16
#define TRUST_WINDOW_US UINT64_C(10000000)
#define TRUST_FIRST_US UINT64_C(1000000)
#define TRUST_MOST_US UINT64_C(600000000)

struct trust_kind {
	uint64_t since_us; /* of the first packet of those that are counted, or when it was lost */
	uint64_t again_us; /* when it is trusted again, or was last */
	uint64_t back_off_us; /* of the last time; 0: there was none */
	uint32_t misplaced;
};

/* Zeroed at the start. */
struct trust {
	uint8_t lost; /* bit by enum rss_kind */
	struct trust_kind kind[RSS_N_KINDS];
};

/* A plain packet of that kind began a flow, and is another worker's. True: with this one trust is lost. */
bool trust_misplaced(struct trust *trust, enum rss_kind kind, uint64_t now_us);

/* The kinds that are trusted again from now on: a bit for each. */
uint8_t trust_again(struct trust *trust, uint64_t now_us);
