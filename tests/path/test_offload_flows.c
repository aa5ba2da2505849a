/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of all kinds in the NIC, in every shape of the plane: all are proven, every packet is its own flow's.
 * And flows that end, come back, fall out or are evicted while they are there.
 */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#define PROVEN_MS 20000
#define SECOND_US UINT64_C(1000000)

static const struct shape {
	const char *name;
	struct offload_live_options options;
} shapes[] = {
	{"completions", {.words = "proto=mix,ipv6=50,size=64-1500"}},
	{"blocking calls", {.words = "proto=mix,ipv6=50,async=0"}},
	{"counters are read", {.words = "proto=mix,ipv6=50", .counters = true}},
	{"one in four verified", {.words = "proto=mix,ipv6=50", .verify_one_in = 4}},
	{"two workers, two queues", {.words = "proto=mix,ipv6=50", .n_workers = 2, .n_queues = 2}},
	{"two workers, one queue", {.words = "proto=mix,ipv6=50", .n_workers = 2}},
	{"split threads", {.words = "proto=mix,ipv6=50", .n_workers = 2, .threads = PLANE_SPLIT}},
	{"one way", {.words = "proto=mix,ipv6=50", .one_way = true}},
	{"ConnectX-5", {.words = "profile=cx5,proto=tcp,ipv6=50", .counters = true}},
	{"ConnectX-6", {.words = "profile=cx6-hws,proto=udp,ipv6=50", .counters = true}},
	{"X710", {.words = "profile=x710,proto=tcp"}},
	{"E810", {.words = "profile=e810,proto=tcp,ipv6=50"}},
	{"tiny", {.words = "profile=tiny,proto=mix,ipv6=50"}},
};

/* What records say of their marked packets is what arrived with a mark. */
static void check_told(const struct offload_live *live)
{
	uint64_t told = 0, marked = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		assert_int_not_equal(live->flows[i].told, UINT64_MAX);
		told += live->flows[i].told;
		marked += live->flows[i].marked[0] + live->flows[i].marked[1];
	}
	assert_int_equal(told, marked);
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
		assert_int_equal(counters.stalled, 0);
		assert_int_equal(counters.arrows[OFFLOAD_PROVEN][OFFLOAD_SUSPECT], 0);
		assert_int_equal(counters.flows[OFFLOAD_PROVEN],
			port == 1 && options.one_way ? 0 : options.n_flows);
	}
	for (uint32_t i = 0; i < options.n_flows; i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		assert_int_equal(answer.offload.reason[0], OFFLOAD_BUSY);
		assert_int_equal(answer.mark, live->flows[i].mark);
	}
	offload_live_finish(live);
	check_told(live);
	offload_live_leave(live);
}

static bool has_ended(struct offload_live *live, void *flow)
{
	return !offload_live_knows(live, flow);
}

static bool has_no_rule(struct offload_live *live, void *n_rules)
{
	return offload_live_rules(live, 0) == *(const uint32_t *)n_rules;
}

static uint32_t number_of(const struct offload_live *live, uint32_t mark)
{
	const struct slots *slots = &live->plane->stations[0].worker.agent->wire[0].slots;

	return mark & ((UINT32_C(1) << slots->number_bits) - 1);
}

/* Marks that come late name nobody: the packet is of the flow that its headers say. */
static void put_late_marks(struct offload_live *live, const struct live_flow *of, uint32_t mark)
{
	struct agent_counters before, after;

	offload_live_counters(live, 0, &before);
	for (unsigned i = 0; i < 8; i++)
		offload_live_put(live, &live->flows[i % 2 == 0 ? of - live->flows : 1], 0, mark, 0);
	offload_live_run(live, 5);
	offload_live_check(live);
	offload_live_counters(live, 0, &after);
	assert_int_equal(after.strangers, before.strangers + 8);
}

/* A TCP connection is reset or falls silent while its rules are there, and a new one has its addresses. */
static void flows_end_and_come_back(void **state)
{
	enum { RST = 0x04 };
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 8, .words = "proto=tcp", .rate = 20000, .idle_s = 1});
	struct live_flow *flow = &live->flows[0];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		uint32_t old = flow->mark, left = 7;

		if (round == 0)
			offload_live_put(live, flow, 0, old, RST);
		offload_live_run(live, 5);
		flow->muted = true;
		assert_true(offload_live_until(live, has_ended, flow, 5000));
		assert_true(offload_live_until(live, has_no_rule, &left, 5000));
		put_late_marks(live, flow, old);
		flow->muted = false;
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_run(live, 20);
		assert_int_not_equal(flow->mark, old);
		offload_live_check(live);
	}
	offload_live_end(live);
}

