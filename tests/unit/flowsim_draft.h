/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Drafts of rules that tests make of their parts, and what a profile of the simulated NIC says to them. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_byteorder.h>

#include "drivers/flowsim/kind/input_set.h"
#include "drivers/flowsim/kind/profile.h"
#include "drivers/flowsim/match/rule.h"

#define ACTION(name) (1ull << RTE_FLOW_ACTION_TYPE_##name)
#define END_ITEM {.type = RTE_FLOW_ITEM_TYPE_END}

/* A rule's parts; what is all zero is not in it. */
struct parts {
	enum sim_domain domain;
	uint32_t group, priority;
	struct rte_flow_item_eth *eth, *eth_mask;
	struct rte_flow_item_vlan *vlan, *vlan_mask;
	struct rte_flow_item_ipv4 *ipv4, *ipv4_mask, *ipv4_last;
	struct rte_flow_item_ipv6 *ipv6, *ipv6_mask;
	struct rte_flow_item_tcp *tcp, *tcp_mask;
	struct rte_flow_item_udp *udp, *udp_mask;
	bool no_eth, no_ip;
	struct sim_actions actions;
};

static struct rte_flow_item_ipv4 ends4 = {
	.hdr.src_addr = RTE_BE32(0x0a000001), .hdr.dst_addr = RTE_BE32(0x0a000002)};
static struct rte_flow_item_ipv4 ends4_mask = {
	.hdr.src_addr = UINT32_MAX, .hdr.dst_addr = UINT32_MAX};
static struct rte_flow_item_udp ports = {
	.hdr.src_port = RTE_BE16(1024), .hdr.dst_port = RTE_BE16(80)};
static struct rte_flow_item_udp ports_mask = {
	.hdr.src_port = UINT16_MAX, .hdr.dst_port = UINT16_MAX};

static inline unsigned put(struct rte_flow_item *items, unsigned n, enum rte_flow_item_type type,
	const void *spec, const void *mask, const void *last)
{
	items[n] = (struct rte_flow_item){
		.type = type, .spec = spec, .mask = spec != NULL ? mask : NULL, .last = last};
	return n + 1;
}

static inline void make_draft(struct sim_draft *draft, const struct parts *parts)
{
	struct rte_flow_item items[8] = {END_ITEM};
	struct sim_fault_at fault = {.cause = NULL};
	bool four = parts->ipv6 == NULL && !parts->no_ip;
	unsigned n = 0;

	if (!parts->no_eth)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_ETH, parts->eth, parts->eth_mask, NULL);
	if (parts->vlan != NULL)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_VLAN, parts->vlan, parts->vlan_mask, NULL);
	if (four)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_IPV4, parts->ipv4, parts->ipv4_mask,
			parts->ipv4_last);
	else if (!parts->no_ip)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_IPV6, parts->ipv6, parts->ipv6_mask, NULL);
	if (parts->tcp != NULL)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_TCP, parts->tcp, parts->tcp_mask, NULL);
	if (parts->udp != NULL)
		n = put(items, n, RTE_FLOW_ITEM_TYPE_UDP, parts->udp, parts->udp_mask, NULL);
	items[n].type = RTE_FLOW_ITEM_TYPE_END;

	memset(draft, 0, sizeof(*draft));
	draft->domain = parts->domain;
	draft->group = parts->group;
	draft->priority = parts->priority;
	if (sim_pattern_parse(&draft->pattern, items, &fault) != 0)
		fail_msg("the pattern: %s", fault.message);
	draft->actions = parts->actions;
}

static inline int check(const char *name, const struct parts *parts, struct sim_draft *draft)
{
	const struct sim_profile *profile = sim_profile_find(name);
	struct sim_fault_at fault = {.cause = NULL};
	int ret;

	assert_non_null(profile);
	make_draft(draft, parts);
	ret = sim_profile_check(profile, draft, &fault);
	if (ret != 0)
		assert_non_null(fault.message);
	return ret;
}

static inline void takes(const char *name, const struct parts *parts)
{
	struct sim_draft draft;

	assert_int_equal(check(name, parts, &draft), 0);
}

static inline void refuses(const char *name, const struct parts *parts, int code)
{
	struct sim_draft draft;

	assert_int_equal(check(name, parts, &draft), -code);
}

/* The rule that every profile is for: one flow's packets. */
static inline struct parts of_flow(struct sim_actions actions)
{
	return (struct parts){.ipv4 = &ends4,
		.ipv4_mask = &ends4_mask,
		.udp = &ports,
		.udp_mask = &ports_mask,
		.actions = actions};
}

static const struct sim_actions mark = {
	.named = ACTION(MARK), .mark = true, .mark_id = 7, .queue = SIM_NO_QUEUE};
static const struct sim_actions mark_queue = {
	.named = ACTION(MARK) | ACTION(QUEUE), .mark = true, .fate = SIM_FATE_QUEUE};
static const struct sim_actions mark_passthru = {
	.named = ACTION(MARK) | ACTION(PASSTHRU), .mark = true, .passthru = true};
static const struct sim_actions mark_rss = {.named = ACTION(MARK) | ACTION(RSS),
	.mark = true,
	.fate = SIM_FATE_RSS,
	.rss = {.n_queues = 2, .queues = {0, 1}}};
static const struct sim_actions count_drop = {
	.named = ACTION(COUNT) | ACTION(DROP), .count = true, .fate = SIM_FATE_DROP};
static const struct sim_actions count_send = {
	.named = ACTION(COUNT) | ACTION(PORT_ID), .count = true, .fate = SIM_FATE_SEND};
