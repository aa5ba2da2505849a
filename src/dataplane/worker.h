/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A worker: walks packets through its shard, burst by burst, stage by stage:
 *	look-up -> learn (what was not found) -> account -> act -> out or drop
 *
 * worker_walk() takes what triage hands over, in order. A burst is what came at the same time of the
 * clock, at most WORKER_BURST packets; a note ends the burst before it, and a packet that was held back, which came
 * before it was let go, is one of its own. Within a burst, packets of
 * known flows are accounted before new flows are learned, each flow's own packets in order.
 *
 * A packet that RSS brought to this shard, unchecked so far, and that would begin a flow is checked
 * first: one that belongs to another shard is handed to whoever knows the way there.
 *
 * The struct belongs to the thread that calls worker_walk(). Its counters may be read by others while
 * the worker stands still.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "flow/shard.h"
#include "dataplane/counters.h"
#include "dataplane/event.h"
#include "dataplane/packet.h"
#include "dataplane/stages.h"
#include "dataplane/steer.h"

#define WORKER_BURST 64

struct agent;
struct policy;
struct worker;

/* What becomes of packets at the end of their way here. From then on they are no longer the worker's. */
struct worker_exits {
	/*
	 * runs the program of that number: true, the packet goes on to the peer of its port; else it has been taken. May
	 * be NULL: no verdict but forward and drop is ever given
	 */
	bool (*act)(struct worker *worker, struct rte_mbuf *packet, uint16_t verdict);
	/* sends packets out, and counts those that went and those that did not */
	void (*out)(struct worker *worker, struct rte_mbuf **packets, unsigned n);
	/* takes a packet to its own shard; NULL where none can be misplaced */
	void (*misplaced)(struct worker *worker, struct rte_mbuf *packet);
	/* somebody follows: a flow has begun, or come into another phase; may be NULL */
	void (*event)(
		struct worker *worker, enum path_event_kind kind, const struct flow_record *record);
};

struct worker {
	/* set once */
	struct flow_shard *shard;
	unsigned number; /* of the shard */
	struct steer steer;
	struct agent *agent;   /* NULL: nothing is offloaded */
	struct policy *policy; /* NULL: all packets are forwarded */
	const struct worker_exits *exits;
	void *context; /* whoever made the worker */
	/* worker writes */
	uint32_t sampled;			       /* bursts that may have given a sample */
	bool follow;				       /* somebody wants the events of flows */
	struct path_counters counters[FLOW_MAX_WIRES]; /* all but what triage counts */
	struct stage_times stages;
	uint32_t runs_ended; /* END notes seen */
};

/*
 * A number below `below`, another for each sample: without a rhythm, which the order of packets, or of ports,
 * may have too.
 */
static inline unsigned worker_draw(const struct worker *worker, uint32_t below)
{
	const uint32_t golden = UINT32_C(0x9e3779b1);

	return (unsigned)((uint64_t)(worker->sampled * golden) * below >> 32);
}

/* Takes `n` packets and notes, at most WORKER_BURST; all of them are the worker's from here on. */
void worker_walk(struct worker *worker, struct rte_mbuf **packets, unsigned n);

/* For `out`: a packet that went, and one that did not, which is freed. */
static inline void worker_count_out(struct worker *worker, unsigned wire, uint32_t bytes)
{
	worker->counters[wire].out++;
	worker->counters[wire].out_bytes += bytes;
}

static inline void worker_drop_of(
	struct worker *worker, unsigned wire, struct rte_mbuf *packet, enum drop_reason reason)
{
	worker->counters[wire].dropped[reason]++;
	rte_pktmbuf_free(packet);
}

static inline void worker_drop(
	struct worker *worker, struct rte_mbuf *packet, enum drop_reason reason)
{
	worker_drop_of(worker, packet_meta(packet)->wire, packet, reason);
}
