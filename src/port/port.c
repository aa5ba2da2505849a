/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "port/check.h"
#include "port/claim.h"
#include "port/device.h"
#include "port/mtu.h"
#include "port/open.h"
#include "port/probe.h"
#include "port/xdp.h"

/* What a NIC gets, where its limits allow. */
#define DESCRIPTORS 1024
/* af_xdp: as many as its rings have, and its rings of what has been sent. */
#define XDP_DESCRIPTORS 2048
/* tap has them for the pieces of one packet, and gives all of them to the kernel each time. */
#define TAP_DESCRIPTORS 16
/* The kernel puts its own head room before a frame. */
#define XDP_HEADROOM 256

static const char *bus_of(const struct port *port)
{
	return port->device.kind == PORT_DEVICE_PCI ? "pci" : "vdev";
}

static void take_descriptors(struct port *port)
{
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;

	if (device_is(port->ethdev, "tap"))
		rx = TAP_DESCRIPTORS;
	if (device_is(port->ethdev, "af_xdp"))
		rx = tx = XDP_DESCRIPTORS;
	rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx, &tx);
	port->rx_descriptors = rx;
	port->tx_descriptors = tx;
}

static void take_tap(struct port *port, unsigned index)
{
	port->tap = kernel_tap(index);
	if (port->claim < 0)
		port->claim = claim_interface(index);
}

static int take_device(struct port *port, unsigned wanted, struct error *error)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->id, &info);

	if (ret < 0)
		return error_set(error, ret, "%s: DPDK does not describe the device: %s",
			port->name, strerror(-ret));
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	wanted = RTE_MIN(RTE_MAX(wanted, 1u), (unsigned)PORT_MAX_QUEUES);
	port->n_rx = (uint16_t)RTE_MIN(wanted, info.max_rx_queues);
	port->n_tx = (uint16_t)RTE_MIN(wanted, info.max_tx_queues);
	/* these have queues in pairs */
	if (device_is(port->ethdev, "tap") || device_is(port->ethdev, "af_xdp"))
		port->n_rx = port->n_tx = (uint16_t)RTE_MIN(port->n_rx, port->n_tx);
	if (port->n_rx == 0 || port->n_tx == 0)
		return error_set(
			error, -EINVAL, "%s: %s cannot receive and send", port->name, port->ethdev);
	if (device_is(port->ethdev, "tap"))
		take_tap(port, info.if_index);
	take_descriptors(port);
	port->socket = rte_eth_dev_socket_id(port->id);
	port->software = port->device.kind != PORT_DEVICE_PCI;
	rte_eth_macaddr_get(port->id, &port->mac);
	if (port->interface_index == 0)
		rte_eth_dev_get_mtu(port->id, &port->mtu);
	return 0;
}

static void take_note(struct port *port)
{
	const char *driver = port->driver;

	if (port->note[0] != '\0')
		return;
	if (strncmp(driver, "net_", 4) == 0)
		driver += 4;
	snprintf(port->note, sizeof(port->note), "%.40s, %u queue%s", driver, port->n_rx,
		port->n_rx == 1 ? "" : "s");
}

int port_take_device(struct port_opening *opening, unsigned n_queues, struct error *error)
{
	struct port *port = opening->port;
	int ret = take_device(port, n_queues, error);

	if (ret < 0)
		return ret;
	if (port->interface_index != 0)
		port_check_offloads(opening);
	if (device_is(port->ethdev, "af_packet") || device_is(port->device.below, "af_packet"))
		port->missed = calloc(1, sizeof(*port->missed));
	port_mtu_begin(port);
	take_note(port);
	return 0;
}

static int open_device(struct port_opening *opening, struct error *error)
{
	struct port *port = opening->port;
	int ret = port->device.interface[0] != '\0' ? port_check_interface(opening, error)
						    : port_check_tap(port, error);

	if (ret == 0 && port->device.interface[0] == '\0')
		ret = port_check_below(opening, error);

	if (ret < 0)
		return ret;
	/* libxdp would want a file system for several programs on one interface */
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 0);
	ret = port->device.kind == PORT_DEVICE_KERNEL ? port_open_interface(opening, error)
						      : port_open_named(opening, error);
	if (ret < 0)
		return ret;
	return port_take_device(opening, opening->config->n_queues, error);
}

int port_open(struct port **out, const struct port_config *config, port_warn_fn warn, void *context,
	struct error *error)
{
	struct port *port = calloc(1, sizeof(*port));
	struct port_opening opening = {
		.port = port, .config = config, .warn = warn, .context = context};
	int ret;

	if (port == NULL)
		return error_set(error, -ENOMEM, "no memory for port %s", config->name);
	pthread_mutex_init(&port->asked, NULL);
	port->id = RTE_MAX_ETHPORTS;
	port->promiscuous = -1;
	port->claim = -1;
	port->tap = -1;
	port->asks = -1;
	port->warn = warn;
	port->warn_context = context;
	port->device = config->device;
	port->rss_pattern = config->rss_pattern;
	port->offload_places = config->offload_places;
	port->link = PORT_LINK_DOWN;
	snprintf(port->name, sizeof(port->name), "%s", config->name);
	ret = open_device(&opening, error);
	if (ret < 0) {
		port_close(port);
		return ret;
	}
	*out = port;
	return 0;
}

unsigned port_buffers(const struct port *port)
{
	/* it copies, both ways */
	if (device_is(port->ethdev, "af_packet"))
		return 0;
	/* frames sent lie in a second ring until somebody looks */
	if (device_is(port->ethdev, "af_xdp"))
		return (unsigned)port->n_rx * 4 * XDP_DESCRIPTORS;
	return (unsigned)port->n_rx * port->rx_descriptors +
	       (unsigned)port->n_tx * port->tx_descriptors;
}

uint16_t port_data_room(const struct port *port)
{
	unsigned room = RTE_PKTMBUF_HEADROOM + port->mtu + PORT_FRAME_OVERHEAD;

	if (device_is(port->ethdev, "af_xdp"))
		room += XDP_HEADROOM;
	room = RTE_MAX(room, (unsigned)RTE_MBUF_DEFAULT_BUF_SIZE);
	room = RTE_ALIGN(RTE_MAX(room, port->data_room), 8);
	return (uint16_t)RTE_MIN(room, RTE_ALIGN_FLOOR((unsigned)UINT16_MAX, 8));
}

void port_close(struct port *port)
{
	if (port == NULL)
		return;
	port_stop(port);
	if (port->left != NULL)
		xdp_left_begin(port->left);
	if (port->id != RTE_MAX_ETHPORTS)
		probe_remove(bus_of(port), port->ethdev, port->id);
	if (port->left != NULL) {
		xdp_left_end(port->left);
		xdp_left_close(port->left);
	}
	pthread_mutex_destroy(&port->asked);
	free(port->left);
	free(port->missed);
	free(port->packet_tx);
	if (port->asks >= 0)
		close(port->asks);
	if (port->promiscuous >= 0)
		close(port->promiscuous);
	if (port->claim >= 0)
		close(port->claim);
	free(port);
}
