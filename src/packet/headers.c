/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/headers.h"

enum {
	EXT_HOP_BY_HOP = 0,
	EXT_ROUTING = 43,
	EXT_FRAGMENT = 44,
	EXT_AUTHENTICATION = 51,
	EXT_DESTINATION = 60,
	EXT_MOBILITY = 135,
	EXT_HIP = 139,
	EXT_SHIM6 = 140,
	EXT_LENGTH = 8, /* no extension header is shorter */
};

const uint8_t *reader_gather(
	const struct rte_mbuf *segment, size_t offset, size_t n, uint8_t *scratch)
{
	size_t done = 0;

	for (; segment != NULL; segment = segment->next) {
		size_t part = segment->data_len - offset;

		if (part > n - done)
			part = n - done;
		memcpy(scratch + done, rte_pktmbuf_mtod_offset(segment, const uint8_t *, offset),
			part);
		done += part;
		if (done == n)
			return scratch;
		offset = 0;
	}
	return NULL;
}

bool link_walk(struct reader *reader, struct link_header *link)
{
	uint8_t scratch[VLAN_TAG_LENGTH];
	const uint8_t *type = reader_peek(reader, ETHERNET_LENGTH - 2, 2, scratch);

	if (type == NULL)
		return false;
	*link = (struct link_header){.end = ETHERNET_LENGTH, .ethertype = load_be16(type)};
	while (ethertype_is_vlan(link->ethertype)) {
		const uint8_t *tag = reader_peek(reader, link->end, VLAN_TAG_LENGTH, scratch);

		if (tag == NULL)
			return false;
		if (link->end == ETHERNET_LENGTH)
			link->vlan = load_be16(tag) & 0x0fff;
		link->ethertype = load_be16(tag + 2);
		link->end += VLAN_TAG_LENGTH;
	}
	return true;
}

static bool ipv4_walk(struct reader *reader, size_t offset, struct ip_header *ip)
{
	uint8_t scratch[IPV4_LENGTH];
	const uint8_t *header = reader_peek(reader, offset, IPV4_LENGTH, scratch);

	if (header == NULL || header[0] >> 4 != 4)
		return false;

	size_t header_length = (header[0] & 0x0fu) * 4;
	size_t length = load_be16(header + 2);
	uint16_t fragment = load_be16(header + 6);

	if (header_length < IPV4_LENGTH || !reader_has(reader, offset, header_length))
		return false;
	/* 0 is what segmentation offload leaves in captures; other lengths below are nonsense. */
	if (length < header_length)
		length = reader->limit - offset;
	*ip = (struct ip_header){
		.src = address_load_ipv4(header + 12),
		.dst = address_load_ipv4(header + 16),
		.upper = offset + header_length,
		.end = offset + length,
		.version = 4,
		.proto = header[9],
	};
	/* RFC 791 section 3.1: 13 bits of offset below the more-fragments bit. */
	if (fragment & 0x3fff) {
		ip->fragment_id = load_be16(header + 4);
		ip->flags = fragment & 0x1fff ? PACKET_LATER_FRAGMENT : PACKET_FIRST_FRAGMENT;
	}
	return true;
}

static bool is_extension(uint8_t proto)
{
	switch (proto) {
	case EXT_HOP_BY_HOP:
	case EXT_ROUTING:
	case EXT_FRAGMENT:
	case EXT_AUTHENTICATION:
	case EXT_DESTINATION:
	case EXT_MOBILITY:
	case EXT_HIP:
	case EXT_SHIM6:
		return true;
	default:
		return false;
	}
}

/* RFC 8200 section 4.5. One with offset 0 and nothing to come is no fragment (RFC 6946). */
static void fragment_read(const uint8_t *header, struct ip_header *ip)
{
	uint16_t fragment = load_be16(header + 2);

	if ((fragment & 0xfff9) == 0)
		return;
	ip->fragment_id = load_be32(header + 4);
	ip->flags = fragment & 0xfff8 ? PACKET_LATER_FRAGMENT : PACKET_FIRST_FRAGMENT;
}

/*
 * Lengths: RFC 8200 section 4.2 counts units of 8 bytes beyond the first, RFC 4302 section 2.2 units
 * of 4 bytes beyond the first two. A header's own body need not be there: when it is cut, the next
 * one is missing and tells it.
 */
static void extensions_walk(struct reader *reader, struct ip_header *ip)
{
	uint8_t scratch[EXT_LENGTH];

	while (is_extension(ip->proto)) {
		const uint8_t *header = reader_peek(reader, ip->upper, EXT_LENGTH, scratch);

		if (header == NULL) {
			ip->flags |= PACKET_CUT;
			return;
		}
		if (ip->proto == EXT_FRAGMENT) {
			fragment_read(header, ip);
			ip->upper += EXT_LENGTH;
		} else if (ip->proto == EXT_AUTHENTICATION) {
			ip->upper += (header[1] + 2u) * 4;
		} else {
			ip->upper += (header[1] + 1u) * 8;
		}
		ip->proto = header[0];
		/* What follows is the middle of the packet, whatever the header names it. */
		if (ip->flags & PACKET_LATER_FRAGMENT)
			return;
	}
}

static bool ipv6_walk(struct reader *reader, size_t offset, struct ip_header *ip)
{
	uint8_t scratch[IPV6_LENGTH];
	const uint8_t *header = reader_peek(reader, offset, IPV6_LENGTH, scratch);

	if (header == NULL || header[0] >> 4 != 6)
		return false;

	size_t length = IPV6_LENGTH + (size_t)load_be16(header + 4);

	/* A jumbogram (RFC 2675), what segmentation offload leaves in captures, or nothing at all. */
	if (length == IPV6_LENGTH)
		length = reader->limit - offset;
	*ip = (struct ip_header){
		.src = address_load(header + 8),
		.dst = address_load(header + 24),
		.upper = offset + IPV6_LENGTH,
		.end = offset + length,
		.version = 6,
		.proto = header[6],
	};
	return true;
}

bool ip_walk(struct reader *reader, size_t offset, unsigned version, struct ip_header *ip)
{
	if (version == 4) {
		if (!ipv4_walk(reader, offset, ip))
			return false;
		reader_lower_limit(reader, ip->end);
		return true;
	}
	if (!ipv6_walk(reader, offset, ip))
		return false;
	reader_lower_limit(reader, ip->end);
	extensions_walk(reader, ip);
	return true;
}

bool proto_has_ports(uint8_t proto)
{
	switch (proto) {
	case PROTO_TCP:
	case PROTO_UDP:
	case 33:  /* DCCP, RFC 4340 section 5.1 */
	case 132: /* SCTP, RFC 9260 section 3.1 */
	case 136: /* UDP-Lite, RFC 3828 section 3 */
		return true;
	default:
		return false;
	}
}

void ports_read(struct reader *reader, struct ip_header *ip, uint32_t *ports)
{
	uint8_t scratch[4];

	*ports = 0;
	if (ip->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT) || !proto_has_ports(ip->proto))
		return;

	const uint8_t *bytes = reader_peek(reader, ip->upper, sizeof(scratch), scratch);

	if (bytes == NULL) {
		ip->flags |= PACKET_CUT;
		return;
	}
	*ports = load_32(bytes);
	ip->flags |= PACKET_HAS_PORTS;
}
