/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decisions by rules on the packet path: of flows, of single packets, and by port. A model says what is to become of
 * each packet that is sent; what goes out, what is dropped and what each rule counts has to be that, to the packet.
 */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "port/rss.h"

#define N_FLOWS 64
#define N_RULES 12
#define N_SENT 3000
#define ARP 0x0806
#define LLDP 0x88cc

/* What a flow is, by the last digits of its client's port. */
enum kind {
	UNMATCHED,
	MARKED,	   /* rule 1 */
	DROPPED,   /* rule 2 */
	BY_PACKET, /* each packet by its TTL */
	TWO_RULES, /* 4 and 5 */
	BY_PORT, /* what comes by port 0 is rule 6's and passes, what comes by port 1 is rule 7's and is dropped */
	ONE_WAY,    /* by packet of what the client sends, rule 5 of the rest */
	BY_PROGRAM, /* rule 8 */
	N_KINDS,
};

struct judge {
	unsigned shift; /* kinds go on by so many when the rules change */
	uint16_t program;
	struct flow_rule_count rule[PLANE_MAX_WORKERS][N_RULES];
};

/* What the model says of a packet. */
struct fate {
	uint32_t rule;
	bool drop;
};

static unsigned kind_of(const struct judge *judge, unsigned port)
{
	return (port + judge->shift) % N_KINDS;
}

/* A packet that is decided by itself. */
static struct fate fate_by_ttl(unsigned ttl)
{
	if (ttl % 2 == 1)
		return (struct fate){.rule = 2, .drop = true};
	if (ttl == 40)
		return (struct fate){.rule = 8};
	return (struct fate){.rule = ttl % 4 == 0 ? 3 : FLOW_RULE_NONE};
}

static struct fate fate_by_port(unsigned port)
{
	return (struct fate){.rule = port == 0 ? 6 : 7, .drop = port != 0};
}

static struct fate fate_of(
	const struct judge *judge, unsigned client_port, bool back, unsigned port, unsigned ttl)
{
	switch (kind_of(judge, client_port)) {
	case MARKED:
		return (struct fate){.rule = 1};
	case DROPPED:
		return (struct fate){.rule = 2, .drop = true};
	case BY_PACKET:
		return fate_by_ttl(ttl);
	case TWO_RULES:
		return (struct fate){.rule = back ? 5 : 4};
	case BY_PORT:
		return fate_by_port(port);
	case ONE_WAY:
		return back ? (struct fate){.rule = 5} : fate_by_ttl(ttl);
	case BY_PROGRAM:
		return (struct fate){.rule = 8};
	default:
		return (struct fate){.rule = FLOW_RULE_NONE};
	}
}

/* The client's address is the lower one: it is the key's end 0. */
static void decide(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const struct judge *judge = context;
	const unsigned client_port = rte_be_to_cpu_16(key->port[0]);
	const unsigned kind = kind_of(judge, client_port);

	for (unsigned end = 0; end < 2; end++) {
		const struct fate fate = fate_of(judge, client_port, end == 1, port[end], 0);

		decision->rule[end] = fate.rule;
		if (kind == BY_PACKET || (kind == ONE_WAY && end == 0)) {
			decision->verdict[end] = FLOW_VERDICT_BY_PACKET;
			decision->rule[end] = FLOW_RULE_NONE;
		} else if (fate.drop) {
			decision->verdict[end] = FLOW_VERDICT_DROP;
		} else if (kind == BY_PROGRAM) {
			decision->verdict[end] = judge->program;
		}
	}
	decision->by_port = kind == BY_PORT;
	decision->marked = kind == MARKED;
	decision->mark[0] = 77;
}

