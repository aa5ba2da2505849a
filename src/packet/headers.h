/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Inside of packet/: the walk over a frame's headers, for any frame. What extract.h says of cut and
 * impossible headers is decided here, for frames and for the packets that errors quote alike.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet/link.h"
#include "packet/reader.h"
#include "packet/words.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERNET_LENGTH = 14,
	VLAN_TAG_LENGTH = 4,
	IPV4_LENGTH = 20, /* without options */
	IPV6_LENGTH = 40, /* without extension headers */
	TCP_LENGTH = 20,  /* without options */
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ICMPV6 = 58,
};

static inline bool ethertype_is_vlan(uint16_t ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100 ||
	       ethertype == 0x9200;
}

struct link_header {
	size_t end;	    /* where the next layer starts */
	uint16_t ethertype; /* of what comes after the tags */
	uint16_t vlan;	    /* VLAN id of the outermost tag, 0 without one */
};

struct ip_header {
	struct address src;
	struct address dst;
	size_t upper;	 /* where the upper layer starts, or the extension header that is cut */
	size_t end;	 /* where the datagram ends by its own word; may lie above the frame */
	size_t fragment; /* of a fragment: where its part of the datagram starts, else 0 */
	uint32_t fragment_id;	  /* of a fragment as packet_info has it, else 0 */
	uint16_t fragment_offset; /* of a fragment, as in packet_info */
	uint8_t version;	  /* 4 or 6 */
	uint8_t proto;
	uint8_t flags;	 /* PACKET_FIRST_FRAGMENT, PACKET_LATER_FRAGMENT, PACKET_CUT */
	bool has_length; /* `end` is what it says, and not just where the frame ends */
};

/* The link's own header and all VLAN tags. Returns false when they are cut. */
bool link_walk(struct reader *reader, enum link_type type, struct link_header *link);

/*
 * The IP header of `version` at `offset`, and the extension headers behind it. Returns false when it is
 * cut or impossible. The reader is left with the datagram's end as its limit.
 */
bool ip_walk(struct reader *reader, size_t offset, unsigned version, struct ip_header *ip);

/* As packet_info has it. */
static inline uint16_t offset_16(size_t offset)
{
	return offset < UINT16_MAX ? (uint16_t)offset : UINT16_MAX;
}

/* A header that another header follows, in IPv6, or of these the one that IPv4 has, too. */
bool proto_is_extension(uint8_t version, uint8_t proto);

/* True for the protocols whose first four bytes are ports. */
bool proto_has_ports(uint8_t proto);

/*
 * Reads the ports, as they lie in the packet, into `ports` (else 0), and says in ip->flags whether
 * they were there.
 */
void ports_read(struct reader *reader, struct ip_header *ip, uint32_t *ports);
