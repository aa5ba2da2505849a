/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/form.h"

#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#define VXLAN_NUMBER 0x123456

enum link {
	ETH = 1,
	TYPED = 2, /* the Ethernet item has the type */
	TAGGED = 4,
	NO_FLAGS = 8,
};

static const struct {
	enum form_special special;
	enum provider_kind kind;
	unsigned link;
} patterns[] = {
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | NO_FLAGS},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, NO_FLAGS},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, 0},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, ETH},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, 0},
	{FORM_SHAPE, PROVIDER_IPV4_SCTP, ETH},
	{FORM_SHAPE, PROVIDER_IPV4_SCTP, 0},
	{FORM_SHAPE, PROVIDER_IPV4_ICMP, ETH},
	{FORM_SHAPE, PROVIDER_IPV4_ICMP, 0},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, ETH | NO_FLAGS},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, NO_FLAGS},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, ETH},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, 0},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, ETH},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, 0},
	{FORM_SHAPE, PROVIDER_IPV6_SCTP, ETH},
	{FORM_SHAPE, PROVIDER_IPV6_SCTP, 0},
	{FORM_SHAPE, PROVIDER_IPV6_ICMP, ETH},
	{FORM_SHAPE, PROVIDER_IPV6_ICMP, 0},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, TYPED},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, TYPED},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | TAGGED | NO_FLAGS},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | TAGGED},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, ETH | TAGGED},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, ETH | TAGGED},
	{FORM_ADDRESSES, PROVIDER_IPV4_UDP, ETH},
	{FORM_ADDRESSES, PROVIDER_IPV6_UDP, ETH},
	{FORM_PREFIX, PROVIDER_IPV4_UDP, ETH},
	{FORM_TO_PORT, PROVIDER_IPV4_UDP, ETH},
	{FORM_MAC, PROVIDER_N_KINDS, ETH},
	{FORM_TAG, PROVIDER_N_KINDS, ETH | TAGGED},
	{FORM_VXLAN, PROVIDER_IPV4_UDP, ETH},
};

static const struct form_actions actions[] = {
	{"mark", FORM_NONE, true, false, SHAPE_ALONE},
	{"mark + passthru", FORM_NONE, true, false, SHAPE_PASSTHRU},
	{"mark + queue", FORM_NONE, true, false, SHAPE_QUEUE},
	{"mark + rss", FORM_NONE, true, false, SHAPE_RSS},
	{"mark + count", FORM_NONE, true, true, SHAPE_ALONE},
	{"mark + passthru + count", FORM_NONE, true, true, SHAPE_PASSTHRU},
	{"mark + queue + count", FORM_NONE, true, true, SHAPE_QUEUE},
	{"mark + rss + count", FORM_NONE, true, true, SHAPE_RSS},
	{"queue", FORM_QUEUE, false, false, 0},
	{"queue + count", FORM_QUEUE, false, true, 0},
	{"drop", FORM_DROP, false, false, 0},
	{"drop + count", FORM_DROP, false, true, 0},
	{"represented_port", FORM_REPRESENTED_PORT, false, false, 0},
	{"represented_port + count", FORM_REPRESENTED_PORT, false, true, 0},
	{"port_id", FORM_PORT_ID, false, false, 0},
};

unsigned form_n_patterns(void)
{
	return RTE_DIM(patterns);
}

unsigned form_n_actions(void)
{
	return RTE_DIM(actions);
}

static void name_pattern(struct form_pattern *pattern)
{
	static const char *const names[] = {
		[FORM_PREFIX] = "eth / ipv4 src /24",
		[FORM_TO_PORT] = "eth / ipv4 / udp dst",
		[FORM_MAC] = "eth dst",
		[FORM_TAG] = "eth / vlan",
		[FORM_VXLAN] = "eth / ipv4 / udp / vxlan",
	};
	const char *name = pattern->kind >= PROVIDER_IPV6_TCP ? "eth / ipv6" : "eth / ipv4";

	if (pattern->special == FORM_SHAPE)
		shape_pattern_text(
			pattern->name, sizeof(pattern->name), &pattern->shape, pattern->kind);
	else
		snprintf(pattern->name, sizeof(pattern->name), "%s",
			pattern->special == FORM_ADDRESSES ? name : names[pattern->special]);
}

bool form_pattern(unsigned i, struct form_pattern *pattern)
{
	if (i >= RTE_DIM(patterns))
		return false;
	*pattern = (struct form_pattern){
		.special = patterns[i].special,
		.kind = patterns[i].kind,
		.shape = {.eth = patterns[i].link & ETH,
			.typed = patterns[i].link & TYPED,
			.vlan = patterns[i].link & TAGGED,
			.no_flags = patterns[i].link & NO_FLAGS},
	};
	name_pattern(pattern);
	return true;
}

const struct form_actions *form_actions(unsigned i)
{
	return i < RTE_DIM(actions) ? &actions[i] : NULL;
}

