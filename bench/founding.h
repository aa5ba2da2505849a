/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The founding algorithm, rebuilt by us from its description (docs/benchmarks.md): one record for both
 * directions, found by a sorted 6-tuple. For each packet by itself: the tuple is parsed into a key, the
 * key looked up in rte_table_hash_ext with a CRC, the record updated and moved to the end of a list by
 * last use. First come, first served: when it is full, new flows go unrecorded.
 *
 * What is left out is what it did with a NIC, and the end of flows that are idle longer than a bench
 * lasts; the oldest is looked at once a burst.
 *
 * Owned by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct founding;

/*
 * For `capacity` flows, with its table from the heap of `socket`. The key lies in each packet's private
 * area, 64 bytes of it. 0 or -ENOMEM.
 */
int founding_create(struct founding **founding, uint32_t capacity, int socket);
/* Accepts NULL. */
void founding_destroy(struct founding *founding);

/*
 * Accounts `n` packets that arrived at `now`. Without `listed` records stay where they are in the list:
 * not what it did, but what is left when the list, its dearest part with many flows, is done without.
 */
void founding_burst(struct founding *founding, struct rte_mbuf **packets, unsigned n, uint64_t now,
	bool listed);

/* Flows that have a record. */
uint32_t founding_flows(const struct founding *founding);
