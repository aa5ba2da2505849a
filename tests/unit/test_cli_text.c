/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/field.h"
#include "cli/table.h"
#include "cli/when.h"
#include "cli/yaml.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Cells too long are whole, and those after them find back. */
static void test_table(void **state)
{
	static const struct table_column columns[] = {
		{"name", 5, false}, {"n", 5, true}, {"word", 6, false}, {"m", 4, true}};
	static const char *const cells[][4] = {
		{"a", "1", "b", "2"},
		{"gr\xc3\xbc\xc3\x9f", "12345", "123456", "1234"},
		{"too long", "1", "b", "2"},
		{"much too long", "1234567", "b", ""},
		{"", "", "", "2"},
	};
	static const char *const drawn[] = {" name       n  word       m\n"
					    " a          1  b          2\n"
					    " gr\xc3\xbc\xc3\x9f   12345  123456  1234\n"
					    " too long   1  b          2\n"
					    " much too long 1234567 b\n"
					    "                          2\n",
		/* with one blank between */
		" name      n word      m\n"
		" a         1 b         2\n"
		" gr\xc3\xbc\xc3\x9f  12345 123456 1234\n"
		" too long  1 b         2\n"
		" much too long 1234567 b\n"
		"                       2\n"};

	(void)state;
	for (unsigned narrow = 0; narrow < N_OF(drawn); narrow++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		struct table table;

		table_init(&table, out, columns);
		if (narrow)
			table_narrow(&table);
		table_titles(&table, N_OF(columns));
		for (size_t i = 0; i < N_OF(cells); i++) {
			for (unsigned j = 0; j < N_OF(columns); j++)
				table_cell(&table, cells[i][j]);
			table_end(&table);
		}
		fclose(out);
		assert_string_equal(text, drawn[narrow]);
		free(text);
	}
}

static void test_when_parse(void **state)
{
	static const char *const bad[] = {"", "2026-11-20", "2026-11-20T08:00:00Z",
		"2026-11-20 08:00:00.000000Z", "2026-11-20T08:00:00.000000Zx",
		"2026-11-20T08:00:00.00000Z", "-026-11-20T08:00:00.000000Z",
		"2026-11-20T08:00:00.000000+"};
	int64_t us;

	(void)state;
	assert_true(when_parse("1970-01-01T00:00:00.000001Z", &us));
	assert_int_equal(us, 1);
	assert_true(when_parse("2026-11-20T08:00:00.123456Z", &us));
	assert_int_equal(us, INT64_C(1795161600123456));
	for (size_t i = 0; i < N_OF(bad); i++)
		assert_false(when_parse(bad[i], &us));
}

/* In the reader's zone, whichever that is. */
static void test_when_local(void **state)
{
	char buffer[WHEN_MAX];

	(void)state;
	setenv("TZ", "XXX-5:30", 1);
	tzset();
	assert_string_equal(
		when_full(buffer, INT64_C(1795161600123456)), "2026-11-20 13:30:00.123456");
	assert_string_equal(when_short(buffer, INT64_C(1795161600123456)), "11-20 13:30:00.123");
	assert_string_equal(when_full(buffer, -1), "1970-01-01 05:29:59.999999");
	unsetenv("TZ");
	tzset();
}

static void test_when_durations(void **state)
{
	static const struct {
		uint64_t us;
		const char *span;
	} rows[] = {
		{0, "0 us"},
		{999, "999 us"},
		{1000, "1 ms"},
		{999999, "999 ms"},
		{1000000, "1 s"},
		{39990000, "39.9 s"},
		{119999999, "119.9 s"},
		{120000000, "2 min"},
		{131000000, "2 min 11 s"},
		{7440000000, "2 h 4 min"},
		{86400000000, "1 d"},
		{93600000000, "1 d 2 h"},
	};
	char buffer[WHEN_MAX];

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++)
		assert_string_equal(when_span(buffer, rows[i].us), rows[i].span);
	assert_string_equal(when_clock(buffer, -5), "00:00:00");
	assert_string_equal(when_clock(buffer, 131 * INT64_C(1000000)), "00:02:11");
	assert_string_equal(when_clock(buffer, 359999 * INT64_C(1000000)), "99:59:59");
	assert_string_equal(when_clock(buffer, 360000 * INT64_C(1000000)), "4d 04h");
	assert_true(strlen(when_clock(buffer, INT64_MAX)) < WHEN_MAX);
	assert_true(strlen(when_span(buffer, UINT64_MAX)) < WHEN_MAX);
	assert_true(strlen(when_full(buffer, INT64_MAX)) < WHEN_MAX);
}

