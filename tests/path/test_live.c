/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers with rings between them: hand-over, steering, fragments, snapshots, questions. */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "path/send.h"

#define N_FLOWS 200
#define PATTERN 0x6d5a

static const struct {
	unsigned n_workers;
	enum plane_threads threads;
	unsigned n_queues;
} shapes[] = {
	{1, PLANE_RUN_TO_COMPLETION, 1},
	{2, PLANE_RUN_TO_COMPLETION, 1},
	{2, PLANE_RUN_TO_COMPLETION, 2},
	{3, PLANE_RUN_TO_COMPLETION, 2},
	{4, PLANE_RUN_TO_COMPLETION, 4},
	{1, PLANE_SPLIT, 1},
	{2, PLANE_SPLIT, 1},
	{4, PLANE_SPLIT, 1},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct live *begin(unsigned shape)
{
	return live_begin(&(struct live_options){
		.n_workers = shapes[shape].n_workers,
		.threads = shapes[shape].threads,
		.n_queues = shapes[shape].n_queues,
	});
}

static void udp(struct frame *frame, unsigned flow, bool back)
{
	char client[32];

	snprintf(client, sizeof(client), "10.0.%u.%u", flow / 200, 1 + flow % 200);
	frame_start(frame);
	frame_ipv4(frame, back ? "10.9.0.1" : client, back ? client : "10.9.0.1", IPPROTO_UDP);
	frame_udp(frame, back ? 53 : 4000, back ? 4000 : 53);
	frame_fill(frame, 20);
	frame_finish(frame);
}

/* Every live record, met once, by the worker that its shard belongs to. */
static unsigned count_flows(struct live *live)
{
	static struct flow_key keys[LIVE_MAX_REPORTS];
	static struct plane_page page;
	unsigned n = 0;

	for (unsigned worker = 0; worker < live->options.n_workers; worker++) {
		for (uint32_t position = 0; position != FLOW_NONE; position = page.next) {
			struct station *station = plane_shard_station(live->plane, worker);
			struct ask *ask = ask_prepare(station, ASK_PAGE);

			ask->position = position;
			atomic_store(&station->ask.waiting, true);
			live_turn(live, station->place);
			page = station->ask.ask.page;
			for (unsigned i = 0; i < page.n; i++) {
				for (unsigned j = 0; j < n; j++)
					assert_false(flow_key_equal(&keys[j], &page.record[i].key));
				keys[n++] = page.record[i].key;
			}
		}
	}
	return n;
}

static void every_packet_crosses_and_no_flow_is_in_two_shards(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(shape);
		struct frame frame;

		for (unsigned flow = 0; flow < N_FLOWS; flow++) {
			for (unsigned packet = 0; packet < 3; packet++) {
				bool back = packet == 1;

				udp(&frame, flow, back);
				live_send(live, back, flow % live->options.n_queues, &frame);
			}
			if (flow % 20 == 0)
				live_settle(live);
		}
		live_settle(live);
		assert_int_equal(live_take(live, 1), 2 * N_FLOWS);
		assert_int_equal(live_take(live, 0), N_FLOWS);
		assert_int_equal(count_flows(live), N_FLOWS);
		live_end(live);
	}
}

static void a_snapshot_is_exact_while_packets_are_on_their_way(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(shape);
		struct plane_snapshot snapshot;
		struct frame frame;
		unsigned sent = 0, met_held = 0;

		for (unsigned round = 0; round < 300; round++) {
			for (unsigned i = 0; i < 40; i++, sent++) {
				udp(&frame, sent % N_FLOWS, sent & 1);
				live_send(live, sent & 1, round % live->options.n_queues, &frame);
			}
			live_turn(live, round % live->plane->n_stations);
			live_snapshot(live, round, &snapshot);
			met_held += snapshot.wires[0].held != 0;
			assert_true(snapshot.wires[0].received <= sent);
			for (unsigned side = 0; side < 2; side++)
				live_take(live, side);
		}
		/* else this test shows nothing */
		if (live->plane->n_stations > 1)
			assert_true(met_held > 20);
		live_settle(live);
		live_snapshot(live, 1, &snapshot);
		assert_int_equal(snapshot.wires[0].received, sent);
		assert_int_equal(snapshot.wires[0].held, 0);
		live_end(live);
	}
}