/* While the delete of an ended flow's rule takes its time, nobody has its number. */
static void numbers_stay_until_rules_are_gone(void **state)
{
	struct offload_live *live = offload_live_begin(
		&(struct offload_live_options){.n_flows = 8, .words = "async=0", .rate = 20000});
	struct plane_flow answer;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	uint32_t old = live->flows[0].mark;

	offload_live_fault(live, 0, "stall_delete:ms=400");
	offload_live_kill(live, &live->flows[0]);
	for (unsigned i = 0; i < 20; i++) {
		offload_live_run(live, 10);
		offload_live_ask(live, &live->flows[0], &answer);
		assert_int_not_equal(number_of(live, answer.mark), number_of(live, old));
	}
	offload_live_fault(live, 0, "stall_delete:off");
	/* the rule that is still there marked packets of the new flow: they are not the old one's */
	offload_live_check(live);
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_end(live);
}

/* Far more flows than there are records: each packet evicts, and is counted none the less. */
static void evicted_flows_take_their_rules_along(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 1000, .rate = 50000, .capacity = 64, .words = "proto=mix,ipv6=50"});
	struct agent_counters counters;

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		offload_live_run(live, 100);
		offload_live_check(live);
	}
	offload_live_counters(live, 0, &counters);
	assert_true(counters.arrows[OFFLOAD_QUEUED][OFFLOAD_INSTALLING] > 100);
	/* what nobody needs any more goes */
	for (uint32_t i = 8; i < 1000; i++)
		live->flows[i].muted = true;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_end(live);
}

/* Packets of one direction alone: the rule is lost in mid-run, noticed, and made again. */
static void one_way_traffic_falls_out_and_returns(void **state)
{
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = 4, .words = "proto=udp", .one_way = true, .rate = 40000});
	struct agent_counters counters;

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_forget(live);
	uint64_t since_us = live->now_us;

	offload_live_fault(live, 0, "forget");
	offload_live_run(live, 20);
	offload_live_counters(live, 0, &counters);
	assert_int_equal(counters.fell_out[OFFLOAD_UNMARKED], 4);
	for (uint32_t i = 0; i < 4; i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		assert_int_equal(answer.offload.state[0], OFFLOAD_SOFTWARE);
		assert_int_equal(answer.offload.reason[0], OFFLOAD_QUARANTINE);
		/* of the other direction nothing was ever asked */
		assert_int_equal(answer.offload.state[1], OFFLOAD_SOFTWARE);
	}
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	assert_in_range(live->now_us, since_us + SECOND_US / 10, since_us + SECOND_US);
	offload_live_end(live);
}

static bool finds_strangers(struct offload_live *live, void *port)
{
	struct agent_counters counters;

	offload_live_counters(live, *(const unsigned *)port, &counters);
	return counters.strangers != 0;
}

/* Of marks that are verified now and then those of each port are, however ports take turns. */
static void samples_are_taken_at_both_ports(void **state)
{
	(void)state;
	for (unsigned port = 0; port < 2; port++) {
		struct offload_live *live = offload_live_begin(&(struct offload_live_options){
			.n_flows = 16, .rate = 10000, .verify_one_in = 4});

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_fault(live, port, "wrong_mark");
		/* until then packets are credited to strangers: that is what sampling gives up */
		assert_true(offload_live_until(live, finds_strangers, &port, 1000));
		offload_live_leave(live);
	}
}

static struct CMUnitTest test_of(const char *name, CMUnitTestFunction function, const void *state)
{
	return (struct CMUnitTest){.name = name,
		.test_func = function,
		.teardown_func = offload_live_tidy,
		.initial_state = (void *)(uintptr_t)state};
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[RTE_DIM(shapes) + 5];
	unsigned n = 0;

	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		tests[n++] = test_of(shapes[i].name, all_kinds_are_proven, &shapes[i]);
	tests[n++] = test_of("flows_end_and_come_back", flows_end_and_come_back, NULL);
	tests[n++] = test_of(
		"numbers_stay_until_rules_are_gone", numbers_stay_until_rules_are_gone, NULL);
	tests[n++] = test_of(
		"evicted_flows_take_their_rules_along", evicted_flows_take_their_rules_along, NULL);
	tests[n++] = test_of("one_way_traffic_falls_out_and_returns",
		one_way_traffic_falls_out_and_returns, NULL);
	tests[n++] =
		test_of("samples_are_taken_at_both_ports", samples_are_taken_at_both_ports, NULL);
	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return _cmocka_run_group_tests("offload_flows", tests, n, offload_live_environment, NULL);
}
