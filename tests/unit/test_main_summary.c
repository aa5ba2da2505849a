/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "main/progress.h"
#include "main/summary.h"

static const struct summary_drop no_drops[] = {{"malformed", 0}, {"tcp_window", 0}};

static const struct replay_summary office = {
	.name = "office.pcapng",
	.n_captures = 1,
	.packets = 82582,
	.bytes = 5512362,
	.out = 82582,
	.drops = no_drops,
	.n_drops = 2,
	.non_ip = 12,
	.flows = 500,
	.flows_by_protocol = {[EXPORTER_TCP] = 500},
	.flow_packets = 82570,
	.records = 500,
	.records_by_end = {[FLOW_END_FIN] = 498, [FLOW_END_RST] = 2},
	.seconds = 0.06,
};

static char *text_of(
	const struct replay_summary *summary, const struct flow_report *top, unsigned n)
{
	char *text = NULL;
	size_t size = 0, column = 0;
	FILE *stream = open_memstream(&text, &size);

	if (summary)
		summary_text(stream, summary);
	summary_top(stream, top, n);
	fclose(stream);
	for (size_t i = 0; i < size; i++) {
		column = text[i] == '\n' ? 0 : column + 1;
		assert_true(column <= SUMMARY_COLUMNS);
	}
	return text;
}

static void test_text(void **state)
{
	char *text = text_of(&office, NULL, 0);

	(void)state;
	assert_string_equal(text,
		"office.pcapng  82,582 packets  5.5 MB  500 flows (500 tcp)  0 dropped  in 0.06 s "
		"(1.4 Mpps)\n"
		"  ended: fin 498  rst 2      not tied: 0 fragments, 0 ICMP errors      non-IP: "
		"12\n");
	free(text);
}

/* Nothing at all, and one of each. */
static void test_small(void **state)
{
	struct summary_drop drops[] = {{"malformed", 1}, {"tcp_window", 0}};
	struct replay_summary summary = {.n_captures = 2};
	char *text = text_of(&summary, NULL, 0);

	(void)state;
	assert_string_equal(text,
		"2 captures  0 packets  0 B  0 flows  0 dropped  in 0.00 s (0 pps)\n"
		"  ended: none      not tied: 0 fragments, 0 ICMP errors      non-IP: 0\n");
	free(text);

	summary = (struct replay_summary){
		.name = "-",
		.packets = 1,
		.flows = 1,
		.fragments_untied = 1,
		.icmp_untied = 1,
		.drops = drops,
		.n_drops = 2,
		.records_lost = 1,
	};
	text = text_of(&summary, NULL, 0);
	assert_string_equal(text,
		"-  1 packet  0 B  1 flow  1 dropped  in 0.00 s (0 pps)\n"
		"  ended: none      not tied: 1 fragment, 1 ICMP error      non-IP: 0"
		"      records lost: 1\n"
		"  dropped: malformed 1\n");
	free(text);
}

/* The largest numbers and a long, hostile name stay within the columns. */
static void test_extremes(void **state)
{
	struct summary_drop drops[] = {{"malformed", UINT64_MAX}, {"tcp_window", UINT64_MAX}};
	struct replay_summary summary;
	char name[2000];

	(void)state;
	memset(name, 'n', sizeof(name));
	memcpy(name, "a\nb\033[2J", 7);
	memcpy(name + 1990, "last.pcap", 10);
	memset(&summary, 0xff, sizeof(summary));
	summary.name = name;
	summary.drops = drops;
	summary.n_drops = 2;
	summary.seconds = 1e9;
	char *text = text_of(&summary, NULL, 0);

	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "last.pcap  "));
	free(text);
}

static void check_number(
	const json_t *object, const char *key, const char *inner, json_int_t wanted)
{
	const json_t *value = json_object_get(object, key);

	if (inner)
		value = json_object_get(value, inner);
	assert_true(json_is_integer(value));
	assert_int_equal(json_integer_value(value), wanted);
}

static void test_json(void **state)
{
	struct flow_report top = {.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(summary_json(stream, &office, &top, 1), 0);
	fclose(stream);
	assert_ptr_equal(strchr(text, '\n'), text + size - 1);
	json_t *object = json_loads(text, 0, NULL);

	check_number(object, "packets", NULL, 82582);
	check_number(object, "bytes", NULL, 5512362);
	check_number(object, "out", NULL, 82582);
	check_number(object, "delivered", NULL, 0);
	check_number(object, "held", NULL, 0);
	check_number(object, "non_ip", NULL, 12);
	check_number(object, "flows", NULL, 500);
	check_number(object, "flow_packets", NULL, 82570);
	check_number(object, "records", NULL, 500);
	check_number(object, "records_lost", NULL, 0);
	check_number(object, "ended", "fin", 498);
	check_number(object, "ended", "idle", 0);
	check_number(object, "dropped", "tcp_window", 0);
	check_number(object, "flows_by_protocol", "tcp", 500);
	double seconds = json_real_value(json_object_get(object, "seconds"));

	assert_true(seconds > 0.0599 && seconds < 0.0601);
	json_t *flows = json_object_get(object, "top");

	assert_int_equal(json_array_size(flows), 1);
	check_number(json_array_get(flows, 0), "version", NULL, 4);
	json_decref(object);
	free(text);
}

static struct flow_report flow(unsigned version, uint8_t proto, uint8_t byte, uint64_t bytes)
{
	struct flow_report report = {0};
	struct flow_record *record = &report.record;

	record->key.version_wire = FLOW_KEY_VERSION_WIRE(version, 0);
	record->key.proto = proto;
	for (unsigned end = 0; end < 2; end++) {
		memset(record->key.addr[end], byte + (int)end, version == 4 ? 4 : 16);
		if (proto == 6)
			record->key.port[end] = htons((uint16_t)(80 + 60000 * end));
	}
	record->initiator = 1;
	record->count[0].bytes_low = (uint32_t)bytes;
	record->end[0].bytes_high = (uint32_t)(bytes >> 32);
	record->count[1].packets_low = (uint32_t)(bytes / 1000);
	record->count[0].packets_low = 7;
	return report;
}

static void test_top(void **state)
{
	struct flow_report top[] = {
		flow(4, 6, 10, 5000000000),
		flow(4, 1, 11, 12345678),
		flow(4, 99, 12, 100),
	};
	char *text = text_of(NULL, top, 3);

	(void)state;
	assert_string_equal(text,
		"   bytes  packets -> / <-  proto  ended     initiator          responder\n"
		"  5.0 GB   5,000,000 / 7   tcp    fin       11.11.11.11:60080  10.10.10.10:80\n"
		" 12.3 MB      12,345 / 7   icmp   fin       12.12.12.12        11.11.11.11\n"
		"   100 B           0 / 7   99     fin       13.13.13.13        12.12.12.12\n");
	free(text);

	/* addresses too long for one line lie one below the other */
	top[1] = flow(6, 6, 0xaa, 9999999999);
	text = text_of(NULL, top, 3);
	assert_non_null(strstr(text, "[abab:abab:abab:abab:abab:abab:abab:abab]:60080\n"));
	free(text);
}

/* No terminal, no progress. */
static void test_progress(void **state)
{
	FILE *stream = tmpfile();
	struct progress progress;

	(void)state;
	progress_start(&progress, stream, 100, true);
	progress_update(&progress, 50, 1);
	progress_clear(&progress);
	assert_int_equal(ftell(stream), 0);
	fclose(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
