/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Hands packets and notes from one station to another through the rings between them (dataplane/ring.h). What a
 * ring has no room for is dropped, and counted.
 */

#include "dataplane/station.h"

/* Hands packets and notes to another station, and counts them. */
void handoff_to_station(
	struct station *station, unsigned to, struct rte_mbuf **packets, unsigned n);

/* Of a station's parser: to the station of that shard, which may be the same. */
void handoff_to_shard(void *station, unsigned shard, struct rte_mbuf **packets, unsigned n);

/* Takes what others handed to this station. True when there was something. */
bool handoff_take(struct station *station);
