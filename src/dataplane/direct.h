/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The short way of a worker that runs to completion: a burst's headers are read into memory of its own,
 * looked up, accounted and sent, without a note of it in the packets. It is for what nearly all packets
 * are: whole packets of this worker's own flows. Packets that begin a flow go from here to worker_walk();
 * from the first one on that is anything else (a fragment, an ICMP error, no IP, a kind that RSS does
 * not bring here) the burst is left to triage, so that no flow's packets change places.
 *
 * With a table larger than the nearest caches a burst is begun, and finished when the next one is begun:
 * while the records of the one come from memory, the headers of the other are read. At most one burst waits
 * so, and no longer than the turn.
 *
 * The walk is compiled once per SIMD level, without offload (path/direct_walk.c) and with it
 * (path/direct_watch.c): there a packet with a mark that names a flow of this worker's needs no look-up, and the
 * common one is not even read but to be compared with the record's key. Where no flow of a wire has a slot and no packet
 * of a burst a mark, it goes the way without.
 */

#include <stdbool.h>

#include "dataplane/station.h"

/* Makes what a station's bursts are kept in; `watched`: it has an agent. Returns 0 or -ENOMEM. */
int direct_create(struct direct **direct, const struct hash_secret *secret, bool watched);
/* Accepts NULL. No burst may be waiting. */
void direct_destroy(struct direct *direct);

/* Whether packets of that queue may go this way now. */
static inline bool direct_may(const struct station *station, const struct station_rx *rx)
{
	const struct worker *worker = &station->worker;

	/* who follows hears of each change of phase: worker_walk() tells */
	return station->direct != NULL && !worker->follow && station->tx[rx->peer].own &&
	       (worker->steer.n_shards == 1 || rx->trusted != 0);
}

/* Where the packets of the next burst are to be received, STATION_BURST at most: nobody copies them. */
struct rte_mbuf **direct_room(struct station *station);

/*
 * Takes packets from the front of the burst in direct_room(), and says how many: received and counted, they are the
 * station's no longer, and wait for direct_finish(). The rest stays there for triage, after direct_finish().
 */
unsigned direct_begin(struct station *station, const struct station_rx *rx, unsigned n);

/* Finishes the burst that waits, if any. */
void direct_finish(struct station *station);
