/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "export/address.h"
#include "export/json.h"
#include "offload/reason.h"
#include "offload/state.h"

/* 2026-11-20T08:00:00Z */
#define START_S UINT64_C(1795161600)

static uint64_t random_state = 1;

static uint64_t random_number(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state ^ random_state >> 29;
}

/* The example of the documentation. */
static struct flow_report example(void)
{
	struct flow_report report = {
		.record =
			{
				.key =
					{
						.addr = {{10, 0, 0, 1}, {10, 0, 0, 2}},
						.port = {htons(1025), htons(80)},
						.proto = 6,
						.version_wire = FLOW_KEY_VERSION_WIRE(4, 0),
					},
				.count = {{{7, 4210}}, {{6, 812}}},
				.start_us = 5,
				.end = {{.tcp_flags = 27}, {.tcp_flags = 26}},
				.state = FLOW_ESTABLISHED,
			},
		.origin_us = START_S * 1000000,
		.end_us = 1000005,
		.reason = FLOW_END_FIN,
	};

	return report;
}

static char *line_of(const struct flow_report *report, const char *file)
{
	size_t room = EXPORT_JSON_MAX + (file ? strlen(file) : 0);
	/* what goes beyond the room is a sanitizer's to see */
	char *line = malloc(room);
	size_t length = export_json_line(line, report, file, false);

	assert_true(length < room);
	assert_int_equal(line[length - 1], '\n');
	line[length] = '\0';
	return line;
}

static json_t *parse(const struct flow_report *report)
{
	char *line = line_of(report, NULL);
	json_error_t error;
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);

	if (!object)
		fail_msg("%s: %s", error.text, line);
	free(line);
	return object;
}

static uint64_t number(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void test_line(void **state)
{
	struct flow_report report = example();
	char *line = line_of(&report, "\"a.pcap\"");

	(void)state;
	assert_string_equal(line,
		"{\"file\":\"a.pcap\",\"version\":4,\"proto\":6,\"src\":\"10.0.0.1\",\"sport\":"
		"1025,"
		"\"dst\":\"10.0.0.2\",\"dport\":80,\"wire\":0,\"zone\":0,\"packets\":7,\"bytes\":"
		"4210,"
		"\"reverse_packets\":6,\"reverse_bytes\":812,"
		"\"start\":\"2026-11-20T08:00:00.000005Z\",\"end\":\"2026-11-20T08:00:01.000005Z\","
		"\"state\":\"ended\",\"end_reason\":\"fin\",\"tcp_flags\":27,\"reverse_tcp_flags\":"
		"26,"
		"\"icmp_errors\":0,\"offload\":{\"packets\":0,\"state\":\"software\","
		"\"reason\":\"no_nic\"}}\n");
	free(line);
}

/* The initiator may be the key's second end. */
static void test_initiator(void **state)
{
	struct flow_report report = example();

	(void)state;
	report.record.initiator = 1;
	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 15);
	report.record.key.zone = 4095;
	report.record.icmp_errors = 255;
	json_t *object = parse(&report);

	assert_string_equal(string(object, "src"), "10.0.0.2");
	assert_string_equal(string(object, "dst"), "10.0.0.1");
	assert_int_equal(number(object, "sport"), 80);
	assert_int_equal(number(object, "dport"), 1025);
	assert_int_equal(number(object, "packets"), 6);
	assert_int_equal(number(object, "bytes"), 812);
	assert_int_equal(number(object, "reverse_packets"), 7);
	assert_int_equal(number(object, "reverse_bytes"), 4210);
	assert_int_equal(number(object, "tcp_flags"), 26);
	assert_int_equal(number(object, "reverse_tcp_flags"), 27);
	assert_int_equal(number(object, "wire"), 15);
	assert_int_equal(number(object, "zone"), 4095);
	assert_int_equal(number(object, "icmp_errors"), 255);
	json_decref(object);
}

