/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/extract_common.h"
#include "packet/headers.h"

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

enum extract_result extract(const struct extract_options *options, const struct rte_mbuf *frame,
	unsigned wire, struct packet_info *info)
{
	const struct common common = {
		.wire = wire, .secret = options->secret, .zone_vlan = options->zone_vlan};

	if (likely(extract_common(&common, frame, info) != 0))
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
