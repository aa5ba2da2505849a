/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers with rings between them: hand-over, steering, fragments, snapshots, questions. */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "../unit/packet_rows.h"
#include "dataplane/tx.h"

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
			struct lcore *lcore = plane_shard_lcore(live->plane, worker);
			struct ask *ask = ask_prepare(lcore, ASK_PAGE);

			ask->position = position;
			atomic_store(&lcore->ask->waiting, true);
			live_turn(live, lcore->place);
			page = lcore->ask->ask.page;
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
			live_turn(live, round % live->plane->n_lcores);
			live_snapshot(live, round, &snapshot);
			met_held += snapshot.wires[0].held != 0;
			assert_true(snapshot.wires[0].received <= sent);
			for (unsigned side = 0; side < 2; side++)
				live_take(live, side);
		}
		/* else this test shows nothing */
		if (live->plane->n_lcores > 1)
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
				live_turn(live, n % live->plane->n_lcores);
			}
		}
		live_settle(live);
		assert_int_equal(live_take(live, 1), 3 * 64);
		assert_int_equal(count_flows(live), 64);
		live_end(live);
	}
}

/* A piece of a UDP datagram from port 1000. */
static void fragment(struct frame *frame, unsigned id, unsigned offset)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_ipv4_fragment(frame, id, offset, true);
	if (offset == 0)
		frame_udp(frame, 1000, 53);
	frame_fill(frame, offset == 0 ? 8 : 16);
	frame_finish(frame);
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
		live->now_us += PLANE_MAX_WAIT_US / 2;
		live_settle(live);
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.wires[0].held, 1);
		live->now_us += PLANE_MAX_WAIT_US / 2;
		live_settle(live);
		assert_int_equal(live_take(live, 1), 1);
		live_snapshot(live, 4, &snapshot);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wires[0].fragments_untied, 1);
		live_end(live);
	}
}

/*
 * One first fragment that comes last brings no burst: what waited goes on at a pace, and what comes meanwhile is not held
 * up by it.
 */
static void a_first_fragment_brings_no_burst(void **state)
{
	enum { DATAGRAMS = 16, EACH = 60 };

	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		unsigned parsers =
			shapes[shape].threads == PLANE_SPLIT ? 1 : shapes[shape].n_workers;
		struct live *live = begin(shape);
		struct plane_snapshot snapshot;
		unsigned sum = 0;
		struct frame frame;

		for (unsigned i = 0; i < DATAGRAMS * EACH; i++) {
			fragment(&frame, i % DATAGRAMS, 16 + i / DATAGRAMS * 16);
			live_send(live, 0, 0, &frame);
			live_settle(live);
		}
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.wires[0].held, DATAGRAMS * EACH);
		for (unsigned id = 0; id < DATAGRAMS; id++) {
			fragment(&frame, id, 0);
			live_send(live, 0, 0, &frame);
		}
		for (unsigned turn = 0; sum != DATAGRAMS * (EACH + 1); turn++) {
			live_turn(live, turn % live->plane->n_lcores);
			unsigned n = live_take(live, 1);

			/* each parser has had one turn since this lcore's last one */
			assert_true(n <= DATAGRAMS + PLANE_PACE * parsers);
			sum += n;
			assert_true(turn < 1000);
		}
		live_snapshot(live, 4, &snapshot);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wires[0].fragments_untied, 0);
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
			flow_shard_end_all(plane_shard_lcore(live->plane, i)->worker.shard);
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

/* Packets that the ring between two workers has room for. */
#define HANDED_AT_ONCE 2048

/* A worker that does not come to take its packets: the ring fills, and what is more is dropped. */
static void a_full_ring_drops_and_counts(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct plane_snapshot snapshot;
	struct frame frame;
	unsigned sent = 0;

	/* port 0 is received by lcore 0 alone, and port 1 sent to by lcore 1: each packet is handed over */
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
	assert_int_equal(snapshot.wires[0].dropped[DROP_HAND_OVER], sent - HANDED_AT_ONCE);
	assert_int_equal(snapshot.wires[0].held, 0);
	live_end(live);
}

/* A packet of that protocol, and the queue that RSS brings it to, of two. */
static unsigned packet_of(
	struct frame *frame, struct flow_key *key, unsigned proto, unsigned flow, bool back)
{
	char client[32];