/* A datagram in three pieces, in any order and by any queue, is one flow with its ports. */
static void fragments_meet_wherever_they_arrive(void **state)
{
	static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};

	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(shape);
		unsigned n = 0;

		for (unsigned id = 0; id < 64; id++) {
			for (unsigned i = 0; i < 3; i++) {
				unsigned piece = orders[id % 4][i];
				struct frame frame;

				frame_start(&frame);
				frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
				frame_ipv4_fragment(&frame, id, piece * 16, piece != 2);
				if (piece == 0)
					frame_udp(&frame, 1000 + id, 53);
				frame_fill(&frame, piece == 0 ? 8 : 16);
				frame_finish(&frame);
				live_send(live, 0, n++ % live->options.n_queues, &frame);
				live_turn(live, n % live->plane->n_stations);
			}
		}
		live_settle(live);
		assert_int_equal(live_take(live, 1), 3 * 64);
		assert_int_equal(count_flows(live), 64);
		live_end(live);
	}
}

/* What has waited too long goes on, though nothing else arrives. */
static void a_fragment_without_its_first_goes_on_by_time(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(shape);
		struct plane_snapshot snapshot;
		struct frame frame;

		frame_start(&frame);
		frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
		frame_ipv4_fragment(&frame, 7, 16, false);
		frame_fill(&frame, 16);
		frame_finish(&frame);
		live_send(live, 0, 0, &frame);
		live_settle(live);
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.wires[0].held, 1);
		live->now_us += 61 * CLOCK_US_PER_S;
		live_settle(live);
		assert_int_equal(live_take(live, 1), 1);
		live_snapshot(live, 4, &snapshot);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wires[0].fragments_untied, 1);
		live_end(live);
	}
}

/* An error that quotes a flow of another shard raises that flow's counter. */
static void icmp_errors_reach_the_quoted_flow(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = begin(shape);
		struct frame frame;
		unsigned with_error = 0;

		for (unsigned flow = 0; flow < 32; flow++) {
			char client[32];

			udp(&frame, flow, false);
			live_send(live, 0, 0, &frame);
			snprintf(client, sizeof(client), "10.0.%u.%u", flow / 200, 1 + flow % 200);
			frame_start(&frame);
			frame_ipv4(&frame, "10.9.0.1", client, IPPROTO_ICMP);
			frame_icmp(&frame, 3, 3);
			frame_ipv4(&frame, client, "10.9.0.1", IPPROTO_UDP);
			frame_udp(&frame, 4000, 53);
			frame_finish(&frame);
			live_settle(live);
			live_send(live, 1, 0, &frame);
		}
		live_settle(live);
		for (unsigned i = 0; i < live->options.n_workers; i++)
			flow_shard_end_all(plane_shard_station(live->plane, i)->worker.shard);
		for (unsigned i = 0; i < live->n_reports; i++)
			with_error += live->reports[i].record.icmp_errors == 1 &&
				      live->reports[i].record.key.proto == IPPROTO_UDP;
		assert_int_equal(with_error, 32);
		live_end(live);
	}
}

/* A port that takes nothing: every packet is counted as dropped at the output. */
static void what_a_port_does_not_take_is_dropped(void **state)
{
	(void)state;
	for (unsigned threads = 0; threads < 2; threads++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = 2,
			.threads = threads ? PLANE_SPLIT : PLANE_RUN_TO_COMPLETION,
			.out_places = 10,
		});
		struct plane_snapshot snapshot;
		struct frame frame;

		for (unsigned i = 0; i < 100; i++) {
			udp(&frame, i, false);
			live_send(live, 0, 0, &frame);
		}
		live_settle(live);
		live_snapshot(live, 9, &snapshot);
		assert_int_equal(snapshot.wires[0].out, 10);
		assert_int_equal(snapshot.wires[0].dropped[DROP_OUTPUT], 90);
		live_end(live);
	}
}

