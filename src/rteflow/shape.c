/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/shape.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#define NOT_FLAGS (RTE_TCP_SYN_FLAG | RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG)
#define VLAN_ID 0x0fff
/* More fragments, and the offset. */
#define NO_FRAGMENT 0x3fff

static bool is_ipv6(enum provider_kind kind)
{
	return kind >= PROVIDER_IPV6_TCP;
}

static enum provider_kind upper_of(enum provider_kind kind)
{
	return is_ipv6(kind) ? kind - PROVIDER_IPV6_TCP : kind;
}

void shape_port_read(struct shape_port *port, const struct provider_config *config)
{
	struct rte_eth_rss_conf conf = {.rss_key = port->rss_key, .rss_key_len = 0};
	struct rte_eth_dev_info info;

	memset(port, 0, sizeof(*port));
	port->id = config->port_id;
	port->forward_to = config->forward_to;
	port->n_queues = (uint16_t)RTE_MIN(config->n_queues, SHAPE_QUEUES);
	port->worker_queue = config->worker_queue;
	for (uint16_t i = 0; i < port->n_queues; i++)
		port->queues[i] = i;
	if (rte_eth_dev_info_get(port->id, &info) < 0 || info.hash_key_size > SHAPE_KEY)
		return;
	conf.rss_key_len = info.hash_key_size != 0 ? info.hash_key_size : 40;
	if (rte_eth_dev_rss_hash_conf_get(port->id, &conf) < 0)
		return;
	port->rss_types = conf.rss_hf;
	/* some leave the key alone, and then it is theirs */
	for (unsigned i = 0; i < conf.rss_key_len && i < SHAPE_KEY; i++)
		if (port->rss_key[i] != 0)
			port->rss_key_length = conf.rss_key_len;
}

static void add_item(struct shape_items *items, unsigned *n, enum rte_flow_item_type type,
	const void *spec, const void *mask)
{
	items->list[(*n)++] = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

static bool is_full(const struct shape *shape)
{
	return shape->deed != PROVIDER_MARKS;
}

/* Where packets of a transfer rule arrive: else some NICs would take those of all their ports. */
static void add_port(struct shape_items *items, unsigned *n, const struct shape *shape,
	const struct shape_port *port)
{
	if (shape->port_id) {
		items->port.port_id.id = port->id;
		items->port_mask.port_id.id = UINT32_MAX;
		add_item(items, n, RTE_FLOW_ITEM_TYPE_PORT_ID, &items->port, &items->port_mask);
		return;
	}
	items->port.ethdev.port_id = port->id;
	items->port_mask.ethdev.port_id = UINT16_MAX;
	add_item(items, n, RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT, &items->port, &items->port_mask);
}

static void add_link(struct shape_items *items, unsigned *n, const struct shape *shape,
	enum provider_kind kind, const struct offload_rule *rule)
{
	items->eth.hdr.ether_type =
		rte_cpu_to_be_16(is_ipv6(kind) ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	items->eth_mask.hdr.ether_type = UINT16_MAX;
	items->vlan.hdr.vlan_tci = rte_cpu_to_be_16(rule->key.zone & VLAN_ID);
	items->vlan_mask.hdr.vlan_tci = RTE_BE16(VLAN_ID);
	if (shape->typed)
		add_item(items, n, RTE_FLOW_ITEM_TYPE_ETH, &items->eth, &items->eth_mask);
	else if (shape->eth)
		add_item(items, n, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
	if (shape->vlan)
		add_item(items, n, RTE_FLOW_ITEM_TYPE_VLAN, &items->vlan, &items->vlan_mask);
}

static void add_ip(struct shape_items *items, unsigned *n, const struct shape *shape,
	enum provider_kind kind, const struct offload_rule *rule)
{
	const uint8_t *src = rule->key.addr[rule->from], *dst = rule->key.addr[!rule->from];

	if (is_ipv6(kind)) {
		memcpy(&items->ip.ipv6.hdr.src_addr, src, 16);
		memcpy(&items->ip.ipv6.hdr.dst_addr, dst, 16);
		memset(&items->ip_mask.ipv6.hdr.src_addr, 0xff, 16);
		memset(&items->ip_mask.ipv6.hdr.dst_addr, 0xff, 16);
		items->ip_mask.ipv6.has_frag_ext = is_full(shape);
		add_item(items, n, RTE_FLOW_ITEM_TYPE_IPV6, &items->ip, &items->ip_mask);
		return;
	}
	memcpy(&items->ip.ipv4.hdr.src_addr, src, 4);
	memcpy(&items->ip.ipv4.hdr.dst_addr, dst, 4);
	items->ip_mask.ipv4.hdr.src_addr = UINT32_MAX;
	items->ip_mask.ipv4.hdr.dst_addr = UINT32_MAX;
	if (is_full(shape))
		items->ip_mask.ipv4.hdr.fragment_offset = RTE_BE16(NO_FRAGMENT);
	add_item(items, n, RTE_FLOW_ITEM_TYPE_IPV4, &items->ip, &items->ip_mask);
}

static void add_upper(struct shape_items *items, unsigned *n, const struct shape *shape,
	enum provider_kind kind, const struct offload_rule *rule)
{
	enum rte_flow_item_type type = RTE_FLOW_ITEM_TYPE_SCTP;

	if (upper_of(kind) == PROVIDER_IPV4_ICMP) {
		/* neither spec nor mask: any such header */
		type = is_ipv6(kind) ? RTE_FLOW_ITEM_TYPE_ICMP6 : RTE_FLOW_ITEM_TYPE_ICMP;
		add_item(items, n, type, NULL, NULL);
		return;
	}
	/* ports are the first words of all three */
	items->upper.udp.hdr.src_port = rule->key.port[rule->from];
	items->upper.udp.hdr.dst_port = rule->key.port[!rule->from];
	items->upper_mask.udp.hdr.src_port = UINT16_MAX;
	items->upper_mask.udp.hdr.dst_port = UINT16_MAX;
	if (upper_of(kind) == PROVIDER_IPV4_UDP)
		type = RTE_FLOW_ITEM_TYPE_UDP;
	if (upper_of(kind) == PROVIDER_IPV4_TCP) {
		type = RTE_FLOW_ITEM_TYPE_TCP;
		items->upper_mask.tcp.hdr.tcp_flags = shape->no_flags ? NOT_FLAGS : 0;
	}
	add_item(items, n, type, &items->upper, &items->upper_mask);
}

void shape_items(struct shape_items *items, const struct shape *shape, enum provider_kind kind,
	const struct shape_port *port, const struct offload_rule *rule)
{
	unsigned n = 0;

	memset(items, 0, sizeof(*items));
	if (is_full(shape))
		add_port(items, &n, shape, port);
	add_link(items, &n, shape, kind, rule);
	add_ip(items, &n, shape, kind, rule);
	add_upper(items, &n, shape, kind, rule);
	items->list[n].type = RTE_FLOW_ITEM_TYPE_END;
}

static void add_action(struct shape_actions *actions, unsigned *n, enum rte_flow_action_type type,
	const void *conf)
{
	actions->list[(*n)++] = (struct rte_flow_action){.type = type, .conf = conf};
}

/* QUEUE and PASSTHRU come before MARK, RSS behind it: i40e_flow.c:2444 takes them in that order only. */
static void list_actions(struct shape_actions *actions, const struct shape *shape)
{
	unsigned n = 0;

	if (shape->fate == SHAPE_QUEUE)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_QUEUE, &actions->queue);
	if (shape->fate == SHAPE_PASSTHRU)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_PASSTHRU, NULL);
	add_action(actions, &n, RTE_FLOW_ACTION_TYPE_MARK, &actions->mark);
	if (shape->fate == SHAPE_RSS)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_RSS, &actions->rss);
	if (shape->count)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_COUNT, &actions->count);
	actions->list[n].type = RTE_FLOW_ACTION_TYPE_END;
}

