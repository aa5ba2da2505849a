/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture_files.h"
#include "traffic/capture.h"

/* What reading a file to its end gave. */
struct reading {
	int opened;
	int ended;
	unsigned n;
	struct capture_packet packets[8];
	uint8_t first_byte[8];
	uint64_t position;
	struct error error;
};

static struct reading read_path(const char *path)
{
	struct reading reading = {0};
	struct capture_packet packet;
	struct capture *capture;

	reading.opened = capture_open(&capture, path, &reading.error);
	if (reading.opened < 0)
		return reading;
	while ((reading.ended = capture_next(capture, &packet, &reading.error)) == 1) {
		assert_true(reading.n < 8);
		reading.first_byte[reading.n] = packet.length > 0 ? packet.bytes[0] : 0;
		for (uint32_t i = 0; i < packet.length; i++)
			assert_int_equal(packet.bytes[i], packet.bytes[0]);
		reading.packets[reading.n++] = packet;
	}
	reading.position = capture_position(capture);

	/* the end is the end, however often one asks */
	struct error again = {""};

	assert_int_equal(capture_next(capture, &packet, &again), reading.ended);
	assert_string_equal(again.text, reading.ended < 0 ? reading.error.text : "");
	capture_close(capture);
	return reading;
}

static struct reading read_part(const struct file *file, size_t length)
{
	char *path = save(file, length);
	struct reading reading = read_path(path);

	if (reading.opened < 0 || reading.ended < 0)
		assert_non_null(strstr(reading.error.text, path));
	assert_null(strchr(reading.error.text, '\n'));
	unlink(path);
	free(path);
	return reading;
}

static struct reading read_file(const struct file *file)
{
	return read_part(file, file->length);
}

static void check_packet(const struct reading *reading, unsigned i, uint8_t number, uint32_t length,
	uint32_t wire_length, uint64_t time_us)
{
	assert_true(i < reading->n);
	assert_int_equal(reading->first_byte[i], number);
	assert_int_equal(reading->packets[i].length, length);
	assert_int_equal(reading->packets[i].wire_length, wire_length);
	assert_int_equal(reading->packets[i].time_us, time_us);
}

static void test_pcap(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 4; variant++) {
		struct file file = {.swapped = variant & 1};
		bool nano = variant & 2;

		put_pcap_header(
			&file, nano ? PCAP_NANOSECONDS : PCAP_MICROSECONDS, 4, LINK_ETHERNET);
		put_pcap_packet(&file, 1000, nano ? 123456789 : 123456, 1, 60, 60);
		put_pcap_packet(&file, 0xfffffff0, 5, 2, 20, 1500);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		assert_int_equal(reading.n, 2);
		assert_int_equal(reading.position, file.length);
		check_packet(&reading, 0, 1, 60, 60, 1000123456);
		/* past 2038: there is no packet from before 1970 */
		check_packet(&reading, 1, 2, 20, 1500, UINT64_C(4294967280000000) + (nano ? 0 : 5));
	}
}

static void test_zero_packets(void **state)
{
	struct file pcap = {0}, interface = {0}, section = {0};

	(void)state;
	put_pcap_header(&pcap, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
	put_section(&interface);
	put_interface(&interface, LINK_ETHERNET, 0, 0);
	put_section(&section);
	assert_int_equal(read_file(&pcap).ended, 0);
	assert_int_equal(read_file(&interface).ended, 0);
	assert_int_equal(read_file(&section).ended, 0);
}

/* A version that libpcap does not know, with headers that it does. */
static void test_pcap_version(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_pcap_header(&file, PCAP_MICROSECONDS, 5, LINK_ETHERNET);
		put_pcap_packet(&file, 1, 2, 3, 60, 60);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 3, 60, 60, 1000002);
	}
}

/* A packet longer than the file's snapshot length is read whole. */
static void test_pcap_snapshot_length(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_pcap_header(&file, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
		memset(file.bytes + 16, 0, 4);
		file.bytes[swapped ? 19 : 16] = 50;
		put_pcap_packet(&file, 1, 2, 3, 60, 70);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 3, 60, 70, 1000002);
	}
}

