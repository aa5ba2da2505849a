/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The common marked packet: TCP or UDP over IPv4 without tags, options or fragments, of a connection that
 * neither begins nor ends. It is compared with the record that its mark names as it lies in the frame, and no
 * key is made of it. For the short way's watching walk, which is compiled once per SIMD level.
 */

#include <netinet/in.h>

#include "flow/account.h"
#include "packet/extract_common.h"

#define MARK_IPV4_OFFSET ETHERNET_LENGTH
#define MARK_UPPER_OFFSET (ETHERNET_LENGTH + IPV4_LENGTH)
#define MARK_LEAST (MARK_UPPER_OFFSET + TCP_LENGTH)

/* What of a packet can be said before its record is there: whether it is such a one. */
static __rte_always_inline bool mark_is_common(const struct rte_mbuf *packet)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(packet, const uint8_t *);

	/* frames are 60 bytes at least, so that all UDP headers are there too */
	if (unlikely(packet->data_len < MARK_LEAST))
		return false;
	/* type, version and header length; then more fragments and the offset */
	if (unlikely((load_be32(bytes + 12) >> 8) != 0x080045 ||
		     (load_be16(bytes + 20) & 0x3fff) != 0))
		return false;

	uint8_t proto = bytes[MARK_IPV4_OFFSET + 9];
	uint16_t length = load_be16(bytes + MARK_IPV4_OFFSET + 2);
	unsigned syn = bytes[MARK_UPPER_OFFSET + 13] & (TCP_SYN | TCP_FIN | TCP_RST);
	unsigned whole = bytes[MARK_UPPER_OFFSET + 12] >= TCP_LENGTH << 2;
	unsigned tcp =
		(proto == IPPROTO_TCP) & (syn == 0) & whole & (length >= IPV4_LENGTH + TCP_LENGTH);
	unsigned udp = (proto == IPPROTO_UDP) & (length >= IPV4_LENGTH + sizeof(uint32_t));

	return tcp | udp;
}

static __rte_always_inline bool mark_is_tcp(const struct rte_mbuf *packet)
{
	return *rte_pktmbuf_mtod_offset(packet, const uint8_t *, MARK_IPV4_OFFSET + 9) ==
	       IPPROTO_TCP;
}

/*
 * Is the packet one of the record's flow? `rest` is the last word of such keys without ports and protocol. Sets
 * the end that it comes from.
 */
static __rte_always_inline bool mark_verify(const struct flow_record *record,
	const struct rte_mbuf *packet, uint64_t rest, unsigned *from)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(packet, const uint8_t *, MARK_IPV4_OFFSET);
	uint64_t src = load_32(header + 12), dst = load_32(header + 16);
	uint32_t ports = load_32(header + IPV4_LENGTH);
	uint64_t first, second, tail;

	memcpy(&first, &record->key.addr[0][0], sizeof(first));
	memcpy(&second, &record->key.addr[1][0], sizeof(second));
	memcpy(&tail, record->key.port, sizeof(tail));
	rest |= (uint64_t)header[9] << 48;

	uint64_t forward = (src ^ first) | (dst ^ second) | (tail ^ (rest | ports));
	uint64_t reverse =
		(dst ^ first) | (src ^ second) | (tail ^ (rest | (ports << 16 | ports >> 16)));

	*from = forward != 0;
	return (forward == 0) | (reverse == 0);
}

/* Accounts a verified packet; false, with nothing changed, where that is not all: see account_plain(). */
static __rte_always_inline bool mark_account(struct flow_record *record,
	const struct rte_mbuf *packet, unsigned from, bool tcp, uint64_t now_us)
{
	const uint8_t *header = rte_pktmbuf_mtod_offset(packet, const uint8_t *, MARK_UPPER_OFFSET);
	struct packet_info info;

	info.from = (uint8_t)from;
	info.bytes = packet->pkt_len;
	info.flags = tcp ? PACKET_TCP : 0;
	if (tcp)
		info.tcp = tcp_fields(
			header, load_be16(header - IPV4_LENGTH + 2) - (size_t)IPV4_LENGTH);
	return account_plain(record, &info, now_us);
}
