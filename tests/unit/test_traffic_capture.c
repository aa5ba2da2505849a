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
			&file, nano ? PCAP_NANOSECONDS : PCAP_MICROSECONDS, 4, FILE_ETHERNET);
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
	put_pcap_header(&pcap, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
	put_section(&interface);
	put_interface(&interface, FILE_ETHERNET, 0, 0);
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

		put_pcap_header(&file, PCAP_MICROSECONDS, 5, FILE_ETHERNET);
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

		put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
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
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
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
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
	put_pcap_packet(&file, 1, 2, 1, 30, 30);
	put32(&file, 1);
	put32(&file, 2);
	put32(&file, 0x7fffffff);
	put32(&file, 60);
	put_packet_bytes(&file, 2, 200, 1);
	struct reading reading = read_file(&file);

	assert_int_equal(reading.ended, -EBADMSG);
	assert_int_equal(reading.n, 1);
	/* the file's own snapshot length is told, not a limit of the reader's */
	assert_non_null(strstr(reading.error.text,
		": damaged after 1 packet and 70 bytes: a packet of 2147483647 bytes; the longest "
		"that is read has 262144, and the file's snapshot length is 65535"));
}

static void test_not_a_capture(void **state)
{
	static const struct {
		const char *bytes;
		const char *told;
	} packed[] = {
		{"\x1f\x8b\x08\0\0\0\0\0\0\0",
			"compressed by gzip; unpack it on the way: zcat FILE | millrace replay -"},
		{"\x28\xb5\x2f\xfd\0\0\0\0\0\0",
			"compressed by zstd; unpack it on the way: zstdcat"},
		{"\xfd\x37zXZ\0\0\0\0\0", "compressed by xz"},
		{"BZh9\0\0\0\0\0\0", "compressed by bzip2"},
		{"\x04\x22\x4d\x18\0\0\0\0\0\0", "compressed by lz4"},
	};
	struct file text = {0};
	struct reading reading;

	(void)state;
	put_bytes(&text, "Dear sir or madam,\n", 19);
	reading = read_file(&text);
	assert_int_equal(reading.opened, -EINVAL);
	assert_non_null(strstr(reading.error.text, "not a capture"));
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		struct file file = {0};

		put_bytes(&file, packed[i].bytes, 10);
		reading = read_file(&file);
		assert_int_equal(reading.opened, -EINVAL);
		assert_non_null(strstr(reading.error.text, packed[i].told));
	}

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
		{FILE_802_11, "link type IEEE802_11 (802.11) is not read; Ethernet, raw IP"},
		{104, "C_HDLC"},
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

/* What each link type of a file is read as; 12, 14 and 101 are one. */
static void test_link_types(void **state)
{
	static const struct {
		uint16_t in_file;
		enum link_type read;
	} rows[] = {
		{FILE_ETHERNET, LINK_ETHERNET},
		{12, LINK_RAW},
		{14, LINK_RAW},
		{FILE_RAW, LINK_RAW},
		{228, LINK_RAW},
		{229, LINK_RAW},
		{FILE_COOKED, LINK_SLL},
		{276, LINK_SLL2},
		{0, LINK_LOOPBACK},
		{108, LINK_LOOPBACK},
		{9, LINK_PPP},
		{50, LINK_PPP},
		{51, LINK_PPPOE},
	};

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct file file = {.swapped = i & 1};
		uint16_t link = rows[i / 4].in_file;

		if (i & 2) {
			put_section(&file);
			put_interface(&file, link, 0, 0);
			put_enhanced(&file, 0, 5, 7, 30, 31);
		} else {
			put_pcap_header(&file, PCAP_MICROSECONDS, 4, link);
			put_pcap_packet(&file, 0, 5, 7, 30, 31);
		}
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 7, 30, 31, 5);
		assert_int_equal(reading.packets[0].link, rows[i / 4].read);
	}
}

/*
 * The check sequence goes by the file's own word, and only as far as it was captured. The length's unit is
 * 16 bits, but 4 can only be bytes; without bit 26 the length means nothing.
 */
