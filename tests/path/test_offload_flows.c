/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of all kinds in the NIC, in every shape of the plane: all are proven, every packet is its own flow's.
 * And flows that end, come back, fall out or are evicted while they are there.
 */
#include "offload_talks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#define NEW_SEQ UINT32_C(0x60000000)
#define PROVEN_MS 20000
#define SECOND_US UINT64_C(1000000)

static const struct shape {
	const char *name;
	struct offload_live_options options;
} shapes[] = {
	{"completions", {.words = "proto=mix,ipv6=50,size=64-1500"}},
	{"blocking calls", {.words = "proto=mix,ipv6=50,async=0"}},
	{"counters are read", {.words = "proto=mix,ipv6=50", .counters = true}},
	{"two workers, two queues", {.words = "proto=mix,ipv6=50", .n_workers = 2, .n_queues = 2}},
	{"two workers, one queue", {.words = "proto=mix,ipv6=50", .n_workers = 2}},
	{"split threads", {.words = "proto=mix,ipv6=50", .n_workers = 2, .threads = PLANE_SPLIT}},
	{"a large table", {.words = "proto=mix,ipv6=50,size=64-1500", .large = true}},
	{"a large table, two workers",
		{.words = "proto=mix,ipv6=50", .n_workers = 2, .n_queues = 2, .large = true}},
	{"one way", {.words = "proto=mix,ipv6=50", .one_way = true}},
	{"ConnectX-5", {.words = "profile=cx5,proto=tcp,ipv6=50", .counters = true}},
	{"ConnectX-6", {.words = "profile=cx6-hws,proto=udp,ipv6=50", .counters = true}},
	{"X710", {.words = "profile=x710,proto=tcp"}},
	{"E810", {.words = "profile=e810,proto=tcp,ipv6=50"}},
	{"tiny", {.words = "profile=tiny,proto=mix,ipv6=50"}},
};

/*
 * What records say of their marked packets is what arrived with a mark, and `more` that the test put in; but for
 * strangers, whose mark is another flow's or that of one that has ended.
 */
static void check_told(const struct offload_live *live, uint64_t more, uint64_t strangers)
{
	uint64_t told = 0, marked = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		assert_int_not_equal(live->flows[i].told, UINT64_MAX);
		told += live->flows[i].told;
		marked += live->flows[i].marked[0] + live->flows[i].marked[1];
	}
	assert_int_equal(told + strangers, marked + more);
}

static void all_kinds_are_proven(void **state)
{
	const struct shape *shape = *state;
	struct offload_live_options options = shape->options;
	struct agent_counters counters;

	options.n_flows = 256;
	options.rate = 100000;
	struct offload_live *live = offload_live_begin(&options);

	if (!offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS)) {
		offload_live_print(live);
		fail_msg("not every flow is in the NIC");
	}
	/* from now on there is no packet without a mark */
	uint64_t before = offload_live_received(live, 0) - offload_live_marked(live, 0);

	offload_live_run(live, 300);
	offload_live_check(live);
	assert_int_equal(offload_live_received(live, 0) - offload_live_marked(live, 0), before);
	assert_true(offload_live_all_proven(live, NULL));
	for (unsigned port = 0; port < 2; port++) {
		offload_live_counters(live, port, &counters);
		assert_int_equal(counters.strangers, 0);
		assert_int_equal(counters.arrows[OFFLOAD_PROVEN][OFFLOAD_SUSPECT], 0);
		assert_int_equal(counters.flows[OFFLOAD_PROVEN],
			port == 1 && options.one_way ? 0 : options.n_flows);
	}
	for (uint32_t i = 0; i < options.n_flows; i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		assert_int_equal(
			answer.offload.reason[offload_live_from(&answer.record, 0)], OFFLOAD_BUSY);
		assert_int_equal(answer.mark, live->flows[i].mark);
	}
	offload_live_finish(live);
	check_told(live, 0, 0);
	offload_live_leave(live);
}

static bool has_ended(struct offload_live *live, void *flow)
{
	return !offload_live_knows(live, flow);
}

