/* SPDX-License-Identifier: BSD-3-Clause */
#include "rteflow/rewrite.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct rte_flow_action_set_ipv4) == 4, "nothing but the address");
static_assert(sizeof(struct rte_flow_action_set_ipv6) == 16, "nothing but the address");

static void rewrite_add(
	struct rte_flow_action *list, unsigned *n, enum rte_flow_action_type type, const void *conf)
{
	list[(*n)++] = (struct rte_flow_action){.type = type, .conf = conf};
}

unsigned rewrite_list(struct rewrite_actions *actions, struct rte_flow_action *list,
	const struct offload_rewrite *rewrite, bool ipv6)
{
	static const enum rte_flow_action_type macs[] = {
		RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, RTE_FLOW_ACTION_TYPE_SET_MAC_DST};
	static const enum rte_flow_action_type addrs[2][2] = {
		{RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, RTE_FLOW_ACTION_TYPE_SET_IPV4_DST},
		{RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC, RTE_FLOW_ACTION_TYPE_SET_IPV6_DST}};
	static const enum rte_flow_action_type ports[] = {
		RTE_FLOW_ACTION_TYPE_SET_TP_SRC, RTE_FLOW_ACTION_TYPE_SET_TP_DST};
	unsigned n = 0;

	memset(actions, 0, sizeof(*actions));
	memcpy(actions->addr, rewrite->addr, sizeof(actions->addr));
	for (unsigned i = REWRITE_SRC; i <= REWRITE_DST; i++) {
		memcpy(actions->mac[i].mac_addr, rewrite->mac[i], sizeof(rewrite->mac[i]));
		if (rewrite->what & REWRITE_MAC << i)
			rewrite_add(list, &n, macs[i], &actions->mac[i]);
	}
	for (unsigned i = REWRITE_SRC; i <= REWRITE_DST; i++)
		if (rewrite->what & REWRITE_ADDR << i)
			rewrite_add(list, &n, addrs[ipv6][i], actions->addr[i]);
	for (unsigned i = REWRITE_SRC; i <= REWRITE_DST; i++) {
		actions->port[i].port = rewrite->port[i];
		if (rewrite->what & REWRITE_PORT << i)
			rewrite_add(list, &n, ports[i], &actions->port[i]);
	}
	if (rewrite->what & REWRITE_TTL)
		rewrite_add(list, &n, RTE_FLOW_ACTION_TYPE_DEC_TTL, NULL);
	assert(n <= REWRITE_ACTIONS);
	return n;
}
