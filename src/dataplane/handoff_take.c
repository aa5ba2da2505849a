/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/handoff_take.h"

#include "dataplane/handoff.h"
#include "dataplane/pipeline.h"
#include "dataplane/rx.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"

void handoff_to_shard(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct lcore *lcore = context;
	unsigned to = lcore->shard_lcore[shard];

	stage_end(&lcore->worker.stages, STAGE_PARSE, 0);
	if (to == lcore->place)
		pipeline_resume(lcore, packets, n);
	else
		handoff_to_lcore(lcore, to, packets, n);
}

/* Packets and notes that another lcore handed over, between two markers. */
static void take_packets(
	struct lcore *lcore, unsigned sender, const ring_element *elements, unsigned n)
{
	struct rte_mbuf *walk[LCORE_BURST];
	unsigned n_walk = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = ring_packet(elements[i]);
		struct packet_meta *meta = packet_meta(packet);

		if (packet_is_counted(packet)) {
			lcore->worker.counters[meta->wire].handed_in++;
			snapshot_packet(&lcore->snapshot, sender, meta->wire);
		}
		meta->time_us = lcore->now_us;
		switch ((enum packet_kind)meta->kind) {
		case PACKET_KIND_FRAGMENT:
		case PACKET_KIND_QUOTE_FRAGMENT:
			parser_handed(lcore->parser, lcore->now_us, packet);
			break;
		case PACKET_KIND_SEND:
			send_packets(lcore, &packet, 1);
			break;
		case PACKET_KIND_FLOW:
		case PACKET_KIND_OTHER:
		case PACKET_KIND_QUOTE:
		case PACKET_KIND_BEGIN:
		case PACKET_KIND_END:
			walk[n_walk++] = packet;
			break;
		}
	}
	if (n_walk != 0)
		pipeline_resume(lcore, walk, n_walk);
}

static unsigned take_ring(struct lcore *lcore, unsigned sender)
{
	ring_element elements[LCORE_BURST];
	unsigned n = ring_pop(lcore->from[sender], elements, LCORE_BURST);
	unsigned begin = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!ring_is_marker(elements[i]))
			continue;
		/* what came before the marker has to be where it counts */
		take_packets(lcore, sender, &elements[begin], i - begin);
		snapshot_marker(lcore, sender, ring_marker_snapshot(elements[i]));
		begin = i + 1;
	}
	take_packets(lcore, sender, &elements[begin], n - begin);
	return n;
}

bool handoff_take(struct lcore *lcore)
{
	unsigned n = 0;

	for (unsigned i = 0; i < lcore->n_lcores; i++) {
		if (lcore->from[i] == NULL)
			continue;
		unsigned got = LCORE_BURST;

		/* as often as packets are received in an iteration */
		for (unsigned round = 0; round < RX_ROUNDS && got == LCORE_BURST; round++) {
			got = take_ring(lcore, i);
			lcore->bursts += got != 0;
			n += got;
		}
		lcore->more_wait |= got == LCORE_BURST;
	}
	return n != 0;
}
