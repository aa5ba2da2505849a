/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "main/replay_options.h"

#define MAX_WORDS 32

/* A command line made of a text: words between blanks; ~ stands for an empty word. */
struct line {
	char text[512];
	char *argv[MAX_WORDS + 1];
	int argc;
};

static int parse(
	struct line *line, const char *text, struct replay_options *options, struct error *error)
{
	snprintf(line->text, sizeof(line->text), "replay %s", text);
	line->argc = 0;
	error->text[0] = '\0';
	for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " ")) {
		assert_true(line->argc < MAX_WORDS);
		if (strcmp(word, "~") == 0)
			*word = '\0';
		line->argv[line->argc++] = word;
	}
	line->argv[line->argc] = NULL;
	return replay_options_parse(options, line->argc, line->argv, error);
}

static void test_defaults(void **state)
{
	struct flow_timeouts defaults = flow_timeouts_default();
	struct replay_options options;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(parse(&line, "a.pcap", &options, &error), 0);
	assert_int_equal(options.n_paths, 1);
	assert_string_equal(options.paths[0], "a.pcap");
	assert_int_equal(options.engine.workers, 1);
	assert_true(options.engine.fragments_follow);
	assert_false(options.engine.tcp_strict || options.engine.zone_vlan || options.summary ||
		     options.json);
	assert_int_equal(options.engine.active_s, 0);
	assert_int_equal(options.engine.flows, 1048576);
	assert_null(options.output);
	assert_memory_equal(&options.engine.timeouts, &defaults, sizeof(defaults));
}

static void test_all(void **state)
{
	struct replay_options options;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(
		parse(&line,
			"--workers 16 a --flows=67108864 - --fragments separate --tcp strict "
			"--zone=vlan --active 60 --output x.json --summary --json -- --b",
			&options, &error),
		0);
	assert_int_equal(options.n_paths, 3);
	assert_string_equal(options.paths[0], "a");
	assert_string_equal(options.paths[1], "-");
	assert_string_equal(options.paths[2], "--b");
	assert_int_equal(options.engine.workers, 16);
	assert_int_equal(options.engine.flows, 67108864);
	assert_false(options.engine.fragments_follow);
	assert_true(options.engine.tcp_strict && options.engine.zone_vlan && options.summary &&
		    options.json);
	assert_int_equal(options.engine.active_s, 60);
	assert_string_equal(options.output, "x.json");
	assert_int_equal(parse(&line, "--help", &options, &error), REPLAY_HELP);
	assert_int_equal(parse(&line, "a -h --nonsense", &options, &error), REPLAY_HELP);
}

static void test_timeouts(void **state)
{
	struct flow_timeouts wanted = flow_timeouts_default();
	struct replay_options options;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(
		parse(&line, "--timeout udp=7 --timeout tcp-open=31536000 a --timeout icmp=1",
			&options, &error),
		0);
	wanted.seconds[FLOW_TIMEOUT_UDP_NEW] = 7;
	wanted.seconds[FLOW_TIMEOUT_UDP_OPEN] = 7;
	wanted.seconds[FLOW_TIMEOUT_TCP_OPEN] = 31536000;
	wanted.seconds[FLOW_TIMEOUT_ICMP] = 1;
	assert_memory_equal(&options.engine.timeouts, &wanted, sizeof(wanted));
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++) {
		char text[128];

		snprintf(text, sizeof(text), "a --timeout %s=12345",
			flow_timeout_name((enum flow_timeout)i));
		assert_int_equal(parse(&line, text, &options, &error), 0);
		assert_int_equal(options.engine.timeouts.seconds[i], 12345);
	}
}

