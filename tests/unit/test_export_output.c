/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/output.h"

#define LINE "0123456789\n"
#define LINE_LENGTH (sizeof(LINE) - 1)

static struct export_output *open_output(const char *path)
{
	struct export_output *output;
	struct error error = {""};

	if (export_output_open(&output, path, &error) < 0)
		fail_msg("%s", error.text);
	return output;
}

static void write_lines(struct export_output *output, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		export_output_write(output, LINE, LINE_LENGTH);
}

/* More than the buffer holds, and one record that is larger than a record may be. */
static void test_file(void **state)
{
	char path[] = "/tmp/millrace-test-XXXXXX";
	int fd = mkstemp(path);
	struct error error = {""};
	size_t large = EXPORT_OUTPUT_MAX + 1;
	char *record = malloc(large);

	(void)state;
	memset(record, 'x', large);
	record[large - 1] = '\n';
	struct export_output *output = open_output(path);

	write_lines(output, 50000);
	export_output_write(output, record, large);
	write_lines(output, 7);
	export_output_flush(output);
	assert_int_equal(export_output_written(output), 50007);
	assert_int_equal(export_output_lost(output), 1);
	assert_int_equal(lseek(fd, 0, SEEK_END), 50007 * LINE_LENGTH);
	assert_int_equal(export_output_close(output, &error), 0);

	/* what was there is gone */
	output = open_output(path);
	write_lines(output, 1);
	assert_int_equal(export_output_close(output, &error), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), LINE_LENGTH);
	close(fd);
	unlink(path);
	free(record);
}

static void test_unwritable(void **state)
{
	struct export_output *output;
	struct error error;

	(void)state;
	assert_int_equal(
		export_output_open(&output, "/no/such\nplace/records.json", &error), -ENOENT);
	assert_string_equal(
		error.text, "/no/such?place/records.json: cannot write: No such file or directory");
	assert_int_equal(export_output_open(&output, "/tmp", &error), -EISDIR);
	assert_int_equal(export_output_close(NULL, &error), 0);
}

static void test_disk_full(void **state)
{
	struct export_output *output = open_output("/dev/full");
	struct error error = {""};

	(void)state;
	write_lines(output, 100000);
	export_output_flush(output);
	assert_int_equal(export_output_written(output), 0);
	assert_int_equal(export_output_lost(output), 100000);
	assert_int_equal(export_output_close(output, &error), -ENOSPC);
	assert_string_equal(
		error.text, "/dev/full: writing the records failed: No space left on device");
}

/* What a reader took before it went counts as written. */
static void test_reader_gone(void **state)
{
	struct export_output *output;
	struct error error = {""};
	char path[32], bytes[LINE_LENGTH];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	output = open_output(path);
	close(ends[1]);
	write_lines(output, 1);
	export_output_flush(output);
	assert_int_equal(read(ends[0], bytes, sizeof(bytes)), LINE_LENGTH);
	assert_int_equal(export_output_written(output), 1);
	close(ends[0]);
	write_lines(output, 30000);
	assert_int_equal(export_output_close(output, &error), -EPIPE);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, ": the reader of the records is gone"));
}

/* A write that goes half way: the reader takes a part of it and goes. */
static void test_half_a_write(void **state)
{
	struct export_output *output;
	struct error error = {""};
	int ends[2], size;
	char path[32];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	size = fcntl(ends[1], F_SETPIPE_SZ, 4096);
	assert_true(size >= 4096);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	output = open_output(path);
	close(ends[1]);

	pid_t child = fork();

	if (child == 0) {
		/* takes 10,000 bytes and goes */
		char bytes[1000];

		for (ssize_t left = 10000, n; left > 0; left -= n) {
			n = read(ends[0], bytes, left < 1000 ? (size_t)left : sizeof(bytes));
			if (n <= 0)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[0]);
	write_lines(output, 20000);
	export_output_flush(output);
	uint64_t written = export_output_written(output);

	assert_true(written >= 10000 / LINE_LENGTH);
	assert_true(written <= (10000 + (uint64_t)size + 4096) / LINE_LENGTH);
	assert_int_equal(written + export_output_lost(output), 20000);
	assert_int_equal(export_output_close(output, &error), -EPIPE);
}

/* Somebody else's O_NONBLOCK on a shared pipe costs no record. */
static void test_non_blocking(void **state)
{
	struct export_output *output;
	struct error error = {""};
	int ends[2], saved = dup(STDOUT_FILENO);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	pid_t child = fork();

	if (child == 0) {
		char bytes[4096];
		size_t sum = 0;

		close(ends[1]);
		for (ssize_t n; (n = read(ends[0], bytes, sizeof(bytes))) > 0; sum += (size_t)n)
			usleep(100);
		_exit(sum == 50000 * LINE_LENGTH ? 0 : 1);
	}
	close(ends[0]);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	output = open_output("-");
	write_lines(output, 50000);
	int ret = export_output_close(output, &error);

	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(ret, 0);

	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_reader_gone),
		cmocka_unit_test(test_half_a_write),
		cmocka_unit_test(test_non_blocking),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