/* What a NIC did: of the side that is further on. */
static void test_offload(void **state)
{
	static const struct {
		uint8_t states[2], reasons[2];
		const char *name, *reason;
	} cases[] = {
		{{OFFLOAD_SOFTWARE, OFFLOAD_SOFTWARE}, {OFFLOAD_SHORT, OFFLOAD_QUIET}, "software",
			"quiet"},
		{{OFFLOAD_SOFTWARE, OFFLOAD_REFUSED}, {OFFLOAD_QUIET, 255}, "refused", "refused"},
		{{OFFLOAD_QUEUED, OFFLOAD_REFUSED}, {OFFLOAD_BUSY, 128}, "queued", "busy"},
		{{OFFLOAD_REFUSED, OFFLOAD_QUEUED}, {128, OFFLOAD_BUSY}, "queued", "busy"},
		{{OFFLOAD_QUEUED, OFFLOAD_INSTALLING}, {OFFLOAD_BUSY, OFFLOAD_CANARY}, "installing",
			"canary"},
		{{OFFLOAD_INSTALLING, OFFLOAD_LEAVING}, {OFFLOAD_BUSY, OFFLOAD_SLOWED}, "leaving",
			"slowed"},
		{{OFFLOAD_SUSPECT, OFFLOAD_LEAVING}, {OFFLOAD_UNMARKED, OFFLOAD_ENDED}, "suspect",
			"unmarked"},
		{{OFFLOAD_SUSPECT, OFFLOAD_SUSPECT}, {OFFLOAD_UNMARKED, OFFLOAD_COUNTER}, "suspect",
			"counter"},
		{{OFFLOAD_SUSPECT, OFFLOAD_ACCEPTED}, {OFFLOAD_UNMARKED, OFFLOAD_BUSY}, "in_hw",
			"busy"},
		{{OFFLOAD_PROVEN, OFFLOAD_ACCEPTED}, {OFFLOAD_CANARY, OFFLOAD_BUSY}, "in_hw",
			"canary"},
	};
	struct flow_report report = example();

	(void)state;
	/* of two alike the initiator's */
	report.record.initiator = 1;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		report.offload = (struct flow_offload){.packets = UINT64_C(1) << 40, .told = true};
		memcpy(report.offload.state, cases[i].states, 2);
		memcpy(report.offload.reason, cases[i].reasons, 2);
		report.offload.full[1] = true;
		report.offload.estimated = i % 2 != 0;
		unsigned from = export_json_direction(&report.record, &report.offload);
		bool rule = offload_state_holds((enum offload_state)cases[i].states[from]);
		json_t *object = parse(&report);
		const json_t *offload = json_object_get(object, "offload");

		assert_int_equal(json_object_size(offload), 3 + rule + i % 2);
		if (rule)
			assert_string_equal(string(offload, "how"), from == 1 ? "full" : "mark");
		assert_true(json_is_true(json_object_get(offload, "estimated")) == (i % 2 != 0));
		assert_int_equal(number(offload, "packets"), INT64_C(1) << 40);
		assert_string_equal(string(offload, "state"), cases[i].name);
		assert_string_equal(string(offload, "reason"), cases[i].reason);
		json_decref(object);
	}
}

static void test_offload_unknown(void **state)
{
	struct flow_report report = example();

	(void)state;
	report.offload = (struct flow_offload){
		.packets = FLOW_OFFLOAD_LOST, .estimated = true, .told = true};
	json_t *object = parse(&report);
	const json_t *offload = json_object_get(object, "offload");

	assert_true(json_is_null(json_object_get(offload, "packets")));
	json_decref(object);
	/* nobody offloads, whatever is said beside that */
	report.offload.told = false;
	object = parse(&report);
	offload = json_object_get(object, "offload");
	assert_int_equal(number(offload, "packets"), 0);
	assert_string_equal(string(offload, "state"), "software");
	assert_string_equal(string(offload, "reason"), "no_nic");
	json_decref(object);
}

/* Every number at its longest. */
static void test_extremes(void **state)
{
	struct flow_report report;

	(void)state;
	memset(&report, 0xff, sizeof(report));
	report.offload = (struct flow_offload){.packets = UINT64_MAX - 1,
		.state = {OFFLOAD_INSTALLING},
		.reason = {OFFLOAD_QUARANTINE},
		.estimated = true,
		.told = true};
	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(6, 15);
	report.record.key.proto = 6;
	report.record.initiator = 0;
	report.reason = FLOW_END_SHUTDOWN;
	report.record.end[0].bytes_high = 0x7fffffff;
	char *line = line_of(&report, NULL);

	assert_non_null(strstr(line, "\"bytes\":9223372036854775807,"));
	assert_non_null(strstr(line, "\"reverse_bytes\":18446744073709551615,"));
	assert_non_null(strstr(line, "\"packets\":140739635838975,"));
	assert_non_null(strstr(line, "\"src\":\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\","));
	free(line);
}

static void test_states(void **state)
{
	struct flow_report report = example();

	(void)state;
	for (unsigned reason = 0; reason < FLOW_N_ENDS; reason++) {
		report.reason = reason & 0x3f;
		json_t *object = parse(&report);

		assert_string_equal(
			string(object, "end_reason"), flow_end_name((enum flow_end)reason));
		assert_string_equal(
			string(object, "state"), reason == FLOW_END_ACTIVE ? "open" : "ended");
		json_decref(object);
	}
	/* flags are TCP's */
	report.record.key.proto = 17;
	json_t *object = parse(&report);

	assert_int_equal(number(object, "tcp_flags"), 0);
	assert_int_equal(number(object, "reverse_tcp_flags"), 0);
	json_decref(object);
}

