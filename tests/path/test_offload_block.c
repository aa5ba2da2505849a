/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that are blocked while the NIC has them: it stops sending them on, and drops them alone where it can. Streams
 * have a known number of packets: each was either carried or dropped, and is counted where it was.
 */
#include "offload_full.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define N_FLOWS 16
#define N_BLOCKED 8

static bool is_dropped(struct offload_live *live, void *context)
{
	return full_nic_dropped(live) >= *(uint64_t *)context;
}

static void block(struct offload_live *live, uint32_t flow)
{
	const struct block block = {
		.match = {.is_flow = true, .flow = live->flows[flow].key},
	};

	assert_int_equal(blocks_add(plane_blocks(live->plane), &block, 0, NULL), 0);
}

static void unblock(struct offload_live *live, uint32_t flow)
{
	const struct block_match match = {.is_flow = true, .flow = live->flows[flow].key};

	assert_int_equal(blocks_remove(plane_blocks(live->plane), &match, NULL), 0);
}

/* Every packet of each flow was carried or dropped, and blocks, flows, wires and the NICs agree on which. */
static void check(struct offload_live *live, uint64_t passes)
{
	static struct plane_snapshot snapshot;
	struct block_view views[N_FLOWS];
	struct blocks_stats stats;
	uint64_t of_flows = 0, of_blocks = 0;
	uint32_t from = 0;

	full_end_all(live);
	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		const struct live_flow *flow = &live->flows[i];

		assert_int_equal(
			flow->reported[0] + flow->reported[1] + flow->reported_dropped, 2 * passes);
		assert_int_equal(flow->estimated, 0);
		if (i >= N_BLOCKED)
			assert_int_equal(flow->reported_dropped, 0);
		of_flows += flow->reported_dropped;
	}
	while (from != BLOCKS_NONE) {
		uint32_t n = blocks_list(plane_blocks(live->plane), &(struct blocks_filter){0},
			&from, views, N_FLOWS);

		for (uint32_t i = 0; i < n; i++)
			of_blocks += views[i].packets;
	}
	blocks_stats(plane_blocks(live->plane), &stats);
	assert_int_equal(snapshot.wires[0].nic_dropped, full_nic_dropped(live));
	assert_int_equal(snapshot.wires[0].nic_forwarded, full_forwarded(live));
	assert_int_equal(
		of_flows, snapshot.wires[0].nic_dropped + snapshot.wires[0].dropped[DROP_BLOCKED]);
	assert_true(of_blocks + stats.gone_packets <= of_flows);
}

static struct offload_live *begin(const char *words, unsigned n_workers, uint64_t passes)
{
	const struct offload_live_options options = {
		.n_flows = N_FLOWS,
		.n_workers = n_workers,
		.n_queues = n_workers,
		.max_blocks = 64,
	};
	struct offload_live *live = full_begin(&options, words, passes);
	uint64_t packets = passes / 8;

	assert_true(offload_live_until(live, full_is_sent_on, &packets, FULL_PROVEN_MS));
	return live;
}

/* What was sent on is dropped in the NIC, and sent on again when it is unblocked. */
static void flows_are_dropped_there(const char *words, unsigned n_workers)
{
	uint64_t passes = 400000;
	struct offload_live *live = begin(words, n_workers, passes);
	uint64_t packets = 20000;

	for (uint32_t i = 0; i < N_BLOCKED; i++)
		block(live, i);
	assert_true(offload_live_until(live, is_dropped, &packets, 60000));
	for (uint32_t i = 0; i < N_BLOCKED / 2; i++)
		unblock(live, i);
	assert_true(offload_live_until(live, full_is_silent, &passes, 120000));
	check(live, passes);
	offload_live_leave(live);
}

static void udp(void **state)
{
	(void)state;
	flows_are_dropped_there("profile=cx5", 1);
}

static void tcp(void **state)
{
	(void)state;
	flows_are_dropped_there("profile=cx5,proto=tcp", 1);
}

static void two_workers(void **state)
{
	(void)state;
	flows_are_dropped_there("profile=cx5", 2);
}