/* Five seconds at most; else what the plane knows is told. */
static void await(struct offload_live *live,
	bool (*is_so)(struct offload_live *live, void *context), void *context, const char *what)
{
	if (offload_live_until(live, is_so, context, 5000))
		return;
	offload_live_print(live);
	fail_msg("waited in vain: %s", what);
}

static bool has_rules(struct offload_live *live, void *n_rules)
{
	return offload_live_rules(live, 0) == *(const uint32_t *)n_rules &&
	       offload_live_rules(live, 1) == *(const uint32_t *)n_rules;
}

static bool has_slots(struct offload_live *live, void *n)
{
	struct plane_slots slots;

	assert_int_equal(plane_slots(live->plane, 0, &slots), 0);
	return slots.used == *(const uint32_t *)n && slots.draining == 0;
}

/* How a flow comes to its end before it falls silent. */
static const struct way {
	const char *name, *words;
	enum flow_end reason;
	unsigned side; /* by which its RST comes */
} ways[] = {
	{"TCP ends by FIN", "proto=tcp", FLOW_END_FIN, 0},
	{"TCP ends by FIN, blocking calls", "proto=tcp,async=0", FLOW_END_FIN, 0},
	{"TCP ends by RST", "proto=tcp", FLOW_END_RST, 0},
	{"TCP ends by RST from the other side", "proto=tcp,async=0", FLOW_END_RST, 1},
	{"TCP falls silent", "proto=tcp", FLOW_END_IDLE, 0},
	{"SCTP falls silent", "proto=sctp", FLOW_END_IDLE, 0},
	{"SCTP over IPv6 falls silent", "proto=sctp,ipv6=100,async=0", FLOW_END_IDLE, 0},
	{"ICMP falls silent", "proto=icmp", FLOW_END_IDLE, 0},
	{"SCTP is ended", "proto=sctp", FLOW_END_KILLED, 0},
};

/* Its last packets have the mark or not, as NICs can tell such ones apart or cannot; returns how many have it. */
static unsigned end_flow(struct offload_live *live, const struct way *way, uint32_t mark)
{
	struct live_flow *flow = &live->flows[0];

	if (way->reason == FLOW_END_FIN)
		offload_live_close(live, flow, mark);
	if (way->reason == FLOW_END_RST)
		offload_live_put(live, flow, way->side, mark, TCP_RST);
	offload_live_run(live, 5);
	flow->muted = true;
	if (way->reason == FLOW_END_KILLED)
		offload_live_kill(live, flow);
	if (mark == 0)
		return 0;
	return way->reason == FLOW_END_FIN ? 3 : way->reason == FLOW_END_RST;
}

/*
 * One of eight flows ends while its rules are there: they go, its slot comes back, and a new flow with its
 * addresses is nobody but itself.
 */
static void a_flow_ends_and_comes_back(void **state)
{
	const struct way *way = *state;
	const uint32_t left = 7;
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = left + 1, .words = way->words, .rate = 20000, .idle_s = 1});
	struct live_flow *flow = &live->flows[0];
	struct agent_counters counters;
	uint64_t strangers = 0;
	unsigned put = 0;

	for (unsigned round = 0; round < 2; round++) {
		uint32_t n = left;

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		uint32_t old = flow->mark;

		put += end_flow(live, way, round == 0 ? old : 0);
		await(live, has_ended, flow, "it ends");
		await(live, has_rules, &n, "its rules go");
		await(live, has_slots, &n, "its slot comes back");
		offload_live_put_late(live, 0, 1, old);
		put += OFFLOAD_LIVE_LATE;
		flow->muted = false;
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_run(live, 20);
		assert_int_not_equal(flow->mark, old);
		offload_live_check(live);
	}
	for (unsigned port = 0; port < 2; port++) {
		offload_live_counters(live, port, &counters);
		strangers += counters.strangers;
	}
	offload_live_finish(live);
	/*
	 * On a machine that is late by more than a second every flow falls silent, and ends. What comes next has the marks of
	 * before, which are strangers then.
	 */
	if (way->reason == FLOW_END_IDLE)
		assert_true(flow->ended[FLOW_END_IDLE] >= 2);
	else
		assert_int_equal(flow->ended[way->reason], 2);
	check_told(live, put, strangers);
	offload_live_leave(live);
}