	snprintf(client, sizeof(client), "10.0.%u.%u", flow / 200, 1 + flow % 200);
	frame_start(frame);
	frame_ipv4(frame, back ? "10.9.0.1" : client, back ? client : "10.9.0.1", proto);
	if (proto == IPPROTO_UDP)
		frame_udp(frame, back ? 53 : 4000, back ? 4000 : 53);
	else
		frame_tcp(frame, &(struct frame_tcp){.src_port = back ? 53 : 4000,
					 .dst_port = back ? 4000 : 53,
					 .flags = TCP_ACK,
					 .window = 1000});
	frame_fill(frame, 20);
	frame_finish(frame);
	memset(key, 0, sizeof(*key));
	key->version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	key->proto = (uint8_t)proto;
	memcpy(key->addr[0], &frame->bytes[frame->ip[0] + 12], 4);
	memcpy(key->addr[1], &frame->bytes[frame->ip[0] + 16], 4);
	memcpy(&key->port[0], &frame->bytes[frame->ip[0] + 20], 2);
	memcpy(&key->port[1], &frame->bytes[frame->ip[0] + 22], 2);
	return rss_queue(rss_hash(PATTERN, key), 2);
}

#define TRUSTED (1u << RSS_IPV4_UDP | 1u << RSS_IPV4_TCP | 1u << RSS_IPV6_UDP | 1u << RSS_IPV6_TCP)

/* What lcore 0 trusts port 0 with. */
static unsigned trusted(const struct live *live)
{
	const struct lcore *lcore = &live->plane->lcores[0];

	for (unsigned i = 0; i < lcore->n_rx; i++)
		if (lcore->rx[i].from.port == 0)
			return lcore->rx[i].from.trusted;
	fail();
	return 0;
}

/* Packets of `n` flows come to port 0, all of them to lcore 0. `wrong`: of such flows as are lcore 1's. */
static void send_to_0(struct live *live, unsigned proto, unsigned n, bool wrong, bool marked)
{
	for (unsigned flow = 0; n > 0; flow++) {
		struct flow_key key;
		struct frame frame;

		if (packet_of(&frame, &key, proto, flow, false) != wrong)
			continue;
		if (marked)
			live_send_marked(live, 0, 0, &frame, 77);
		else
			live_send(live, 0, 0, &frame);
		n--;
	}
	live_settle(live);
}

static void expect_event(struct live *live, enum path_event_kind kind)
{
	struct path_event event;
	uint64_t lost = 0;

	assert_int_equal(plane_events(live->plane, &event, 1, &lost), 1);
	assert_int_equal(event.kind, kind);
	assert_int_equal(event.port, 0);
}

static void expect_no_event(struct live *live)
{
	struct path_event event;
	uint64_t lost = 0;

	assert_int_equal(plane_events(live->plane, &event, 1, &lost), 0);
}

static struct live *begin_rss(void)
{
	struct live *live =
		live_begin(&(struct live_options){.n_workers = 2, .n_queues = 2, .rss = TRUSTED});

	assert_int_equal(live->plane->steer.rss_pattern, PATTERN);
	assert_int_equal(trusted(live), TRUSTED);
	return live;
}

/* Ports that spread as they say, and ports that bring everything to the wrong queue. */
static void rss_is_trusted_until_it_errs(void **state)
{
	(void)state;
	for (unsigned wrong = 0; wrong < 2; wrong++) {
		struct live *live = begin_rss();
		struct plane_snapshot snapshot;
		uint64_t handed = 0;

		for (unsigned i = 0; i < 4 * N_FLOWS; i++) {
			struct flow_key key;
			struct frame frame;
			unsigned queue = packet_of(&frame, &key, IPPROTO_UDP, i % N_FLOWS, i & 1);

			live_send(live, i & 1, queue ^ wrong, &frame);
			if (i % 16 == 0)
				live_settle(live);
		}
		live_settle(live);
		assert_int_equal(count_flows(live), N_FLOWS);
		live_snapshot(live, 2, &snapshot);
		for (unsigned i = 0; i < 2; i++)
			handed += snapshot.lcores[i].sum.handed_out;
		assert_int_equal(handed, wrong ? 4 * N_FLOWS : 0);
		for (unsigned port = 0; port < 2; port++) {
			assert_int_equal(snapshot.rss_fallen_back[port], wrong);
			/* by each lcore of its own queue */
			assert_int_equal(snapshot.rss_fallbacks[port], wrong ? 2 : 0);
		}
		live_end(live);
	}
}

