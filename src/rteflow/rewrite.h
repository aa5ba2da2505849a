/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a NIC changes of packets that it sends on: the part of an action program that leaves headers of the same size.
 * All values are in network byte order, as they stand in the header. Checksums are the NIC's to mend.
 *
 * As rte_flow actions these are SET_MAC_*, SET_IPV4_* or SET_IPV6_* (by the flow's kind), SET_TP_* and DEC_TTL, in
 * this order. Pure. Whoever asks for the rule owns it; it is read within the call that
 * inserts the rule, and not kept.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_flow.h>

#define REWRITE_SRC 0
#define REWRITE_DST 1
/* Bits of `what`; the second of a pair is one further: REWRITE_MAC << REWRITE_DST. */
#define REWRITE_MAC (1u << 0)
#define REWRITE_ADDR (1u << 2)
#define REWRITE_PORT (1u << 4) /* of TCP and UDP */
#define REWRITE_TTL \
	(1u << 6) /* one less; or hop limit. What a NIC does with the last one is its own affair */
#define REWRITE_ALL 0x7fu

struct offload_rewrite {
	uint8_t what;
	uint8_t mac[2][6];
	uint8_t addr[2][16]; /* of IPv4 the first 4 bytes */
	uint16_t port[2];
};

/* Actions of one, at most. */
#define REWRITE_ACTIONS 7

/* What the list of actions points to. */
struct rewrite_actions {
	struct rte_flow_action_set_mac mac[2];
	uint8_t addr[2][16]; /* rte_flow_action_set_ipv4 and _ipv6 are nothing but the address */
	struct rte_flow_action_set_tp port[2];
};

/* Writes up to REWRITE_ACTIONS into `list`, and says how many. */
unsigned rewrite_list(struct rewrite_actions *actions, struct rte_flow_action *list,
	const struct offload_rewrite *rewrite, bool ipv6);
