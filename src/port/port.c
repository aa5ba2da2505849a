/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/port.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "port/device.h"
#include "port/kernel.h"
#include "port/probe.h"
#include "port/rss.h"

/* What a NIC gets, where its limits allow. */
#define DESCRIPTORS 1024
/* Ethernet header, two VLAN tags, FCS. */
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)
/* What tp_hdr, address and the head room of a packet socket's frame take; see packet(7). */
#define PACKET_FRAME_OVERHEAD 66
#define PACKET_FRAMES 4096
#define PACKET_FRAMES_LEAST 128
#define XDP_HEADROOM 256

static const char *bus_of(const struct port *port)
{
	return port->device.kind == PORT_DEVICE_PCI ? "pci" : "vdev";
}

static int open_packet(struct port *port, struct error *error)
{
	unsigned frame = RTE_MAX(
		2048u, RTE_ALIGN(port->mtu + FRAME_OVERHEAD + PACKET_FRAME_OVERHEAD, 1024u));
	/* the driver wants frames to lie without a gap: whole ones in each block of whole pages */
	unsigned block = 4 * frame * RTE_MAX(1u, 65536 / (4 * frame));
	char arguments[160], said[160];
	int ret = -EINVAL;

	snprintf(port->ethdev, sizeof(port->ethdev), "net_af_packet_%s", port->device.interface);
	/* a limit on locked memory may be in the way: then fewer */
	for (unsigned frames = PACKET_FRAMES; ret < 0 && frames >= PACKET_FRAMES_LEAST;
		frames /= 2) {
		snprintf(arguments, sizeof(arguments),
			"iface=%s,qpairs=1,blocksz=%u,framesz=%u,framecnt=%u",
			port->device.interface, block, frame, frames);
		ret = probe_device("vdev", port->ethdev, arguments, &port->id, said, sizeof(said));
	}
	port->data_room = (uint16_t)(frame + RTE_PKTMBUF_HEADROOM);
	if (ret < 0)
		return error_set(error, ret, "%s: af_packet does not open it: %s",
			port->device.interface, said);
	return 0;
}

static int open_named(struct port *port, struct error *error)
{
	const char *text = port->device.text;
	char said[200];

	device_name(text, port->ethdev, sizeof(port->ethdev));
	int ret = probe_device(
		bus_of(port), port->ethdev, device_arguments(text), &port->id, said, sizeof(said));

	if (ret < 0)
		return error_set(error, ret, "%s: DPDK does not open it: %s", port->ethdev,
			*said ? said : strerror(-ret));
	return 0;
}

static int take_queues(struct port *port, unsigned wanted, struct error *error)
{
	struct rte_eth_dev_info info;
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	int ret = rte_eth_dev_info_get(port->id, &info);

	if (ret < 0)
		return error_set(
			error, ret, "%s: no device information: %s", port->name, strerror(-ret));
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	wanted = RTE_MIN(RTE_MAX(wanted, 1u), (unsigned)PORT_MAX_QUEUES);
	port->n_rx = (uint16_t)RTE_MIN(wanted, info.max_rx_queues);
	port->n_tx = (uint16_t)RTE_MIN(wanted, info.max_tx_queues);
	if (device_is(port->ethdev, "tap") || device_is(port->ethdev, "af_xdp"))
		port->n_rx = port->n_tx = (uint16_t)RTE_MIN(port->n_rx, port->n_tx);
	if (port->n_rx == 0 || port->n_tx == 0)
		return error_set(error, -EINVAL, "%s: it has no queues", port->name);
	if (device_is(port->ethdev, "tap"))
		rx = 16;
	rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
	port->rx_descriptors = rx;
	port->tx_descriptors = tx;
	port->socket = rte_eth_dev_socket_id(port->id);
	port->software = port->device.kind != PORT_DEVICE_PCI;
	rte_eth_macaddr_get(port->id, &port->mac);
	if (port->mtu == 0)
		rte_eth_dev_get_mtu(port->id, &port->mtu);
	return 0;
}

