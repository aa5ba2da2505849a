/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Action programs: a list of actions (action/action.h), compiled to what a worker runs over packets.
 *
 * A program holds which changes it makes, as bits, and the bytes to write. For common packets, whose headers lie where
 * extract() found them, action_run() is inlined and consists of a few loads and stores; other packets take
 * action_run_any(), which reads their headers again and changes them by packet/rewrite.h. Both make the same bytes.
 *
 * A packet that is dropped is unchanged: a router may answer it with an ICMP error. The policer is asked last, and after it the
 * meter, so that only packets that would go on take from them. A packet for which an action is impossible is dropped, since sending it half changed would be worse:
 * addresses of the other IP version, a tag to take off where there is none, no headroom for a tag or a tunnel's headers, a
 * port of SCTP in a first fragment (packet/rewrite.h), a tunnel's headers to take off where there are none.
 *
 * Programs are values without pointers: equal lists make equal bytes. A program is written once, and read by any
 * thread. Frames belong to the worker that runs a program over them, all their segments to it alone.
 */

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "action/action.h"
#include "action/meter.h"
#include "action/next_hop.h"
#include "action/policer.h"
#include "base/error.h"
#include "packet/extract.h"
#include "packet/headers.h"
#include "packet/rewrite.h"

/* The port of a packet that goes where its domain sends it, and of no mirror. */
#define ACTION_NO_PORT 0xffff

#define ACTION_MAX_TAGS 4

enum action_does {
	ACTION_DOES_DROP = 1 << 0,
	ACTION_DOES_MAC_DST = 1 << 1,
	ACTION_DOES_MAC_SRC = 1 << 2,
	ACTION_DOES_TTL = 1 << 3,
	ACTION_DOES_ADDRESS_SRC = 1 << 4,
	ACTION_DOES_ADDRESS_DST = 1 << 5,
	ACTION_DOES_PORT_SRC = 1 << 6,
	ACTION_DOES_PORT_DST = 1 << 7,
	ACTION_DOES_VLAN = 1 << 8,
	ACTION_DOES_NEXT_HOP = 1 << 9,
	ACTION_DOES_POLICE = 1 << 10,
	ACTION_DOES_MIRROR = 1 << 11,
	ACTION_DOES_DECAP = 1 << 12,
	ACTION_DOES_ENCAP = 1 << 13,
	ACTION_DOES_SET_TTL = 1 << 14,
	ACTION_DOES_METER = 1 << 15,
	ACTION_DOES_REJECT = 1 << 16,
	ACTION_DOES_PUNT = 1 << 17,
	ACTION_DOES_DISCARD = 1 << 18,
	ACTION_DOES_TUNNEL = ACTION_DOES_DECAP | ACTION_DOES_ENCAP,
	/* done by action_run_any() alone */
	ACTION_DOES_SELDOM = ACTION_DOES_DROP | ACTION_DOES_TUNNEL | ACTION_DOES_SET_TTL |
			     ACTION_DOES_METER | ACTION_DOES_REJECT | ACTION_DOES_PUNT |
			     ACTION_DOES_DISCARD,
	ACTION_DOES_MACS = ACTION_DOES_MAC_DST | ACTION_DOES_MAC_SRC,
	ACTION_DOES_ADDRESSES = ACTION_DOES_ADDRESS_SRC | ACTION_DOES_ADDRESS_DST,
	ACTION_DOES_PORTS = ACTION_DOES_PORT_SRC | ACTION_DOES_PORT_DST,
	/* any of these needs a frame whose headers can be read */
	ACTION_DOES_REWRITE = ACTION_DOES_MACS | ACTION_DOES_TTL | ACTION_DOES_SET_TTL |
			      ACTION_DOES_ADDRESSES | ACTION_DOES_PORTS | ACTION_DOES_VLAN |
			      ACTION_DOES_NEXT_HOP,
};

/*
 * Fields that are not used are 0. Only IPv6 addresses and tags lie beyond the first line, and what is of tunnels beyond
 * the second.
 */
