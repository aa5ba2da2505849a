/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What edits do to a packet. No state; any thread. */

#include <rte_mbuf.h>

#include "drivers/flowsim/match/actions.h"

/*
 * Edits a packet: one segment or more, headers in the first; checksums of IPv4, TCP, UDP and
 * ICMPv6 are kept right (RFC 1624), a UDP checksum of 0 stays. What does not apply to the packet (a VLAN
 * edit without a tag, an IPv4 address in an IPv6 packet) changes nothing. Bytes that somebody else may
 * read are copied first: *packet may be another mbuf then. False when the packet is to be dropped (TTL;
 * no room for a tag, no memory for a copy); it is the caller's still.
 */
bool sim_edit_packet(const struct sim_edit edits[], unsigned n, struct rte_mbuf **packet);

/* A packet with the same bytes, all its own, from the pool that these lie in; NULL without memory. */
struct rte_mbuf *sim_packet_copy(struct rte_mbuf *packet);
