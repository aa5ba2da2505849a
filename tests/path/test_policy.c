/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of blocks on the packet path: new flows, live flows, and what is counted where. */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "action/policer.h"

#define N_FLOWS 256
#define FRAME_BYTES 62

static const struct live_options shapes[] = {
	{.n_workers = 1, .max_blocks = 64},
	{.n_workers = 2, .max_blocks = 64},
	{.n_workers = 3, .max_blocks = 64},
	{.n_workers = 1, .threads = PLANE_SPLIT, .max_blocks = 64},
	{.n_workers = 2, .threads = PLANE_SPLIT, .max_blocks = 64},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Flow n is from 10.0.N.1, where N is n modulo 16, to 10.9.0.1. */
static void udp(struct frame *frame, unsigned flow, bool back)
{
	char host[24];

	snprintf(host, sizeof(host), "10.0.%u.1", flow % 16);
	frame_start(frame);
	frame_ipv4(frame, back ? "10.9.0.1" : host, back ? host : "10.9.0.1", IPPROTO_UDP);
	frame_udp(frame, back ? 53 : 1024 + flow, back ? 1024 + flow : 53);
	frame_fill(frame, 20);
	frame_finish(frame);
}

static struct flow_key udp_key(unsigned flow)
{
	struct flow_key key = {.proto = IPPROTO_UDP, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	const uint8_t src[16] = {10, 0, (uint8_t)(flow % 16), 1}, dst[16] = {10, 9, 0, 1};

	flow_key_make(
		&key, src, dst, rte_cpu_to_be_16((uint16_t)(1024 + flow)), rte_cpu_to_be_16(53));
	return key;
}

static struct block block_of(const char *text)
{
	static char line[BLOCK_LINE_MAX];
	struct block block;
	struct error error;
	unsigned column;

	snprintf(line, sizeof(line), "%s", text);
	assert_int_equal(block_parse_line(&block, line, &column, &error), 0);
	return block;
}

static void add(struct live *live, const char *text)
{
	const struct block block = block_of(text);

	assert_true(blocks_add(plane_blocks(live->plane), &block, 0, NULL) >= 0);
}

static void cancel(struct live *live, const char *text)
{
	const struct block block = block_of(text);

	assert_int_equal(blocks_remove(plane_blocks(live->plane), &block.match, NULL), 0);
}

/* A packet of each flow, in both directions or in one; returns how many came out. */
static unsigned exchange(struct live *live, bool both)
{
	struct frame frame;
	unsigned out = 0;

	for (unsigned back = 0; back <= both; back++) {
		for (unsigned flow = 0; flow < N_FLOWS; flow++) {
			udp(&frame, flow, back);
			live_send(live, back, 0, &frame);
		}
		live_settle(live);
		out += live_take(live, !back);
	}
	return out;
}

/* What blocks themselves have counted. */
static uint64_t block_packets(struct live *live)
{
	struct blocks *blocks = plane_blocks(live->plane);
	struct block_view views[64];
	struct blocks_stats stats;
	uint32_t from = 0;
	uint64_t packets = 0;

	while (from != BLOCKS_NONE) {
		uint32_t n = blocks_list(blocks, &(struct blocks_filter){0}, &from, views, 64);

		for (uint32_t i = 0; i < n; i++)
			packets += views[i].packets;
	}
	blocks_stats(blocks, &stats);
	return packets + stats.gone_packets;
}

/* So many packets were dropped in all, by every count that there is; and reports agree at the end. */
static void expect_dropped(struct live *live, uint64_t packets)
{
	static struct plane_snapshot snapshot;
	uint64_t of_flows = 0, bytes = 0;

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	assert_int_equal(snapshot.wires[0].dropped[DROP_BLOCKED], packets);
	for (unsigned i = 0; i < snapshot.n_lcores; i++) {
		of_flows += snapshot.lcores[i].flow.dropped_packets;
		bytes += snapshot.lcores[i].flow.dropped_bytes;
	}
	assert_int_equal(of_flows, packets);
	assert_int_equal(bytes, packets * FRAME_BYTES);
	assert_int_equal(block_packets(live), packets);
}

static void end_and_expect(struct live *live, uint64_t packets)
{
	uint64_t reported = 0;

	expect_dropped(live, packets);
	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		if (live->plane->lcores[i].worker.shard != NULL)
			flow_shard_end_all(live->plane->lcores[i].worker.shard);
	for (unsigned i = 0; i < live->n_reports; i++)
		reported += live->reports[i].dropped.packets;
	assert_int_equal(reported, packets);
	live_end(live);
}

static void new_flows_are_decided(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&shapes[shape]);
		uint64_t dropped = 0;

		add(live, "10.0.3.0/24");
		add(live, "10.0.4.1 port 1028 proto udp");
		live_settle(live);
		/* learned at first, in one burst with others, and known then */
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(exchange(live, true), 2 * (N_FLOWS - 17));
			dropped += 34;
			expect_dropped(live, dropped);
		}
		end_and_expect(live, dropped);
	}
}