struct action_program {
	alignas(RTE_CACHE_LINE_SIZE) uint32_t does; /* enum action_does */
	uint16_t port;				    /* or ACTION_NO_PORT */
	uint8_t version;			    /* of the addresses: 4 or 6 */
	uint8_t n_pop;				    /* tags that are taken off */
	uint8_t n_push;				    /* tags that come on, after that */
	uint8_t sets_vlan; /* 1: `vlan` is for the tag that is outermost between the two */
	uint16_t vlan;
	uint8_t mac[12];       /* destination, source: as a frame begins */
	rte_be16_t l4_port[2]; /* source, destination */
	uint32_t next_hop;
	uint32_t policer;
	uint32_t mirror_below; /* of 2^32: how many packets are mirrored; 0: all */
	uint16_t mirror_port;
	uint8_t ttl; /* that is set */
	uint8_t zero_ttl;
	uint8_t addr[2][16];		  /* source, destination; of IPv4 the first 4 bytes */
	uint8_t tags[ACTION_MAX_TAGS][4]; /* as they stand in the frame, outermost first */
	uint32_t meter;
	uint8_t reject;	    /* enum reject_with */
	uint8_t punt;	    /* enum punt_reason */
	uint8_t discard;    /* enum action_discard */
	uint8_t zero_8[29]; /* no byte is left to chance: programs are compared as bytes */
	/* tunnels: action/tunnel.h */
	uint8_t decap;	       /* enum action_tunnel */
	uint8_t decap_length;  /* of ACTION_TUNNEL_BYTES */
	uint8_t encap_length;  /* 0: nothing comes on */
	uint8_t encap_version; /* of the IP header in `encap`: 4, 6, or 0 */
	uint8_t encap_l3;      /* its offset */
	uint8_t encap_udp;     /* offset of the UDP header, or 0 */
	uint8_t zero_tunnel[2];
	uint8_t encap[ACTION_ENCAP_MAX];
};

static_assert(sizeof(struct action_program) == 256, "four lines of the cache");
static_assert(offsetof(struct action_program, addr[1][4]) <= 64, "IPv4 stays in the first line");

/*
 * Compiles `n` actions (0 to ACTION_LIST_MAX). Returns 0, or -EINVAL and says which action is wrong and why; `program`
 * is written on success only.
 */
int action_program_compile(
	struct action_program *program, const struct action *list, unsigned n, struct error *error);

/* Whether the program does nothing but forward. */
static inline bool action_program_is_plain(const struct action_program *program)
{
	return program->does == 0 && program->port == ACTION_NO_PORT;
}

enum action_drop {
	ACTION_DROP_NONE,
	ACTION_DROP_BLOCKED, /* by ACTION_DROP */
	ACTION_DROP_REJECTED, /* by ACTION_REJECT: the caller sends the answer that tells the sender */
	ACTION_DROP_PUNTED,  /* by ACTION_PUNT: the packet is the kernel's, for the reason `punt` */
	ACTION_DROP_MARTIAN, /* by ACTION_DISCARD, in the order of its reasons */
	ACTION_DROP_BLACKHOLE,
	ACTION_DROP_SOURCE,
	ACTION_DROP_TTL_EXPIRED, /* the frame is unchanged */
	ACTION_DROP_NO_NEXT_HOP, /* it is invalid; the frame is unchanged */
	ACTION_DROP_TOO_BIG,	 /* for the next hop's MTU; the frame is unchanged */
	ACTION_DROP_POLICED,
	ACTION_DROP_METERED,	  /* by a meter, for its color */
	ACTION_DROP_NOT_POSSIBLE, /* see above; the frame is unchanged */
	ACTION_N_DROPS,
};

/*
 * "none", "blocked", "rejected", "punted", "martian", "blackhole", "source", "ttl_expired", "no_next_hop", "too_big", "policed", "metered",
 * "not_possible".
 */
const char *action_drop_name(enum action_drop drop);

