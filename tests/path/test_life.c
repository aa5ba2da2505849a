/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of flows in scenes: what their reports say, when they end, and who has to go. */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "dataplane/poll.h"
#include "offload/state.h"

static void udp(struct frame *frame, const char *src, const char *dst, unsigned port)
{
	frame_start(frame);
	frame_ipv4(frame, src, dst, IPPROTO_UDP);
	frame_udp(frame, port, port);
	frame_finish(frame);
}

/* About scene_tcp()'s connection. */
static void unreachable(struct frame *frame)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.9", "10.0.0.1", IPPROTO_ICMP);
	frame_icmp(frame, 3, 1);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_TCP);
	frame_tcp(frame, &(struct frame_tcp){.src_port = 1025, .dst_port = 80});
	frame_finish(frame);
}

static void an_active_report_tells_of_its_own_time(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.active_s = 10});
	struct frame frame;

	scene_handshake(scene);
	unreachable(&frame);
	scene_send(scene, &frame);
	scene_wait(scene, 15);
	scene_tcp(scene, true, TCP_ACK, 500, 100, 0);
	scene_end(scene);

	const struct flow_record *first = NULL;
	const struct flow_record *second = NULL;

	for (unsigned i = 0; i < scene->n_reports; i++) {
		const struct flow_record *record = &scene->reports[i].record;

		if (record->key.proto != IPPROTO_TCP)
			continue;
		if (scene->reports[i].reason == FLOW_END_ACTIVE)
			first = record;
		else
			second = record;
	}
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(first->icmp_errors, 1);
	assert_int_equal(first->end[first->initiator].tcp_flags, TCP_SYN | TCP_ACK);
	assert_int_equal(second->icmp_errors, 0);
	assert_int_equal(second->end[second->initiator].tcp_flags, 0);
	assert_int_equal(second->end[!second->initiator].tcp_flags, TCP_ACK);
	scene_destroy(scene);
}

/* Packets each way and silence, whatever came before and whoever begins: the record after a report begins with its packet. */
static void a_record_begins_with_the_first_packet_after_a_report(void **state)
{
	(void)state;
	for (unsigned tcp = 0; tcp < 2; tcp++)
		for (unsigned back = 0; back < 2; back++) {
			struct scene *scene = scene_begin(&(struct scene_options){.active_s = 10});
			struct frame frame;

			if (tcp)
				scene_handshake(scene);
			else
				udp(&frame, "10.0.0.1", "10.0.0.2", 7);
			if (!tcp)
				scene_send(scene, &frame);
			scene_wait(scene, 14.5);
			if (!tcp)
				udp(&frame, back ? "10.0.0.2" : "10.0.0.1",
					back ? "10.0.0.1" : "10.0.0.2", 7);
			for (unsigned i = 0; i < 3; i++) {
				if (tcp)
					scene_tcp(scene, back, TCP_ACK, back ? 500 : 100,
						back ? 100 : 500, 0);
				else
					scene_send(scene, &frame);
				scene_wait(scene, 0.25);
			}
			scene_end(scene);
			assert_int_equal(scene->n_reports, 2);
			assert_int_equal(scene->reports[0].reason, FLOW_END_ACTIVE);
			assert_int_equal(scene->reports[0].record.start_us, 0);
			const struct flow_report *second = &scene->reports[1];

			assert_int_equal(second->record.start_us, 14500000);
			assert_int_equal(second->end_us, 15000000);
			assert_int_equal(
				flow_packets(&second->record, 0) + flow_packets(&second->record, 1),
				3);
			/* bytes of the one who was silent are none, too */
			const unsigned silent = flow_packets(&second->record, 0) == 0 ? 0 : 1;

			assert_int_equal(flow_packets(&second->record, silent), 0);
			assert_int_equal(flow_bytes(&second->record, silent), 0);
			assert_true(flow_bytes(&second->record, !silent) < 1000);
			scene_destroy(scene);
		}
}

static void silence_makes_no_active_reports(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.active_s = 2});
	struct frame frame;

	udp(&frame, "10.0.0.1", "10.0.0.2", 7);
	scene_send(scene, &frame);
	scene_wait(scene, 25);
	scene_end(scene);
	assert_int_equal(scene->n_reports, 2); /* one with its packet, one for its end */
	const struct flow_report *end = &scene->reports[1];

	assert_int_equal(flow_packets(&end->record, 0) + flow_packets(&end->record, 1), 0);
	assert_int_equal(flow_bytes(&end->record, 0) + flow_bytes(&end->record, 1), 0);
	assert_int_equal(end->end_us, end->record.start_us);
	scene_destroy(scene);
}

static void a_state_that_ends_earlier_is_not_waited_for(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){0});
	struct frame frame;

	scene_handshake(scene);
	scene_tcp(scene, false, TCP_FIN | TCP_ACK, 100, 500, 0); /* closing: 240 s */
	scene_tcp(scene, true, TCP_RST | TCP_ACK, 500, 101, 0);	 /* reset: 10 s */
	scene_wait(scene, 10);
	udp(&frame, "10.9.9.9", "10.9.9.8", 7);
	scene_send(scene, &frame);
	assert_int_equal(scene->n_reports, 1);
	assert_int_equal(scene->reports[0].reason, FLOW_END_RST);
	scene_end(scene);
	scene_destroy(scene);
}

