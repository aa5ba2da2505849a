/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/pattern_items.h"

#include <stddef.h>

#define LEVEL(member) offsetof(struct sim_level, member)
#define TUNNEL offsetof(struct sim_view, tunnel)

/* Behind GTP-U there is no Ethernet; what tunnels lie in has nothing else behind it. */
#define NOT_UDP (SIM_TCP | SIM_SCTP | SIM_ICMP | SIM_ICMP6)

static const uint32_t gre_key_mask = UINT32_MAX;

static uint32_t eth_bits(const void *item)
{
	struct rte_flow_item_eth eth;

	memcpy(&eth, item, sizeof(eth));
	return eth.has_vlan;
}

static uint32_t vlan_bits(const void *item)
{
	struct rte_flow_item_vlan vlan;

	memcpy(&vlan, item, sizeof(vlan));
	return vlan.has_more_vlan;
}

static uint32_t ipv6_bits(const void *item)
{
	struct rte_flow_item_ipv6 ipv6;

	memcpy(&ipv6, item, sizeof(ipv6));
	return (uint32_t)ipv6.has_hop_ext | (uint32_t)ipv6.has_route_ext << 1 |
	       (uint32_t)ipv6.has_frag_ext << 2 | (uint32_t)ipv6.has_auth_ext << 3 |
	       (uint32_t)ipv6.has_esp_ext << 4 | (uint32_t)ipv6.has_dest_ext << 5 |
	       (uint32_t)ipv6.has_mobil_ext << 6 | (uint32_t)ipv6.has_hip_ext << 7 |
	       (uint32_t)ipv6.has_shim6_ext << 8;
}

static const struct sim_item_form nothing;

static const struct sim_item_form port_id = {
	.size = sizeof(struct rte_flow_item_port_id),
	.rank = SIM_ITEM_PORT,
	.mask = &rte_flow_item_port_id_mask,
};

static const struct sim_item_form ethdev = {
	.size = sizeof(struct rte_flow_item_ethdev),
	.rank = SIM_ITEM_PORT,
	.mask = &rte_flow_item_ethdev_mask,
};

static const struct sim_item_form eth = {
	.size = sizeof(struct rte_flow_item_eth),
	.header = 14,
	.at = LEVEL(eth),
	.rank = SIM_ITEM_ETH,
	.layer = SIM_ETH,
	.rivals = SIM_GTPU,
	.mask = &rte_flow_item_eth_mask,
	.bits = eth_bits,
	.bits_at = LEVEL(has_vlan),
	.fields = {6, 6, 2},
};

static const struct sim_item_form vlan = {
	.size = sizeof(struct rte_flow_item_vlan),
	.header = 4,
	.at = LEVEL(vlan),
	.rank = SIM_ITEM_VLAN,
	.layer = SIM_VLAN,
	.rivals = SIM_GTPU,
	.mask = &rte_flow_item_vlan_mask,
	.bits = vlan_bits,
	.bits_at = LEVEL(has_more),
	.fields = {2, 2},
};

static const struct sim_item_form ipv4 = {
	.size = sizeof(struct rte_flow_item_ipv4),
	.header = 20,
	.at = LEVEL(ip),
	.rank = SIM_ITEM_IP,
	.layer = SIM_IPV4,
	.mask = &rte_flow_item_ipv4_mask,
	.fields = {1, 1, 2, 2, 2, 1, 1, 2, 4, 4},
};

static const struct sim_item_form ipv6 = {
	.size = sizeof(struct rte_flow_item_ipv6),
	.header = 40,
	.at = LEVEL(ip),
	.rank = SIM_ITEM_IP,
	.layer = SIM_IPV6,
	.mask = &rte_flow_item_ipv6_mask,
	.bits = ipv6_bits,
	.bits_at = LEVEL(ipv6_has),
	.fields = {4, 2, 1, 1, 16, 16},
};

static const struct sim_item_form ipv6_frag = {
	.size = sizeof(struct rte_flow_item_ipv6_frag_ext),
	.header = 8,
	.at = LEVEL(ipv6_frag),
	.rank = SIM_ITEM_FRAGMENT,
	.layer = SIM_IPV6_FRAG,
	.rivals = SIM_IPV4,
	.fields = {1, 1, 2, 4},
};

static const struct sim_item_form tcp = {
	.size = sizeof(struct rte_flow_item_tcp),
	.header = 20,
	.at = LEVEL(l4),
	.rank = SIM_ITEM_L4,
	.layer = SIM_TCP,
	.mask = &rte_flow_item_tcp_mask,
	.fields = {2, 2, 4, 4, 1, 1, 2, 2, 2},
};

static const struct sim_item_form udp = {
	.size = sizeof(struct rte_flow_item_udp),
	.header = 8,
	.at = LEVEL(l4),
	.rank = SIM_ITEM_L4,
	.layer = SIM_UDP,
	.mask = &rte_flow_item_udp_mask,
	.fields = {2, 2, 2, 2},
};

static const struct sim_item_form sctp = {
	.size = sizeof(struct rte_flow_item_sctp),
	.header = 12,
	.at = LEVEL(l4),
	.rank = SIM_ITEM_L4,
	.layer = SIM_SCTP,
	.mask = &rte_flow_item_sctp_mask,
	.fields = {2, 2, 4, 4},
};

