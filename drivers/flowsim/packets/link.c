/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/link.h"

#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/port/port.h"

/* A port that took another one over has a link as long as that has. */
static void look_at_wire(struct sim_port *port, struct rte_eth_link *link)
{
	*link = (struct rte_eth_link){
		.link_speed = port->args.link_mbps,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED,
		.link_status = RTE_ETH_LINK_UP,
	};
	if (port->pump != NULL && sim_pump_get_link(port, link) < 0)
		link->link_status = RTE_ETH_LINK_DOWN;
}

void sim_link_look(struct rte_eth_dev *dev)
{
	struct sim_port *port = sim_port_of(dev);
	struct rte_eth_link link;

	look_at_wire(port, &link);
	if (!port->started || port->link_down)
		link.link_status = RTE_ETH_LINK_DOWN;
	/* what passed before is told of the link as it was; behind a pump nothing is left to be told */
	if (port->pump == NULL && port->link_up != (link.link_status == RTE_ETH_LINK_UP))
		sim_nic_settle(port);
	__atomic_store_n(&port->link_up, link.link_status == RTE_ETH_LINK_UP, __ATOMIC_RELAXED);
	rte_eth_linkstatus_set(dev, &link);
}

int sim_link_update(struct rte_eth_dev *dev, int wait)
{
	(void)wait;
	sim_link_look(dev);
	return 0;
}

static int ask(struct rte_eth_dev *dev, bool down)
{
	struct sim_port *port = sim_port_of(dev);
	bool before = port->link_up;

	port->link_down = down;
	sim_link_look(dev);
	if (before != port->link_up && dev->data->dev_conf.intr_conf.lsc)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
	return 0;
}

int sim_link_set_up(struct rte_eth_dev *dev)
{
	return ask(dev, false);
}

int sim_link_set_down(struct rte_eth_dev *dev)
{
	return ask(dev, true);
}
