/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The packet that tells a sender that its packet was refused: a TCP reset, or an ICMP destination unreachable. It goes
 * back the way that the packet came, with the addresses of all layers exchanged, as if the destination had sent it.
 *
 * A reset has the numbers of RFC 9293 section 3.10.7.1. An ICMP error quotes the packet from its IP header on: up to
 * 576 bytes in all over IPv4 (RFC 1812 section 4.3.2.3), up to 1,280 over IPv6 (RFC 4443 section 2.4).
 *
 * There is no answer to a reset, to an ICMP error or redirect, to a later fragment, to multicast and broadcast of either
 * layer, to and from addresses that are no single host's (RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7, RFC 4443
 * section 2.4), to a packet whose headers are cut, whose IPv4 checksum is wrong, or which has more than 8 VLAN tags, nor
 * to the first fragment of a TCP segment without an acknowledgment, whose length is not known.
 *
 * Pure: no state, callable from any thread. The frame may have any number of segments.
 */

#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* The answers that a sender may get. */
enum reject_with {
	REJECT_USUAL, /* TCP: a reset; UDP: port unreachable; all else: administratively prohibited */
	REJECT_TCP_RESET, /* TCP: a reset; all else: nothing */
	REJECT_PORT,	  /* port unreachable, also TCP */
	REJECT_HOST,	  /* host unreachable; over IPv6 address unreachable */
	REJECT_ADMIN,	  /* administratively prohibited */
	REJECT_N_WITH,
};

/* An answer is at most so long: Ethernet with 8 tags, and 1,280 bytes. */
#define REJECT_TAGS_MAX 8
#define REJECT_MAX (14 + 4 * REJECT_TAGS_MAX + 1280)
/* No shorter frame is sent: zeros fill it up. */
#define REJECT_MIN 60

/*
 * Writes the answer to an Ethernet frame into `answer`, of which `room` bytes are there: with less than REJECT_MAX
 * less is quoted. Returns its length; 0: there is none.
 */
size_t reject_build(
	const struct rte_mbuf *frame, enum reject_with with, uint8_t *answer, size_t room);
