/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sides of a wire: what one of them forges alone opens no flow (flow/sides.h). */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "flow/sides.h"

#define PROTO_SCTP 132

static const struct proto {
	const char *name;
	unsigned proto;
	bool ipv6;
	unsigned
		open; /* packets until it is open: all but the last of the initiator's are answered */
} protos[] = {
	{"UDP", IPPROTO_UDP, false, 2},
	{"UDP over IPv6", IPPROTO_UDP, true, 2},
	{"TCP", IPPROTO_TCP, false, 3},
	{"TCP over IPv6", IPPROTO_TCP, true, 3},
	{"ICMP", IPPROTO_ICMP, false, 2},
	{"ICMPv6", IPPROTO_ICMPV6, true, 2},
	{"SCTP", PROTO_SCTP, false, 2},
	{"another", 253, false, 2},
};

#define N_PROTOS (sizeof(protos) / sizeof(protos[0]))

/* Where a conversation begins, so that two of the same key have other numbers. */
struct talk {
	const struct proto *proto;
	unsigned number; /* of the client */
	uint32_t client_seq, server_seq;
};

static void upper(struct frame *frame, const struct talk *talk, unsigned step, unsigned flags)
{
	const bool back = step == 1;
	const unsigned src = back ? 80 : 4000, dst = back ? 4000 : 80;

	switch (talk->proto->proto) {
	case IPPROTO_TCP:
		frame_tcp(frame,
			&(struct frame_tcp){
				.src_port = src,
				.dst_port = dst,
				.seq = back ? talk->server_seq : talk->client_seq + (step != 0),
				.ack = step == 0 ? 0
				       : back	 ? talk->client_seq + 1
						 : talk->server_seq + 1,
				.flags = flags,
				.window = 1000,
			});
		break;
	case IPPROTO_ICMP:
		frame_icmp(frame, back ? 0 : 8, 0);
		break;
	case IPPROTO_ICMPV6:
		frame_icmp(frame, back ? 129 : 128, 0);
		break;
	default:
		frame_udp(frame, src, dst);
		frame_fill(frame, 12);
		break;
	}
}

/* Step 0 is the initiator's first packet, 1 the answer, 2 what acknowledges it. `flags`: of TCP. */
static void talk_flags(struct frame *frame, const struct talk *talk, unsigned step, unsigned flags)
{
	char client[64];
	const char *server = talk->proto->ipv6 ? "2001:db8::9" : "10.9.0.1";

	snprintf(client, sizeof(client), talk->proto->ipv6 ? "2001:db8::1:%x:%x" : "10.0.%u.%u",
		talk->number / 200, 1 + talk->number % 200);
	frame_start(frame);
	if (talk->proto->ipv6)
		frame_ipv6(frame, step == 1 ? server : client, step == 1 ? client : server,
			talk->proto->proto);
	else
		frame_ipv4(frame, step == 1 ? server : client, step == 1 ? client : server,
			talk->proto->proto);
	upper(frame, talk, step, flags);
	frame_finish(frame);
}

static void say(struct live *live, const struct talk *talk, unsigned step, unsigned side)
{
	static const unsigned flags[] = {TCP_SYN, TCP_SYN | TCP_ACK, TCP_ACK};
	struct frame frame;

	talk_flags(&frame, talk, step, flags[step]);
	live_send(live, side, 0, &frame);
	live_settle(live);
	assert_int_equal(live_take(live, !side), 1);
}

static const struct flow_record *record_of(struct live *live, const struct talk *talk)
{
	const struct extract_options options = {.secret = &live->plane->secret};
	struct packet_info info;
	struct frame frame;

	talk_flags(&frame, talk, 0, TCP_SYN);
	struct rte_mbuf *mbuf = frame_mbuf(frame.bytes, frame.length);

	assert_int_equal(extract(&options, mbuf, 0, &info), EXTRACT_IP);
	frame_mbuf_free(mbuf);
	struct flow_shard *shard =
		plane_shard_lcore(live->plane, steer_shard(&live->plane->steer, &info))
			->worker.shard;
	uint32_t position = flow_table_find(&shard->table, &info.key, info.hash);

	return position == FLOW_NONE ? NULL : flow_table_record(&shard->table, position);
}

