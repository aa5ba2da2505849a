/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A burst on its way through the stages, and what they find out about its packets. All packets of a burst came in by
 * one port. Owned by the lcore's thread.
 */

#include <stdint.h>

#include <rte_mbuf.h>

#include "dataplane/counters.h"
#include "flow/table.h"
#include "flow/verdict.h"
#include "packet/extract.h"
#include "packet/meta.h"
#include "port/port.h"

#define LCORE_BURST PORT_BURST

struct burst {
	struct arrival from;
	bool resumed; /* parsed before: handed off, held back, or of a capture */
	unsigned n;
	uint64_t bytes;	    /* of all packets; of a resumed burst those of flows */
	uint64_t others;    /* a bit for each packet without a flow: it has no info */
	uint64_t unchecked; /* a bit for each packet that RSS brought, if that has to be checked */
	struct flow_look_up up;
	struct packet_info info[LCORE_BURST]; /* first those that are looked up */
	struct rte_mbuf *packet[LCORE_BURST];
	uint16_t verdict[LCORE_BURST];	/* of packets in outcome.acts, and of rejected ones */
	uint8_t drop[LCORE_BURST];	/* enum drop_reason of packets in outcome.dropped */
	uint32_t position[LCORE_BURST]; /* of the records of packets in outcome.waiting */
	/* where octets are counted: what each packet has beside its IP packet, and a bit for each that is done */
	int32_t excess[LCORE_BURST];
	uint64_t excess_done;
	uint8_t info_of
		[LCORE_BURST]; /* index of each packet's info; the packet's own without marks */
	/* with marks: pipeline_marked.c */
	uint64_t marked; /* a bit for each packet whose mark would name a slot of this worker */
	unsigned n_top;	 /* infos at the end of the array: of marked packets that had to be read */
	unsigned front;	 /* packets with marks from the front, which are fetched at once */
	/* packets with such marks in an array of their own, and their index in the burst */
	unsigned n_row;
	uint8_t place[LCORE_BURST];
	struct rte_mbuf *row[LCORE_BURST];
	/*
	 * What the mark leads to (mark_match.h), mark_nobody where there is no record; behind all of these the first
	 * byte of each of the packets. One array for both, as each takes a register of the code that reads them.
	 */
	uintptr_t target[2 * LCORE_BURST];
};

/* What the stages from account on found out: a bit for each packet. */
struct outcome {
	uint64_t unknown; /* without a record: to be learned */
	uint64_t dropped; /* burst.drop says why */
	uint64_t acts;	  /* the flow's verdict is an action program: burst.verdict */
	uint64_t gone;	  /* handed off to the worker of the flow */
	uint64_t
		waiting; /* of flows that verdicts drop: accounted after the others (account_waiting()) */
	/* packets that are unknown or were accounted by the shard, and their bytes */
	unsigned n;
	uint64_t bytes;
};

static inline struct packet_info *burst_info(struct burst *burst, unsigned i)
{
	return &burst->info[burst->info_of[i]];
}

static inline void burst_drop(
	struct burst *burst, unsigned i, enum drop_reason reason, struct outcome *outcome)
{
	burst->drop[i] = (uint8_t)reason;
	outcome->dropped |= UINT64_C(1) << i;
}

/* The flow of packet `i` has this verdict, which does not drop it. */
static inline void burst_act(
	struct burst *burst, unsigned i, uint16_t verdict, struct outcome *outcome)
{
	burst->verdict[i] = verdict;
	outcome->acts |= (uint64_t)(verdict != FLOW_VERDICT_FORWARD) << i;
}