/* A live flow's object, closed after `more`. */
static char *live_line(const struct flow_report *report, const char *more)
{
	char *line = malloc(EXPORT_JSON_MAX + strlen(more) + 3);
	size_t length = export_json_live(line, report);

	assert_true(length < EXPORT_JSON_MAX);
	sprintf(line + length, "%s}\n", more);
	return line;
}

/* The same object as at the end, without what only an end has; more can follow. */
static void test_live(void **state)
{
	struct flow_report report = example();
	struct {
		enum flow_state state;
		const char *phase;
	} rows[] = {{FLOW_SYN_SENT, "new"}, {FLOW_REPLIED, "open"}, {FLOW_TIME_WAIT, "closing"}};

	(void)state;
	report.worker = 3;
	char *line = live_line(&report, ",\"rate_pps\":7");

	assert_string_equal(line,
		"{\"version\":4,\"proto\":6,\"src\":\"10.0.0.1\",\"sport\":1025,"
		"\"dst\":\"10.0.0.2\",\"dport\":80,\"wire\":0,\"zone\":0,\"packets\":7,\"bytes\":"
		"4210,\"reverse_packets\":6,\"reverse_bytes\":812,"
		"\"start\":\"2026-11-20T08:00:00.000005Z\",\"state\":\"open\","
		"\"tcp_flags\":27,\"reverse_tcp_flags\":26,\"icmp_errors\":0,"
		"\"offload\":{\"packets\":0,\"state\":\"software\",\"reason\":\"no_nic\"},"
		"\"worker\":3,\"rate_pps\":7}\n");
	free(line);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		report.record.state = rows[i].state;
		line = live_line(&report, "");
		json_t *live = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		json_t *ended = parse(&report);

		assert_string_equal(string(live, "state"), rows[i].phase);
		json_object_del(ended, "end");
		json_object_del(ended, "end_reason");
		json_object_set_new(ended, "state", json_string(rows[i].phase));
		json_object_set_new(ended, "worker", json_integer(3));
		assert_true(json_equal(live, ended));
		json_decref(live);
		json_decref(ended);
		free(line);
	}

	/* every number at its longest */
	memset(&report, 0xff, sizeof(report));
	report.offload = (struct flow_offload){.packets = UINT64_MAX - 1,
		.state = {OFFLOAD_INSTALLING},
		.reason = {OFFLOAD_QUARANTINE},
		.told = true};
	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(6, 15);
	report.record.state = FLOW_SYN_RECEIVED;
	free(live_line(&report, ""));
}

/* Of a flow that is blocked, or was, what was dropped of it stands at the end. */
static void test_blocked(void **state)
{
	struct flow_report report = example();

	(void)state;
	for (unsigned dropped = 0; dropped < 3; dropped++) {
		report.record.was_dropped = 1;
		report.record.not_plain = dropped != 0;
		report.record.verdict[dropped == 2] = dropped ? FLOW_VERDICT_DROP : 0;
		report.dropped = (struct flow_dropped){.packets = 12, .bytes = UINT64_C(1) << 40};
		json_t *object = parse(&report);
		const json_t *blocked = json_object_get(object, "blocked");

		assert_true(dropped ? json_is_true(blocked) : json_is_false(blocked));
		assert_int_equal(number(object, "blocked_packets"), 12);
		assert_int_equal(number(object, "blocked_bytes"), INT64_C(1) << 40);
		assert_int_equal(number(object, "packets"), 7);
		json_decref(object);
		report.record.verdict[0] = 0;
	}
	char *line = live_line(&report, "");

	assert_non_null(
		strstr(line, "\"reason\":\"no_nic\"},\"blocked\":true,\"blocked_packets\":12,"
			     "\"blocked_bytes\":1099511627776,\"worker\":"));
	free(line);
}

