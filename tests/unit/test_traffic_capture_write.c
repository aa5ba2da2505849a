/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures that are written, read again; and files that cannot be. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "traffic/capture.h"
#include "traffic/capture_write.h"

#define TIME_US UINT64_C(1893456000123456)

static void test_round(void **state)
{
	char path[] = "/tmp/millrace-capture-XXXXXX";
	const int fd = mkstemp(path);
	struct capture_writer *writer;
	struct capture *capture;
	struct capture_packet packet;
	struct error error;
	uint8_t bytes[2000];

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	assert_int_equal(capture_writer_open(&writer, path, &error), 0);
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(capture_writer_begin(writer, TIME_US + i, 60 + 3 * i), 0);
		assert_int_equal(capture_writer_add(writer, bytes, 60), 0);
		assert_int_equal(capture_writer_add(writer, bytes + 60, 3 * i), 0);
	}
	assert_int_equal(capture_writer_begin(writer, TIME_US, UINT32_MAX), -EMSGSIZE);
	assert_int_equal(capture_writer_flush(writer), 0);
	assert_int_equal(capture_writer_frames(writer), 500);
	assert_int_equal(capture_open(&capture, path, &error), 0);
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(capture_next(capture, &packet, &error), 1);
		assert_int_equal(packet.link, LINK_ETHERNET);
		assert_int_equal(packet.time_us, TIME_US + i);
		assert_int_equal(packet.length, 60 + 3 * i);
		assert_int_equal(packet.wire_length, 60 + 3 * i);
		assert_memory_equal(packet.bytes, bytes, packet.length);
	}
	assert_int_equal(capture_next(capture, &packet, &error), 0);
	capture_close(capture);
	assert_int_equal(capture_writer_close(writer), 0);
	close(fd);
	unlink(path);
}

/* A file that takes no more ends with a whole frame, and it is known how many it has. */
static void test_no_room(void **state)
{
	const struct rlimit little = {.rlim_cur = 10000, .rlim_max = RLIM_INFINITY};
	char path[] = "/tmp/millrace-capture-XXXXXX";
	const int fd = mkstemp(path);
	struct capture_writer *writer;
	struct capture *capture;
	struct capture_packet packet;
	struct rlimit before;
	struct error error;
	struct stat status;
	uint8_t bytes[60] = {0};
	unsigned n = 0;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(capture_writer_open(&writer, path, &error), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0137, 0);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(capture_writer_begin(writer, TIME_US + i, sizeof(bytes)), 0);
		assert_int_equal(capture_writer_add(writer, bytes, sizeof(bytes)), 0);
	}
	assert_int_equal(capture_writer_frames(writer), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	assert_int_equal(capture_writer_flush(writer), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(capture_writer_frames(writer), (10000 - 24) / 76);
	assert_int_equal(capture_writer_begin(writer, TIME_US, sizeof(bytes)), -EFBIG);
	assert_int_equal(capture_open(&capture, path, &error), 0);
	while (capture_next(capture, &packet, &error) == 1)
		n++;
	assert_int_equal(n, capture_writer_frames(writer));
	assert_int_equal(capture_next(capture, &packet, &error), 0);
	capture_close(capture);
	assert_int_equal(capture_writer_close(writer), -EFBIG);
	close(fd);
	unlink(path);
}

static void test_failures(void **state)
{
	struct capture_writer *writer;
	struct error error;

	(void)state;
	assert_int_equal(capture_writer_open(&writer, "/nowhere/one.pcap", &error), -ENOENT);
	assert_string_equal(error.text, "/nowhere/one.pcap: No such file or directory");
	assert_int_equal(capture_writer_open(&writer, "/dev/full", &error), -ENOSPC);
	assert_int_equal(capture_writer_close(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