/* A slow machine takes more than a second for that many. */
static bool hundred_rules_were_asked_for(struct offload_live *live, void *unused)
{
	struct agent_counters counters;

	(void)unused;
	offload_live_counters(live, 0, &counters);
	return counters.arrows[OFFLOAD_QUEUED][OFFLOAD_INSTALLING] > 100;
}

/* Far more flows than there are records: each packet evicts, and is counted none the less. */
static void evicted_flows_take_their_rules_along(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 1000, .rate = 50000, .capacity = 64, .words = "proto=mix,ipv6=50"});

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		offload_live_run(live, 100);
		offload_live_check(live);
	}
	assert_true(offload_live_until(live, hundred_rules_were_asked_for, NULL, PROVEN_MS));
	offload_live_check(live);
	/* what nobody needs any more goes */
	for (uint32_t i = 8; i < 1000; i++)
		live->flows[i].muted = true;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_end(live);
}

/* All of their packets come with marks of an earlier run: their rates are measured none the less. */
static void flows_that_ghosts_mark_come_in(void **state)
{
	static const uint32_t thresholds[] = {1000, 0};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(thresholds); i++) {
		struct offload_live *live =
			offload_live_begin(&(struct offload_live_options){.n_flows = 4,
				.words = "proto=udp,fault=ghost:rules=4",
				.rate = 40000,
				.threshold = thresholds[i]});
		struct agent_counters counters;

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_counters(live, 0, &counters);
		assert_true(counters.ghosts > 0);
		offload_live_end(live);
	}
}

/* A dead port, and so few flows that only deletes are asked of it: they fail, again and again. */
static void a_dead_port_of_few_flows_is_restarted(void **state)
{
	static const char *const words[] = {"async=0", NULL};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		struct offload_live *live = offload_live_begin(&(struct offload_live_options){
			.n_flows = 4, .words = words[i], .rate = 10000, .restart = true});

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_fault(live, 0, "dead");
		offload_live_run(live, 100);
		assert_false(offload_live_all_proven(live, NULL));
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_end(live);
	}
}

/* What has been seen of flows that come back one by one. */
struct fallen {
	bool flow[4];
	unsigned n;
};

/* All have been in software once, waiting to be asked in again. */
static bool have_fallen(struct offload_live *live, void *context)
{
	struct fallen *fallen = context;

	for (uint32_t i = 0; i < RTE_DIM(fallen->flow); i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		/* of the other direction nothing was ever asked */
		assert_int_equal(answer.offload.state[offload_live_from(&answer.record, 1)],
			OFFLOAD_SOFTWARE);
		if (fallen->flow[i] ||
			answer.offload.state[offload_live_from(&answer.record, 0)] !=
				OFFLOAD_SOFTWARE ||
			answer.offload.reason[offload_live_from(&answer.record, 0)] !=
				OFFLOAD_QUARANTINE)
			continue;
		fallen->flow[i] = true;
		fallen->n++;
	}
	return fallen->n == RTE_DIM(fallen->flow);
}

/* Packets of one direction alone: the rule is lost in mid-run, noticed, and made again. */
static void one_way_traffic_falls_out_and_returns(void **state)
{
	struct fallen fallen = {.n = 0};
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 4, .words = "proto=udp", .one_way = true, .rate = 40000});
	struct agent_counters counters;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_forget(live);
	uint64_t since_us = live->now_us;

	offload_live_fault(live, 0, "forget");
	assert_true(offload_live_until(live, have_fallen, &fallen, PROVEN_MS));
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	/* what is left of the wait is told in whole milliseconds */
	assert_true(live->now_us >= since_us + SECOND_US / 10 - 1000);
	/* each once, and after the first wait, which is the shortest */
	offload_live_counters(live, 0, &counters);
	assert_int_equal(counters.fell_out[OFFLOAD_UNMARKED], 4);
	for (uint32_t i = 0; i < 4; i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		assert_int_equal(
			offload_back_off(&answer.record, offload_live_from(&answer.record, 0)), 1);
	}
	offload_live_end(live);
}