static void spread(struct shape_actions *actions, const struct shape_port *port)
{
	actions->rss = (struct rte_flow_action_rss){
		.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
		.types = port->rss_types,
		.key_len = port->rss_key_length,
		.queue_num = port->n_queues,
		.key = port->rss_key_length != 0 ? port->rss_key : NULL,
		.queue = port->queues,
	};
}

static void list_full_actions(struct shape_actions *actions, const struct shape *shape,
	const struct shape_port *port, const struct offload_rule *rule)
{
	unsigned n = 0;

	if (shape->indirect)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_INDIRECT, NULL);
	else if (shape->count)
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_COUNT, &actions->count);
	if (rule->rewrite != NULL)
		n += rewrite_list(&actions->rewrite, &actions->list[n], rule->rewrite,
			is_ipv6(provider_kind(&rule->key)));
	if (shape->deed == PROVIDER_DROPS) {
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_DROP, NULL);
	} else if (shape->port_id) {
		actions->port.port_id.id = port->forward_to;
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_PORT_ID, &actions->port);
	} else {
		actions->port.ethdev.port_id = port->forward_to;
		add_action(actions, &n, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, &actions->port);
	}
	actions->list[n].type = RTE_FLOW_ACTION_TYPE_END;
}

void shape_actions(struct shape_actions *actions, const struct shape *shape,
	const struct shape_port *port, const struct offload_rule *rule)
{
	memset(actions, 0, sizeof(*actions));
	if (is_full(shape)) {
		list_full_actions(actions, shape, port, rule);
		return;
	}
	actions->mark.id = rule->mark;
	if (port->worker_queue != NULL)
		actions->queue.index = port->worker_queue[rule->worker];
	spread(actions, port);
	list_actions(actions, shape);
}

void shape_action_masks(
	struct shape_actions *masks, const struct shape *shape, const struct shape_port *port)
{
	memset(masks, 0, sizeof(*masks));
	spread(masks, port);
	list_actions(masks, shape);
}

void shape_pattern_text(char *text, size_t size, const struct shape *shape, enum provider_kind kind)
{
	static const char *const uppers[] = {"tcp", "udp", "sctp", "icmp"};
	const char *upper = kind == PROVIDER_IPV6_ICMP ? "icmp6" : uppers[upper_of(kind)];
	const char *link = shape->typed ? "eth type / " : shape->eth ? "eth / " : "";

	snprintf(text, size, "%s%s%s%s / %s%s", link, shape->vlan ? "vlan / " : "",
		is_ipv6(kind) ? "ipv6" : "ipv4", is_full(shape) ? " whole" : "", upper,
		shape->no_flags ? " flags" : "");
}

void shape_text(char *text, size_t size, const struct shape *shape, enum provider_kind kind)
{
	static const char *const fates[SHAPE_N_FATES] = {"", " + passthru", " + queue", " + rss"};
	const char *name = shape->port_id ? "port_id" : "represented_port";
	char pattern[48];

	shape_pattern_text(pattern, sizeof(pattern), shape, kind);
	if (is_full(shape))
		snprintf(text, size, "%s / %s, %s + %s", name, pattern,
			shape->indirect ? "indirect count" : "count",
			shape->deed == PROVIDER_DROPS ? "drop" : name);
	else
		snprintf(text, size, "%s, mark%s%s", pattern, fates[shape->fate],
			shape->count ? " + count" : "");
}
