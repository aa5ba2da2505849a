/* SPDX-License-Identifier: BSD-3-Clause */

/* The section blocks of a configuration, and how it fills the list. */

#include <stdlib.h>
#include <unistd.h>

#include "run_line.h"

#include "blocks_scene.h" /* last: its names are short */

static void test_line(void **state)
{
	struct run_config config;
	struct error error;
	struct line line;

	(void)state;
	assert_int_equal(parse(&line, "--wire a,b", &config, &error), 0);
	assert_int_equal(config.blocks.max, 65536);
	assert_int_equal(config.blocks.reasons, 4096);
	assert_null(config.blocks.file);
	assert_int_equal(config.blocks.n_list, 0);
	run_config_fini(&config);
	assert_int_equal(parse(&line, "--wire a,b --blocks x --blocks-max 7 --blocks-reasons 0",
				 &config, &error),
		0);
	assert_int_equal(config.blocks.max, 7);
	assert_int_equal(config.blocks.reasons, 0);
	assert_string_equal(config.blocks.file, "x");
	run_config_fini(&config);
	assert_int_equal(
		parse(&line, "--wire a,b --blocks x --blocks none --blocks-max 0", &config, &error),
		0);
	assert_null(config.blocks.file);
	run_config_fini(&config);
}

static void test_refused(void **state)
{
	static const struct row rows[] = {
		{"--wire a,b --blocks ~", "--blocks \"\": a file is needed"},
		{"--wire a,b --blocks-max 15728641",
			"--blocks-max 15728641: a whole number from 0 to 15,728,640 is needed"},
		{"--wire a,b --blocks-reasons 16777216",
			"--blocks-reasons 16777216: a whole number from 0 to 16,777,215 is needed"},
		{"--wire a,b --blocks x --blocks-max 0",
			"blocks max 0: there is something to block, but no list to put it in; at "
			"least 1 is needed"},
	};

	(void)state;
	check_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static const char file[] = "blocks:\n"
			   "  max: 3\n"
			   "  reasons: 5\n"
			   "  file: some list\n"
			   "  list:\n"
			   "  - 192.0.2.0/24 port 80 reason a \"b\"\n"
			   "  - flow [2001:db8::1]:1 [2001:db8::2]:2 tcp wire 1 zone 7 for 60\n";

/* What a file says; and the configuration in effect says the same, read back. */
static void test_file(void **state)
{
	struct run_config config;
	struct error error;
	char *json = NULL;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *text = json ? json : file;

		if (run_config_read_bytes(&config, "f", text, strlen(text), &error) < 0)
			fail_msg("%s", error.text);
		free(json);
		assert_int_equal(config.blocks.max, 3);
		assert_int_equal(config.blocks.reasons, 5);
		assert_string_equal(config.blocks.file, "some list");
		assert_int_equal(config.blocks.n_list, 2);
		assert_string_equal(config.blocks.list[0], "192.0.2.0/24 port 80 reason a \"b\"");
		assert_string_equal(config.blocks.list[1],
			"flow [2001:db8::1]:1 [2001:db8::2]:2 tcp wire 1 zone 7 for 60");
		json = run_config_json(&config);
		run_config_fini(&config);
	}
	free(json);
}

static void load(const char *lines, uint32_t max, int wanted, const char *said)
{
	struct blocks *blocks = make(max, 1);
	struct run_blocks from = {.max = max};
	char path[] = "/tmp/millrace-blocks-XXXXXX";
	struct blocks_stats stats;
	struct error error = {{0}};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(run_blocks_add(&from, "here", "10.0.0.1 reason x", &error), 0);
	assert_int_equal(run_blocks_add(&from, "here", "10.0.0.2 for 5", &error), 0);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	assert_int_equal(run_blocks_set(&from, RUN_BLOCKS_FILE_KEY, "here", path, &error), 0);
	assert_int_equal(run_blocks_load(&from, blocks, 0, &error), wanted);
	assert_non_null(strstr(error.text, said));
	blocks_stats(blocks, &stats);
	if (wanted == 0)
		assert_int_equal(stats.entries, 4);
	blocks_destroy(blocks);
	run_blocks_fini(&from);
	unlink(path);
}

static void test_load(void **state)
{
	struct run_blocks none = {.max = 0};
	struct error error;

	(void)state;
	load("::1\n# and\n\n10.0.0.0/8 reason x", 4, 0, "");
	load("::1\n10.0.0.0/8\n", 3, -ENOSPC,
		": no room for the 2 blocks of this list: 2 of 3 are in use, with 1 of 1 reasons "
		"(blocks.max and blocks.reasons make room)");
	load("::1 reason y\n", 4, -ENOSPC, "with 1 of 1 reasons");
	load("::1\n\n  ::/129", 4, -EBADMSG, ":3:3: ::/129: a prefix of IPv6");
	/* there is nothing to be filled */
	assert_int_equal(run_blocks_load(&none, NULL, 0, &error), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