static enum flow_phase phase_of(struct live *live, const struct talk *talk)
{
	const struct flow_record *record = record_of(live, talk);

	assert_non_null(record);
	return flow_phase((enum flow_state)record->state);
}

static uint64_t one_sided(struct live *live)
{
	struct plane_snapshot snapshot;

	live_snapshot(live, 7, &snapshot);
	return snapshot.wires[0].one_sided;
}

static struct talk talk_of(unsigned proto, unsigned number)
{
	return (struct talk){&protos[proto], number, 1000, 500000};
}

/* Both ends' words come by one port, whichever: the flow is counted, and stays embryonic. */
static void what_one_side_forges_opens_nothing(void **state)
{
	(void)state;
	for (unsigned proto = 0; proto < N_PROTOS; proto++) {
		for (unsigned side = 0; side < 4; side++) {
			struct live *live = live_begin(&(struct live_options){
				.n_workers = 1 + side / 2, .one_armed = false});
			struct talk talk = talk_of(proto, 1);

			for (unsigned round = 0; round < 3; round++)
				for (unsigned step = 0; step < protos[proto].open; step++)
					say(live, &talk, step, side % 2);
			assert_int_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
			assert_int_equal(one_sided(live), 3);
			assert_int_equal(flow_packets(record_of(live, &talk), 0) +
						 flow_packets(record_of(live, &talk), 1),
				3 * protos[proto].open);
			live_end(live);
		}
	}
}

/* Where a wire has one arm, the same packets open the flow. */
static void with_one_arm_they_do(void **state)
{
	(void)state;
	for (unsigned proto = 0; proto < N_PROTOS; proto++) {
		struct live *live =
			live_begin(&(struct live_options){.n_workers = 1, .one_armed = true});
		struct talk talk = talk_of(proto, 1);

		for (unsigned step = 0; step < protos[proto].open; step++)
			say(live, &talk, step, 1);
		assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
		assert_int_equal(one_sided(live), 0);
		live_end(live);
	}
}

static void genuine(struct live *live, const struct talk *talk, unsigned client_side)
{
	for (unsigned step = 0; step < talk->proto->open; step++)
		say(live, talk, step, client_side ^ (step == 1));
}

/* What was forged before or meanwhile does not keep the genuine ends from opening their flow. */
static void genuine_ends_open_it_whatever_was_forged(void **state)
{
	static const struct {
		const char *name;
		unsigned n; /* forged packets */
		unsigned steps[3], side;
	} before[] = {
		{"nothing", 0, {0}, 0},
		{"the client's word, by the server's port", 1, {0}, 1},
		{"both, by the server's port", 2, {0, 1}, 1},
		{"all, by the server's port", 3, {0, 1, 2}, 1},
		{"both, by the client's port", 2, {0, 1}, 0},
		{"all, by the client's port, twice the answer", 3, {0, 1, 1}, 0},
	};

	(void)state;
	for (unsigned proto = 0; proto < N_PROTOS; proto++) {
		for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
			struct live *live = live_begin(&(struct live_options){.n_workers = 1});
			/* a forged SYN has the number of the genuine one, or another one */
			struct talk forged = talk_of(proto, 1), talk = talk_of(proto, 1);

			forged.client_seq += before[i].side * 77777;
			forged.server_seq += 99999;
			for (unsigned j = 0; j < before[i].n; j++)
				say(live, &forged, before[i].steps[j], before[i].side);
			if (before[i].n > 0)
				assert_int_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
			/* twice, as every end asks again: who was heard where is known by then */
			genuine(live, &talk, 0);
			genuine(live, &talk, 0);
			if (phase_of(live, &talk) != FLOW_PHASE_OPEN)
				fail_msg("%s after %s: not open", protos[proto].name,
					before[i].name);
			assert_int_equal(record_of(live, &talk)->heard, FLOW_HEARD_APART);
			assert_int_equal(record_of(live, &talk)->side, 0);
			live_end(live);
		}
	}
}

