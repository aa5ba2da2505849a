/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/punt.h"

static const struct {
	const char *name, *what;
} punts[PUNT_N_REASONS] = {
	[PUNT_LOCAL] = {"local",
		"to an address of the router, or a broadcast address of its links"},
	[PUNT_ARP_ND] = {"arp_nd", "ARP, or ICMPv6 of neighbour discovery"},
	[PUNT_NO_NEIGHBOUR] = {"no_neighbour", "the link address of its next hop is not known"},
	[PUNT_TTL] = {"ttl", "its TTL or hop limit ends here"},
	[PUNT_TOO_BIG] = {"too_big", "larger than the MTU of its next hop"},
	[PUNT_OPTIONS] = {"options", "it has IPv4 options, or IPv6 hop-by-hop options"},
	[PUNT_MULTICAST] = {"multicast", "to a multicast address, or from or to a link-local one"},
	[PUNT_NO_ROUTE] = {"no_route",
		"it has no route, or one that has the kernel answer or forward by itself"},
	[PUNT_OTHER] = {"other", "it is neither IP nor ARP"},
};

const char *punt_name(enum punt_reason reason)
{
	return punts[reason].name;
}

const char *punt_what(enum punt_reason reason)
{
	return punts[reason].what;
}