static bool is_counted(struct offload_live *live, void *unused)
{
	struct plane_flow answer;

	(void)unused;
	offload_live_ask(live, &live->flows[0], &answer);
	return answer.nic[offload_live_from(&answer.record, 0)] != 0 &&
	       answer.nic[offload_live_from(&answer.record, 1)] != 0;
}

static bool has_left(struct offload_live *live, void *answer)
{
	struct plane_flow *told = answer;

	offload_live_ask(live, &live->flows[0], told);
	return told->offload.state[offload_live_from(&told->record, 0)] == OFFLOAD_SOFTWARE;
}

/* A NIC's counter is told as long as its rule is in force; another rule's begins anew. */
static void a_counter_goes_with_its_rule(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 1, .words = "proto=udp", .counters = true, .rate = 10000});
	struct plane_flow answer;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	assert_true(offload_live_until(live, is_counted, NULL, PROVEN_MS));
	offload_live_ask(live, &live->flows[0], &answer);
	uint64_t before = answer.nic[offload_live_from(&answer.record, 0)];

	offload_live_fault(live, 0, "forget");
	assert_true(offload_live_until(live, has_left, &answer, PROVEN_MS));
	assert_int_equal(answer.nic[offload_live_from(&answer.record, 0)], 0);
	/* the other side's is there still */
	assert_int_not_equal(answer.nic[offload_live_from(&answer.record, 1)], 0);
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	assert_true(offload_live_until(live, is_counted, NULL, PROVEN_MS));
	offload_live_ask(live, &live->flows[0], &answer);
	assert_true(
		answer.nic[offload_live_from(&answer.record, 0)] <= live->flows[0].in[0] - before);
	offload_live_end(live);
}

/* As it was told last, more than 16 bits have, of both directions. */
static bool is_counted_far(struct offload_live *live, void *unused)
{
	struct plane_flow answer;

	(void)unused;
	offload_live_ask(live, &live->flows[0], &answer);
	return answer.nic[offload_live_from(&answer.record, 0)] > UINT16_MAX &&
	       answer.nic[offload_live_from(&answer.record, 1)] > UINT16_MAX;
}

static bool fell_out_by_counters(struct offload_live *live, void *unused)
{
	struct agent_counters counters[2];

	(void)unused;
	for (unsigned port = 0; port < 2; port++)
		offload_live_counters(live, port, &counters[port]);
	return counters[0].fell_out[OFFLOAD_COUNTER] > 0 &&
	       counters[1].fell_out[OFFLOAD_COUNTER] > 0;
}

/* A counter that told more than it can have by now does not go with its packets; the next rule's width is learned. */
static void a_counter_becomes_narrower(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 1, .words = "proto=udp", .counters = true, .rate = 20000});
	struct agent_counters counters;
	struct plane_flow answer;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	assert_true(offload_live_until(live, is_counted_far, NULL, PROVEN_MS));
	for (unsigned side = 0; side < 2; side++)
		offload_live_fault(live, side, "wrap:bits=16");
	assert_true(offload_live_until(live, fell_out_by_counters, NULL, PROVEN_MS));
	/* what records have is software's own all along */
	offload_live_check(live);
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	assert_true(offload_live_until(live, is_counted_far, NULL, PROVEN_MS));
	for (unsigned port = 0; port < 2; port++) {
		offload_live_counters(live, port, &counters);
		assert_int_equal(counters.fell_out[OFFLOAD_COUNTER], 1);
	}
	offload_live_ask(live, &live->flows[0], &answer);
	assert_true(answer.nic[offload_live_from(&answer.record, 0)] <= live->flows[0].in[0]);
	offload_live_end(live);
}

