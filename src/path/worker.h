/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A worker: walks packets through its shard, burst by burst, stage by stage:
 *	look-up -> learn (what was not found) -> account -> act -> out or drop
 *
 * worker_walk() takes what triage hands over, in order. A burst is what came at the same time of the
 * clock, at most WORKER_BURST packets; a note ends the burst before it. Within a burst, packets of
 * known flows are accounted before new flows are learned, each flow's own packets in order.
 *
 * The struct belongs to the thread that calls worker_walk(). Its counters may be read by others while
 * the worker stands still.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "flow/shard.h"
#include "path/counters.h"
#include "path/packet.h"

#define WORKER_BURST 64

/*
 * Sends packets out. Returns how many were taken, in order; those are no longer the worker's. The
 * others are dropped and counted.
 */
typedef unsigned (*worker_out_fn)(void *context, struct rte_mbuf **packets, unsigned n);

struct worker {
	/* set once */
	struct flow_shard *shard;
	worker_out_fn out;
	void *out_context;
	/* worker writes */
	struct path_counters counters; /* out, dropped and icmp_untied */
	uint32_t runs_ended;	       /* END notes seen */
};

/* Takes `n` packets and notes, at most WORKER_BURST; all of them are the worker's from here on. */
void worker_walk(struct worker *worker, struct rte_mbuf **packets, unsigned n);
