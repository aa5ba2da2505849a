/* SPDX-License-Identifier: BSD-3-Clause */
/* What a shard tells rules of: every packet of a flow once, whatever becomes of the flow and of its rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "flow/credit.h"

#define IDLE_S 60
#define S CLOCK_US_PER_S
#define N_RULES 8
#define BYTES 100

static struct hash_secret secret;
static struct flow_report reports[256];
static unsigned n_reports;

/* What is decided next, and what rules were told. */
static struct {
	struct flow_decision decision;
	struct flow_packet_decision packet;
	unsigned n_decided;
	struct flow_rule_count rule[N_RULES], none;
	uint64_t seen_us[N_RULES];
} policy;

static void take(void *context, const struct flow_report *some, unsigned n)
{
	(void)context;
	for (unsigned i = 0; i < n; i++)
		reports[n_reports++] = some[i];
}

static void decide(void *context, const struct flow_record *record, struct flow_decision *decision)
{
	(void)context;
	(void)record;
	policy.n_decided++;
	*decision = policy.decision;
}

static void classify(void *context, const struct packet_info *info, struct flow_packet_ct ct,
	struct flow_packet_decision *decision)
{
	(void)context;
	(void)ct;
	(void)info;
	*decision = policy.packet;
}

static void count(void *context, uint32_t rule, uint64_t flows, uint64_t packets, uint64_t bytes)
{
	struct flow_rule_count *of = rule == FLOW_RULE_NONE ? &policy.none : &policy.rule[rule];

	(void)context;
	assert_true(rule < N_RULES || rule == FLOW_RULE_NONE);
	of->flows += flows;
	of->packets += packets;
	of->bytes += bytes;
}

static void see(void *context, uint32_t rule, uint64_t last_us)
{
	(void)context;
	assert_true(rule < N_RULES);
	policy.seen_us[rule] = last_us;
}

static void set_rules(uint32_t first, uint32_t second, uint16_t verdict)
{
	policy.decision = (struct flow_decision){
		.verdict = {verdict, verdict},
		.cause = FLOW_CAUSE_NONE,
		.rule = {first, second},
	};
}

static struct flow_shard *begin(struct flow_shard_config config)
{
	struct flow_shard *shard;

	memset(&policy, 0, sizeof(policy));
	config.capacity = 16;
	config.secret = &secret;
	config.sink = take;
	config.policy = (struct flow_policy){
		.decide = decide, .classify = classify, .count = count, .seen = see};
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		config.timeouts.seconds[i] = IDLE_S;
	assert_int_equal(flow_shard_create(&shard, &config), 0);
	n_reports = 0;
	return shard;
}

static struct packet_info packet(uint16_t port, unsigned from)
{
	struct packet_info info = {.bytes = BYTES, .from = from & 1};

	info.key.proto = IPPROTO_UDP;
	info.key.port[0] = port;
	info.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	info.hash = flow_key_hash(&secret, &info.key);
	return info;
}

static uint32_t learn(struct flow_shard *shard, uint16_t port)
{
	const struct packet_info info = packet(port, 0);

	return flow_shard_learn(shard, &info);
}

/* Packets of one end. */
static void carry(struct flow_shard *shard, uint32_t position, unsigned from, unsigned n)
{
	const struct packet_info info = packet(1, from);

	for (unsigned i = 0; i < n; i++)
		(void)flow_shard_account(shard, position, &info);
}

static void expect(uint32_t rule, uint64_t flows, uint64_t packets)
{
	const struct flow_rule_count *of =
		rule == FLOW_RULE_NONE ? &policy.none : &policy.rule[rule];

	assert_int_equal(of->flows, flows);
	assert_int_equal(of->packets, packets);
	assert_int_equal(of->bytes, packets * BYTES);
}

/* All that was counted is all that came. */
static void end(struct flow_shard *shard)
{
	uint64_t packets = policy.none.packets, bytes = policy.none.bytes;

	flow_shard_end_all(shard);
	packets = policy.none.packets;
	bytes = policy.none.bytes;
	for (unsigned i = 0; i < N_RULES; i++) {
		packets += policy.rule[i].packets;
		bytes += policy.rule[i].bytes;
	}
	assert_int_equal(packets, shard->counters.packets + shard->counters.dropped_packets);
	assert_int_equal(bytes, shard->counters.bytes + shard->counters.dropped_bytes);
	flow_shard_destroy(shard);
}

