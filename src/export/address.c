/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/address.h"

#include <stdbool.h>

static char *write_byte(char *out, unsigned byte)
{
	if (byte >= 100)
		*out++ = (char)('0' + byte / 100);
	if (byte >= 10)
		*out++ = (char)('0' + byte / 10 % 10);
	*out++ = (char)('0' + byte % 10);
	return out;
}

static char *write_ipv4(char *out, const uint8_t address[4])
{
	for (unsigned i = 0; i < 4; i++) {
		if (i > 0)
			*out++ = '.';
		out = write_byte(out, address[i]);
	}
	return out;
}

static char *write_group(char *out, unsigned group)
{
	static const char digits[] = "0123456789abcdef";

	if (group >= 0x1000)
		*out++ = digits[group >> 12];
	if (group >= 0x100)
		*out++ = digits[group >> 8 & 15];
	if (group >= 0x10)
		*out++ = digits[group >> 4 & 15];
	*out++ = digits[group & 15];
	return out;
}

/* Finds the first of the longest runs of zero groups; a single group is none. */
static unsigned longest_zeros(const uint16_t groups[8], unsigned *length)
{
	unsigned best = 8, run = 0;

	*length = 1;
	for (unsigned i = 0; i < 8; i++) {
		run = groups[i] == 0 ? run + 1 : 0;
		if (run > *length) {
			*length = run;
			best = i + 1 - run;
		}
	}
	return best;
}

static char *write_ipv6(char *out, const uint8_t address[16])
{
	uint16_t groups[8];
	unsigned length;

	for (unsigned i = 0; i < 8; i++)
		groups[i] = (uint16_t)(address[2 * i] << 8 | address[2 * i + 1]);

	unsigned zeros = longest_zeros(groups, &length);
	/* ::1.2.3.4 and ::ffff:1.2.3.4 (RFC 4291 section 2.5.5) end as IPv4 */
	bool mapped = zeros == 0 && (length == 6 || (length == 5 && groups[5] == 0xffff));
	unsigned n_groups = mapped ? 6 : 8;

	for (unsigned i = 0; i < n_groups; i++) {
		if (i == zeros) {
			*out++ = ':';
			i += length - 1;
			if (i == 7)
				*out++ = ':';
			continue;
		}
		if (i > 0)
			*out++ = ':';
		out = write_group(out, groups[i]);
	}
	if (mapped) {
		*out++ = ':';
		out = write_ipv4(out, address + 12);
	}
	return out;
}

size_t export_address(char *out, unsigned version, const uint8_t address[16])
{
	char *end = version == 4 ? write_ipv4(out, address) : write_ipv6(out, address);

	return (size_t)(end - out);
}
