/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *text_grouped(char buffer[TEXT_NUMBER_MAX], uint64_t number)
{
	char reversed[TEXT_NUMBER_MAX];
	unsigned length = 0, digits = 0;

	do {
		if (digits > 0 && digits % 3 == 0)
			reversed[length++] = ',';
		reversed[length++] = (char)('0' + number % 10);
		number /= 10;
		digits++;
	} while (number > 0);
	for (unsigned i = 0; i < length; i++)
		buffer[i] = reversed[length - 1 - i];
	buffer[length] = '\0';
	return buffer;
}

/* 999.96 must not come out as "1000.0 kB": the next unit begins where rounding would reach it. */
static const char *scaled(
	char buffer[TEXT_NUMBER_MAX], double value, const char *const units[], unsigned n_units)
{
	unsigned unit = 0;

	while (value >= 999.5 && unit + 1 < n_units) {
		value /= 1000;
		unit++;
	}
	const char *format = unit > 0 && value < 99.95 ? "%.1f %s" : "%.0f %s";

	snprintf(buffer, TEXT_NUMBER_MAX, format, value, units[unit]);
	return buffer;
}

const char *text_bytes(char buffer[TEXT_NUMBER_MAX], uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};

	return scaled(buffer, (double)bytes, units, sizeof(units) / sizeof(units[0]));
}

const char *text_rate(char buffer[TEXT_NUMBER_MAX], double rate)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};

	/* not a number, or nothing to divide by: no rate */
	if (!(rate > 0 && rate < 1e18))
		rate = 0;
	return scaled(buffer, rate, units, sizeof(units) / sizeof(units[0]));
}

const char *text_printable(char *buffer, size_t size, const char *name)
{
	size_t i = 0;

	for (; name[i] != '\0' && i + 1 < size; i++) {
		unsigned char byte = (unsigned char)name[i];
		unsigned char before = i > 0 ? (unsigned char)name[i - 1] : 0;

		buffer[i] = byte < 0x20 || byte == 0x7f ? '?' : name[i];
		/* U+0080 to U+009F control a terminal too: in UTF-8 0xc2 and one byte more */
		if (before == 0xc2 && byte >= 0x80 && byte <= 0x9f)
			buffer[i - 1] = buffer[i] = '?';
	}
	buffer[i] = '\0';
	return buffer;
}

/* The character of two or three bytes that begins here, and their number; 0: there is none. */
static uint32_t read_character(const char *text, size_t *length)
{
	const unsigned char *bytes = (const unsigned char *)text;

	*length = bytes[0] >= 0xe0 ? 3 : 2;
	if (bytes[0] < 0xc2 || bytes[0] > 0xef)
		return 0;
	for (size_t i = 1; i < *length; i++)
		if (bytes[i] < 0x80 || bytes[i] > 0xbf)
			return 0;
	if (*length == 2)
		return (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu);
	return (bytes[0] & 0x0fu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
}

/* Blanks that are not the usual one, soft hyphens, and marks for the direction or the joining of letters. */
static bool is_invisible(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00a0, 0x00a0},
		{0x00ad, 0x00ad},
		{0x034f, 0x034f},
		{0x061c, 0x061c},
		{0x1680, 0x1680},
		{0x180e, 0x180e},
		{0x2000, 0x200f},
		{0x2028, 0x202f},
		{0x205f, 0x206f},
		{0x3000, 0x3000},
		{0xfeff, 0xfeff},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	return false;
}

const char *text_visible(char *buffer, size_t size, const char *word)
{
	size_t at = 0;

	text_printable(buffer, size, word);
	while (*word != '\0' && at + 1 < size) {
		size_t length;
		const uint32_t character = read_character(word, &length);

		if (is_invisible(character)) {
			const int n =
				snprintf(buffer + at, size - at, "<U+%04X>", (unsigned)character);

			at += (size_t)n;
			word += length;
			if (at < size)
				text_printable(buffer + at, size - at, word);
		} else {
			at++;
			word++;
		}
	}
	return buffer;
}

size_t text_byte_order_mark(const char *text, size_t size)
{
	static const char mark[] = {'\xef', '\xbb', '\xbf'};

	return size >= sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
}
