/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/rewrite.h"

#include <string.h>

#include "packet/extract.h"
#include "packet/headers.h"
#include "packet/reader.h"

enum {
	MAC_LENGTH = 6,
	MACS_LENGTH = 2 * MAC_LENGTH,
	PROTO_DCCP = 33,
	PROTO_ROUTING = 43,
	PROTO_AUTHENTICATION = 51,
	PROTO_SCTP = 132,
	PROTO_UDP_LITE = 136,
	PORTS_LENGTH = 4,
	SCTP_CRC_OFFSET = 8,
	NO_CHECKSUM = 0,
};

/* Longer than any field that is changed at once. */
#define FIELD_MAX 16

const char *rewrite_result_name(enum rewrite_result result)
{
	switch (result) {
	case REWRITE_DONE:
		return "done";
	case REWRITE_EXPIRED:
		return "ttl expired";
	case REWRITE_NOT_IP:
		return "not ip";
	case REWRITE_OTHER_VERSION:
		return "other ip version";
	case REWRITE_UNTAGGED:
		return "untagged";
	case REWRITE_NO_ROOM:
		return "no headroom";
	case REWRITE_FRAGMENT:
		return "sctp fragment";
	}
	return "?";
}

/*
 * Whether a routing header (RFC 8200 section 4.4) on the way to the upper layer has segments left, so that
 * the address it will be sent to next is not its destination.
 */
static bool has_segments_left(
	const struct rte_mbuf *frame, const struct rewrite_headers *headers, uint8_t proto)
{
	struct reader reader = reader_of(frame);
	size_t at = headers->l3 + IPV6_LENGTH;

	reader_lower_limit(&reader, headers->limit);
	while (at < headers->l4) {
		uint8_t scratch[4];
		const uint8_t *header = reader_peek(&reader, at, sizeof(scratch), scratch);

		if (header == NULL)
			return false;
		if (proto == PROTO_ROUTING && header[3] != 0)
			return true;
		at += proto == PROTO_AUTHENTICATION ? (header[1] + 2u) * 4 : (header[1] + 1u) * 8;
		proto = header[0];
	}
	return false;
}

/* No frame is as long. An offset that would be larger stays there, and leaves room for tags in 32 bits. */
#define OFFSET_MAX (UINT32_MAX / 2)

static uint32_t offset_32(size_t offset)
{
	return offset < OFFSET_MAX ? (uint32_t)offset : OFFSET_MAX;
}

bool rewrite_read(const struct rte_mbuf *frame, struct rewrite_headers *headers)
{
	struct reader reader = reader_of(frame);
	struct link_header link;
	struct ip_header ip;
	unsigned version;

	if (!link_walk(&reader, LINK_ETHERNET, &link))
		return false;
	*headers = (struct rewrite_headers){
		.l3 = offset_32(link.end),
		.l4 = offset_32(link.end),
		.limit = offset_32(frame->pkt_len),
		.n_tags = (uint16_t)((link.end - ETHERNET_LENGTH) / VLAN_TAG_LENGTH),
	};
	version = link.ethertype == ETHERTYPE_IPV4 ? 4 : link.ethertype == ETHERTYPE_IPV6 ? 6 : 0;
	if (version == 0 || !ip_walk(&reader, link.end, version, &ip))
		return true;
	headers->l4 = offset_32(ip.upper);
	headers->limit = offset_32(reader.limit);
	headers->l4_bytes = offset_32(ip.end > ip.upper ? ip.end - ip.upper : 0);
	headers->version = ip.version;
	headers->proto = ip.proto;
	headers->flags = ip.flags;
	if (version == 6 && ip.upper > link.end + IPV6_LENGTH) {
		uint8_t scratch[IPV6_LENGTH];

		reader = reader_of(frame);

		const uint8_t *header = reader_peek(&reader, link.end, IPV6_LENGTH, scratch);

		headers->routed = header != NULL && has_segments_left(frame, headers, header[6]);
	}
	return true;
}

/*
 * Copies `n` bytes at `offset` out of the frame, or into it where `store` is set. The caller knows that they
 * are there by pkt_len; a chain that is shorter than it says leaves the rest as it is.
 */
