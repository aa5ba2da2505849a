/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that nobody saw: counters past their low halves, ageing, sums, the window, and the end of connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "flow/credit.h"
#include "flow/end.h"
#include "flow/filing.h"

#define IDLE_S 10

static const struct hash_secret secret = {.word = {1, 2}};
static struct flow_report last;
static unsigned n_reports;

static void take(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	n_reports += n;
	last = reports[n - 1];
}

static struct flow_shard *begin(void)
{
	struct flow_shard_config config = {.capacity = 16, .secret = &secret, .sink = take};
	struct flow_shard *shard;

	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		config.timeouts.seconds[i] = IDLE_S;
	assert_int_equal(flow_shard_create(&shard, &config), 0);
	n_reports = 0;
	return shard;
}

static uint32_t learn(struct flow_shard *shard, uint8_t proto)
{
	struct packet_info info = {.bytes = 100};

	info.key.proto = proto;
	info.key.port[0] = RTE_BE16(1);
	info.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	info.hash = flow_key_hash(&secret, &info.key);
	return flow_shard_learn(shard, &info);
}

static void counters_are_wide(void **state)
{
	struct flow_shard *shard = begin();
	uint32_t position = learn(shard, IPPROTO_UDP);
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_credit credit = {
		.packets = UINT64_C(3000000000), .bytes = UINT64_C(3000000000) * 1000, .from = 1};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		flow_shard_credit(shard, position, &credit);
	assert_int_equal(flow_packets(record, 0), 1);
	assert_int_equal(flow_bytes(record, 0), 100);
	assert_int_equal(flow_packets(record, 1), UINT64_C(9000000000));
	assert_int_equal(flow_bytes(record, 1), UINT64_C(9000000000000));
	assert_int_equal(shard->counters.packets, UINT64_C(9000000001));
	assert_int_equal(shard->counters.bytes, UINT64_C(9000000000100));
	flow_shard_end_all(shard);
	assert_int_equal(shard->counters.reported_packets, shard->counters.packets);
	assert_int_equal(shard->counters.reported_bytes, shard->counters.bytes);
	/* what came too late for the record is in its report, and in the sums */
	flow_shard_credit_report(shard, &last, &credit);
	assert_int_equal(flow_packets(&last.record, 1), UINT64_C(12000000000));
	assert_int_equal(shard->counters.reported_packets, shard->counters.packets);
	assert_int_equal(shard->counters.reported_bytes, shard->counters.bytes);
	flow_shard_destroy(shard);
}

/* Packets one by one, where one counter is about to overflow, or the other, or both. */
static void packets_are_carried_on(void **state)
{
	const uint64_t edges[] = {
		0, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(3) << 31, UINT64_C(1) << 46};
	const uint32_t sizes[] = {1, 60, 1518, UINT16_MAX, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(edges) * RTE_DIM(edges) * RTE_DIM(sizes); i++) {
		uint64_t packets = edges[i % RTE_DIM(edges)] - 3;
		uint64_t bytes = edges[i / RTE_DIM(edges) % RTE_DIM(edges)] - 3;
		const uint32_t size = sizes[i / RTE_DIM(edges) / RTE_DIM(edges)];
		const unsigned end = i & 1;
		struct flow_record record = {0};

		if (edges[i % RTE_DIM(edges)] == 0)
			packets = 0;
		flow_set_counts(&record, end, packets, bytes);
		for (unsigned j = 0; j < 8; j++) {
			flow_count_packet(&record, end, size);
			packets++;
			bytes += size;
			assert_int_equal(flow_packets(&record, end), packets);
			assert_int_equal(flow_bytes(&record, end), bytes);
			assert_int_equal(flow_packets(&record, !end), 0);
			assert_int_equal(flow_bytes(&record, !end), 0);
		}
	}
}

/* As many as may come before bytes overflow find room: half of it is free after each time. */
static void packets_never_reach_the_bytes(void **state)
{
	struct flow_record record = {0};
	const uint32_t most = FLOW_PACKETS_CARRY - 1 + UINT32_MAX / 60;

	(void)state;
	record.count[0].packets_low = most;
	record.count[0].bytes_low = UINT32_MAX;
	flow_count_packet(&record, 0, 60);
	assert_int_equal(flow_packets(&record, 0), UINT64_C(1) + most);
	assert_int_equal(flow_bytes(&record, 0), UINT64_C(60) + UINT32_MAX);
	assert_true(record.count[0].packets_low < FLOW_PACKETS_CARRY);
}

