/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire is the wrapped port's: what is sent goes out of it, and calls that concern it are passed on. */
#include <errno.h>
#include <string.h>

#include "drivers/flowsim/packets/pump_parts.h"

uint16_t sim_pump_wrapped(const struct sim_port *port)
{
	return __atomic_load_n(&port->pump->wrapped, __ATOMIC_RELAXED);
}

int sim_pump_mac(struct sim_port *port, struct rte_ether_addr *mac)
{
	uint16_t wrapped = sim_pump_wrapped(port);

	return wrapped == SIM_NO_PORT ? -ENODEV : rte_eth_macaddr_get(wrapped, mac);
}

int sim_pump_set_mac(struct sim_port *port, struct rte_ether_addr *mac)
{
	uint16_t wrapped = sim_pump_wrapped(port);

	return wrapped == SIM_NO_PORT ? -ENODEV : rte_eth_dev_default_mac_addr_set(wrapped, mac);
}

/* Narrows what the port says of itself. */
int sim_pump_info(struct sim_port *port, struct rte_eth_dev_info *info)
{
	uint16_t wrapped = sim_pump_wrapped(port);
	struct rte_eth_dev_info of_wrapped;
	int ret;

	if (wrapped == SIM_NO_PORT)
		return 0; /* says what it said of itself */
	ret = rte_eth_dev_info_get(wrapped, &of_wrapped);
	if (ret < 0)
		return ret;
	info->max_rx_pktlen = RTE_MIN(info->max_rx_pktlen, of_wrapped.max_rx_pktlen);
	info->min_mtu = (uint16_t)RTE_MAX(info->min_mtu, of_wrapped.min_mtu);
	if (of_wrapped.max_mtu > 0)
		info->max_mtu = (uint16_t)RTE_MIN(info->max_mtu, of_wrapped.max_mtu);
	info->min_rx_bufsize = RTE_MAX(info->min_rx_bufsize, of_wrapped.min_rx_bufsize);
	return 0;
}

int sim_pump_set_mtu(struct sim_port *port, uint16_t mtu)
{
	uint16_t wrapped = sim_pump_wrapped(port);
	int ret;

	if (wrapped == SIM_NO_PORT)
		return -ENODEV;
	/* what was never configured refuses; start tells it */
	if (!port->started)
		return 0;
	ret = rte_eth_dev_set_mtu(wrapped, mtu);
	/* a device that has no MTU of its own takes frames as they come */
	return ret == -ENOTSUP ? 0 : ret;
}

int sim_pump_set_promiscuous(struct sim_port *port, bool on)
{
	uint16_t wrapped = sim_pump_wrapped(port);

	if (wrapped == SIM_NO_PORT)
		return -ENODEV;
	return on ? rte_eth_promiscuous_enable(wrapped) : rte_eth_promiscuous_disable(wrapped);
}

int sim_pump_set_allmulticast(struct sim_port *port, bool on)
{
	uint16_t wrapped = sim_pump_wrapped(port);

	if (wrapped == SIM_NO_PORT)
		return -ENODEV;
	return on ? rte_eth_allmulticast_enable(wrapped) : rte_eth_allmulticast_disable(wrapped);
}

int sim_pump_get_link(struct sim_port *port, struct rte_eth_link *link)
{
	uint16_t wrapped = sim_pump_wrapped(port);

	return wrapped == SIM_NO_PORT ? -ENODEV : rte_eth_link_get_nowait(wrapped, link);
}

bool sim_pump_is_open(const struct sim_pump *pump)
{
	const struct rte_eth_dev_data *data;

	if (!pump->running || pump->wrapped == SIM_NO_PORT)
		return false;
	/* somebody may have stopped it behind our back */
	data = rte_eth_devices[pump->wrapped].data;
	return data != NULL && data->dev_started;
}

uint16_t sim_pump_send_by(
	struct sim_pump *pump, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_pump_out *out;
	uint16_t sent = 0;

	if (unlikely(pump->n_tx == 0))
		return 0;
	queue %= pump->n_tx;
	out = &pump->out[queue];
	rte_spinlock_lock(&out->lock);
	if (sim_pump_is_open(pump))
		sent = rte_eth_tx_burst(pump->wrapped, queue, packets, n);
	rte_spinlock_unlock(&out->lock);
	return sent;
}

uint16_t sim_pump_out(struct sim_port *port, struct rte_mbuf **packets, uint16_t n)
{
	/* always the same one: packets of a flow stay in order */
	return sim_pump_send_by(port->pump, 0, packets, n);
}