static void classify(void *context, const struct rte_mbuf *packet, const struct packet_info *info,
	uint16_t port, struct flow_packet_ct ct, struct flow_packet_decision *decision)
{
	(void)ct;
	const struct judge *judge = context;
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);
	struct fate fate;

	if (info == NULL) {
		const unsigned type = (unsigned)bytes[12] << 8 | bytes[13];

		if (type == ARP)
			*decision = (struct flow_packet_decision){
				.verdict = FLOW_VERDICT_DROP, .rule = 9};
		else if (type == LLDP)
			decision->rule = 10;
		return;
	}
	fate = fate_of(
		judge, rte_be_to_cpu_16(info->key.port[0]), info->from == 1, port, bytes[22]);
	decision->rule = fate.rule;
	decision->verdict = fate.drop ? FLOW_VERDICT_DROP : FLOW_VERDICT_FORWARD;
	if (fate.rule == 8)
		decision->verdict = judge->program;
	decision->marked = fate.rule == 3;
	decision->mark = 99;
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

static struct live *begin(struct judge *judge, const struct live_options *shape)
{
	const struct action routed[] = {
		{.kind = ACTION_SET_MAC_DST, .mac = {2, 0, 0, 0, 9, 2}},
		{.kind = ACTION_DECREMENT_TTL},
	};
	struct live_options options = *shape;
	struct action_program program;
	struct error error;

	*judge = (struct judge){.shift = 0};
	options.max_programs = 8;
	options.policy = (struct policy_others){
		.context = judge, .decide = decide, .classify = classify, .count = count};
	struct live *live = live_begin(&options);

	assert_int_equal(action_program_compile(&program, routed, 2, &error), 0);
	assert_int_equal(
		programs_intern(plane_programs(live->plane), &program, &judge->program, &error), 0);
	return live;
}

/* All that the model expects so far. */
struct expected {
	struct flow_rule_count rule[N_RULES], unmatched;
	uint64_t dropped;
	unsigned out[2];
};

static void expect_packet(
	struct expected *expected, struct fate fate, const struct frame *frame, unsigned side)
{
	struct flow_rule_count *of =
		fate.rule == FLOW_RULE_NONE ? &expected->unmatched : &expected->rule[fate.rule];

	of->packets++;
	of->bytes += frame->length;
	if (fate.drop)
		expected->dropped++;
	else
		expected->out[!side]++;
}

struct sent {
	unsigned flow, ttl, side;
	bool back;
};

static void udp_start(struct frame *frame, const struct sent *sent)
{
	char host[24];

	snprintf(host, sizeof(host), "10.0.%u.1", sent->flow / N_KINDS);
	frame_start(frame);
	frame_ipv4(
		frame, sent->back ? "10.9.0.1" : host, sent->back ? host : "10.9.0.1", IPPROTO_UDP);
	frame->bytes[22] = (uint8_t)sent->ttl;
}

static void udp_ports(struct frame *frame, const struct sent *sent)
{
	const unsigned client = 1024 + sent->flow;

	frame_udp(frame, sent->back ? 53 : client, sent->back ? client : 53);
}

static void send_frame(struct live *live, const struct judge *judge, struct expected *expected,
	const struct sent *sent, struct frame *frame)
{
	frame_finish(frame);
	expect_packet(expected,
		fate_of(judge, 1024 + sent->flow, sent->back, sent->side, sent->ttl), frame,
		sent->side);
	live_send(live, sent->side, sent->flow % live->options.n_queues, frame);
}

/* Two fragments, the later one first: it waits for the other. */
static void send_fragments(struct live *live, const struct judge *judge, struct expected *expected,
	const struct sent *sent)
{
	static unsigned id;
	struct frame frame;

	id++;
	udp_start(&frame, sent);
	frame_ipv4_fragment(&frame, id & UINT16_MAX, 24, false);
	frame_fill(&frame, 8);
	send_frame(live, judge, expected, sent, &frame);
	udp_start(&frame, sent);
	frame_ipv4_fragment(&frame, id & UINT16_MAX, 0, true);
	udp_ports(&frame, sent);
	frame_fill(&frame, 16);
	send_frame(live, judge, expected, sent, &frame);
}

static struct sent draw(void)
{
	struct sent sent = {
		.flow = (unsigned)random() % N_FLOWS,
		.ttl = 33 + (unsigned)random() % 16,
		.back = random() & 1,
	};

	/* one in eight comes by the port of the other end */
	sent.side = sent.back ^ (random() % 8 == 0);
	return sent;
}