static void test_misused(void **state)
{
	static const struct {
		const char *words, *text;
	} rows[] = {
		{"", "a capture to read is needed"},
		{"--json", "a capture to read is needed"},
		{"- a -", "- (standard input) can be read once only"},
		{"--colour a", "--colour: no such option"},
		{"--worker=2 --wrkers a", "--wrkers: no such option; did you mean --workers?"},
		{"--tmeout=x=5 a", "--tmeout: no such option; did you mean --timeout?"},
		{"--f a", "--f: short for several options"},
		{"-Q a", "-Q: no such option"},
		{"--json=yes a", "--json takes no value"},
		{"a --workers", "--workers needs a value"},
		{"--workers 0 a", "--workers 0: a whole number from 1 to 16 is needed"},
		{"--workers 17 a", "--workers 17: a whole number from 1 to 16 is needed"},
		{"--workers -1 a", "--workers -1: a whole number from 1 to 16 is needed"},
		{"--workers +1 a", "--workers +1: a whole number from 1 to 16 is needed"},
		{"--workers 0x1 a", "--workers 0x1: a whole number from 1 to 16 is needed"},
		{"--workers 1.0 a", "--workers 1.0: a whole number from 1 to 16 is needed"},
		{"--workers ~ a", "--workers \"\": a whole number from 1 to 16 is needed"},
		{"--workers 18446744073709551617 a",
			"--workers 18446744073709551617: a whole number from 1 to 16 is needed"},
		{"--workers 4294967297 a",
			"--workers 4294967297: a whole number from 1 to 16 is needed"},
		{"--flows 67108865 a",
			"--flows 67108865: a whole number from 1 to 67,108,864 is needed"},
		{"--active 31536001 a",
			"--active 31536001: a whole number from 1 to 31,536,000 is needed, or off"},
		{"--fragments maybe a", "--fragments maybe: \"follow\" or \"separate\" is needed"},
		{"--tcp lax a", "--tcp lax: only \"strict\" is known"},
		{"--zone VLAN a", "--zone VLAN: only \"vlan\" is known"},
		{"--output ~ a", "--output \"\": a file is needed"},
		{"--timeout often a", "--timeout often: NAME=SECONDS is needed, as in udp=60"},
		{"--timeout =5 a", "--timeout =5: NAME=SECONDS is needed, as in udp=60"},
		{"--timeout upd-open=5 a", "--timeout upd-open: no such timeout; did you mean "
					   "udp-open?"},
		{"--timeout tcp-time=5 a",
			"--timeout tcp-time: no such timeout; --help lists them"},
		{"--timeout t=5 a", "--timeout t: no such timeout; --help lists them"},
		{"--timeout udp-open= a",
			"--timeout udp-open=: a whole number from 1 to 31,536,000 is needed"},
		{"--timeout udp-open=0 a",
			"--timeout udp-open=0: a whole number from 1 to 31,536,000 is needed"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct replay_options options;
		struct error error;
		struct line line;

		assert_int_equal(parse(&line, rows[i].words, &options, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].text);
	}
}

/* Opening the output would empty a capture that is still to be read. */
static void test_output_is_capture(void **state)
{
	char path[] = "/tmp/millrace-test-XXXXXX", text[128];
	struct replay_options options;
	struct error error;
	struct line line;

	(void)state;
	close(mkstemp(path));
	snprintf(text, sizeof(text), "--output /tmp/../%s %s", path, path);
	assert_int_equal(parse(&line, text, &options, &error), -EINVAL);
	assert_non_null(strstr(error.text, "one of the captures"));
	unlink(path);
	assert_int_equal(parse(&line, text, &options, &error), 0);
}

/* Every option and timeout is in the help, which fits the columns. */
static void test_help(void **state)
{
	static const char *const words[] = {"--workers", "--fragments", "--tcp strict",
		"--zone vlan", "--timeout", "--active", "--flows", "--output", "--summary",
		"--json", "1,048,576"};
	char *text = NULL;
	size_t size = 0, column = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	replay_options_help(stream);
	fclose(stream);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_non_null(strstr(text, words[i]));
	for (unsigned i = 0; i < FLOW_N_TIMEOUTS; i++)
		assert_non_null(strstr(text, flow_timeout_name((enum flow_timeout)i)));
	for (size_t i = 0; i < size; i++) {
		column = text[i] == '\n' ? 0 : column + 1;
		assert_true(column <= 100);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_misused),
		cmocka_unit_test(test_output_is_capture),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
