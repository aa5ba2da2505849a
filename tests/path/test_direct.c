/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way: that it is taken, by tables large and small, and gives what the long way gives. */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "dataplane/pipeline.h"

#define N_FLOWS 40
#define PAYLOAD 20

/* A table in which bursts wait for one another, and one in which they do not. */
static const uint32_t capacities[] = {300, 20000};

static void udp(struct frame *frame, unsigned flow, unsigned vlan, uint32_t number)
{
	char client[32];

	snprintf(client, sizeof(client), "10.0.0.%u", 1 + flow);
	frame_start(frame);
	if (vlan != 0)
		frame_tag(frame, 0x8100, vlan);
	frame_ipv4(frame, client, "10.9.0.1", IPPROTO_UDP);
	frame_udp(frame, 4000, 53);
	frame_fill(frame, PAYLOAD);
	memcpy(&frame->bytes[frame->length - PAYLOAD], &number, sizeof(number));
	frame_finish(frame);
}

/* What the parser would write a note into. */
static void send_unwritten(struct live *live, const struct frame *frame)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(live->plane->pools[0]);

	assert_non_null(packet);
	memcpy(rte_pktmbuf_append(packet, (uint16_t)frame->length), frame->bytes, frame->length);
	memset(packet_meta(packet), 0xa5, sizeof(struct packet_meta));
	assert_int_equal(rte_ring_enqueue(live->in[0][0], packet), 0);
}

/* Takes packets out of port 1, each flow's in order; says how many had a note written into them. */
static unsigned take_in_order(struct live *live, unsigned n, uint32_t *next)
{
	unsigned written = 0, taken = 0;
	struct rte_mbuf *packet;

	for (; rte_ring_dequeue(live->out[1][0], (void **)&packet) == 0; taken++) {
		const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
		unsigned flow = bytes[14 + 15] - 1u;
		uint32_t number;

		memcpy(&number, bytes + packet->data_len - PAYLOAD, sizeof(number));
		assert_true(flow < N_FLOWS);
		assert_int_equal(number, next[flow]++);
		written += packet_meta(packet)->kind != 0xa5;
		rte_pktmbuf_free(packet);
	}
	assert_int_equal(taken, n);
	return written;
}

/* Full bursts, several a turn: none is written into, not even a flow's first packet. */
static void known_flows_take_it_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(capacities); i++) {
		struct live *live = live_begin(
			&(struct live_options){.n_workers = 1, .capacity = capacities[i]});
		uint32_t sent[N_FLOWS] = {0}, next[N_FLOWS] = {0};
		struct plane_snapshot snapshot;
		struct frame frame;
		unsigned n = 0;

		for (unsigned turn = 0; turn < 20; turn++) {
			unsigned packets = turn % 2 != 0 ? 4 * LCORE_BURST : 100;

			for (unsigned j = 0; j < packets; j++) {
				unsigned flow = n++ * 7 % N_FLOWS;

				udp(&frame, flow, 0, sent[flow]++);
				send_unwritten(live, &frame);
			}
			live_turn(live, 0);
			/* nothing waits beyond the turn */
			assert_false(live->plane->lcores[0].pipeline->waits);
			unsigned written = take_in_order(live, packets, next);

			assert_int_equal(written, 0);
		}
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.wires[0].received, n);
		assert_int_equal(snapshot.wires[0].out, n);
		assert_int_equal(snapshot.lcores[0].flow.packets, n);
		assert_int_equal(snapshot.lcores[0].flow.learned, N_FLOWS);
		live_end(live);
	}
}

/* One tuple in three VLANs is three flows with zones, and one without. */
static void zones_are_told_apart(void **state)
{
	(void)state;
	for (unsigned zones = 0; zones < 2; zones++) {
		struct live *live =
			live_begin(&(struct live_options){.n_workers = 1, .zone_vlan = zones != 0});
		struct plane_snapshot snapshot;
		struct frame frame;

		for (unsigned i = 0; i < 30; i++) {
			udp(&frame, 0, 1 + i % 3, 0);
			live_send(live, 0, 0, &frame);
		}
		live_settle(live);
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.lcores[0].flow.learned, zones ? 3 : 1);
		live_end(live);
	}
}

/* Where packets are handed over, no more is received in a turn than is taken out of the rings. */
static void full_queues_do_not_fill_rings(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct plane_snapshot snapshot;
	struct frame frame;
	unsigned n = 0;

	for (unsigned turn = 0; turn < 200; turn++) {
		for (unsigned side = 0; side < 2; side++) {
			while (rte_ring_count(live->in[side][0]) < 4 * LCORE_BURST) {
				udp(&frame, n++ % N_FLOWS, 0, 0);
				live_send(live, side, 0, &frame);
			}
		}
		live_turn(live, turn % 2);
		live_turn(live, (turn + 1) % 2);
		live_take(live, 0);
		live_take(live, 1);
	}
	live_settle(live);
	live_snapshot(live, 3, &snapshot);
	assert_int_equal(snapshot.wires[0].dropped[DROP_HAND_OVER], 0);
	assert_int_equal(snapshot.wires[0].received, n);
	assert_int_equal(snapshot.wires[0].out, n);
	live_end(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_flows_take_it_in_order),
		cmocka_unit_test(zones_are_told_apart),
		cmocka_unit_test(full_queues_do_not_fill_rings),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
