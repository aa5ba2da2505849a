/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/args.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_WORDS 32

static const struct cli_verb *verb_of(const char *noun, const char *name)
{
	for (unsigned i = 0; i < cli_n_verbs; i++)
		if (strcmp(cli_verbs[i].noun, noun) == 0 && strcmp(cli_verbs[i].name, name) == 0)
			return &cli_verbs[i];
	fail_msg("no verb %s %s", noun, name);
	return NULL;
}

/* "flow list --json": words between blanks; ~ stands for an empty word. */
struct line {
	char text[5000];
	char *argv[MAX_WORDS + 1];
	int argc;
};

static int parse(struct cli_args *args, struct line *line, const char *text, struct error *error)
{
	snprintf(line->text, sizeof(line->text), "%s", text);
	line->argc = 0;
	for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " ")) {
		assert_true(line->argc < MAX_WORDS);
		if (strcmp(word, "~") == 0)
			*word = '\0';
		line->argv[line->argc++] = word;
	}
	line->argv[line->argc] = NULL;
	return cli_args_parse(
		args, verb_of(line->argv[0], line->argv[1]), line->argc - 1, line->argv + 1, error);
}

static void test_requests(void **state)
{
	static const struct {
		const char *words, *with;
	} rows[] = {
		{"flow list", "{}"},
		{"flow list --port 443 --proto tcp", "{\"port\": 443, \"proto\": \"tcp\"}"},
		{"flow list --address=10.0.0.0/8 --json --state time-wait --wire 15 --worker 0 "
		 "--zone 65535 --limit 4294967295 --cursor x",
			"{\"address\": \"10.0.0.0/8\", \"cursor\": \"x\", \"limit\": 4294967295, "
			"\"state\": \"time-wait\", \"wire\": 15, \"worker\": 0, \"zone\": 65535}"},
		{"flow list --top 1000 --by rate --over 0.5",
			"{\"by\": \"rate\", \"over_ms\": 500, \"top\": 1000}"},
		{"flow list --top 1 --over 10", "{\"over_ms\": 10000, \"top\": 1}"},
		{"flow list --top 1 --over 1.25 --top 2", "{\"over_ms\": 1250, \"top\": 2}"},
		{"flow list --proto 6 --addr ::1", "{\"address\": \"::1\", \"proto\": \"tcp\"}"},
		{"flow list --proto 47", "{\"proto\": \"47\"}"},
		{"flow explain --wire 3 10.0.0.1:1 --json 10.0.0.2:2 tcp",
			"{\"dport\": 2, \"dst\": \"10.0.0.2\", \"proto\": \"tcp\", \"sport\": 1, "
			"\"src\": \"10.0.0.1\", \"wire\": 3}"},
		{"flow kill [::1]:0 ::2 icmp6 --zone=7",
			"{\"dport\": 0, \"dst\": \"::2\", \"proto\": \"icmp6\", \"sport\": 0, "
			"\"src\": \"::1\", \"zone\": 7}"},
		{"flow kill -- 10.0.0.1 10.0.0.2 icmp",
			"{\"dport\": 0, \"dst\": \"10.0.0.2\", \"proto\": \"icmp\", \"sport\": 0, "
			"\"src\": \"10.0.0.1\"}"},
		{"flow list --blocked", "{\"blocked\": true}"},
		{"flow block 10.0.0.0/8 --port 80 --proto udp --for 3 --reason x",
			"{\"for\": 3, \"port\": 80, \"prefix\": \"10.0.0.0/8\", "
			"\"proto\": \"udp\", "
			"\"reason\": \"x\"}"},
		{"flow block 10.0.0.1:1 10.0.0.2:2 tcp --zone 7",
			"{\"dport\": 2, \"dst\": \"10.0.0.2\", \"proto\": \"tcp\", \"sport\": 1, "
			"\"src\": \"10.0.0.1\", \"zone\": 7}"},
		{"flow unblock ::1", "{\"prefix\": \"::1\"}"},
		{"flow unblock --number 4294967297", "{\"number\": 4294967297}"},
		{"block list", "{}"},
		{"block list 10.0.0.0/8 --limit 3", "{\"limit\": 3, \"prefix\": \"10.0.0.0/8\"}"},
		{"block list ::1 ::2 icmp6",
			"{\"dport\": 0, \"dst\": \"::2\", \"proto\": \"icmp6\", \"sport\": 0, "
			"\"src\": \"::1\"}"},
		{"event follow --no-flows", "{\"flows\": false}"},
		{"event follow", "{}"},
	};

	(void)state;
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct cli_args args;
		struct error error;
		struct line line;

		assert_int_equal(parse(&args, &line, rows[i].words, &error), 0);
		char *with = json_dumps(args.with, JSON_SORT_KEYS);

		assert_string_equal(with, rows[i].with);
		assert_int_equal(
			cli_args_given(&args, CLI_JSON), strstr(rows[i].words, "--json") != NULL);
		assert_null(args.socket);
		free(with);
		cli_args_fini(&args);
	}
}

