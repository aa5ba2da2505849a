/* SPDX-License-Identifier: BSD-3-Clause */
#include "action/tunnel.h"

#include <rte_byteorder.h>

#define PROTO_GRE 47
#define UDP_LENGTH 8
#define VXLAN_LENGTH 8
#define VXLAN_HAS_VNI 0x08
#define GRE_LENGTH 8 /* with a key, without checksum and sequence number */
#define GRE_KEY_ALONE 0x2000
#define ETHERTYPE_ETHERNET 0x6558 /* of GRE: a whole frame follows */
/* Tags that rewriting may have put on before the headers do, and an IP header that may not grow beyond 16 bits. */
#define ROOM_FOR_TAGS (ACTION_MAX_TAGS * (uint32_t)VLAN_TAG_LENGTH)
/* The source port of a tunnel is a dynamic one (RFC 7348 section 5). */
#define FIRST_DYNAMIC 49152

/* The upper layer behind Ethernet, tags and a plain IP header. */
struct outer {
	unsigned l3, l4; /* offsets */
	uint8_t version; /* 0: it is not such a header, or it is cut */
	uint8_t proto;
};

static struct outer read_outer(const uint8_t *bytes, unsigned length)
{
	struct outer outer = {.l3 = ETHERNET_LENGTH};
	const uint8_t *ip;

	while (outer.l3 <= length && ethertype_is_vlan(load_be16(bytes + outer.l3 - 2)))
		outer.l3 += VLAN_TAG_LENGTH;
	if (outer.l3 + IPV4_LENGTH > length)
		return outer;
	ip = bytes + outer.l3;

	const uint16_t ethertype = load_be16(ip - 2);

	if (ethertype == ETHERTYPE_IPV4 && ip[0] >> 4 == 4 && (ip[0] & 15) >= 5) {
		outer.l4 = outer.l3 + 4 * (ip[0] & 15u);
		outer.proto = ip[9];
		/* a fragment is no whole packet of a tunnel */
		outer.version = (load_be16(ip + 6) & 0x3fff) == 0 ? 4 : 0;
	} else if (ethertype == ETHERTYPE_IPV6 && ip[0] >> 4 == 6) {
		outer.l4 = outer.l3 + IPV6_LENGTH;
		outer.proto = ip[6];
		outer.version = 6;
	}
	if (outer.l4 > length)
		outer.version = 0;
	return outer;
}

/* ------------------------------ headers that come off */

/* How many bytes are in front of the inner frame, or 0: it is no such tunnel's. */
static unsigned tunnel_length(
	enum action_tunnel tunnel, const uint8_t *bytes, unsigned length, const struct outer *outer)
{
	const uint8_t *l4 = bytes + outer->l4;

	switch (tunnel) {
	case ACTION_TUNNEL_VXLAN:
		if (outer->proto == PROTO_UDP && outer->l4 + UDP_LENGTH + VXLAN_LENGTH <= length &&
			l4[UDP_LENGTH] & VXLAN_HAS_VNI)
			return outer->l4 + UDP_LENGTH + VXLAN_LENGTH;
		break;
	case ACTION_TUNNEL_NVGRE:
		if (outer->proto == PROTO_GRE && outer->l4 + GRE_LENGTH <= length &&
			load_be16(l4) == GRE_KEY_ALONE && load_be16(l4 + 2) == ETHERTYPE_ETHERNET)
			return outer->l4 + GRE_LENGTH;
		break;
	case ACTION_TUNNEL_BYTES:
	case ACTION_N_TUNNELS:
		break;
	}
	return 0;
}

/* Finds how many bytes the decap removes. Returns false for a frame that is too short, or has no such headers. */
static bool strip_length(
	const struct action_program *program, const struct rte_mbuf *frame, unsigned *strip)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	const unsigned length = frame->data_len;

	if (program->decap == ACTION_TUNNEL_BYTES) {
		*strip = program->decap_length;
	} else {
		const struct outer outer = read_outer(bytes, length);

		*strip = outer.version == 0 ? 0
					    : tunnel_length((enum action_tunnel)program->decap,
						      bytes, length, &outer);
		if (*strip == 0)
			return false;
	}
	/* with headers of its own in front, what is left need not begin with Ethernet */
	return *strip <= length &&
	       frame->pkt_len - *strip >= (program->encap_length > 0 ? 1 : ETHERNET_LENGTH);
}

/* ------------------------------ headers that come on */