/* Packets of all kinds, some in one burst, and now and then turns. */
static void send_many(struct live *live, const struct judge *judge, struct expected *expected)
{
	for (unsigned i = 0; i < N_SENT; i++) {
		const struct sent sent = draw();
		struct frame frame;

		if (random() % 16 == 0) {
			send_fragments(live, judge, expected, &sent);
		} else {
			udp_start(&frame, &sent);
			udp_ports(&frame, &sent);
			frame_fill(&frame, 20);
			send_frame(live, judge, expected, &sent, &frame);
		}
		for (unsigned turns = (unsigned)random() % 8; turns > 6; turns--)
			live_turn(live, (unsigned)random() % live->plane->n_lcores);
		if (i % 256 == 255)
			live_settle(live);
	}
	live_settle(live);
}

/* The rules have changed, or may have: after that each has been told of every packet. */
static void decide_again(struct live *live)
{
	const uint64_t change = plane_policy_changed(live->plane);

	live_settle(live);
	assert_int_equal(plane_policy_decided(live->plane), change);
}

static void expect(struct live *live, const struct judge *judge, struct expected *expected)
{
	static struct plane_snapshot snapshot;
	struct flow_rule_count sum = {0}, unmatched = {0};
	uint64_t known = 0;

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	live_check_sums(&snapshot);
	for (unsigned rule = 0; rule < N_RULES; rule++) {
		struct flow_rule_count of = {0};

		for (unsigned worker = 0; worker < live->options.n_workers; worker++) {
			of.packets += judge->rule[worker][rule].packets;
			of.bytes += judge->rule[worker][rule].bytes;
		}
		assert_int_equal(of.packets, expected->rule[rule].packets);
		assert_int_equal(of.bytes, expected->rule[rule].bytes);
		sum.packets += of.packets;
		sum.bytes += of.bytes;
	}
	for (unsigned i = 0; i < snapshot.n_lcores; i++) {
		unmatched.packets += snapshot.lcores[i].unmatched.packets;
		unmatched.bytes += snapshot.lcores[i].unmatched.bytes;
		known += snapshot.lcores[i].flow.packets + snapshot.lcores[i].flow.dropped_packets;
	}
	assert_int_equal(unmatched.packets, expected->unmatched.packets);
	assert_int_equal(unmatched.bytes, expected->unmatched.bytes);
	assert_int_equal(sum.packets + unmatched.packets, known + snapshot.wires[0].non_ip);
	assert_int_equal(snapshot.wires[0].dropped[DROP_RULE], expected->dropped);
	assert_int_equal(
		snapshot.wires[0].dropped[DROP_RULE], path_counters_dropped(&snapshot.wires[0]));
	for (unsigned side = 0; side < 2; side++) {
		assert_int_equal(live_take(live, side), expected->out[side]);
		expected->out[side] = 0;
	}
}

static const struct live_options shapes[] = {
	{.n_workers = 1},
	{.n_workers = 2},
	{.n_workers = 3},
	{.n_workers = 2, .n_queues = 2, .rss = 1u << RSS_IPV4_UDP},
	{.n_workers = 1, .threads = PLANE_SPLIT},
	{.n_workers = 2, .threads = PLANE_SPLIT},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void every_packet_has_its_fate(void **state)
{
	(void)state;
	srandom(11);
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct judge judge;
		struct live *live = begin(&judge, &shapes[shape]);
		struct expected expected = {0};

		for (unsigned round = 0; round < 4; round++) {
			send_many(live, &judge, &expected);
			decide_again(live);
			expect(live, &judge, &expected);
			/* the rules change: each flow is another kind */
			judge.shift += 3;
			decide_again(live);
			expect(live, &judge, &expected);
		}
		live_end(live);
	}
}

/* Of flows that end, and are reported while they live, rules know without being asked. */
static void ends_tell_rules_of_the_rest(void **state)
{
	struct judge judge;
	struct live *live = begin(&judge, &shapes[0]);
	struct expected expected = {0};

	(void)state;
	srandom(12);
	send_many(live, &judge, &expected);
	flow_shard_end_all(live->plane->lcores[0].worker.shard);
	expect(live, &judge, &expected);
	for (unsigned i = 0; i < live->n_reports; i++) {
		const struct flow_report *report = &live->reports[i];
		const unsigned kind = kind_of(&judge, rte_be_to_cpu_16(report->record.key.port[0]));

		if (kind == MARKED)
			assert_int_equal(report->rules.marked, 1);
		if (report->rules.marked & 1)
			assert_int_equal(report->rules.mark[0], kind == MARKED ? 77 : 99);
		assert_int_equal(report->dropped.rule_packets, report->dropped.packets);
	}
	live_end(live);
}

