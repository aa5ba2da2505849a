/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Captures written byte by byte, in either byte order, for the tests of the capture reader. */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PCAP_MICROSECONDS 0xa1b2c3d4
#define PCAP_NANOSECONDS 0xa1b23c4d
/* Link types by the numbers that files have. */
#define FILE_ETHERNET 1
#define FILE_RAW 101
#define FILE_COOKED 113
#define FILE_802_11 105

/* A file in the making. */
struct file {
	uint8_t bytes[16384];
	size_t length;
	bool swapped; /* not in this machine's byte order */
};

static inline void put_bytes(struct file *file, const void *bytes, size_t n)
{
	assert(file->length + n <= sizeof(file->bytes));
	memcpy(file->bytes + file->length, bytes, n);
	file->length += n;
}

static inline void put16(struct file *file, uint16_t value)
{
	value = file->swapped ? __builtin_bswap16(value) : value;
	put_bytes(file, &value, sizeof(value));
}

static inline void put32(struct file *file, uint32_t value)
{
	value = file->swapped ? __builtin_bswap32(value) : value;
	put_bytes(file, &value, sizeof(value));
}

/* `n` bytes of packet, each the packet's number, padded to a multiple of `align`. */
static inline void put_packet_bytes(struct file *file, unsigned number, uint32_t n, uint32_t align)
{
	for (uint32_t i = 0; i < n; i++)
		put_bytes(file, &(uint8_t){(uint8_t)number}, 1);
	while (n++ % align != 0)
		put_bytes(file, "", 1);
}

static inline void put_pcap_header(struct file *file, uint32_t magic, uint16_t minor, uint32_t link)
{
	put32(file, magic);
	put16(file, 2);
	put16(file, minor);
	put32(file, 0);
	put32(file, 0);
	put32(file, 65535);
	put32(file, link);
}

static inline void put_pcap_packet(struct file *file, uint32_t seconds, uint32_t fraction,
	unsigned number, uint32_t length, uint32_t wire_length)
{
	put32(file, seconds);
	put32(file, fraction);
	put32(file, length);
	put32(file, wire_length);
	put_packet_bytes(file, number, length, 1);
}

static inline void put_section_version(struct file *file, uint16_t major, uint16_t minor)
{
	put32(file, 0x0a0d0d0a);
	put32(file, 28);
	put32(file, 0x1a2b3c4d);
	put16(file, major);
	put16(file, minor);
	put32(file, UINT32_MAX);
	put32(file, UINT32_MAX);
	put32(file, 28);
}

static inline void put_section(struct file *file)
{
	put_section_version(file, 1, 0);
}

/* Any other block, with `n` bytes in it (a multiple of 4). */
static inline void put_block(struct file *file, uint32_t type, uint32_t n)
{
	put32(file, type);
	put32(file, n + 12);
	for (uint32_t i = 0; i < n; i++)
		put_bytes(file, "o", 1);
	put32(file, n + 12);
}

/* An option, for one of the two functions below; they add the end of options. */
static inline void put_option(struct file *options, uint16_t code, const void *value, uint16_t n)
{
	put16(options, code);
	put16(options, n);
	put_bytes(options, value, n);
	while (n++ % 4 != 0)
		put_bytes(options, "", 1);
}

static inline void put_interface_options(
	struct file *file, uint16_t link, uint32_t snaplen, const struct file *options)
{
	uint32_t total = 24 + (uint32_t)options->length;

	put32(file, 1);
	put32(file, total);
	put16(file, link);
	put16(file, 0);
	put32(file, snaplen);
	put_bytes(file, options->bytes, options->length);
	put32(file, 0);
	put32(file, total);
}

/* `resolution` is if_tsresol, 0 = leave it out (microseconds). */
static inline void put_interface(
	struct file *file, uint16_t link, uint32_t snaplen, uint8_t resolution)
{
	uint32_t total = resolution ? 32 : 20;

	put32(file, 1);
	put32(file, total);
	put16(file, link);
	put16(file, 0);
	put32(file, snaplen);
	if (resolution) {
		put16(file, 9);
		put16(file, 1);
		put_bytes(file, (uint8_t[4]){resolution}, 4);
		put32(file, 0);
	}
	put32(file, total);
}

static inline void put_enhanced_options(struct file *file, uint32_t interface, uint64_t time,
	unsigned number, uint32_t length, uint32_t wire_length, const struct file *options)
{
	uint32_t total = 32 + (length + 3) / 4 * 4 + (uint32_t)options->length;

	put32(file, 6);
	put32(file, total);
	put32(file, interface);
	put32(file, (uint32_t)(time >> 32));
	put32(file, (uint32_t)time);
	put32(file, length);
	put32(file, wire_length);
	put_packet_bytes(file, number, length, 4);
	put_bytes(file, options->bytes, options->length);
	put32(file, total);
}

static inline void put_enhanced(struct file *file, uint32_t interface, uint64_t time,
	unsigned number, uint32_t length, uint32_t wire_length)
{
	static const struct file none;

	put_enhanced_options(file, interface, time, number, length, wire_length, &none);
}

static inline void put_simple(
	struct file *file, unsigned number, uint32_t length, uint32_t wire_length)
{
	uint32_t total = 16 + (length + 3) / 4 * 4;

	put32(file, 3);
	put32(file, total);
	put32(file, wire_length);
	put_packet_bytes(file, number, length, 4);
	put32(file, total);
}

/* The obsolete Packet Block. */
static inline void put_old(
	struct file *file, uint16_t interface, uint64_t time, unsigned number, uint32_t length)
{
	uint32_t total = 32 + (length + 3) / 4 * 4;

	put32(file, 2);
	put32(file, total);
	put16(file, interface);
	put16(file, 0);
	put32(file, (uint32_t)(time >> 32));
	put32(file, (uint32_t)time);
	put32(file, length);
	put32(file, length);
	put_packet_bytes(file, number, length, 4);
	put32(file, total);
}

/* Saves the first `length` bytes under a new name in /tmp, for the caller to unlink and free. */
static inline char *save(const struct file *file, size_t length)
{
	char *path = strdup("/tmp/millrace-test-XXXXXX");
	int fd = mkstemp(path);

	assert(fd >= 0 && write(fd, file->bytes, length) == (ssize_t)length);
	close(fd);
	return path;
}
