/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Twelve defects of the first program that gave flow records to a NIC, each as a test that fails where the
 * engine has it too. The names say which; the twelfth, which is about how it is set up and run, is
 * tests/behaviour/test_offload_twelve.py. Here are those of rules and keys; of flows that end, very many of them,
 * test_offload_twelve_ends.c; of many flows at a time test_offload_twelve_load.c.
 */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "offload_talks.h"

#define PROVEN_MS 20000

/* The first so many talks. */
static bool are_proven(struct offload_live *live, void *n)
{
	for (uint32_t i = 0; i < *(const unsigned *)n; i++)
		if (!offload_live_proven(live, &live->flows[i]))
			return false;
	return true;
}

/*
 * The first `n_busy` talks have rules; the others are too quiet for one, and like them in all but what rules
 * have to tell apart. From the proof on each packet of the former is marked, and of the latter none ever.
 */
static void check_whose_rules_match(
	const char *words, const struct talk *talks, unsigned n, unsigned n_busy)
{
	/* a busy one is half of the threshold only where nobody turned for a second */
	enum { QUIET = 200, THRESHOLD = 60 };
	struct offload_live *live = talks_begin(talks, n,
		&(struct offload_live_options){
			.words = words, .rate = 5000 * n, .threshold = THRESHOLD});
	uint64_t unmarked[TALKS_MAX][2];

	for (uint32_t i = n_busy; i < n; i++)
		live->flows[i].one_in = QUIET;
	assert_true(offload_live_until(live, are_proven, &n_busy, PROVEN_MS));
	for (uint32_t i = 0; i < n; i++)
		for (unsigned side = 0; side < 2; side++)
			unmarked[i][side] = live->flows[i].in[side] - live->flows[i].marked[side];
	offload_live_run(live, 400);
	offload_live_check(live);
	for (uint32_t i = 0; i < n; i++) {
		const struct live_flow *flow = &live->flows[i];

		for (unsigned side = 0; side < 2; side++) {
			assert_true(flow->in[side] > unmarked[i][side] / 2);
			if (i < n_busy)
				assert_int_equal(
					flow->in[side] - flow->marked[side], unmarked[i][side]);
			else
				assert_int_equal(flow->marked[side], 0);
		}
	}
	for (unsigned side = 0; side < 2; side++)
		assert_int_equal(offload_live_rules(live, side), n_busy);
	offload_live_end(live);
}

/* Strangers differ in the last byte of an address, in one further ahead, in a port. */
static void founding_01_rules_for_ipv6_match_whole_addresses(void **state)
{
	static const char a[] = "2001:db8::1", b[] = "2001:db8::2";
	static const struct talk talks[] = {
		{a, b, IPPROTO_TCP, 1000, 2000, 0},
		{a, b, IPPROTO_UDP, 1000, 2000, 0},
		{a, b, IPPROTO_SCTP, 1000, 2000, 0},
		{a, b, IPPROTO_ICMPV6, 0, 0, 0},
		{a, "2001:db8::3", IPPROTO_TCP, 1000, 2000, 0},
		{"2001:db8::4", b, IPPROTO_UDP, 1000, 2000, 0},
		{a, "2001:db8::6", IPPROTO_ICMPV6, 0, 0, 0},
		{"2001:db8:0:0:1::1", b, IPPROTO_TCP, 1000, 2000, 0},
		{a, "2001:db8:1::2", IPPROTO_UDP, 1000, 2000, 0},
		{a, b, IPPROTO_UDP, 1000, 2001, 0},
	};

	(void)state;
	check_whose_rules_match(NULL, talks, RTE_DIM(talks), 4);
	check_whose_rules_match("async=0", talks, RTE_DIM(talks), 4);
	check_whose_rules_match("profile=tiny", talks, RTE_DIM(talks), 4);
}

/* The same addresses and ports by another protocol are somebody else. */
static void founding_02_rules_are_of_their_protocol(void **state)
{
	static const char a[] = "10.0.0.1", b[] = "10.0.0.2";
	static const struct talk sctp_and_icmp[] = {
		{a, b, IPPROTO_SCTP, 1000, 2000, 0},
		{a, b, IPPROTO_ICMP, 0, 0, 0},
		{a, b, IPPROTO_UDP, 1000, 2000, 0},
		{a, b, IPPROTO_TCP, 1000, 2000, 0},
	};
	static const struct talk udp_and_tcp[] = {
		{a, b, IPPROTO_UDP, 1000, 2000, 0},
		{a, b, IPPROTO_TCP, 1000, 2000, 0},
		{a, b, IPPROTO_SCTP, 1000, 2000, 0},
		{a, b, IPPROTO_ICMP, 0, 0, 0},
	};

	(void)state;
	check_whose_rules_match(NULL, sctp_and_icmp, RTE_DIM(sctp_and_icmp), 2);
	check_whose_rules_match("async=0", sctp_and_icmp, RTE_DIM(sctp_and_icmp), 2);
	check_whose_rules_match(NULL, udp_and_tcp, RTE_DIM(udp_and_tcp), 2);
}

