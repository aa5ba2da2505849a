/* SPDX-License-Identifier: BSD-3-Clause */
/* A live output and its file: full disks, rotation, restarts. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "export_live.h"

static size_t size_of(const char *name)
{
	struct stat status;

	return stat(name, &status) == 0 ? (size_t)status.st_size : 0;
}

/* Whole lines, in order, from `from` on, none twice; returns how many. `next` is one after the last. */
static unsigned check_lines(const char *name, unsigned from, unsigned *next)
{
	FILE *file = fopen(name, "r");
	char line[64];
	unsigned n = 0;

	assert_non_null(file);
	*next = from;
	for (; fgets(line, sizeof(line), file); n++) {
		char *end;
		unsigned number = (unsigned)strtoul(line, &end, 10);

		assert_int_equal(end - line, LINE_LENGTH - 1);
		assert_string_equal(end, "\n");
		assert_true(number >= *next);
		*next = number + 1;
	}
	fclose(file);
	return n;
}

static void check_all_lines(const char *name, unsigned from, unsigned to)
{
	unsigned next;

	assert_int_equal(check_lines(name, from, &next), to - from);
	assert_int_equal(next, to);
}

/* A restart keeps what is there, and ends the line that a kill left cut. */
static void test_appends(void **state)
{
	struct export_output *output = open_live(path, NULL);

	(void)state;
	write_lines(output, 0, 3);
	close_well(output);
	output = open_live(path, NULL);
	write_lines(output, 3, 5);
	close_well(output);
	check_all_lines(path, 0, 5);

	assert_int_equal(truncate(path, 5 * LINE_LENGTH - 1), 0);
	output = open_live(path, NULL);
	write_lines(output, 5, 7);
	export_output_flush(output);
	write_lines(output, 7, 8);
	close_well(output);
	check_all_lines(path, 0, 8);
}

/* A full disk costs what does not fit the buffer; the line that it cut goes on where it was cut. */
static void test_resumes(void **state)
{
	struct export_output *output = open_live(path, &quick);
	unsigned next;

	(void)state;
	set_room(1005);
	write_lines(output, 0, 200);
	flush_until_failure(output, -EFBIG);
	assert_int_equal(export_output_written(output), 1005 / LINE_LENGTH);
	assert_int_equal(export_output_lost(output), 0);
	assert_int_equal(size_of(path), 1005);
	assert_non_null(
		strstr(state_of(output).why.text, "/records: writing the records failed: "));
	set_room(RLIM_INFINITY);
	flush_until(output, 200);
	assert_int_equal(state_of(output).failure, 0);
	check_all_lines(path, 0, 200);

	/* longer than the buffer reaches */
	set_room(200 * LINE_LENGTH + 5);
	write_lines(output, 200, 100000);
	assert_int_equal(state_of(output).failure, -EFBIG);
	assert_int_equal(state_of(output).n_failures, 2);
	assert_true(export_output_lost(output) > 70000);
	set_room(RLIM_INFINITY);
	flush_until(output, 100000 - export_output_lost(output));
	write_lines(output, 100000, 100010);
	uint64_t lost = export_output_lost(output);

	close_well(output);
	assert_int_equal(check_lines(path, 0, &next), 100010 - lost);
	assert_int_equal(next, 100010);
}

/* What is lost at the end leaves no cut line. */
static void test_ends_while_failing(void **state)
{
	struct export_output *output = open_live(path, &quick);
	struct error error = {""};

	(void)state;
	set_room(1005);
	write_lines(output, 0, 200);
	export_output_flush(output);
	write_lines(output, 200, 300);
	export_output_end(output);
	assert_int_equal(export_output_written(output), 91);
	assert_int_equal(export_output_lost(output), 209);
	assert_int_equal(export_output_close(output, &error), -EFBIG);
	assert_non_null(strstr(error.text, "File too large"));
	set_room(RLIM_INFINITY);
	check_all_lines(path, 0, 91);
}

static uint64_t writes_so_far(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	char line[64];
	uint64_t n = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "syscw: ", 7) == 0)
			n = strtoull(line + 7, NULL, 10);
	fclose(file);
	return n;
}

/* A failing write is not tried again for every record. */
static void test_rests(void **state)
{
	const struct export_output_limits slow = {.retry_ms = 3600 * 1000, .buffer = HOLDS};
	struct export_output *output = open_live("/dev/full", &slow);
	struct error error = {""};
	uint64_t before = writes_so_far();

	(void)state;
	write_lines(output, 0, 100000);
	for (unsigned i = 0; i < 1000; i++)
		export_output_flush(output);
	assert_true(writes_so_far() - before <= 2);
	export_output_end(output);
	assert_int_equal(export_output_written(output), 0);
	assert_int_equal(export_output_lost(output), 100000);
	assert_int_equal(state_of(output).n_failures, 1);
	assert_int_equal(export_output_close(output, &error), -ENOSPC);
	assert_string_equal(
		error.text, "/dev/full: writing the records failed: No space left on device");
}

/* The file goes, a new one comes: no line is in both, and none in neither. */
static void test_reopens(void **state)
{
	struct export_output *output = open_live(path, &quick);

	(void)state;
	write_lines(output, 0, 10);
	export_output_flush(output);
	write_lines(output, 10, 20);
	assert_int_equal(rename(path, moved), 0);
	export_output_tend(output); /* nobody asked */
	assert_int_equal(access(path, F_OK), -1);
	export_output_reopen(output);
	export_output_tend(output);
	write_lines(output, 20, 30);
	close_well(output);
	check_all_lines(moved, 0, 10);
	check_all_lines(path, 10, 30);
}

/* The line that a full disk cut stands whole in the new file. */
static void test_reopens_while_failing(void **state)
{
	struct export_output *output = open_live(path, &quick);

	(void)state;
	set_room(1005);
	write_lines(output, 0, 150);
	export_output_flush(output);
	assert_int_equal(size_of(path), 1005);
	assert_int_equal(rename(path, moved), 0);
	export_output_reopen(output);
	export_output_tend(output);
	assert_int_equal(state_of(output).n_reopened, 1);
	flush_until(output, 150);
	assert_int_equal(state_of(output).failure, 0);
	close_well(output);
	set_room(RLIM_INFINITY);
	check_all_lines(moved, 0, 91);
	check_all_lines(path, 91, 150);
}

/* What cannot be opened anew costs nothing: the old file goes on. */
static void test_reopens_in_vain(void **state)
{
	struct export_output *output = open_live(path, &quick);
	char wanted[128];

	(void)state;
	write_lines(output, 0, 5);
	export_output_flush(output);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	export_output_reopen(output);
	export_output_tend(output);
	assert_int_equal(state_of(output).n_reopened, 0);
	assert_int_equal(state_of(output).n_not_reopened, 1);
	snprintf(wanted, sizeof(wanted), "%s: cannot be opened anew: Is a directory", path);
	assert_string_equal(state_of(output).not_reopened.text, wanted);
	write_lines(output, 5, 10);
	close_well(output);
	assert_int_equal(rmdir(path), 0);
	check_all_lines(moved, 0, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_appends, remove_files),
		cmocka_unit_test_teardown(test_resumes, remove_files),
		cmocka_unit_test_teardown(test_ends_while_failing, remove_files),
		cmocka_unit_test(test_rests),
		cmocka_unit_test_teardown(test_reopens, remove_files),
		cmocka_unit_test_teardown(test_reopens_while_failing, remove_files),
		cmocka_unit_test_teardown(test_reopens_in_vain, remove_files),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
