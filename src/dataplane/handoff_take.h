/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Parsed packets enter the pipeline here: those that other lcores handed to this one through the rings
 * (dataplane/handoff.h), and those of its own parser.
 */

#include "dataplane/lcore.h"

/* Called by the parser of an lcore: gives packets to the lcore of that shard, which may be the same lcore. */
void handoff_to_shard(void *lcore, unsigned shard, struct rte_mbuf **packets, unsigned n);

/* Takes what others handed to this lcore. True when there was something. */
bool handoff_take(struct lcore *lcore);
