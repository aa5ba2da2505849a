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
	const char *name; /* NULL: that of the shape */
} patterns[] = {
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | NO_FLAGS, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, NO_FLAGS, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_SCTP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_SCTP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_ICMP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_ICMP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, ETH | NO_FLAGS, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, NO_FLAGS, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_TCP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_SCTP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_SCTP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_ICMP, ETH, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_ICMP, 0, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, TYPED, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, TYPED, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | TAGGED | NO_FLAGS, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_TCP, ETH | TAGGED, NULL},
	{FORM_SHAPE, PROVIDER_IPV4_UDP, ETH | TAGGED, NULL},
	{FORM_SHAPE, PROVIDER_IPV6_UDP, ETH | TAGGED, NULL},
	{FORM_ADDRESSES, PROVIDER_IPV4_UDP, ETH, "eth / ipv4"},
	{FORM_ADDRESSES, PROVIDER_IPV6_UDP, ETH, "eth / ipv6"},
	{FORM_PREFIX, PROVIDER_IPV4_UDP, ETH, "eth / ipv4 src /24"},
	{FORM_TO_PORT, PROVIDER_IPV4_UDP, ETH, "eth / ipv4 / udp dst"},
	{FORM_MAC, PROVIDER_N_KINDS, ETH, "eth dst"},
	{FORM_TAG, PROVIDER_N_KINDS, ETH | TAGGED, "eth / vlan"},
	{FORM_VXLAN, PROVIDER_IPV4_UDP, ETH, "eth / ipv4 / udp / vxlan"},
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

unsigned form_n_actions(void)
{
	return RTE_DIM(actions);
}

unsigned form_n(void)
{
	return RTE_DIM(patterns) * RTE_DIM(actions);
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
	if (patterns[i].name == NULL)
		shape_pattern_text(
			pattern->name, sizeof(pattern->name), &pattern->shape, pattern->kind);
	else
		snprintf(pattern->name, sizeof(pattern->name), "%s", patterns[i].name);
	return true;
}

const struct form_actions *form_actions(unsigned i)
{
	return i < RTE_DIM(actions) ? &actions[i] : NULL;
}

bool form_get(unsigned number, struct form *form)
{
	form->actions = form_actions(number % RTE_DIM(actions));
	return form_pattern(number / RTE_DIM(actions), &form->pattern);
}

/* The items of the shape that is nearest, changed to what is wanted. */
static void build_items(struct form_rule *rule, const struct form *form, const struct form_aim *aim)
{
	const struct form_pattern *pattern = &form->pattern;
	struct shape_items *shape = &rule->shape;
	struct rte_flow_item *list = shape->list;
	unsigned ends = RTE_DIM(shape->list);
	/* only forms of full offload name a port */
	static const struct shape_port no_port;

	shape_items(shape, &pattern->shape,
		pattern->kind == PROVIDER_N_KINDS ? PROVIDER_IPV4_UDP : pattern->kind, &no_port,
		&aim->rule);
	switch (pattern->special) {
	case FORM_SHAPE:
		break;
	case FORM_PREFIX:
		shape->ip_mask.ipv4.hdr.src_addr = RTE_BE32(0xffffff00);
		shape->ip_mask.ipv4.hdr.dst_addr = 0;
		ends = 2;
		break;
	case FORM_ADDRESSES:
	case FORM_TAG:
		ends = 2;
		break;
	case FORM_TO_PORT:
		list[1].spec = list[1].mask = NULL;
		shape->upper_mask.udp.hdr.src_port = 0;
		break;
	case FORM_MAC:
		shape->eth.hdr.dst_addr = aim->to;
		shape->eth_mask = (struct rte_flow_item_eth){.has_vlan = 0};
		memset(&shape->eth_mask.hdr.dst_addr, 0xff, sizeof(shape->eth_mask.hdr.dst_addr));
		list[0].spec = &shape->eth;
		list[0].mask = &shape->eth_mask;
		ends = 1;
		break;
	case FORM_VXLAN:
		rule->vxlan.hdr.vx_vni = RTE_BE32((uint32_t)VXLAN_NUMBER << 8);
		rule->vxlan_mask.hdr.vx_vni = RTE_BE32(0xffffff00);
		list[1].spec = list[1].mask = list[2].spec = list[2].mask = NULL;
		list[3] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_VXLAN,
			.spec = &rule->vxlan,
			.mask = &rule->vxlan_mask};
		ends = 4;
		break;
	}
	if (ends < RTE_DIM(shape->list))
		list[ends] = (struct rte_flow_item){.type = RTE_FLOW_ITEM_TYPE_END};
	rule->items = list;
}

/* Actions that do not mark. */
static void list_fate(struct shape_actions *to, const struct form_actions *wanted, uint16_t target)
{
	static const enum rte_flow_action_type types[] = {
		[FORM_QUEUE] = RTE_FLOW_ACTION_TYPE_QUEUE,
		[FORM_DROP] = RTE_FLOW_ACTION_TYPE_DROP,
		[FORM_REPRESENTED_PORT] = RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT,
		[FORM_PORT_ID] = RTE_FLOW_ACTION_TYPE_PORT_ID,
	};
	struct rte_flow_action *at = to->list;

	if (wanted->fate == FORM_PORT_ID)
		to->port.port_id.id = target == UINT16_MAX ? UINT32_MAX : target;
	else
		to->port.ethdev.port_id = target;
	at->type = types[wanted->fate];
	at++->conf = wanted->fate == FORM_QUEUE ? (const void *)&to->queue
		     : form_is_sent_on(wanted)	? (const void *)&to->port
						: NULL;
	if (wanted->count)
		*at++ = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_COUNT, &to->count};
	at->type = RTE_FLOW_ACTION_TYPE_END;
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
		list_fate(&rule->made, form->actions, aim->target);
		/* all bits are each rule's own */
		list_fate(&rule->made_masks, form->actions, UINT16_MAX);
	}
	rule->actions = rule->made.list;
	rule->masks = rule->made_masks.list;
	for (struct rte_flow_action *at = rule->made.list;
		aim->counter != NULL && at->type != RTE_FLOW_ACTION_TYPE_END; at++)
		if (at->type == RTE_FLOW_ACTION_TYPE_COUNT)
			*at = (struct rte_flow_action){RTE_FLOW_ACTION_TYPE_INDIRECT, aim->counter};
}

void form_build(struct form_rule *rule, const struct form *form, const struct form_aim *aim)
{
	memset(rule, 0, sizeof(*rule));
	rule->attr.transfer = form_is_sent_on(form->actions);
	rule->attr.ingress = !rule->attr.transfer;
	build_items(rule, form, aim);
	build_actions(rule, form, aim);
}
