/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules and NICs that forward flows alone: what is decided by packet or by port stays with the CPU, with marks or
 * without; what a rule drops the NIC drops, too; and each packet is counted by one rule, whoever saw it.
 */
#include "offload_full.h"

#include <netinet/in.h>

#define N_FLOWS 16
#define N_RULES 8
/* Of the model: packets by which a rule is chosen. */
#define RULE_PLAIN 1
#define RULE_ODD 2
#define RULE_EVEN 3
#define RULE_DROPS 4
#define RULE_FIRST_PORT 5
#define RULE_SECOND_PORT 6

enum kind { PLAIN, BY_PACKET, BY_PORT, DROPPED, N_KINDS };

struct judge {
	bool asleep;  /* no rule fits */
	uint64_t odd; /* the test turns all lcores itself */
	struct flow_rule_count rule[PLANE_MAX_WORKERS][N_RULES];
};

static enum kind kind_of_key(const struct flow_key *key)
{
	/* the streams' flows differ in one of these */
	return (enum kind)((key->addr[0][3] + key->addr[1][3] + rte_be_to_cpu_16(key->port[0]) +
				   rte_be_to_cpu_16(key->port[1])) %
			   N_KINDS);
}

static uint32_t rule_of_port(uint16_t port)
{
	return port == 0 ? RULE_FIRST_PORT : RULE_SECOND_PORT;
}

static void decide(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const struct judge *judge = context;
	const enum kind kind = kind_of_key(key);

	if (judge->asleep)
		return;
	for (unsigned end = 0; end < 2; end++) {
		decision->rule[end] = kind == PLAIN	? RULE_PLAIN
				      : kind == DROPPED ? RULE_DROPS
				      : kind == BY_PORT ? rule_of_port(port[end])
							: FLOW_RULE_NONE;
		decision->verdict[end] = kind == DROPPED     ? FLOW_VERDICT_DROP
					 : kind == BY_PACKET ? FLOW_VERDICT_BY_PACKET
							     : FLOW_VERDICT_FORWARD;
	}
	decision->by_port = kind == BY_PORT;
}

/* Every other packet of what is decided by packet is dropped; and what has the address of the other port's end. */
static void classify(void *context, const struct rte_mbuf *packet, const struct packet_info *info,
	uint16_t port, struct flow_packet_ct ct, struct flow_packet_decision *decision)
{
	(void)ct;
	struct judge *judge = context;

	(void)packet;
	assert_non_null(info);
	if (kind_of_key(&info->key) == BY_PORT) {
		*decision = (struct flow_packet_decision){
			.verdict = FLOW_VERDICT_DROP, .rule = rule_of_port(port)};
		return;
	}
	assert_int_equal(kind_of_key(&info->key), BY_PACKET);
	decision->rule = judge->odd++ % 2 == 0 ? RULE_ODD : RULE_EVEN;
	if (decision->rule == RULE_ODD)
		decision->verdict = FLOW_VERDICT_DROP;
}

static void count(void *context, unsigned worker, uint32_t rule, uint64_t flows, uint64_t packets,
	uint64_t bytes)
{
	struct judge *judge = context;

	assert_true(rule < N_RULES);
	judge->rule[worker][rule].flows += flows;
	judge->rule[worker][rule].packets += packets;
	judge->rule[worker][rule].bytes += bytes;
}

static uint64_t rule_packets(const struct judge *judge, uint32_t rule)
{
	uint64_t packets = 0;

	for (unsigned worker = 0; worker < PLANE_MAX_WORKERS; worker++)
		packets += judge->rule[worker][rule].packets;
	return packets;
}

static struct offload_live *begin(
	struct judge *judge, const char *words, unsigned n_workers, uint64_t passes)
{
	const struct offload_live_options options = {
		.n_flows = N_FLOWS,
		.n_workers = n_workers,
		.n_queues = n_workers,
		.policy = {.context = judge,
			.decide = decide,
			.classify = classify,
			.count = count},
	};

	return full_begin(&options, words, passes);
}