static void test_pcap_check_sequence(void **state)
{
	static const struct {
		uint32_t above;
		uint32_t length;
	} rows[] = {
		{0x24000000, 4},
		{0x44000000, 4},
		{0x14000000, 2},
		{0x04000000, 0},
		{0x20000000, 0},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct file file = {.swapped = i & 1};
		uint32_t fcs = rows[i / 2].length;

		put_pcap_header(&file, PCAP_MICROSECONDS, 4, rows[i / 2].above | FILE_ETHERNET);
		put_pcap_packet(&file, 0, 1, 1, 64, 64);
		put_pcap_packet(&file, 0, 2, 2, 62, 64);
		put_pcap_packet(&file, 0, 3, 3, 50, 64);
		put_pcap_packet(&file, 0, 4, 4, 3, 3);
		put_pcap_packet(&file, 0, 5, 5, 64, 10); /* impossible: what was captured counts */
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 1, 64 - fcs, 64 - fcs, 1);
		check_packet(&reading, 1, 2, fcs > 2 ? 60 : 62, 64 - fcs, 2);
		check_packet(&reading, 2, 3, 50, 64 - fcs, 3);
		assert_int_equal(reading.packets[3].length, fcs < 3 ? 3 - fcs : 0);
		check_packet(&reading, 4, 5, 64 - fcs, 10 - fcs, 5);
	}
}

/* In pcapng an interface has a word for it, in bits or in bytes, and each packet one of its own. */
static void test_pcapng_check_sequence(void **state)
{
	static const struct {
		uint8_t option;
		uint32_t length;
	} rows[] = {{32, 4}, {4, 4}, {16, 2}, {0, 0}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		bool swapped = i & 1;
		struct file file = {.swapped = swapped}, known = {.swapped = swapped};
		struct file four = {.swapped = swapped}, none = {.swapped = swapped};
		uint32_t fcs = rows[i / 2].length;
		uint32_t flags = 4 << 5 | 1, no_word = 1;

		put_option(&known, 2, "name", 4);
		put_option(&known, 13, &rows[i / 2].option, 1);
		put_option(&four, 1, "a comment", 9);
		flags = swapped ? __builtin_bswap32(flags) : flags;
		no_word = swapped ? __builtin_bswap32(no_word) : no_word;
		put_option(&four, 2, &flags, 4);
		put_option(&none, 2, &no_word, 4);
		put_section(&file);
		put_interface_options(&file, FILE_ETHERNET, 0, &known);
		put_interface(&file, FILE_ETHERNET, 0, 0);
		put_enhanced(&file, 0, 1, 1, 64, 64);
		put_enhanced_options(&file, 0, 2, 2, 63, 64, &none);
		put_enhanced_options(&file, 1, 3, 3, 61, 64, &four);
		put_enhanced_options(&file, 1, 4, 4, 64, 64, &none);
		put_simple(&file, 5, 64, 64);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 1, 64 - fcs, 64 - fcs, 1);
		check_packet(&reading, 1, 2, fcs > 1 ? 64 - fcs : 63, 64 - fcs, 2);
		check_packet(&reading, 2, 3, 60, 60, 3);
		check_packet(&reading, 3, 4, 64, 64, 4);
		check_packet(&reading, 4, 5, 64 - fcs, 64 - fcs, 0);
	}
}

/* Sections of either byte order in one file, each with interfaces of its own. */
static void test_pcapng_sections(void **state)
{
	(void)state;
	for (unsigned order = 0; order < 8; order++) {
		struct file file = {0};

		file.swapped = order & 1;
		put_section(&file);
		put_interface(&file, FILE_ETHERNET, 0, 9);
		put_enhanced(&file, 0, 1000, 1, 60, 60);
		file.swapped = order & 2;
		put_section(&file);
		file.swapped = order & 4;
		put_section(&file);
		put_interface(&file, FILE_RAW, 40, 0);
		put_interface(&file, FILE_ETHERNET, 0, 0x83); /* eighths of a second */
		put_enhanced(&file, 1, 12, 2, 61, 61);
		put_simple(&file, 3, 40, 1000);
		put_enhanced(&file, 2, 0, 4, 10, 10);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.n, 3);
		check_packet(&reading, 0, 1, 60, 60, 1);
		check_packet(&reading, 1, 2, 61, 61, 1500000);
		check_packet(&reading, 2, 3, 40, 1000, 0);
		assert_int_equal(reading.packets[0].link, LINK_ETHERNET);
		assert_int_equal(reading.packets[2].link, LINK_RAW);
		/* the third interface is none of this section's */
		assert_int_equal(reading.ended, -EBADMSG);
		assert_non_null(strstr(reading.error.text, ": damaged after 3 packets"));
	}
}

