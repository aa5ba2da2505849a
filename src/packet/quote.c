/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/quote.h"

#include "packet/headers.h"

/* RFC 792 and RFC 4443 section 3: type, code, checksum and four bytes of the type's own. */
#define ICMP_LENGTH 8

/* RFC 792: the first 8 bytes of the quoted packet's data, which in TCP are its ports and its sequence number. */
#define QUOTED_TCP_LENGTH 8

static bool goes_to_sender(const struct packet_info *error, const struct ip_header *quoted)
{
	struct address receiver = address_load(error->key.addr[!error->from]);

	return receiver.word[0] == quoted->src.word[0] && receiver.word[1] == quoted->src.word[1];
}

/* The sequence number of a quoted TCP segment. False when it is cut off. */
static bool sequence_read(struct reader *reader, const struct ip_header *ip, uint32_t *seq)
{
	uint8_t scratch[QUOTED_TCP_LENGTH];

	*seq = 0;
	if (ip->proto != PROTO_TCP || ip->flags & PACKET_LATER_FRAGMENT)
		return true;

	const uint8_t *header = reader_peek(reader, ip->upper, sizeof(scratch), scratch);

	if (header == NULL)
		return false;
	*seq = load_be32(header + 4);
	return true;
}

bool extract_quote(const struct extract_options *options, const struct rte_mbuf *frame,
	const struct packet_info *error, struct packet_info *quoted)
{
	struct reader reader = reader_of(frame);
	unsigned version = flow_key_version(&error->key);
	enum link_type type = extract_link(options, flow_key_wire(&error->key));
	struct link_header link;
	struct ip_header ip;
	uint32_t ports, seq;

	/* Once more over the error's own headers: the quote ends where its datagram ends. */
	if (!link_walk(&reader, type, &link) || !ip_walk(&reader, link.end, version, &ip))
		return false;
	if (!ip_walk(&reader, ip.upper + ICMP_LENGTH, version, &ip))
		return false;
	ports_read(&reader, &ip, &ports);
	if (ip.flags & PACKET_CUT || !goes_to_sender(error, &ip) ||
		!sequence_read(&reader, &ip, &seq))
		return false;

	struct key_parts parts = {
		.src = ip.src,
		.dst = ip.dst,
		.ports = ports,
		.zone = error->key.zone,
		.proto = ip.proto,
		.version_wire = error->key.version_wire,
	};

	*quoted = (struct packet_info){
		.tcp.seq = seq,
		.fragment_id = ip.fragment_id,
		.l4_offset = offset_16(ip.upper),
		.flags = ip.flags,
	};
	key_parts_write(&parts, options->secret, quoted);
	return true;
}
