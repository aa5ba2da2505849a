/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <rte_dev.h>

#include "port/device.h"
#include "port/kernel.h"
#include "port/packet.h"
#include "port/port.h"

const char *port_link_name(enum port_link link)
{
	static const char *const names[] = {
		[PORT_LINK_UP] = "up",
		[PORT_LINK_DOWN] = "down",
		[PORT_LINK_REMOVED] = "removed",
	};

	return names[link];
}

/* Drivers over a kernel interface say "up" all the time: the kernel knows. */
static enum port_link kernel_link(struct port *port)
{
	struct kernel_interface interface;
	char name[IF_NAMESIZE];

	if (!kernel_name(port->interface_index, name) || kernel_look(&interface, name) < 0 ||
		interface.index != port->interface_index)
		return PORT_LINK_REMOVED;
	port->speed_mbps = interface.speed_mbps;
	return interface.running ? PORT_LINK_UP : PORT_LINK_DOWN;
}

static enum port_link device_link(struct port *port)
{
	struct rte_eth_dev_info info;
	struct rte_eth_link link = {0};
	char name[IF_NAMESIZE];

	if (rte_eth_dev_is_removed(port->id))
		return PORT_LINK_REMOVED;
	if (port->tap >= 0 && !kernel_tap_lives(port->tap))
		return PORT_LINK_REMOVED;
	/* a tap that was moved to another namespace cannot be seen from here, and works */
	if (port->tap >= 0 && rte_eth_dev_info_get(port->id, &info) == 0 &&
		!kernel_name(info.if_index, name))
		return PORT_LINK_UP;
	if (rte_eth_link_get_nowait(port->id, &link) < 0)
		return PORT_LINK_UP;
	port->speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	return link.link_status ? PORT_LINK_UP : PORT_LINK_DOWN;
}

bool port_update_link(struct port *port)
{
	enum port_link before = port->link;

	/* a link that a restart takes down and brings back is nobody's news */
	if (pthread_mutex_trylock(&port->asked) != 0)
		return false;
	/* what is gone does not come back under the same name */
	if (before != PORT_LINK_REMOVED)
		port->link = port->interface_index != 0 ? kernel_link(port) : device_link(port);
	if (port->link == PORT_LINK_UP && device_is(port->ethdev, "af_packet"))
		packet_recover(port->interface_index);
	atomic_store_explicit(&port->link_up, port->link == PORT_LINK_UP, memory_order_relaxed);
	pthread_mutex_unlock(&port->asked);
	return port->link != before;
}

int port_stats(struct port *port, struct rte_eth_stats *stats)
{
	int ret;

	if (pthread_mutex_trylock(&port->asked) != 0)
		return -EBUSY;
	ret = rte_eth_stats_get(port->id, stats);
	pthread_mutex_unlock(&port->asked);
	if (port->missed != NULL) {
		*port->missed += packet_missed(port->interface_index);
		stats->imissed += *port->missed;
	}
	return ret;
}