/* Another version is no damage; what came before it counts. */
static void test_pcapng_version(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file alone = {.swapped = swapped}, second = {.swapped = swapped};
		struct reading reading;

		put_section_version(&alone, 2, 7);
		reading = read_file(&alone);
		assert_int_equal(reading.opened, -EPROTONOSUPPORT);
		assert_non_null(strstr(reading.error.text, "pcapng version 2.7, only 1.x is read"));
		assert_null(strstr(reading.error.text, "damaged"));

		put_section_version(&second, 1, 2);
		put_interface(&second, FILE_ETHERNET, 0, 0);
		put_enhanced(&second, 0, 1, 1, 60, 60);
		put_section_version(&second, 3, 0);
		reading = read_file(&second);
		assert_int_equal(reading.n, 1);
		assert_int_equal(reading.ended, -EPROTONOSUPPORT);
		assert_non_null(strstr(reading.error.text, "pcapng version 3.0"));
		assert_null(strstr(reading.error.text, "damaged"));
	}
}

/* Blocks of names, statistics, secrets, a vendor's own and ones not known are passed over. */
static void test_pcapng_other_blocks(void **state)
{
	static const uint32_t types[] = {4, 5, 9, 10, 0xbad, 0x40000bad, 0x80000001};

	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};
		struct reading reading;

		put_section(&file);
		put_block(&file, 4, 0);
		put_interface(&file, FILE_ETHERNET, 0, 0);
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			put_block(&file, types[i], 8 * (uint32_t)i);
		put_enhanced(&file, 0, 1, 1, 60, 60);
		put_block(&file, 5, 40);
		reading = read_file(&file);
		assert_int_equal(reading.ended, 0);
		assert_int_equal(reading.position, file.length);
		check_packet(&reading, 0, 1, 60, 60, 1);
		for (size_t cut = 1; cut < 52; cut++) {
			reading = read_part(&file, file.length - cut);
			assert_int_equal(reading.n, 1);
			assert_int_equal(reading.ended, -EBADMSG);
			assert_non_null(strstr(reading.error.text, ": cut after 1 packet "));
		}
		/* a block that ends as one of another length */
		file.bytes[file.length - 1] ^= 4;
		file.bytes[file.length - 4] ^= 4;
		reading = read_file(&file);
		assert_int_equal(reading.ended, -EBADMSG);
		assert_non_null(strstr(reading.error.text, ": damaged after 1 packet "));
	}
}

/* Every resolution, and the offset that is added; nothing overflows. */
static void test_pcapng_time_options(void **state)
{
	static const struct {
		uint8_t resolution;
		int64_t offset_s;
		uint64_t ticks;
		uint64_t us;
	} rows[] = {
		{0, 0, 7, 7000000},
		{3, 0, 7001, 7001000},
		{6, 100, 5, 100000005},
		{9, -1, UINT64_C(3000001999), 2000001},
		{12, 0, UINT64_C(2500000999999), 2500000},
		{19, 0, UINT64_MAX, 1844674},
		{25, 0, UINT64_MAX, 1},
		{27, 0, UINT64_MAX, 0},
		{127, 0, UINT64_MAX, 0},
		{0x80, 1, 7, 8000000},
		{0x80 | 10, 0, 1024 * 7 + 512, 7500000},
		{0x80 | 127, 0, UINT64_MAX, 0},
		{6, -10, 5, 0},
		{6, INT64_MIN, 5, 0},
		{6, INT64_MAX, 5, CAPTURE_TIME_MAX_US},
		{0, INT64_MAX, UINT64_MAX, CAPTURE_TIME_MAX_US},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		bool swapped = i & 1;
		struct file file = {.swapped = swapped}, options = {.swapped = swapped};
		uint64_t offset = (uint64_t)rows[i / 2].offset_s;

		offset = swapped ? __builtin_bswap64(offset) : offset;
		put_option(&options, 9, &rows[i / 2].resolution, 1);
		put_option(&options, 14, &offset, 8);
		put_section(&file);
		put_interface_options(&file, FILE_ETHERNET, 0, &options);
		put_enhanced(&file, 0, rows[i / 2].ticks, 1, 60, 60);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.ended, 0);
		check_packet(&reading, 0, 1, 60, 60, rows[i / 2].us);
	}
}