/* One packet fewer than it takes; then trust in that kind is lost, and in no other, until it is tried again. */
static void rss_is_tried_again(void **state)
{
	(void)state;
	struct live *live = begin_rss();
	uint64_t back_off_us = TRUST_FIRST_US;

	send_to_0(live, IPPROTO_UDP, TRUST_PACKETS - 1, true, false);
	assert_int_equal(trusted(live), TRUSTED);
	expect_no_event(live);
	/* they were too long ago */
	live->now_us += TRUST_WINDOW_US + 1;
	for (unsigned round = 0; round < 3; round++) {
		struct plane_snapshot snapshot;

		/* of flows that began before: each packet that is misplaced is found out anew */
		send_to_0(live, IPPROTO_UDP, TRUST_PACKETS, true, false);
		assert_int_equal(trusted(live), TRUSTED & ~(1u << RSS_IPV4_UDP));
		expect_event(live, PATH_EVENT_SHARDING_FALLBACK);
		live_snapshot(live, round, &snapshot);
		assert_true(snapshot.rss_fallen_back[0]);
		assert_int_equal(snapshot.rss_fallbacks[0], round + 1);
		assert_int_equal(snapshot.rss_fallbacks[1], 0);
		/* a long way from one look to the next */
		live->now_us += back_off_us - 1;
		live_settle(live);
		expect_no_event(live);
		live->now_us += BALANCE_LOOK_US + 1;
		live_settle(live);
		expect_event(live, PATH_EVENT_SHARDING_RETRY);
		assert_int_equal(trusted(live), TRUSTED);
		live_snapshot(live, round, &snapshot);
		assert_false(snapshot.rss_fallen_back[0]);
		back_off_us *= 2;
	}
	/* now it does as it said */
	send_to_0(live, IPPROTO_UDP, 40, false, false);
	send_to_0(live, IPPROTO_TCP, 40, false, false);
	assert_int_equal(trusted(live), TRUSTED);
	expect_no_event(live);
	live_end(live);
}

/* A rule may bring a marked packet anywhere. */
static void rules_are_not_held_against_rss(void **state)
{
	(void)state;
	struct live *live = begin_rss();

	send_to_0(live, IPPROTO_UDP, 10 * TRUST_PACKETS, true, true);
	assert_int_equal(trusted(live), TRUSTED);
	expect_no_event(live);
	live_end(live);
}

