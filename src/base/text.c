/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdio.h>

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