static void syn_frame(struct frame *frame, bool back)
{
	frame_start(frame);
	frame_ipv4(
		frame, back ? "10.0.0.2" : "10.0.0.1", back ? "10.0.0.1" : "10.0.0.2", IPPROTO_TCP);
	frame_tcp(frame, &(struct frame_tcp){.src_port = back ? 80 : 1000,
				 .dst_port = back ? 1000 : 80,
				 .seq = back ? 500 : 100,
				 .ack = back ? 101 : 0,
				 .flags = back ? TCP_SYN | TCP_ACK : TCP_SYN,
				 .window = 8192});
	frame_finish(frame);
}

static bool is_proven(struct offload_live *live, void *context)
{
	return offload_live_proven(live, context);
}

/*
 * A connection of which nothing but SYNs and their answers is ever seen; a flow of fragments, for which no rule is asked;
 * and one of whole datagrams.
 */
static void only_what_rules_leave_out_asks_for_none(void **state)
{
	static const struct talk pieces = {"10.0.0.3", "10.0.0.4", IPPROTO_UDP, 1000, 2000, 0};
	static const struct talk whole = {"10.0.0.5", "10.0.0.6", IPPROTO_UDP, 1000, 2000, 0};
	struct frame frames[5];
	const struct live_frame list[] = {
		{&frames[0], 0, 1},
		{&frames[1], 0, 0},
		{&frames[2], 1, 0},
		{&frames[3], 2, 0},
		{&frames[4], 2, 1},
	};
	struct plane_flow answer;

	(void)state;
	syn_frame(&frames[0], true);
	syn_frame(&frames[1], false);
	talk_fragment(&frames[2], &pieces, false);
	talk_frame(&frames[3], &whole, false);
	talk_frame(&frames[4], &whole, true);
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){.n_flows = 3,
		.frames = list,
		.n_frames = RTE_DIM(list),
		.rate = 40000,
		.threshold = 100});

	/* the SYN is the first that is seen */
	live->flows[0].muted = true;
	offload_live_put_frame(live, &frames[1], 0, 0);
	offload_live_run(live, 5);
	live->flows[0].muted = false;
	assert_true(offload_live_until(live, is_proven, &live->flows[0], PROVEN_MS));
	assert_true(offload_live_until(live, is_proven, &live->flows[2], PROVEN_MS));
	/* what is not asked in has time enough to be */
	offload_live_run(live, 500);
	assert_true(offload_live_proven(live, &live->flows[0]));
	offload_live_ask(live, &live->flows[0], &answer);
	assert_int_equal(answer.record.state, FLOW_SYN_RECEIVED);
	for (unsigned side = 0; side < 2; side++) {
		/* fragments are all that comes of one flow, by side 0: it says why it is there */
		offload_live_ask(live, &live->flows[1], &answer);
		assert_int_equal(answer.offload.state[offload_live_from(&answer.record, side)],
			OFFLOAD_SOFTWARE);
		assert_int_equal(answer.offload.reason[offload_live_from(&answer.record, side)],
			side == 0 ? OFFLOAD_UNPLAIN : OFFLOAD_QUIET);
	}
	for (unsigned port = 0; port < 2; port++) {
		struct agent_counters counters;

		offload_live_counters(live, port, &counters);
		assert_int_equal(counters.arrows[OFFLOAD_SOFTWARE][OFFLOAD_QUEUED], 2);
	}
	offload_live_check(live);
	offload_live_end(live);
}

/* A segment of the flow's first stream, or of the other side's, of a conversation with other numbers. */
static void put_anew(struct offload_live *live, unsigned side, uint8_t flags, uint32_t ack)
{
	enum { SEQ_AT = 14 + 20 + 4, ACK_AT = SEQ_AT + 4, FLAGS_AT = SEQ_AT + 9 };
	const struct live_flow *flow = &live->flows[0];
	const rte_be32_t seq = rte_cpu_to_be_32(NEW_SEQ), acknowledges = rte_cpu_to_be_32(ack);
	struct frame frame;

	frame_start(&frame);
	frame.length = stream_frame(live->side[0].sim->source->set, side, frame.bytes);
	memcpy(&frame.bytes[SEQ_AT], &seq, sizeof(seq));
	memcpy(&frame.bytes[ACK_AT], &acknowledges, sizeof(acknowledges));
	frame.bytes[FLAGS_AT] = flags;
	offload_live_put_frame(live, &frame, side, flow->mark);
	offload_live_run(live, 5);
}

