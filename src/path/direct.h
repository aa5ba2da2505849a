/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The short way of a worker that runs to completion: a burst's headers are read into the stack, looked
 * up, accounted and sent, without a note of it in the packets. It is for what nearly all packets are:
 * whole packets of this worker's own flows. Packets that begin a flow go from here to worker_walk();
 * from the first one on that is anything else (a fragment, an ICMP error, no IP, a kind that RSS does
 * not bring here) the burst is left to triage, so that no flow's packets change places.
 */

#include <stdbool.h>

#include "path/station.h"

/* Whether packets of that queue may go this way now. */
bool direct_may(const struct station *station, const struct station_rx *rx);

/*
 * Takes packets from the front of a burst, and says how many: received and counted, they are the
 * station's no longer. The rest is for triage.
 */
unsigned direct_burst(struct station *station, const struct station_rx *rx,
	struct rte_mbuf **packets, unsigned n);
