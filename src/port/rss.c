/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/rss.h"

#include <string.h>

#include <netinet/in.h>

#include <rte_ethdev.h>
#include <rte_thash.h>

const uint8_t rss_key[RSS_KEY_BYTES] = {
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
	0x6d,
	0x5a,
};

static const uint64_t kind_flags[RSS_N_KINDS] = {
	[RSS_IPV4_TCP] = RTE_ETH_RSS_NONFRAG_IPV4_TCP,
	[RSS_IPV4_UDP] = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
	[RSS_IPV4_SCTP] = RTE_ETH_RSS_NONFRAG_IPV4_SCTP,
	[RSS_IPV4_OTHER] = RTE_ETH_RSS_NONFRAG_IPV4_OTHER,
	[RSS_IPV6_TCP] = RTE_ETH_RSS_NONFRAG_IPV6_TCP,
	[RSS_IPV6_UDP] = RTE_ETH_RSS_NONFRAG_IPV6_UDP,
	[RSS_IPV6_SCTP] = RTE_ETH_RSS_NONFRAG_IPV6_SCTP,
	[RSS_IPV6_OTHER] = RTE_ETH_RSS_NONFRAG_IPV6_OTHER,
};

enum rss_kind rss_kind(const struct flow_key *key)
{
	enum rss_kind first = flow_key_version(key) == 4 ? RSS_IPV4_TCP : RSS_IPV6_TCP;

	switch (key->proto) {
	case IPPROTO_TCP:
		return first;
	case IPPROTO_UDP:
		return first + (RSS_IPV4_UDP - RSS_IPV4_TCP);
	case IPPROTO_SCTP:
		return first + (RSS_IPV4_SCTP - RSS_IPV4_TCP);
	default:
		return first + (RSS_IPV4_OTHER - RSS_IPV4_TCP);
	}
}

uint32_t rss_hash(const struct flow_key *key)
{
	unsigned address_words = flow_key_version(key) == 4 ? 1 : 4;
	enum rss_kind kind = rss_kind(key);
	uint32_t words[9];
	unsigned n = 0;

	for (unsigned end = 0; end < 2; end++) {
		memcpy(&words[n], key->addr[end], address_words * sizeof(words[0]));
		n += address_words;
	}
	for (unsigned i = 0; i < n; i++)
		words[i] = rte_be_to_cpu_32(words[i]);
	if (kind != RSS_IPV4_OTHER && kind != RSS_IPV6_OTHER)
		words[n++] = (uint32_t)rte_be_to_cpu_16(key->port[0]) << 16 |
			     rte_be_to_cpu_16(key->port[1]);
	return rte_softrss(words, n, rss_key);
}

uint64_t rss_flags(uint64_t kinds)
{
	uint64_t flags = 0;

	for (unsigned kind = 0; kind < RSS_N_KINDS; kind++)
		if (kinds >> kind & 1)
			flags |= kind_flags[kind];
	return flags;
}

uint64_t rss_kinds(uint64_t flow_type_rss_offloads)
{
	uint64_t kinds = 0;

	for (unsigned kind = 0; kind < RSS_N_KINDS; kind++)
		if ((flow_type_rss_offloads & kind_flags[kind]) == kind_flags[kind])
			kinds |= UINT64_C(1) << kind;
	return kinds;
}