/* It ends when the last that may have come is old enough. */
static void credit_keeps_a_flow_alive(void **state)
{
	struct flow_shard *shard = begin();
	uint32_t position = learn(shard, IPPROTO_UDP);
	struct flow_credit credit = {.packets = 1, .bytes = 64};

	(void)state;
	for (unsigned second = 1; second <= 30; second++) {
		credit.seen_us = second * CLOCK_US_PER_S;
		flow_shard_advance(shard, credit.seen_us);
		flow_shard_credit(shard, position, &credit);
	}
	/* an older one does not make it older */
	credit.seen_us = 5 * CLOCK_US_PER_S;
	flow_shard_credit(shard, position, &credit);
	flow_shard_advance(shard, (30 + IDLE_S - 1) * CLOCK_US_PER_S);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 0);
	flow_shard_advance(shard, (30 + IDLE_S) * CLOCK_US_PER_S);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 1);
	assert_int_equal(last.reason, FLOW_END_IDLE);
	assert_int_equal(last.end_us, 30 * CLOCK_US_PER_S);
	assert_int_equal(flow_packets(&last.record, 0), 32);
	flow_shard_destroy(shard);
}

/* Not by ticks: who is told of silence looks at once. */
static void silence_ends_it(void **state)
{
	struct flow_shard *shard = begin();
	uint32_t position = learn(shard, IPPROTO_UDP);
	const struct flow_credit credit = {
		.packets = 1, .bytes = 64, .seen_us = 5 * CLOCK_US_PER_S / 4};
	const uint64_t over_us = credit.seen_us + IDLE_S * CLOCK_US_PER_S;

	(void)state;
	flow_shard_advance(shard, credit.seen_us);
	flow_shard_credit(shard, position, &credit);
	flow_shard_advance(shard, over_us - 1);
	assert_int_equal(flow_shard_end_silent(shard, position), 1);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 0);
	flow_shard_advance(shard, over_us);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 0);
	assert_int_equal(flow_shard_end_silent(shard, position), 0);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 1);
	assert_int_equal(last.reason, FLOW_END_IDLE);
	assert_int_equal(last.end_us, credit.seen_us);
	flow_shard_destroy(shard);
}

static void windows_are_forgotten(void **state)
{
	struct flow_shard *shard = begin();
	uint32_t position = learn(shard, IPPROTO_TCP);
	struct flow_record *record = flow_table_record(&shard->table, position);
	const struct flow_credit credit = {.packets = 1, .bytes = 64};

	(void)state;
	record->window_known = 3;
	flow_shard_credit(shard, position, &credit);
	assert_int_equal(record->window_known, 3); /* the handshake's numbers are needed */
	flow_age_unfile(shard, position, FLOW_PHASE_NEW);
	record->state = FLOW_ESTABLISHED;
	flow_age_file(shard, position);
	flow_shard_credit(shard, position, &credit);
	assert_int_equal(record->window_known, 0);
	flow_shard_end_all(shard);
	flow_shard_destroy(shard);
}

/* Of two FINs the acknowledgement of one at least was not seen: nobody sends it again. */
static void closed_unseen(void **state)
{
	(void)state;
	for (unsigned before = FLOW_REQUEST; before < FLOW_N_STATES; before++) {
		struct flow_shard *shard = begin();
		uint32_t position = learn(shard, IPPROTO_TCP);
		struct flow_record *record = flow_table_record(&shard->table, position);
		bool both = before == FLOW_FIN_BOTH || before == FLOW_FIN_ACK_0 ||
			    before == FLOW_FIN_ACK_1;

		flow_age_unfile(shard, position, FLOW_PHASE_NEW);
		record->state = before & 15;
		flow_age_file(shard, position);
		flow_shard_close_unseen(shard, position);
		assert_int_equal(record->state, both ? FLOW_TIME_WAIT : before);
		flow_shard_advance(shard, (IDLE_S + 1) * CLOCK_US_PER_S);
		flow_shard_flush(shard);
		assert_int_equal(n_reports, 1);
		if (both)
			assert_int_equal(last.reason, FLOW_END_FIN);
		flow_shard_destroy(shard);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_are_wide),
		cmocka_unit_test(packets_are_carried_on),
		cmocka_unit_test(packets_never_reach_the_bytes),
		cmocka_unit_test(credit_keeps_a_flow_alive),
		cmocka_unit_test(silence_ends_it),
		cmocka_unit_test(windows_are_forgotten),
		cmocka_unit_test(closed_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