static void copy_bytes(
	const struct rte_mbuf *segment, size_t offset, size_t n, uint8_t *bytes, bool store)
{
	for (; segment != NULL && n > 0; segment = segment->next) {
		if (offset >= segment->data_len) {
			offset -= segment->data_len;
			continue;
		}

		uint8_t *there = rte_pktmbuf_mtod_offset(segment, uint8_t *, offset);
		size_t part = RTE_MIN(n, segment->data_len - offset);

		if (store)
			memcpy(there, bytes, part);
		else
			memcpy(bytes, there, part);
		bytes += part;
		n -= part;
		offset = 0;
	}
}

static void load_bytes(const struct rte_mbuf *frame, size_t offset, size_t n, uint8_t *bytes)
{
	memset(bytes, 0, n);
	copy_bytes(frame, offset, n, bytes, false);
}

static void store_bytes(struct rte_mbuf *frame, size_t offset, size_t n, const uint8_t *bytes)
{
	uint8_t copy[FIELD_MAX];

	memcpy(copy, bytes, n);
	copy_bytes(frame, offset, n, copy, true);
}

/* Checksums are computed in the order of the memory: see rewrite_fold(). */
static uint16_t load_16(const struct rte_mbuf *frame, size_t offset)
{
	uint8_t bytes[2];
	uint16_t value;

	load_bytes(frame, offset, sizeof(bytes), bytes);
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void store_16(struct rte_mbuf *frame, size_t offset, uint16_t value)
{
	uint8_t bytes[2];

	memcpy(bytes, &value, sizeof(value));
	store_bytes(frame, offset, sizeof(bytes), bytes);
}

/* Writes `n` bytes (an even number, at most FIELD_MAX) and returns by what the sum over them grows. */
static uint64_t replace(struct rte_mbuf *frame, size_t offset, size_t n, const uint8_t *bytes)
{
	uint8_t old[FIELD_MAX];
	uint64_t delta = 0;

	load_bytes(frame, offset, n, old);
	store_bytes(frame, offset, n, bytes);
	for (size_t i = 0; i < n; i += 2) {
		uint16_t before, after;

		memcpy(&before, old + i, sizeof(before));
		memcpy(&after, bytes + i, sizeof(after));
		delta += (uint16_t)~before + (uint32_t)after;
	}
	return delta;
}

void rewrite_mac(struct rte_mbuf *frame, enum rewrite_side side, const uint8_t mac[6])
{
	/* the destination comes first on the link */
	store_bytes(frame, side == REWRITE_SOURCE ? MAC_LENGTH : 0, MAC_LENGTH, mac);
}

static size_t ttl_offset(const struct rewrite_headers *headers)
{
	return headers->l3 + (headers->version == 4 ? 8 : 7);
}

enum rewrite_result rewrite_ttl_check(
	const struct rte_mbuf *frame, const struct rewrite_headers *headers)
{
	uint8_t ttl;

	if (headers->version == 0)
		return REWRITE_NOT_IP;
	load_bytes(frame, ttl_offset(headers), sizeof(ttl), &ttl);
	return ttl <= 1 ? REWRITE_EXPIRED : REWRITE_DONE;
}

enum rewrite_result rewrite_ttl_set(
	struct rte_mbuf *frame, const struct rewrite_headers *headers, uint8_t ttl)
{
	size_t at = ttl_offset(headers);
	uint8_t bytes[2] = {ttl};

	if (headers->version == 0)
		return REWRITE_NOT_IP;
	if (headers->version == 6) {
		store_bytes(frame, at, 1, bytes);
		return REWRITE_DONE;
	}
	load_bytes(frame, at + 1, 1, &bytes[1]);

	uint64_t delta = replace(frame, at, sizeof(bytes), bytes);

	store_16(frame, headers->l3 + 10, rewrite_mend(load_16(frame, headers->l3 + 10), delta));
	return REWRITE_DONE;
}

enum rewrite_result rewrite_ttl(struct rte_mbuf *frame, const struct rewrite_headers *headers)
{
	enum rewrite_result result = rewrite_ttl_check(frame, headers);
	uint8_t ttl;

	if (result != REWRITE_DONE)
		return result;
	load_bytes(frame, ttl_offset(headers), sizeof(ttl), &ttl);
	return rewrite_ttl_set(frame, headers, ttl - 1);
}

static void move_headers(struct rewrite_headers *headers, int bytes)
{
	headers->l3 += (uint32_t)bytes;
	headers->l4 += (uint32_t)bytes;
	headers->limit += (uint32_t)bytes;
}

enum rewrite_result rewrite_vlan_push(
	struct rte_mbuf *frame, struct rewrite_headers *headers, uint16_t tpid, uint16_t tci)
{
	const uint8_t tag[VLAN_TAG_LENGTH] = {
		(uint8_t)(tpid >> 8), (uint8_t)tpid, (uint8_t)(tci >> 8), (uint8_t)tci};
	uint8_t macs[MACS_LENGTH];

	if (rte_pktmbuf_headroom(frame) < VLAN_TAG_LENGTH ||
		frame->data_len > UINT16_MAX - VLAN_TAG_LENGTH)
		return REWRITE_NO_ROOM;
	load_bytes(frame, 0, MACS_LENGTH, macs);
	frame->data_off -= VLAN_TAG_LENGTH;
	frame->data_len += VLAN_TAG_LENGTH;
	frame->pkt_len += VLAN_TAG_LENGTH;
	store_bytes(frame, 0, MACS_LENGTH, macs);
	store_bytes(frame, MACS_LENGTH, VLAN_TAG_LENGTH, tag);
	headers->n_tags++;
	move_headers(headers, VLAN_TAG_LENGTH);
	return REWRITE_DONE;
}

/* Takes `n` bytes off the front, from as many segments as it takes. */
static void cut_front(struct rte_mbuf *frame, uint16_t n)
{
	frame->pkt_len -= n;
	for (struct rte_mbuf *segment = frame; segment != NULL && n > 0; segment = segment->next) {
		uint16_t part = n < segment->data_len ? n : segment->data_len;

		segment->data_off += part;
		segment->data_len -= part;
		n -= part;
	}
}

enum rewrite_result rewrite_vlan_pop(struct rte_mbuf *frame, struct rewrite_headers *headers)
{
	uint8_t macs[MACS_LENGTH];

	if (headers->n_tags == 0)
		return REWRITE_UNTAGGED;
	load_bytes(frame, 0, MACS_LENGTH, macs);
	cut_front(frame, VLAN_TAG_LENGTH);
	store_bytes(frame, 0, MACS_LENGTH, macs);
	headers->n_tags--;
	move_headers(headers, -VLAN_TAG_LENGTH);
	return REWRITE_DONE;
}

enum rewrite_result rewrite_vlan_set(
	struct rte_mbuf *frame, const struct rewrite_headers *headers, uint16_t vlan)
{
	uint8_t tci[2];

	if (headers->n_tags == 0)
		return REWRITE_UNTAGGED;
	load_bytes(frame, ETHERNET_LENGTH, sizeof(tci), tci);
	tci[0] = (uint8_t)((tci[0] & 0xf0) | (vlan >> 8 & 0x0f));
	tci[1] = (uint8_t)vlan;
	store_bytes(frame, ETHERNET_LENGTH, sizeof(tci), tci);
	return REWRITE_DONE;
}

/* Whether the datagram has `n` bytes at `offset` of its upper layer, in the frame. */
static bool reaches_upper(const struct rewrite_headers *headers, size_t offset, size_t n)
{
	return headers->l4 <= headers->limit && offset + n <= headers->limit - headers->l4;
}

/* The position in the upper layer of its ones' complement checksum over a pseudo-header, or NO_CHECKSUM. */
static size_t checksum_offset(const struct rewrite_headers *headers)
{
	if (headers->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT))
		return NO_CHECKSUM;
	switch (headers->proto) {
	case PROTO_TCP:
		return 16;
	case PROTO_UDP:
	case PROTO_UDP_LITE:
	case PROTO_DCCP:
		return 6;
	case PROTO_ICMPV6:
		return headers->version == 6 ? 2 : NO_CHECKSUM;
	default:
		return NO_CHECKSUM;
	}
}

