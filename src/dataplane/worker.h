/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a station has of a worker: its shard, and what the pipeline counts beside it.
 *
 * Belongs to the station's thread. Its counters may be read by others while that stands still.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "dataplane/counters.h"
#include "dataplane/event.h"
#include "dataplane/packet.h"
#include "dataplane/stages.h"
#include "dataplane/steer.h"
#include "flow/shard.h"

struct agent;
struct policy;

struct worker {
	/* set once */
	struct flow_shard *shard;
	unsigned number; /* of the shard */
	struct steer steer;
	struct agent *agent;   /* NULL: nothing is offloaded */
	struct policy *policy; /* NULL: all packets are forwarded */
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

/* A packet ends here, and is counted. */
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
