/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/reject.h"

#include <assert.h>
#include <string.h>

#include <rte_ip.h>

#include "packet/extract.h"
#include "packet/headers.h"

enum {
	MAC_LENGTH = 6,
	ICMP_LENGTH = 8,
	TCP_FLAGS_OFFSET = 13,
	TTL = 64,
	INTERNETWORK_CONTROL = 0xc0, /* RFC 1812 section 4.3.2.5 */
	IPV4_DONT_FRAGMENT = 0x40,
	/* IP datagrams that carry an error, at most */
	ERROR_IPV4_MAX = 576,
	ERROR_IPV6_MAX = 1280,
	ICMP_UNREACHABLE = 3,
	ICMPV6_UNREACHABLE = 1,
	ICMPV6_REDIRECT = 137,
};

static_assert(REJECT_MAX == ETHERNET_LENGTH + REJECT_TAGS_MAX * VLAN_TAG_LENGTH + ERROR_IPV6_MAX,
	"room for the longest");

/* The frame that is answered. */
struct rejected {
	const struct rte_mbuf *frame;
	struct ip_header ip;
	size_t l3;
	size_t limit;	     /* where the datagram ends, or the frame */
	uint8_t tos;	     /* of IPv4 */
	uint8_t address[32]; /* source and destination, each 4 or 16 bytes */
};

/* An answer while it is written: behind its link header. */
struct answer {
	uint8_t *ip, *upper;
	size_t length; /* of the upper layer */
};

/* Copies `n` bytes at `offset`. False when they are not all there. */
static bool copy(const struct rte_mbuf *frame, size_t offset, size_t n, uint8_t *bytes)
{
	struct reader reader = reader_of(frame);
	const uint8_t *from = reader_peek(&reader, offset, n, bytes);

	if (from != NULL && from != bytes)
		memcpy(bytes, from, n);
	return from != NULL;
}

static void store_be16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void store_be32(uint8_t *at, uint32_t value)
{
	store_be16(at, (uint16_t)(value >> 16));
	store_be16(at + 2, (uint16_t)value);
}

/* ------------------------------ may it be answered? */

/* A single host's, beyond its own machine: RFC 1122 section 3.2.1.3. */
static bool is_host_ipv4(const uint8_t address[4])
{
	return address[0] != 0 && address[0] != 127 && address[0] < 224;
}

static bool is_host_ipv6(const uint8_t address[16])
{
	static const uint8_t zeros[15];

	if (address[0] == 0xff)
		return false;
	/* unspecified and loopback */
	return memcmp(address, zeros, sizeof(zeros)) != 0 || address[15] > 1;
}

static bool is_of_hosts(const struct rejected *rejected)
{
	const uint8_t *address = rejected->address;

	if (rejected->ip.version == 4)
		return is_host_ipv4(address) && is_host_ipv4(address + 4);
	return is_host_ipv6(address) && is_host_ipv6(address + 16);
}

/* Is it an ICMP message that no error answers? One whose type is not there is taken for such. */
static bool is_icmp_error(const struct rejected *rejected)
{
	const bool ipv4 = rejected->ip.version == 4;
	uint8_t type;

	if (rejected->ip.proto != (ipv4 ? PROTO_ICMP : PROTO_ICMPV6))
		return false;
	if (rejected->ip.upper >= rejected->limit ||
		!copy(rejected->frame, rejected->ip.upper, 1, &type))
		return true;
	if (!ipv4)
		return type < 128 || type == ICMPV6_REDIRECT;
	/* unreachable, source quench, redirect, time exceeded, parameter problem */
	return type == ICMP_UNREACHABLE || type == 4 || type == 5 || type == 11 || type == 12;
}

static bool read_ipv4(struct rejected *rejected)
{
	uint8_t header[60];
	const size_t most = sizeof(header);
	size_t length;

	if (!copy(rejected->frame, rejected->l3, IPV4_LENGTH, header))
		return false;
	length = (header[0] & 15u) * 4u;
	if (length < IPV4_LENGTH || length > most ||
		!copy(rejected->frame, rejected->l3, length, header))
		return false;
	rejected->tos = header[1];
	memcpy(rejected->address, header + 12, 8);
	return rte_raw_cksum(header, length) == UINT16_MAX;
}