/* Every packet of every flow has come to one rule, or to none while there were none. */
static void check(struct offload_live *live, const struct judge *judge, uint64_t passes)
{
	static struct plane_snapshot snapshot;
	uint64_t expected[N_KINDS] = {0}, dropped[N_KINDS] = {0}, all = 0, unmatched = 0;

	full_end_all(live);
	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		const struct live_flow *flow = &live->flows[i];
		const enum kind kind = kind_of_key(&flow->key);

		assert_int_equal(
			flow->reported[0] + flow->reported[1] + flow->reported_dropped, 2 * passes);
		expected[kind] += 2 * passes;
		dropped[kind] += flow->reported_dropped;
	}
	for (uint32_t rule = 0; rule < N_RULES; rule++)
		all += rule_packets(judge, rule);
	for (unsigned i = 0; i < snapshot.n_lcores; i++)
		unmatched += snapshot.lcores[i].unmatched.packets;
	assert_int_equal(all + unmatched, 2 * passes * N_FLOWS);
	assert_int_equal(rule_packets(judge, RULE_ODD), dropped[BY_PACKET]);
	assert_int_equal(dropped[PLAIN], 0);
	assert_int_equal(snapshot.wires[0].dropped[DROP_BLOCKED], 0);
	assert_int_equal(snapshot.wires[0].nic_dropped, full_nic_dropped(live));
	assert_int_equal(snapshot.wires[0].dropped[DROP_RULE] + snapshot.wires[0].nic_dropped,
		dropped[BY_PACKET] + dropped[BY_PORT] + dropped[DROPPED]);
	/* what the NIC tells after a change is counted by the rules that are in force then */
	if (unmatched != 0)
		return;
	assert_int_equal(rule_packets(judge, RULE_DROPS), dropped[DROPPED]);
	assert_int_equal(rule_packets(judge, RULE_PLAIN), expected[PLAIN]);
	assert_int_equal(rule_packets(judge, RULE_ODD) + rule_packets(judge, RULE_EVEN),
		expected[BY_PACKET]);
	assert_int_equal(rule_packets(judge, RULE_DROPS), expected[DROPPED]);
	assert_int_equal(rule_packets(judge, RULE_FIRST_PORT), expected[BY_PORT] / 2);
	assert_int_equal(rule_packets(judge, RULE_SECOND_PORT), expected[BY_PORT] / 2);
}

/* None of these was ever the NIC's to send on: the CPU got all of their packets. */
static void expect_seen(const struct offload_live *live, uint64_t passes)
{
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		const struct live_flow *flow = &live->flows[i];
		const enum kind kind = kind_of_key(&flow->key);

		if (kind != BY_PACKET && kind != BY_PORT)
			continue;
		assert_int_equal(flow->in[0] + flow->in[1], 2 * passes);
		assert_true(flow->marked[0] + flow->marked[1] > 0);
	}
}

static void rules_are_kept_to(const char *words, unsigned n_workers)
{
	struct judge judge = {.asleep = false};
	uint64_t passes = 15000;
	struct offload_live *live = begin(&judge, words, n_workers, passes);

	assert_true(offload_live_until(live, full_is_silent, &passes, 120000));
	assert_true(full_forwarded(live) > 0);
	assert_true(full_nic_dropped(live) > 0);
	expect_seen(live, passes);
	check(live, &judge, passes);
	offload_live_leave(live);
}

static void udp(void **state)
{
	(void)state;
	rules_are_kept_to("profile=cx5", 1);
}

static void tcp(void **state)
{
	(void)state;
	rules_are_kept_to("profile=cx5,proto=tcp", 1);
}

static void two_workers(void **state)
{
	(void)state;
	rules_are_kept_to("profile=cx5", 2);
}

static bool are_decided(struct offload_live *live, void *context)
{
	return plane_policy_decided(live->plane) >= *(uint64_t *)context;
}

/* Rules come while the NIC sends all flows on, go, and come again. */
static void rules_come_and_go(void **state)
{
	struct judge judge = {.asleep = true};
	uint64_t passes = 36000, packets = 15000;
	struct offload_live *live = begin(&judge, "profile=cx5", 1, passes);

	(void)state;
	for (unsigned i = 0; i < 3; i++, packets += 15000) {
		assert_true(offload_live_until(live, full_is_sent_on, &packets, 60000));
		judge.asleep = !judge.asleep;
		uint64_t change = plane_policy_changed(live->plane);

		assert_true(offload_live_until(live, are_decided, &change, 10000));
	}
	assert_true(offload_live_until(live, full_is_silent, &passes, 120000));
	check(live, &judge, passes);
	offload_live_leave(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(udp, offload_live_tidy),
		cmocka_unit_test_teardown(tcp, offload_live_tidy),
		cmocka_unit_test_teardown(two_workers, offload_live_tidy),
		cmocka_unit_test_teardown(rules_come_and_go, offload_live_tidy),
	};

	return cmocka_run_group_tests(tests, offload_live_environment, NULL);
}
