/* SPDX-License-Identifier: BSD-3-Clause */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>

static void udp(struct frame *frame, const char *src, const char *dst, unsigned src_port,
	unsigned dst_port, size_t data)
{
	frame_start(frame);
	frame_ipv4(frame, src, dst, IPPROTO_UDP);
	frame_udp(frame, src_port, dst_port);
	frame_fill(frame, data);
	frame_finish(frame);
}

/* The first fragment of a datagram from port 1000 to 53, 8 bytes of data behind the UDP header. */
static void first_fragment(struct frame *frame, unsigned id)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_ipv4_fragment(frame, id, 0, true);
	frame_udp(frame, 1000, 53);
	frame_fill(frame, 8);
	frame_finish(frame);
}

static void later_fragment(struct frame *frame, unsigned id, unsigned offset, size_t data)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_ipv4_fragment(frame, id, offset, false);
	frame_fill(frame, data);
	frame_finish(frame);
}

static void both_directions_are_one_flow(void **state)
{
	(void)state;
	for (unsigned shards = 1; shards <= SCENE_MAX_SHARDS; shards++) {
		struct scene *scene = scene_begin(&(struct scene_options){.n_shards = shards});
		struct frame there, back;

		udp(&there, "10.0.0.9", "10.0.0.2", 4000, 53, 20);
		udp(&back, "10.0.0.2", "10.0.0.9", 53, 4000, 100);
		scene_send(scene, &there);
		scene_wait(scene, 0.25);
		scene_send(scene, &back);
		scene_send(scene, &back);
		scene_wait(scene, 1);
		scene_end(scene);

		const struct flow_report *report = scene_report(scene, IPPROTO_UDP, 4000, 53);
		const struct flow_record *record = &report->record;
		unsigned initiator = record->initiator;

		assert_int_equal(scene->n_reports, 1);
		assert_int_equal(rte_be_to_cpu_16(record->key.port[initiator]), 4000);
		assert_int_equal(flow_packets(record, initiator), 1);
		assert_int_equal(flow_packets(record, !initiator), 2);
		assert_int_equal(flow_bytes(record, initiator), there.length);
		assert_int_equal(flow_bytes(record, !initiator), 2 * back.length);
		assert_int_equal(record->start_us, 0);
		assert_int_equal(report->end_us, 250000);
		assert_int_equal(report->reason, FLOW_END_SHUTDOWN);
		assert_int_equal(report->run, 3);
		assert_int_equal(report->origin_us, UINT64_C(1700000000000000));
		assert_int_equal(scene->n_out, 3);
		scene_destroy(scene);
	}
}

static void what_is_not_ip_is_carried_and_what_is_broken_dropped(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame arp, cut, tiny;

	frame_start(&arp);
	frame_type(&arp, 0x0806);
	frame_fill(&arp, 28);
	udp(&cut, "10.0.0.1", "10.0.0.2", 1, 2, 0);
	cut.length = 14 + 12;
	frame_start(&tiny);
	tiny.length = 9;
	scene_send(scene, &arp);
	scene_send(scene, &cut);
	scene_send(scene, &tiny);
	scene_end(scene);

	struct path_counters counters = scene_counters(scene);

	assert_int_equal(counters.received, 3);
	assert_int_equal(counters.received_bytes, arp.length + 14 + 12 + 9);
	assert_int_equal(counters.non_ip, 1);
	assert_int_equal(counters.dropped[DROP_MALFORMED], 2);
	assert_int_equal(counters.out, 1);
	assert_int_equal(counters.out_bytes, arp.length);
	assert_int_equal(scene->n_reports, 0);
	scene_destroy(scene);
}

static void a_burst_keeps_its_order(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.capacity = 40});
	struct frame frames[PARSER_BURST];
	const struct frame *burst[PARSER_BURST];

	/* known, new and not IP by turns; more flows than fit, several packets each */
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < PARSER_BURST; i++) {
			burst[i] = &frames[i];
			udp(&frames[i], "10.0.0.1", "10.0.0.2", 1 + (i * 7 + round * 31) % 50, 9,
				i);
			if (i % 9 == 8)
				put_be16(&frames[i].bytes[12], 0x88b5);
		}
		scene->n_out = 0;
		scene_send_burst(scene, burst, PARSER_BURST);
		assert_int_equal(scene->n_out, PARSER_BURST);
		for (unsigned i = 0; i < PARSER_BURST; i++)
			assert_int_equal(scene->out_lengths[i], frames[i].length);
	}
	scene_end(scene);
	assert_true(scene_flow_counters(scene).ended[FLOW_END_EVICTED] > 0);
	scene_destroy(scene);
}