/* A worker that does not come to take its packets: the ring fills, and what is more is dropped. */
static void a_full_ring_drops_and_counts(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct plane_snapshot snapshot;
	struct frame frame;
	unsigned sent = 0;

	/* port 0 is received by station 0 alone, which hands half of it to station 1 */
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned i = 0; i < 60; i++, sent++) {
			udp(&frame, sent % N_FLOWS, false);
			live_send(live, 0, 0, &frame);
		}
		live_turn(live, 0);
		live_take(live, 1);
	}
	live_settle(live);
	live_snapshot(live, 5, &snapshot);
	assert_int_equal(snapshot.wires[0].received, sent);
	assert_true(snapshot.wires[0].dropped[DROP_HAND_OVER] > 1000);
	assert_int_equal(snapshot.wires[0].held, 0);
	live_end(live);
}

/* Ports that spread as they say, and ports that bring everything to the wrong queue. */
static void rss_is_trusted_until_it_errs(void **state)
{
	const uint64_t kinds = UINT64_C(1) << RSS_IPV4_UDP | UINT64_C(1) << RSS_IPV4_TCP;

	(void)state;
	for (unsigned wrong = 0; wrong < 2; wrong++) {
		struct live *live = live_begin(
			&(struct live_options){.n_workers = 2, .n_queues = 2, .rss = kinds});
		struct plane_snapshot snapshot;
		struct path_event event;
		struct frame frame;
		uint64_t lost = 0, handed = 0;

		assert_true(live->plane->steer.rss_pattern != 0);
		for (unsigned i = 0; i < 4 * N_FLOWS; i++) {
			struct packet_info info = {0};

			udp(&frame, i % N_FLOWS, i & 1);
			info.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
			info.key.proto = IPPROTO_UDP;
			memcpy(info.key.addr[0], &frame.bytes[frame.ip[0] + 12], 4);
			memcpy(info.key.addr[1], &frame.bytes[frame.ip[0] + 16], 4);
			memcpy(&info.key.port[0], &frame.bytes[frame.ip[0] + 20], 2);
			memcpy(&info.key.port[1], &frame.bytes[frame.ip[0] + 22], 2);
			live_send(live, i & 1, rss_queue(rss_hash(PATTERN, &info.key), 2) ^ wrong,
				&frame);
			if (i % 16 == 0)
				live_settle(live);
		}
		live_settle(live);
		assert_int_equal(count_flows(live), N_FLOWS);
		live_snapshot(live, 2, &snapshot);
		for (unsigned i = 0; i < 2; i++)
			handed += snapshot.stations[i].sum.handed_out;
		assert_int_equal(handed != 0, wrong);
		assert_int_equal(snapshot.rss_fallen_back[0], wrong);
		assert_int_equal(snapshot.rss_fallen_back[1], wrong);
		assert_int_equal(plane_events(live->plane, &event, 1, &lost), wrong);
		if (wrong)
			assert_int_equal(event.kind, PATH_EVENT_SHARDING_FALLBACK);
		live_end(live);
	}
}

/* Polls of port 0 and of port 1 in 64 turns in which port 1 brings a packet each. */
static void count_polls(struct live *live)
{
	struct frame frame;

	udp(&frame, 1, true);
	for (unsigned i = 0; i < 64; i++) {
		live_send(live, 1, 0, &frame);
		live_turn(live, 0);
		live_take(live, 0);
		if (i == 0) /* the turn before this one brought nothing */
			memset(live->n_polls, 0, sizeof(live->n_polls));
	}
}

/* A port that brings nothing is asked less often while another does; one without link hardly ever. */
static void quiet_ports_are_polled_rarely(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 1});

	count_polls(live);
	assert_int_equal(live->n_polls[0], 63);
	for (unsigned i = 0; i < 5000; i++)
		live_turn(live, 0);
	count_polls(live);
	assert_in_range(live->n_polls[0], 3, 5);
	assert_int_equal(live->n_polls[1], 63);
	atomic_store(&live->port[0]->link_up, false);
	count_polls(live);
	assert_in_range(live->n_polls[0], 0, 1);
	atomic_store(&live->port[0]->link_up, true);
	live_end(live);
}

