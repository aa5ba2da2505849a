/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/view.h"

#include <stddef.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_common.h>

#define NONE (-1)

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_TEB = 0x6558, /* an Ethernet frame, in GRE and GENEVE */
	TYPE_VLAN = 0x8100,
	TYPE_QINQ = 0x88a8,
	TYPE_QINQ_OLD = 0x9100,
	TYPE_QINQ_OLDER = 0x9200,
};

enum {
	PROTO_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_GRE = 47,
	PROTO_ESP = 50,
	PROTO_AUTH = 51,
	PROTO_ICMP6 = 58,
	PROTO_DESTINATION = 60,
	PROTO_SCTP = 132,
	PROTO_MOBILITY = 135,
	PROTO_HIP = 139,
	PROTO_SHIM6 = 140,
};

enum { PORT_VXLAN = 4789, PORT_GENEVE = 6081, PORT_GTPU = 2152 };

#define MAX_TAGS 2
#define MAX_EXTENSIONS 8
#define MAX_GTPU_EXTENSIONS 4

/* How far the walk has come; `at` is never beyond `length`. */
struct walk {
	const uint8_t *frame;
	uint32_t length, at;
};

/* The next n bytes, or NULL when they are not all there. */
static inline const uint8_t *peek(const struct walk *walk, uint32_t n)
{
	return n <= walk->length - walk->at ? walk->frame + walk->at : NULL;
}

static inline bool skip(struct walk *walk, uint32_t n)
{
	if (n > walk->length - walk->at)
		return false;
	walk->at += n;
	return true;
}

static inline const uint8_t *take(struct walk *walk, uint32_t n)
{
	const uint8_t *bytes = peek(walk, n);

	if (bytes != NULL)
		walk->at += n;
	return bytes;
}

static inline unsigned be16(const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return rte_be_to_cpu_16(value);
}

static inline bool is_tag(unsigned type)
{
	return type == TYPE_VLAN || type == TYPE_QINQ || type == TYPE_QINQ_OLD ||
	       type == TYPE_QINQ_OLDER;
}

/* The type behind the addresses and tags; NONE: nothing behind them is there. */
static inline int walk_eth(struct walk *walk, struct sim_level *level, uint32_t *layers)
{
	const uint8_t *eth = take(walk, sizeof(level->eth));
	unsigned type;

	if (unlikely(eth == NULL))
		return NONE;
	memcpy(level->eth, eth, sizeof(level->eth));
	*layers |= SIM_ETH;
	type = be16(eth + 12);
	for (unsigned n = 0; is_tag(type); n++) {
		const uint8_t *tag = take(walk, sizeof(level->vlan[0]));

		if (tag == NULL)
			return NONE;
		if (n == 0)
			level->has_vlan = 1;
		else
			level->has_more |= (uint8_t)(1u << (n - 1));
		if (n == MAX_TAGS)
			return NONE;
		memcpy(level->vlan[n], tag, sizeof(level->vlan[n]));
		*layers |= (uint32_t)SIM_VLAN << n;
		type = be16(tag + 2);
	}
	return (int)type;
}

/* The protocol behind the header; NONE: none that is there. */
static inline int walk_ipv4(struct walk *walk, struct sim_level *level, uint32_t *layers)
{
	const uint8_t *ip = peek(walk, 20);

	if (ip == NULL || ip[0] >> 4 != 4 || (ip[0] & 0x0f) < 5)
		return NONE;
	memcpy(level->ip, ip, 20);
	*layers |= SIM_IPV4;
	if ((be16(ip + 6) & 0x1fff) != 0 || !skip(walk, (ip[0] & 0x0fu) * 4))
		return NONE;
	return ip[9];
}

/* The bit of an extension header among the item's has_..._ext, or NONE: it is not such a header. */
static inline int extension_bit(unsigned header)
{
	switch (header) {
	case PROTO_HOP:
		return 0;
	case PROTO_ROUTING:
		return 1;
	case PROTO_FRAGMENT:
		return 2;
	case PROTO_AUTH:
		return 3;
	case PROTO_ESP:
		return 4;
	case PROTO_DESTINATION:
		return 5;
	case PROTO_MOBILITY:
		return 6;
	case PROTO_HIP:
		return 7;
	case PROTO_SHIM6:
		return 8;
	default:
		return NONE;
	}
}

