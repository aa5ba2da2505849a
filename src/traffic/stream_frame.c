/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of streams: the templates of all kinds, and what is put into them by a stream's number. */
#include <errno.h>
#include <stdlib.h>

#include <netinet/in.h>

#include "traffic/draw.h"
#include "traffic/stream_write.h"

#define ETHERNET_BYTES 14
#define VLAN_BYTES 4
#define UDP_BYTES 8
#define TCP_BYTES 20
#define ICMP_BYTES 8
#define SCTP_BYTES 12	   /* common header */
#define SCTP_DATA_BYTES 16 /* header of a DATA chunk, RFC 9260 section 3.3.1 */
#define SCTP_LEAST_DATA 4  /* a chunk without data would be an error */
#define SCTP_CRC_OFFSET 8  /* where the common header has it */
#define SCTP_TAG_OFFSET 4
#define SCTP_LENGTH_OFFSET 14 /* of the chunk, from the common header on */

#define HOP_LIMIT 64
#define DONT_FRAGMENT 0x4000
#define TCP_FORWARD UINT32_C(0x10000000) /* numbers of the two directions */
#define TCP_REVERSE UINT32_C(0x20000000)
#define TCP_WINDOW 64240
#define SCTP_TAG UINT32_C(0x6d696c6c)

#define CRC32C UINT32_C(0x82f63b78) /* reflected */

/* What is drawn by flow. */
enum { DRAW_SIZE = 1, DRAW_VLAN };

static const uint8_t protocol_numbers[STREAM_N_PROTOS][2] = {
	[STREAM_UDP] = {IPPROTO_UDP, IPPROTO_UDP},
	[STREAM_TCP] = {IPPROTO_TCP, IPPROTO_TCP},
	[STREAM_SCTP] = {IPPROTO_SCTP, IPPROTO_SCTP},
	[STREAM_ICMP] = {IPPROTO_ICMP, IPPROTO_ICMPV6},
};

static void put_16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put_32(uint8_t *at, uint32_t value)
{
	put_16(at, value >> 16);
	put_16(at + 2, value & 0xffff);
}

/* Adds up 16-bit words; `n` is even. */
static uint32_t sum_16(const uint8_t *bytes, unsigned n)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

static unsigned proto_of(unsigned kind)
{
	return kind % STREAM_N_PROTOS;
}

/* The upper layer's header; returns how many bytes it has. */
static unsigned fill_l4(uint8_t *at, unsigned kind, unsigned side)
{
	switch ((enum stream_proto)proto_of(kind)) {
	case STREAM_UDP:
		return UDP_BYTES;
	case STREAM_TCP:
		put_32(at + 4, side == 0 ? TCP_FORWARD : TCP_REVERSE);
		put_32(at + 8, side == 0 ? TCP_REVERSE : TCP_FORWARD);
		at[12] = TCP_BYTES / 4 << 4;
		at[13] = 0x10; /* ACK */
		put_16(at + 14, TCP_WINDOW);
		return TCP_BYTES;
	case STREAM_SCTP:
		at += SCTP_BYTES;
		at[1] = 3; /* DATA, the first and the last part of its message */
		put_32(at + 4, 1);
		return SCTP_BYTES + SCTP_DATA_BYTES;
	case STREAM_ICMP:
		if (kind & STREAM_KIND_IPV6)
			at[0] = side == 0 ? 128 : 129;
		else
			at[0] = side == 0 ? 8 : 0;
		put_16(at + 6, 1);
		return ICMP_BYTES;
	case STREAM_N_PROTOS:
		break;
	}
	return 0;
}

/* The IP header; returns how many bytes it has. */
static unsigned fill_l3(uint8_t *at, unsigned kind)
{
	bool ipv6 = kind & STREAM_KIND_IPV6;
	uint8_t proto = protocol_numbers[proto_of(kind)][ipv6];

	if (ipv6) {
		at[0] = 0x60;
		at[6] = proto;
		at[7] = HOP_LIMIT;
		return 40;
	}
	at[0] = 0x45;
	put_16(at + 6, DONT_FRAGMENT);
	at[8] = HOP_LIMIT;
	at[9] = proto;
	return 20;
}

static void fill_template(struct stream_template *template, unsigned kind, unsigned side)
{
	uint8_t *bytes = template->bytes;
	unsigned at = ETHERNET_BYTES;
	bool ipv6 = kind & STREAM_KIND_IPV6;

	bytes[0] = bytes[6] = 2; /* a local address */
	bytes[5] = (uint8_t)(2 - side);
	bytes[11] = (uint8_t)(1 + side);
	if (kind & STREAM_KIND_VLAN) {
		put_16(bytes + at - 2, 0x8100);
		at += VLAN_BYTES;
	}
	put_16(bytes + at - 2, ipv6 ? 0x86dd : 0x0800);
	template->l3 = (uint8_t)at;
	at += fill_l3(bytes + at, kind);
	template->l4 = (uint8_t)at;
	at += fill_l4(bytes + at, kind, side);
	template->header = (uint8_t)at;
	template->least = (uint8_t)(proto_of(kind) == STREAM_SCTP ? at + SCTP_LEAST_DATA : at);
	template->ip_sum = ipv6 ? 0 : sum_16(bytes + template->l3, 20);
	template->l4_sum = sum_16(bytes + template->l4, at - template->l4);
	/* ICMP has no pseudo-header, but ICMPv6 */
	if (ipv6 || proto_of(kind) != STREAM_ICMP)
		template->l4_sum += protocol_numbers[proto_of(kind)][ipv6];
}