static bool has_rules(struct offload_live *live, void *n)
{
	return offload_live_rules(live, 0) == *(const uint32_t *)n &&
	       offload_live_rules(live, 1) == *(const uint32_t *)n;
}

/* So many flows have slots, none of them with a mark that is another's yet. */
static uint32_t n_with_slots(struct offload_live *live, uint32_t mark)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		struct plane_flow answer;

		if (!offload_live_knows(live, &live->flows[i]))
			continue;
		offload_live_ask(live, &live->flows[i], &answer);
		assert_true(answer.mark == 0 || answer.mark != mark);
		n += answer.mark != 0;
	}
	return n;
}

static bool all_slots_are_given(struct offload_live *live, void *mark)
{
	return n_with_slots(live, *(const uint32_t *)mark) == live->options.slots;
}

/* One flow more than there are slots: whatever comes free is wanted at once. */
static void reuse_a_slot(const char *words)
{
	enum { FLOWS = 9 };
	uint32_t slots = FLOWS - 1, ended = 0;
	struct offload_live *live = offload_live_begin(&(struct offload_live_options){
		.n_flows = FLOWS, .slots = slots, .words = words, .rate = 20000});

	assert_true(offload_live_until(live, has_rules, &slots, PROVEN_MS));
	offload_live_run(live, 50);
	while (live->flows[ended].mark == 0)
		ended++;
	uint32_t mark = live->flows[ended].mark;

	offload_live_fault(live, 0, "stall_delete:ms=2000:times=1");
	offload_live_kill(live, &live->flows[ended]);
	for (unsigned i = 0; i < 20; i++) {
		offload_live_run(live, 10);
		assert_int_equal(n_with_slots(live, mark), slots - 1);
		assert_int_equal(offload_live_rules(live, 0), slots);
	}
	/* the rule that was there still marked packets of the flow that began anew: they are not the old one's */
	offload_live_check(live);
	assert_true(offload_live_until(live, all_slots_are_given, &mark, PROVEN_MS));
	assert_true(offload_live_until(live, has_rules, &slots, PROVEN_MS));
	offload_live_run(live, 20);
	offload_live_put_late(live, (ended + 1) % FLOWS, (ended + 2) % FLOWS, mark);
	offload_live_end(live);
}

static void founding_03_a_slot_is_not_given_again_before_its_rule_has_gone(void **state)
{
	(void)state;
	reuse_a_slot(NULL);
	reuse_a_slot("async=0");
}

/* Both ends have one address: which end a packet comes from is told by ports alone. */
static void founding_05_one_record_between_equal_addresses(void **state)
{
	static const struct talk talks[] = {
		{"10.0.0.9", "10.0.0.9", IPPROTO_UDP, 1000, 2000, 0},
		{"10.0.0.9", "10.0.0.9", IPPROTO_UDP, 2000, 300, 0},
		{"10.0.0.9", "10.0.0.9", IPPROTO_TCP, 2000, 1000, 0},
		{"2001:db8::9", "2001:db8::9", IPPROTO_UDP, 1000, 2000, 0},
		{"2001:db8::9", "2001:db8::9", IPPROTO_TCP, 65535, 1, 0},
	};
	struct offload_live *live =
		talks_begin(talks, RTE_DIM(talks), &(struct offload_live_options){.rate = 20000});
	uint32_t n = RTE_DIM(talks);

	(void)state;
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_run(live, 100);
	offload_live_check(live);
	assert_int_equal(live->plane->lcores[0].worker.shard->table.count, n);
	assert_int_equal(live->plane->lcores[0].worker.shard->counters.learned, n);
	assert_true(has_rules(live, &n));
	for (uint32_t i = 0; i < n; i++) {
		struct plane_flow answer;

		offload_live_ask(live, &live->flows[i], &answer);
		for (unsigned side = 0; side < 2; side++) {
			unsigned from = live->flows[i].from[side];

			assert_int_equal(
				flow_packets(&answer.record, from), live->flows[i].in[side]);
			assert_true(live->flows[i].marked[side] > 0);
		}
	}
	offload_live_end(live);
}

static void founding_06_echoes_and_their_replies_have_one_record(void **state)
{
	static const struct talk talks[] = {
		{"10.0.0.1", "10.0.0.2", IPPROTO_ICMP, 0, 0, 0},
		{"2001:db8::1", "2001:db8::2", IPPROTO_ICMPV6, 0, 0, 0},
	};
	struct offload_live *live =
		talks_begin(talks, RTE_DIM(talks), &(struct offload_live_options){.rate = 20000});

	(void)state;
	/* before they are marked, and when they are */
	offload_live_run(live, 5);
	assert_int_equal(live->plane->lcores[0].worker.shard->table.count, 2);
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_run(live, 50);
	assert_int_equal(live->plane->lcores[0].worker.shard->counters.learned, 2);
	offload_live_end(live);
}

static uint8_t icmp_errors(struct offload_live *live, uint32_t number)
{
	struct plane_flow answer;

	offload_live_ask(live, &live->flows[number], &answer);
	return answer.record.icmp_errors;
}