static void each_end_has_its_rule(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});

	(void)state;
	set_rules(1, 2, FLOW_VERDICT_FORWARD);
	uint32_t position = learn(shard, 1);

	carry(shard, position, 0, 4);
	carry(shard, position, 1, 7);
	expect(1, 1, 0);
	expect(2, 1, 0);
	/* decided again, by the same rules */
	assert_false(flow_shard_decide(shard, position));
	expect(1, 1, 5);
	expect(2, 1, 7);
	/* by one of them, and by none then */
	set_rules(2, 2, FLOW_VERDICT_FORWARD);
	assert_false(flow_shard_decide(shard, position));
	carry(shard, position, 0, 3);
	set_rules(FLOW_RULE_NONE, FLOW_RULE_NONE, FLOW_VERDICT_FORWARD);
	assert_false(flow_shard_decide(shard, position));
	expect(1, 1, 5);
	expect(2, 1, 10);
	expect(FLOW_RULE_NONE, 1, 0);
	carry(shard, position, 1, 2);
	flow_shard_kill(shard, position);
	expect(FLOW_RULE_NONE, 1, 2);
	/* the position's next flow has nothing of it */
	set_rules(3, FLOW_RULE_NONE, FLOW_VERDICT_FORWARD);
	assert_int_equal(learn(shard, 1), position);
	expect(3, 1, 0);
	expect(FLOW_RULE_NONE, 1, 2);
	end(shard);
	expect(3, 1, 1);
}

static void what_rules_drop_is_theirs(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});

	(void)state;
	set_rules(1, 1, FLOW_VERDICT_FORWARD);
	uint32_t position = learn(shard, 1);

	carry(shard, position, 1, 3);
	set_rules(2, 2, FLOW_VERDICT_DROP);
	assert_true(flow_shard_decide(shard, position));
	assert_false(flow_is_blocked(flow_table_record(&shard->table, position)));
	carry(shard, position, 0, 5);
	expect(1, 1, 4);
	expect(2, 1, 5);
	/* a block is no rule */
	set_rules(FLOW_RULE_NONE, FLOW_RULE_NONE, FLOW_VERDICT_DROP);
	policy.decision.cause = 6;
	assert_false(flow_shard_decide(shard, position));
	assert_true(flow_is_blocked(flow_table_record(&shard->table, position)));
	carry(shard, position, 0, 9);
	expect(FLOW_RULE_NONE, 0, 0);
	expect(2, 1, 5);

	const struct flow_dropped dropped = flow_shard_dropped(shard, position);

	assert_int_equal(dropped.packets, 14);
	assert_int_equal(dropped.rule_packets, 5);
	assert_int_equal(dropped.rule_bytes, 5 * BYTES);
	flow_shard_end_all(shard);
	assert_int_equal(reports[0].dropped.rule_packets, 5);
	assert_int_equal(reports[0].dropped.packets, 14);
	flow_shard_destroy(shard);
}

/* Packets that were decided by themselves are their own rules', carried or dropped, from the first on. */
static void packets_have_rules_of_their_own(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});
	const struct packet_info info = packet(1, 0);
	struct flow_learned learned;

	(void)state;
	set_rules(FLOW_RULE_NONE, 1, FLOW_VERDICT_FORWARD);
	policy.decision.verdict[0] = FLOW_VERDICT_BY_PACKET;
	policy.packet = (struct flow_packet_decision){.verdict = FLOW_VERDICT_DROP, .rule = 2};
	uint32_t position = flow_shard_learn_packet(shard, &info, &learned);
	const struct flow_record *record = flow_table_record(&shard->table, position);

	assert_int_equal(learned.verdict, FLOW_VERDICT_DROP);
	assert_int_equal(learned.cause, FLOW_CAUSE_NONE);
	expect(2, 0, 1);
	assert_int_equal(flow_packets(record, 0), 0);
	assert_true(flow_is_by_packet(record, &info));
	policy.packet = (struct flow_packet_decision){.rule = 3, .marked = true, .mark = 5};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(flow_shard_account_packet(shard, position, &info, &policy.packet),
			FLOW_ACCOUNT_GO);
	carry(shard, position, 1, 6);
	expect(3, 0, 4);
	assert_int_equal(flow_packets(record, 0), 4);
	assert_int_equal(flow_shard_rules(shard, position).marked, 1);
	assert_int_equal(flow_shard_rules(shard, position).mark[0], 5);
	assert_false(flow_shard_decide(shard, position));
	expect(1, 1, 6);
	expect(3, 0, 4);
	end(shard);
	expect(2, 0, 1);
	expect(FLOW_RULE_NONE, 0, 0);
}

