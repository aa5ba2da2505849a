/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Forms of rules: every pattern that `millrace probe` asks a NIC about, and every set of actions. A form is one of
 * each. The first patterns are those that the engine's own rules have (rteflow/shape.h); behind them stand a few that
 * other programs ask for.
 *
 * Pure. What is built points into the struct it was built in.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_flow.h>

#include "rteflow/shape.h"

enum form_special {
	FORM_SHAPE,	/* one of the engine's: rteflow/shape.h */
	FORM_ADDRESSES, /* "eth / ipv4": nothing is said of layer 4 */
	FORM_PREFIX,	/* 24 bits of the source's address */
	FORM_TO_PORT,	/* the destination's port alone */
	FORM_MAC,	/* the destination's Ethernet address */
	FORM_TAG,	/* a VLAN's number */
	FORM_VXLAN,	/* a tunnel's number */
};

struct form_pattern {
	char name[48]; /* "eth / ipv4 / tcp flags" */
	enum form_special special;
	enum provider_kind kind; /* of packets that it may match; PROVIDER_N_KINDS: of any */
	struct shape shape;
};

/* The order counts: form_is_gone(). */
enum form_fate {
	FORM_NONE, /* as the shape has it */
	FORM_QUEUE,
	FORM_DROP,
	FORM_REPRESENTED_PORT, /* sent out of a port */
	FORM_PORT_ID,	       /* the same in the words of older drivers */
};

struct form_actions {
	const char *name; /* "mark + queue + count" */
	enum form_fate fate;
	bool mark;
	bool count;
	uint8_t marked; /* enum shape_fate, of those that mark */
};

struct form {
	struct form_pattern pattern;
	const struct form_actions *actions;
};

/* False, or NULL: there are not so many. */
bool form_pattern(unsigned i, struct form_pattern *pattern);
const struct form_actions *form_actions(unsigned i);
unsigned form_n_actions(void);

/* All forms, pattern by pattern. False: there are not so many. */
bool form_get(unsigned number, struct form *form);
unsigned form_n(void);

/* Packets of such a rule do not come to the CPU. */
static inline bool form_is_gone(const struct form_actions *actions)
{
	return actions->fate >= FORM_DROP;
}
static inline bool form_is_sent_on(const struct form_actions *actions)
{
	return actions->fate >= FORM_REPRESENTED_PORT;
}

/* What the rule is for, and what is to become of its packets. */
struct form_aim {
	struct offload_rule rule;
	struct rte_ether_addr to; /* the destination's Ethernet address */
	uint16_t queue;		  /* of QUEUE, and where the shape names one */
	struct shape_port port;	  /* with the queues of RSS */
	uint16_t target;	  /* ethdev that packets are sent out of */
	/* takes the place of the rule's counter; NULL: it has one of its own */
	const struct rte_flow_action_handle *counter;
};

struct form_rule {
	struct rte_flow_attr attr;
	const struct rte_flow_item *items;
	const struct rte_flow_action *actions, *masks;
	/* inside */
	struct shape_items shape;
	struct rte_flow_item_vxlan vxlan, vxlan_mask;
	struct shape_actions made, made_masks;
	uint8_t worker_queue[1];
	struct shape_port port;
};

void form_build(struct form_rule *rule, const struct form *form, const struct form_aim *aim);
