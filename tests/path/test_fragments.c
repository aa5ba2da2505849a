/* SPDX-License-Identifier: BSD-3-Clause */

/* Fragments on their way: how long they wait, in what order they go on, what strict TCP makes of them. */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <rte_cycles.h>

#define MS(ms) ((ms) * UINT64_C(1000))
#define WAIT_US MS(300)

/* Bytes `from` to `to` of a datagram that an upper-layer packet makes; the whole of it is no fragment. */
struct slice {
	bool v6;
	bool back;
	uint8_t proto;
	unsigned id;
	size_t from, to, all;
};

static void cut_out(struct frame *frame, const struct slice *slice, const uint8_t *upper)
{
	const char *ends[2][2] = {{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}};
	const char *src = ends[slice->v6][slice->back], *dst = ends[slice->v6][!slice->back];
	bool more = slice->to < slice->all;

	frame_start(frame);
	if (slice->v6) {
		frame_ipv6(frame, src, dst, 44);
		frame_ipv6_fragment(frame, slice->proto, slice->id, (unsigned)slice->from, more);
	} else {
		frame_ipv4(frame, src, dst, slice->proto);
		frame_ipv4_fragment(frame, slice->id, (unsigned)slice->from, more);
	}
	memcpy(frame_add(frame, slice->to - slice->from), upper + slice->from,
		slice->to - slice->from);
	frame_finish(frame);
}

static void send_slice(struct scene *scene, struct slice slice, const uint8_t *upper)
{
	struct frame frame;

	cut_out(&frame, &slice, upper);
	scene_send(scene, &frame);
}

/* A datagram's later part without its first. */
static void send_later(struct scene *scene, bool back, unsigned id)
{
	const struct slice slice = {
		.back = back, .proto = IPPROTO_UDP, .id = id, .from = 16, .to = 32, .all = 32};
	const uint8_t upper[32] = {0};

	send_slice(scene, slice, upper);
}

static void send_first(struct scene *scene, bool back, unsigned id)
{
	const struct slice slice = {
		.back = back, .proto = IPPROTO_UDP, .id = id, .from = 0, .to = 16, .all = 32};
	const uint8_t upper[32] = {1000 >> 8, 1000 & 255, 0, 53};

	send_slice(scene, slice, upper);
}

/* A segment of the connection that scene_handshake() opens, from the client; with options up to `header` bytes. */
static void segment(uint8_t *upper, unsigned flags, uint32_t seq, unsigned header)
{
	memset(upper, 1, 64);
	put_be16(upper, 1025);
	put_be16(upper + 2, 80);
	put_be32(upper + 4, seq);
	put_be32(upper + 8, 500);
	upper[12] = (uint8_t)(header / 4 << 4);
	upper[13] = (uint8_t)flags;
	put_be16(upper + 14, 1000);
	memset(upper + 16, 0, 4);
}

/* What waits and has its first come late keeps the time at which it came: so does the record. */
static void records_begin_with_the_first_that_came(void **state)
{
	(void)state;
	for (unsigned shards = 1; shards <= SCENE_MAX_SHARDS; shards += 3) {
		for (unsigned paced = 0; paced < 2; paced++) {
			struct scene *scene = scene_begin(&(struct scene_options){
				.n_shards = shards, .pace = paced ? 64 : 0});

			scene_wait(scene, 1);
			send_later(scene, false, 7);
			scene_wait(scene, 0.01);
			send_later(scene, false, 7);
			scene_wait(scene, 0.02);
			send_first(scene, false, 7);
			scene_end(scene);

			const struct flow_record *record =
				&scene_report(scene, IPPROTO_UDP, 1000, 53)->record;

			assert_int_equal(record->start_us, MS(1000));
			assert_int_equal(record->last_seen_us, MS(1030));
			assert_int_equal(flow_packets(record, record->initiator), 3);
			scene_destroy(scene);
		}
	}
}