const char *action_tunnel_compile(struct action_program *program, const struct action_encap *encap)
{
	if (encap->length == 0 || encap->length > ACTION_ENCAP_MAX)
		return "a tunnel's headers have 1 to 120 bytes";
	memcpy(program->encap, encap->bytes, encap->length);
	program->encap_length = encap->length;
	if (encap->length < ETHERNET_LENGTH)
		return NULL;

	const struct outer outer = read_outer(encap->bytes, encap->length);
	const uint16_t ethertype =
		outer.l3 <= encap->length ? load_be16(encap->bytes + outer.l3 - 2) : 0;

	if (outer.version == 0 && (ethertype == ETHERTYPE_IPV4 || ethertype == ETHERTYPE_IPV6) &&
		outer.l3 < encap->length)
		return "the IP header of the tunnel is cut, or is a fragment's";
	if (outer.version == 0)
		return NULL;
	if (outer.version == 4 && outer.l4 != outer.l3 + IPV4_LENGTH)
		return "the IP header of the tunnel has options";
	program->encap_version = outer.version;
	program->encap_l3 = (uint8_t)outer.l3;
	if (outer.proto != PROTO_UDP)
		return NULL;
	if (outer.l4 + UDP_LENGTH > encap->length)
		return "the UDP header of the tunnel is cut";
	program->encap_udp = (uint8_t)outer.l4;
	return NULL;
}

bool action_tunnel_possible(
	const struct action_program *program, const struct rte_mbuf *frame, unsigned *strip)
{
	*strip = 0;
	if (program->does & ACTION_DOES_DECAP && !strip_length(program, frame, strip))
		return false;
	if (!(program->does & ACTION_DOES_ENCAP))
		return true;
	const uint32_t more = program->encap_length + ROOM_FOR_TAGS;

	return more <= rte_pktmbuf_headroom(frame) + *strip &&
	       frame->pkt_len - *strip + more <= UINT16_MAX;
}

/* A number that is the same for all packets of the inner flow, and spreads flows. */
static uint16_t inner_port(const struct rte_mbuf *frame)
{
	const struct rewrite_headers none = {0};
	struct rewrite_headers headers = none;
	uint8_t bytes[40 + 4] = {0};
	const void *addresses, *ports = NULL;
	uint64_t hash = 0;
	uint64_t word;

	if (!rewrite_read(frame, &headers) || headers.version == 0)
		return FIRST_DYNAMIC;

	const bool ipv4 = headers.version == 4;
	const uint32_t n = ipv4 ? 8 : 32;

	addresses = rte_pktmbuf_read(frame, headers.l3 + (ipv4 ? 12 : 8), n, bytes);
	if (addresses == NULL)
		return FIRST_DYNAMIC;
	if (addresses != bytes)
		memcpy(bytes, addresses, n);
	/* not of fragments: only the first one has them */
	if ((headers.proto == PROTO_TCP || headers.proto == PROTO_UDP) &&
		!(headers.flags & PACKET_FRAGMENT))
		ports = rte_pktmbuf_read(frame, headers.l4, 4, &bytes[40]);
	if (ports != NULL && ports != &bytes[40])
		memcpy(&bytes[40], ports, 4);
	bytes[32] = headers.proto;
	for (unsigned i = 0; i + sizeof(word) <= 40; i += sizeof(word)) {
		memcpy(&word, &bytes[i], sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	hash = (hash ^ load_32(&bytes[40])) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint16_t)(FIRST_DYNAMIC | (hash >> 50));
}

static void store_be16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Lengths and the checksum of the headers at the front of the frame. */
static void finish(
	const struct action_program *program, uint8_t *start, uint32_t length, uint16_t port)
{
	uint8_t *ip = start + program->encap_l3;
	uint64_t sum = 0;

	length -= program->encap_l3;
	if (program->encap_version == 4) {
		store_be16(ip + 2, (uint16_t)length);
		store_be16(ip + 10, 0);
		for (unsigned i = 0; i < IPV4_LENGTH; i += 4)
			sum += load_32(ip + i);

		const uint16_t checksum = (uint16_t)~rewrite_fold(sum);

		memcpy(ip + 10, &checksum, sizeof(checksum));
	} else {
		store_be16(ip + 4, (uint16_t)(length - IPV6_LENGTH));
	}
	if (program->encap_udp == 0)
		return;

	uint8_t *udp = start + program->encap_udp;

	if (load_be16(udp) == 0)
		store_be16(udp, port);
	store_be16(udp + 4, (uint16_t)(length - (program->encap_udp - program->encap_l3)));
	store_be16(udp + 6, 0);
}

void action_tunnel(const struct action_program *program, struct rte_mbuf *frame, unsigned strip)
{
	uint16_t port = 0;

	frame->data_off = (uint16_t)(frame->data_off + strip);
	frame->data_len = (uint16_t)(frame->data_len - strip);
	frame->pkt_len -= strip;
	if (!(program->does & ACTION_DOES_ENCAP))
		return;
	if (program->encap_udp != 0 && load_be16(program->encap + program->encap_udp) == 0)
		port = inner_port(frame);

	const uint16_t length = program->encap_length;
	uint8_t *start;

	frame->data_off = (uint16_t)(frame->data_off - length);
	frame->data_len = (uint16_t)(frame->data_len + length);
	frame->pkt_len += length;
	start = rte_pktmbuf_mtod(frame, uint8_t *);
	memcpy(start, program->encap, length);
	if (program->encap_version != 0)
		finish(program, start, frame->pkt_len, port);
}
