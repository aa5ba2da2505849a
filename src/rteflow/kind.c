/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/kind.h"

#include <netinet/in.h>

static const struct {
	const char *name;
	uint8_t protocol;
} kinds[PROVIDER_N_KINDS] = {
	[PROVIDER_IPV4_TCP] = {"ipv4/tcp", IPPROTO_TCP},
	[PROVIDER_IPV4_UDP] = {"ipv4/udp", IPPROTO_UDP},
	[PROVIDER_IPV4_SCTP] = {"ipv4/sctp", IPPROTO_SCTP},
	[PROVIDER_IPV4_ICMP] = {"ipv4/icmp", IPPROTO_ICMP},
	[PROVIDER_IPV6_TCP] = {"ipv6/tcp", IPPROTO_TCP},
	[PROVIDER_IPV6_UDP] = {"ipv6/udp", IPPROTO_UDP},
	[PROVIDER_IPV6_SCTP] = {"ipv6/sctp", IPPROTO_SCTP},
	[PROVIDER_IPV6_ICMP] = {"ipv6/icmp6", IPPROTO_ICMPV6},
};

enum provider_kind provider_kind(const struct flow_key *key)
{
	const unsigned first = flow_key_version(key) == 6 ? PROVIDER_IPV6_TCP : PROVIDER_IPV4_TCP;

	for (unsigned kind = first; kind <= first + PROVIDER_IPV4_ICMP; kind++)
		if (kinds[kind].protocol == key->proto)
			return (enum provider_kind)kind;
	return PROVIDER_N_KINDS;
}

uint8_t provider_kind_protocol(enum provider_kind kind)
{
	return kinds[kind].protocol;
}

const char *provider_kind_name(enum provider_kind kind)
{
	return kind < PROVIDER_N_KINDS ? kinds[kind].name : "other";
}