static __rte_noinline int walk_extensions(
	struct walk *walk, struct sim_level *level, uint32_t *layers, unsigned header)
{
	for (unsigned n = 0; extension_bit(header) != NONE; n++) {
		unsigned bit = (unsigned)extension_bit(header);
		const uint8_t *bytes = peek(walk, 8);
		uint32_t size;

		if (n == MAX_EXTENSIONS || bytes == NULL)
			return NONE;
		level->ipv6_has[bit / 8] |= (uint8_t)(1u << bit % 8);
		if (header == PROTO_ESP)
			return NONE;
		size = (bytes[1] + 1u) * 8;
		if (header == PROTO_AUTH) {
			size = (bytes[1] + 2u) * 4;
		} else if (header == PROTO_FRAGMENT) {
			size = 8;
			if (!(*layers & SIM_IPV6_FRAG))
				memcpy(level->ipv6_frag, bytes, sizeof(level->ipv6_frag));
			*layers |= SIM_IPV6_FRAG;
			if ((be16(bytes + 2) & 0xfff8) != 0)
				return NONE;
		}
		header = bytes[0];
		if (!skip(walk, size))
			return NONE;
	}
	return (int)header;
}

static inline int walk_ipv6(struct walk *walk, struct sim_level *level, uint32_t *layers)
{
	const uint8_t *ip = peek(walk, 40);

	if (ip == NULL || ip[0] >> 4 != 6)
		return NONE;
	memcpy(level->ip, ip, 40);
	*layers |= SIM_IPV6;
	walk->at += 40;
	if (likely(extension_bit(ip[6]) == NONE))
		return ip[6];
	return walk_extensions(walk, level, layers, ip[6]);
}

static inline int walk_ip(struct walk *walk, struct sim_level *level, uint32_t *layers, int type)
{
	if (type == TYPE_IPV4)
		return walk_ipv4(walk, level, layers);
	if (type == TYPE_IPV6)
		return walk_ipv6(walk, level, layers);
	return NONE;
}

/* The layer of a protocol's header, and its size; 0: no such layer 4. */
static inline uint32_t l4_layer(int protocol, bool v6, uint32_t *size)
{
	switch (protocol) {
	case PROTO_TCP:
		*size = 20;
		return SIM_TCP;
	case PROTO_UDP:
		*size = 8;
		return SIM_UDP;
	case PROTO_SCTP:
		*size = 12;
		return SIM_SCTP;
	case PROTO_ICMP:
		*size = 8;
		return v6 ? 0 : SIM_ICMP;
	case PROTO_ICMP6:
		*size = 8;
		return v6 ? SIM_ICMP6 : 0;
	default:
		return 0;
	}
}

static inline void walk_l4(
	struct walk *walk, struct sim_level *level, uint32_t *layers, int protocol)
{
	uint32_t size = 0;
	uint32_t layer = l4_layer(protocol, *layers & SIM_IPV6, &size);
	const uint8_t *bytes = layer != 0 ? take(walk, size) : NULL;

	if (bytes == NULL)
		return;
	/* sizes that the compiler knows are stores, not calls */
	if (layer == SIM_TCP) {
		memcpy(level->l4, bytes, 20);
	} else {
		memcpy(level->l4, bytes, 8);
		if (layer == SIM_SCTP)
			memcpy(level->l4 + 8, bytes + 8, 4);
	}
	*layers |= layer;
}

/* What an inner level begins with: TYPE_TEB, TYPE_IPV4, TYPE_IPV6; anything else: there is none. */
static int walk_vxlan(struct walk *walk, struct sim_view *view)
{
	const uint8_t *bytes = take(walk, 8);

	if (bytes == NULL)
		return NONE;
	memcpy(view->tunnel, bytes, 8);
	view->layers |= SIM_VXLAN;
	return TYPE_TEB;
}

static int walk_geneve(struct walk *walk, struct sim_view *view)
{
	const uint8_t *bytes = take(walk, 8);

	if (bytes == NULL)
		return NONE;
	memcpy(view->tunnel, bytes, 8);
	view->layers |= SIM_GENEVE;
	return skip(walk, (bytes[0] & 0x3fu) * 4) ? (int)be16(bytes + 2) : NONE;
}

/* 3GPP TS 29.281, section 5: lengths of extension headers count units of four bytes. */
static bool skip_gtpu_extensions(struct walk *walk, unsigned type)
{
	for (unsigned n = 0; type != 0; n++) {
		const uint8_t *bytes = peek(walk, 4);
		uint32_t size;

		if (n == MAX_GTPU_EXTENSIONS || bytes == NULL || bytes[0] == 0)
			return false;
		size = bytes[0] * 4u;
		if (!skip(walk, size))
			return false;
		type = bytes[size - 1];
	}
	return true;
}

