/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_ethdev.h>

#include "port/rss.h"
#include "port/rss_set.h"

#define GROUPS (RSS_RETA_MAX / RTE_ETH_RETA_GROUP_SIZE)

/* Can rss_queue() tell the queue of a hash with a table of this size? */
static bool table_fits(uint16_t size, uint16_t n_queues)
{
	if (size == 0 || size > RSS_RETA_MAX || (size & (size - 1)) != 0)
		return false;
	return size >= 128 || size % n_queues == 0;
}

static bool key_fits(uint8_t size)
{
	return size == 0 || (size >= 40 && size <= RSS_KEY_BYTES);
}

static uint8_t key_bytes(const struct rte_eth_dev_info *info)
{
	return info->hash_key_size != 0 ? info->hash_key_size : 40;
}

static uint64_t offered(const struct port *port, const struct rte_eth_dev_info *info)
{
	if (port->rss_pattern == 0 || port->n_rx < 2 || !table_fits(info->reta_size, port->n_rx) ||
		!key_fits(info->hash_key_size))
		return 0;
	return rss_kinds(info->flow_type_rss_offloads);
}

static struct rte_eth_rss_conf wanted_conf(
	const struct port *port, const struct rte_eth_dev_info *info, uint64_t kinds)
{
	/* DPDK does not write to it, but has it without const */
	static uint8_t key[RSS_KEY_BYTES];

	rss_key(port->rss_pattern, key);
	return (struct rte_eth_rss_conf){
		.rss_key = key,
		.rss_key_len = key_bytes(info),
		.rss_hf = rss_flags(kinds) & info->flow_type_rss_offloads,
	};
}

void port_rss_configure(
	const struct port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	uint64_t kinds = offered(port, info);

	if (kinds == 0)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf = wanted_conf(port, info, kinds);
}

/* The table as rss_queue() has it; false when the port has another. */
static bool set_table(const struct port *port, uint16_t size)
{
	struct rte_eth_rss_reta_entry64 wanted[GROUPS], found[GROUPS];
	int set, asked;

	memset(wanted, 0, sizeof(wanted));
	for (unsigned i = 0; i < size; i++) {
		wanted[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1)
							    << i % RTE_ETH_RETA_GROUP_SIZE;
		wanted[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			rss_queue(i, port->n_rx);
	}
	set = rte_eth_dev_rss_reta_update(port->id, wanted, size);
	memcpy(found, wanted, sizeof(found));
	for (unsigned i = 0; i < size; i++)
		found[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] = UINT16_MAX;
	asked = rte_eth_dev_rss_reta_query(port->id, found, size);
	if (asked < 0)
		return set == 0;
	return memcmp(wanted, found, sizeof(wanted)) == 0;
}

uint64_t port_rss_accepted(const struct port *port, const struct rte_eth_dev_info *info)
{
	uint64_t kinds = offered(port, info);
	uint8_t key[RSS_KEY_BYTES] = {0}, wanted[RSS_KEY_BYTES];
	struct rte_eth_rss_conf conf;

	if (kinds == 0 || !set_table(port, info->reta_size))
		return 0;
	/* some look at the key only here; those that cannot do it took it when they were configured */
	conf = wanted_conf(port, info, kinds);
	rte_eth_dev_rss_hash_update(port->id, &conf);
	conf = (struct rte_eth_rss_conf){.rss_key = key, .rss_key_len = key_bytes(info)};
	/* a driver that cannot say took what it was given */
	if (rte_eth_dev_rss_hash_conf_get(port->id, &conf) < 0)
		return kinds;
	rss_key(port->rss_pattern, wanted);
	if (conf.rss_key == key && memcmp(key, wanted, 40) != 0)
		return 0;
	return kinds & rss_kinds(conf.rss_hf);
}
