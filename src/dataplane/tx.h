/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The end of a packet's way through an lcore: out by a port, or on to another lcore. All of it is
 * the lcore's own thread.
 */

#include "dataplane/burst.h"
#include "dataplane/lcore.h"

/*
 * The first `n` packets of a burst leave by the peer of the port that they came in by. Those of a burst that was parsed
 * before may wait for the end of the iteration, so that more go together.
 */
void tx_burst(struct lcore *lcore, struct burst *burst, unsigned n);

/* Packets of other lcores, which leave by this one's port that their meta data say, at the end of the iteration. */
void send_packets(struct lcore *lcore, struct rte_mbuf **packets, unsigned n);

/* One packet of a domain, which leaves by any of the ports; nothing is asked of its meta data. */
void send_to_port(struct lcore *lcore, struct rte_mbuf *packet, unsigned domain, unsigned port);

/* All that has been gathered goes on: from parser to shards, then to ports and rings. */
void send_settle(struct lcore *lcore);