static void mend_upper(
	struct rte_mbuf *frame, const struct rewrite_headers *headers, uint64_t delta)
{
	size_t offset = checksum_offset(headers);
	bool zero_is_none = headers->proto == PROTO_UDP || headers->proto == PROTO_UDP_LITE;
	uint16_t checksum;

	if (offset == NO_CHECKSUM || !reaches_upper(headers, offset, sizeof(checksum)))
		return;
	checksum = load_16(frame, headers->l4 + offset);
	if (zero_is_none && checksum == 0)
		return;
	checksum = rewrite_mend(checksum, delta);
	if (zero_is_none && checksum == 0)
		checksum = UINT16_MAX;
	store_16(frame, headers->l4 + offset, checksum);
}

enum rewrite_result rewrite_address(struct rte_mbuf *frame, const struct rewrite_headers *headers,
	enum rewrite_side side, unsigned version, const uint8_t *address)
{
	if (headers->version == 0)
		return REWRITE_NOT_IP;
	if (headers->version != version)
		return REWRITE_OTHER_VERSION;

	size_t n = version == 4 ? 4 : 16;
	size_t at = headers->l3 + (version == 4 ? 12 : 8) + side * n;
	uint64_t delta = replace(frame, at, n, address);

	if (version == 4)
		store_16(frame, headers->l3 + 10,
			rewrite_mend(load_16(frame, headers->l3 + 10), delta));
	if (!(headers->routed && side == REWRITE_DESTINATION))
		mend_upper(frame, headers, delta);
	return REWRITE_DONE;
}

