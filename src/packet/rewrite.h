/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Changes header fields of an Ethernet frame in place, and keeps its checksums right.
 *
 * Checksums are updated from the old and the new bytes alone (RFC 1624 equation 3; SCTP's CRC32c is
 * linear and is updated likewise): the payload is not read, and a packet that was damaged before stays
 * damaged for its receiver. The checksum has to be a finished one (packet/checksum.h).
 *
 * These are updated:
 * - the IPv4 header checksum;
 * - the checksums of TCP, UDP, UDP-Lite, DCCP, and over IPv6 ICMPv6, which cover the addresses. ICMP over
 *   IPv4 and SCTP have no pseudo-header. UDP checksum 0 (none) stays 0, and a result of 0 is written as
 *   0xffff (RFC 768; UDP-Lite: RFC 3828 section 3.1). The checksum of other protocols stays as it is;
 * - over IPv6, an address that a routing header will replace before the packet arrives is not part of
 *   the checksum (RFC 8200 section 8.1). The home address option of Mobile IPv6 is not looked for;
 * - SCTP's CRC32c when a port changes (RFC 9260 appendix A). A CRC of 0 stays 0 (RFC 9653).
 *
 * A first fragment has the upper layer's header, whose checksum covers the whole datagram: it is updated
 * as in a whole packet. SCTP is the exception, since the CRC depends on the datagram's length, which the
 * first fragment does not tell. A later fragment has only an IP header to change. Where the frame or the
 * datagram ends inside the upper layer's header, the fields that are there whole are changed. The packet that an
 * ICMP error quotes is not changed. An authentication header (RFC 4302) is not made right again.
 *
 * The frame may consist of any number of segments, and headers may cross their borders. Nothing beyond
 * the frame's bytes is written, whatever these are. All segments belong to the caller alone: clones that
 * share their bytes have to be copied first.
 *
 * Addresses and ports are in network byte order. Pure: no state, callable from any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

enum rewrite_result {
	REWRITE_DONE,	       /* or there is nothing to change */
	REWRITE_EXPIRED,       /* the TTL or hop limit is 0 or 1 */
	REWRITE_NOT_IP,	       /* no whole IP header */
	REWRITE_OTHER_VERSION, /* an address of the other IP version */
	REWRITE_UNTAGGED,      /* no VLAN tag */
	REWRITE_NO_ROOM,       /* the first segment has no headroom for a tag */
	REWRITE_FRAGMENT,      /* a port of SCTP in a first fragment */
};

/* "done", "ttl expired", "not ip", "other ip version", "untagged", "no headroom", "sctp fragment". */
const char *rewrite_result_name(enum rewrite_result result);

/* Selects one of two addresses or ports; the value is its position in the packet. */
enum rewrite_side {
	REWRITE_SOURCE = 0,
	REWRITE_DESTINATION = 1,
};

/* The positions of a frame's headers, in bytes from its first one. */
struct rewrite_headers {
	uint32_t l3;	   /* the IP header; without one, what follows Ethernet and tags */
	uint32_t l4;	   /* the upper layer, or the extension header that is cut */
	uint32_t limit;	   /* where the datagram ends in the frame */
	uint32_t l4_bytes; /* of the upper layer, by the IP header's word */
	uint16_t n_tags;
	uint8_t version; /* 4, 6, or 0: no whole IP header */
	uint8_t proto;	 /* of the upper layer */
	uint8_t flags;	 /* of enum packet_flag: first or later fragment, cut */
	bool routed;	 /* a routing header has segments left */
};

/*
 * Finds the headers of `frame`. Returns false when there is no whole Ethernet header, or a VLAN tag is
 * cut; then nothing below may be called. Every function below that changes the position of a header
 * keeps `headers` true.
 */
bool rewrite_read(const struct rte_mbuf *frame, struct rewrite_headers *headers);

/* Sets the source or destination MAC address. */
void rewrite_mac(struct rte_mbuf *frame, enum rewrite_side side, const uint8_t mac[6]);

/*
 * Decrements the TTL or hop limit by one. One that is 0 or 1 stays, and the result is REWRITE_EXPIRED
 * (RFC 1812 section 5.3.1, RFC 8200 section 3). Or REWRITE_NOT_IP.
 */
enum rewrite_result rewrite_ttl(struct rte_mbuf *frame, const struct rewrite_headers *headers);

/* Sets the TTL or hop limit. Or REWRITE_NOT_IP. */
enum rewrite_result rewrite_ttl_set(
	struct rte_mbuf *frame, const struct rewrite_headers *headers, uint8_t ttl);

/* Whether rewrite_ttl() would succeed; the same results. */
enum rewrite_result rewrite_ttl_check(
	const struct rte_mbuf *frame, const struct rewrite_headers *headers);

/*
 * Puts a tag in front of those that are there: `tpid` 0x8100 (802.1Q) or 0x88a8 (802.1ad), `tci` priority and
 * VLAN id; both in host order. Or REWRITE_NO_ROOM, and nothing is changed.
 */
enum rewrite_result rewrite_vlan_push(
	struct rte_mbuf *frame, struct rewrite_headers *headers, uint16_t tpid, uint16_t tci);

/*
 * Takes the outermost tag away, or REWRITE_UNTAGGED. A first segment of less than 4 bytes becomes an
 * empty one.
 */
enum rewrite_result rewrite_vlan_pop(struct rte_mbuf *frame, struct rewrite_headers *headers);

/* Sets the VLAN id of the outermost tag; its priority stays. Or REWRITE_UNTAGGED. */
enum rewrite_result rewrite_vlan_set(
	struct rte_mbuf *frame, const struct rewrite_headers *headers, uint16_t vlan);

/*
 * Sets an address: 4 bytes with `version` 4, 16 bytes with 6. Or REWRITE_NOT_IP or REWRITE_OTHER_VERSION,
 * and nothing is changed.
 */
enum rewrite_result rewrite_address(struct rte_mbuf *frame, const struct rewrite_headers *headers,
	enum rewrite_side side, unsigned version, const uint8_t *address);

/*
 * Sets a port of TCP, UDP, UDP-Lite, SCTP or DCCP. REWRITE_DONE also for packets that have none: other
 * protocols, later fragments, ports that are cut. Or REWRITE_FRAGMENT, and nothing is changed.
 */
enum rewrite_result rewrite_port(struct rte_mbuf *frame, const struct rewrite_headers *headers,
	enum rewrite_side side, rte_be16_t port);

/* Whether rewrite_port() would succeed, whatever the port is; the same results. */
enum rewrite_result rewrite_port_check(const struct rewrite_headers *headers);

/* Ones' complement sums: see RFC 1071. Any order of bytes, as long as it is the same everywhere. */
static inline uint16_t rewrite_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The checksum after a change by which the sum of the covered bytes grows by `delta`. */
static inline uint16_t rewrite_mend(uint16_t checksum, uint64_t delta)
{
	const uint64_t sum = (uint16_t)~checksum + delta;

	/* two numbers of 16 bits carry once at most */
	if (__builtin_constant_p(delta) && delta <= UINT16_MAX)
		return (uint16_t)~((sum & 0xffff) + (sum >> 16));
	return (uint16_t)~rewrite_fold(sum);
}
