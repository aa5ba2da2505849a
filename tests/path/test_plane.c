/* SPDX-License-Identifier: BSD-3-Clause */
/* The plane with its threads: questions while packets flow, and the end. */
#include "live.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "base/monotonic.h"

#define N_FLOWS 1000
#define ROUNDS 300

static const struct {
	unsigned n_workers;
	enum plane_threads threads;
} shapes[] = {
	{1, PLANE_RUN_TO_COMPLETION},
	{2, PLANE_RUN_TO_COMPLETION},
	{3, PLANE_RUN_TO_COMPLETION},
	{1, PLANE_SPLIT},
	{2, PLANE_SPLIT},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void udp(struct frame *frame, unsigned flow, bool back)
{
	frame_start(frame);
	frame_ipv4(
		frame, back ? "10.9.0.1" : "10.0.0.1", back ? "10.0.0.1" : "10.9.0.1", IPPROTO_UDP);
	frame_udp(frame, back ? 53 : 1024 + flow, back ? 1024 + flow : 53);
	frame_fill(frame, 20);
	frame_finish(frame);
}

static struct flow_key udp_key(unsigned flow)
{
	struct flow_key key = {.proto = IPPROTO_UDP, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	const uint8_t src[16] = {10, 0, 0, 1}, dst[16] = {10, 9, 0, 1};

	flow_key_make(
		&key, src, dst, rte_cpu_to_be_16((uint16_t)(1024 + flow)), rte_cpu_to_be_16(53));
	return key;
}

static unsigned count_pages(struct live *live)
{
	static struct plane_page page;
	unsigned n = 0;

	for (unsigned worker = 0; worker < live->options.n_workers; worker++) {
		for (uint32_t position = 0; position != FLOW_NONE; position = page.next) {
			assert_int_equal(plane_page(live->plane, worker, position, &page), 0);
			assert_true(page.n <= PLANE_PAGE);
			n += page.n;
		}
	}
	return n;
}

/* Until all that was sent has come out; the lcores have other threads. */
static void wait_for(struct live *live, unsigned n, unsigned *out)
{
	while (*out < n) {
		for (unsigned side = 0; side < 2; side++)
			*out += live_take(live, side);
		sched_yield();
	}
}

static void feed(struct live *live, unsigned *sent)
{
	struct plane_snapshot snapshot;
	struct frame frame;
	unsigned out = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 50; i++, (*sent)++) {
			udp(&frame, *sent % N_FLOWS, *sent & 1);
			live_send(live, *sent & 1, 0, &frame);
		}
		if (round % 3 == 0) {
			assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
			live_check_sums(&snapshot);
			assert_true(snapshot.wires[0].received <= *sent);
		}
		if (round % 50 == 7)
			assert_true(count_pages(live) <= N_FLOWS);
		if (round % 8 == 0)
			wait_for(live, *sent, &out);
	}
	wait_for(live, *sent, &out);
}

static void questions_are_answered_while_packets_flow(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = shapes[shape].n_workers,
			.threads = shapes[shape].threads,
			.capacity = 2 * N_FLOWS,
		});
		struct plane_snapshot snapshot;
		struct flow_record record;
		struct error error;
		unsigned sent = 0, worker;

		assert_int_equal(plane_start(live->plane, &error), 0);
		feed(live, &sent);
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		assert_int_equal(snapshot.wires[0].received, sent);
		assert_int_equal(snapshot.wires[0].out, sent);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wire_flows[0], N_FLOWS);
		assert_int_equal(count_pages(live), N_FLOWS);

		const struct flow_key key = udp_key(7), nobody = udp_key(N_FLOWS);

		assert_int_equal(plane_kill(live->plane, &nobody, &worker, &record), -ENOENT);
		assert_int_equal(plane_kill(live->plane, &key, &worker, &record), 0);
		assert_true(flow_key_equal(&record.key, &key));
		assert_int_equal(
			flow_packets(&record, 0) + flow_packets(&record, 1), sent / N_FLOWS);
		assert_int_equal(plane_kill(live->plane, &key, &worker, &record), -ENOENT);
		assert_int_equal(live->reports[0].reason, FLOW_END_KILLED);

		plane_stop(live->plane);
		assert_int_equal(live->n_reports, N_FLOWS);
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		assert_int_equal(snapshot.wires[0].received, sent);
		live_end(live);
	}
}

static void events_come_while_somebody_follows(void **state)
{
	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 2});
	struct path_event events[64];
	struct frame frame;
	struct error error;
	unsigned n = 0, out = 0;
	uint64_t lost = 0;

	assert_int_equal(plane_start(live->plane, &error), 0);
	for (unsigned followed = 0; followed < 2; followed++) {
		assert_int_equal(plane_follow(live->plane, followed), 0);
		for (unsigned i = 0; i < 20; i++) {
			udp(&frame, 100 * followed + i / 2, i & 1);
			live_send(live, i & 1, 0, &frame);
		}
		wait_for(live, 20 * (followed + 1), &out);
	}
	assert_int_equal(plane_follow(live->plane, true), 0);
	plane_stop(live->plane);
	n = plane_events(live->plane, events, 64, &lost);
	/* new, open and end of those followed; of the others their end, since that was followed */
	assert_int_equal(n, 10 * 3 + 10);
	assert_int_equal(lost, 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(events[i].key.proto, IPPROTO_UDP);
	live_end(live);
}

