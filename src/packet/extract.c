/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/extract_common.h"
#include "packet/headers.h"

static void tcp_read(struct reader *reader, const struct ip_header *ip, struct packet_info *info)
{
	uint8_t scratch[TCP_MAX_OPTIONS];
	const uint8_t *header = reader_peek(reader, ip->upper, TCP_LENGTH, scratch);

	if (header == NULL || tcp_header_length(header) < TCP_LENGTH ||
		tcp_header_length(header) > ip->end - ip->upper)
		return;
	info->tcp = tcp_fields(header, ip->end - ip->upper);
	info->flags |= PACKET_TCP;
	if (!(info->tcp.flags & TCP_SYN))
		return;

	size_t at = ip->upper + TCP_LENGTH;
	size_t length = RTE_MIN(tcp_header_length(header) - TCP_LENGTH, reader->limit - at);

	if (length == 0)
		return;
	const uint8_t *options = reader_peek(reader, at, length, scratch);

	if (options != NULL)
		info->tcp.scale = tcp_scale(options, length);
}

/* RFC 792 (unreachable, source quench, redirect, time exceeded, parameter problem); RFC 4443. */
static bool icmp_is_error(uint8_t type, uint8_t version)
{
	if (version == 6)
		return type >= 1 && type <= 4;
	return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

static void icmp_read(struct reader *reader, const struct ip_header *ip, struct packet_info *info)
{
	uint8_t scratch[2];
	const uint8_t *type = reader_peek(reader, ip->upper, 1, scratch);

	if (type == NULL)
		return;
	const bool is_error = icmp_is_error(*type, ip->version);
	const uint8_t *both = reader_peek(reader, ip->upper, 2, scratch);

	if (is_error)
		info->flags |= PACKET_ICMP_ERROR;
	if (both != NULL)
		info->tcp.window = load_be16(both);
}

/* What else is known of a packet whose upper layer begins here. */
static void upper_read(struct reader *reader, const struct ip_header *ip, struct packet_info *info)
{
	if (ip->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT))
		return;
	if (ip->proto == PROTO_TCP) {
		tcp_read(reader, ip, info);
	} else if (ip->proto == (ip->version == 4 ? PROTO_ICMP : PROTO_ICMPV6)) {
		icmp_read(reader, ip, info);
	}
}

/* The common frame is none of these; nor is one with two tags, or of another protocol. */
static bool is_unplain(
	enum link_type type, const struct link_header *link, const struct ip_header *ip)
{
	const size_t header_length = ip->version == 4 ? IPV4_LENGTH : IPV6_LENGTH;

	const bool tags = link->end > ETHERNET_LENGTH + 2 * VLAN_TAG_LENGTH;

	/* other links are of captures: no NIC reads them */
	return (tags && type == LINK_ETHERNET) || ip->upper - link->end != header_length ||
	       !ip->has_length;
}

/* Any frame at all. */
static __rte_noinline enum extract_result extract_any(const struct extract_options *options,
	const struct rte_mbuf *frame, unsigned wire, struct packet_info *info)
{
	struct reader reader = reader_of(frame);
	struct link_header link;
	struct ip_header ip;
	uint32_t ports;

	if (!link_walk(&reader, extract_link(options, wire), &link))
		return EXTRACT_MALFORMED;
	if (link.ethertype != ETHERTYPE_IPV4 && link.ethertype != ETHERTYPE_IPV6)
		return EXTRACT_NON_IP;
	if (!ip_walk(&reader, link.end, link.ethertype == ETHERTYPE_IPV4 ? 4 : 6, &ip))
		return EXTRACT_MALFORMED;
	ports_read(&reader, &ip, &ports);

	struct key_parts parts = {
		.src = ip.src,
		.dst = ip.dst,
		.ports = ports,
		.zone = options->zone_vlan ? link.vlan : 0,
		.proto = ip.proto,
		.version_wire = FLOW_KEY_VERSION_WIRE(ip.version, wire),
	};

	*info = (struct packet_info){
		.fragment_id = ip.fragment_id,
		.bytes = frame->pkt_len,
		.l4_offset = offset_16(ip.upper),
		.flags = ip.flags,
	};
	if (ip.flags & PACKET_FRAGMENT) {
		info->fragment_offset = ip.fragment_offset;
		info->fragment_length =
			(uint16_t)(ip.end > ip.fragment ? (ip.end - ip.fragment + 7) / 8 : 0);
	}
	key_parts_write(&parts, options->secret, info);
	if (is_unplain(extract_link(options, wire), &link, &ip))
		info->flags |= PACKET_UNPLAIN;
	upper_read(&reader, &ip, info);
	return EXTRACT_IP;
}

enum extract_result extract(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, struct packet_info *info)
{
	const struct common common = {
		.wire = wire, .secret = options->secret, .zone_vlan = options->zone_vlan};

	if (likely(extract_link(options, wire) == LINK_ETHERNET) &&
		likely(extract_common(&common, frame, info) != 0))
		return EXTRACT_IP;
	return extract_any(options, frame, wire, info);
}