/* A step of the CRC: a byte is taken in, or 0 for one that is 0. */
static uint32_t crc_byte(const struct stream_set *set, uint32_t crc, uint8_t byte)
{
	return set->crc_table[(crc ^ byte) & 0xff] ^ crc >> 8;
}

static uint32_t crc_bytes(
	const struct stream_set *set, uint32_t crc, const uint8_t *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		crc = crc_byte(set, crc, bytes[i]);
	return crc;
}

static void fill_crc_table(struct stream_set *set)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (CRC32C & -(crc & 1));
		set->crc_table[i] = crc;
	}
}

/*
 * The verification tag is chosen so that ports and tag together leave the CRC where they would leave it
 * in every other stream: where four bytes have gone in, the next four can bring it anywhere. So the CRC
 * of a packet depends on its length alone.
 */
static uint32_t sctp_tag(const struct stream_set *set, const uint8_t ports[4])
{
	return rte_bswap32(crc_bytes(set, UINT32_MAX, ports, 4)) ^ SCTP_TAG;
}

/* By length: the CRC of a packet with one DATA chunk of zeros. */
static int fill_sctp(struct stream_set *set)
{
	const unsigned longest = (STREAM_MAX_BYTES - ETHERNET_BYTES - 20) / 4;
	uint8_t header[SCTP_BYTES + SCTP_DATA_BYTES] = {0};

	set->sctp_crc = calloc(longest + 1, sizeof(*set->sctp_crc));
	if (set->sctp_crc == NULL)
		return -ENOMEM;
	fill_l4(header, STREAM_SCTP, 0);
	put_32(header + SCTP_TAG_OFFSET, sctp_tag(set, header));
	for (unsigned words = (sizeof(header) + SCTP_LEAST_DATA) / 4; words <= longest; words++) {
		unsigned length = words * 4;

		put_16(header + SCTP_LENGTH_OFFSET, length - SCTP_BYTES);
		uint32_t crc = crc_bytes(set, UINT32_MAX, header, sizeof(header));

		for (unsigned i = sizeof(header); i < length; i++)
			crc = crc_byte(set, crc, 0);
		/* it goes out with its lowest byte first: RFC 9260 appendix A */
		set->sctp_crc[words] = rte_bswap32(~crc);
	}
	return 0;
}

static uint32_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The checksum for a sum of 16-bit words. */
static uint32_t checksum_16(uint32_t sum)
{
	return ~fold(sum) & 0xffff;
}

/* Only UDP or only TCP over IPv4, of one length: what stream_write_plain() is for. */
static void fill_plain(struct stream_set *set, enum stream_proto proto)
{
	const struct stream_template *template = &set->template[proto][0];
	uint32_t length = set->config.size_min;
	uint32_t upper = length - template->l4;

	for (unsigned side = 0; side < 2; side++) {
		uint8_t *frame = set->plain_frame[side];

		memcpy(frame, set->template[proto][side].bytes, STREAM_MIN_BYTES);
		put_16(frame + template->l3 + 2, length - template->l3);
		if (proto == STREAM_UDP)
			put_16(frame + template->l4 + 4, upper);
	}
	set->plain_ip_sum = fold(template->ip_sum + length - template->l3);
	/* the length stands in the pseudo-header, and in UDP's header */
	set->plain_l4_sum =
		fold(template->l4_sum + (proto == STREAM_UDP ? 2 : 1) * upper + STREAM_SERVER_PORT);
	set->plain_length = (uint16_t)length;
	set->plain_tcp = proto == STREAM_TCP;
}

int stream_set_fill(struct stream_set *set)
{
	const struct stream_config *config = &set->config;

	for (unsigned kind = 0; kind < STREAM_N_KINDS; kind++)
		for (unsigned side = 0; side < 2; side++)
			fill_template(&set->template[kind][side], kind, side);
	bool alike = config->ipv6_share == 0 && config->vlan_share == 0 && !config->imix &&
		     config->size_min == config->size_max;

	if (alike && config->proto_share[STREAM_UDP] == 256)
		fill_plain(set, STREAM_UDP);
	else if (alike && config->proto_share[STREAM_TCP] == 256)
		fill_plain(set, STREAM_TCP);
	fill_crc_table(set);
	return config->proto_share[STREAM_SCTP] == 0 ? 0 : fill_sctp(set);
}