static int walk_gtpu(struct walk *walk, struct sim_view *view)
{
	const uint8_t *bytes = peek(walk, 8);
	const uint8_t *optional;

	if (bytes == NULL || (bytes[0] & 0xf0) != 0x30 || bytes[1] != 255)
		return NONE;
	walk->at += 8;
	memcpy(view->tunnel, bytes, 8);
	view->layers |= SIM_GTPU;
	if (bytes[0] & 0x07) {
		optional = take(walk, 4);
		if (optional == NULL)
			return NONE;
		memcpy(view->tunnel + 8, optional, 4);
		if (bytes[0] & 0x04 && !skip_gtpu_extensions(walk, optional[3]))
			return NONE;
	}
	bytes = peek(walk, 1);
	if (bytes == NULL)
		return NONE;
	return bytes[0] >> 4 == 4 ? TYPE_IPV4 : bytes[0] >> 4 == 6 ? TYPE_IPV6 : NONE;
}

/* RFC 2784, RFC 2890. What asks for RFC 1701's routing is not looked into. */
static int walk_gre(struct walk *walk, struct sim_view *view)
{
	const uint8_t *bytes = peek(walk, 4);
	const uint8_t *key;

	/* version 1 is PPTP's */
	if (bytes == NULL || (bytes[1] & 0x07) != 0)
		return NONE;
	walk->at += 4;
	memcpy(view->tunnel, bytes, 4);
	view->layers |= SIM_GRE;
	if (bytes[0] & 0x40 || (bytes[0] & 0x80 && !skip(walk, 4)))
		return NONE;
	if (bytes[0] & 0x20) {
		key = take(walk, 4);
		if (key == NULL)
			return NONE;
		memcpy(view->tunnel + 4, key, 4);
		view->layers |= SIM_GRE_KEY;
	}
	if (bytes[0] & 0x10 && !skip(walk, 4))
		return NONE;
	return (int)be16(bytes + 2);
}

static __rte_noinline void walk_inner(struct walk *walk, struct sim_view *view, int type)
{
	struct sim_level *level = &view->level[1];
	uint32_t layers = 0;
	uint32_t start = walk->at;

	if (type == TYPE_TEB)
		type = walk_eth(walk, level, &layers);
	walk_l4(walk, level, &layers, walk_ip(walk, level, &layers, type));
	if (layers != 0)
		view->inner_at = (uint16_t)RTE_MIN(start, (uint32_t)UINT16_MAX);
	view->layers |= layers << SIM_INNER;
}

/* Behind an outer UDP header, or where GRE begins. */
static inline void walk_tunnel(struct walk *walk, struct sim_view *view, int protocol)
{
	int type = NONE;

	if (view->layers & SIM_UDP) {
		unsigned port = be16(view->level[0].l4 + 2);

		if (port == PORT_VXLAN)
			type = walk_vxlan(walk, view);
		else if (port == PORT_GENEVE)
			type = walk_geneve(walk, view);
		else if (port == PORT_GTPU)
			type = walk_gtpu(walk, view);
	} else if (protocol == PROTO_GRE) {
		type = walk_gre(walk, view);
	}
	if (unlikely(type != NONE))
		walk_inner(walk, view, type);
}

void sim_view_parse(struct sim_view *view, const uint8_t *frame, uint32_t length)
{
	struct walk walk = {.frame = frame, .length = length};
	struct sim_level *level = &view->level[0];
	uint32_t layers = 0;
	uint32_t l3_at, l4_at;
	int type, protocol;

	sim_clear(view, offsetof(struct sim_view, port));
	view->unused = view->l3_at = view->l4_at = view->inner_at = 0;
	view->length = (uint16_t)RTE_MIN(length, (uint32_t)UINT16_MAX);
	type = walk_eth(&walk, level, &layers);
	l3_at = walk.at;
	protocol = walk_ip(&walk, level, &layers, type);
	if (layers & (SIM_IPV4 | SIM_IPV6))
		view->l3_at = (uint16_t)l3_at;
	l4_at = walk.at;
	walk_l4(&walk, level, &layers, protocol);
	if (layers & (SIM_TCP | SIM_UDP | SIM_SCTP | SIM_ICMP | SIM_ICMP6))
		view->l4_at = (uint16_t)l4_at;
	view->layers = layers;
	walk_tunnel(&walk, view, protocol);
}

void sim_view_packet(struct sim_view *view, const struct rte_mbuf *packet)
{
	sim_view_parse(view, rte_pktmbuf_mtod(packet, const uint8_t *), packet->data_len);
}