static void fragments_follow_in_any_order(void **state)
{
	(void)state;
	/* 0 is the first fragment, the others are later ones; every order of four */
	static const unsigned orders[][4] = {
		{0, 1, 2, 3}, {1, 0, 2, 3}, {3, 2, 1, 0}, {2, 3, 0, 1}};

	for (unsigned shards = 1; shards <= SCENE_MAX_SHARDS; shards += 3) {
		for (unsigned i = 0; i < 4; i++) {
			struct scene *scene =
				scene_begin(&(struct scene_options){.n_shards = shards});
			struct frame frame;
			size_t bytes = 0;

			for (unsigned j = 0; j < 4; j++) {
				if (orders[i][j] == 0)
					first_fragment(&frame, 77);
				else
					later_fragment(&frame, 77, orders[i][j] * 16, 16);
				bytes += frame.length;
				scene_send(scene, &frame);
				scene_wait(scene, 1);
			}
			assert_int_equal(parser_held(scene->parser), 0);
			scene_end(scene);

			const struct flow_report *report =
				scene_report(scene, IPPROTO_UDP, 1000, 53);

			assert_int_equal(scene->n_reports, 1);
			assert_int_equal(
				flow_packets(&report->record, report->record.initiator), 4);
			assert_int_equal(
				flow_bytes(&report->record, report->record.initiator), bytes);
			assert_int_equal(scene_counters(scene).fragments_untied, 0);
			scene_destroy(scene);
		}
	}
}

static void a_fragment_waits_sixty_seconds(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame first, later, other;

	first_fragment(&first, 5);
	later_fragment(&later, 5, 16, 16);
	udp(&other, "10.9.9.9", "10.9.9.8", 7, 7, 0);
	scene_wait(scene, 0.5);
	scene_send(scene, &later);
	scene_wait(scene, 59.9);
	scene_send(scene, &other);
	assert_int_equal(parser_held(scene->parser), 1);
	scene_wait(scene, 0.1);
	scene_send(scene, &other);
	assert_int_equal(parser_held(scene->parser), 0);
	assert_int_equal(scene_counters(scene).fragments_untied, 1);
	scene_send(scene, &first);
	scene_end(scene);
	assert_int_equal(flow_packets(&scene_report(scene, IPPROTO_UDP, 0, 0)->record, 0), 1);
	assert_int_equal(flow_packets(&scene_report(scene, IPPROTO_UDP, 1000, 53)->record, 0), 1);
	scene_destroy(scene);
}

static void who_has_waited_longest_makes_room(void **state)
{
	(void)state;
	struct scene *scene =
		scene_begin(&(struct scene_options){.max_datagrams = 10, .max_held = 4});
	struct frame frame;

	/* four may wait, of which three in one datagram */
	for (unsigned i = 0; i < 3; i++) {
		later_fragment(&frame, 1, 16 + 16 * i, 16);
		scene_send(scene, &frame);
	}
	for (unsigned id = 2; id < 20; id++) {
		later_fragment(&frame, id, 16, 16);
		scene_send(scene, &frame);
	}
	assert_int_equal(parser_held(scene->parser), 4);
	assert_int_equal(scene_counters(scene).fragments_untied, 17);
	first_fragment(&frame, 1); /* too late */
	scene_send(scene, &frame);
	assert_int_equal(parser_held(scene->parser), 4);
	first_fragment(&frame, 16); /* in time */
	scene_send(scene, &frame);
	assert_int_equal(parser_held(scene->parser), 3);
	scene_end(scene);
	assert_int_equal(scene_counters(scene).fragments_untied, 20);
	scene_destroy(scene);
}

static void what_waits_is_bounded_in_buffers(void **state)
{
	(void)state;
	struct scene *scene =
		scene_begin(&(struct scene_options){.max_held = 4, .max_segment = 20});
	struct frame frame;

	later_fragment(&frame, 1, 16, 16); /* 50 bytes: three buffers of the four */
	assert_int_equal(frame.length, 50);
	scene_send(scene, &frame);
	scene_send(scene, &frame);
	assert_int_equal(parser_held(scene->parser), 1);
	assert_int_equal(scene_counters(scene).fragments_untied, 1);
	first_fragment(&frame, 1);
	scene_send(scene, &frame);
	assert_int_equal(parser_held(scene->parser), 0);
	later_fragment(&frame, 2, 16, 16); /* and room again */
	scene_send(scene, &frame);
	assert_int_equal(parser_held(scene->parser), 1);
	scene_end(scene);
	scene_destroy(scene);
}

