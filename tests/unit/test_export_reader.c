/* SPDX-License-Identifier: BSD-3-Clause */
/* A live output and its reader: slow ones, stopped ones, and those that come and go. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

#include "export_live.h"

static unsigned read_number(int fd)
{
	char line[LINE_LENGTH + 1] = "";

	assert_int_equal(read(fd, line, LINE_LENGTH), LINE_LENGTH);
	assert_int_equal(line[LINE_LENGTH - 1], '\n');
	return (unsigned)strtoul(line, NULL, 10);
}

/* A FIFO holds up nobody; each reader gets whole lines. */
static void test_fifo(void **state)
{
	char bytes[100];

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	struct export_output *output = open_live(path, &quick);

	assert_int_equal(state_of(output).failure, -ENXIO);
	assert_non_null(strstr(state_of(output).why.text, "nobody reads"));
	write_lines(output, 0, 2);
	export_output_flush(output);
	assert_int_equal(export_output_written(output), 0);

	int reader = open(path, O_RDONLY | O_NONBLOCK);

	flush_until(output, 2);
	assert_int_equal(state_of(output).failure, 0);
	assert_int_equal(read_number(reader), 0);
	assert_int_equal(read_number(reader), 1);

	/* it goes with a line half read; but what the pipe took ends with a line, and none is lost for the next one */
	assert_true(fcntl(reader, F_SETPIPE_SZ, 4096) == 4096);
	write_lines(output, 2, 1000);
	uint64_t written = 2 + 4096 / LINE_LENGTH;

	flush_until(output, written);
	assert_int_equal(read(reader, bytes, sizeof(bytes)), sizeof(bytes));
	close(reader);
	flush_until_failure(output, -EPIPE);
	assert_int_equal(export_output_lost(output), 0);

	reader = open(path, O_RDONLY | O_NONBLOCK);
	flush_until(output, 1000);
	for (unsigned i = (unsigned)written; i < 1000; i++)
		assert_int_equal(read_number(reader), i);

	/* gone and come again with nothing to write: seen all the same */
	close(reader);
	flush_until_failure(output, -EPIPE);
	assert_int_equal(state_of(output).n_failures, 3);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	flush_until_failure(output, 0);
	close(reader);
	/* nothing is left to be read: that nobody does is no failure */
	assert_int_equal(export_output_lost(output), 0);
	close_well(output);
}

/* Without a reader the end comes at once, and is told. */
static void test_fifo_alone(void **state)
{
	struct export_output_limits slow = {.retry_ms = 1, .stall_ms = 3600 * 1000};
	struct export_output *output;
	struct error error = {""};

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	output = open_live(path, &slow);
	close_well(output);
	output = open_live(path, &slow);
	write_lines(output, 0, 50000);
	export_output_end(output);
	assert_int_equal(export_output_lost(output), 50000);
	assert_int_equal(export_output_close(output, &error), -ENXIO);
	assert_non_null(strstr(error.text, "/records: nobody reads the records"));

	/* a socket is no FIFO, though opening it fails alike */
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", moved);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(export_output_open_live(&output, moved, NULL, &error), -ENXIO);
	close(listener);
}

/* Puts `fd` in the place of standard output; returns what was there. */
static int replace_stdout(int fd)
{
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	return saved;
}

/*
 * To a reader that reads nothing: writing is bounded by the end's patience, and what is not taken is
 * lost.
 */
static void check_stall(int fd)
{
	int saved = replace_stdout(fd), flags = fcntl(fd, F_GETFL);
	struct export_output *output = open_live("-", &quick);
	struct error error = {""};
	uint64_t began = now_ms();

	/* others may share it */
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	export_output_hurry(output);
	write_lines(output, 0, 100000);
	export_output_end(output);
	uint64_t took = now_ms() - began;
	uint64_t written = export_output_written(output), lost = export_output_lost(output);
	int ret = export_output_close(output, &error);

	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_true(took >= quick.stall_ms && took < quick.stall_ms + LONG / 2);
	assert_int_equal(written + lost, 100000);
	assert_true(lost > 0);
	assert_int_equal(ret, -ETIMEDOUT);
	assert_string_equal(error.text, "standard output: the reader of the records takes none");
}

static void test_stalled_pipe(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	check_stall(ends[1]);
	close(ends[0]);
	close(ends[1]);
}

static void test_stalled_socket(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	check_stall(ends[1]);
	close(ends[0]);
	close(ends[1]);
}

/* A reader that rests holds up nobody: what there is no room for is lost, and it gets whole lines when it goes on. */
static void test_resting_reader(void **state)
{
	static char bytes[100000 * LINE_LENGTH];
	size_t length = 0;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	struct export_output *output = open_live(path, &quick);
	uint64_t began = now_ms();

	write_lines(output, 0, 100000);
	assert_true(now_ms() - began < LONG / 2);
	uint64_t lost = export_output_lost_by(output, EXPORT_LOSS_READER);

	assert_true(lost > 100000 - (HOLDS + 2 * 65536) / LINE_LENGTH);
	assert_int_equal(export_output_lost(output), lost);
	/* what is kept are the first ones */
	while (length < (100000 - lost) * LINE_LENGTH) {
		assert_true(now_ms() - began < LONG);
		export_output_flush(output);
		const ssize_t n = read(reader, bytes + length, sizeof(bytes) - length);

		length += n > 0 ? (size_t)n : 0;
	}
	for (unsigned i = 0; i < 100000 - lost; i++)
		assert_int_equal(strtoul(bytes + (size_t)i * LINE_LENGTH, NULL, 10), i);
	assert_int_equal(export_output_written(output), 100000 - lost);
	assert_int_equal(state_of(output).failure, 0);
	close(reader);
	close_well(output);
}

/* Somebody has pressed Ctrl-S. */
static void test_stopped_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;

	(void)state;
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
		(slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0)
		skip();
	assert_int_equal(tcflow(slave, TCOOFF), 0);
	check_stall(slave);
	assert_int_equal(tcflow(slave, TCOON), 0);
	close(slave);
	close(master);
}

struct sipper {
	int fd;
	atomic_bool end;
};

static void *sip(void *arg)
{
	struct sipper *sipper = arg;
	char byte;

	/* slow is what this reader is */
	while (!atomic_load(&sipper->end)) {
		if (read(sipper->fd, &byte, 1) != 1)
			break;
		poll(NULL, 0, 1);
	}
	return NULL;
}

/* A reader that takes a byte now and then does not hold up the end for ever. */
static void test_sipping_reader(void **state)
{
	const struct export_output_limits limits = {
		.stall_ms = 3600 * 1000, .hurry_ms = 100, .buffer = HOLDS};
	struct error error = {""};
	struct sipper sipper;
	pthread_t thread;
	char name[32];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
	struct export_output *output = open_live(name, &limits);

	sipper = (struct sipper){.fd = ends[0]};
	assert_int_equal(pthread_create(&thread, NULL, sip, &sipper), 0);
	write_lines(output, 0, 20000);
	uint64_t began = now_ms();

	assert_int_equal(export_output_close(output, &error), -ETIMEDOUT);
	assert_true(now_ms() - began < LONG / 2);
	atomic_store(&sipper.end, true);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_fifo, remove_files),
		cmocka_unit_test_teardown(test_fifo_alone, remove_files),
		cmocka_unit_test_teardown(test_resting_reader, remove_files),
		cmocka_unit_test(test_stalled_pipe),
		cmocka_unit_test(test_stalled_socket),
		cmocka_unit_test(test_stopped_terminal),
		cmocka_unit_test(test_sipping_reader),
	};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