/* Packets that a NIC may read otherwise than we do, by either queue, as often as it takes. */
static void what_is_not_plain_is_not_held_against_rss(void **state)
{
	(void)state;
	struct live *live = begin_rss();
	struct plane_snapshot snapshot;
	unsigned n = 0;

	for (unsigned i = 0; i < RTE_DIM(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		const struct extract_options options = {.secret = &live->plane->secret};
		struct packet_info info;
		struct frame frame;

		frame_start(&frame);
		row->build(&frame);
		if (row->result != EXTRACT_IP || frame.length > 1500)
			continue;
		struct rte_mbuf *packet = frame_mbuf(frame.bytes, frame.length);

		assert_int_equal(extract(&options, packet, 0, &info), EXTRACT_IP);
		const bool plain = extract_is_plain(packet, &info);
		const unsigned queue = rss_queue(rss_hash(PATTERN, &info.key), 2);

		frame_mbuf_free(packet);
		for (unsigned k = 0; k < 4 * TRUST_PACKETS; k++) {
			live_send(live, k & 1, plain ? queue : k / 2 % 2, &frame);
			if (k % 8 == 0)
				live_settle(live);
		}
		live_settle(live);
		live_take(live, 0);
		live_take(live, 1);
		n += !plain;
	}
	assert_true(n > 25);
	assert_int_equal(trusted(live), TRUSTED);
	expect_no_event(live);
	live_snapshot(live, 1, &snapshot);
	for (unsigned port = 0; port < 2; port++)
		assert_int_equal(snapshot.rss_fallbacks[port], 0);
	live_end(live);
}

/*
 * Whoever chooses the addresses x.x.0.n and the port n ^ c has the same hash each time, under any pattern: all flows come to
 * one worker where RSS chooses, which is told; and are spread where software does.
 */
static void aimed_flows(void **state)
{
	enum { N = 2000 };

	(void)state;
	for (unsigned software = 0; software < 2; software++) {
		struct live *live = live_begin(&(struct live_options){.n_workers = 2,
			.n_queues = 2,
			.rss = TRUSTED,
			.capacity = 4 * N,
			.sharding = software ? PLANE_SHARDING_SOFTWARE : PLANE_SHARDING_AUTO});
		struct plane_snapshot snapshot;
		struct path_event event;
		uint64_t lost = 0;
		unsigned queue = 0;

		for (unsigned i = 0; i < 2 * N; i++) {
			struct flow_key key;
			struct frame frame;
			char client[32];

			(void)packet_of(&frame, &key, IPPROTO_UDP, 0, false);
			snprintf(client, sizeof(client), "10.0.%u.%u", i >> 8, i & 255);
			assert_int_equal(
				inet_pton(AF_INET, client, &frame.bytes[frame.ip[0] + 12]), 1);
			put_be16(&frame.bytes[frame.ip[0] + 20], i ^ 0x1234);
			frame_finish(&frame);
			memcpy(key.addr[0], &frame.bytes[frame.ip[0] + 12], 4);
			memcpy(&key.port[0], &frame.bytes[frame.ip[0] + 20], 2);
			unsigned to = rss_queue(rss_hash(PATTERN, &key), 2);

			assert_true(i == 0 || to == queue);
			queue = to;
			live_send(live, 0, queue, &frame);
			if (i % 64 == 0) {
				live_settle(live);
				live_take(live, 1);
			}
			/* two seconds in a row */
			if (i % N != N - 1)
				continue;
			live_settle(live);
			if (i < N)
				expect_no_event(live);
			live->now_us += BALANCE_LOOK_US;
			live_settle(live);
		}
		live_snapshot(live, 1, &snapshot);
		const struct plane_lcore *busy = &snapshot.lcores[queue];

		assert_int_equal(
			snapshot.lcores[0].flow.learned + snapshot.lcores[1].flow.learned, 2 * N);
		if (software) {
			assert_in_range(busy->flow.learned, N - 300, N + 300);
			expect_no_event(live);
		} else {
			assert_int_equal(busy->flow.learned, 2 * N);
			assert_int_equal(plane_events(live->plane, &event, 1, &lost), 1);
			assert_int_equal(event.kind, PATH_EVENT_CROWDED);
			assert_int_equal(event.worker, queue);
			assert_int_equal(event.reason, BALANCE_FLOWS);
		}
		assert_int_equal(busy->crowded_s[BALANCE_FLOWS], !software);
		assert_int_equal(busy->crowded_s[BALANCE_PACKETS], 0);
		assert_int_equal(snapshot.lcores[!queue].crowded_s[BALANCE_FLOWS], 0);
		live_end(live);
	}
}

/*
 * Polls of port 0 and of port 1 in 63 turns in which port 1 brings a packet each, after one of which the turn before
 * brought nothing. Says in how many of these the number of the turn is a multiple of `every`.
 */
static unsigned count_polls(struct live *live, unsigned every)
{
	struct frame frame;
	unsigned n = 0;

	udp(&frame, 1, true);
	for (unsigned i = 0; i < 64; i++) {
		live_send(live, 1, 0, &frame);
		live_turn(live, 0);
		live_take(live, 0);
		if (i == 0)
			memset(live->n_polls, 0, sizeof(live->n_polls));
		else
			n += live->plane->lcores[0].iterations % every == 0;
	}
	return n;
}

/* A port that brings nothing is asked less often than one that does; one without link hardly ever. */
static void quiet_ports_are_polled_rarely(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 1});

	count_polls(live, 1);
	assert_int_equal(live->n_polls[0], 63);
	for (unsigned i = 0; i < 5000; i++)
		live_turn(live, 0);
	unsigned n = count_polls(live, 16);

	assert_int_equal(live->n_polls[0], n);
	assert_int_equal(live->n_polls[1], 63);
	atomic_store(&live->port[0]->link_up, false);
	n = count_polls(live, 64);
	assert_int_equal(live->n_polls[0], n);
	n = count_polls(live, 64);
	assert_int_equal(live->n_polls[0], n);
	atomic_store(&live->port[0]->link_up, true);
	live_end(live);
}