/* The result for one packet. */
struct action_answer {
	uint16_t port; /* where it goes; ACTION_NO_PORT: where its domain sends it */
	uint16_t
		mirror_port; /* where a copy of it goes, or ACTION_NO_PORT; none of a dropped one */
	uint8_t drop;	     /* enum action_drop; the port has no meaning unless it is 0 */
	uint8_t color;	     /* enum policer_color; green without a policer or meter */
	uint8_t punt;	     /* enum punt_reason, where `drop` is ACTION_DROP_PUNTED */
	uint8_t zero;	     /* no byte is left to chance: answers are compared as bytes */
};

/* A worker's own state, which its programs need. */
struct action_context {
	const struct next_hops *next_hops; /* NULL: there are none */
	struct policer *policers;	   /* the worker's own */
	uint32_t n_policers;
	uint32_t n_meters;
	struct action_meter *meters; /* one for all workers; NULL: there are none */
	uint64_t now_ns; /* for policers and meters, of the run's clock; set once a burst */
	uint64_t random; /* chooses what is mirrored; any start */
};

/* The positions of a packet's headers. */
struct action_packet {
	uint16_t l3, l4; /* offsets in the frame */
	uint8_t version; /* 4 or 6 */
	uint8_t proto;	 /* TCP or UDP */
	/*
	 * TCP or UDP, whole in the first segment up to its checksum and within its datagram, straight after an
	 * IP header without options or extension headers, not a fragment, over Ethernet. Else the rest has no
	 * meaning.
	 */
	bool common;
};

/* Takes the positions from what extract() found; the frame begins with Ethernet. */
static inline struct action_packet action_packet_of(
	const struct rte_mbuf *frame, const struct packet_info *info)
{
	const uint8_t proto = info->key.proto;
	const bool ipv4 = flow_key_version(&info->key) == 4;
	const uint16_t length = ipv4 ? IPV4_LENGTH : IPV6_LENGTH;
	const uint16_t upper = proto == PROTO_TCP ? TCP_LENGTH : 8;
	const uint16_t l3 = (uint16_t)(info->l4_offset - length);
	/* one branch: each of these is seldom */
	const unsigned seldom = (info->flags & (PACKET_UNPLAIN | PACKET_FRAGMENT | PACKET_CUT)) |
				((unsigned)(proto != PROTO_TCP) & (unsigned)(proto != PROTO_UDP)) |
				(unsigned)(info->l4_offset < ETHERNET_LENGTH + length) |
				(unsigned)(frame->data_len < (uint32_t)info->l4_offset + upper);
	bool common = false;

	if (likely(seldom == 0)) {
		const uint8_t *ip = rte_pktmbuf_mtod_offset(frame, const uint8_t *, l3);

		if (ipv4)
			common = ip[0] == 0x45 && ip[9] == proto &&
				 load_be16(ip + 2) >= IPV4_LENGTH + upper;
		else
			common = ip[6] == proto && load_be16(ip + 4) >= upper;
	}
	return (struct action_packet){
		.l3 = l3,
		.l4 = info->l4_offset,
		.version = ipv4 ? 4 : 6,
		.proto = proto,
		.common = common,
	};
}

/* For any packet; the same as action_run(). */
void action_run_any(const struct action_program *program, struct action_context *context,
	struct rte_mbuf *frame, struct action_answer *answer);

/*
 * Inside of action_run() and action_run_any(). `does` is what the program does: a constant for the common programs, so
 * that nothing is asked of those but what they do.
 */

static inline __attribute__((always_inline)) enum action_drop action_police(uint32_t does,
	const struct action_program *program, struct action_context *context,
	const struct rte_mbuf *frame, struct action_answer *answer)
{
	if (likely(!(does & ACTION_DOES_POLICE)))
		return ACTION_DROP_NONE;
	if (unlikely(program->policer >= context->n_policers))
		return ACTION_DROP_NOT_POSSIBLE;
	answer->color = (uint8_t)policer_color(
		&context->policers[program->policer], context->now_ns, frame->pkt_len);
	return answer->color == POLICER_RED ? ACTION_DROP_POLICED : ACTION_DROP_NONE;
}

