/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Steering: which shard a key belongs to. It is a function of the key alone, the same for every
 * station and at all times, so that no flow is ever in two shards.
 *
 * Without RSS the shard is a slice of the key's keyed hash. Where a port spreads packets by symmetric
 * RSS (port/rss.h), the function is that of the NIC: then packets of the kinds that it spreads arrive
 * where they belong, and nobody needs to compute it for them. That they do is checked for every packet
 * that begins a flow (path/worker.h); everything else, fragments and what is not plain, is steered by computing.
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