/* The polynomial of CRC32c, and of numbers below it, lowest power in the highest bit. */
#define CRC32C_POLYNOMIAL 0x82f63b78u

/* The product of two polynomials modulo CRC32c's. */
static uint32_t crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (unsigned bit = 0; bit < 32; bit++) {
		product ^= b & -(a >> 31);
		a <<= 1;
		b = (b >> 1) ^ (CRC32C_POLYNOMIAL & -(b & 1));
	}
	return product;
}

/*
 * By what the CRC32c of a packet of `length` bytes changes when its first four bytes change by the bits of `change`:
 * the CRC's remainder of `change` followed by zeros, which is `change` times a power of x.
 */
static uint32_t crc_change(uint32_t change, uint32_t length)
{
	/* x to the power of 8 * 2^i: one byte more, two, four, ... */
	static const uint32_t byte_powers[] = {0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c,
		0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16,
		0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b,
		0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc, 0xd289cabe,
		0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000, 0x00800000};
	uint32_t crc = change;

	for (unsigned i = 0; i < RTE_DIM(byte_powers); i++)
		if (length >> i & 1)
			crc = crc_multiply(crc, byte_powers[i]);
	return crc;
}

static void mend_sctp(struct rte_mbuf *frame, const struct rewrite_headers *headers,
	enum rewrite_side side, uint16_t changed_bits)
{
	uint8_t bytes[4] = {0};
	uint32_t change, crc;

	if (!reaches_upper(headers, SCTP_CRC_OFFSET, sizeof(crc)))
		return;
	/* the packet's first byte has the highest powers, and in it the lowest bit */
	memcpy(bytes + side * sizeof(changed_bits), &changed_bits, sizeof(changed_bits));
	memcpy(&change, bytes, sizeof(change));
	change = rte_le_to_cpu_32(change);
	load_bytes(frame, headers->l4 + SCTP_CRC_OFFSET, sizeof(bytes), bytes);
	memcpy(&crc, bytes, sizeof(crc));
	if (crc == 0)
		return;
	crc ^= rte_cpu_to_le_32(crc_change(change, headers->l4_bytes));
	memcpy(bytes, &crc, sizeof(crc));
	store_bytes(frame, headers->l4 + SCTP_CRC_OFFSET, sizeof(bytes), bytes);
}

static bool has_ports(const struct rewrite_headers *headers)
{
	return headers->version != 0 && !(headers->flags & (PACKET_LATER_FRAGMENT | PACKET_CUT)) &&
	       proto_has_ports(headers->proto) && reaches_upper(headers, 0, PORTS_LENGTH);
}

enum rewrite_result rewrite_port_check(const struct rewrite_headers *headers)
{
	if (headers->proto == PROTO_SCTP && headers->flags & PACKET_FIRST_FRAGMENT &&
		has_ports(headers))
		return REWRITE_FRAGMENT;
	return REWRITE_DONE;
}

enum rewrite_result rewrite_port(struct rte_mbuf *frame, const struct rewrite_headers *headers,
	enum rewrite_side side, rte_be16_t port)
{
	size_t at = headers->l4 + side * sizeof(port);
	enum rewrite_result result = rewrite_port_check(headers);
	uint16_t old;

	if (result != REWRITE_DONE || !has_ports(headers))
		return result;
	old = load_16(frame, at);
	store_16(frame, at, port);
	if (headers->proto == PROTO_SCTP)
		mend_sctp(frame, headers, side, old ^ port);
	else
		mend_upper(frame, headers, (uint16_t)~old + (uint64_t)port);
	return REWRITE_DONE;
}