/* Wherever a pcap file is cut, the whole packets before are read and the rest is told. */
static void test_pcap_cut(void **state)
{
	struct file file = {0};
	size_t ends[3];

	(void)state;
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
	for (unsigned i = 0; i < 3; i++) {
		put_pcap_packet(&file, 1, 2, i + 1, 30, 30);
		ends[i] = file.length;
	}
	for (size_t length = 0; length <= file.length; length++) {
		struct reading reading = read_part(&file, length);
		unsigned whole = (length >= ends[0]) + (length >= ends[1]) + (length >= ends[2]);
		bool at_end = length == 24 || (whole > 0 && length == ends[whole - 1]);
		char told[64];

		if (length == 0)
			assert_int_equal(reading.opened, -ENODATA);
		else if (length < 4)
			assert_int_equal(reading.opened, -EINVAL);
		else if (length < 24)
			assert_int_equal(reading.opened, -EBADMSG);
		if (length < 24)
			continue;
		assert_int_equal(reading.opened, 0);
		assert_int_equal(reading.n, whole);
		assert_int_equal(reading.ended, at_end ? 0 : -EBADMSG);
		snprintf(told, sizeof(told), ": cut after %u packet%s and %zu bytes: ", whole,
			whole == 1 ? "" : "s", whole ? ends[whole - 1] : 24);
		if (!at_end)
			assert_non_null(strstr(reading.error.text, told));
	}
}

static void test_pcap_damaged(void **state)
{
	struct file file = {0};

	(void)state;
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
	put_pcap_packet(&file, 1, 2, 1, 30, 30);
	put32(&file, 1);
	put32(&file, 2);
	put32(&file, 0x7fffffff);
	put32(&file, 60);
	put_packet_bytes(&file, 2, 200, 1);
	struct reading reading = read_file(&file);

	assert_int_equal(reading.ended, -EBADMSG);
	assert_int_equal(reading.n, 1);
	assert_non_null(strstr(reading.error.text, ": damaged after 1 packet and 70 bytes: "));
}

static void test_not_a_capture(void **state)
{
	struct file text = {0}, gzip = {0};
	struct reading reading;

	(void)state;
	put_bytes(&text, "Dear sir or madam,\n", 19);
	put_bytes(&gzip, "\x1f\x8b\x08\0\0\0\0\0\0\0", 10);
	reading = read_file(&text);
	assert_int_equal(reading.opened, -EINVAL);
	assert_non_null(strstr(reading.error.text, "not a capture"));
	reading = read_file(&gzip);
	assert_int_equal(reading.opened, -EINVAL);
	assert_non_null(strstr(reading.error.text, "gzip"));

	reading = read_path("/tmp");
	assert_int_equal(reading.opened, -EISDIR);
	reading = read_path("/tmp/no/such/file.pcap");
	assert_int_equal(reading.opened, -ENOENT);
	assert_string_equal(reading.error.text, "/tmp/no/such/file.pcap: no such file");
	reading = read_path("/dev/null");
	assert_int_equal(reading.opened, -ENODATA);
	assert_int_equal(read_path("a\nb\033[2J.pcap").opened, -ENOENT);
}