static inline __attribute__((always_inline)) void action_mirror(uint32_t does,
	const struct action_program *program, struct action_context *context,
	struct action_answer *answer)
{
	if (likely(!(does & ACTION_DOES_MIRROR)))
		return;
	/* a linear congruential generator (Knuth's MMIX); its high bits are good enough for a sample */
	context->random = context->random * 6364136223846793005u + 1442695040888963407u;
	if (program->mirror_below == 0 || (uint32_t)(context->random >> 32) < program->mirror_below)
		answer->mirror_port = program->mirror_port;
}

/* The next hop of a packet whose IP part has `ip_bytes`, or why there is none. */
static inline __attribute__((always_inline)) enum action_drop action_next_hop(uint32_t does,
	const struct action_program *program, const struct action_context *context,
	uint32_t ip_bytes, const struct next_hop **hop)
{
	*hop = NULL;
	if (!(does & ACTION_DOES_NEXT_HOP))
		return ACTION_DROP_NONE;
	if (unlikely(context->next_hops == NULL))
		return ACTION_DROP_NO_NEXT_HOP;
	*hop = next_hops_get(context->next_hops, program->next_hop);
	if (unlikely(!(*hop)->valid))
		return ACTION_DROP_NO_NEXT_HOP;
	return unlikely(ip_bytes > (*hop)->mtu) ? ACTION_DROP_TOO_BIG : ACTION_DROP_NONE;
}

/* By how many bytes the link header of a common packet grows, or shrinks. */
static inline int action_common_growth(const struct action_program *program,
	const struct action_packet *packet, const struct next_hop *hop)
{
	if (hop != NULL)
		return ETHERNET_LENGTH + (hop->vlan != 0 ? VLAN_TAG_LENGTH : 0) - packet->l3;
	return (program->n_push - program->n_pop) * VLAN_TAG_LENGTH;
}

static inline __attribute__((always_inline)) bool action_common_possible(uint32_t does,
	const struct action_program *program, const struct rte_mbuf *frame,
	const struct action_packet *packet, int growth)
{
	if (does & ACTION_DOES_ADDRESSES && program->version != packet->version)
		return false;
	if (growth > 0 &&
		(growth > rte_pktmbuf_headroom(frame) || frame->data_len > UINT16_MAX - growth))
		return false;
	return !(does & ACTION_DOES_VLAN) ||
	       ETHERNET_LENGTH + (program->n_pop + program->sets_vlan) * VLAN_TAG_LENGTH <=
		       packet->l3;
}

/* The first bytes of a frame whose tags change: addresses in front, tags behind them. */
static inline void action_common_vlan(
	const struct action_program *program, struct rte_mbuf *frame, int growth)
{
	uint8_t *old = rte_pktmbuf_mtod(frame, uint8_t *);
	uint8_t *start = old - growth;
	uint8_t macs[12];

	memcpy(macs, old, sizeof(macs));
	frame->data_off = (uint16_t)(frame->data_off - growth);
	frame->data_len = (uint16_t)(frame->data_len + growth);
	frame->pkt_len = (uint32_t)((int)frame->pkt_len + growth);
	memcpy(start, macs, sizeof(macs));
	start += sizeof(macs);
	for (unsigned i = 0; i < program->n_push; i++, start += VLAN_TAG_LENGTH)
		memcpy(start, program->tags[i], VLAN_TAG_LENGTH);
	if (program->sets_vlan) {
		start[2] = (uint8_t)((start[2] & 0xf0) | program->vlan >> 8);
		start[3] = (uint8_t)program->vlan;
	}
}

/* A link header of the next hop's. The ethertype in front of the IP header stays where it is. */
static inline void action_common_hop(const struct next_hop *hop, struct rte_mbuf *frame, int growth)
{
	if (unlikely(growth != 0)) {
		frame->data_off = (uint16_t)(frame->data_off - growth);
		frame->data_len = (uint16_t)(frame->data_len + growth);
		frame->pkt_len = (uint32_t)((int)frame->pkt_len + growth);
	}

	uint8_t *start = rte_pktmbuf_mtod(frame, uint8_t *);

	memcpy(start, hop->mac_dst, 12);
	if (hop->vlan != 0) {
		const uint8_t tag[VLAN_TAG_LENGTH] = {
			0x81, 0x00, (uint8_t)(hop->vlan >> 8), (uint8_t)hop->vlan};

		memcpy(start + 12, tag, sizeof(tag));
	}
}