/* The NIC cannot drop, or has no counter for what it drops: then the CPU does. */
static void by_the_cpu_where_the_nic_cannot(void **state)
{
	uint64_t passes = 100000;
	struct offload_live *live = begin("profile=cx5,actions=-drop", 1, passes);

	(void)state;
	for (uint32_t i = 0; i < N_BLOCKED; i++)
		block(live, i);
	assert_true(offload_live_until(live, full_is_silent, &passes, 120000));
	assert_int_equal(full_nic_dropped(live), 0);
	check(live, passes);
	offload_live_leave(live);
}

static bool are_marked(struct offload_live *live, void *context)
{
	uint64_t marked = UINT64_MAX;

	for (uint32_t i = 0; i < N_FLOWS; i++)
		marked = RTE_MIN(marked, live->flows[i].marked[0]);
	return marked >= *(uint64_t *)context;
}

static uint64_t sent_out(const struct offload_live *live, uint32_t begin, uint32_t end)
{
	uint64_t out = 0;

	for (uint32_t i = begin; i < end; i++)
		out += live->flows[i].out[0] + live->flows[i].out[1];
	return out;
}

/* Packets that are to have gone out, of these flows. */
struct goal {
	uint32_t begin, end;
	uint64_t out;
};

static bool is_out(struct offload_live *live, void *context)
{
	const struct goal *goal = context;

	return sent_out(live, goal->begin, goal->end) >= goal->out;
}

static void expect_out(struct offload_live *live, uint32_t begin, uint32_t end, uint64_t more)
{
	struct goal goal = {begin, end, sent_out(live, begin, end) + more};

	assert_true(offload_live_until(live, is_out, &goal, 60000));
}

/* Packets with the NIC's marks are dropped as others are, and the rest of their burst goes out. */
static void marked_packets_are_dropped(void **state)
{
	(void)state;
	for (unsigned large = 0; large < 2; large++) {
		const struct offload_live_options options = {
			.n_flows = N_FLOWS,
			.words = "profile=cx5",
			.rate = FULL_RATE,
			.max_blocks = 64,
			.large = large != 0,
		};
		struct offload_live *live = offload_live_begin(&options);
		uint64_t packets = 100, out;

		assert_true(offload_live_until(live, are_marked, &packets, FULL_PROVEN_MS));
		for (uint32_t i = 0; i < N_BLOCKED; i++)
			block(live, i);
		offload_live_run(live, 100);
		out = sent_out(live, 0, N_BLOCKED);
		expect_out(live, N_BLOCKED, N_FLOWS, 1000);
		assert_int_equal(sent_out(live, 0, N_BLOCKED), out);
		for (uint32_t i = N_BLOCKED; i < N_FLOWS; i++)
			assert_int_equal(live->flows[i].out[0], live->flows[i].in[0]);
		for (uint32_t i = 0; i < N_BLOCKED; i++)
			unblock(live, i);
		expect_out(live, 0, N_BLOCKED, 1000);
		offload_live_leave(live);
	}
}

/* The NIC forgets its rules, or loses what it is given: the CPU drops what it gets then, and nothing goes out. */
static void a_lost_rule_lets_nothing_out(void **state)
{
	static const char *const faults[] = {"forget", "lose:every=2"};
	uint64_t passes = 200000;

	(void)state;
	for (unsigned fault = 0; fault < 2; fault++) {
		struct offload_live *live = begin("profile=cx5", 1, passes);
		uint64_t packets = 5000, out = 0;

		for (uint32_t i = 0; i < N_BLOCKED; i++)
			block(live, i);
		assert_true(offload_live_until(live, is_dropped, &packets, 60000));
		offload_live_run(live, 300);
		out = sent_out(live, 0, N_BLOCKED);
		for (unsigned side = 0; side < 2; side++)
			offload_live_fault(live, side, faults[fault]);
		offload_live_run(live, 1000);
		assert_int_equal(sent_out(live, 0, N_BLOCKED), out);
		offload_live_leave(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(udp, offload_live_tidy),
		cmocka_unit_test_teardown(tcp, offload_live_tidy),
		cmocka_unit_test_teardown(two_workers, offload_live_tidy),
		cmocka_unit_test_teardown(by_the_cpu_where_the_nic_cannot, offload_live_tidy),
		cmocka_unit_test_teardown(marked_packets_are_dropped, offload_live_tidy),
		cmocka_unit_test_teardown(a_lost_rule_lets_nothing_out, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
