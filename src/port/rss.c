/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/rss.h"

#include <netinet/in.h>

#include <rte_ethdev.h>

/* Bits of a hash that choose an entry of the table. */
#define ENTRY_BITS 7
/* So many neighbouring bits of a packet have to reach all of them. */
#define NEIGHBOURS 8

static uint16_t rotate(uint16_t pattern, unsigned by)
{
	return (uint16_t)(pattern << by | pattern >> (16 - by) % 16);
}

/* Do these bits of a 16-bit word, `first` and up, reach every entry? Gauss's elimination. */
static bool reaches_all(uint16_t pattern, unsigned first)
{
	unsigned rows[NEIGHBOURS];
	unsigned rank = 0;

	for (unsigned i = 0; i < NEIGHBOURS; i++)
		rows[i] = rotate(pattern, (15 - (first + i) % 16) % 16) & ((1 << ENTRY_BITS) - 1);
	for (unsigned bit = 0; bit < ENTRY_BITS; bit++) {
		unsigned pivot = rank;

		while (pivot < NEIGHBOURS && !(rows[pivot] >> bit & 1))
			pivot++;
		if (pivot == NEIGHBOURS)
			return false;

		unsigned row = rows[pivot];

		rows[pivot] = rows[rank];
		rows[rank++] = row;
		for (unsigned i = rank; i < NEIGHBOURS; i++)
			if (rows[i] >> bit & 1)
				rows[i] ^= row;
	}
	return true;
}

static bool spreads(uint16_t pattern)
{
	/* with an even number of ones the rotations are not independent */
	if (__builtin_popcount(pattern) % 2 == 0)
		return false;
	for (unsigned first = 0; first < 16; first++)
		if (!reaches_all(pattern, first))
			return false;
	return true;
}

uint16_t rss_pattern(uint16_t random)
{
	/* an odd step meets every pattern */
	while (!spreads(random))
		random = (uint16_t)(random + 0x9e37);
	return random;
}

void rss_key(uint16_t pattern, uint8_t key[RSS_KEY_BYTES])
{
	for (unsigned i = 0; i < RSS_KEY_BYTES; i += 2) {
		key[i] = (uint8_t)(pattern >> 8);
		key[i + 1] = (uint8_t)pattern;
	}
}

/* Any of these will do, drivers differ; what they offer of it is asked for. */
static const uint64_t flags_of[RSS_N_KINDS] = {
	[RSS_IPV4_TCP] = RTE_ETH_RSS_NONFRAG_IPV4_TCP,
	[RSS_IPV4_UDP] = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
	[RSS_IPV4_SCTP] = RTE_ETH_RSS_NONFRAG_IPV4_SCTP,
	[RSS_IPV4_OTHER] = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER,
	[RSS_IPV6_TCP] = RTE_ETH_RSS_NONFRAG_IPV6_TCP,
	[RSS_IPV6_UDP] = RTE_ETH_RSS_NONFRAG_IPV6_UDP,
	[RSS_IPV6_SCTP] = RTE_ETH_RSS_NONFRAG_IPV6_SCTP,
	[RSS_IPV6_OTHER] = RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER,
};

uint64_t rss_flags(uint64_t kinds)
{
	uint64_t flags = 0;

	for (unsigned kind = 0; kind < RSS_N_KINDS; kind++)
		if (kinds >> kind & 1)
			flags |= flags_of[kind];
	/* fragments belong to no kind, but they need not all come by one queue */
	if (kinds >> RSS_IPV4_OTHER & 1)
		flags |= RTE_ETH_RSS_FRAG_IPV4;
	if (kinds >> RSS_IPV6_OTHER & 1)
		flags |= RTE_ETH_RSS_FRAG_IPV6;
	return flags;
}

uint64_t rss_kinds(uint64_t flow_type_rss_offloads)
{
	uint64_t kinds = 0;

	for (unsigned kind = 0; kind < RSS_N_KINDS; kind++)
		if (flow_type_rss_offloads & flags_of[kind])
			kinds |= UINT64_C(1) << kind;
	return kinds;
}

/*
 * Toeplitz takes, for each bit of the input that is 1, the 32 bits of the key that begin there. With a
 * key of period 16 these depend on the place of the bit within its 16-bit word alone: the words may
 * be folded into one by XOR first. That is also why the order of the fields does not matter.
 */
static uint32_t toeplitz(uint16_t pattern, uint16_t folded)
{
	uint32_t window = (uint32_t)pattern << 16 | pattern;
	uint32_t hash = 0;

	for (unsigned bit = 0; bit < 16; bit++) {
		if (folded >> (15 - bit) & 1)
			hash ^= window;
		window = window << 1 | window >> 31;
	}
	return hash;
}

static uint16_t fold(const uint8_t *bytes, unsigned n)
{
	uint16_t folded = 0;

	for (unsigned i = 0; i < n; i += 2)
		folded ^= (uint16_t)(bytes[i] << 8 | bytes[i + 1]);
	return folded;
}

uint32_t rss_hash(uint16_t pattern, const struct flow_key *key)
{
	unsigned length = flow_key_version(key) == 4 ? 4 : 16;
	enum rss_kind kind = rss_kind(key);
	uint16_t folded = fold(key->addr[0], length) ^ fold(key->addr[1], length);

	if (kind != RSS_IPV4_OTHER && kind != RSS_IPV6_OTHER)
		folded ^= rte_be_to_cpu_16(key->port[0]) ^ rte_be_to_cpu_16(key->port[1]);
	return toeplitz(pattern, folded);
}
