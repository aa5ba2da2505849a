/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ethdev_vdev.h>
#include <rte_ether.h>

#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/copy.h"
#include "drivers/flowsim/ops.h"
#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/packets/receive.h"
#include "drivers/flowsim/packets/resolve.h"
#include "drivers/flowsim/packets/source.h"
#include "drivers/flowsim/packets/streams.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/log.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/rules/age.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/telemetry.h"

static const struct sim_firmware_jobs jobs = {
	.work = sim_async_work,
	.waits = sim_async_waits,
	.look = sim_age_look,
	.turn = sim_streams_turn,
};

/* What failed without words of its own. */
static int name_failure(int ret, const char *what, struct error *error)
{
	if (ret < 0)
		error_set(error, ret, "%s: %s", what, strerror(-ret));
	return ret;
}

static int make_source(struct sim_port *port, struct error *error)
{
	switch (port->args.source) {
	case SIM_SOURCE_STREAMS:
	case SIM_SOURCE_CAPTURE:
		return sim_source_create(&port->source, &port->args, error);
	case SIM_SOURCE_PORT:
		return sim_pump_create(port, error);
	case SIM_SOURCE_NONE:
		break;
	}
	return 0;
}

/* All parts, each after those that it needs; sim_close() unmakes them the other way, those that are there. */
static int make_parts(struct sim_port *port, struct error *error)
{
	int ret = make_source(port, error);

	if (ret == 0)
		ret = sim_nic_join(port, error);
	if (ret == 0)
		ret = name_failure(sim_stats_init(port), "counters", error);
	if (ret == 0)
		ret = name_failure(sim_meters_init(port), "meters", error);
	if (ret == 0)
		ret = name_failure(sim_rules_init(port), "rules", error);
	if (ret == 0)
		ret = sim_faults_init(port, error);
	if (ret == 0)
		ret = name_failure(sim_firmware_start(port, &jobs), "the NIC's own thread", error);
	if (ret == 0)
		ret = name_failure(sim_async_init(port), "flow queues", error);
	return ret;
}

/* Control gets its turn however many receive and send all the time; nobody reads twice at once. */
static void init_rules_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

static void init_port(struct sim_port *port, struct rte_eth_dev *dev)
{
	port->dev = dev;
	port->id = dev->data->port_id;
	snprintf(port->name, sizeof(port->name), "%s", dev->data->name);
	TAILQ_INIT(&port->rules);
	TAILQ_INIT(&port->indirects);
	pthread_mutex_init(&port->lock, NULL);
	init_rules_lock(&port->rules_lock);
	rte_rwlock_init(&port->rss_lock);
	for (uint16_t i = 0; i < SIM_MAX_QUEUES; i++) {
		port->rx[i].port = port;
		port->rx[i].number = i;
		rte_spinlock_init(&port->rx[i].lock);
		port->tx[i].port = port;
		port->tx[i].number = i;
	}
}

int sim_close(struct rte_eth_dev *dev)
{
	struct sim_port *port = sim_port_of(dev);

	/* ethdev asks it of a secondary process too, which has no port */
	if (rte_eal_process_type() != RTE_PROC_PRIMARY || port == NULL)
		return 0;
	sim_telemetry_remove(port);
	if (port->started)
		sim_stop(dev);
	sim_nic_leave(port);
	sim_async_fini(port);
	if (port->firmware != NULL)
		sim_firmware_stop(port);
	sim_faults_fini(port);
	sim_rules_fini(port);
	sim_meters_fini(port);
	for (uint16_t i = 0; i < SIM_MAX_QUEUES; i++)
		sim_rx_queue_release(dev, i);
	if (port->pump != NULL)
		sim_pump_destroy(port);
	sim_source_destroy(port->source);
	port->source = NULL;
	sim_stats_fini(port);
	pthread_rwlock_destroy(&port->rules_lock);
	pthread_mutex_destroy(&port->lock);
	return 0;
}

