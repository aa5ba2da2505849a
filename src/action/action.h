/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A list of actions says what happens to the packets of one direction of a flow. Rules, routes and NAT make such lists.
 * action_program_compile() (action/program.h) makes of a list what workers run.
 *
 * Fields are set independently of one another, whatever their order in the list. The VLAN actions work on the stack
 * of tags in the order of the list. Numbers are in host order unless their type says otherwise.
 */

#include <stdint.h>

#include <rte_byteorder.h>

#include "action/punt.h"
#include "packet/reject.h"

enum action_kind {
	ACTION_FORWARD, /* to where the domain sends it; also without it */
	ACTION_OUTPUT,	/* `port`: to this port */
	ACTION_NEXT_HOP, /* `number`: to this next hop (action/next_hop.h), with a link header of its own */
	ACTION_DROP,   /* nothing else stands in such a list */
	ACTION_REJECT, /* `reject`: drop, and tell the sender; nothing else stands in such a list */
	ACTION_PUNT,   /* `punt`: to the kernel; nothing else stands in such a list */
	ACTION_DISCARD, /* `discard`: drop, as the route says; nothing else stands in such a list */
	ACTION_SET_MAC_SRC, /* `mac` */
	ACTION_SET_MAC_DST, /* `mac` */
	ACTION_DECREMENT_TTL,
	ACTION_SET_TTL,	     /* `ttl`: or hop limit */
	ACTION_VLAN_PUSH,    /* `vlan`: a new outermost tag */
	ACTION_VLAN_POP,     /* the outermost tag */
	ACTION_VLAN_SET,     /* `vlan.id`: the id of the outermost tag, whose priority stays */
	ACTION_SET_IPV4_SRC, /* `address`: its first 4 bytes */
	ACTION_SET_IPV4_DST,
	ACTION_SET_IPV6_SRC, /* `address` */
	ACTION_SET_IPV6_DST,
	ACTION_SET_PORT_SRC, /* `l4_port`: TCP, UDP, UDP-Lite, SCTP, DCCP; others stay as they are */
	ACTION_SET_PORT_DST,
	ACTION_POLICE, /* `number`: of the worker's policers (action/policer.h) */
	ACTION_METER,  /* `number`: of the meters of all workers (action/meter.h) */
	ACTION_MIRROR, /* `mirror`: one packet in so many, chosen by chance, as it leaves */
	ACTION_DECAP, /* `decap`: the outer headers come off; nothing else is changed but by ACTION_ENCAP */
	ACTION_ENCAP, /* `encap`: outer headers come on, after all other changes */
	ACTION_N_KINDS,
};

/* Why a router drops packets of a flow. */
enum action_discard {
	ACTION_DISCARD_MARTIAN,	  /* an address that cannot be one of a host */
	ACTION_DISCARD_BLACKHOLE, /* a route that drops */
	ACTION_DISCARD_SOURCE,	  /* no route leads back to its source, or not by that port */
	ACTION_N_DISCARDS,
};

/* Ports of the engine; no port has the last number. */
#define ACTION_MAX_PORT 0xfffe

/* A list is no longer. */
#define ACTION_LIST_MAX 32

struct action_vlan {
	uint16_t tpid;	  /* of a push: 0x8100 or 0x88a8 */
	uint16_t id;	  /* 0 to 4094; 0 is a tag that has a priority alone */
	uint8_t priority; /* of a push: 0 to 7 */
};

struct action_mirror {
	uint16_t port;
	uint32_t one_in; /* 1: every packet */
};

enum action_tunnel {
	ACTION_TUNNEL_BYTES, /* the first `length` bytes of the frame, whatever they are */
	ACTION_TUNNEL_VXLAN, /* Ethernet with tags, IP, UDP and VXLAN (RFC 7348) */
	ACTION_TUNNEL_NVGRE, /* Ethernet with tags, IP and GRE with a key (RFC 7637) */
	ACTION_N_TUNNELS,
};

struct action_decap {
	enum action_tunnel tunnel;
	uint8_t length; /* of ACTION_TUNNEL_BYTES: 1 to 255 */
};

/*
 * Headers that come in front of a frame, from Ethernet on: with tags, IPv4 without options or IPv6 without extension
 * headers, UDP, and what follows. Lengths and the IPv4 checksum are set for each packet. A UDP source port of 0
 * becomes one that is made of the inner flow (RFC 7348 section 5); UDP has no checksum (RFC 6935). Bytes that are not
 * IP behind Ethernet are left as they are.
 */
#define ACTION_ENCAP_MAX 120

struct action_encap {
	uint8_t length; /* 1 to ACTION_ENCAP_MAX */
	uint8_t bytes[ACTION_ENCAP_MAX];
};

struct action {
	enum action_kind kind;
	union {
		uint16_t port;
		enum reject_with reject;
		enum punt_reason punt;
		enum action_discard discard;
		uint32_t number;
		uint8_t ttl;
		uint8_t mac[6];
		struct action_vlan vlan;
		uint8_t address[16]; /* network byte order */
		rte_be16_t l4_port;
		struct action_mirror mirror;
		struct action_decap decap;
		struct action_encap encap;
	};
};

/* "forward", "output", "set-mac-src", ...; "?" for what is no kind. */
const char *action_kind_name(enum action_kind kind);