/* A flow without ports has the times of its packets, not those at which they were let go. */
static void untied_ones_keep_their_times(void **state)
{
	(void)state;
	for (unsigned shards = 1; shards <= SCENE_MAX_SHARDS; shards += 3) {
		for (unsigned how = 0; how < 3; how++) {
			struct scene *scene = scene_begin(&(struct scene_options){
				.n_shards = shards, .pace = how == 1 ? 64 : 0});

			scene_wait(scene, 1);
			send_later(scene, false, 7);
			scene_wait(scene, 0.01);
			send_later(scene, false, 8);
			if (how != 2) /* else the run ends before they have waited */
				scene_wait(scene, 90);
			if (how == 1)
				scene_turn(scene);
			else if (how == 0)
				send_first(scene, false, 99);
			scene_end(scene);

			const struct flow_record *record =
				&scene_report(scene, IPPROTO_UDP, 0, 0)->record;

			assert_int_equal(record->start_us, MS(1000));
			assert_int_equal(record->last_seen_us, MS(1010));
			assert_int_equal(scene_counters(scene).fragments_untied, 2);
			scene_destroy(scene);
		}
	}
}

/* A packet that came before others which were counted earlier makes a record older, not younger. */
static void a_late_one_does_not_turn_back_the_record(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});

	scene_wait(scene, 2);
	send_later(scene, false, 7);
	for (unsigned i = 0; i < 5; i++) {
		scene_wait(scene, 1);
		send_first(scene, false, 100 + i);
	}
	send_first(scene, false, 7);
	scene_end(scene);

	const struct flow_record *record = &scene_report(scene, IPPROTO_UDP, 1000, 53)->record;

	assert_int_equal(record->start_us, MS(2000));
	assert_int_equal(record->last_seen_us, MS(7000));
	assert_int_equal(flow_packets(record, record->initiator), 7);
	scene_destroy(scene);
}

/* Untied ones go in the order in which they came, whatever the secret is: who came first has begun the flow. */
static void who_came_first_is_the_initiator(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		struct scene *scene = scene_begin(
			&(struct scene_options){.n_shards = 1 + i % 2, .pace = i % 3 ? 64 : 0});

		send_later(scene, true, 1);
		for (unsigned id = 2; id < 30; id++)
			send_later(scene, id % 2 != 0, id);
		scene_wait(scene, i % 4 < 2 ? 61 : 0);
		scene_turn(scene);
		scene_end(scene);

		const struct flow_report *report = scene_report(scene, IPPROTO_UDP, 0, 0);

		/* 10.0.0.2 is the higher one */
		assert_int_equal(report->record.initiator, 1);
		assert_int_equal(flow_packets(&report->record, 1), 15);
		assert_int_equal(flow_packets(&report->record, 0), 14);
		scene_destroy(scene);
	}
}

/* Live, a fragment waits for a fraction of a second from when it came, and no longer. */
static void a_wait_ends_with_its_own_time(void **state)
{
	(void)state;
	struct scene *scene =
		scene_begin(&(struct scene_options){.pace = 64, .max_wait_us = WAIT_US});

	send_later(scene, false, 1);
	scene_wait(scene, 0.1);
	send_later(scene, false, 1);
	send_later(scene, false, 2);
	scene_wait(scene, 0.199999);
	scene_turn(scene);
	assert_int_equal(parser_held(scene->parser), 3);
	scene_wait(scene, 0.000001);
	scene_turn(scene);
	assert_int_equal(parser_held(scene->parser), 2);
	scene_wait(scene, 0.05);
	send_first(scene, false, 1); /* in time for the second */
	assert_int_equal(parser_held(scene->parser), 1);
	scene_wait(scene, 0.05);
	scene_turn(scene);
	assert_int_equal(parser_held(scene->parser), 0);
	assert_int_equal(scene_counters(scene).fragments_untied, 2);
	scene_end(scene);
	scene_destroy(scene);
}

