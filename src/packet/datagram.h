/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The identity of a fragmented datagram, on one wire and in one zone, as a keyed 64-bit fingerprint:
 * source, destination, protocol and identification for IPv4 (RFC 791 section 3.2); source,
 * destination and identification for IPv6, since next headers may differ from fragment to fragment
 * (RFC 8200 section 4.5). The two directions of a conversation have different datagrams.
 */

#include <stdint.h>

#include "packet/extract.h"

/* `info` is a fragment (first or later) as extract() or extract_quote() filled it. */
uint64_t datagram_fingerprint(const struct hash_secret *secret, const struct packet_info *info);