/*
 * A SYN comes with the mark of the conversation that it ends: the new one has that packet, and the NIC's work for the old
 * one is none of its own. So has its answer.
 */
static void a_marked_syn_begins_anew(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 8, .words = "proto=tcp", .rate = 20000, .threshold = 1000});
	struct live_flow *flow = &live->flows[0];
	struct agent_counters counters[2];
	struct plane_flow answer;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	flow->muted = true;
	offload_live_close(live, flow, flow->mark);
	offload_live_run(live, 5);
	assert_int_equal(offload_live_record(live, flow)->state, FLOW_TIME_WAIT);
	put_anew(live, 0, TCP_SYN, 0);
	assert_int_equal(flow->ended[FLOW_END_FIN], 1);
	assert_int_equal(offload_live_record(live, flow)->state, FLOW_SYN_SENT);
	put_anew(live, 1, TCP_SYN | TCP_ACK,
		offload_live_record(live, flow)->tcp_end[flow->from[0]]);
	assert_int_equal(offload_live_record(live, flow)->state, FLOW_SYN_RECEIVED);
	for (unsigned side = 0; side < 2; side++) {
		offload_live_counters(live, side, &counters[side]);
		assert_int_equal(counters[side].strangers, 1);
		assert_int_equal(counters[side].ghosts, 0);
	}
	offload_live_ask(live, flow, &answer);
	for (unsigned side = 0; side < 2; side++) {
		assert_int_equal(flow_packets(&answer.record, side), 1);
		assert_int_equal(answer.nic[side], 0);
	}
	assert_int_equal(answer.offload.packets, 0);
	offload_live_check(live);
	offload_live_end(live);
}

static void udp_of(struct frame *frame, const char *src, const char *dst, bool back, size_t bytes)
{
	frame_start(frame);
	frame_ipv4(frame, src, dst, IPPROTO_UDP);
	frame_udp(frame, back ? 2000 : 1000, back ? 1000 : 2000);
	frame_fill(frame, bytes);
	frame_finish(frame);
}

/*
 * Marked packets, too, are dropped where the port cannot carry them, each counted once in its record and by its name;
 * those of the same bursts that are short enough go on.
 */
static void marked_packets_that_do_not_fit_are_dropped(void **state)
{
	struct frame frames[4];
	const struct live_frame list[] = {
		{&frames[0], 0, 0},
		{&frames[1], 0, 1},
		{&frames[2], 1, 0},
		{&frames[3], 1, 1},
	};
	uint64_t in[2], out[2], marked[2];

	(void)state;
	udp_of(&frames[0], "10.0.0.3", "10.0.0.4", false, 100);
	udp_of(&frames[1], "10.0.0.4", "10.0.0.3", true, 100);
	udp_of(&frames[2], "10.0.0.5", "10.0.0.6", false, 101);
	udp_of(&frames[3], "10.0.0.6", "10.0.0.5", true, 101);
	/* `restart`: packets may be lost */
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){.n_flows = 2,
		.frames = list,
		.n_frames = RTE_DIM(list),
		.rate = 40000,
		.restart = true,
		.threshold = 100});
	struct lcore *lcore = &live->plane->lcores[0];
	struct live_flow *flow = &live->flows[1];

	assert_true(offload_live_until(live, offload_live_all_proven, NULL, 20000));
	offload_live_check(live);
	for (unsigned side = 0; side < 2; side++) {
		struct port *port = live->side[side].port;

		assert_int_equal(flow->in[side], flow->out[side]);
		in[side] = flow->in[side];
		out[side] = flow->out[side];
		marked[side] = flow->marked[side];
		atomic_store(&port->longest, (unsigned)frames[0].length);
		atomic_store(&port->longest_tagged, (unsigned)frames[0].length);
	}
	lcore->any_length = lcore->careful = 3;
	offload_live_run(live, 100);
	offload_live_check(live);
	for (unsigned side = 0; side < 2; side++) {
		assert_true(flow->marked[side] > marked[side] + 100);
		assert_int_equal(flow->out[side], out[side]);
		assert_int_equal(live->flows[0].in[side], live->flows[0].out[side]);
	}
	assert_int_equal(lcore->worker.counters[0].dropped[DROP_TOO_LONG],
		flow->in[0] - in[0] + flow->in[1] - in[1]);
	offload_live_end(live);
}