static void separate_fragments_are_flows_of_their_own(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.separate = true});
	struct frame first, later;

	first_fragment(&first, 5);
	later_fragment(&later, 5, 16, 16);
	scene_send(scene, &first);
	scene_send(scene, &later);
	scene_end(scene);
	assert_int_equal(flow_packets(&scene_report(scene, IPPROTO_UDP, 0, 0)->record, 0), 1);
	assert_int_equal(flow_packets(&scene_report(scene, IPPROTO_UDP, 1000, 53)->record, 0), 1);
	assert_int_equal(scene_counters(scene).fragments_untied, 0);
	scene_destroy(scene);
}

/* "Port unreachable" from 10.0.0.2 about a UDP datagram from 10.0.0.1:1000 to port 53. */
static void unreachable(struct frame *frame, bool later)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.2", "10.0.0.1", IPPROTO_ICMP);
	frame_icmp(frame, 3, 3);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	if (later)
		frame_ipv4_fragment(frame, 5, 16, false);
	frame_udp(frame, later ? 11 : 1000, later ? 12 : 53);
	frame_finish(frame);
}

static void icmp_errors_reach_the_flow_they_quote(void **state)
{
	(void)state;
	for (unsigned shards = 1; shards <= SCENE_MAX_SHARDS; shards++) {
		struct scene *scene = scene_begin(&(struct scene_options){.n_shards = shards});
		struct frame frame;

		unreachable(&frame, false);
		scene_send(scene, &frame); /* too early: nothing to tie it to */
		first_fragment(&frame, 5);
		scene_send(scene, &frame);
		for (unsigned i = 0; i < 300; i++) {
			unreachable(&frame, i % 2 != 0);
			scene_send(scene, &frame);
		}
		scene_end(scene);

		const struct flow_report *report = scene_report(scene, IPPROTO_UDP, 1000, 53);

		assert_int_equal(report->record.icmp_errors, UINT8_MAX);
		assert_int_equal(flow_packets(&report->record, report->record.initiator), 1);
		report = scene_report(scene, IPPROTO_ICMP, 0, 0);
		assert_int_equal(flow_packets(&report->record, report->record.initiator), 301);
		assert_int_equal(report->record.icmp_errors, 0);
		assert_int_equal(scene_counters(scene).icmp_untied, 1);
		scene_destroy(scene);
	}
}

static void an_error_may_come_in_fragments(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame frame;

	udp(&frame, "10.0.0.1", "10.0.0.2", 1000, 53, 0);
	scene_send(scene, &frame);
	unreachable(&frame, false);
	put_be16(&frame.bytes[frame.ip[0] + 4], 99);
	put_be16(&frame.bytes[frame.ip[0] + 6], 0x2000); /* the first of several */
	scene_send(scene, &frame);
	scene_end(scene);
	assert_int_equal(scene_report(scene, IPPROTO_UDP, 1000, 53)->record.icmp_errors, 1);
	assert_int_equal(scene_counters(scene).icmp_untied, 0);
	scene_destroy(scene);
}

/* An error about a packet of 10.0.0.1:1025 to 10.0.0.2:80, or back; to its sender, or to a stranger. */
static void about(struct frame *frame, bool v6, uint8_t proto, bool back, bool stranger,
	uint32_t seq, size_t quoted)
{
	const char *ends[2][2] = {{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}};
	const char *src = ends[v6][back], *dst = ends[v6][!back];
	const char *to = stranger ? v6 ? "2001:db8::77" : "198.51.100.77" : src;
	const struct frame_tcp header = {
		.src_port = back ? 80 : 1025, .dst_port = back ? 1025 : 80, .seq = seq};
	size_t begin;

	frame_start(frame);
	if (v6)
		frame_ipv6(frame, "2001:db8::66", to, IPPROTO_ICMPV6);
	else
		frame_ipv4(frame, "203.0.113.66", to, IPPROTO_ICMP);
	frame_icmp(frame, v6 ? 1 : 3, 3);
	if (v6)
		frame_ipv6(frame, src, dst, proto);
	else
		frame_ipv4(frame, src, dst, proto);
	begin = frame->length;
	if (proto == IPPROTO_TCP)
		frame_tcp(frame, &header);
	else
		frame_udp(frame, header.src_port, header.dst_port);
	frame->length = begin + quoted;
	frame_finish(frame);
}