/* Reads the headers. False: the frame gets no answer. */
static bool read_rejected(const struct rte_mbuf *frame, struct rejected *rejected)
{
	struct reader reader = reader_of(frame);
	struct link_header link;
	uint8_t macs[2 * MAC_LENGTH];
	unsigned version;

	*rejected = (struct rejected){.frame = frame};
	if (!link_walk(&reader, LINK_ETHERNET, &link) ||
		link.end > ETHERNET_LENGTH + REJECT_TAGS_MAX * VLAN_TAG_LENGTH ||
		!copy(frame, 0, sizeof(macs), macs) || (macs[0] | macs[MAC_LENGTH]) & 1)
		return false;
	version = link.ethertype == ETHERTYPE_IPV4 ? 4 : link.ethertype == ETHERTYPE_IPV6 ? 6 : 0;
	if (version == 0 || !ip_walk(&reader, link.end, version, &rejected->ip) ||
		rejected->ip.flags & (PACKET_LATER_FRAGMENT | PACKET_CUT))
		return false;
	rejected->l3 = link.end;
	rejected->limit = reader.limit;
	if (version == 4 && !read_ipv4(rejected))
		return false;
	if (version == 6 && !copy(frame, link.end + 8, 32, rejected->address))
		return false;
	return is_of_hosts(rejected) && !is_icmp_error(rejected);
}

/* ------------------------------ the answer */

/* The link header of the frame with its ends exchanged, and where the rest goes. False: there is no room for it. */
static bool begin(const struct rejected *rejected, uint8_t *bytes, size_t room, size_t length,
	struct answer *answer)
{
	const size_t ip = rejected->ip.version == 4 ? IPV4_LENGTH : IPV6_LENGTH;
	uint8_t mac[MAC_LENGTH];

	if (rejected->l3 + ip + length > room || !copy(rejected->frame, 0, rejected->l3, bytes))
		return false;
	memcpy(mac, bytes, MAC_LENGTH);
	memcpy(bytes, bytes + MAC_LENGTH, MAC_LENGTH);
	memcpy(bytes + MAC_LENGTH, mac, MAC_LENGTH);
	*answer = (struct answer){
		.ip = bytes + rejected->l3, .upper = bytes + rejected->l3 + ip, .length = length};
	return true;
}