static void test_other_link_type(void **state)
{
	static const struct {
		uint16_t link;
		const char *named;
	} rows[] = {
		{LINK_RAW, "RAW"},
		{LINK_COOKED, "LINUX_SLL"},
		{9999, "9999"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct file pcap = {0}, pcapng = {0};

		put_pcap_header(&pcap, PCAP_MICROSECONDS, 4, rows[i].link);
		put_pcap_packet(&pcap, 1, 2, 1, 30, 30);
		put_section(&pcapng);
		put_interface(&pcapng, rows[i].link, 0, 0);
		put_enhanced(&pcapng, 0, 0, 1, 30, 30);
		for (unsigned ng = 0; ng < 2; ng++) {
			struct reading reading = read_file(ng ? &pcapng : &pcap);

			assert_int_equal(reading.opened, -EPROTONOSUPPORT);
			assert_non_null(strstr(reading.error.text, rows[i].named));
			assert_non_null(strstr(reading.error.text, "Ethernet"));
		}
	}
}

static void test_pcapng(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_section(&file);
		put_interface(&file, LINK_ETHERNET, 65535, 0);
		put_interface(&file, LINK_ETHERNET, 65535, 9);	  /* nanoseconds */
		put_interface(&file, LINK_ETHERNET, 65535, 0x8a); /* 1/1024 s */
		put_enhanced(&file, 0, 5000001, 1, 33, 60);
		put_enhanced(&file, 1, UINT64_C(6000001999), 2, 60, 60);
		put_enhanced(&file, 2, 1024 * 7 + 512, 3, 61, 61);
		put_simple(&file, 4, 50, 50);
		put_old(&file, 1, UINT64_C(8000000000), 5, 62);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		assert_int_equal(reading.n, 5);
		assert_int_equal(reading.position, file.length);
		check_packet(&reading, 0, 1, 33, 60, 5000001);
		check_packet(&reading, 1, 2, 60, 60, 6000001);
		check_packet(&reading, 2, 3, 61, 61, 7500000);
		check_packet(&reading, 3, 4, 50, 50, 0);
		check_packet(&reading, 4, 5, 62, 62, 8000000);
	}
}

/* Interfaces of different snapshot lengths, and simple packets cut by the first one's. */
static void test_pcapng_snapshot_lengths(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_section(&file);
		put_interface(&file, LINK_ETHERNET, 64, 0);
		put_interface(&file, LINK_ETHERNET, 1000, 0);
		put_interface(&file, LINK_ETHERNET, 0, 0);
		put_enhanced(&file, 0, 1, 1, 64, 1500);
		put_enhanced(&file, 1, 2, 2, 1000, 1500);
		put_simple(&file, 3, 64, 900);
		put_simple(&file, 4, 63, 63);
		put_enhanced(&file, 2, 5, 5, 1500, 1500);
		put_section(&file);
		put_interface(&file, LINK_ETHERNET, 50, 0);
		put_simple(&file, 6, 50, 51);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		assert_int_equal(reading.n, 6);
		assert_int_equal(reading.position, file.length);
		check_packet(&reading, 0, 1, 64, 1500, 1);
		check_packet(&reading, 1, 2, 1000, 1500, 2);
		check_packet(&reading, 2, 3, 64, 900, 0);
		check_packet(&reading, 3, 4, 63, 63, 0);
		check_packet(&reading, 4, 5, 1500, 1500, 5);
		check_packet(&reading, 5, 6, 50, 51, 0);
	}
}

/* Ethernet packets of a mixed file are read, the others counted. */
static void test_pcapng_mixed_link_types(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_section(&file);
		put_interface(&file, LINK_COOKED, 64, 0);
		put_simple(&file, 1, 64, 64);
		put_interface(&file, LINK_ETHERNET, 64, 0);
		put_enhanced(&file, 0, 1, 2, 64, 64);
		put_enhanced(&file, 1, 2, 3, 64, 64);
		put_old(&file, 0, 3, 4, 64);
		put_old(&file, 1, 4, 5, 64);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.opened, 0);
		assert_int_equal(reading.n, 2);
		check_packet(&reading, 0, 3, 64, 64, 2);
		check_packet(&reading, 1, 5, 64, 64, 4);
		assert_int_equal(reading.ended, -EPROTONOSUPPORT);
		assert_non_null(strstr(reading.error.text,
			"3 packets left out beside 2 of Ethernet: link type LINUX_SLL"));
	}
}