/* ARP is dropped by a rule, another protocol counted by one, and the rest left alone. */
static void packets_without_a_flow_are_decided(void **state)
{
	static const unsigned types[] = {ARP, LLDP, 0x8899};

	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct judge judge;
		struct live *live = begin(&judge, &shapes[shape]);
		struct expected expected = {0};

		for (unsigned i = 0; i < 300; i++) {
			const unsigned side = i % 2;
			struct fate fate = {.rule = FLOW_RULE_NONE};
			struct frame frame;

			frame_start(&frame);
			frame_type(&frame, types[i % 3]);
			frame_fill(&frame, 46);
			if (types[i % 3] == ARP)
				fate = (struct fate){.rule = 9, .drop = true};
			else if (types[i % 3] == LLDP)
				fate.rule = 10;
			expect_packet(&expected, fate, &frame, side);
			live_send(live, side, 0, &frame);
		}
		live_settle(live);
		expect(live, &judge, &expected);
		live_end(live);
	}
}

/*
 * Somebody at port 1 writes a client's address: the first packet of the flow is the forged one. What comes by port 0
 * passes all the same, and nothing of what comes by port 1.
 */
static void an_address_at_the_wrong_port_passes_nothing(void **state)
{
	(void)state;
	for (unsigned shape = 0; shape < N_SHAPES; shape++) {
		struct judge judge;
		struct live *live = begin(&judge, &shapes[shape]);
		struct expected expected = {0};

		for (unsigned i = 0; i < 12; i++) {
			const struct sent sent = {
				.flow = BY_PORT, .ttl = 64, .side = i % 3 != 2, .back = i % 4 == 3};
			struct frame frame;

			udp_start(&frame, &sent);
			udp_ports(&frame, &sent);
			frame_fill(&frame, 20);
			send_frame(live, &judge, &expected, &sent, &frame);
			live_settle(live);
		}
		assert_int_equal(expected.dropped, 8);
		decide_again(live);
		expect(live, &judge, &expected);
		live_end(live);
	}
}

/* Until so many packets have been received, and none is under way. */
static void wait_until(struct live *live, uint64_t received)
{
	static struct plane_snapshot snapshot;

	do {
		sched_yield();
		assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
		live_check_sums(&snapshot);
	} while (snapshot.wires[0].received != received || snapshot.wires[0].held != 0);
}

/* The same with the plane's own threads, while the rules change again and again. */
static void threads_agree(void **state)
{
	(void)state;
	srandom(13);
	for (unsigned shape = 1; shape < N_SHAPES; shape += 4) {
		struct judge judge;
		struct live *live = begin(&judge, &shapes[shape]);
		struct expected expected = {0};
		struct error error;

		assert_int_equal(plane_start(live->plane, &error), 0);
		for (unsigned i = 0; i < N_SENT; i++) {
			const struct sent sent = draw();
			struct frame frame;

			udp_start(&frame, &sent);
			udp_ports(&frame, &sent);
			frame_fill(&frame, 20);
			send_frame(live, &judge, &expected, &sent, &frame);
			if (i % 64 == 0)
				(void)plane_policy_changed(live->plane);
			/* no ring between two threads may be full */
			if (i % 256 == 255 || i + 1 == N_SENT)
				wait_until(live, i + 1);
		}
		plane_stop(live->plane);
		expect(live, &judge, &expected);
		live_end(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_has_its_fate),
		cmocka_unit_test(ends_tell_rules_of_the_rest),
		cmocka_unit_test(packets_without_a_flow_are_decided),
		cmocka_unit_test(an_address_at_the_wrong_port_passes_nothing),
		cmocka_unit_test(threads_agree),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