static const struct {
	const char *words, *text;
} misused[] = {
	{"flow list x", "flow list: x: one word too many"},
	{"flow list jsn", "flow list: jsn: did you mean --json?"},
	{"flow list ~", "flow list: \"\": one word too many"},
	{"flow list --prot tcp", NULL},
	{"flow list --prto tcp", "flow list: --prto: no such option; did you mean --proto?"},
	{"flow list --colour", "flow list: --colour: no such option"},
	{"flow list --w 1", "flow list: --w: short for several options"},
	{"flow list -Q", "flow list: -Q: no such option"},
	{"flow list --json=yes", "flow list: --json takes no value"},
	{"flow list --port", "flow list: --port needs a value"},
	{"flow list --port 65536",
		"flow list: --port 65536: a whole number from 0 to 65,535 is needed"},
	{"flow list --port -1", "flow list: --port -1: a whole number from 0 to 65,535 is needed"},
	{"flow list --port ~", "flow list: --port \"\": a whole number from 0 to 65,535 is needed"},
	{"flow list --port 1e3",
		"flow list: --port 1e3: a whole number from 0 to 65,535 is needed"},
	{"flow list --port 18446744073709551617", "flow list: --port 18446744073709551617: "
						  "a whole number from 0 to 65,535 is "
						  "needed"},
	{"flow list --top 0", "flow list: --top 0: a whole number from 1 to 1,000 is needed"},
	{"flow list --limit 4294967296",
		"flow list: --limit 4294967296: a whole number from 1 to 4,294,967,295 is "
		"needed"},
	{"flow list --wire 16", "flow list: --wire 16: a whole number from 0 to 15 is needed"},
	{"flow list --over 0.05", "flow list: --over 0.05: seconds from 0.1 to 10 are needed"},
	{"flow list --over 1.", "flow list: --over 1.: seconds from 0.1 to 10 are needed"},
	{"flow list --over .5", "flow list: --over .5: seconds from 0.1 to 10 are needed"},
	{"flow list --over 10.001", "flow list: --over 10.001: seconds from 0.1 to 10 are needed"},
	{"flow list --over 1.0000", "flow list: --over 1.0000: seconds from 0.1 to 10 are needed"},
	{"flow list --over 1.2.3", "flow list: --over 1.2.3: seconds from 0.1 to 10 are needed"},
	{"flow list --proto tpc", "flow list: --proto tpc: no such protocol; did you mean tcp?"},
	{"flow list --state estblished",
		"flow list: --state estblished: no such word; did you mean established?"},
	{"flow list --state free", "flow list: --state free: no such word; --help lists them"},
	{"flow list --top 1 --by byte", "flow list: --by byte: no such word; did you mean bytes?"},
	{"flow list --address 10.0.0.0/33",
		"flow list: --address 10.0.0.0/33: no address, nor a prefix like "
		"10.0.0.0/8"},
	{"flow list --socket ~", "flow list: --socket \"\": a path is needed"},
	{"flow list --cursor \xff", "flow list: --cursor \xff: is not UTF-8"},
	{"flow list --top 1 --limit 1", "flow list: --top and --limit do not go together"},
	{"flow list --top 1 --cursor 1", "flow list: --top and --cursor do not go together"},
	{"flow list --by bytes", "flow list: --by needs --top"},
	{"flow list --over 1", "flow list: --over needs --top"},
	{"flow list --over 1 --top 1 --by bytes", "flow list: --over is of use by rate only"},
	{"flow explain", "flow explain: which flow? ADDR:PORT ADDR:PORT PROTO is needed"},
	{"flow explain 10.0.0.1:1 10.0.0.2:2",
		"flow explain: which flow? ADDR:PORT ADDR:PORT PROTO is needed"},
	{"flow explain 10.0.0.1:1 10.0.0.2:2 tcp x", "flow explain: x: one word too many"},
	{"flow kill 10.0.0.1:1 10.0.0.2:2 tcp --top 3", "flow kill: --top: no such option"},
	{"flow block", "flow block: what? an address, a prefix or ADDR:PORT ADDR:PORT PROTO is "
		       "needed"},
	{"flow block 10.0.0.0/33",
		"flow block: 10.0.0.0/33: no address, nor a prefix like 10.0.0.0/8; a flow is "
		"ADDR:PORT ADDR:PORT PROTO"},
	{"flow block 10.0.0.1:1 10.0.0.2:2",
		"flow block: which flow? ADDR:PORT ADDR:PORT PROTO is needed"},
	{"flow block 10.0.0.1:1 10.0.0.2:2 tcp --port 1",
		"flow block: --port and --proto go with an address or prefix; a flow has its own"},
	{"flow block 10.0.0.1 --wire 1",
		"flow block: --wire and --zone go with a flow; an address is one on all"},
	{"flow block 10.0.0.1 --for 0",
		"flow block: --for 0: a whole number from 1 to 1,000,000,000 is needed"},
	{"flow unblock --number 0", "flow unblock: --number 0: a whole number from 1 on is needed"},
	{"flow unblock --number 1 10.0.0.1",
		"flow unblock: --number says which block; no word goes with it"},
	{"wire show --wire 1", "wire show: --wire: no such option"},
};

