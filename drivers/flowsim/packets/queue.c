/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/queue.h"

#include <errno.h>
#include <stdio.h>

#include <rte_ring.h>

#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/port/fault.h"
#include "drivers/flowsim/port/log.h"
#include "drivers/flowsim/port/port.h"

static int check_room(const struct sim_port *port, struct rte_mempool *pool)
{
	unsigned room = rte_pktmbuf_data_room_size(pool);

	room -= RTE_MIN(room, (unsigned)RTE_PKTMBUF_HEADROOM);
	if (port->source == NULL || port->source->max_length <= room)
		return 0;
	SIM_LOG(ERR, "%s: frames of %u bytes do not fit into mbufs with room for %u", port->name,
		port->source->max_length, room);
	return -EINVAL;
}

static int make_ring(struct sim_rx_queue *queue, uint16_t descriptors, unsigned socket)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "flowsim_%u_%u", queue->port->id, queue->number);
	queue->ring =
		rte_ring_create(name, descriptors, (int)socket, RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (queue->ring != NULL)
		return 0;
	SIM_LOG(ERR, "%s: no memory for receive queue %u", queue->port->name, queue->number);
	return -ENOMEM;
}

int sim_rx_queue_setup(struct rte_eth_dev *dev, uint16_t number, uint16_t descriptors,
	unsigned socket, const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_rx_queue *queue = &port->rx[number];
	int ret;

	(void)conf;
	/* pools of several sizes come without one of all */
	if (pool == NULL)
		return -ENOTSUP;
	ret = check_room(port, pool);
	if (ret == 0)
		ret = make_ring(queue, descriptors, socket);
	if (ret < 0)
		return ret;
	queue->pool = pool;
	queue->descriptors = descriptors;
	dev->data->rx_queues[number] = queue;
	return 0;
}

int sim_tx_queue_setup(struct rte_eth_dev *dev, uint16_t number, uint16_t descriptors,
	unsigned socket, const struct rte_eth_txconf *conf)
{
	struct sim_port *port = sim_port_of(dev);

	(void)socket;
	(void)conf;
	port->tx[number].descriptors = descriptors;
	dev->data->tx_queues[number] = &port->tx[number];
	return 0;
}

/* What the host had not taken when its queue went. */
static void drain(struct sim_rx_queue *queue)
{
	struct rte_mbuf *packet;

	while (queue->ring != NULL && rte_ring_sc_dequeue(queue->ring, (void **)&packet) == 0) {
		__atomic_fetch_add(&queue->counters.missed, 1, __ATOMIC_RELAXED);
		rte_pktmbuf_free(packet);
	}
}

void sim_queues_drain(struct sim_port *port)
{
	for (uint16_t i = 0; i < SIM_MAX_QUEUES; i++)
		drain(&port->rx[i]);
}

void sim_rx_queue_release(struct rte_eth_dev *dev, uint16_t number)
{
	struct sim_rx_queue *queue = &sim_port_of(dev)->rx[number];

	drain(queue);
	rte_ring_free(queue->ring);
	queue->ring = NULL;
	queue->pool = NULL;
}

void sim_tx_queue_release(struct rte_eth_dev *dev, uint16_t number)
{
	(void)dev;
	(void)number;
}

void sim_rx_queue_info(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_rxq_info *info)
{
	const struct sim_rx_queue *queue = &sim_port_of(dev)->rx[number];

	info->mp = queue->pool;
	info->nb_desc = queue->descriptors;
	info->conf.offloads = dev->data->dev_conf.rxmode.offloads;
}

void sim_tx_queue_info(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_txq_info *info)
{
	info->nb_desc = sim_port_of(dev)->tx[number].descriptors;
	info->conf.offloads = dev->data->dev_conf.txmode.offloads;
}

int sim_rx_burst_mode(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_burst_mode *mode)
{
	static const char *const words[] = {
		[SIM_SOURCE_STREAMS] = "Streams",
		[SIM_SOURCE_CAPTURE] = "Capture",
		[SIM_SOURCE_PORT] = "In line",
		[SIM_SOURCE_NONE] = "Ring",
	};

	(void)number;
	snprintf(mode->info, sizeof(mode->info), "%s", words[sim_port_of(dev)->args.source]);
	return 0;
}

int sim_tx_burst_mode(struct rte_eth_dev *dev, uint16_t number, struct rte_eth_burst_mode *mode)
{
	(void)number;
	snprintf(mode->info, sizeof(mode->info), "%s",
		sim_port_of(dev)->pump != NULL ? "In line" : "Counted");
	return 0;
}

bool sim_queue_put(struct sim_port *port, uint16_t queue, struct rte_mbuf *packet)
{
	struct rte_ring *ring = queue < port->n_rx ? port->rx[queue].ring : NULL;

	if (ring != NULL && rte_ring_mp_enqueue(ring, packet) == 0) {
		__atomic_store_n(&port->rx[queue].given, true, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_fetch_add(&port->rx[queue % SIM_MAX_QUEUES].counters.missed, 1, __ATOMIC_RELAXED);
	return false;
}

uint16_t sim_queue_take(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_counters *counters = &queue->counters;
	uint64_t bytes = 0, marked = 0, flagged = 0;

	n = (uint16_t)rte_ring_sc_dequeue_burst(queue->ring, (void **)packets, n, NULL);
	if (n == 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		uint64_t flags = packets[i]->ol_flags;

		bytes += packets[i]->pkt_len;
		marked += (flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
		flagged += (flags & (RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID)) ==
			   RTE_MBUF_F_RX_FDIR;
	}
	sim_count_add(&counters->packets, n);
	sim_count_add(&counters->bytes, bytes);
	sim_count_add(&counters->marked, marked);
	sim_count_add(&counters->flagged, flagged);
	return n;
}

uint16_t sim_queue_take_given(struct sim_rx_queue *queue, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t taken;

	/* not a load and a store: what is put between them would be forgotten */
	(void)__atomic_exchange_n(&queue->given, false, __ATOMIC_ACQ_REL);
	taken = sim_queue_take(queue, packets, n);
	if (taken == n)
		__atomic_store_n(&queue->given, true, __ATOMIC_RELEASE);
	return taken;
}

uint16_t sim_queue_receive(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_queue *of = queue;

	if (!__atomic_load_n(&of->port->link_up, __ATOMIC_RELAXED))
		return 0;
	return sim_queue_take(of, packets, n);
}

void sim_queues_look(struct sim_port *port)
{
	bool slow = sim_fault_on_packets(port);

	for (uint16_t i = 0; i < port->n_rx; i++) {
		struct sim_rx_queue *queue = &port->rx[i];

		rte_spinlock_lock(&queue->lock);
		queue->slow = slow;
		rte_spinlock_unlock(&queue->lock);
	}
}
