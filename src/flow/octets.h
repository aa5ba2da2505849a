/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Octets of IP packets. Records count bytes of frames; what a frame has beside its Ethernet header and its IP packet is
 * its excess: VLAN tags and padding, and less than nothing where it has a shorter header than Ethernet's, or its
 * capture cut it. Most frames have none. A shard that counts octets keeps the sum of it beside each record, and no record has to be touched for a
 * frame without.
 */

#include <stdint.h>

#include "flow/record.h"

#define FLOW_ETHERNET_HEADER 14

/* Of all packets of a flow, by the key's end that they come from. */
struct flow_excess {
	int64_t from[2];
};

static inline uint64_t flow_octets(
	const struct flow_record *record, unsigned end, const struct flow_excess *excess)
{
	return flow_bytes(record, end) - FLOW_ETHERNET_HEADER * flow_packets(record, end) -
	       (uint64_t)excess->from[end];
}