static struct CMUnitTest test_of(const char *name, CMUnitTestFunction function, const void *state)
{
	return (struct CMUnitTest){.name = name,
		.test_func = function,
		.teardown_func = offload_live_tidy,
		.initial_state = (void *)(uintptr_t)state};
}

/* An answer by the port of who asked, with the mark of the flow, without one, and with a wrong one: it is none. */
static void a_marked_answer_by_the_same_side_is_none(void **state)
{
	(void)state;
	for (unsigned large = 0; large < 2; large++) {
		struct offload_live *live = offload_live_begin(&(struct offload_live_options){
			.n_flows = 1, .one_way = true, .rate = 20000, .large = large != 0});
		struct live_flow *flow = &live->flows[0];
		const struct path_counters *counters = live->plane->lcores[0].worker.counters;

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		const uint32_t marks[] = {flow->mark, 0, flow->mark ^ 1u << 20};

		for (unsigned i = 0; i < RTE_DIM(marks); i++) {
			offload_live_put_crossed(live, flow, marks[i]);
			offload_live_run(live, 5);
			assert_int_equal(offload_live_record(live, flow)->state, FLOW_REQUEST);
			assert_int_equal(counters->one_sided, i + 1);
		}
		offload_live_put(live, flow, 1, flow->mark, 0);
		offload_live_run(live, 5);
		assert_int_equal(offload_live_record(live, flow)->state, FLOW_REPLIED);
		assert_int_equal(counters->one_sided, RTE_DIM(marks));
		offload_live_end(live);
	}
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[RTE_DIM(shapes) + RTE_DIM(ways) + 10];
	unsigned n = 0;

	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		tests[n++] = test_of(shapes[i].name, all_kinds_are_proven, &shapes[i]);
	for (unsigned i = 0; i < RTE_DIM(ways); i++)
		tests[n++] = test_of(ways[i].name, a_flow_ends_and_comes_back, &ways[i]);
	tests[n++] = test_of(
		"evicted_flows_take_their_rules_along", evicted_flows_take_their_rules_along, NULL);
	tests[n++] =
		test_of("flows_that_ghosts_mark_come_in", flows_that_ghosts_mark_come_in, NULL);
	tests[n++] = test_of("a_dead_port_of_few_flows_is_restarted",
		a_dead_port_of_few_flows_is_restarted, NULL);
	tests[n++] = test_of("one_way_traffic_falls_out_and_returns",
		one_way_traffic_falls_out_and_returns, NULL);
	tests[n++] = test_of("a_counter_goes_with_its_rule", a_counter_goes_with_its_rule, NULL);
	tests[n++] = test_of("a_counter_becomes_narrower", a_counter_becomes_narrower, NULL);
	tests[n++] = test_of("only_what_rules_leave_out_asks_for_none",
		only_what_rules_leave_out_asks_for_none, NULL);
	tests[n++] = test_of("a_marked_syn_begins_anew", a_marked_syn_begins_anew, NULL);
	tests[n++] = test_of("a_marked_answer_by_the_same_side_is_none",
		a_marked_answer_by_the_same_side_is_none, NULL);
	tests[n++] = test_of("marked_packets_that_do_not_fit_are_dropped",
		marked_packets_that_do_not_fit_are_dropped, NULL);
	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return _cmocka_run_group_tests("offload_flows", tests, n, offload_live_environment, NULL);
}
