/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/quote.h"

#include "packet/headers.h"

/* RFC 792 and RFC 4443 section 3: type, code, checksum and four bytes of the type's own. */
#define ICMP_LENGTH 8

bool extract_quote(const struct extract_options *options, const struct rte_mbuf *frame,
	const struct packet_info *error, struct packet_info *quoted)
{
	struct reader reader = reader_of(frame);
	unsigned version = flow_key_version(&error->key);
	struct link_header link;
	struct ip_header ip;
	uint32_t ports;

	/* Once more over the error's own headers: the quote ends where its datagram ends. */
	if (!link_walk(&reader, &link) || !ip_walk(&reader, link.end, version, &ip))
		return false;
	if (!ip_walk(&reader, ip.upper + ICMP_LENGTH, version, &ip))
		return false;
	ports_read(&reader, &ip, &ports);
	if (ip.flags & PACKET_CUT)
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
		.fragment_id = ip.fragment_id,
		.l4_offset = offset_16(ip.upper),
		.flags = ip.flags,
	};
	key_parts_write(&parts, options->secret, quoted);
	return true;
}