/* A stranger's error is nobody's: not about UDP, and not about TCP whatever number it quotes. */
static void an_error_goes_to_who_sent_what_it_quotes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		bool v6 = i & 1, back = i & 2, stranger = i & 4, tcp = i & 8;
		struct scene *scene = scene_begin(&(struct scene_options){0});
		struct frame frame;

		if (tcp && !v6) {
			scene_handshake(scene);
		} else {
			frame_start(&frame);
			if (v6)
				frame_ipv6(&frame, "2001:db8::1", "2001:db8::2", IPPROTO_UDP);
			else
				frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
			frame_udp(&frame, 1025, 80);
			frame_finish(&frame);
			scene_send(scene, &frame);
			tcp = false;
		}
		about(&frame, v6, tcp ? IPPROTO_TCP : IPPROTO_UDP, back, stranger, back ? 499 : 99,
			8);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(scene_report(scene, tcp ? IPPROTO_TCP : IPPROTO_UDP, 1025, 80)
					 ->record.icmp_errors,
			!stranger);
		assert_int_equal(scene_counters(scene).icmp_untied, stranger);
		scene_destroy(scene);
	}
}

/* Of TCP the quoted number was sent, and not long ago: who cannot see it has to guess it. */
static void an_error_quotes_a_number_that_was_sent(void **state)
{
	static const struct {
		unsigned segments; /* of the conversation below that came before */
		bool back;
		uint32_t seq;
		size_t quoted;
		bool counts;
	} rows[] = {
		{1, false, 99, 8, true}, /* the SYN */
		{1, false, 99, 20, true},
		{1, false, 99, 7, false}, /* RFC 792: 8 bytes */
		{1, false, 99, 4, false},
		{1, false, 101, 8, false},
		{1, false, 99 + 0x80000000, 8, false},
		{1, false, 99 - 70000, 8, false},
		{1, true, 0, 8, false}, /* that end has sent nothing */
		{1, true, 499, 8, false},
		{2, true, 499, 8, true},
		{2, true, 501, 8, false},
		{2, true, 499 - 70000, 8, false},
		{3, false, 100, 8, true},
		{3, false, 101, 8, false},
		{4, false, 100, 8, true}, /* in flight */
		{4, false, 1099, 8, true},
		{4, false, 1100, 8, true},
		{4, false, 1101, 8, false},
		{4, false, 100 - 70000, 8, false},
		{4, false, 100 + 500000000, 8, false},
		{4, true, 500, 8, true},
		{4, true, 501, 8, false},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct scene *scene = scene_begin(&(struct scene_options){0});
		struct frame frame;

		print_message("row %zu\n", i);
		scene_tcp(scene, false, TCP_SYN, 99, 0, 0);
		if (rows[i].segments > 1)
			scene_tcp(scene, true, TCP_SYN | TCP_ACK, 499, 100, 0);
		if (rows[i].segments > 2)
			scene_tcp(scene, false, TCP_ACK, 100, 500, 0);
		if (rows[i].segments > 3)
			scene_tcp(scene, false, TCP_ACK, 100, 500, 1000);
		about(&frame, false, IPPROTO_TCP, rows[i].back, false, rows[i].seq, rows[i].quoted);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(scene_report(scene, IPPROTO_TCP, 1025, 80)->record.icmp_errors,
			rows[i].counts);
		assert_int_equal(scene_counters(scene).icmp_untied, !rows[i].counts);
		scene_destroy(scene);
	}
}

/* Who has cut, or lost, the beginning of a conversation believes what fits what was seen. */
static void an_error_of_a_flow_met_in_the_middle(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool old = i & 1, both = i & 2;
		struct scene *scene = scene_begin(&(struct scene_options){0});
		struct frame frame;

		scene_tcp(scene, false, TCP_ACK, 1000000, 5000000, 100);
		if (both)
			scene_tcp(scene, true, TCP_ACK, 5000000, 1000100, 0);
		about(&frame, false, IPPROTO_TCP, false, false, old ? 900000 : 1000000, 8);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(
			scene_report(scene, IPPROTO_TCP, 1025, 80)->record.icmp_errors, !old);
		scene_destroy(scene);
	}
}