/* A frame of so many bytes. */
static void udp_of(struct frame *frame, unsigned flow, unsigned tags, size_t length)
{
	char client[32];

	snprintf(client, sizeof(client), "10.0.0.%u", 1 + flow);
	frame_start(frame);
	for (unsigned i = 0; i < tags; i++)
		frame_tag(frame, i + 1 < tags ? 0x88a8 : 0x8100, 7);
	frame_ipv4(frame, client, "10.9.0.1", IPPROTO_UDP);
	frame_udp(frame, 4000, 53);
	frame_fill(frame, length - frame->length);
	frame_finish(frame);
}

/* A frame in two segments arrives. */
static void send_in_two(struct live *live, unsigned side, const struct frame *frame, size_t first)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(live->plane->pools[0]);
	struct rte_mbuf *rest = rte_pktmbuf_alloc(live->plane->pools[0]);

	assert_non_null(packet);
	assert_non_null(rest);
	memcpy(rte_pktmbuf_append(packet, (uint16_t)first), frame->bytes, first);
	memcpy(rte_pktmbuf_append(rest, (uint16_t)(frame->length - first)), frame->bytes + first,
		frame->length - first);
	assert_int_equal(rte_pktmbuf_chain(packet, rest), 0);
	assert_int_equal(rte_ring_enqueue(live->in[side][0], packet), 0);
}

static uint64_t dropped(struct live *live, enum drop_reason reason)
{
	struct plane_snapshot snapshot;

	live_snapshot(live, 7, &snapshot);
	return snapshot.wires[0].dropped[reason];
}

/* Port events of this kind, by whatever lcore. */
static unsigned count_events(struct live *live, enum path_event_kind kind, unsigned port)
{
	struct path_event event;
	unsigned n = 0;

	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		while (mailbox_pop(live->plane->lcores[i].events, &event, 1) == 1)
			n += event.kind == kind && event.port == port;
	return n;
}

/*
 * Up to the last byte that the port carries, one tag on top; first packets of flows and later ones, handed over or not,
 * whole or in segments. What is longer is dropped by its name, and what comes with it in the burst goes.
 */
static void frames_that_do_not_fit_are_dropped(void **state)
{
	(void)state;
	struct frame frame;

	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = shapes[shape].n_workers,
			.threads = shapes[shape].threads,
			.n_queues = shapes[shape].n_queues,
			.longest = 1514,
			.longest_tagged = 1518,
		});
		unsigned fit = 0, too_long = 0;

		for (unsigned round = 0; round < 3; round++) {
			for (size_t length = 1510; length <= 1524; length++)
				for (unsigned tags = 0; tags < 3; tags++) {
					/* only a tag of this kind outermost is the kernel's own */
					const size_t most = tags == 1 ? 1518 : 1514;

					udp_of(&frame, (unsigned)length % 8, tags, length);
					live_send(live, 0, 0, &frame);
					send_in_two(live, 0, &frame, 60);
					send_in_two(live, 0, &frame, 13);
					if (length <= most)
						fit += 3;
					else
						too_long += 3;
				}
			live_settle(live);
		}
		assert_int_equal(live_take(live, 1), fit);
		assert_int_equal(dropped(live, DROP_TOO_LONG), too_long);
		assert_in_range(count_events(live, PATH_EVENT_FRAMES_TOO_LONG, 1), 1,
			shapes[shape].n_workers);

		/* the way back has no such limit; and the limit may change */
		udp_of(&frame, 1, 0, 1600);
		live_send(live, 1, 0, &frame);
		atomic_store(&live->port[1]->longest, 1600);
		live_send(live, 0, 0, &frame);
		live_settle(live);
		assert_int_equal(live_take(live, 0), 1);
		assert_int_equal(live_take(live, 1), 1);
		assert_int_equal(dropped(live, DROP_TOO_LONG), too_long);
		atomic_store(&live->port[1]->longest, 1599);
		live_send(live, 0, 0, &frame);
		live_settle(live);
		assert_int_equal(live_take(live, 1), 0);
		assert_int_equal(dropped(live, DROP_TOO_LONG), too_long + 1);
		live_end(live);
	}
}

