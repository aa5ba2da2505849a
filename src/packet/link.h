/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a frame begins with. A port delivers Ethernet; a capture may have been taken where there is none.
 */

/* At most FLOW_MAX_WIRES of them: in replay a flow's wire is its link type. */
enum link_type {
	LINK_ETHERNET,
	LINK_RAW,      /* an IP header */
	LINK_SLL,      /* Linux cooked, version 1 */
	LINK_SLL2,     /* Linux cooked, version 2 */
	LINK_LOOPBACK, /* BSD loopback: an address family in 4 bytes of either byte order */
	LINK_PPP,      /* PPP, with or without HDLC-like framing, and Cisco's HDLC */
	LINK_PPPOE,    /* PPP over Ethernet, from the PPPoE header on */
	LINK_N_TYPES,
};

/* "ethernet", "raw", "linux_sll", "linux_sll2", "loopback", "ppp", "pppoe". */
const char *link_type_name(enum link_type type);
