/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The calls of an ethdev that are not rte_flow's, between the files that have them. Called by one thread
 * at a time, as rte_ethdev.h asks of applications, but while others receive, send and read counters.
 * Return 0 or a negative errno, as rte_ethdev.h says of each.
 */

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/sim.h"

/* ops.c: device.c gives it to each port */
extern const struct eth_dev_ops sim_ops;

/* life.c */
int sim_configure(struct rte_eth_dev *dev);
int sim_start(struct rte_eth_dev *dev);
int sim_stop(struct rte_eth_dev *dev);

/* device.c: also of a device that goes while it is started */
int sim_close(struct rte_eth_dev *dev);

/* queue.c */
int sim_rx_queue_setup(struct rte_eth_dev *dev, uint16_t number, uint16_t descriptors,
	unsigned socket, const struct rte_eth_rxconf *conf, struct rte_mempool *pool);
int sim_tx_queue_setup(struct rte_eth_dev *dev, uint16_t number, uint16_t descriptors,
	unsigned socket, const struct rte_eth_txconf *conf);
void sim_rx_queue_release(struct rte_eth_dev *dev, uint16_t number);
void sim_tx_queue_release(struct rte_eth_dev *dev, uint16_t number);
void sim_rx_queue_info(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_rxq_info *info);
void sim_tx_queue_info(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_txq_info *info);
int sim_rx_burst_mode(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_burst_mode *mode);
int sim_tx_burst_mode(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_burst_mode *mode);
/* Frees what lies in the rings; nobody may put anything in. */
void sim_queues_drain(struct sim_port *port);

/* link.c */
int sim_link_update(struct rte_eth_dev *dev, int wait);
int sim_link_set_up(struct rte_eth_dev *dev);
int sim_link_set_down(struct rte_eth_dev *dev);
/* The port was started or is about to stop: the link follows. */
void sim_link_look(struct rte_eth_dev *dev);

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
