/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "port/device.h"
#include "port/open.h"
#include "port/probe.h"
#include "port/rss_set.h"
#include "port/xdp.h"
#include "rteflow/provider.h"

static int set_up_queues(struct port *port, struct rte_mempool *pool)
{
	int ret = 0;

	for (uint16_t i = 0; ret == 0 && i < port->n_rx; i++)
		ret = rte_eth_rx_queue_setup(
			port->id, i, port->rx_descriptors, (unsigned)port->socket, NULL, pool);
	for (uint16_t i = 0; ret == 0 && i < port->n_tx; i++)
		ret = rte_eth_tx_queue_setup(
			port->id, i, port->tx_descriptors, (unsigned)port->socket, NULL);
	return ret;
}

static int start(struct port *port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->id, &info);

	memset(&conf, 0, sizeof(conf));
	if (ret < 0)
		return ret;
	/* a kernel interface has its MTU already, and its driver may not know how large it can be */
	if (port->interface_index == 0 || port->device.below[0] != '\0')
		conf.rxmode.mtu = port->mtu;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	port_rss_configure(port, &info, &conf);
	if (port->offload_places != 0)
		port->marks = provider_negotiate(port->id);
	ret = rte_eth_dev_configure(port->id, port->n_rx, port->n_tx, &conf);
	if (ret == 0)
		ret = set_up_queues(port, pool);
	if (ret == 0 && port->offload_places != 0)
		port->flow_queues = provider_prepare(port->id, port->offload_places);
	if (ret == 0)
		ret = rte_eth_dev_start(port->id);
	if (ret == 0)
		port->rss = port_rss_accepted(port, &info);
	return ret;
}

/* Where the driver has its own socket still, a stranger's frames may lie there: see port/packet.h. */
static void empty_ring(const struct port *port)
{
	struct rte_mbuf *packets[PORT_BURST];
	uint16_t n;

	for (uint16_t queue = 0; queue < port->n_rx; queue++) {
		unsigned left = 1 << 16;

		do {
			n = rte_eth_rx_burst(port->id, queue, packets, PORT_BURST);
			rte_pktmbuf_free_bulk(packets, n);
			left -= RTE_MIN(left, (unsigned)PORT_BURST);
		} while (n > 0 && left > 0);
	}
	rte_eth_stats_reset(port->id);
}

static int start_xdp(struct port *port, struct rte_mempool *pool)
{
	int ret;

	port->left = calloc(1, sizeof(*port->left));
	if (port->left == NULL)
		return -ENOMEM;
	xdp_quiet();
	xdp_left_begin(port->left);
	ret = start(port, pool);
	xdp_left_end(port->left);
	return ret;
}

/*
 * An interface that af_xdp could not start on after all, though the kernel had agreed to every step: by af_packet.
 * The device of af_xdp stays as it is, since its driver would free the queue's memory a second time.
 */
static int fall_back(
	struct port *port, struct rte_mempool *pool, const char *why, struct error *error)
{
	struct port_opening opening = {
		.port = port,
		.warn = port->warn,
		.context = port->warn_context,
		.room = rte_pktmbuf_data_room_size(pool),
	};
	int ret = kernel_look(&opening.interface, port->interface);

	xdp_left_close(port->left);
	free(port->left);
	port->left = NULL;
	if (ret < 0)
		return error_set(
			error, ret, "%s cannot be looked at: %s", port->interface, strerror(-ret));
	ret = port_open_packet(&opening, error);
	if (ret < 0)
		return ret;
	snprintf(port->note, sizeof(port->note), "af_packet, 1 queue (not af_xdp: %.90s)", why);
	ret = port_take_device(&opening, 1, error);
	if (ret < 0)
		return ret;
	ret = start(port, pool);
	if (ret < 0)
		return error_set(error, ret, "%s does not start by af_packet: %s", port->name,
			strerror(-ret));
	return 0;
}

/* By its driver, or by another one where the choice was ours. */
static int start_device(struct port *port, struct rte_mempool *pool, struct error *error)
{
	bool xdp = device_is(port->ethdev, "af_xdp");
	struct probe_log log;
	char said[200];
	int ret;

	probe_log_begin(&log);
	ret = xdp ? start_xdp(port, pool) : start(port, pool);
	probe_log_end(&log, said, sizeof(said));
	if (ret == 0)
		return 0;
	if (!xdp)
		return error_set(error, ret, "%s does not start: %s", port->name,
			*said ? said : strerror(-ret));
	const char *why = *xdp_said() ? xdp_said() : *said ? said : strerror(-ret);

	port->id = RTE_MAX_ETHPORTS;
	if (port->device.kind == PORT_DEVICE_KERNEL)
		return fall_back(port, pool, why, error);
	return error_set(error, ret,
		"%s: af_xdp does not start: %s; --port %s=net_af_packet0,iface=%s does without it",
		port->name, why, port->name, port->interface);
}

int port_start(struct port *port, struct rte_mempool *pool, struct error *error)
{
	int ret = start_device(port, pool, error);

	if (ret < 0)
		return ret;
	port->started = true;
	if (port->promiscuous < 0)
		rte_eth_promiscuous_enable(port->id);
	if (device_is(port->ethdev, "af_packet"))
		empty_ring(port);
	port_update(port);
	return 0;
}

int port_restart(struct port *port)
{
	int ret;

	/* calls that set a port up are for one thread at a time (DPDK's guide, "Poll Mode Driver") */
	pthread_mutex_lock(&port->asked);
	ret = rte_eth_dev_stop(port->id);
	if (ret == 0)
		ret = rte_eth_dev_start(port->id);
	if (ret == 0 && port->promiscuous < 0)
		rte_eth_promiscuous_enable(port->id);
	pthread_mutex_unlock(&port->asked);
	return ret;
}

void port_stop(struct port *port)
{
	struct probe_log log;
	char said[2];

	if (!port->started)
		return;
	port->started = false;
	probe_log_begin(&log);
	rte_eth_dev_stop(port->id);
	probe_log_end(&log, said, sizeof(said));
}