/* Of a header without options: RFC 1071. */
static bool is_ipv4_checksum_right(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_LENGTH; i += 2)
		sum += load_be16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/* Does the datagram have room for the upper layer's header, by that header's own word? */
static bool has_upper(struct reader *reader, const struct packet_info *info, size_t length)
{
	enum { UDP_LENGTH = 8, SCTP_LENGTH = 12, PROTO_SCTP = 132 };
	uint8_t scratch[TCP_LENGTH];
	const uint8_t *header;

	switch (info->key.proto) {
	case PROTO_TCP:
		header = reader_peek(reader, info->l4_offset, TCP_LENGTH, scratch);
		return header != NULL && tcp_header_length(header) >= TCP_LENGTH &&
		       tcp_header_length(header) <= length;
	case PROTO_UDP:
		header = reader_peek(reader, info->l4_offset, UDP_LENGTH, scratch);
		return header != NULL && load_be16(header + 4) >= UDP_LENGTH &&
		       load_be16(header + 4) <= length;
	case PROTO_SCTP:
		return length >= SCTP_LENGTH;
	default:
		return true;
	}
}

bool extract_is_plain(const struct rte_mbuf *frame, const struct packet_info *info)
{
	const bool ipv4 = flow_key_version(&info->key) == 4;
	const size_t header_length = ipv4 ? IPV4_LENGTH : IPV6_LENGTH;
	const uint64_t ip_sum = frame->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	const uint64_t l4_sum = frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	struct reader reader = reader_of(frame);
	uint8_t scratch[IPV6_LENGTH];

	if (info->flags & (PACKET_FRAGMENT | PACKET_CUT | PACKET_UNPLAIN) ||
		ip_sum == RTE_MBUF_F_RX_IP_CKSUM_BAD || l4_sum == RTE_MBUF_F_RX_L4_CKSUM_BAD ||
		info->l4_offset < ETHERNET_LENGTH + header_length)
		return false;
	const size_t offset = info->l4_offset - header_length;
	const uint8_t *header = reader_peek(&reader, offset, header_length, scratch);

	if (header == NULL || (ipv4 && !is_ipv4_checksum_right(header)))
		return false;
	const size_t length = ipv4 ? load_be16(header + 2) : header_length + load_be16(header + 4);

	if (length < header_length || offset + length > frame->pkt_len)
		return false;
	reader_lower_limit(&reader, offset + length);
	return has_upper(&reader, info, length - header_length);
}

void extract_set_upper(const struct extract_options *options, struct packet_info *info,
	uint8_t proto, rte_be16_t src_port, rte_be16_t dst_port)
{
	struct flow_key *key = &info->key;
	rte_be16_t ports[2] = {src_port, dst_port};
	struct key_parts parts = {
		.src = address_load(key->addr[info->from]),
		.dst = address_load(key->addr[!info->from]),
		.zone = key->zone,
		.proto = proto,
		.version_wire = key->version_wire,
	};

	memcpy(&parts.ports, ports, sizeof(ports));
	key_parts_write(&parts, options->secret, info);
}

/* Of the IP header at `header`; 0 where it cannot be. */
static size_t ip_length(const uint8_t *header, uint16_t ethertype)
{
	const size_t length = load_be16(header + (ethertype == ETHERTYPE_IPV4 ? 2 : 4));

	if (ethertype == ETHERTYPE_IPV4)
		return length >= IPV4_LENGTH ? length : 0;
	return length > 0 ? IPV6_LENGTH + length : 0;
}

static int32_t excess(
	const struct rte_mbuf *frame, uint32_t missing, size_t link_length, size_t length)
{
	const size_t there = frame->pkt_len - link_length;

	if (length == 0 || length > there + missing)
		length = there;
	return (int32_t)(frame->pkt_len - ETHERNET_LENGTH) - (int32_t)length;
}

static __rte_noinline int32_t excess_any(const struct extract_options *options,
	const struct rte_mbuf *frame, unsigned wire, uint32_t missing)
{
	struct reader reader = reader_of(frame);
	uint8_t scratch[8];
	struct link_header link;

	if (!link_walk(&reader, extract_link(options, wire), &link))
		return 0;
	const uint8_t *header = reader_peek(&reader, link.end, sizeof(scratch), scratch);

	return excess(
		frame, missing, link.end, header == NULL ? 0 : ip_length(header, link.ethertype));
}

int32_t extract_excess(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, uint32_t missing)
{
	const uint8_t *header = rte_pktmbuf_mtod(frame, const uint8_t *);

	if (likely(frame->data_len >= ETHERNET_LENGTH + IPV4_LENGTH &&
		    extract_link(options, wire) == LINK_ETHERNET)) {
		const uint16_t ethertype = load_be16(header + ETHERNET_LENGTH - 2);

		if (likely(ethertype == ETHERTYPE_IPV4 || ethertype == ETHERTYPE_IPV6))
			return excess(frame, missing, ETHERNET_LENGTH,
				ip_length(header + ETHERNET_LENGTH, ethertype));
	}
	return excess_any(options, frame, wire, missing);
}
