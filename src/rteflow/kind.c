/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/kind.h"

#include <netinet/in.h>

static const char *const kind_names[PROVIDER_N_KINDS] = {"ipv4/tcp", "ipv4/udp", "ipv4/sctp",
	"ipv4/icmp", "ipv6/tcp", "ipv6/udp", "ipv6/sctp", "ipv6/icmp6"};

enum provider_kind provider_kind(const struct flow_key *key)
{
	bool six = flow_key_version(key) == 6;

	switch (key->proto) {
	case IPPROTO_TCP:
		return six ? PROVIDER_IPV6_TCP : PROVIDER_IPV4_TCP;
	case IPPROTO_UDP:
		return six ? PROVIDER_IPV6_UDP : PROVIDER_IPV4_UDP;
	case IPPROTO_SCTP:
		return six ? PROVIDER_IPV6_SCTP : PROVIDER_IPV4_SCTP;
	case IPPROTO_ICMP:
		return six ? PROVIDER_N_KINDS : PROVIDER_IPV4_ICMP;
	case IPPROTO_ICMPV6:
		return six ? PROVIDER_IPV6_ICMP : PROVIDER_N_KINDS;
	default:
		return PROVIDER_N_KINDS;
	}
}

const char *provider_kind_name(enum provider_kind kind)
{
	return kind < PROVIDER_N_KINDS ? kind_names[kind] : "other";
}
