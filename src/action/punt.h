/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Why a router leaves a packet to the kernel. The names are what users see (punt_name()). */
enum punt_reason {
	PUNT_LOCAL,  /* to an address of the router's own, or a broadcast address of its links */
	PUNT_ARP_ND, /* ARP, or ICMPv6 of neighbour discovery */
	PUNT_NO_NEIGHBOUR, /* the link address of its next hop is not known yet */
	PUNT_TTL,	   /* its TTL or hop limit ends here */
	PUNT_TOO_BIG, /* for the MTU of its next hop: to be fragmented, or its sender to be told */
	PUNT_OPTIONS, /* IPv4 options, or IPv6 hop-by-hop options */
	PUNT_MULTICAST, /* to a multicast address, or from or to a link-local one */
	PUNT_NO_ROUTE,	/* no route, or one that has the kernel answer, or forward by itself */
	PUNT_OTHER,	/* neither IP nor ARP */
	PUNT_N_REASONS,
};

/* "local", "arp_nd", "no_neighbour", "ttl", "too_big", "options", "multicast", "no_route", "other". */
const char *punt_name(enum punt_reason reason);
/* One sentence, without the full stop. */
const char *punt_what(enum punt_reason reason);