/* Packets that arrive while it stops are received and counted, or are left in the port. */
static void a_stop_loses_nothing(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = shapes[shape].n_workers,
			.threads = shapes[shape].threads,
		});
		struct plane_snapshot snapshot;
		struct rte_mbuf *packet;
		struct frame frame;
		struct error error;
		unsigned left = 0;

		assert_int_equal(plane_start(live->plane, &error), 0);
		for (unsigned i = 0; i < 2000; i++) {
			udp(&frame, i % 100, i & 1);
			live_send(live, i & 1, 0, &frame);
		}
		plane_stop(live->plane);
		for (unsigned side = 0; side < 2; side++) {
			while (rte_ring_dequeue(live->in[side][0], (void **)&packet) == 0) {
				rte_pktmbuf_free(packet);
				left++;
			}
		}
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		live_check_sums(&snapshot);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wires[0].received + left, 2000);
		live_end(live);
	}
}

/* Fragments whose first never came go out at the stop, and it does not wait for them. */
static void a_stop_lets_fragments_go(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&(struct live_options){
			.n_workers = shapes[shape].n_workers,
			.threads = shapes[shape].threads,
		});
		struct plane_snapshot snapshot;
		struct frame frame;
		struct error error;

		assert_int_equal(plane_start(live->plane, &error), 0);
		for (unsigned id = 0; id < 40; id++) {
			frame_start(&frame);
			frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
			frame_ipv4_fragment(&frame, id, 16, false);
			frame_fill(&frame, 16);
			frame_finish(&frame);
			live_send(live, 0, 0, &frame);
		}
		do
			assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		while (snapshot.wires[0].received < 40);
		assert_int_equal(snapshot.wires[0].held, 40);
		plane_stop(live->plane);
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		assert_int_equal(snapshot.wires[0].held, 0);
		assert_int_equal(snapshot.wires[0].out, 40);
		assert_int_equal(snapshot.wires[0].fragments_untied, 40);
		assert_int_equal(live_take(live, 1), 40);
		live_end(live);
	}
}

/* A flow that was sent, and lies in the table of this worker; plane_kill() will look for it there. */
static struct flow_key flow_of_worker(struct live *live, unsigned worker, unsigned n_sent)
{
	for (unsigned flow = 0; flow < n_sent; flow++) {
		const struct flow_key key = udp_key(flow);
		const uint64_t hash = flow_key_hash(&live->plane->secret, &key);
		const struct packet_info info = {.key = key, .hash = hash};

		if (steer_shard(&live->plane->steer, &info) != worker)
			continue;
		assert_int_not_equal(
			flow_table_find(
				&plane_shard_lcore(live->plane, worker)->worker.shard->table, &key,
				hash),
			FLOW_NONE);
		return key;
	}
	fail_msg("none of %u flows belongs to worker %u", n_sent, worker);
	return (struct flow_key){.proto = 0};
}

/* Two workers of which one hangs: who asks is told soon, again and again, and what it did late is not lost. */
static void a_worker_that_hangs_holds_up_nobody(void **state)
{
	enum { SENT = 64 };

	(void)state;
	for (unsigned deaf = 0; deaf < 2; deaf++) {
		struct live *live = live_begin(&(struct live_options){.n_workers = 2});
		struct lcore *lcore = &live->plane->lcores[deaf];
		static struct plane_snapshot snapshot;
		static struct plane_page page;
		struct flow_record record;
		struct frame frame;
		unsigned worker;

		for (unsigned flow = 0; flow < SENT; flow++) {
			udp(&frame, flow, false);
			live_send(live, 0, 0, &frame);
		}
		live_settle(live);
		const struct flow_key key = flow_of_worker(live, deaf, SENT);

		/* it has a thread, as far as anybody knows, and that does nothing */
		lcore->started = true;
		plane_be_quick(live->plane);
		const uint64_t begin_us = monotonic_us();

		assert_int_equal(plane_kill(live->plane, &key, &worker, &record), -ETIMEDOUT);
		for (unsigned i = 0; i < 1000; i++) {
			assert_int_equal(plane_snapshot(live->plane, &snapshot), -ETIMEDOUT);
			assert_int_equal(plane_page(live->plane, deaf, 0, &page), -ETIMEDOUT);
			assert_int_equal(
				plane_kill(live->plane, &key, &worker, &record), -ETIMEDOUT);
		}
		assert_true(monotonic_us() - begin_us < CLOCK_US_PER_S);
		/* it wakes, and has done what it was asked: once */
		live_turn(live, deaf);
		assert_int_equal(plane_kill(live->plane, &key, &worker, &record), 0);
		assert_true(flow_key_equal(&record.key, &key));
		assert_int_equal(live->n_reports, 1);
		lcore->started = false;
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		live_end(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_answered_while_packets_flow),
		cmocka_unit_test(events_come_while_somebody_follows),
		cmocka_unit_test(a_stop_loses_nothing),
		cmocka_unit_test(a_stop_lets_fragments_go),
		cmocka_unit_test(a_worker_that_hangs_holds_up_nobody),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