/* The items of the shape that is nearest, changed to what is wanted. */
static void build_items(struct form_rule *rule, const struct form *form, const struct form_aim *aim)
{
	const struct form_pattern *pattern = &form->pattern;
	enum provider_kind kind =
		pattern->kind == PROVIDER_N_KINDS ? PROVIDER_IPV4_UDP : pattern->kind;
	struct shape_items *shape = &rule->shape;
	unsigned ends = RTE_DIM(shape->list);
	/* which only forms that forward would name */
	static const struct shape_port no_port;

	shape_items(shape, &pattern->shape, kind, &no_port, &aim->rule);
	memcpy(rule->list, shape->list, sizeof(shape->list));
	rule->items = rule->list;
	if (pattern->special == FORM_ADDRESSES || pattern->special == FORM_PREFIX ||
		pattern->special == FORM_TAG)
		ends = 2;
	if (pattern->special == FORM_PREFIX) {
		shape->ip_mask.ipv4.hdr.src_addr = RTE_BE32(0xffffff00);
		shape->ip_mask.ipv4.hdr.dst_addr = 0;
	}
	if (pattern->special == FORM_TO_PORT || pattern->special == FORM_VXLAN)
		rule->list[1].spec = rule->list[1].mask = NULL;
	if (pattern->special == FORM_TO_PORT)
		shape->upper_mask.udp.hdr.src_port = 0;
	if (pattern->special == FORM_VXLAN) {
		rule->list[2].spec = rule->list[2].mask = NULL;
		rule->vxlan.hdr.vx_vni = RTE_BE32((uint32_t)VXLAN_NUMBER << 8);
		rule->vxlan_mask.hdr.vx_vni = RTE_BE32(0xffffff00);
		rule->list[3] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_VXLAN,
			.spec = &rule->vxlan,
			.mask = &rule->vxlan_mask};
		ends = 4;
	}
	if (pattern->special == FORM_MAC) {
		shape->eth.hdr.dst_addr = aim->to;
		shape->eth_mask = (struct rte_flow_item_eth){.has_vlan = 0};
		memset(&shape->eth_mask.hdr.dst_addr, 0xff, sizeof(shape->eth_mask.hdr.dst_addr));
		rule->list[0].spec = &shape->eth;
		rule->list[0].mask = &shape->eth_mask;
		ends = 1;
	}
	if (ends < RTE_DIM(shape->list))
		rule->list[ends] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_END};
}

static void form_add(
	struct shape_actions *to, unsigned *n, enum rte_flow_action_type type, const void *conf)
{
	to->list[(*n)++] = (struct rte_flow_action){.type = type, .conf = conf};
}

/* Of those that do not mark. */
static void list_fate(struct shape_actions *to, const struct form *form, const void *port)
{
	unsigned n = 0;

	switch (form->actions->fate) {
	case FORM_QUEUE:
		form_add(to, &n, RTE_FLOW_ACTION_TYPE_QUEUE, &to->queue);
		break;
	case FORM_DROP:
		form_add(to, &n, RTE_FLOW_ACTION_TYPE_DROP, NULL);
		break;
	case FORM_REPRESENTED_PORT:
		form_add(to, &n, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, port);
		break;
	case FORM_PORT_ID:
		form_add(to, &n, RTE_FLOW_ACTION_TYPE_PORT_ID, port);
		break;
	case FORM_NONE:
		break;
	}
	if (form->actions->count)
		form_add(to, &n, RTE_FLOW_ACTION_TYPE_COUNT, &to->count);
	form_add(to, &n, RTE_FLOW_ACTION_TYPE_END, NULL);
}

static void build_actions(
	struct form_rule *rule, const struct form *form, const struct form_aim *aim)
{
	struct shape shape = form->pattern.shape;

	rule->port = aim->port;
	rule->worker_queue[0] = (uint8_t)aim->queue;
	rule->port.worker_queue = rule->worker_queue;
	shape.fate = form->actions->marked;
	shape.count = form->actions->count;
	if (form->actions->mark) {
		shape_actions(&rule->made, &shape, &rule->port, &aim->rule);
		shape_action_masks(&rule->made_masks, &shape, &rule->port);
	} else {
		rule->made.queue.index = aim->queue;
		if (form->actions->fate == FORM_PORT_ID) {
			rule->to.port_id.id = aim->target;
			rule->to_mask.port_id.id = UINT32_MAX;
		} else {
			rule->to.ethdev.port_id = aim->target;
			rule->to_mask.ethdev.port_id = UINT16_MAX;
		}
		list_fate(&rule->made, form, &rule->to);
		list_fate(&rule->made_masks, form, &rule->to_mask);
	}
	rule->actions = rule->made.list;
	rule->masks = rule->made_masks.list;
}

void form_build(struct form_rule *rule, const struct form *form, const struct form_aim *aim)
{
	enum form_fate fate = form->actions->fate;

	memset(rule, 0, sizeof(*rule));
	if (fate == FORM_REPRESENTED_PORT || fate == FORM_PORT_ID)
		rule->attr.transfer = 1;
	else
		rule->attr.ingress = 1;
	build_items(rule, form, aim);
	build_actions(rule, form, aim);
}
