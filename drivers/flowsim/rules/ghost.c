/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/rules/ghost.h"

#include <string.h>

#include <rte_byteorder.h>

#include "drivers/flowsim/kind/input_set.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/draft.h"
#include "drivers/flowsim/rules/rule_life.h"

#define MAX_ITEMS 4

/* A pattern's items and what they point to. */
struct ghost {
	struct rte_flow_item items[MAX_ITEMS];
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_ipv4 ipv4, ipv4_mask;
	struct rte_flow_item_ipv6 ipv6, ipv6_mask;
	/* TCP, UDP and SCTP have their ports first */
	union {
		struct rte_flow_item_tcp tcp;
		struct rte_flow_item_udp udp;
		struct rte_flow_item_sctp sctp;
		uint8_t ports[4];
	} l4, l4_mask;
};

static void end_with(struct ghost *ghost, unsigned n)
{
	ghost->items[n].type = RTE_FLOW_ITEM_TYPE_END;
}

static unsigned add(struct ghost *ghost, unsigned n, enum rte_flow_item_type type, const void *spec,
	const void *mask)
{
	ghost->items[n] = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
	return n + 1;
}

/* Ports where the packet has some. */
static unsigned add_ports(
	struct ghost *ghost, unsigned n, const struct sim_level *level, uint32_t layers)
{
	enum rte_flow_item_type type = RTE_FLOW_ITEM_TYPE_UDP;

	if ((layers & (SIM_TCP | SIM_UDP | SIM_SCTP)) == 0)
		return n;
	if (layers & SIM_TCP)
		type = RTE_FLOW_ITEM_TYPE_TCP;
	else if (layers & SIM_SCTP)
		type = RTE_FLOW_ITEM_TYPE_SCTP;
	memcpy(ghost->l4.ports, level->l4, sizeof(ghost->l4.ports));
	memset(ghost->l4_mask.ports, 0xff, sizeof(ghost->l4_mask.ports));
	return add(ghost, n, type, &ghost->l4, &ghost->l4_mask);
}

/* The packet's own addresses, and nothing of what changes from packet to packet. */
static void from_view(struct ghost *ghost, const struct sim_view *view)
{
	const struct sim_level *level = &view->level[0];
	unsigned n = add(ghost, 0, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);

	if (view->layers & SIM_IPV4) {
		memcpy(&ghost->ipv4.hdr, level->ip, sizeof(ghost->ipv4.hdr));
		ghost->ipv4_mask.hdr.src_addr = UINT32_MAX;
		ghost->ipv4_mask.hdr.dst_addr = UINT32_MAX;
		n = add(ghost, n, RTE_FLOW_ITEM_TYPE_IPV4, &ghost->ipv4, &ghost->ipv4_mask);
		n = add_ports(ghost, n, level, view->layers);
	} else if (view->layers & SIM_IPV6) {
		memcpy(&ghost->ipv6.hdr, level->ip, sizeof(ghost->ipv6.hdr));
		memset(&ghost->ipv6_mask.hdr.src_addr, 0xff, 16);
		memset(&ghost->ipv6_mask.hdr.dst_addr, 0xff, 16);
		n = add(ghost, n, RTE_FLOW_ITEM_TYPE_IPV6, &ghost->ipv6, &ghost->ipv6_mask);
		n = add_ports(ghost, n, level, view->layers);
	} else {
		memcpy(&ghost->eth, level->eth, sizeof(level->eth));
		memset(&ghost->eth_mask, 0xff, sizeof(level->eth));
		add(ghost, 0, RTE_FLOW_ITEM_TYPE_ETH, &ghost->eth, &ghost->eth_mask);
	}
	end_with(ghost, n);
}

/* Where nobody knows which packets will come. */
static void from_number(struct ghost *ghost, uint32_t i)
{
	unsigned n = add(ghost, 0, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);

	ghost->ipv4.hdr.src_addr = rte_cpu_to_be_32(0x0a000000u | (i & 0xffffff));
	ghost->ipv4.hdr.dst_addr = rte_cpu_to_be_32(0x0aff0001u);
	ghost->ipv4_mask.hdr.src_addr = UINT32_MAX;
	ghost->ipv4_mask.hdr.dst_addr = UINT32_MAX;
	n = add(ghost, n, RTE_FLOW_ITEM_TYPE_IPV4, &ghost->ipv4, &ghost->ipv4_mask);
	ghost->l4.udp.hdr.src_port = rte_cpu_to_be_16(1024);
	ghost->l4.udp.hdr.dst_port = rte_cpu_to_be_16(80);
	memset(ghost->l4_mask.ports, 0xff, sizeof(ghost->l4_mask.ports));
	n = add(ghost, n, RTE_FLOW_ITEM_TYPE_UDP, &ghost->l4, &ghost->l4_mask);
	end_with(ghost, n);
}

static bool make(struct sim_port *port, uint32_t i, uint32_t n)
{
	struct sim_fault_at fault = {.cause = NULL};
	struct ghost ghost = {.items = {{.type = RTE_FLOW_ITEM_TYPE_END}}};
	struct sim_draft draft = {.domain = SIM_INGRESS};
	struct rte_flow *rule;
	int error = 0;

	if (port->source != NULL && port->source->n_streams > 0) {
		struct sim_view view;

		memset(&view, 0, sizeof(view));
		port->source->view(
			port->source, (uint32_t)((uint64_t)i * port->source->n_streams / n), &view);
		from_view(&ghost, &view);
	} else {
		from_number(&ghost, i);
	}
	if (sim_pattern_parse(&draft.pattern, ghost.items, &fault) != 0)
		return false;
	if (port->args.profile.quirks & SIM_QUIRK_PACKET_TYPE)
		sim_input_set_narrow(&draft.pattern);
	draft.actions.named = 1ull << sim_action_bit(RTE_FLOW_ACTION_TYPE_MARK) |
			      1ull << sim_action_bit(RTE_FLOW_ACTION_TYPE_PASSTHRU);
	draft.actions.mark = true;
	draft.actions.mark_id = i;
	draft.actions.passthru = true;

	rule = sim_rule_create(port, &draft, &error, &fault);
	if (rule == NULL) {
		sim_draft_fini(&draft);
		return false;
	}
	rule->ghost = true;
	sim_rule_go_live(rule);
	return true;
}

uint32_t sim_ghosts_make(struct sim_port *port, uint32_t n)
{
	uint32_t made = 0;

	/* more than streams would be several for some, and none of them for a stranger */
	if (port->source != NULL && port->source->n_streams > 0 && n > port->source->n_streams)
		n = port->source->n_streams;
	while (made < n && make(port, made, n))
		made++;
	return made;
}

void sim_ghosts_drop(struct sim_port *port)
{
	struct rte_flow *rule, *next;

	for (rule = TAILQ_FIRST(&port->rules); rule != NULL; rule = next) {
		next = TAILQ_NEXT(rule, link);
		if (rule->ghost)
			sim_rule_destroy(rule);
	}
}
