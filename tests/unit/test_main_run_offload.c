/* SPDX-License-Identifier: BSD-3-Clause */

/* The section offload of a configuration, as the command line has it. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "run_line.h"

static void check_offload(const char *words, struct run_offload wanted)
{
	struct run_config config;
	struct error error;
	struct line line;

	if (parse(&line, words, &config, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(config.offload.on, wanted.on);
	assert_int_equal(config.offload.full, wanted.full);
	assert_int_equal(config.offload.threshold, wanted.threshold);
	assert_int_equal(config.offload.slots, wanted.slots);
	assert_int_equal(config.offload.rules, wanted.rules);
	assert_int_equal(config.offload.rules_per_s, wanted.rules_per_s);
	assert_int_equal(config.offload.counters, wanted.counters);
	assert_int_equal(config.offload.restart, wanted.restart);
	assert_int_equal(config.offload.drops, wanted.drops);
	assert_int_equal(config.offload.n_except, wanted.n_except);
	for (unsigned i = 0; i < wanted.n_except; i++)
		assert_string_equal(config.offload.except[i], wanted.except[i]);
	run_config_fini(&config);
}

static void test_offload(void **state)
{
	struct run_offload wanted = {
		.on = true, .threshold = 1, .slots = 65536, .counters = true, .drops = true};

	(void)state;
	check_offload("--wire a,b", wanted);
	check_offload("--wire a,b --offload on", wanted);
	check_offload("--wire a,b --offload-except a --offload-except none", wanted);
	check_offload("--wire a,b --offload-mode mark", wanted);
	wanted = (struct run_offload){.threshold = 0,
		.full = true,
		.slots = 1,
		.rules = 7168,
		.rules_per_s = 45000,
		.restart = true,
		.n_except = 2,
		.except = {"b", "a"}};
	check_offload("--wire a,b --offload off --offload-mode full --offload-threshold 0 "
		      "--offload-slots=1 "
		      "--offload-rules 7168 --offload-rules-per-second 45000 "
		      "--offload-counters no --offload-restart yes --offload-rules-in-nic off "
		      "--offload-except b,a",
		wanted);
}

/* What a port is left out by is its name; and all are when nothing is offloaded. */
static void test_offloads(void **state)
{
	struct run_config config;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(
		parse(&line, "--port x=eth1 --wire b,x --offload-except x", &config, &error), 0);
	assert_false(run_config_offloads(&config, config.wires[0].port[1]));
	assert_true(run_config_offloads(&config, config.wires[0].port[0]));
	config.offload.on = false;
	assert_false(run_config_offloads(&config, config.wires[0].port[0]));
	run_config_fini(&config);
}

static void test_offload_refused(void **state)
{
	static const struct row rows[] = {
		{"--wire a,b --offload maybe", "--offload maybe: \"on\" or \"off\" is needed"},
		{"--wire a,b --offload-mode whole",
			"--offload-mode whole: \"mark\" or \"full\" is needed"},
		{"--wire a,b --offload-threshold 1000000001",
			"--offload-threshold 1000000001: a whole number from 0 to 1,000,000,000 is "
			"needed"},
		{"--wire a,b --offload-slots 0",
			"--offload-slots 0: a whole number from 1 to 2,097,152 is needed"},
		{"--wire a,b --offload-slots 3 --workers 4",
			"offload slots 3: 4 workers need one each; 4 or more"},
		{"--wire a,b --offload-rules-per-second 3 --workers 4",
			"offload rules-per-second 3: 4 workers need one each; 4 or more, or 0 for "
			"no limit"},
		{"--wire a,b --offload-except c", "--offload-except c: no such port"},
		{"--wire lan,wan --offload-except lam",
			"--offload-except lam: no such port; did you mean lan?"},
		{"--wire a,b --offload-except a,a", "--offload-except a: this port is named twice"},
		{"--wire a,b --offload-except a,,b",
			"--offload-except \"\": the name of a port is needed"},
		{"--wire a,b --offload-except 12345678901234567890123456789012",
			"--offload-except 12345678901234567890123456789012: the name of a port is "
			"needed"},
	};

	(void)state;
	check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offload),
		cmocka_unit_test(test_offloads),
		cmocka_unit_test(test_offload_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
