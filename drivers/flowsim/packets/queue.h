/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Queues of a port, and the calls that an application sets them up by. A receive queue has a ring,
 * from its set-up to its release: any thread puts packets in, the worker takes them out. Ports that know
 * no packets in advance (port=, source=none) receive through it; the others receive so what rules give
 * them: copies, and packets of another port.
 */

#include <stdbool.h>
#include <stdint.h>

#include <ethdev_driver.h>
#include <rte_mbuf.h>

struct sim_port;
struct sim_rx_queue;

/*
 * Puts a packet, as the worker shall see it, into a queue's ring. False, and counted as missed, when
 * there is no such queue, no ring or no room: the packet is the caller's still.
 */
bool sim_queue_put(struct sim_port *port, uint16_t queue, struct rte_mbuf *packet);

/* Takes packets out, and counts them: packets, bytes, marked, flagged. By the queue's worker. */
uint16_t sim_queue_take(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n);

/* The same for ports of known sources, when sim_rx_queue.given says that there may be some. */
uint16_t sim_queue_take_given(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n);

/* The burst of a port that receives only what is put into its rings (source=none). */
uint16_t sim_queue_receive(void *queue, struct rte_mbuf **packets, uint16_t n);

/* Sending of ports that have no other behind them: send.c. `queue` is a sim_tx_queue. */
uint16_t sim_send(void *queue, struct rte_mbuf **packets, uint16_t n);

/*
 * A packet fault came or went: whether receive takes its slow way (sim_rx_queue.slow). Under the port's
 * lock; takes those of the queues.
 */
void sim_queues_look(struct sim_port *port);

/* ethdev's calls: one thread at a time, as rte_ethdev.h asks; 0 or a negative errno. */
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