/* While the answer is under way: a forged one, by the client's own port, changes nothing. */
static void a_forged_answer_changes_nothing_meanwhile(void **state)
{
	(void)state;
	for (unsigned proto = 0; proto < N_PROTOS; proto++) {
		struct live *live = live_begin(&(struct live_options){.n_workers = 1});
		struct talk talk = talk_of(proto, 1), forged = talk_of(proto, 1);

		forged.server_seq += 99999;
		say(live, &talk, 0, 0);
		say(live, &forged, 1, 0);
		assert_int_equal(one_sided(live), 1);
		say(live, &talk, 1, 1);
		if (protos[proto].proto == IPPROTO_TCP) {
			/* the server is known now, and its place is not the client's */
			say(live, &forged, 1, 0);
			assert_int_equal(one_sided(live), 2);
			assert_int_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
			say(live, &talk, 2, 0);
		}
		assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
		live_end(live);
	}
}

static void say_data(struct live *live, const struct talk *talk, unsigned step, unsigned side)
{
	struct frame frame;

	talk_flags(&frame, talk, step, TCP_ACK);
	live_send(live, side, 0, &frame);
	live_settle(live);
	assert_int_equal(live_take(live, !side), 1);
}

/* Of the record that the genuine ends have opened: nothing has begun anew, and none has ended. */
static void check_untouched(struct live *live, const struct talk *talk, uint64_t start_us)
{
	const struct flow_record *record = record_of(live, talk);

	assert_int_equal(phase_of(live, talk), FLOW_PHASE_OPEN);
	assert_int_equal(record->state, FLOW_ESTABLISHED);
	assert_int_equal(record->start_us, start_us);
	assert_int_equal(record->side, 0);
	assert_int_equal(live->n_reports, 0);
}

/*
 * On an open flow: a SYN, and what acknowledges it, by one port alone leave the record as it is, whichever port and
 * whatever the answer is. The genuine ends, who answer each other across the wire, begin a new one.
 */
static void a_forged_reconnect_replaces_nothing(void **state)
{
	static const unsigned answers[] = {TCP_SYN | TCP_ACK, TCP_RST | TCP_ACK, TCP_ACK};
	static const unsigned tcp[] = {2, 3};

	(void)state;
	for (unsigned i = 0; i < 2 * 2 * 3; i++) {
		const unsigned side = i % 2;
		struct live *live = live_begin(&(struct live_options){.n_workers = 1});
		struct talk talk = talk_of(tcp[i / 2 % 2], 1), forged = talk, again = talk;
		struct frame frame;

		forged.client_seq += 0x40000000;
		forged.server_seq += 0x50000000;
		again.client_seq += 0x20000000;
		again.server_seq += 0x30000000;
		genuine(live, &talk, 0);
		const uint64_t start_us = record_of(live, &talk)->start_us;

		for (unsigned round = 0; round < 3; round++) {
			say(live, &forged, 0, side);
			talk_flags(&frame, &forged, 1, answers[i / 4]);
			live_send(live, side, 0, &frame);
			live_settle(live);
			assert_int_equal(live_take(live, !side), 1);
			say(live, &forged, 2, side);
			check_untouched(live, &talk, start_us);
		}
		/* the ends go on */
		say_data(live, &talk, 1, 1);
		say_data(live, &talk, 2, 0);
		check_untouched(live, &talk, start_us);

		say(live, &again, 0, 0);
		check_untouched(live, &talk, start_us);
		say(live, &again, 1, 1);
		assert_int_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
		assert_int_equal(live->n_reports, 1);
		say(live, &again, 2, 0);
		assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
		assert_int_equal(record_of(live, &talk)->tcp_end[record_of(live, &talk)->initiator],
			again.client_seq + 1);
		assert_int_equal(record_of(live, &talk)->heard, FLOW_HEARD_APART);
		live_end(live);
	}
}