static void check_yaml(const char *json, const char *yaml)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);

	assert_non_null(value);
	yaml_write(out, value);
	fclose(out);
	json_decref(value);
	assert_string_equal(text, yaml);
	free(text);
}

static void test_yaml(void **state)
{
	(void)state;
	check_yaml("{}", "{}\n");
	check_yaml("{\"a\":1,\"b\":[],\"c\":{\"d\":[true,null,\"x\"],\"e\":1.5}}",
		"a: 1\nb: []\nc:\n  d:\n    - true\n    - null\n    - x\n  e: 1.5\n");
	check_yaml("{\"wires\":[[\"a\",\"b\"],{\"c\":{\"d\":1},\"e\":2}]}",
		"wires:\n  - - a\n    - b\n  - c:\n      d: 1\n    e: 2\n");
	check_yaml("[\"No\",\"1\",\"\",\"a b\",\"/a.b-c_1\",\"-\",\"a:b\",\"\\\"\\\\\"]",
		"- \"No\"\n- \"1\"\n- \"\"\n- \"a b\"\n- /a.b-c_1\n- \"-\"\n- \"a:b\"\n"
		"- \"\\\"\\\\\"\n");
	check_yaml("[\"\\u001b[31m\\n\\u007f\\u009b\\u00fc\"]",
		"- \"\\x1b[31m\\x0a\\x7f\\x9b\xc3\xbc\"\n");
}

static void test_fields(void **state)
{
	json_t *line = json_loads(
		"{\"proto\":6,\"src\":\"10.0.0.1\",\"sport\":0,\"six\":\"::1\",\"n\":1234567,"
		"\"minus\":-5,\"real\":12.34,\"big\":1234.5,\"text\":\"a\\u001bb\",\"list\":[],"
		"\"null\":null,\"yes\":true}",
		0, NULL);
	char buffer[FIELD_MAX];

	(void)state;
	assert_non_null(line);
	assert_string_equal(field_proto(line, buffer), "tcp");
	assert_string_equal(field_endpoint(line, "src", "sport", buffer), "10.0.0.1:0");
	assert_string_equal(field_endpoint(line, "six", "n", buffer), "[::1]:1234567");
	assert_string_equal(field_grouped(line, "n", buffer), "1,234,567");
	assert_string_equal(field_grouped(line, "minus", buffer), "0");
	assert_string_equal(field_grouped(line, "text", buffer), "-");
	assert_string_equal(field_bytes(line, "n", buffer), "1.2 MB");
	assert_string_equal(field_decimal(line, "real", buffer), "12.3");
	assert_string_equal(field_decimal(line, "big", buffer), "1,235");
	assert_string_equal(field_text(line, "text", buffer), "a?b");
	assert_string_equal(field_text(line, "n", buffer), "1234567");
	assert_string_equal(field_text(line, "list", buffer), "-");
	assert_string_equal(field_text(line, "null", buffer), "-");
	assert_string_equal(field_text(line, "yes", buffer), "yes");
	assert_string_equal(field_text(line, "none", buffer), "-");
	assert_false(field_has(line, "null"));
	assert_int_equal(field_number(line, "minus"), 0);
	json_object_set_new(line, "proto", json_integer(253));
	assert_string_equal(field_proto(line, buffer), "253");
	assert_string_equal(field_endpoint(line, "six", "sport", buffer), "::1");
	json_decref(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_when_parse),
		cmocka_unit_test(test_when_local),
		cmocka_unit_test(test_when_durations),
		cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