/* Reports of flows that live on, and what a NIC tells later, also of one that has ended. */
static void reports_and_credits_are_told_once(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){.active_s = 10});
	struct flow_credit credit = {.packets = 5, .bytes = 5 * BYTES, .from = 1};

	(void)state;
	set_rules(1, 2, FLOW_VERDICT_FORWARD);
	uint32_t position = learn(shard, 1);

	carry(shard, position, 1, 3);
	flow_shard_advance(shard, 11 * S);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 1);
	expect(1, 1, 1);
	expect(2, 1, 3);
	(void)flow_shard_decide(shard, position);
	expect(2, 1, 3);
	carry(shard, position, 0, 2);
	(void)flow_shard_decide(shard, position);
	expect(1, 1, 3);
	flow_shard_credit(shard, position, &credit);
	flow_shard_kill(shard, position);
	flow_shard_flush(shard);
	expect(2, 1, 8);
	assert_int_equal(reports[1].rules.rule[1], 2);
	flow_shard_credit_report(shard, &reports[1], &credit);
	expect(2, 1, 13);
	end(shard);
}

/* By the other port than its end's a packet is decided by itself, and by the end's own it is not. */
static void ports_decide(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){.two_sided = 1});
	struct packet_info info = packet(1, 0), reply = packet(1, 1);

	(void)state;
	set_rules(1, 1, FLOW_VERDICT_FORWARD);
	policy.decision.by_port = true;
	uint32_t position = flow_shard_learn(shard, &info);
	const struct flow_record *record = flow_table_record(&shard->table, position);

	assert_true(record->not_plain);
	assert_false(flow_is_by_packet(record, &info));
	assert_true(flow_is_by_packet(record, &reply));
	info.flags = reply.flags = PACKET_SIDE;
	assert_true(flow_is_by_packet(record, &info));
	assert_false(flow_is_by_packet(record, &reply));
	assert_int_equal(policy.n_decided, 1);
	/* the initiator moves, the other end is heard where it was at first: the ends are elsewhere */
	const struct flow_packet_decision pass = {.rule = 2};

	(void)flow_shard_account_packet(shard, position, &info, &pass);
	reply.flags = 0;
	(void)flow_shard_account_packet(shard, position, &reply, &pass);
	assert_int_equal(record->side, 1);
	assert_int_equal(policy.n_decided, 2);
	assert_false(flow_is_by_packet(record, &info));
	expect(2, 0, 2);
	end(shard);
	expect(1, 1, 1);
	expect(2, 0, 2);
}

/* A new connection on the ports of one that is over goes on by the same rules, as another flow. */
static void reopened_flows_are_others(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});
	struct packet_info segment = packet(1, 0);

	(void)state;
	set_rules(1, 1, FLOW_VERDICT_FORWARD);
	segment.key.proto = IPPROTO_TCP;
	segment.hash = flow_key_hash(&secret, &segment.key);
	segment.flags = PACKET_TCP | PACKET_HAS_PORTS;
	segment.tcp = (struct tcp_segment){.seq = 1, .flags = TCP_SYN, .scale = TCP_SCALE_NONE};
	uint32_t position = flow_shard_learn(shard, &segment);

	for (unsigned i = 0; i < 2; i++) {
		segment.from = 1;
		segment.tcp = (struct tcp_segment){
			.seq = 9, .ack = 2, .window = 1000, .flags = TCP_RST | TCP_ACK};
		(void)flow_shard_account(shard, position, &segment);
		(void)flow_shard_decide(shard, position);
		segment.from = 0;
		segment.tcp = (struct tcp_segment){
			.seq = 100000, .flags = TCP_SYN, .scale = TCP_SCALE_NONE};
		(void)flow_shard_account(shard, position, &segment);
	}
	assert_true(shard->counters.learned > 1);
	assert_int_equal(policy.rule[1].flows, shard->counters.learned);
	end(shard);
}