static void live_flows_are_decided_again(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&shapes[shape]);
		struct blocks *blocks = plane_blocks(live->plane);

		assert_int_equal(exchange(live, true), 2 * N_FLOWS);
		add(live, "10.0.0.0/22");
		live_settle(live);
		assert_int_equal(plane_decided(live->plane), blocks_generation(blocks));
		assert_int_equal(exchange(live, true), 2 * N_FLOWS * 12 / 16);
		expect_dropped(live, 2 * N_FLOWS * 4 / 16);
		cancel(live, "10.0.0.0/22");
		live_settle(live);
		blocks_settled(blocks, plane_decided(live->plane));
		assert_int_equal(exchange(live, true), 2 * N_FLOWS);
		add(live, "flow 10.0.5.1:1029 10.9.0.1:53 udp");
		live_settle(live);
		assert_int_equal(exchange(live, true), 2 * N_FLOWS - 2);
		end_and_expect(live, 2 * N_FLOWS * 4 / 16 + 2);
	}
}

/* The record of a flow that was dropped tells what was carried, and beside that what was not. */
static void records_tell_both(void **state)
{
	struct live *live = live_begin(&shapes[0]);
	const struct flow_key key = udp_key(7);
	struct frame frame;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		udp(&frame, 7, i & 1);
		live_send(live, i & 1, 0, &frame);
		live_settle(live);
	}
	add(live, "10.0.7.1");
	live_settle(live);
	live->now_us += 1000000;
	for (unsigned i = 0; i < 8; i++) {
		udp(&frame, 7, i & 1);
		live_send(live, i & 1, 0, &frame);
	}
	live_settle(live);

	struct plane_flow flow;

	assert_int_equal(plane_flow(live->plane, &key, &flow), 0);
	assert_true(flow.record.not_plain);
	assert_int_equal(flow.dropped.packets, 8);
	assert_int_equal(flow.record.last_seen_us, live->now_us);
	flow_shard_end_all(live->plane->lcores[0].worker.shard);
	assert_int_equal(live->n_reports, 1);

	const struct flow_report *report = &live->reports[0];

	assert_int_equal(flow_packets(&report->record, 0) + flow_packets(&report->record, 1), 5);
	assert_int_equal(report->dropped.packets, 8);
	assert_int_equal(report->dropped.bytes, 8 * FRAME_BYTES);
	assert_int_equal(report->reason, FLOW_END_SHUTDOWN);
	assert_int_equal(live_take(live, 0) + live_take(live, 1), 5);
	live_end(live);
}

/* Does every live flow have the verdict that the list has for it? Says how many flows there are. */
static unsigned check_verdicts(struct live *live)
{
	const struct blocks *blocks = plane_blocks(live->plane);
	unsigned n = 0;

	for (unsigned worker = 0; worker < live->options.n_workers; worker++) {
		const struct flow_shard *shard =
			plane_shard_lcore(live->plane, worker)->worker.shard;

		for (uint32_t i = 0; i < flow_table_positions(&shard->table); i++) {
			const struct flow_record *record = flow_table_record(&shard->table, i);
			uint32_t block;

			if (record->state == FLOW_FREE)
				continue;
			block = blocks_find(blocks, &record->key);
			assert_int_equal(record->not_plain, block != BLOCKS_NONE);
			if (block != BLOCKS_NONE)
				assert_int_equal(flow_shard_dropped(shard, i).cause, block);
			n++;
		}
	}
	return n;
}