static void the_window_counts_and_drops_only_when_strict(void **state)
{
	(void)state;
	for (unsigned strict = 0; strict < 2; strict++) {
		struct scene *scene =
			scene_begin(&(struct scene_options){.tcp_strict = strict != 0});

		scene_handshake(scene);
		scene_tcp(scene, true, TCP_ACK, 500000000, 100, 10);
		scene_end(scene);
		assert_int_equal(scene_flow_counters(scene).tcp_odd, 1);
		assert_int_equal(scene_counters(scene).dropped[DROP_TCP_WINDOW], strict);
		assert_int_equal(scene_counters(scene).out, 4 - strict);
		scene_destroy(scene);
	}
}

static void a_closed_connection_ends_and_its_ports_serve_again(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame frame;

	scene_handshake(scene);
	scene_tcp(scene, false, TCP_FIN | TCP_ACK, 100, 500, 0);
	scene_tcp(scene, true, TCP_FIN | TCP_ACK, 500, 101, 0);
	scene_tcp(scene, false, TCP_ACK, 101, 501, 0);
	assert_int_equal(scene->n_reports, 0); /* stragglers may come */
	scene_wait(scene, 1);
	scene_tcp(scene, false, TCP_SYN, 7000, 0, 0);
	assert_int_equal(scene->n_reports, 1);
	assert_int_equal(scene->reports[0].reason, FLOW_END_FIN);
	scene_wait(scene, 61);
	udp(&frame, "10.9.9.9", "10.9.9.8", 7, 7, 0);
	scene_send(scene, &frame);
	assert_int_equal(scene->n_reports, 2);
	assert_int_equal(scene->reports[1].reason, FLOW_END_IDLE);
	scene_end(scene);
	scene_destroy(scene);
}

static void long_flows_are_reported_now_and_then(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.active_s = 10});
	uint64_t packets = 0;
	struct frame frame;

	for (unsigned i = 0; i < 35; i++) {
		udp(&frame, "10.0.0.1", "10.0.0.2", 1000, 53, 0);
		scene_send(scene, &frame);
		scene_wait(scene, 1);
	}
	scene_end(scene);
	assert_int_equal(scene->n_reports, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct flow_report *report = &scene->reports[i];

		assert_int_equal(report->reason, i < 3 ? FLOW_END_ACTIVE : FLOW_END_SHUTDOWN);
		assert_int_equal(report->record.start_us, i * UINT64_C(10000000));
		packets += flow_packets(&report->record, report->record.initiator);
	}
	assert_int_equal(packets, 35);
	scene_destroy(scene);
}

static void counters_carry_past_32_bits(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame frame;

	udp(&frame, "10.0.0.1", "10.0.0.2", 1000, 53, 58);
	assert_int_equal(frame.length, 100);
	scene_send(scene, &frame);

	/* as if it had come more often, in the record and in the sums alike */
	struct flow_shard *shard = scene->lcore[0].worker.shard;
	struct flow_record *record =
		flow_table_record(&shard->table, flow_table_next(&shard->table, 0));

	flow_set_counts(record, 0, UINT32_MAX - 1, UINT32_MAX - 150);
	shard->counters.packets += UINT32_MAX - 2;
	shard->counters.bytes += UINT32_MAX - 250;
	scene->lcore[0].worker.counters[0].out += UINT32_MAX - 2;
	((struct path_counters *)(uintptr_t)parser_counters(scene->parser))->received +=
		UINT32_MAX - 2;
	for (unsigned i = 0; i < 3; i++)
		scene_send(scene, &frame);
	scene_end(scene);

	const struct flow_report *report = scene_report(scene, IPPROTO_UDP, 1000, 53);

	assert_int_equal(flow_packets(&report->record, 0), UINT64_C(4294967297));
	assert_int_equal(flow_bytes(&report->record, 0), UINT64_C(4294967445));
	scene_destroy(scene);
}

static void segments_change_nothing(void **state)
{
	(void)state;
	for (uint16_t max = 1; max < 80; max = (uint16_t)(max * 2 + 1)) {
		struct scene *scene = scene_begin(&(struct scene_options){.max_segment = max});
		struct frame frame;

		scene_handshake(scene);
		first_fragment(&frame, 9);
		scene_send(scene, &frame);
		unreachable(&frame, true);
		scene_send(scene, &frame);
		later_fragment(&frame, 9, 16, 300);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(scene->n_reports, 3);
		assert_int_equal(scene_counters(scene).out, 6);
		scene_destroy(scene);
	}
}

