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
	const bool has_length = length >= header_length;

	/* 0 is what segmentation offload leaves in captures; other lengths below are nonsense. */
	if (!has_length)
		length = reader->limit - offset;
	*ip = (struct ip_header){
		.src = address_load_ipv4(header + 12),
		.dst = address_load_ipv4(header + 16),
		.upper = offset + header_length,
		.end = offset + length,
		.version = 4,
		.proto = header[9],
		.has_length = has_length,
	};
	/* RFC 791 section 3.1: 13 bits of offset below the more-fragments bit. */
	if (fragment & 0x3fff) {
		ip->fragment = ip->upper;
		ip->fragment_id = load_be16(header + 4) | (uint32_t)header[9] << 16;
		ip->fragment_offset = fragment & 0x1fff;
		if (fragment & 0x2000)
			ip->fragment_offset |= PACKET_MORE_FRAGMENTS;
		ip->flags = fragment & 0x1fff ? PACKET_LATER_FRAGMENT : PACKET_FIRST_FRAGMENT;
	}
	return true;
}

/* IPv4 knows only one of them: RFC 4302 section 3.1.1 puts the authentication header in both. */
bool proto_is_extension(uint8_t version, uint8_t proto)
{
	if (version == 4)
		return proto == EXT_AUTHENTICATION;
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
	ip->fragment = ip->upper + EXT_LENGTH;
	ip->fragment_id = load_be32(header + 4);
	ip->fragment_offset = fragment >> 3;
	if (fragment & 1)
		ip->fragment_offset |= PACKET_MORE_FRAGMENTS;
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

	/* What follows a later fragment's header is the middle of the packet, whatever it names. */
	while (!(ip->flags & PACKET_LATER_FRAGMENT) && proto_is_extension(ip->version, ip->proto)) {
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
	}
}

static bool ipv6_walk(struct reader *reader, size_t offset, struct ip_header *ip)
{
	uint8_t scratch[IPV6_LENGTH];
	const uint8_t *header = reader_peek(reader, offset, IPV6_LENGTH, scratch);

	if (header == NULL || header[0] >> 4 != 6)
		return false;

	size_t length = IPV6_LENGTH + (size_t)load_be16(header + 4);
	const bool has_length = length != IPV6_LENGTH;

	/* A jumbogram (RFC 2675), what segmentation offload leaves in captures, or nothing at all. */
	if (!has_length)
		length = reader->limit - offset;
	*ip = (struct ip_header){
		.src = address_load(header + 8),
		.dst = address_load(header + 24),
		.upper = offset + IPV6_LENGTH,
		.end = offset + length,
		.version = 6,
		.proto = header[6],
		.has_length = has_length,
	};
	return true;
}

bool ip_walk(struct reader *reader, size_t offset, unsigned version, struct ip_header *ip)
{
	if (!(version == 4 ? ipv4_walk(reader, offset, ip) : ipv6_walk(reader, offset, ip)))
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