static inline uint16_t action_load_16(const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Writes `n` bytes, a multiple of 4, and returns by what the sum over them grows. */
static inline __attribute__((always_inline)) uint64_t action_replace(
	uint8_t *at, const uint8_t *bytes, unsigned n)
{
	uint64_t delta = 0;

	for (unsigned i = 0; i < n; i += 4)
		delta += (uint64_t)(uint32_t)~load_32(at + i) + load_32(bytes + i);
	memcpy(at, bytes, n);
	return delta;
}

static inline __attribute__((always_inline)) uint64_t action_common_addresses(
	uint32_t does, const struct action_program *program, uint8_t *addresses, unsigned n)
{
	uint64_t delta = 0;

	if (does & ACTION_DOES_ADDRESS_SRC)
		delta += action_replace(addresses, program->addr[0], n);
	if (does & ACTION_DOES_ADDRESS_DST)
		delta += action_replace(addresses + n, program->addr[1], n);
	return delta;
}

/* Ports, and the checksum after all changes. */
static inline __attribute__((always_inline)) void action_common_upper(uint32_t does,
	const struct action_program *program, uint8_t *upper, bool udp, uint64_t delta)
{
	uint8_t *field = upper + (udp ? 6 : 16);
	uint16_t checksum;

	for (unsigned side = 0; side < 2; side++) {
		if (!(does & ACTION_DOES_PORT_SRC << side))
			continue;
		delta += (uint64_t)(uint16_t)~action_load_16(upper + side * 2) +
			 program->l4_port[side];
		memcpy(upper + side * 2, &program->l4_port[side], sizeof(program->l4_port[side]));
	}
	checksum = action_load_16(field);
	if (udp && checksum == 0)
		return;
	checksum = rewrite_mend(checksum, delta);
	if (udp && checksum == 0)
		checksum = UINT16_MAX;
	memcpy(field, &checksum, sizeof(checksum));
}

/* Changes the IP header and the upper layer's. */
static inline __attribute__((always_inline)) void action_common_ip(uint32_t does,
	const struct action_program *program, uint8_t *ip, const struct action_packet *packet)
{
	const uint32_t translates = ACTION_DOES_ADDRESSES | ACTION_DOES_PORTS;
	uint64_t delta = 0;

	if (packet->version == 4) {
		/* RFC 1624: a byte that is first of two becomes less by one */
		uint64_t ttl = does & ACTION_DOES_TTL ? (uint16_t)~rte_cpu_to_be_16(0x0100) : 0;
		uint16_t checksum;

		delta = action_common_addresses(does, program, ip + 12, 4);
		if (does & (ACTION_DOES_TTL | ACTION_DOES_ADDRESSES)) {
			ip[8] = (uint8_t)(ip[8] - (ttl != 0));
			checksum = rewrite_mend(action_load_16(ip + 10), delta + ttl);
			memcpy(ip + 10, &checksum, sizeof(checksum));
		}
	} else {
		ip[7] = (uint8_t)(ip[7] - ((does & ACTION_DOES_TTL) != 0));
		delta = action_common_addresses(does, program, ip + 8, 16);
	}
	if (does & translates)
		action_common_upper(does, program, ip + (packet->l4 - packet->l3),
			packet->proto == PROTO_UDP, delta);
}

static inline __attribute__((always_inline)) enum action_drop action_run_common(uint32_t does,
	const struct action_program *program, struct action_context *context,
	struct rte_mbuf *frame, const struct action_packet *packet, struct action_answer *answer)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(frame, uint8_t *, packet->l3);
	const struct next_hop *hop;
	enum action_drop drop;
	int growth;

	if (does & ACTION_DOES_TTL && unlikely(ip[packet->version == 4 ? 8 : 7] <= 1))
		return ACTION_DROP_TTL_EXPIRED;
	drop = action_next_hop(does, program, context, frame->pkt_len - packet->l3, &hop);
	if (unlikely(drop != ACTION_DROP_NONE))
		return drop;
	growth = does & (ACTION_DOES_NEXT_HOP | ACTION_DOES_VLAN)
			 ? action_common_growth(program, packet, hop)
			 : 0;
	if (unlikely(!action_common_possible(does, program, frame, packet, growth)))
		return ACTION_DROP_NOT_POSSIBLE;
	drop = action_police(does, program, context, frame, answer);
	if (unlikely(drop != ACTION_DROP_NONE))
		return drop;
	if (hop != NULL) {
		answer->port = hop->port;
		action_common_hop(hop, frame, growth);
	} else if (does & ACTION_DOES_VLAN) {
		action_common_vlan(program, frame, growth);
	}
	if ((does & ACTION_DOES_MACS) == ACTION_DOES_MACS)
		memcpy(rte_pktmbuf_mtod(frame, uint8_t *), program->mac, 12);
	else if (does & ACTION_DOES_MAC_DST)
		memcpy(rte_pktmbuf_mtod(frame, uint8_t *), program->mac, 6);
	else if (does & ACTION_DOES_MAC_SRC)
		memcpy(rte_pktmbuf_mtod(frame, uint8_t *) + 6, program->mac + 6, 6);
	if (does & (ACTION_DOES_TTL | ACTION_DOES_ADDRESSES | ACTION_DOES_PORTS))
		action_common_ip(does, program, ip, packet);
	action_mirror(does, program, context, answer);
	return ACTION_DROP_NONE;
}