static void test_misused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_OF(misused); i++) {
		struct cli_args args;
		struct error error;
		struct line line;
		int ret = parse(&args, &line, misused[i].words, &error);

		cli_args_fini(&args);
		assert_int_equal(ret, misused[i].text ? -EINVAL : 0);
		if (misused[i].text)
			assert_string_equal(error.text, misused[i].text);
	}
}

static void test_help_and_socket(void **state)
{
	struct cli_args args;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(parse(&args, &line, "flow list --port 1 --help x", &error), CLI_ARGS_HELP);
	cli_args_fini(&args);
	assert_int_equal(parse(&args, &line, "flow kill -h", &error), CLI_ARGS_HELP);
	cli_args_fini(&args);
	assert_int_equal(parse(&args, &line, "drop show --socket /x/y", &error), 0);
	assert_string_equal(args.socket, "/x/y");
	cli_args_fini(&args);
}

/* Options among words whatever the environment says. */
static void test_posixly_correct(void **state)
{
	struct cli_args args;
	struct error error;
	struct line line;

	(void)state;
	setenv("POSIXLY_CORRECT", "1", 1);
	int ret = parse(&args, &line, "flow kill 10.0.0.1 10.0.0.2 icmp --json", &error);

	unsetenv("POSIXLY_CORRECT");
	assert_int_equal(ret, 0);
	assert_true(cli_args_given(&args, CLI_JSON));
	cli_args_fini(&args);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_misused),
		cmocka_unit_test(test_help_and_socket),
		cmocka_unit_test(test_posixly_correct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