/* No more than the pace go on in a turn, whatever came or ended at once; and each goes, and is counted. */
static void a_turn_lets_go_no_more_than_its_pace(void **state)
{
	enum { DATAGRAMS = 40, EACH = 50, PACE = 16 };

	(void)state;
	for (unsigned ended = 0; ended < 2; ended++) {
		struct scene *scene = scene_begin(&(struct scene_options){.pace = PACE,
			.max_wait_us = WAIT_US,
			.max_held = 4096,
			.max_held_datagram = 64});
		unsigned n_turns = 0, n_out;

		for (unsigned i = 0; i < DATAGRAMS * EACH; i++)
			send_later(scene, false, i % DATAGRAMS);
		assert_int_equal(scene_counters(scene).held, DATAGRAMS * EACH);
		assert_int_equal(scene->n_out, 0);
		scene_turn(scene);
		assert_int_equal(scene->n_out, 0);
		if (ended) {
			scene_wait(scene, 0.3);
		} else {
			/* all firsts at once: each goes, and the pace's worth of what waited */
			for (unsigned id = 0; id < DATAGRAMS; id++)
				send_first(scene, false, id);
			assert_int_equal(scene->n_out, DATAGRAMS + PACE);
			/* the end of the same turn lets no more go */
			scene_turn(scene);
			assert_int_equal(scene->n_out, DATAGRAMS + PACE);
		}
		while (parser_held(scene->parser) != 0) {
			n_out = scene->n_out;
			scene_turn(scene);
			n_turns++;
			assert_true(scene->n_out - n_out <= PACE);
			assert_int_equal(scene_counters(scene).held, parser_held(scene->parser));
			assert_int_equal(scene_counters(scene).received,
				scene->n_out + parser_held(scene->parser));
		}
		assert_int_equal(n_turns, DATAGRAMS * EACH / PACE - !ended);
		assert_int_equal(
			scene_counters(scene).fragments_untied, ended ? DATAGRAMS * EACH : 0);
		scene_end(scene);
		scene_destroy(scene);
	}
}

/* The fewest cycles that a turn takes, of some, each a second after the one before: others may have the processor in one. */
static uint64_t cheapest_turn(struct scene *scene)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < 32; i++) {
		scene_wait(scene, 1);
		const uint64_t begin = rte_rdtsc();

		scene_turn(scene);
		least = RTE_MIN(least, rte_rdtsc() - begin);
	}
	return least;
}

/* A turn does not go through the table of datagrams: with a full one it takes no longer, nor when all of them end. */
static void a_full_table_makes_no_turn_longer(void **state)
{
	enum { MANY = 65536, FEW = 64 };
	struct scene_options options = {
		.pace = 64, .max_wait_us = WAIT_US, .max_datagrams = FEW, .max_held = 4096};

	(void)state;
	struct scene *scene = scene_begin(&options);
	/* a table of this size takes 1.5 MB: to read it takes half a million cycles and more */
	const uint64_t most = 10 * cheapest_turn(scene) + 20000;

	scene_end(scene);
	scene_destroy(scene);
	options.max_datagrams = MANY;
	scene = scene_begin(&options);
	for (unsigned i = 0; i < MANY; i++) {
		/* where its places are taken one costs the oldest: none of the last ones */
		if (i == MANY - 64)
			scene_wait(scene, 0.01);
		send_first(scene, i & 1, i / 2);
		scene->n_out = 0;
	}
	/* it knows them */
	for (unsigned i = MANY - 64; i < MANY; i++)
		send_later(scene, i & 1, i / 2);
	assert_int_equal(scene_counters(scene).held, 0);
	assert_true(cheapest_turn(scene) < most); /* all live */
	assert_true(cheapest_turn(scene) < most); /* the 60 seconds are over */
	scene_end(scene);
	scene_destroy(scene);
}

/* Of one datagram some tens may wait; the next goes on. */
static void a_datagram_has_some_places_only(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){
		.pace = 64, .max_wait_us = WAIT_US, .max_held = 1000, .max_held_datagram = 10});

	for (unsigned i = 0; i < 25; i++)
		send_later(scene, false, 5);
	assert_int_equal(parser_held(scene->parser), 10);
	assert_int_equal(scene_counters(scene).fragments_untied, 15);
	send_later(scene, false, 6);
	assert_int_equal(parser_held(scene->parser), 11);
	send_first(scene, false, 5);
	assert_int_equal(parser_held(scene->parser), 1);
	scene_end(scene);
	scene_destroy(scene);
}

/* Where no more may be held, or no more be known, the oldest goes: who comes now has the best chance. */
static void a_flood_costs_the_oldest(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.pace = 64,
		.max_wait_us = WAIT_US,
		.max_datagrams = 64,
		.max_held = 100,
		.max_held_datagram = 64});

	for (unsigned i = 0; i < 1000; i++) {
		scene_wait(scene, 0.0001);
		send_later(scene, true, 1000 + i);
		/* and somebody's datagram, each time, its first last */
		send_later(scene, false, i);
		send_first(scene, false, i);
		assert_int_equal(scene_counters(scene).held, parser_held(scene->parser));
		assert_true(parser_held(scene->parser) <= 100);
		if (i % 10 == 9)
			scene_turn(scene);
	}
	scene_end(scene);

	const struct flow_report *report = scene_report(scene, IPPROTO_UDP, 1000, 53);

	assert_int_equal(flow_packets(&report->record, report->record.initiator), 2000);
	assert_int_equal(scene_counters(scene).fragments_untied, 1000);
	scene_destroy(scene);
}