/* Changes of the list between any two turns, and at the end every flow has the last one. */
static void storms_leave_no_old_verdict(void **state)
{
	(void)state;
	srandom(7);
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live *live = live_begin(&shapes[shape]);
		struct blocks *blocks = plane_blocks(live->plane);
		bool there[16] = {false};
		char text[40];

		assert_int_equal(exchange(live, true), 2 * N_FLOWS);
		for (unsigned round = 0; round < 40; round++) {
			for (unsigned change = 0; change < 30; change++) {
				unsigned n = (unsigned)random() % 16;

				snprintf(text, sizeof(text), "10.0.%u.0/24", n);
				if (there[n])
					cancel(live, text);
				else
					add(live, text);
				there[n] = !there[n];
				for (unsigned i = (unsigned)random() % 4; i != 0; i--)
					live_turn(live, (unsigned)random() % live->plane->n_lcores);
				blocks_settled(blocks, plane_decided(live->plane));
			}
			live_settle(live);
			assert_int_equal(plane_decided(live->plane), blocks_generation(blocks));
			assert_int_equal(check_verdicts(live), N_FLOWS);
			blocks_settled(blocks, plane_decided(live->plane));
			(void)exchange(live, true);
		}
		live_end(live);
	}
}

/* What flows are decided to be done with, by the last digits of their ports. */
struct chooser {
	uint16_t verdict[4]; /* by kind */
	bool turned;	     /* kinds are counted from the other end */
};

static unsigned kind_of(const struct chooser *chooser, const struct flow_key *key)
{
	const unsigned port =
		RTE_MAX(rte_be_to_cpu_16(key->port[0]), rte_be_to_cpu_16(key->port[1]));

	return chooser->turned ? 3 - port % 4 : port % 4;
}

static void choose(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const struct chooser *chooser = context;
	/* the same for both directions but for the translation, which is of what the hosts send */
	const unsigned kind = kind_of(chooser, key);

	(void)port;
	decision->verdict[0] = decision->verdict[1] = chooser->verdict[kind];
}

static uint16_t program_of(struct live *live, const struct action *list, unsigned n)
{
	struct action_program program;
	struct error error;
	uint16_t number;

	assert_int_equal(action_program_compile(&program, list, n, &error), 0);
	assert_int_equal(
		programs_intern(plane_programs(live->plane), &program, &number, &error), 0);
	return number;
}

/* 0: forwarded, 1: routed, 2: sent back by the port that it came by, 3: dropped. */
static void make_kinds(struct live *live, struct chooser *chooser)
{
	const struct action routed[] = {
		{.kind = ACTION_SET_MAC_SRC, .mac = {2, 0, 0, 0, 0, 1}},
		{.kind = ACTION_SET_MAC_DST, .mac = {2, 0, 0, 0, 9, 2}},
		{.kind = ACTION_DECREMENT_TTL},
	};
	const struct action back = {.kind = ACTION_OUTPUT, .port = 0};
	const struct action drop = {.kind = ACTION_DROP};

	chooser->verdict[1] = program_of(live, routed, 3);
	chooser->verdict[2] = program_of(live, &back, 1);
	chooser->verdict[3] = program_of(live, &drop, 1);
	assert_int_equal(chooser->verdict[3], FLOW_VERDICT_DROP);
}

/* A packet of each flow comes by port 0; counts what goes out, and looks at each packet of it. */
static void expect_kinds(struct live *live, const struct chooser *chooser)
{
	struct rte_mbuf *packet;
	struct frame frame;
	unsigned n[2] = {0};

	for (unsigned flow = 0; flow < N_FLOWS; flow++) {
		udp(&frame, flow, false);
		live_send(live, 0, 0, &frame);
	}
	live_settle(live);
	for (unsigned side = 0; side < 2; side++) {
		while ((packet = live_take_one(live, side)) != NULL) {
			const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
			unsigned kind = ((unsigned)bytes[34] << 8 | bytes[35]) % 4;

			if (chooser->turned)
				kind = 3 - kind;
			assert_int_equal(kind == 2, side == 0);
			assert_int_not_equal(kind, 3);
			assert_int_equal(bytes[22], kind == 1 ? 63 : 64);
			assert_int_equal(bytes[4] == 9, kind == 1);
			rte_pktmbuf_free(packet);
			n[side]++;
		}
	}
	assert_int_equal(n[0], N_FLOWS / 4);
	assert_int_equal(n[1], N_FLOWS / 2);
}

