/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/handoff.h"

#include "dataplane/pipeline.h"
#include "dataplane/rx.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"

/* What a packet is counted by; noted before it is somebody else's. */
struct parcel {
	uint8_t wire;
	bool note;
};

static void not_taken(struct station *station, struct rte_mbuf *packet, enum drop_reason reason)
{
	if (!packet_is_note(packet)) {
		worker_drop(&station->worker, packet, reason);
		return;
	}
	/* a quoted flow that will not hear of it */
	station->worker.counters[packet_meta(packet)->wire].icmp_untied++;
	rte_pktmbuf_free(packet);
}

void handoff_to_station(struct station *station, unsigned to, struct rte_mbuf **packets, unsigned n)
{
	struct parcel parcels[STATION_BURST];
	unsigned taken;

	for (unsigned i = 0; i < n; i++) {
		parcels[i].wire = packet_meta(packets[i])->wire;
		parcels[i].note = packet_is_note(packets[i]);
	}
	taken = ring_push(station->to[to], packets, n);
	for (unsigned i = 0; i < n; i++) {
		if (i < taken)
			station->worker.counters[parcels[i].wire].handed_out += !parcels[i].note;
		else
			not_taken(station, packets[i], DROP_HAND_OVER);
	}
}

void handoff_to_shard(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct station *station = context;
	unsigned to = station->shard_station[shard];

	stage_end(&station->worker.stages, STAGE_PARSE, 0);
	if (to == station->place)
		pipeline_resume(station, packets, n);
	else
		handoff_to_station(station, to, packets, n);
}

/* Packets and notes that another station handed over, between two markers. */
static void take_packets(
	struct station *station, unsigned sender, const ring_element *elements, unsigned n)
{
	struct rte_mbuf *walk[STATION_BURST];
	unsigned n_walk = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = ring_packet(elements[i]);
		struct packet_meta *meta = packet_meta(packet);

		if (!packet_is_note(packet)) {
			station->worker.counters[meta->wire].handed_in++;
			snapshot_packet(&station->snapshot, sender, meta->wire);
		}
		meta->time_us = station->now_us;
		switch ((enum packet_kind)meta->kind) {
		case PACKET_KIND_FRAGMENT:
		case PACKET_KIND_QUOTE_FRAGMENT:
			parser_handed(station->parser, station->now_us, packet);
			break;
		case PACKET_KIND_SEND:
			send_packets(station, &packet, 1);
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
		pipeline_resume(station, walk, n_walk);
}

static unsigned take_ring(struct station *station, unsigned sender)
{
	ring_element elements[STATION_BURST];
	unsigned n = ring_pop(station->from[sender], elements, STATION_BURST);
	unsigned begin = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!ring_is_marker(elements[i]))
			continue;
		/* what came before the marker has to be where it counts */
		take_packets(station, sender, &elements[begin], i - begin);
		snapshot_marker(station, sender, ring_marker_snapshot(elements[i]));
		begin = i + 1;
	}
	take_packets(station, sender, &elements[begin], n - begin);
	return n;
}

bool handoff_take(struct station *station)
{
	unsigned n = 0;

	for (unsigned i = 0; i < station->n_stations; i++) {
		if (station->from[i] == NULL)
			continue;
		unsigned got = STATION_BURST;

		/* as often as packets are received in a turn */
		for (unsigned round = 0; round < RX_ROUNDS && got == STATION_BURST; round++) {
			got = take_ring(station, i);
			station->bursts += got != 0;
			n += got;
		}
		station->more_wait |= got == STATION_BURST;
	}
	return n != 0;
}
