/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A rule of the classifier as a pattern of rte_flow, for NICs that drop its packets before they reach the engine.
 *
 * The pattern never matches more than the rule does, so that software, which keeps the rule, does the rest. It leaves
 * out fragments wherever the rule asks for more than addresses: later fragments have the ports of their first one, which
 * the engine has to see. What cannot be said so is refused.
 *
 * Pure. What is built points into the struct that it was built in.
 */

#include <stdbool.h>

#include <rte_flow.h>

#include "rule/classifier.h"

/* Why a rule is not a NIC's. */
enum rule_nic {
	RULE_NIC_FITS,
	RULE_NIC_ACTIONS,  /* it does something else than drop */
	RULE_NIC_REJECTS,  /* it tells senders that it drops */
	RULE_NIC_LOGS,	   /* it tells what comes to it */
	RULE_NIC_GROUP,	   /* packets come to it by a jump */
	RULE_NIC_VERSION,  /* its pattern says neither IPv4 nor IPv6 */
	RULE_NIC_PROTOCOL, /* NICs may read another protocol in the header than software does */
	RULE_NIC_SET,	   /* it asks for an address of a set */
	RULE_NIC_FIELD,	   /* it asks for a field that is not given to NICs */
	RULE_NIC_STATE,	   /* it asks for the state of a conversation, or the direction in it */
	RULE_NIC_LIMIT,	   /* it is a limit of its source's flows */
	RULE_NIC_REPLIES,  /* its packets may be replies, which follow a rule */
	RULE_NIC_BEHIND,  /* a rule before it matches some of its packets, and does not drop them */
	RULE_NIC_SHARED,  /* it counts with other rules together */
	RULE_NIC_MANY,	  /* there are more rules than are given to NICs */
	RULE_NIC_PENDING, /* it is not compared with all rules before it yet */
	RULE_NIC_N,
};

/* One sentence without a full stop; "" for RULE_NIC_FITS. */
const char *rule_nic_words(enum rule_nic why);

struct rule_command; /* rule/command.h */

/* Of RULE_NIC_ACTIONS: the name of the first action that keeps a rule from NICs; NULL: it has none, but does not drop. */
const char *rule_nic_action(const struct rule_command *command);

struct rule_nic_items {
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
		struct rte_flow_item_icmp icmp;
		struct rte_flow_item_icmp6 icmp6;
	} upper, upper_last, upper_mask;
	struct rte_flow_item list[5];
};

/* Fills `items`, or says why there is no such pattern. The port that the rule asks for is not part of it. */
enum rule_nic rule_nic_pattern(const struct classifier_rule *rule, struct rule_nic_items *items);

/* Can any packet match both? True where that is not known. */
bool rule_nic_overlap(const struct classifier_rule *one, const struct classifier_rule *other);