static void programs_are_run(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live_options options = shapes[shape];
		struct chooser chooser = {.turned = false};

		options.max_programs = 8;
		options.policy = (struct policy_others){.context = &chooser, .decide = choose};
		struct live *live = live_begin(&options);

		make_kinds(live, &chooser);
		/* learned, and known then */
		for (unsigned i = 0; i < 3; i++)
			expect_kinds(live, &chooser);
		/* a block is above all of it */
		add(live, "10.0.0.0/16");
		live_settle(live);
		assert_int_equal(exchange(live, false), 0);
		cancel(live, "10.0.0.0/16");
		chooser.turned = true;
		uint64_t change = plane_policy_changed(live->plane);

		live_settle(live);
		assert_int_equal(plane_policy_decided(live->plane), change);
		for (unsigned i = 0; i < 3; i++)
			expect_kinds(live, &chooser);
		live_end(live);
	}
}

/* Two changes come while the worker has no time to decide anything: it knows the second one in the end, too. */
static void changes_join_before_a_step(void **state)
{
	struct live_options options = shapes[0];
	struct chooser chooser = {.turned = false};
	struct frame frame;
	uint64_t change = 0;

	(void)state;
	options.max_programs = 8;
	options.policy = (struct policy_others){.context = &chooser, .decide = choose};
	struct live *live = live_begin(&options);

	make_kinds(live, &chooser);
	udp(&frame, 1, false);
	/* an iteration with a packet, before which no time has passed that the walk would have a share of */
	for (unsigned i = 0; i < 2; i++) {
		change = plane_policy_changed(live->plane);
		live->plane->lcores[0].policy.credit = -1;
		live->plane->lcores[0].policy.begin_tsc = 0;
		live_send(live, 0, 0, &frame);
		live_turn(live, 0);
		assert_true(plane_policy_decided(live->plane) < change);
	}
	live_settle(live);
	assert_int_equal(plane_policy_decided(live->plane), change);
	(void)live_take(live, 1);
	live_end(live);
}

/* A burst of 10 packets and 100 a second: after the burst, the rate; what is above has its own reason. */
static void a_policer_lets_its_rate_pass(void **state)
{
	static const struct policer_options policer = {
		.peak = {.rate = 100, .burst = 10}, .packets = true};

	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct live_options options = shapes[shape];
		struct chooser chooser = {.turned = false};
		const struct action police = {.kind = ACTION_POLICE, .number = 0};
		struct plane_snapshot snapshot;
		struct frame frame;

		options.max_programs = 8;
		options.policy = (struct policy_others){.context = &chooser, .decide = choose};
		options.policers = &policer;
		options.n_policers = 1;
		struct live *live = live_begin(&options);

		for (unsigned kind = 0; kind < 4; kind++)
			chooser.verdict[kind] = program_of(live, &police, 1);
		udp(&frame, 0, false);
		for (unsigned second = 0; second < 3; second++) {
			for (unsigned i = 0; i < 50; i++)
				live_send(live, 0, 0, &frame);
			live_settle(live);
			assert_in_range(live_take(live, 1), 10, 12);
			live->now_us += second == 1 ? 50000 : CLOCK_US_PER_S;
			live_settle(live);
			/* half as many have come back after 50 ms */
			if (second == 1) {
				for (unsigned i = 0; i < 50; i++)
					live_send(live, 0, 0, &frame);
				live_settle(live);
				assert_in_range(live_take(live, 1), 5, 7);
				live->now_us += CLOCK_US_PER_S;
			}
		}
		live_snapshot(live, 3, &snapshot);
		assert_int_equal(snapshot.wires[0].dropped[DROP_POLICED],
			snapshot.wires[0].received - snapshot.wires[0].out);
		assert_in_range(snapshot.wires[0].out, 35, 43);
		live_end(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_flows_are_decided),
		cmocka_unit_test(live_flows_are_decided_again),
		cmocka_unit_test(records_tell_both),
		cmocka_unit_test(storms_leave_no_old_verdict),
		cmocka_unit_test(programs_are_run),
		cmocka_unit_test(changes_join_before_a_step),
		cmocka_unit_test(a_policer_lets_its_rate_pass),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
