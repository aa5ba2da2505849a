/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/ops.h"
#include "drivers/flowsim/packets/link.h"
#include "drivers/flowsim/packets/pace.h"
#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/packets/streams.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/log.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/rules/fault_set.h"

int sim_configure(struct rte_eth_dev *dev)
{
	static const struct rte_eth_rss_conf no_rss;
	struct sim_port *port = sim_port_of(dev);
	const struct rte_eth_conf *conf = &dev->data->dev_conf;
	const struct rte_eth_rss_conf *rss = &no_rss;

	if (conf->intr_conf.rxq || conf->intr_conf.rmv) {
		SIM_LOG(ERR, "%s: there are no interrupts but that of the link", port->name);
		return -ENOTSUP;
	}
	if (conf->rxmode.mq_mode & ~RTE_ETH_MQ_RX_RSS_FLAG) {
		SIM_LOG(ERR, "%s: packets are spread over queues by RSS or not at all", port->name);
		return -ENOTSUP;
	}
	if (conf->rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG)
		rss = &conf->rx_adv_conf.rss_conf;
	port->n_rx = dev->data->nb_rx_queues;
	port->n_tx = dev->data->nb_tx_queues;
	return sim_rss_configure(port, rss, port->n_rx);
}

static int check_queues(const struct sim_port *port)
{
	const struct rte_eth_dev_data *data = port->dev->data;

	for (uint16_t i = 0; i < port->n_rx; i++)
		if (data->rx_queues[i] == NULL) {
			SIM_LOG(ERR, "%s: receive queue %u was not set up", port->name, i);
			return -EINVAL;
		}
	for (uint16_t i = 0; i < port->n_tx; i++)
		if (data->tx_queues[i] == NULL) {
			SIM_LOG(ERR, "%s: transmit queue %u was not set up", port->name, i);
			return -EINVAL;
		}
	return 0;
}

/* What known packets and queues make together. Under the port's lock. */
static int resolve(struct sim_port *port, struct error *error)
{
	if (port->source == NULL || port->n_rx == 0)
		return 0;
	port->resolver = sim_resolver_create(port, error);
	return port->resolver != NULL ? 0 : -ENOMEM;
}

/* What applications are told of queues; testpmd polls no queue that is stopped. */
static void tell_queues(struct rte_eth_dev_data *data, uint8_t state)
{
	for (uint16_t i = 0; i < data->nb_rx_queues; i++)
		data->rx_queue_state[i] = state;
	for (uint16_t i = 0; i < data->nb_tx_queues; i++)
		data->tx_queue_state[i] = state;
}

static void begin(struct sim_port *port)
{
	for (uint16_t i = 0; port->source != NULL && i < port->n_rx; i++)
		sim_pace_begin(&port->rx[i]);
	port->started = true;
}

int sim_start(struct rte_eth_dev *dev)
{
	struct sim_port *port = sim_port_of(dev);
	struct error error;
	int ret = check_queues(port);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&port->lock);
	ret = resolve(port, &error);
	if (ret < 0)
		SIM_LOG(ERR, "%s: %s", port->name, error.text);
	else
		begin(port);
	pthread_mutex_unlock(&port->lock);
	if (ret == 0 && port->pump != NULL)
		ret = sim_pump_start(port);
	if (ret < 0) {
		sim_stop(dev);
		return ret;
	}
	sim_faults_start(port);
	tell_queues(dev->data, RTE_ETH_QUEUE_STATE_STARTED);
	sim_link_look(dev);
	/* there may be rounds whose packets the NIC keeps to itself: time turns them */
	sim_firmware_wake(port);
	return 0;
}

int sim_stop(struct rte_eth_dev *dev)
{
	struct sim_port *port = sim_port_of(dev);

	pthread_mutex_lock(&port->lock);
	port->started = false;
	pthread_mutex_unlock(&port->lock);
	tell_queues(dev->data, RTE_ETH_QUEUE_STATE_STOPPED);
	sim_link_look(dev);
	/* from here on no other port of the NIC puts anything into our queues */
	sim_nic_quiesce(port);
	if (port->pump != NULL)
		sim_pump_stop(port);
	pthread_mutex_lock(&port->lock);
	sim_streams_settle(port->resolver);
	sim_resolver_credit(port->resolver);
	sim_resolver_destroy(port->resolver);
	port->resolver = NULL;
	pthread_mutex_unlock(&port->lock);
	sim_queues_drain(port);
	/* what flow queues are at work on would stay */
	sim_async_stopped(port);
	sim_rules_stopped(port);
	return 0;
}
