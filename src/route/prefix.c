/* SPDX-License-Identifier: BSD-3-Clause */
#include "route/prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>

struct route_bits route_bits_of(const uint8_t addr[16], unsigned version)
{
	struct route_bits bits = {0, 0};
	uint64_t word;
	uint32_t v4;

	if (version == 4) {
		memcpy(&v4, addr, sizeof(v4));
		bits.high = (uint64_t)rte_be_to_cpu_32(v4) << 32;
		return bits;
	}
	memcpy(&word, addr, sizeof(word));
	bits.high = rte_be_to_cpu_64(word);
	memcpy(&word, addr + 8, sizeof(word));
	bits.low = rte_be_to_cpu_64(word);
	return bits;
}

void route_bits_to(struct route_bits bits, uint8_t addr[16])
{
	uint64_t word = rte_cpu_to_be_64(bits.high);

	memcpy(addr, &word, sizeof(word));
	word = rte_cpu_to_be_64(bits.low);
	memcpy(addr + 8, &word, sizeof(word));
}

struct route_bits route_bits_cut(struct route_bits bits, unsigned length)
{
	if (length == 0)
		return (struct route_bits){0, 0};
	if (length <= 64)
		return (struct route_bits){bits.high & ~UINT64_C(0) << (64 - length), 0};
	bits.low &= length >= 128 ? ~UINT64_C(0) : ~UINT64_C(0) << (128 - length);
	return bits;
}

bool route_prefix_valid(const struct route_prefix *prefix)
{
	if ((prefix->version != 4 || prefix->length > 32) &&
		(prefix->version != 6 || prefix->length > 128))
		return false;
	struct route_bits bits = route_bits_of(prefix->addr, prefix->version);
	struct route_bits cut = route_bits_cut(bits, prefix->length);

	return bits.high == cut.high && bits.low == cut.low;
}

/* The number behind the slash; -1 when it is none. */
static int parse_length(const char *text, unsigned most)
{
	unsigned length = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		length = length * 10 + (unsigned)(*text - '0');
		if (length > most)
			return -1;
	}
	return (int)length;
}

int route_prefix_parse(struct route_prefix *prefix, const char *text, struct error *error)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	bool is_v6 = memchr(text, ':', n) != NULL;
	unsigned most = is_v6 ? 128 : 32;
	char address[INET6_ADDRSTRLEN];

	*prefix = (struct route_prefix){.version = is_v6 ? 6 : 4, .length = (uint8_t)most};
	if (n < sizeof(address)) {
		memcpy(address, text, n);
		address[n] = '\0';
	}
	if (n >= sizeof(address) ||
		inet_pton(is_v6 ? AF_INET6 : AF_INET, address, prefix->addr) != 1)
		return error_set(error, -EINVAL, "not an address");
	if (!slash)
		return 0;
	int length = parse_length(slash + 1, most);

	if (length < 0)
		return error_set(error, -EINVAL, "the length of the prefix must be 0 to %u", most);
	prefix->length = (uint8_t)length;
	if (!route_prefix_valid(prefix))
		return error_set(error, -EINVAL, "the address has bits set beyond its length");
	return 0;
}

const char *route_prefix_format(const struct route_prefix *prefix, char text[ROUTE_PREFIX_TEXT_MAX])
{
	char address[INET6_ADDRSTRLEN] = "";

	inet_ntop(
		prefix->version == 6 ? AF_INET6 : AF_INET, prefix->addr, address, sizeof(address));
	snprintf(text, ROUTE_PREFIX_TEXT_MAX, "%s/%u", address, prefix->length);
	return text;
}
