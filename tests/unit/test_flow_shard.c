/* SPDX-License-Identifier: BSD-3-Clause */
/* What a shard does by itself: times that records tell, active reports, and ends that wait for room. */
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

static struct hash_secret secret;
static struct flow_report reports[256];
static unsigned n_reports, room;

static void take(void *context, const struct flow_report *some, unsigned n)
{
	(void)context;
	for (unsigned i = 0; i < n; i++)
		reports[n_reports++] = some[i];
}

static unsigned room_left(void *context)
{
	(void)context;
	return room;
}

static struct flow_shard *begin(struct flow_shard_config config)
{
	struct flow_shard *shard;

	config.secret = &secret;
	config.sink = take;
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		config.timeouts.seconds[i] = IDLE_S;
	assert_int_equal(flow_shard_create(&shard, &config), 0);
	n_reports = 0;
	return shard;
}

static struct packet_info packet(uint16_t port, unsigned from)
{
	struct packet_info info = {.bytes = 100, .from = from & 1};

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

static void account(struct flow_shard *shard, uint32_t position, unsigned from)
{
	const struct packet_info info = packet(1, from);

	assert_int_equal(flow_shard_account(shard, position, &info), FLOW_ACCOUNT_GO);
}

/* Reports that wait in the shard are the first to have room: what is left of it is for ends. */
static void room_is_for_reports_that_wait_too(void **state)
{
	struct flow_shard *shard =
		begin((struct flow_shard_config){.capacity = 16, .paced = true, .room = room_left});

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		learn(shard, (uint16_t)(1 + i));
	/* three have to go for others, and nobody has heard of it yet */
	for (unsigned i = 0; i < 3; i++)
		learn(shard, (uint16_t)(100 + i));
	assert_int_equal(shard->n_reports, 3);
	assert_true(flow_shard_advance(shard, (IDLE_S - 1) * S));
	room = 8;
	assert_false(flow_shard_advance(shard, IDLE_S * S));
	assert_int_equal(shard->n_reports, 8);
	room = 8;
	assert_true(flow_shard_advance(shard, IDLE_S * S));
	assert_int_equal(shard->n_reports, 8);
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 8);
	room = 100;
	assert_true(flow_shard_advance(shard, IDLE_S * S));
	flow_shard_flush(shard);
	assert_int_equal(n_reports, 19);
	flow_shard_end_all(shard);
	flow_shard_destroy(shard);
}

/* A packet that was held back is accounted late, and came when it came. */
static void what_was_held_back_keeps_its_time(void **state)
{
	struct flow_shard *shard = begin((struct flow_shard_config){.capacity = 16});

	(void)state;
	flow_shard_advance(shard, 20 * S);
	uint32_t position = learn(shard, 1);

	flow_shard_advance(shard, 21 * S);
	flow_shard_came(shard, 19 * S + 5, 0);
	account(shard, position, 0);
	flow_shard_came(shard, 20 * S + 7, 0);
	account(shard, position, 1);
	flow_shard_advance(shard, 22 * S);
	/* one that comes ahead of the clock comes now */
	flow_shard_came(shard, 30 * S, 0);
	const struct packet_info late = packet(2, 0);

	flow_shard_learn(shard, &late);
	flow_shard_end_all(shard);
	assert_int_equal(n_reports, 2);
	const unsigned first = reports[0].record.key.port[0] == 1 ? 0 : 1;

	assert_int_equal(reports[first].record.start_us, 19 * S + 5);
	assert_int_equal(reports[first].end_us, 20 * S + 7);
	assert_int_equal(reports[!first].record.start_us, 22 * S);
	flow_shard_destroy(shard);
}