/* A packet that is dropped after it was accounted is the rule's once, and not the record's. */
static void packets_are_taken_back(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});

	(void)state;
	for (unsigned by_packet = 0; by_packet < 2; by_packet++) {
		const struct packet_info info = packet((uint16_t)(1 + by_packet), 0);
		struct flow_learned learned;

		set_rules(1, 2, by_packet ? FLOW_VERDICT_BY_PACKET : 7);
		policy.packet = (struct flow_packet_decision){.verdict = 7, .rule = 3};
		const uint32_t position = flow_shard_learn_packet(shard, &info, &learned);

		flow_shard_uncount(shard, position, &info);
		for (unsigned i = 0; i < 5; i++) {
			(void)(by_packet ? flow_shard_account_packet(
						   shard, position, &info, &policy.packet)
					 : flow_shard_account(shard, position, &info));
			if (i % 2 == 0)
				flow_shard_uncount(shard, position, &info);
			else
				(void)flow_shard_decide(shard, position);
		}
	}
	assert_int_equal(shard->counters.packets, 4);
	assert_int_equal(shard->counters.dropped_packets, 8);
	flow_shard_end_all(shard);
	assert_int_equal(n_reports, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(flow_packets(&reports[i].record, 0), 2);
		assert_int_equal(flow_bytes(&reports[i].record, 0), 2 * BYTES);
		assert_int_equal(reports[i].dropped.rule_packets, 4);
		assert_int_equal(reports[i].dropped.rule_bytes, 4 * BYTES);
	}
	expect(1, 2, 6);
	expect(3, 0, 6);
	flow_shard_destroy(shard);
}

static bool is_there(struct flow_shard *shard, uint64_t now_us)
{
	(void)flow_shard_advance(shard, now_us);
	return shard->table.count == 1;
}

/* A rule's time-out holds from when the flow is decided by it until it is decided otherwise. */
static void rules_have_time_outs(void **state)
{
	static const struct {
		uint32_t first, then, end; /* time-outs, 0: the protocol's, and when that is */
	} rows[] = {{5, 5, 5}, {0, 0, IDLE_S}, {200, 200, 200}, {0, 5, 5}, {200, 0, IDLE_S},
		{5, 200, 200}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flow_shard *shard = begin((struct flow_shard_config){0});

		set_rules(1, 1, FLOW_VERDICT_FORWARD);
		policy.decision.age_s = rows[i].first;
		const uint32_t position = learn(shard, 1);

		assert_true(is_there(shard, 2 * S));
		policy.decision.age_s = rows[i].then;
		(void)flow_shard_decide(shard, position);
		assert_true(is_there(shard, rows[i].end * S - 1));
		assert_false(is_there(shard, rows[i].end * S));
		flow_shard_flush(shard);
		assert_int_equal(reports[0].reason, FLOW_END_IDLE);
		flow_shard_destroy(shard);
	}
}

/* Rules that age are told of the last packet of their flows, of either direction, when these are decided and end. */
static void rules_know_when_flows_were_seen(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){0});

	(void)state;
	set_rules(1, FLOW_RULE_NONE, FLOW_VERDICT_FORWARD);
	policy.decision.age_s = 30;
	const uint32_t position = learn(shard, 1);

	assert_true(is_there(shard, 2 * S));
	carry(shard, position, 1, 1);
	assert_true(is_there(shard, 5 * S));
	(void)flow_shard_decide(shard, position);
	assert_int_equal(policy.seen_us[1], 2 * S);
	/* what decided it until now is told, and what decides it from now on when the next packet has come */
	set_rules(2, 2, FLOW_VERDICT_DROP);
	policy.decision.age_s = 30;
	carry(shard, position, 0, 1);
	(void)flow_shard_decide(shard, position);
	assert_int_equal(policy.seen_us[1], 5 * S);
	assert_int_equal(policy.seen_us[2], 0);
	assert_true(is_there(shard, 7 * S));
	carry(shard, position, 0, 1);
	flow_shard_kill(shard, position);
	assert_int_equal(policy.seen_us[2], 7 * S);
	/* rules without a time-out of their own are not */
	set_rules(3, 3, FLOW_VERDICT_FORWARD);
	(void)learn(shard, 2);
	end(shard);
	assert_int_equal(policy.seen_us[3], 0);
}

static int make_secret(void **state)
{
	(void)state;
	return hash_secret_init(&secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_end_has_its_rule),
		cmocka_unit_test(what_rules_drop_is_theirs),
		cmocka_unit_test(packets_have_rules_of_their_own),
		cmocka_unit_test(reports_and_credits_are_told_once),
		cmocka_unit_test(ports_decide),
		cmocka_unit_test(reopened_flows_are_others),
		cmocka_unit_test(packets_are_taken_back),
		cmocka_unit_test(rules_have_time_outs),
		cmocka_unit_test(rules_know_when_flows_were_seen),
	};

	return cmocka_run_group_tests(tests, make_secret, NULL);
}