/* A number used again, soon and with the later fragment first, is another datagram. */
static void a_number_used_again_is_another_datagram(void **state)
{
	const struct slice whole = {.proto = IPPROTO_UDP, .id = 9, .to = 16, .all = 32};

	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});

	for (unsigned i = 0; i < 10; i++) {
		const uint8_t upper[32] = {0, (uint8_t)(i + 1), 0, 53};
		struct slice later = whole;

		later.from = 16;
		later.to = 32;
		if (i % 2 != 0)
			send_slice(scene, later, upper);
		send_slice(scene, whole, upper);
		if (i % 2 == 0)
			send_slice(scene, later, upper);
		send_slice(scene, later, upper); /* carried twice */
		scene_wait(scene, 3);
	}
	scene_end(scene);
	assert_int_equal(scene->n_reports, 10);
	for (uint16_t i = 0; i < 10; i++) {
		const struct flow_record *record =
			&scene_report(scene, IPPROTO_UDP, (uint16_t)(i + 1), 53)->record;

		assert_int_equal(flow_packets(record, record->initiator), 3);
	}
	assert_int_equal(scene_counters(scene).fragments_untied, 0);
	scene_destroy(scene);
}

/* What strict TCP lets pass, and what not: by where the datagram is cut. */
static const struct cut {
	const char *name;
	size_t header;	 /* of the TCP header, by its own word */
	size_t cuts[4];	 /* where the pieces end; the last is the datagram's end */
	unsigned passed; /* pieces that strict lets through */
	bool counts;	 /* the segment is seen as TCP: it may move the window */
} cuts[] = {
	{"whole", 20, {64}, 1, true},
	{"in two", 20, {24, 64}, 2, true},
	{"in four", 20, {24, 32, 48, 64}, 4, true},
	{"header alone", 24, {24, 64}, 2, true},
	{"options to the last", 40, {40, 64}, 2, true},
	{"after 8", 20, {8, 64}, 0, false},
	{"after 16", 20, {16, 64}, 0, false},
	{"after 16 and 24", 20, {16, 24, 64}, 0, false},
	{"among the options", 40, {32, 64}, 0, false},
	{"among the longest options", 60, {56, 64}, 0, false},
	{"offset below the least", 16, {64}, 0, false},
	{"offset 0", 0, {64}, 0, false},
	{"offset below the least, in two", 16, {24, 64}, 0, false},
	{"header longer than the segment", 60, {56}, 0, false},
};

static void send_cut(struct scene *scene, const struct cut *cut, bool v6, bool last_first,
	unsigned flags, uint32_t seq)
{
	uint8_t upper[64];
	unsigned n = 0;

	segment(upper, flags, seq, (unsigned)cut->header);
	while (n < 4 && cut->cuts[n] != 0)
		n++;
	for (unsigned i = 0; i < n; i++) {
		unsigned piece = last_first ? n - 1 - i : i;
		struct slice slice = {
			.v6 = v6,
			.proto = IPPROTO_TCP,
			.id = 77,
			.from = piece == 0 ? 0 : cut->cuts[piece - 1],
			.to = cut->cuts[piece],
			.all = cut->cuts[n - 1],
		};

		send_slice(scene, slice, upper);
	}
}

static void strict_sees_the_whole_header_or_drops(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cuts) * 8; i++) {
		const struct cut *cut = &cuts[i / 8];
		bool v6 = i & 1, last_first = i & 2, strict = i & 4;
		struct scene *scene = scene_begin(&(struct scene_options){.tcp_strict = strict});
		unsigned n = 0;

		print_message("%s%s%s%s\n", cut->name, v6 ? ", IPv6" : "",
			last_first ? ", last first" : "", strict ? ", strict" : "");
		while (n < 4 && cut->cuts[n] != 0)
			n++;
		send_cut(scene, cut, v6, last_first, TCP_ACK, 100);
		scene_end(scene);

		struct path_counters counters = scene_counters(scene);

		assert_int_equal(counters.received, n);
		assert_int_equal(counters.out, strict ? cut->passed : n);
		assert_int_equal(counters.dropped[DROP_TCP_HEADER], strict ? n - cut->passed : 0);
		assert_int_equal(counters.dropped[DROP_TCP_WINDOW], 0);
		assert_int_equal(counters.fragments_untied, 0);
		if (!strict || cut->passed != 0) {
			assert_int_equal(scene->n_reports, 1);
			assert_int_equal(scene->reports[0].record.window_known != 0, cut->counts);
		} else {
			assert_int_equal(scene->n_reports, 0);
		}
		scene_destroy(scene);
	}
}