/* What was counted of rule 1, which drops, and of rule 2. */
static struct flow_rule_count by_rule[2];

static void decide_by_packet(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	(void)context;
	(void)key;
	assert_int_equal(port[0], POLICY_NO_PORT);
	decision->verdict[0] = decision->verdict[1] = FLOW_VERDICT_BY_PACKET;
}

/* A reset is dropped, and so is a later fragment. */
static void classify(void *context, const struct rte_mbuf *packet, const struct packet_info *info,
	uint16_t port, struct flow_packet_ct ct, struct flow_packet_decision *decision)
{
	(void)ct;
	(void)context;
	(void)packet;
	(void)port;
	decision->rule = (info->flags & PACKET_TCP && info->tcp.flags & TCP_RST) ||
					 info->flags & PACKET_LATER_FRAGMENT
				 ? 1
				 : 2;
	if (decision->rule == 1)
		decision->verdict = FLOW_VERDICT_DROP;
}

static void count_by_rule(void *context, unsigned worker, uint32_t rule, uint64_t flows,
	uint64_t packets, uint64_t bytes)
{
	(void)context;
	(void)worker;
	by_rule[rule - 1].flows += flows;
	by_rule[rule - 1].packets += packets;
	by_rule[rule - 1].bytes += bytes;
}

static void udp_fragment(struct scene *scene, unsigned offset)
{
	struct frame frame;

	frame_start(&frame);
	frame_ipv4(&frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_ipv4_fragment(&frame, 7, offset, offset == 0);
	if (offset == 0)
		frame_udp(&frame, 1000, 2000);
	frame_fill(&frame, offset == 0 ? 16 : 24);
	frame_finish(&frame);
	scene_send(scene, &frame);
}

/* In a replay packets are decided by themselves as in a live engine, those that were held back with the others. */
static void test_packets_are_decided(void **state)
{
	static const struct policy_others policy = {
		.decide = decide_by_packet, .classify = classify, .count = count_by_rule};

	(void)state;
	for (unsigned n_shards = 1; n_shards <= 4; n_shards += 3) {
		struct scene *scene = scene_begin(
			&(struct scene_options){.n_shards = n_shards, .policy = &policy});

		memset(by_rule, 0, sizeof(by_rule));
		scene_handshake(scene);
		for (unsigned i = 0; i < 5; i++)
			scene_tcp(scene, true, TCP_RST | TCP_ACK, 500, 100, 0);
		udp_fragment(scene, 24);
		udp_fragment(scene, 0);
		scene_end(scene);
		assert_int_equal(scene->n_out, 4);
		assert_int_equal(by_rule[0].packets, 6);
		assert_int_equal(by_rule[1].packets, 4);
		assert_int_equal(scene_counters(scene).dropped[DROP_RULE], 6);

		const struct flow_report *report = scene_report(scene, IPPROTO_TCP, 1025, 80);

		assert_int_equal(report->record.state, FLOW_ESTABLISHED);
		assert_int_equal(report->dropped.rule_packets, 5);
		scene_destroy(scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_are_decided),
		cmocka_unit_test(both_directions_are_one_flow),
		cmocka_unit_test(what_is_not_ip_is_carried_and_what_is_broken_dropped),
		cmocka_unit_test(a_burst_keeps_its_order),
		cmocka_unit_test(fragments_follow_in_any_order),
		cmocka_unit_test(a_fragment_waits_sixty_seconds),
		cmocka_unit_test(who_has_waited_longest_makes_room),
		cmocka_unit_test(what_waits_is_bounded_in_buffers),
		cmocka_unit_test(separate_fragments_are_flows_of_their_own),
		cmocka_unit_test(icmp_errors_reach_the_flow_they_quote),
		cmocka_unit_test(an_error_may_come_in_fragments),
		cmocka_unit_test(an_error_goes_to_who_sent_what_it_quotes),
		cmocka_unit_test(an_error_quotes_a_number_that_was_sent),
		cmocka_unit_test(an_error_of_a_flow_met_in_the_middle),
		cmocka_unit_test(the_window_counts_and_drops_only_when_strict),
		cmocka_unit_test(a_closed_connection_ends_and_its_ports_serve_again),
		cmocka_unit_test(long_flows_are_reported_now_and_then),
		cmocka_unit_test(counters_carry_past_32_bits),
		cmocka_unit_test(segments_change_nothing),
	};

	return cmocka_run_group_tests(tests, scene_environment, NULL);
}
