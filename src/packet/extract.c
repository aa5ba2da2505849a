/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/extract.h"

#include <rte_branch_prediction.h>

#include "packet/headers.h"

/* RFC 9293 section 3.1, RFC 7323 section 2. */
enum {
	TCP_OPTION_END = 0,
	TCP_OPTION_NOP = 1,
	TCP_OPTION_SCALE = 3,
	TCP_OPTION_SCALE_LENGTH = 3,
	TCP_MAX_SCALE = 14,
	TCP_MAX_OPTIONS = 40,
};

static size_t tcp_header_length(const uint8_t *header)
{
	return (size_t)(header[12] >> 4) * 4;
}

/*
 * The window scale among a SYN's options, as far as they are there. A scale above 14 counts as 14
 * (RFC 7323 section 2.3); of several the last counts, as it does for the end hosts.
 */
static uint8_t tcp_scale(const uint8_t *options, size_t length)
{
	uint8_t scale = TCP_SCALE_NONE;
	size_t at = 0;

	while (at < length && options[at] != TCP_OPTION_END) {
		if (options[at] == TCP_OPTION_NOP) {
			at++;
			continue;
		}
		if (length - at < 2)
			break;

		size_t option_length = options[at + 1];

		if (option_length < 2 || option_length > length - at)
			break;
		if (options[at] == TCP_OPTION_SCALE && option_length == TCP_OPTION_SCALE_LENGTH)
			scale = options[at + 2] < TCP_MAX_SCALE ? options[at + 2] : TCP_MAX_SCALE;
		at += option_length;
	}
	return scale;
}

/* All but the scale. `length` is that of the segment with its header. */
static inline struct tcp_segment tcp_fields(const uint8_t *header, size_t length)
{
	size_t header_length = tcp_header_length(header);

	return (struct tcp_segment){
		.seq = load_be32(header + 4),
		.ack = load_be32(header + 8),
		.payload = length > header_length ? (uint32_t)(length - header_length) : 0,
		.window = load_be16(header + 14),
		.flags = header[13],
		.scale = TCP_SCALE_NONE,
	};
}

static void tcp_read(struct reader *reader, const struct ip_header *ip, struct packet_info *info)
{
	uint8_t scratch[TCP_MAX_OPTIONS];
	const uint8_t *header = reader_peek(reader, ip->upper, TCP_LENGTH, scratch);

	if (header == NULL || tcp_header_length(header) < TCP_LENGTH)
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
static bool icmp_is_error(struct reader *reader, const struct ip_header *ip)
{
	uint8_t scratch;
	const uint8_t *type = reader_peek(reader, ip->upper, 1, &scratch);

	if (type == NULL)
		return false;
	if (ip->version == 6)
		return *type >= 1 && *type <= 4;
	return *type == 3 || *type == 4 || *type == 5 || *type == 11 || *type == 12;
}

/* What else is known of a packet whose upper layer begins here. */
static void upper_read(struct reader *reader, const struct ip_header *ip, struct packet_info *info)
{
	if (ip->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT))
		return;
	if (ip->proto == PROTO_TCP) {
		tcp_read(reader, ip, info);
	} else if (ip->proto == (ip->version == 4 ? PROTO_ICMP : PROTO_ICMPV6)) {
		if (icmp_is_error(reader, ip))
			info->flags |= PACKET_ICMP_ERROR;
	}
}

/* Any frame at all. */
static __rte_noinline enum extract_result extract_any(const struct extract_options *options,
	const struct rte_mbuf *frame, unsigned wire, struct packet_info *info)
{
	struct reader reader = reader_of(frame);
	struct link_header link;
	struct ip_header ip;
	uint32_t ports;

	if (!link_walk(&reader, &link))
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
	key_parts_write(&parts, options->secret, info);
	upper_read(&reader, &ip, info);
	return EXTRACT_IP;
}

/* As common_upper(), for the segment alone. `there` bytes of it lie at `header`. */
static __rte_always_inline bool common_tcp(
	const uint8_t *header, size_t length, size_t there, struct tcp_segment *tcp)
{
	if (unlikely(there < TCP_LENGTH))
		return false;

	size_t header_length = tcp_header_length(header);
	bool syn = header[13] & TCP_SYN;

	if (unlikely(header_length < TCP_LENGTH || (syn && header_length > there)))
		return false;
	*tcp = tcp_fields(header, length);
	if (unlikely(syn))
		tcp->scale = tcp_scale(header + TCP_LENGTH, header_length - TCP_LENGTH);
	return true;
}