/* Neither a RST nor data beyond the window gets by in pieces, when whole it does not. */
static void strict_is_not_passed_in_pieces(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cuts) * 4; i++) {
		const struct cut *cut = &cuts[i / 4];
		bool last_first = i & 1, reset = i & 2;
		struct scene *scene = scene_begin(&(struct scene_options){.tcp_strict = true});
		struct path_counters counters;
		unsigned n = 0;

		while (n < 4 && cut->cuts[n] != 0)
			n++;
		scene_handshake(scene);
		send_cut(scene, cut, false, last_first, reset ? TCP_RST : TCP_ACK, 100 + 500000000);
		counters = scene_counters(scene);
		assert_int_equal(counters.out, 3);
		assert_int_equal(counters.dropped[DROP_TCP_HEADER], cut->counts ? 0 : n);
		assert_int_equal(counters.dropped[DROP_TCP_WINDOW], cut->counts ? n : 0);
		assert_int_equal(scene_flow_counters(scene).tcp_odd, cut->counts);
		scene_tcp(scene, true, TCP_ACK, 500, 100, 10);
		assert_int_equal(scene_counters(scene).out, 4);
		scene_end(scene);
		assert_int_equal(scene->n_reports, 1);
		assert_int_equal(scene->reports[0].reason, FLOW_END_SHUTDOWN);
		assert_int_equal(scene->reports[0].record.state, FLOW_ESTABLISHED);
		scene_destroy(scene);
	}
}

/* A first fragment that fits brings its datagram back to life, also under a number whose first was dropped. */
static void a_new_first_fragment_is_judged_anew(void **state)
{
	const struct cut *in_two = &cuts[1], *tiny = &cuts[5];

	(void)state;
	assert_string_equal(in_two->name, "in two");
	assert_string_equal(tiny->name, "after 8");
	struct scene *scene = scene_begin(&(struct scene_options){.tcp_strict = true});

	scene_handshake(scene);
	send_cut(scene, in_two, false, false, TCP_ACK, 500000000);
	assert_int_equal(scene_counters(scene).dropped[DROP_TCP_WINDOW], 2);
	send_cut(scene, in_two, false, false, TCP_ACK, 100);
	assert_int_equal(scene_counters(scene).out, 5);
	send_cut(scene, tiny, false, false, TCP_ACK, 144);
	assert_int_equal(scene_counters(scene).dropped[DROP_TCP_HEADER], 2);
	send_cut(scene, in_two, false, false, TCP_ACK, 144);
	assert_int_equal(scene_counters(scene).out, 7);
	/* the windows are learned anew, and the number is free again */
	scene_tcp(scene, false, TCP_ACK, 188, 500, 0);
	scene_tcp(scene, true, TCP_ACK, 500, 188, 0);
	scene_wait(scene, 3);
	send_cut(scene, in_two, false, true, TCP_ACK, 500000000);
	assert_int_equal(scene_counters(scene).out, 9);
	assert_int_equal(scene_counters(scene).dropped[DROP_TCP_WINDOW], 4);
	scene_end(scene);
	scene_destroy(scene);
}

/* Offset 8 would write over the flags of a header that is whole; with any first, or none, tied or not. */
static void offset_8_is_dropped_by_strict(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		bool v6 = i & 1, strict = i & 2, separate = i & 4, udp = i & 8;
		struct scene *scene = scene_begin(
			&(struct scene_options){.tcp_strict = strict, .separate = separate});
		struct slice slice = {.v6 = v6,
			.proto = udp ? IPPROTO_UDP : IPPROTO_TCP,
			.id = 5,
			.from = 0,
			.to = 32,
			.all = 64};
		uint8_t upper[64];

		segment(upper, TCP_ACK, 100, 20);
		send_slice(scene, slice, upper);
		slice.from = 8;
		slice.to = 32;
		send_slice(scene, slice, upper);
		slice.from = 32;
		slice.to = 64;
		send_slice(scene, slice, upper);
		slice.id = 6; /* without a first */
		slice.from = 8;
		send_slice(scene, slice, upper);
		scene_end(scene);
		assert_int_equal(
			scene_counters(scene).dropped[DROP_TCP_HEADER], strict && !udp ? 2 : 0);
		assert_int_equal(scene_counters(scene).out, strict && !udp ? 2 : 4);
		scene_destroy(scene);
	}
}