/* They are of the same protocol and addresses as the echoes: the NIC takes them for these. */
static void founding_06_icmp_errors_reach_the_flow_that_they_quote(void **state)
{
	static const struct talk talks[] = {
		{"10.0.0.1", "10.0.0.2", IPPROTO_ICMP, 0, 0, 0},
		{"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000, 53, 0},
	};
	struct offload_live *live =
		talks_begin(talks, RTE_DIM(talks), &(struct offload_live_options){.rate = 20000});
	struct frame error;

	(void)state;
	frame_start(&error);
	frame_ipv4(&error, "10.0.0.2", "10.0.0.1", IPPROTO_ICMP);
	frame_icmp(&error, 3, 3);
	frame_ipv4(&error, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_udp(&error, 1000, 53);
	frame_finish(&error);
	offload_live_run(live, 5);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 1; i <= 10; i++) {
			uint32_t mark = i % 2 != 0 ? live->flows[0].mark : 0;

			offload_live_put_frame(live, &error, 1, mark);
			offload_live_run(live, 2);
			assert_int_equal(icmp_errors(live, 1), 10 * round + i);
			assert_int_equal(icmp_errors(live, 0), 0);
		}
		offload_live_check(live);
		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	}
	offload_live_end(live);
}

/* A datagram's pieces: only the first has ports, and only that one may be marked. */
static void founding_06_fragments_are_of_their_flow(void **state)
{
	static const struct talk talk = {"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000, 2000, 0};
	static const struct talk talk6 = {"2001:db8::1", "2001:db8::2", IPPROTO_UDP, 1000, 2000, 0};
	struct frame whole[2][2], piece[2][2];
	struct live_frame frames[8];
	struct offload_live_options options = {
		.n_flows = 2, .frames = frames, .n_frames = 8, .rate = 40000};

	(void)state;
	for (unsigned flow = 0; flow < 2; flow++) {
		const struct talk *of = flow == 0 ? &talk : &talk6;

		for (unsigned i = 0; i < 2; i++) {
			talk_frame(&whole[flow][i], of, i != 0);
			talk_fragment(&piece[flow][i], of, i != 0);
			frames[4 * flow + i] =
				(struct live_frame){&whole[flow][i], flow, (uint8_t)i};
			frames[4 * flow + 2 + i] = (struct live_frame){&piece[flow][i], flow, 0};
		}
	}
	struct offload_live *live = offload_live_begin(&options);

	offload_live_run(live, 5);
	offload_live_check(live);
	assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
	offload_live_run(live, 300);
	offload_live_check(live);
	assert_int_equal(live->plane->lcores[0].worker.shard->counters.learned, 2);
	for (unsigned port = 0; port < 2; port++) {
		struct agent_counters counters;

		/* those without a mark say nothing against the rule */
		offload_live_counters(live, port, &counters);
		assert_int_equal(counters.arrows[OFFLOAD_PROVEN][OFFLOAD_SUSPECT], 0);
		assert_int_equal(counters.flows[OFFLOAD_PROVEN], 2);
	}
	offload_live_end(live);
}

/* Addresses and ports alike in two networks and outside of both. */
static void founding_06_networks_are_told_apart(void **state)
{
	static const struct talk talks[] = {
		{"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000, 2000, 7},
		{"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000, 2000, 8},
		{"10.0.0.1", "10.0.0.2", IPPROTO_UDP, 1000, 2000, 0},
		{"2001:db8::1", "2001:db8::2", IPPROTO_TCP, 1000, 2000, 7},
		{"2001:db8::1", "2001:db8::2", IPPROTO_TCP, 1000, 2000, 0},
	};
	static const char *const words[] = {NULL, "async=0"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		struct offload_live *live = talks_begin(talks, RTE_DIM(talks),
			&(struct offload_live_options){
				.words = words[i], .rate = 20000, .zone_vlan = true});
		struct agent_counters counters;

		assert_true(offload_live_until(live, offload_live_all_proven, NULL, PROVEN_MS));
		offload_live_run(live, 100);
		offload_live_check(live);
		for (uint32_t a = 0; a < RTE_DIM(talks); a++) {
			assert_int_equal(live->flows[a].key.zone, talks[a].vlan);
			for (uint32_t b = 0; b < a; b++)
				assert_int_not_equal(live->flows[a].mark, live->flows[b].mark);
		}
		for (unsigned port = 0; port < 2; port++) {
			offload_live_counters(live, port, &counters);
			assert_int_equal(counters.strangers, 0);
		}
		offload_live_end(live);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			founding_01_rules_for_ipv6_match_whole_addresses, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_02_rules_are_of_their_protocol, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_03_a_slot_is_not_given_again_before_its_rule_has_gone,
			offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_05_one_record_between_equal_addresses, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_06_echoes_and_their_replies_have_one_record, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_06_icmp_errors_reach_the_flow_that_they_quote, offload_live_tidy),
		cmocka_unit_test_teardown(
			founding_06_fragments_are_of_their_flow, offload_live_tidy),
		cmocka_unit_test_teardown(founding_06_networks_are_told_apart, offload_live_tidy),
	};

	/* one of them alone, for whoever looks for something */
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
