/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/ops.h"

#include <errno.h>

#include <rte_ether.h>

#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/packets/link.h"
#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/nic.h"

#define MAX_FRAME 9728
#define OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)
#define MIN_DESCRIPTORS 64
#define MAX_DESCRIPTORS 32768
#define DESCRIPTORS 1024

static int get_info(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct sim_port *port = sim_port_of(dev);
	const struct rte_eth_desc_lim limits = {
		.nb_max = MAX_DESCRIPTORS, .nb_min = MIN_DESCRIPTORS, .nb_align = 1};

	info->max_rx_pktlen = MAX_FRAME;
	info->max_mtu = MAX_FRAME - OVERHEAD;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->min_rx_bufsize = 0;
	info->max_rx_queues = port->args.max_queues;
	info->max_tx_queues = port->args.max_queues;
	info->max_mac_addrs = 1;
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_RSS_HASH;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (port->args.source != SIM_SOURCE_PORT)
		info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	info->tx_queue_offload_capa = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	info->reta_size = SIM_RETA;
	info->hash_key_size = SIM_RSS_KEY;
	info->flow_type_rss_offloads = SIM_RSS_TYPES;
	sim_rss_offer(info, sim_rss_functions);
	info->rx_desc_lim = limits;
	info->tx_desc_lim = limits;
	info->speed_capa = rte_eth_speed_bitflag(port->args.link_mbps, RTE_ETH_LINK_FULL_DUPLEX);
	info->default_rxportconf = (struct rte_eth_dev_portconf){32, DESCRIPTORS, 1};
	info->default_txportconf = info->default_rxportconf;
	/* queues are not started and stopped one by one; what ethdev says of itself stays */
	info->dev_capa = RTE_ETH_DEV_CAPA_FLOW_SHARED_OBJECT_KEEP;
	if (port->args.profile.keeps_rules == 1)
		info->dev_capa |= RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP;
	info->switch_info.name = port->args.nic[0] != '\0' ? port->args.nic : port->name;
	info->switch_info.domain_id = sim_nic_domain(port);
	info->switch_info.port_id = (uint16_t)sim_nic_number(port);
	if (port->pump != NULL)
		return sim_pump_info(sim_port_of(dev), info);
	return 0;
}

static int set_promiscuous(struct rte_eth_dev *dev, bool on)
{
	struct sim_port *port = sim_port_of(dev);

	return port->pump != NULL ? sim_pump_set_promiscuous(port, on) : 0;
}

static int promiscuous_on(struct rte_eth_dev *dev)
{
	return set_promiscuous(dev, true);
}

static int promiscuous_off(struct rte_eth_dev *dev)
{
	return set_promiscuous(dev, false);
}

static int set_allmulticast(struct rte_eth_dev *dev, bool on)
{
	struct sim_port *port = sim_port_of(dev);

	return port->pump != NULL ? sim_pump_set_allmulticast(port, on) : 0;
}

static int allmulticast_on(struct rte_eth_dev *dev)
{
	return set_allmulticast(dev, true);
}

static int allmulticast_off(struct rte_eth_dev *dev)
{
	return set_allmulticast(dev, false);
}

static int set_mac(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	struct sim_port *port = sim_port_of(dev);

	/* ethdev keeps it */
	return port->pump != NULL ? sim_pump_set_mac(port, mac) : 0;
}

static int set_mtu(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct sim_port *port = sim_port_of(dev);

	return port->pump != NULL ? sim_pump_set_mtu(port, mtu) : 0;
}

static int get_flow_ops(struct rte_eth_dev *dev, const struct rte_flow_ops **ops)
{
	*ops = sim_flow_ops_get(sim_port_of(dev));
	return *ops != NULL ? 0 : -ENOTSUP;
}

static int get_mtr_ops(struct rte_eth_dev *dev, void *ops)
{
	const struct rte_mtr_ops *ours = sim_mtr_ops_get(sim_port_of(dev));

	*(const struct rte_mtr_ops **)ops = ours;
	return ours != NULL ? 0 : -ENOTSUP;
}

/* Marks are in the mbuf whether asked for or not, as far as there are any. */
static int negotiate(struct rte_eth_dev *dev, uint64_t *features)
{
	uint64_t can = RTE_ETH_RX_METADATA_USER_FLAG;

	if (sim_port_of(dev)->args.profile.mark_bits != 0)
		can |= RTE_ETH_RX_METADATA_USER_MARK;
	*features &= can;
	return 0;
}

SIM_STATS_GET(stats_get, sim_stats_of)

const struct eth_dev_ops sim_ops = {
	.dev_configure = sim_configure,
	.dev_start = sim_start,
	.dev_stop = sim_stop,
	.dev_close = sim_close,
	.dev_infos_get = get_info,
	.dev_set_link_up = sim_link_set_up,
	.dev_set_link_down = sim_link_set_down,
	.link_update = sim_link_update,
	.promiscuous_enable = promiscuous_on,
	.promiscuous_disable = promiscuous_off,
	.allmulticast_enable = allmulticast_on,
	.allmulticast_disable = allmulticast_off,
	.mac_addr_set = set_mac,
	.mtu_set = set_mtu,
	.rx_queue_setup = sim_rx_queue_setup,
	.rx_queue_release = sim_rx_queue_release,
	.tx_queue_setup = sim_tx_queue_setup,
	.tx_queue_release = sim_tx_queue_release,
	.rxq_info_get = sim_rx_queue_info,
	.txq_info_get = sim_tx_queue_info,
	.rx_burst_mode_get = sim_rx_burst_mode,
	.tx_burst_mode_get = sim_tx_burst_mode,
	.stats_get = stats_get,
	.stats_reset = sim_stats_reset,
	.xstats_get = sim_xstats_get,
	.xstats_get_names = sim_xstats_names,
	.xstats_reset = sim_stats_reset,
	.reta_update = sim_reta_update,
	.reta_query = sim_reta_query,
	.rss_hash_update = sim_rss_update,
	.rss_hash_conf_get = sim_rss_conf_get,
	.flow_ops_get = get_flow_ops,
	.mtr_ops_get = get_mtr_ops,
	.rx_metadata_negotiate = negotiate,
};