/* Blocks that say what cannot be. */
static void test_pcapng_damaged(void **state)
{
	static const struct {
		size_t at; /* in the second packet's block */
		uint32_t value;
	} rows[] = {
		{4, 8},				   /* shorter than a header and a trailer */
		{4, 93},			   /* no multiple of 4 */
		{4, 28},			   /* shorter than the packet's fields */
		{4, UINT32_MAX},		   /* neither */
		{4, 0x40000000},		   /* longer than any that is read */
		{8, 1},				   /* an interface that is not there */
		{20, 61},			   /* more than the block has */
		{20, 262145},			   /* more than any packet */
		{20, UINT32_MAX}, {0, 0x0a0d0d0a}, /* a section without a byte order */
		{92 - 4, 96},			   /* a trailer that says another length */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct file file = {0};
		size_t second;

		put_section(&file);
		put_interface(&file, FILE_ETHERNET, 0, 0);
		put_enhanced(&file, 0, 1, 1, 60, 60);
		second = file.length;
		put_enhanced(&file, 0, 2, 2, 60, 60);
		put_enhanced(&file, 0, 3, 3, 60, 60);
		memcpy(file.bytes + second + rows[i].at, &rows[i].value, 4);
		struct reading reading = read_file(&file);

		assert_int_equal(reading.n, 1);
		assert_int_equal(reading.ended, -EBADMSG);
		assert_non_null(strstr(reading.error.text, ": damaged after 1 packet "));
	}
}

static void test_pcapng(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_section(&file);
		put_interface(&file, FILE_ETHERNET, 65535, 0);
		put_interface(&file, FILE_ETHERNET, 65535, 9);	  /* nanoseconds */
		put_interface(&file, FILE_ETHERNET, 65535, 0x8a); /* 1/1024 s */
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
		put_interface(&file, FILE_ETHERNET, 64, 0);
		put_interface(&file, FILE_ETHERNET, 1000, 0);
		put_interface(&file, FILE_ETHERNET, 0, 0);
		put_enhanced(&file, 0, 1, 1, 64, 1500);
		put_enhanced(&file, 1, 2, 2, 1000, 1500);
		put_simple(&file, 3, 64, 900);
		put_simple(&file, 4, 63, 63);
		put_enhanced(&file, 2, 5, 5, 1500, 1500);
		put_section(&file);
		put_interface(&file, FILE_ETHERNET, 50, 0);
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

/* Packets of links that are not read are counted, the others of a mixed file are read. */
static void test_pcapng_mixed_link_types(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct file file = {.swapped = swapped};

		put_section(&file);
		put_interface(&file, FILE_802_11, 64, 0);
		put_simple(&file, 1, 64, 64);
		put_interface(&file, FILE_ETHERNET, 64, 0);
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
			"3 packets left out beside 2 that were read: link type IEEE802_11"));
	}
}

static void test_pcapng_cut(void **state)
{
	struct file file = {0};
	size_t start, ends[3];

	(void)state;
	put_section(&file);
	put_interface(&file, FILE_ETHERNET, 20, 0);
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
	put_interface(&pcapng, FILE_ETHERNET, 0, 0);
	put_interface(&pcapng, FILE_ETHERNET, 0, 0x80); /* whole seconds */
	put_enhanced(&pcapng, 0, UINT64_MAX, 1, 60, 60);
	put_enhanced(&pcapng, 1, UINT64_MAX, 2, 60, 60);
	put_enhanced(&pcapng, 1, UINT64_C(1) << 62, 3, 60, 60);
	put_enhanced(&pcapng, 0, CAPTURE_TIME_MAX_US - 1, 4, 60, 60);
	reading = read_file(&pcapng);
	assert_int_equal(reading.n, 4);
	check_packet(&reading, 0, 1, 60, 60, CAPTURE_TIME_MAX_US);
	check_packet(&reading, 1, 2, 60, 60, CAPTURE_TIME_MAX_US);
	check_packet(&reading, 2, 3, 60, 60, CAPTURE_TIME_MAX_US);
	check_packet(&reading, 3, 4, 60, 60, CAPTURE_TIME_MAX_US - 1);

	put_pcap_header(&pcap, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
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
	put_pcap_header(&file, PCAP_MICROSECONDS, 4, FILE_ETHERNET);
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
		cmocka_unit_test(test_link_types),
		cmocka_unit_test(test_pcap_check_sequence),
		cmocka_unit_test(test_pcapng_check_sequence),
		cmocka_unit_test(test_pcapng_sections),
		cmocka_unit_test(test_pcapng_version),
		cmocka_unit_test(test_pcapng_other_blocks),
		cmocka_unit_test(test_pcapng_time_options),
		cmocka_unit_test(test_pcapng_damaged),
		cmocka_unit_test(test_pcapng),
		cmocka_unit_test(test_pcapng_snapshot_lengths),
		cmocka_unit_test(test_pcapng_mixed_link_types),
		cmocka_unit_test(test_pcapng_cut),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
