/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The shape of a rule says which items and actions it is made of. All rules of a kind of flow have the same
 * on a port, since many NICs take one set of fields for each packet type only; addresses, ports, VLAN and mark are each
 * rule's own, all compared whole. All lists of items and actions that flows' rules have are built here.
 *
 * A rule is for packets of one direction, from one end of the key to the other. It names the header of layer 4
 * (ICMP without any of its fields: all ICMP between two addresses is one flow), so that it never matches later fragments,
 * which have none and belong to the flow of their first one.
 *
 * A rule that marks matches all packets of the direction, of TCP with SYN, FIN and RST too: the CPU sees each of them.
 * Full offload is by transfer rules, which name the port that packets arrive at, and take whole packets only (a later
 * fragment would come to the CPU, and its first one not) and of TCP none with SYN, FIN or RST.
 *
 * Pure, but for shape_port_read(). What is built points into the struct it was built in.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_flow.h>

#include "rteflow/provider.h"
#include "rteflow/rewrite.h"

/* What becomes of a marked packet: it has to come where it came before. */
enum shape_fate {
	SHAPE_ALONE, /* nothing is said */
	SHAPE_PASSTHRU,
	SHAPE_QUEUE, /* that of its worker */
	SHAPE_RSS,   /* as the port does it */
	SHAPE_N_FATES,
};

struct shape {
	bool eth;      /* an Ethernet item comes first */
	bool typed;    /* which says that IP follows at once: packets without tags only */
	bool vlan;     /* the outer tag has the key's zone */
	bool no_flags; /* of TCP without SYN, FIN, RST only: of full offload */
	bool count;
	uint8_t fate; /* enum shape_fate */
	/* of full offload, and of an operator's rules that drop */
	uint8_t deed;  /* enum provider_deed */
	bool port_id;  /* ports are named by PORT_ID, which is older, else by REPRESENTED_PORT */
	bool indirect; /* the counter is one that outlives the rule */
};

#define SHAPE_QUEUES 128
#define SHAPE_KEY 64

/* What rules of a port have in common. */
struct shape_port {
	uint16_t id;
	uint16_t forward_to;
	uint16_t n_queues;
	const uint8_t *worker_queue; /* NULL: all go to queue 0 */
	uint64_t rss_types;
	uint32_t rss_key_length; /* 0: the driver's own */
	uint8_t rss_key[SHAPE_KEY];
	uint16_t queues[SHAPE_QUEUES];
};

struct shape_items {
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan, vlan_mask;
	union {
		struct rte_flow_item_ipv4 ipv4;
		struct rte_flow_item_ipv6 ipv6;
	} ip, ip_mask;
	union {
		struct rte_flow_item_tcp tcp;
		struct rte_flow_item_udp udp;
		struct rte_flow_item_sctp sctp;
	} upper, upper_mask;
	union {
		struct rte_flow_item_ethdev ethdev;
		struct rte_flow_item_port_id port_id;
	} port, port_mask;
	struct rte_flow_item list[6];
};

struct shape_actions {
	struct rte_flow_action_mark mark;
	struct rte_flow_action_count count;
	struct rte_flow_action_queue queue;
	union {
		struct rte_flow_action_ethdev ethdev;
		struct rte_flow_action_port_id port_id;
	} port;
	struct rte_flow_action_rss rss;
	struct rewrite_actions rewrite;
	/* a counter, what is rewritten, the fate, and the end; marks have no more */
	struct rte_flow_action list[REWRITE_ACTIONS + 3];
};

/* Asks the port how it spreads packets. */
void shape_port_read(struct shape_port *port, const struct provider_config *config);

/* Rules of full offload are transfer rules, others ingress. */
static inline struct rte_flow_attr shape_attr(const struct shape *shape)
{
	const bool full = shape->deed != PROVIDER_MARKS;

	return (struct rte_flow_attr){.ingress = !full, .transfer = full};
}
void shape_items(struct shape_items *items, const struct shape *shape, enum provider_kind kind,
	const struct shape_port *port, const struct offload_rule *rule);
/* A counter that outlives the rule is the first action, INDIRECT; its handle is the caller's to fill in. */
void shape_actions(struct shape_actions *actions, const struct shape *shape,
	const struct shape_port *port, const struct offload_rule *rule);
/* Masks for a template of actions: mark and queue are each rule's own, RSS is the same for all. */
void shape_action_masks(
	struct shape_actions *masks, const struct shape *shape, const struct shape_port *port);

/* "eth / ipv4 / tcp flags" */
void shape_pattern_text(
	char *text, size_t size, const struct shape *shape, enum provider_kind kind);
/* "eth / ipv4 / tcp flags, mark + queue + count", cut to `size`. */
void shape_text(char *text, size_t size, const struct shape *shape, enum provider_kind kind);