static const struct sim_item_form icmp = {
	.size = sizeof(struct rte_flow_item_icmp),
	.header = 8,
	.at = LEVEL(l4),
	.rank = SIM_ITEM_L4,
	.layer = SIM_ICMP,
	.rivals = SIM_IPV6 | SIM_IPV6_FRAG,
	.mask = &rte_flow_item_icmp_mask,
	.fields = {1, 1, 2, 2, 2},
};

static const struct sim_item_form icmp6 = {
	.size = sizeof(struct rte_flow_item_icmp6),
	.header = 4,
	.at = LEVEL(l4),
	.rank = SIM_ITEM_L4,
	.layer = SIM_ICMP6,
	.rivals = SIM_IPV4,
	.mask = &rte_flow_item_icmp6_mask,
	.fields = {1, 1, 2},
};

static const struct sim_item_form vxlan = {
	.size = sizeof(struct rte_flow_item_vxlan),
	.header = 8,
	.at = TUNNEL,
	.rank = SIM_ITEM_TUNNEL,
	.layer = SIM_VXLAN,
	.rivals = NOT_UDP,
	.mask = &rte_flow_item_vxlan_mask,
	.fields = {1, 3, 3, 1},
};

static const struct sim_item_form geneve = {
	.size = sizeof(struct rte_flow_item_geneve),
	.header = 8,
	.at = TUNNEL,
	.rank = SIM_ITEM_TUNNEL,
	.layer = SIM_GENEVE,
	.rivals = NOT_UDP,
	.mask = &rte_flow_item_geneve_mask,
	.fields = {2, 2, 3, 1},
};

static const struct sim_item_form gtpu = {
	.size = sizeof(struct rte_flow_item_gtp),
	.header = 8,
	.at = TUNNEL,
	.rank = SIM_ITEM_TUNNEL,
	.layer = SIM_GTPU,
	.rivals = NOT_UDP,
	.mask = &rte_flow_item_gtp_mask,
	.fields = {1, 1, 2, 4},
};

static const struct sim_item_form gre = {
	.size = sizeof(struct rte_flow_item_gre),
	.header = 4,
	.at = TUNNEL,
	.rank = SIM_ITEM_TUNNEL,
	.layer = SIM_GRE,
	.rivals = NOT_UDP | SIM_UDP,
	.mask = &rte_flow_item_gre_mask,
	.fields = {2, 2},
};

static const struct sim_item_form gre_key = {
	.size = 4,
	.header = 4,
	.at = TUNNEL + 4,
	.rank = SIM_ITEM_KEY,
	.layer = SIM_GRE_KEY,
	.rivals = NOT_UDP | SIM_UDP,
	.mask = &gre_key_mask,
	.fields = {4},
};

/* By type. */
static const struct sim_item_form *const forms[] = {
	[RTE_FLOW_ITEM_TYPE_VOID] = &nothing,
	[RTE_FLOW_ITEM_TYPE_ANY] = &nothing,
	[RTE_FLOW_ITEM_TYPE_PORT_ID] = &port_id,
	[RTE_FLOW_ITEM_TYPE_PORT_REPRESENTOR] = &ethdev,
	[RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT] = &ethdev,
	[RTE_FLOW_ITEM_TYPE_ETH] = &eth,
	[RTE_FLOW_ITEM_TYPE_VLAN] = &vlan,
	[RTE_FLOW_ITEM_TYPE_IPV4] = &ipv4,
	[RTE_FLOW_ITEM_TYPE_IPV6] = &ipv6,
	[RTE_FLOW_ITEM_TYPE_IPV6_FRAG_EXT] = &ipv6_frag,
	[RTE_FLOW_ITEM_TYPE_TCP] = &tcp,
	[RTE_FLOW_ITEM_TYPE_UDP] = &udp,
	[RTE_FLOW_ITEM_TYPE_SCTP] = &sctp,
	[RTE_FLOW_ITEM_TYPE_ICMP] = &icmp,
	[RTE_FLOW_ITEM_TYPE_ICMP6] = &icmp6,
	[RTE_FLOW_ITEM_TYPE_VXLAN] = &vxlan,
	[RTE_FLOW_ITEM_TYPE_GENEVE] = &geneve,
	[RTE_FLOW_ITEM_TYPE_GTP] = &gtpu,
	[RTE_FLOW_ITEM_TYPE_GTPU] = &gtpu,
	[RTE_FLOW_ITEM_TYPE_GRE] = &gre,
	[RTE_FLOW_ITEM_TYPE_GRE_KEY] = &gre_key,
};

_Static_assert(sizeof(forms) / sizeof(forms[0]) <= 64, "a bit each in sim_pattern.items");

const struct sim_item_form *sim_item_form(enum rte_flow_item_type type)
{
	return (unsigned)type < sizeof(forms) / sizeof(forms[0]) ? forms[type] : NULL;
}

uint32_t sim_item_port(const struct sim_item_form *form, const void *item)
{
	uint32_t id32;
	uint16_t id16;

	if (form->size == sizeof(id32)) {
		memcpy(&id32, item, sizeof(id32));
		return id32;
	}
	memcpy(&id16, item, sizeof(id16));
	return id16;
}

void sim_item_put_bits(uint8_t *bytes, uint32_t bits)
{
	for (; bits != 0; bits >>= 8)
		*bytes++ |= (uint8_t)bits;
}