static uint64_t drawn(const struct stream_set *set, unsigned what, uint32_t flow)
{
	return draw_at(draw_at(set->config.seed, what), flow);
}

static uint32_t drawn_size(const struct stream_set *set, uint32_t flow)
{
	const struct stream_config *config = &set->config;

	if (config->imix) {
		uint32_t die = draw_below(drawn(set, DRAW_SIZE, flow), 12);

		return die < 7 ? 64 : die < 11 ? 594 : 1518;
	}
	if (config->size_min == config->size_max)
		return config->size_min;
	return config->size_min +
	       draw_below(drawn(set, DRAW_SIZE, flow), 1u + config->size_max - config->size_min);
}

uint16_t stream_length(const struct stream_set *set, uint32_t stream)
{
	if (set->plain_length != 0)
		return set->plain_length;
	const struct stream_template *template =
		&set->template[stream_kind(set, stream >> 1)][stream & 1];
	uint32_t size = drawn_size(set, stream >> 1);

	return (uint16_t)RTE_MAX(size, (uint32_t)template->least);
}

/* Writes the addresses and the IP header's checksum; returns the sum of the addresses. */
static uint32_t write_l3(uint8_t *l3, const struct stream_template *template, uint32_t name,
	unsigned side, bool ipv6, uint32_t length)
{
	if (ipv6) {
		struct stream_address ends[2];

		stream_client_ipv6(name, &ends[side]);
		stream_server_ipv6(name, &ends[!side]);
		put_16(l3 + 4, length);
		memcpy(l3 + 8, ends, sizeof(ends));
		return sum_16(l3 + 8, sizeof(ends));
	}
	uint32_t client = stream_client_ipv4(name), server = stream_server_ipv4(name);
	uint32_t addresses =
		(client & 0xffff) + (client >> 16) + (server & 0xffff) + (server >> 16);
	uint32_t total = length + 20;

	put_16(l3 + 2, total);
	put_16(l3 + 10, checksum_16(template->ip_sum + total + addresses));
	put_32(l3 + 12, side == 0 ? client : server);
	put_32(l3 + 16, side == 0 ? server : client);
	return addresses;
}

/* Writes ports, lengths and checksum of the upper layer; `sum` is that of the addresses. */
static void write_l4(const struct stream_set *set, uint8_t *l4,
	const struct stream_template *template, unsigned kind, uint32_t name, unsigned side,
	uint32_t length, uint32_t sum)
{
	enum stream_proto proto = (enum stream_proto)proto_of(kind);
	uint32_t client = stream_client_port(name), server = STREAM_SERVER_PORT;

	if (proto == STREAM_ICMP) {
		sum = kind & STREAM_KIND_IPV6 ? sum + length : 0;
		put_16(l4 + 4, client);
		put_16(l4 + 2, checksum_16(template->l4_sum + sum + client));
		return;
	}
	put_16(l4, side == 0 ? client : server);
	put_16(l4 + 2, side == 0 ? server : client);
	sum += template->l4_sum + length + client + server;
	if (proto == STREAM_SCTP) {
		put_32(l4 + SCTP_TAG_OFFSET, sctp_tag(set, l4));
		put_32(l4 + SCTP_CRC_OFFSET, set->sctp_crc[length / 4]);
		put_16(l4 + SCTP_LENGTH_OFFSET, length - SCTP_BYTES);
	} else if (proto == STREAM_TCP) {
		put_16(l4 + 16, checksum_16(sum));
	} else {
		uint32_t checksum = checksum_16(sum + length);

		put_16(l4 + 4, length);
		put_16(l4 + 6, checksum == 0 ? 0xffff : checksum);
	}
}

uint16_t stream_frame(const struct stream_set *set, uint32_t stream, uint8_t *frame)
{
	if (set->plain_length != 0)
		return stream_write_plain(set, stream, frame);
	uint32_t flow = stream >> 1, name = stream_name(flow);
	unsigned side = stream & 1, kind = stream_kind(set, flow);
	const struct stream_template *template = &set->template[kind][side];
	uint16_t bytes = stream_length(set, stream);
	uint32_t length = (uint32_t)bytes - template->l4;

	/* SCTP's packets are words; up to three bytes beyond them only fill the frame */
	if (proto_of(kind) == STREAM_SCTP)
		length &= ~UINT32_C(3);
	memcpy(frame, template->bytes, template->header);
	memset(frame + template->header, 0, (size_t)bytes - template->header);
	if (kind & STREAM_KIND_VLAN)
		put_16(frame + ETHERNET_BYTES, 1 + draw_below(drawn(set, DRAW_VLAN, flow), 4094));
	uint32_t sum = write_l3(
		frame + template->l3, template, name, side, kind & STREAM_KIND_IPV6, length);

	write_l4(set, frame + template->l4, template, kind, name, side, length, sum);
	return bytes;
}