/* Where nobody looks at lengths, all go. */
static void no_length_is_looked_at_without_need(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct frame frame;

	udp_of(&frame, 1, 0, 2000);
	live_send(live, 0, 0, &frame);
	live_settle(live);
	assert_int_equal(live_take(live, 1), 1);
	live_end(live);
}

/* Frames that fill the room of the port's buffers, and say that there was more of them. */
static void frames_that_came_in_cut_are_dropped(void **state)
{
	(void)state;
	struct frame frame;

	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = shapes[shape].n_workers,
			.threads = shapes[shape].threads,
			.n_queues = shapes[shape].n_queues,
			.rx_room = 1000,
		});

		/* beyond those whose checksums are looked at */
		for (unsigned i = 0; i < 100; i++) {
			udp_of(&frame, i % 5, 0, 1000);
			live_send(live, 0, 0, &frame);
			udp_of(&frame, i % 5, 0, 1400);
			frame.length = 1000;
			live_send(live, 0, 0, &frame);
			/* the sender's own, as it came */
			frame.length = 999;
			live_send(live, 0, 0, &frame);
			live_send(live, 1, 0, &frame);
			frame.length = 1000;
			live_send(live, 1, 0, &frame);
			if (i % 10 == 9)
				live_settle(live);
		}
		assert_int_equal(live_take(live, 1), 200);
		assert_int_equal(live_take(live, 0), 200);
		assert_int_equal(dropped(live, DROP_CUT), 100);
		assert_in_range(
			count_events(live, PATH_EVENT_FRAMES_CUT, 0), 1, shapes[shape].n_workers);
		live_end(live);
	}
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
	/* udp-new: 30 s after their only packet, at the next tick */
	live->now_us = 30 * CLOCK_US_PER_S + CLOCK_TICK_US - 10;
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
	live->now_us = 32 * CLOCK_US_PER_S;
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
	const struct lcore *lcore = &live->plane->lcores[0];

	(void)state;
	for (unsigned i = 0; i < LCORE_BURST + 1; i++) {
		struct frame frame;

		udp(&frame, i, false);
		live_send(live, 0, 0, &frame);
	}
	assert_true(live_turn(live, 0));
	assert_int_equal(lcore->ports[0].rx_packets, LCORE_BURST);
	assert_true(lcore->more_wait);
	assert_true(live_turn(live, 0));
	assert_int_equal(lcore->ports[0].rx_packets, LCORE_BURST + 1);
	assert_false(lcore->more_wait);
	live_end(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_crosses_and_no_flow_is_in_two_shards),
		cmocka_unit_test(a_snapshot_is_exact_while_packets_are_on_their_way),
		cmocka_unit_test(fragments_meet_wherever_they_arrive),
		cmocka_unit_test(a_fragment_without_its_first_goes_on_by_time),
		cmocka_unit_test(a_first_fragment_brings_no_burst),
		cmocka_unit_test(icmp_errors_reach_the_quoted_flow),
		cmocka_unit_test(what_a_port_does_not_take_is_dropped),
		cmocka_unit_test(a_full_ring_drops_and_counts),
		cmocka_unit_test(rss_is_trusted_until_it_errs),
		cmocka_unit_test(rss_is_tried_again),
		cmocka_unit_test(rules_are_not_held_against_rss),
		cmocka_unit_test(what_is_not_plain_is_not_held_against_rss),
		cmocka_unit_test(aimed_flows),
		cmocka_unit_test(a_turn_tells_what_it_left),
		cmocka_unit_test(quiet_ports_are_polled_rarely),
		cmocka_unit_test(frames_that_do_not_fit_are_dropped),
		cmocka_unit_test(no_length_is_looked_at_without_need),
		cmocka_unit_test(frames_that_came_in_cut_are_dropped),
		cmocka_unit_test(silence_ends_flows),
		cmocka_unit_test(ends_that_come_together_are_paced),
		cmocka_unit_test(ends_wait_for_room),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