/* With one arm the answer may come by the same port. */
static void with_one_arm_a_reconnect_may(void **state)
{
	struct talk talk = talk_of(2, 1), again = talk;

	(void)state;
	struct live *live = live_begin(&(struct live_options){.n_workers = 1, .one_armed = true});

	again.client_seq += 0x20000000;
	again.server_seq += 0x30000000;
	for (unsigned step = 0; step < 3; step++)
		say(live, &talk, step, 1);
	assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
	say(live, &again, 0, 1);
	assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
	say(live, &again, 1, 1);
	assert_int_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
	say(live, &again, 2, 1);
	assert_int_equal(phase_of(live, &talk), FLOW_PHASE_OPEN);
	assert_int_equal(live->n_reports, 1);
	live_end(live);
}

#define CAPACITY 400
#define GENUINE 50

static void flood(struct live *live, unsigned kind, unsigned number)
{
	static const struct {
		unsigned proto, n, flags[3];
	} kinds[] = {
		{2, 3, {TCP_SYN, TCP_SYN | TCP_ACK, TCP_ACK}},
		{0, 2, {0}},
		{4, 2, {0}},
		{2, 1, {TCP_FIN | TCP_ACK}},
		{2, 1, {TCP_RST | TCP_ACK}},
		{3, 2, {TCP_SYN, TCP_RST | TCP_ACK}},
	};
	struct talk talk = talk_of(kinds[kind].proto, number);
	struct frame frame;

	for (unsigned step = 0; step < kinds[kind].n; step++) {
		talk_flags(&frame, &talk, step, kinds[kind].flags[step]);
		live_send(live, 1, 0, &frame);
	}
	live_settle(live);
	live_take(live, 0);
}

/* Open and closing flows of two sides stay while one side makes up flow after flow. */
static void a_forged_flood_pushes_out_itself(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 6; kind++) {
		struct live *live =
			live_begin(&(struct live_options){.n_workers = 1, .capacity = CAPACITY});
		unsigned evicted = 0;

		for (unsigned i = 0; i < GENUINE; i++) {
			struct talk talk = talk_of(i % N_PROTOS, i);

			genuine(live, &talk, i / N_PROTOS % 2);
			if (protos[i % N_PROTOS].proto == IPPROTO_TCP && i % 3 == 0) {
				struct frame frame;

				talk_flags(&frame, &talk, 2, TCP_FIN | TCP_ACK);
				live_send(live, i / N_PROTOS % 2, 0, &frame);
				live_settle(live);
				live_take(live, !(i / N_PROTOS % 2));
				assert_int_equal(phase_of(live, &talk), FLOW_PHASE_CLOSING);
			}
		}
		for (unsigned i = 0; i < 3 * CAPACITY; i++)
			flood(live, kind, 1000 + i);
		for (unsigned i = 0; i < GENUINE; i++) {
			struct talk talk = talk_of(i % N_PROTOS, i);

			assert_int_not_equal(phase_of(live, &talk), FLOW_PHASE_NEW);
		}
		for (unsigned i = 0; i < live->n_reports; i++)
			evicted += live->reports[i].reason == FLOW_END_EVICTED;
		assert_int_equal(evicted, GENUINE + 3 * CAPACITY - CAPACITY);
		live_end(live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_side_forges_opens_nothing),
		cmocka_unit_test(with_one_arm_they_do),
		cmocka_unit_test(genuine_ends_open_it_whatever_was_forged),
		cmocka_unit_test(a_forged_answer_changes_nothing_meanwhile),
		cmocka_unit_test(a_forged_reconnect_replaces_nothing),
		cmocka_unit_test(with_one_arm_a_reconnect_may),
		cmocka_unit_test(a_forged_flood_pushes_out_itself),
	};

	return cmocka_run_group_tests(tests, live_environment, NULL);
}