/* Flows age though no packet comes. */
static void silence_ends_flows(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct frame frame;

	for (unsigned flow = 0; flow < 10; flow++) {
		udp(&frame, flow, false);
		live_send(live, 0, 0, &frame);
	}
	live_settle(live);
	assert_int_equal(count_flows(live), 10);
	live->now_us += 3600 * CLOCK_US_PER_S;
	live_settle(live);
	assert_int_equal(count_flows(live), 0);
	assert_int_equal(live->n_reports, 10);
	assert_int_equal(live->reports[0].reason, FLOW_END_IDLE);
	live_end(live);
}

/* Flows that end in the same second do so bit by bit, and one that gets a packet meanwhile lives on. */
static void ends_that_come_together_are_paced(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 1});
	struct frame frame;

	for (unsigned flow = 0; flow < 500; flow++) {
		udp(&frame, flow, false);
		live_send(live, 0, 0, &frame);
	}
	live_settle(live);
	/* udp-new: 30 s after their only packet, at the next whole second */
	live->now_us = 31 * CLOCK_US_PER_S - 10;
	live_turn(live, 0);
	assert_int_equal(live->n_reports, 0);
	live->now_us += 10;
	assert_true(live_turn(live, 0));
	assert_int_equal(live->n_reports, FLOW_SHARD_PACE + 10);
	udp(&frame, 499, false);
	live_send(live, 0, 0, &frame);
	live_settle(live);
	assert_int_equal(live->n_reports, 499);
	assert_int_equal(count_flows(live), 1);
	live_end(live);
}

static unsigned some_room(void *context, unsigned worker)
{
	const struct live *live = context;

	assert_int_equal(worker, 0);
	return live->room;
}

/* Ends wait for room among the reports, two seconds at most. */
static void ends_wait_for_room(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 1, .room = some_room});
	struct frame frame;

	for (unsigned flow = 0; flow < 100; flow++) {
		udp(&frame, flow, false);
		live_send(live, 0, 0, &frame);
	}
	live_settle(live);
	live->now_us = 30 * CLOCK_US_PER_S;
	live_turn(live, 0);
	live->now_us = 31 * CLOCK_US_PER_S;
	assert_false(live_turn(live, 0)); /* nothing that it could do: it may sleep */
	assert_int_equal(live->n_reports, 0);
	live->room = 10;
	assert_true(live_turn(live, 0));
	assert_int_equal(live->n_reports, 10);
	live->room = 0;
	live->now_us = 33 * CLOCK_US_PER_S;
	live_turn(live, 0);
	assert_int_equal(live->n_reports, 10);
	live->now_us = 34 * CLOCK_US_PER_S;
	live_settle(live);
	assert_int_equal(live->n_reports, 100);
	live_end(live);
}

/* Where another worker may have to be handed packets a turn has one burst of each queue: does it know that more wait? */
static void a_turn_tells_what_it_left(void **state)
{
	struct live *live = begin(1);
	const struct station *station = &live->plane->stations[0];

	(void)state;
	for (unsigned i = 0; i < STATION_BURST + 1; i++) {
		struct frame frame;

		udp(&frame, i, false);
		live_send(live, 0, 0, &frame);
	}
	assert_true(live_turn(live, 0));
	assert_int_equal(station->ports[0].rx_packets, STATION_BURST);
	assert_true(station->more_wait);
	assert_true(live_turn(live, 0));
	assert_int_equal(station->ports[0].rx_packets, STATION_BURST + 1);
	assert_false(station->more_wait);
	live_end(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_crosses_and_no_flow_is_in_two_shards),
		cmocka_unit_test(a_snapshot_is_exact_while_packets_are_on_their_way),
		cmocka_unit_test(fragments_meet_wherever_they_arrive),
		cmocka_unit_test(a_fragment_without_its_first_goes_on_by_time),
		cmocka_unit_test(icmp_errors_reach_the_quoted_flow),
		cmocka_unit_test(what_a_port_does_not_take_is_dropped),
		cmocka_unit_test(a_full_ring_drops_and_counts),
		cmocka_unit_test(rss_is_trusted_until_it_errs),
		cmocka_unit_test(a_turn_tells_what_it_left),
		cmocka_unit_test(quiet_ports_are_polled_rarely),
		cmocka_unit_test(silence_ends_flows),
		cmocka_unit_test(ends_that_come_together_are_paced),
		cmocka_unit_test(ends_wait_for_room),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