/*
 * The common packet: TCP or UDP whole up to its header in the first segment, straight after an IP
 * header without options or extension headers, not a fragment. `upper` is an offset, `length` what
 * the IP header leaves to the upper layer. Returns false, and writes nothing, when something is
 * not as common as that.
 */
static __rte_always_inline bool common_upper(const struct extract_options *options,
	const struct rte_mbuf *frame, size_t upper, size_t length, struct key_parts *parts,
	struct packet_info *info)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(frame, const uint8_t *, upper);
	size_t there = RTE_MIN(frame->data_len - upper, length);
	uint8_t flags = PACKET_HAS_PORTS;

	if (parts->proto == PROTO_TCP) {
		if (unlikely(!common_tcp(header, length, there, &info->tcp)))
			return false;
		flags |= PACKET_TCP;
	} else {
		if (unlikely(parts->proto != PROTO_UDP || there < sizeof(parts->ports)))
			return false;
		info->tcp = (struct tcp_segment){0};
	}
	parts->ports = load_32(header);
	key_parts_write(parts, options->secret, info);
	info->fragment_id = 0;
	info->bytes = frame->pkt_len;
	info->l4_offset = (uint16_t)upper;
	info->flags = flags;
	return true;
}

static __rte_always_inline bool common_ipv4(const struct extract_options *options,
	const struct rte_mbuf *frame, size_t offset, struct key_parts *parts,
	struct packet_info *info)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(frame, const uint8_t *, offset);

	if (unlikely(frame->data_len < offset + IPV4_LENGTH))
		return false;

	size_t length = load_be16(header + 2);

	if (unlikely(header[0] != 0x45 || load_be16(header + 6) & 0x3fff || length < IPV4_LENGTH))
		return false;
	parts->src = address_load_ipv4(header + 12);
	parts->dst = address_load_ipv4(header + 16);
	parts->proto = header[9];
	parts->version_wire |= FLOW_KEY_VERSION_WIRE(4, 0);
	return common_upper(
		options, frame, offset + IPV4_LENGTH, length - IPV4_LENGTH, parts, info);
}

static __rte_always_inline bool common_ipv6(const struct extract_options *options,
	const struct rte_mbuf *frame, size_t offset, struct key_parts *parts,
	struct packet_info *info)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(frame, const uint8_t *, offset);

	if (unlikely(frame->data_len < offset + IPV6_LENGTH))
		return false;

	/* Length 0 has its own meaning: it leaves nothing here, and comes to extract_any(). */
	size_t length = load_be16(header + 4);

	if (unlikely(header[0] >> 4 != 6))
		return false;
	parts->src = address_load(header + 8);
	parts->dst = address_load(header + 24);
	parts->proto = header[6];
	parts->version_wire |= FLOW_KEY_VERSION_WIRE(6, 0);
	return common_upper(options, frame, offset + IPV6_LENGTH, length, parts, info);
}

static __rte_always_inline bool extract_common(const struct extract_options *options,
	const struct rte_mbuf *frame, unsigned wire, struct packet_info *info)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	struct key_parts parts = {.version_wire = FLOW_KEY_VERSION_WIRE(0, wire)};
	size_t offset = ETHERNET_LENGTH;

	if (unlikely(frame->data_len < ETHERNET_LENGTH + VLAN_TAG_LENGTH))
		return false;

	uint16_t ethertype = load_be16(bytes + ETHERNET_LENGTH - 2);

	if (ethertype_is_vlan(ethertype)) {
		if (options->zone_vlan)
			parts.zone = load_be16(bytes + ETHERNET_LENGTH) & 0x0fff;
		ethertype = load_be16(bytes + ETHERNET_LENGTH + 2);
		offset += VLAN_TAG_LENGTH;
	}
	if (ethertype == ETHERTYPE_IPV4)
		return common_ipv4(options, frame, offset, &parts, info);
	if (ethertype == ETHERTYPE_IPV6)
		return common_ipv6(options, frame, offset, &parts, info);
	return false;
}

enum extract_result extract(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, struct packet_info *info)
{
	if (likely(extract_common(options, frame, wire, info)))
		return EXTRACT_IP;
	return extract_any(options, frame, wire, info);
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