#define ACTION_ROUTES (ACTION_DOES_NEXT_HOP | ACTION_DOES_TTL)
#define ACTION_ROUTES_BY_MAC (ACTION_DOES_MACS | ACTION_DOES_TTL)
#define ACTION_TRANSLATES (ACTION_DOES_ADDRESSES | ACTION_DOES_PORTS)

/* Runs a program over one packet, and fills the answer. */
static inline void action_run(const struct action_program *program, struct action_context *context,
	struct rte_mbuf *frame, const struct action_packet *packet, struct action_answer *answer)
{
	const uint32_t does = program->does;
	enum action_drop drop;

	if (unlikely(!packet->common || does & ACTION_DOES_SELDOM)) {
		action_run_any(program, context, frame, answer);
		return;
	}
	*answer = (struct action_answer){
		.port = program->port,
		.mirror_port = ACTION_NO_PORT,
	};
	switch (does) {
	case ACTION_ROUTES:
		drop = action_run_common(ACTION_ROUTES, program, context, frame, packet, answer);
		break;
	case ACTION_ROUTES_BY_MAC:
		drop = action_run_common(
			ACTION_ROUTES_BY_MAC, program, context, frame, packet, answer);
		break;
	case ACTION_ROUTES | ACTION_TRANSLATES:
		drop = action_run_common(
			ACTION_ROUTES | ACTION_TRANSLATES, program, context, frame, packet, answer);
		break;
	case ACTION_ROUTES_BY_MAC | ACTION_TRANSLATES:
		drop = action_run_common(ACTION_ROUTES_BY_MAC | ACTION_TRANSLATES, program, context,
			frame, packet, answer);
		break;
	case ACTION_TRANSLATES:
		drop = action_run_common(
			ACTION_TRANSLATES, program, context, frame, packet, answer);
		break;
	default:
		drop = action_run_common(does, program, context, frame, packet, answer);
	}
	answer->drop = (uint8_t)drop;
}

/* Each packet has a program of its own; `n` is any number. */
static inline void action_run_burst(const struct action_program *const programs[],
	struct action_context *context, struct rte_mbuf *frames[],
	const struct action_packet packets[], struct action_answer answers[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		action_run(programs[i], context, frames[i], &packets[i], &answers[i]);
}