/* Stamps are told as they are; what is first and last is by the clock. */
static void stamps_are_told_as_they_are(void **state)
{
	struct flow_shard *shard =
		begin((struct flow_shard_config){.capacity = 16, .stamped = true});
	const uint64_t years_us = UINT64_C(4000000000) * S;

	(void)state;
	flow_shard_advance(shard, 10 * S);
	flow_shard_came(shard, 10 * S, years_us);
	uint32_t position = learn(shard, 1);

	flow_shard_advance(shard, 11 * S);
	flow_shard_came(shard, 11 * S, 5);
	account(shard, position, 0);
	flow_shard_came(shard, 11 * S, years_us + 7);
	account(shard, position, 1);
	flow_shard_came(shard, 10 * S + 1, years_us + 5000);
	account(shard, position, 1);
	flow_shard_end_all(shard);
	assert_int_equal(flow_report_start_us(&reports[0]), years_us);
	assert_int_equal(flow_report_end_us(&reports[0]), years_us + 7);
	/* where time went back in between the earlier one is the start */
	flow_shard_advance(shard, 12 * S);
	flow_shard_came(shard, 12 * S, years_us);
	position = learn(shard, 1);
	flow_shard_came(shard, 12 * S, 9);
	account(shard, position, 0);
	flow_shard_end_all(shard);
	assert_int_equal(flow_report_start_us(&reports[1]), 9);
	assert_int_equal(flow_report_end_us(&reports[1]), years_us);
	flow_shard_destroy(shard);
}

/* After an active report: the next packet is the start, whoever counts it, and nothing else is counted. */
static void a_record_begins_again_with_a_packet(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 4; way++) {
		struct flow_shard *shard =
			begin((struct flow_shard_config){.capacity = 16, .active_s = 10});
		uint32_t position = learn(shard, 1);
		struct flow_record *record = flow_table_record(&shard->table, position);

		account(shard, position, 1);
		flow_shard_advance(shard, 25 * S + 1);
		flow_shard_flush(shard);
		assert_int_equal(n_reports, 1);
		assert_int_equal(flow_bytes(&reports[0].record, 0), 100);
		assert_int_equal(flow_bytes(record, 0) + flow_bytes(record, 1), 0);
		assert_int_equal(flow_packets(record, 0) + flow_packets(record, 1), 0);
		if (way < 2) {
			account(shard, position, way);
		} else {
			/* of a NIC's counter: read now, and before */
			const struct flow_credit credit = {.packets = 1,
				.bytes = 100,
				.from = way & 1,
				.since_us = 23 * S,
				.seen_us = 25 * S + 1};

			flow_shard_credit(shard, position, &credit);
		}
		assert_int_equal(record->start_us, way < 2 ? 25 * S + 1 : 23 * S);
		assert_int_equal(flow_packets(record, way & 1), 1);
		assert_int_equal(flow_bytes(record, way & 1), 100);
		assert_int_equal(flow_packets(record, ~way & 1), 0);
		assert_int_equal(flow_bytes(record, ~way & 1), 0);
		flow_shard_end_all(shard);
		assert_int_equal(shard->counters.reported_packets, shard->counters.packets);
		assert_int_equal(shard->counters.reported_bytes, shard->counters.bytes);
		assert_int_equal(reports[n_reports - 1].end_us, 25 * S + 1);
		flow_shard_destroy(shard);
	}
}

/* A NIC tells of packets when the record has gone: they are the first in its report, and say when that begins. */
static void a_report_begins_with_what_is_credited(void **state)
{
	struct flow_shard *shard =
		begin((struct flow_shard_config){.capacity = 16, .active_s = 10});
	const struct flow_credit credit = {
		.packets = 3, .bytes = 300, .from = 1, .since_us = 24 * S, .seen_us = 25 * S};

	(void)state;
	learn(shard, 1);
	flow_shard_advance(shard, 25 * S);
	flow_shard_end_all(shard);
	assert_int_equal(n_reports, 2);
	struct flow_report *last = &reports[1];

	/* silence: it begins and ends with the report */
	assert_int_equal(last->record.start_us, 20 * S);
	assert_int_equal(last->end_us, 20 * S);
	assert_int_equal(flow_bytes(&last->record, 0) + flow_bytes(&last->record, 1), 0);
	flow_shard_credit_report(shard, last, &credit);
	assert_int_equal(last->record.start_us, 24 * S);
	assert_int_equal(last->end_us, 25 * S);
	assert_int_equal(flow_packets(&last->record, 1), 3);
	assert_int_equal(flow_bytes(&last->record, 1), 300);
	flow_shard_destroy(shard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_for_reports_that_wait_too),
		cmocka_unit_test(what_was_held_back_keeps_its_time),
		cmocka_unit_test(stamps_are_told_as_they_are),
		cmocka_unit_test(a_record_begins_again_with_a_packet),
		cmocka_unit_test(a_report_begins_with_what_is_credited),
	};

	if (hash_secret_init(&secret) < 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