static int look_at_kernel(struct port *port, const struct port_config *config, struct error *error)
{
	const char *name = port->device.interface;
	struct kernel_interface interface;
	int ret = kernel_look(&interface, name);

	(void)config;
	if (ret < 0)
		return error_set(error, ret, "%s: no such interface", name);
	if (!interface.up)
		ret = kernel_set_up(name);
	if (ret < 0)
		return error_set(
			error, ret, "%s is down and cannot be set up: %s", name, strerror(-ret));
	port->interface_index = interface.index;
	port->mtu = (uint16_t)RTE_MIN(interface.mtu, 65535u);
	port->promiscuous = kernel_promiscuous(interface.index);
	if (port->promiscuous < 0)
		return error_set(error, port->promiscuous, "%s: it does not take all packets: %s",
			name, strerror(-port->promiscuous));
	return 0;
}

int port_open(struct port **out, const struct port_config *config, port_warn_fn warn, void *context,
	struct error *error)
{
	struct port *port = calloc(1, sizeof(*port));
	int ret = 0;

	(void)warn;
	(void)context;
	if (port == NULL)
		return error_set(error, -ENOMEM, "no memory for port %s", config->name);
	port->id = RTE_MAX_ETHPORTS;
	port->promiscuous = -1;
	port->device = config->device;
	port->link = PORT_LINK_DOWN;
	snprintf(port->name, sizeof(port->name), "%s", config->name);
	if (port->device.interface[0] != '\0')
		ret = look_at_kernel(port, config, error);
	if (ret == 0)
		ret = port->device.kind == PORT_DEVICE_KERNEL ? open_packet(port, error)
							      : open_named(port, error);
	if (ret == 0)
		ret = take_queues(port, config->n_queues, error);
	if (ret < 0) {
		port_close(port);
		return ret;
	}
	snprintf(port->note, sizeof(port->note), "%s, %u queue%s",
		strncmp(port->driver, "net_", 4) == 0 ? port->driver + 4 : port->driver, port->n_rx,
		port->n_rx == 1 ? "" : "s");
	*out = port;
	return 0;
}

int port_check_wire(const struct port *a, const struct port *b, struct error *error)
{
	if (a->mtu == b->mtu)
		return 0;
	return error_set(error, -EINVAL,
		"%s has MTU %u and %s %u: frames would get lost between them", a->name, a->mtu,
		b->name, b->mtu);
}

unsigned port_buffers(const struct port *port)
{
	if (device_is(port->ethdev, "af_packet"))
		return 0;
	return (unsigned)port->n_rx * port->rx_descriptors +
	       (unsigned)port->n_tx * port->tx_descriptors;
}

uint16_t port_data_room(const struct port *port)
{
	unsigned room = RTE_PKTMBUF_HEADROOM + port->mtu + FRAME_OVERHEAD;

	if (device_is(port->ethdev, "af_xdp"))
		room += XDP_HEADROOM;
	room = RTE_MAX(room, (unsigned)RTE_MBUF_DEFAULT_BUF_SIZE);
	return (uint16_t)RTE_MAX(room, port->data_room);
}

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

int port_start(struct port *port, struct rte_mempool *pool, struct error *error)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	struct probe_log log;
	char said[200];
	int ret = rte_eth_dev_info_get(port->id, &info);

	probe_log_begin(&log);
	if (ret == 0) {
		conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
		ret = rte_eth_dev_configure(port->id, port->n_rx, port->n_tx, &conf);
	}
	if (ret == 0)
		ret = set_up_queues(port, pool);
	if (ret == 0)
		ret = rte_eth_dev_start(port->id);
	probe_log_end(&log, said, sizeof(said));
	if (ret < 0)
		return error_set(error, ret, "%s does not start: %s", port->name,
			*said ? said : strerror(-ret));
	port->started = true;
	if (port->promiscuous < 0)
		rte_eth_promiscuous_enable(port->id);
	port_update_link(port);
	return 0;
}

void port_stop(struct port *port)
{
	if (!port->started)
		return;
	port->started = false;
	rte_eth_dev_stop(port->id);
}

void port_close(struct port *port)
{
	if (port == NULL)
		return;
	port_stop(port);
	if (port->id != RTE_MAX_ETHPORTS)
		probe_remove(bus_of(port), port->ethdev, port->id);
	if (port->promiscuous >= 0)
		close(port->promiscuous);
	free(port);
}