/* The sum over the addresses, and what else a pseudo-header has. */
static uint32_t pseudo_sum(const uint8_t *addresses, size_t n, uint8_t proto, size_t length)
{
	return rte_raw_cksum(addresses, n) + rte_cpu_to_be_16(proto) +
	       (uint32_t)rte_cpu_to_be_16((uint16_t)length);
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Sets the checksum at `field` of the upper layer, which all but ICMP's cover the addresses with. */
static void finish_upper(
	const struct rejected *rejected, const struct answer *answer, uint8_t proto, uint8_t *field)
{
	const bool ipv4 = rejected->ip.version == 4;
	uint16_t checksum;
	uint32_t sum = 0;

	if (proto != PROTO_ICMP)
		sum = pseudo_sum(
			answer->ip + (ipv4 ? 12 : 8), ipv4 ? 8 : 32, proto, answer->length);
	memset(field, 0, sizeof(checksum));
	checksum = fold(sum + rte_raw_cksum(answer->upper, answer->length));
	memcpy(field, &checksum, sizeof(checksum));
}

/* From the destination to the source. The datagram fits any link, and is not to be cut. */
static void write_ip(
	const struct rejected *rejected, const struct answer *answer, uint8_t proto, uint8_t tos)
{
	const size_t n = rejected->ip.version == 4 ? 4 : 16;
	uint8_t *ip = answer->ip;
	uint16_t checksum;

	if (rejected->ip.version == 6) {
		memset(ip, 0, 8);
		ip[0] = 0x60;
		store_be16(ip + 4, (uint16_t)answer->length);
		ip[6] = proto;
		ip[7] = TTL;
	} else {
		memset(ip, 0, IPV4_LENGTH);
		ip[0] = 0x45;
		ip[1] = tos;
		store_be16(ip + 2, (uint16_t)(IPV4_LENGTH + answer->length));
		ip[6] = IPV4_DONT_FRAGMENT;
		ip[8] = TTL;
		ip[9] = proto;
	}
	memcpy(answer->upper - 2 * n, rejected->address + n, n);
	memcpy(answer->upper - n, rejected->address, n);
	if (rejected->ip.version == 4) {
		checksum = (uint16_t)~rte_raw_cksum(ip, IPV4_LENGTH);
		memcpy(ip + 10, &checksum, sizeof(checksum));
	}
}

/* Finds how many sequence numbers a segment takes: those of its data, SYN and FIN. False: its header is not whole. */
static bool segment_length(
	const struct rejected *rejected, const uint8_t tcp[TCP_LENGTH], uint32_t *length)
{
	const size_t header = (tcp[12] >> 4) * 4u;
	const uint8_t flags = tcp[TCP_FLAGS_OFFSET];

	if (header < TCP_LENGTH || rejected->ip.end < rejected->ip.upper + header)
		return false;
	*length = (uint32_t)(rejected->ip.end - rejected->ip.upper - header) +
		  ((flags & TCP_SYN) != 0) + ((flags & TCP_FIN) != 0);
	return true;
}

static size_t build_reset(const struct rejected *rejected, uint8_t *bytes, size_t room)
{
	uint8_t from[TCP_LENGTH];
	struct answer answer;
	uint32_t length;

	if (rejected->ip.upper + TCP_LENGTH > rejected->limit ||
		!copy(rejected->frame, rejected->ip.upper, TCP_LENGTH, from) ||
		!segment_length(rejected, from, &length))
		return 0;
	const uint8_t flags = from[TCP_FLAGS_OFFSET];

	if (flags & TCP_RST || (rejected->ip.flags & PACKET_FIRST_FRAGMENT && !(flags & TCP_ACK)) ||
		!begin(rejected, bytes, room, TCP_LENGTH, &answer))
		return 0;
	uint8_t *tcp = answer.upper;

	memset(tcp, 0, TCP_LENGTH);
	memcpy(tcp, from + 2, 2);
	memcpy(tcp + 2, from, 2);
	tcp[12] = TCP_LENGTH / 4 << 4;
	tcp[TCP_FLAGS_OFFSET] = TCP_RST;
	if (flags & TCP_ACK) {
		memcpy(tcp + 4, from + 8, 4);
	} else {
		store_be32(tcp + 8, load_be32(from + 4) + length);
		tcp[TCP_FLAGS_OFFSET] |= TCP_ACK;
	}
	write_ip(rejected, &answer, PROTO_TCP, 0);
	finish_upper(rejected, &answer, PROTO_TCP, tcp + 16);
	return (size_t)(tcp - bytes) + TCP_LENGTH;
}

static uint8_t code_of(const struct rejected *rejected, enum reject_with with)
{
	const bool ipv4 = rejected->ip.version == 4;

	if (with == REJECT_USUAL)
		with = rejected->ip.proto == PROTO_UDP ? REJECT_PORT : REJECT_ADMIN;
	if (with == REJECT_PORT)
		return ipv4 ? 3 : 4;
	if (with == REJECT_HOST)
		return ipv4 ? 1 : 3;
	return ipv4 ? 13 : 1;
}

static size_t build_error(
	const struct rejected *rejected, enum reject_with with, uint8_t *bytes, size_t room)
{
	const bool ipv4 = rejected->ip.version == 4;
	const size_t headers = (ipv4 ? IPV4_LENGTH : IPV6_LENGTH) + ICMP_LENGTH;
	const size_t most = RTE_MIN(room, rejected->l3 + (ipv4 ? ERROR_IPV4_MAX : ERROR_IPV6_MAX));
	const size_t least = rejected->l3 + headers;
	size_t quoted = rejected->limit - rejected->l3;
	struct answer answer;

	if (most <= least)
		return 0;
	quoted = RTE_MIN(quoted, most - least);
	if (!begin(rejected, bytes, room, ICMP_LENGTH + quoted, &answer) ||
		!copy(rejected->frame, rejected->l3, quoted, answer.upper + ICMP_LENGTH))
		return 0;
	memset(answer.upper, 0, ICMP_LENGTH);
	answer.upper[0] = ipv4 ? ICMP_UNREACHABLE : ICMPV6_UNREACHABLE;
	answer.upper[1] = code_of(rejected, with);
	write_ip(rejected, &answer, ipv4 ? PROTO_ICMP : PROTO_ICMPV6,
		/* without the bits of congestion (RFC 3168) */
		INTERNETWORK_CONTROL | (rejected->tos & 0x1c));
	finish_upper(rejected, &answer, ipv4 ? PROTO_ICMP : PROTO_ICMPV6, answer.upper + 2);
	return least + quoted;
}

size_t reject_build(
	const struct rte_mbuf *frame, enum reject_with with, uint8_t *answer, size_t room)
{
	struct rejected rejected;
	size_t length;

	if (room < REJECT_MIN || !read_rejected(frame, &rejected))
		return 0;
	const bool is_tcp = rejected.ip.proto == PROTO_TCP;

	if (with == REJECT_TCP_RESET && !is_tcp)
		return 0;
	if (is_tcp && (with == REJECT_USUAL || with == REJECT_TCP_RESET))
		length = build_reset(&rejected, answer, room);
	else
		length = build_error(&rejected, with, answer, room);
	if (length == 0 || length >= REJECT_MIN)
		return length;
	memset(answer + length, 0, REJECT_MIN - length);
	return REJECT_MIN;
}