static struct flow_record *record_of(struct scene *scene, unsigned port)
{
	const struct flow_table *table = &scene->lcore[0].worker.shard->table;
	uint32_t position = flow_table_next(table, 0);

	while (position != FLOW_NONE &&
		flow_table_record(table, position)->key.port[0] != rte_cpu_to_be_16((uint16_t)port))
		position = flow_table_next(table, position + 1);
	assert_int_not_equal(position, FLOW_NONE);
	return flow_table_record(table, position);
}

static void who_is_held_by_a_nic_goes_last(void **state)
{
	(void)state;
	struct scene *scene = scene_begin(&(struct scene_options){.capacity = 4});
	struct frame frame;

	/* four open flows, the first of them the idlest */
	for (unsigned port = 1; port <= 4; port++) {
		udp(&frame, "10.0.0.1", "10.0.0.2", port);
		scene_send(scene, &frame);
		udp(&frame, "10.0.0.2", "10.0.0.1", port);
		scene_send(scene, &frame);
		scene_wait(scene, 1);
	}
	record_of(scene, 1)->offload = OFFLOAD_LEAVING << OFFLOAD_STATE_BITS;
	/* no NIC has a rule of one that was refused */
	record_of(scene, 2)->offload = OFFLOAD_REFUSED | OFFLOAD_LOST_SLOT;
	for (unsigned port = 11; port <= 14; port++) {
		udp(&frame, "10.0.0.1", "10.0.0.2", port);
		scene_send(scene, &frame);
		udp(&frame, "10.0.0.2", "10.0.0.1", port);
		scene_send(scene, &frame);
		scene_wait(scene, 1);
	}
	assert_int_equal(scene->n_reports, 4);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			scene->reports[i].record.key.port[0], rte_cpu_to_be_16((uint16_t)(2 + i)));
	assert_int_equal(offload_state(record_of(scene, 1), 1), OFFLOAD_LEAVING);
	record_of(scene, 1)->offload = 0;
	scene_end(scene);
	scene_destroy(scene);
}

/* The note may reach a shard that has seen nothing for long: its flows have aged all the same. */
static void an_error_does_not_reach_a_flow_that_is_over(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct scene *scene = scene_begin(&(struct scene_options){.n_shards = 4});
		struct frame frame;

		scene_tcp(scene, false, TCP_SYN, 99, 0, 0);
		scene_wait(scene, 100);
		unreachable(&frame);
		scene_send(scene, &frame);
		scene_end(scene);
		assert_int_equal(scene_counters(scene).icmp_untied, 1);
		assert_int_equal(scene_report(scene, IPPROTO_TCP, 1025, 80)->record.icmp_errors, 0);
		scene_destroy(scene);
	}
}

static void fragment(struct frame *frame, unsigned id, bool first)
{
	frame_start(frame);
	frame_ipv4(frame, "10.0.0.1", "10.0.0.2", IPPROTO_UDP);
	frame_ipv4_fragment(frame, id, first ? 0 : 16, first);
	frame_udp(frame, 1000, 53);
	frame_fill(frame, 8);
	frame_finish(frame);
}

static void a_datagram_that_cannot_wait_is_not_remembered(void **state)
{
	(void)state;
	struct scene *scene =
		scene_begin(&(struct scene_options){.max_datagrams = 2, .max_held = 1});
	struct frame frame;

	for (unsigned id = 1; id <= 5; id++) {
		fragment(&frame, id, false); /* each takes the place of the one before */
		scene_send(scene, &frame);
	}
	assert_int_equal(scene_counters(scene).fragments_untied, 4);
	fragment(&frame, 9, true);
	scene_send(scene, &frame);
	fragment(&frame, 9, false);
	scene_send(scene, &frame);
	assert_int_equal(scene_counters(scene).fragments_untied, 4);
	scene_end(scene);
	scene_destroy(scene);
}

/* After a turn that took all there was the next one is put off for 8 us, which is idle time; else it is not. */
static void few_packets_are_gathered(void **state)
{
	struct lcore lcore = {.more_wait = true};
	const uint64_t begin = rte_rdtsc(), least = rte_get_tsc_hz() * 8 / 1000000;
	uint64_t tsc = begin;

	(void)state;
	lcore_gather(&lcore, &tsc);
	assert_int_equal(tsc, begin);
	assert_int_equal(lcore.idle_cycles, 0);
	lcore.more_wait = false;
	lcore_gather(&lcore, &tsc);
	assert_true(tsc - begin >= least);
	assert_int_equal(lcore.idle_cycles, tsc - begin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_active_report_tells_of_its_own_time),
		cmocka_unit_test(a_record_begins_with_the_first_packet_after_a_report),
		cmocka_unit_test(silence_makes_no_active_reports),
		cmocka_unit_test(a_state_that_ends_earlier_is_not_waited_for),
		cmocka_unit_test(who_is_held_by_a_nic_goes_last),
		cmocka_unit_test(an_error_does_not_reach_a_flow_that_is_over),
		cmocka_unit_test(a_datagram_that_cannot_wait_is_not_remembered),
		cmocka_unit_test(few_packets_are_gathered),
	};

	return cmocka_run_group_tests(tests, scene_environment, NULL);
}