/*
 * The address that was asked for, that of the port that was taken over, or one of our own making: "02:",
 * "flow", the port.
 */
static int set_address(struct sim_port *port)
{
	struct rte_eth_dev_data *data = port->dev->data;
	uint8_t made[RTE_ETHER_ADDR_LEN] = {0x02, 'f', 'l', 'o', 'w', (uint8_t)port->id};

	data->mac_addrs = rte_zmalloc("flowsim", sizeof(*data->mac_addrs), 0);
	if (data->mac_addrs == NULL)
		return -ENOMEM;
	memcpy(data->mac_addrs, port->args.has_mac ? port->args.mac : made, sizeof(made));
	if (port->pump != NULL && !port->args.has_mac)
		return sim_pump_mac(port, data->mac_addrs);
	return 0;
}

static void set_calls(struct sim_port *port)
{
	struct rte_eth_dev *dev = port->dev;

	dev->dev_ops = &sim_ops;
	switch (port->args.source) {
	case SIM_SOURCE_PORT:
		dev->rx_pkt_burst = sim_pump_receive;
		dev->tx_pkt_burst = sim_pump_send;
		break;
	case SIM_SOURCE_NONE:
		dev->rx_pkt_burst = sim_queue_receive;
		dev->tx_pkt_burst = sim_send;
		break;
	case SIM_SOURCE_STREAMS:
	case SIM_SOURCE_CAPTURE:
		dev->rx_pkt_burst = sim_receive;
		dev->tx_pkt_burst = sim_send;
		break;
	}
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	/* of a port that is taken over, nobody tells us when its link changes */
	if (port->args.source != SIM_SOURCE_PORT)
		dev->data->dev_flags |= RTE_ETH_DEV_INTR_LSC;
	if (port->args.profile.thread_safe)
		dev->data->dev_flags |= RTE_ETH_DEV_FLOW_OPS_THREAD_SAFE;
	dev->data->promiscuous = 1;
	dev->data->all_multicast = 1;
	dev->data->dev_link = (struct rte_eth_link){
		.link_speed = port->args.link_mbps,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED,
	};
}

static int make(struct rte_vdev_device *vdev, const struct sim_args *args, struct error *error)
{
	struct rte_eth_dev *dev = rte_eth_vdev_allocate(vdev, sizeof(struct sim_port));
	struct sim_port *port;
	int ret;

	if (dev == NULL)
		return error_set(error, -ENOMEM, "no room for another port");
	port = sim_port_of(dev);
	port->args = *args;
	init_port(port, dev);
	ret = make_parts(port, error);
	if (ret == 0)
		ret = name_failure(set_address(port), "its address", error);
	if (ret < 0) {
		sim_close(dev);
		rte_eth_dev_release_port(dev);
		return ret;
	}
	set_calls(port);
	sim_async_calls(dev);
	sim_telemetry_add(port);
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct sim_args args;
	struct error error;
	int ret;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		SIM_LOG(ERR,
			"%s: a secondary process cannot have it: all of it is in the memory of "
			"the process that made it",
			name);
		return -ENOTSUP;
	}
	ret = sim_args_parse(&args, rte_vdev_device_args(vdev), &error);
	if (ret == 0)
		ret = make(vdev, &args, &error);
	if (ret < 0)
		SIM_LOG(ERR, "%s: %s", name, error.text);
	return ret;
}

static int remove_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	/* closed before: nothing is left of it */
	if (dev == NULL)
		return 0;
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		sim_close(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver driver = {
	.driver = {.name = "net_flowsim"},
	.probe = probe,
	.remove = remove_device,
};

/* As RTE_PMD_REGISTER_VDEV() does, but once a program: see copy.h. */
RTE_INIT(sim_announce)
{
	if (sim_copy_is_first())
		rte_vdev_register(&driver);
}
SIM_PMD_DESCRIBE(net_flowsim, SIM_ARGS_HELP)
