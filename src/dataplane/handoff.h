/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Hands packets and notes from one lcore to another through the rings between them (dataplane/ring.h). What a
 * ring has no room for is dropped, and counted.
 */

#include "dataplane/lcore.h"

/* Hands packets and notes to another lcore, and counts them. */
void handoff_to_lcore(struct lcore *lcore, unsigned to, struct rte_mbuf **packets, unsigned n);

/* Called by the parser of an lcore: gives packets to the lcore of that shard, which may be the same lcore. */
void handoff_to_shard(void *lcore, unsigned shard, struct rte_mbuf **packets, unsigned n);

/* Takes what others handed to this lcore. True when there was something. */
bool handoff_take(struct lcore *lcore);