/* What rules dropped is told apart from what blocks did, and their marks by direction. */
static void test_rules(void **state)
{
	struct flow_report report = example();

	(void)state;
	report.record.was_dropped = 1;
	report.record.not_plain = 1;
	report.record.by_rule = 1;
	report.record.verdict[0] = FLOW_VERDICT_DROP;
	report.dropped = (struct flow_dropped){.packets = 5,
		.bytes = 500,
		.rule_packets = 5,
		.rule_bytes = 500,
		.cause = FLOW_CAUSE_NONE};
	json_t *object = parse(&report);

	assert_null(json_object_get(object, "blocked"));
	assert_null(json_object_get(object, "rule_mark"));
	assert_null(json_object_get(object, "reverse_rule_mark"));
	assert_int_equal(number(object, "rule_dropped_packets"), 5);
	assert_int_equal(number(object, "rule_dropped_bytes"), 500);
	json_decref(object);

	report.dropped.packets = 7;
	report.dropped.bytes = 800;
	report.rules = (struct flow_rules){
		.rule = {FLOW_RULE_NONE, 3}, .mark = {UINT32_MAX, 9}, .marked = 3};
	object = parse(&report);
	assert_true(json_is_false(json_object_get(object, "blocked")));
	assert_int_equal(number(object, "blocked_packets"), 2);
	assert_int_equal(number(object, "blocked_bytes"), 300);
	assert_int_equal(number(object, "rule_dropped_packets"), 5);
	assert_int_equal(
		number(object, report.record.initiator ? "reverse_rule_mark" : "rule_mark"),
		UINT32_MAX);
	assert_int_equal(
		number(object, report.record.initiator ? "rule_mark" : "reverse_rule_mark"), 9);
	json_decref(object);
}

static void check_time(uint64_t us)
{
	struct flow_report report = example();
	time_t seconds = (time_t)(us / 1000000);
	char wanted[64], date[40];
	struct tm tm;

	report.origin_us = us;
	report.record.start_us = 0;
	json_t *object = parse(&report);

	assert_non_null(gmtime_r(&seconds, &tm));
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(wanted, sizeof(wanted), "%s.%06uZ", date, (unsigned)(us % 1000000));
	assert_string_equal(string(object, "start"), wanted);
	json_decref(object);
}

/* The calendar agrees with the library's, leap days and years past 9999 too. */
static void test_times(void **state)
{
	(void)state;
	check_time(0);
	check_time(UINT64_C(253402300799999999)); /* the last of 9999 */
	check_time(UINT64_C(253402300800000000));
	check_time(UINT64_MAX);
	for (uint64_t day = 0; day < 400 * 366; day++)
		check_time((day * 86400 + day % 86400) * 1000000 + day);
	for (unsigned i = 0; i < 10000; i++)
		check_time(random_number());
}

static void check_address(int family, const uint8_t address[16])
{
	char wanted[EXPORT_ADDRESS_MAX], text[EXPORT_ADDRESS_MAX];
	size_t length = export_address(text, family == AF_INET ? 4 : 6, address);

	assert_true(length < sizeof(text));
	text[length] = '\0';
	assert_non_null(inet_ntop(family, address, wanted, sizeof(wanted)));
	assert_string_equal(text, wanted);
}

/* Every pattern of zero groups, and each byte value. */
static void test_addresses(void **state)
{
	uint8_t address[16];

	(void)state;
	for (unsigned value = 0; value < 256; value++) {
		memset(address, (int)value, sizeof(address));
		check_address(AF_INET, address);
		check_address(AF_INET6, address);
	}
	for (unsigned zeros = 0; zeros < 256; zeros++) {
		for (unsigned variant = 0; variant < 64; variant++) {
			for (unsigned i = 0; i < 8; i++) {
				uint64_t group = random_number() >> (variant & 15);

				if (variant & 16)
					group = 0xffff;
				if (zeros & 1U << i)
					group = 0;
				address[2 * i] = (uint8_t)(group >> 8);
				address[2 * i + 1] = (uint8_t)group;
			}
			check_address(AF_INET6, address);
			check_address(AF_INET, address);
		}
	}
}

static void test_strings(void **state)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = {
		{"", "\"\""},
		{"a b/c.pcap", "\"a b/c.pcap\""},
		{"\"quoted\"\n\\\x01", "\"\\\"quoted\\\"\\n\\\\\\u0001\""},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
			"\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
		{"\xff", "\"\xef\xbf\xbd\""},
		{"a\xc3", "\"a\xef\xbf\xbd\""},
		{"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = export_json_string(rows[i].bytes);

		assert_non_null(text);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
	/* any bytes whatever */
	for (unsigned i = 0; i < 20000; i++) {
		char bytes[9] = "";

		for (unsigned j = 0; j < 8; j++)
			bytes[j] = (char)(random_number() | (random_number() & 1) << 7);
		char *text = export_json_string(bytes);
		json_t *parsed = json_loads(text, JSON_DECODE_ANY, NULL);

		assert_true(json_is_string(parsed));
		json_decref(parsed);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_initiator),
		cmocka_unit_test(test_offload),
		cmocka_unit_test(test_offload_unknown),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