static void test_pcapng_cut(void **state)
{
	struct file file = {0};
	size_t start, ends[3];

	(void)state;
	put_section(&file);
	put_interface(&file, LINK_ETHERNET, 20, 0);
	start = file.length;
	put_enhanced(&file, 0, 1, 1, 30, 30);
	ends[0] = file.length;
	put_simple(&file, 2, 20, 30);
	ends[1] = file.length;
	put_old(&file, 0, 3, 3, 31);
	ends[2] = file.length;
	for (size_t length = 1; length <= file.length; length++) {
		struct reading reading = read_part(&file, length);
		unsigned whole = (length >= ends[0]) + (length >= ends[1]) + (length >= ends[2]);
		bool at_end = length == start || (whole > 0 && length == ends[whole - 1]);

		if (length < 4)
			assert_int_equal(reading.opened, -EINVAL);
		else if (length == 28)
			assert_int_equal(reading.ended, 0); /* a section and nothing in it */
		else if (length < start)
			assert_int_equal(reading.opened, -EBADMSG);
		if (length < start)
			continue;
		assert_int_equal(reading.opened, 0);
		assert_int_equal(reading.n, whole);
		assert_int_equal(reading.ended, at_end ? 0 : -EBADMSG);
		if (!at_end)
			assert_non_null(strstr(reading.error.text, ": cut after "));
	}
}

/* Garbage in place of a time stays within bounds. */
static void test_times(void **state)
{
	struct file pcapng = {0}, pcap = {0};
	struct reading reading;

	(void)state;
	put_section(&pcapng);
	put_interface(&pcapng, LINK_ETHERNET, 0, 0);
	put_interface(&pcapng, LINK_ETHERNET, 0, 0x80); /* whole seconds */
	put_enhanced(&pcapng, 0, UINT64_MAX, 1, 60, 60);
	put_enhanced(&pcapng, 1, UINT64_MAX, 2, 60, 60);
	put_enhanced(&pcapng, 1, UINT64_C(1) << 62, 3, 60, 60);
	put_enhanced(&pcapng, 0, CAPTURE_TIME_MAX_US - 1, 4, 60, 60);
	reading = read_file(&pcapng);
	assert_int_equal(reading.n, 4);
	check_packet(&reading, 0, 1, 60, 60, CAPTURE_TIME_MAX_US);
	check_packet(&reading, 1, 2, 60, 60, 0);
	check_packet(&reading, 2, 3, 60, 60, CAPTURE_TIME_MAX_US);
	check_packet(&reading, 3, 4, 60, 60, CAPTURE_TIME_MAX_US - 1);

	put_pcap_header(&pcap, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
	put_pcap_packet(&pcap, UINT32_MAX, UINT32_MAX, 1, 60, 60);
	reading = read_file(&pcap);
	check_packet(&reading, 0, 1, 60, 60, UINT64_C(4294967295000000) + UINT32_MAX);
}

/* A pipe has no size, but a position. */
static void test_pipe(void **state)
{
	struct file file = {0};
	struct reading reading;
	char path[32];
	int pipe_fds[2];

	(void)state;
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, LINK_ETHERNET);
	put_pcap_packet(&file, 1, 2, 3, 60, 60);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(write(pipe_fds[1], file.bytes, file.length), file.length);
	snprintf(path, sizeof(path), "/dev/fd/%d", pipe_fds[0]);

	struct capture *capture;
	struct capture_packet packet;

	/* the writer is still there: its packet must not wait for the next one */
	assert_int_equal(capture_open(&capture, path, &reading.error), 0);
	assert_int_equal(capture_next(capture, &packet, &reading.error), 1);
	assert_int_equal(packet.length, 60);
	assert_int_equal(capture_size(capture), 0);
	assert_int_equal(capture_position(capture), file.length);
	close(pipe_fds[1]);
	assert_int_equal(capture_next(capture, &packet, &reading.error), 0);
	capture_close(capture);
	close(pipe_fds[0]);
	capture_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcap),
		cmocka_unit_test(test_zero_packets),
		cmocka_unit_test(test_pcap_version),
		cmocka_unit_test(test_pcap_snapshot_length),
		cmocka_unit_test(test_pcap_cut),
		cmocka_unit_test(test_pcap_damaged),
		cmocka_unit_test(test_not_a_capture),
		cmocka_unit_test(test_other_link_type),
		cmocka_unit_test(test_pcapng),
		cmocka_unit_test(test_pcapng_snapshot_lengths),
		cmocka_unit_test(test_pcapng_mixed_link_types),
		cmocka_unit_test(test_pcapng_cut),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
