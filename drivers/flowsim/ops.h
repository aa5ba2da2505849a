/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The calls of an ethdev that are not rte_flow's, between the files of this directory that have them; those
 * of queues and of the link are in packets/. Called by one thread
 * at a time, as rte_ethdev.h asks of applications, but while others receive, send and read counters.
 * Return 0 or a negative errno, as rte_ethdev.h says of each.
 */

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/port.h"

/* ops.c: device.c gives it to each port */
extern const struct eth_dev_ops sim_ops;

/* life.c */
int sim_configure(struct rte_eth_dev *dev);
int sim_start(struct rte_eth_dev *dev);
int sim_stop(struct rte_eth_dev *dev);

/* device.c: also of a device that goes while it is started */
int sim_close(struct rte_eth_dev *dev);

/* stats.c */
int sim_stats_init(struct sim_port *port);
void sim_stats_fini(struct sim_port *port);
int sim_stats_of(
	struct rte_eth_dev *dev, struct rte_eth_stats *stats, struct sim_queue_stats *queues);
int sim_stats_reset(struct rte_eth_dev *dev);
int sim_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *stats, unsigned n);
int sim_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned n);

/* rss_set.c */
int sim_rss_configure(
	struct sim_port *port, const struct rte_eth_rss_conf *conf, uint16_t n_queues);
int sim_reta_update(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int sim_reta_query(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int sim_rss_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf);
int sim_rss_conf_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf);
