/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_dev.h>

#include "port/device.h"
#include "port/kernel.h"
#include "port/mtu.h"
#include "port/netlink.h"
#include "port/packet.h"

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
	struct netlink_link now;
	int ret = netlink_link(&now, port->interface_index);

	if (ret == -ENODEV)
		return PORT_LINK_REMOVED;
	/* nothing learned (too many open files, say) is no news */
	if (ret < 0)
		return port->link;
	if (strcmp(now.name, port->interface) != 0) {
		memcpy(port->interface_before, port->interface, sizeof(port->interface_before));
		memcpy(port->interface, now.name, sizeof(port->interface));
	}
	port->speed_mbps = kernel_speed(now.name);
	return now.running ? PORT_LINK_UP : PORT_LINK_DOWN;
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

unsigned port_update(struct port *port)
{
	enum port_link before = port->link;
	char name[IF_NAMESIZE];
	unsigned changed = 0;

	/* a link that a restart takes down and brings back is nobody's news */
	if (pthread_mutex_trylock(&port->asked) != 0)
		return 0;
	memcpy(name, port->interface, sizeof(name));
	/* what is gone does not come back under the same name */
	if (before != PORT_LINK_REMOVED)
		port->link = port->interface_index != 0 ? kernel_link(port) : device_link(port);
	if (port->link == PORT_LINK_UP && port->missed != NULL && port->packet_tx == NULL)
		packet_recover(port->interface_index);
	atomic_store_explicit(&port->link_up, port->link == PORT_LINK_UP, memory_order_relaxed);
	pthread_mutex_unlock(&port->asked);
	if (port->link != before)
		changed |= PORT_CHANGED_LINK;
	if (strcmp(port->interface, name) != 0)
		changed |= PORT_CHANGED_NAME;
	return changed;
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
	if (port->packet_tx != NULL && ret == 0) {
		uint64_t discarded =
			atomic_load_explicit(&port->packet_tx->discarded, memory_order_relaxed);

		/* of what the driver has put into its ring */
		stats->opackets -= RTE_MIN(discarded, stats->opackets);
		stats->oerrors += discarded;
	}
	if (port->tap >= 0 && ret == 0)
		stats->imissed += port_kernel_dropped(port);
	/* its driver hears only that the kernel has taken them */
	if (device_is(port->ethdev, "af_xdp") && ret == 0)
		stats->oerrors += port_kernel_dropped(port);
	return ret;
}