/* IPv6: headers before TCP that the first fragment does not hold hide it (RFC 7112), whatever a later one names. */
static void strict_wants_all_headers_in_the_first_fragment(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool strict = i & 1, cut_short = i & 2;
		struct scene *scene = scene_begin(&(struct scene_options){.tcp_strict = strict});
		struct frame frame;
		uint8_t upper[64];

		segment(upper, TCP_ACK, 100, 20);
		frame_start(&frame);
		frame_ipv6(&frame, "2001:db8::1", "2001:db8::2", 44);
		frame_ipv6_fragment(&frame, 60, 9, 0, true);
		if (cut_short)
			frame_extension(&frame, 60, 0, 8); /* and another one follows */
		else
			frame_extension(&frame, IPPROTO_TCP, 1, 16);
		if (!cut_short)
			memcpy(frame_add(&frame, 24), upper, 24);
		frame_finish(&frame);
		scene_send(scene, &frame);
		frame_start(&frame);
		frame_ipv6(&frame, "2001:db8::1", "2001:db8::2", 44);
		frame_ipv6_fragment(&frame, 60, 9, cut_short ? 8 : 40, false);
		frame_fill(&frame, 40);
		frame_finish(&frame);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(scene_counters(scene).dropped[DROP_TCP_HEADER],
			strict && cut_short ? 2 : 0);
		scene_destroy(scene);
	}
}

/* TCP without its header is counted on its flow and moves nothing: two of them, one each way, are no conversation. */
static void no_header_moves_no_state(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		bool v6 = i & 1, tied = i & 2, whole = i & 4;
		struct scene *scene = scene_begin(&(struct scene_options){.separate = !tied});
		uint8_t upper[64];

		segment(upper, TCP_ACK, 100, 20);
		for (unsigned n = 0; n < 6; n++) {
			struct slice slice = {.v6 = v6,
				.back = n % 2 != 0,
				.proto = IPPROTO_TCP,
				.id = n,
				.from = 0,
				.to = 8,
				.all = whole ? 8 : 64};

			if (n % 2 != 0) {
				put_be16(upper, 80);
				put_be16(upper + 2, 1025);
			} else {
				put_be16(upper, 1025);
				put_be16(upper + 2, 80);
			}
			send_slice(scene, slice, upper);
		}
		scene_wait(scene, 61);
		send_later(scene, false, 3); /* anything */
		scene_end(scene);

		const struct flow_report *report = scene_report(scene, IPPROTO_TCP, 1025, 80);

		assert_int_equal(report->record.state, FLOW_PICKED_UP);
		assert_int_equal(report->reason, FLOW_END_IDLE);
		assert_int_equal(flow_packets(&report->record, 0), 3);
		assert_int_equal(flow_packets(&report->record, 1), 3);
		scene_destroy(scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_begin_with_the_first_that_came),
		cmocka_unit_test(untied_ones_keep_their_times),
		cmocka_unit_test(a_late_one_does_not_turn_back_the_record),
		cmocka_unit_test(who_came_first_is_the_initiator),
		cmocka_unit_test(a_wait_ends_with_its_own_time),
		cmocka_unit_test(a_turn_lets_go_no_more_than_its_pace),
		cmocka_unit_test(a_full_table_makes_no_turn_longer),
		cmocka_unit_test(a_datagram_has_some_places_only),
		cmocka_unit_test(a_flood_costs_the_oldest),
		cmocka_unit_test(a_number_used_again_is_another_datagram),
		cmocka_unit_test(strict_sees_the_whole_header_or_drops),
		cmocka_unit_test(strict_is_not_passed_in_pieces),
		cmocka_unit_test(a_new_first_fragment_is_judged_anew),
		cmocka_unit_test(offset_8_is_dropped_by_strict),
		cmocka_unit_test(strict_wants_all_headers_in_the_first_fragment),
		cmocka_unit_test(no_header_moves_no_state),
	};

	return cmocka_run_group_tests(tests, scene_environment, NULL);
}
