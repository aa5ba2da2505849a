/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The packet that an ICMP or ICMPv6 error quotes (RFC 792; RFC 4443 section 3): errors are types
 * 3, 4, 5, 11 and 12 of ICMP and 1..4 of ICMPv6.
 *
 * The quoted packet was sent by the one who now receives the error, so its own source and destination make the key;
 * wire and zone are those of the error. An error that goes to anybody else quotes nothing that its receiver sent, and
 * is not believed.
 */

#include <stdbool.h>

#include "packet/extract.h"

/*
 * Reads the quoted packet of an error for which extract() set PACKET_ICMP_ERROR. Returns true and
 * fills `quoted` (key, hash, from, flags, fragment_id; bytes 0) when the quote has its addresses
 * and either ports or a protocol without ports; a quoted later fragment has PACKET_LATER_FRAGMENT
 * and ports 0. Of TCP the sequence number has to be there, too: tcp.seq; the rest of `tcp` is not filled.
 * Returns false when the quote is cut before that, or when its sender is not who the error goes to.
 */
bool extract_quote(const struct extract_options *options, const struct rte_mbuf *frame,
	const struct packet_info *error, struct packet_info *quoted);
