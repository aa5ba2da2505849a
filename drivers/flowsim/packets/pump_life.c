/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_lcore.h>

#include "drivers/flowsim/packets/pump_parts.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/log.h"

#define DESCRIPTORS 1024

/* Nobody turns and nobody sends from here to unlock_all(). */
static void lock_all(struct sim_pump *pump)
{
	rte_spinlock_lock(&pump->lock);
	for (unsigned i = 0; i < SIM_MAX_QUEUES; i++)
		rte_spinlock_lock(&pump->out[i].lock);
}

static void unlock_all(struct sim_pump *pump)
{
	for (unsigned i = 0; i < SIM_MAX_QUEUES; i++)
		rte_spinlock_unlock(&pump->out[i].lock);
	rte_spinlock_unlock(&pump->lock);
}

/* All pumps of the process. */
static LIST_HEAD(, sim_pump) pumps = LIST_HEAD_INITIALIZER(pumps);
static pthread_mutex_t pumps_lock = PTHREAD_MUTEX_INITIALIZER;

/* DPDK tells that a device is no more. */
static int device_gone(uint16_t device, enum rte_eth_event_type event, void *argument, void *told)
{
	struct sim_pump *pump;

	(void)event;
	(void)argument;
	(void)told;
	pthread_mutex_lock(&pumps_lock);
	LIST_FOREACH(pump, &pumps, link) {
		if (pump->wrapped != device)
			continue;
		lock_all(pump);
		__atomic_store_n(&pump->wrapped, SIM_NO_PORT, __ATOMIC_RELAXED);
		unlock_all(pump);
	}
	pthread_mutex_unlock(&pumps_lock);
	return 0;
}

/*
 * Of all devices, once and for all: whoever listens to one cannot be taken off its list any more when it
 * has gone, and would hear of the next that gets its number.
 */
static int watch(struct sim_pump *pump)
{
	static bool listening;
	int ret = 0;

	pthread_mutex_lock(&pumps_lock);
	if (!listening)
		ret = rte_eth_dev_callback_register(
			RTE_ETH_ALL, RTE_ETH_EVENT_DESTROY, device_gone, NULL);
	if (ret == 0) {
		listening = true;
		LIST_INSERT_HEAD(&pumps, pump, link);
	}
	pthread_mutex_unlock(&pumps_lock);
	return ret;
}

static void unwatch(struct sim_pump *pump)
{
	pthread_mutex_lock(&pumps_lock);
	LIST_REMOVE(pump, link);
	pthread_mutex_unlock(&pumps_lock);
}

static int own(struct sim_pump *pump, uint16_t wrapped, struct error *error)
{
	struct sim_port *port = pump->port;
	struct rte_eth_dev_owner owner;
	int ret;

	if (rte_eth_dev_owner_get(wrapped, &owner) == 0 && owner.id != RTE_ETH_DEV_NO_OWNER)
		return error_set(
			error, -EBUSY, "port=%s: belongs to %s", port->args.port, owner.name);
	if (rte_eth_devices[wrapped].data->dev_started)
		return error_set(error, -EBUSY, "port=%s: is started", port->args.port);
	memset(&owner, 0, sizeof(owner));
	snprintf(owner.name, sizeof(owner.name), "%s", port->name);
	ret = rte_eth_dev_owner_new(&owner.id);
	if (ret == 0)
		ret = rte_eth_dev_owner_set(wrapped, &owner);
	if (ret < 0)
		return error_set(error, ret, "port=%s: cannot be owned: %s", port->args.port,
			strerror(-ret));
	pump->owner = owner.id;
	return 0;
}

/* Of the device that was found. */
static int take_over(struct sim_pump *pump, uint16_t wrapped, struct error *error)
{
	int ret;

	if (wrapped == pump->port->id)
		return error_set(
			error, -EINVAL, "port=%s: is the port itself", pump->port->args.port);
	pump->wrapped = wrapped;
	ret = own(pump, wrapped, error);
	if (ret < 0)
		return ret;
	ret = watch(pump);
	if (ret < 0) {
		rte_eth_dev_owner_unset(wrapped, pump->owner);
		error_set(error, ret, "port=%s: cannot be watched", pump->port->args.port);
	}
	return ret;
}

int sim_pump_create(struct sim_port *port, struct error *error)
{
	struct sim_pump *pump;
	uint16_t wrapped;
	int ret;

	if (posix_memalign((void **)&pump, RTE_CACHE_LINE_SIZE, sizeof(*pump)) != 0)
		return error_set(error, -ENOMEM, "no memory");
	memset(pump, 0, sizeof(*pump));
	pump->port = port;
	pump->wrapped = SIM_NO_PORT;
	ret = sim_pump_find_device(pump, &wrapped, error);
	if (ret == 0)
		ret = take_over(pump, wrapped, error);
	if (ret < 0) {
		sim_pump_remove_device(pump);
		free(pump);
	} else {
		port->pump = pump;
	}
	return ret;
}

void sim_pump_destroy(struct sim_port *port)
{
	struct sim_pump *pump = port->pump;

	if (pump == NULL)
		return;
	sim_pump_stop(port);
	unwatch(pump);
	if (pump->wrapped != SIM_NO_PORT)
		rte_eth_dev_owner_unset(pump->wrapped, pump->owner);
	sim_pump_remove_device(pump);
	port->pump = NULL;
	free(pump);
}

/* As the port is; a NIC behind it spreads packets over its queues by itself. */
static void fill_conf(
	const struct sim_pump *pump, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	uint64_t types = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

	memset(conf, 0, sizeof(*conf));
	conf->rxmode.mtu = pump->port->dev->data->mtu;
	if (info->max_mtu > 0 && conf->rxmode.mtu > info->max_mtu)
		conf->rxmode.mtu = info->max_mtu;
	conf->txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	types &= info->flow_type_rss_offloads;
	if (pump->n_rx > 1 && types != 0) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf = types;
	}
}

static int set_up_queues(struct sim_pump *pump)
{
	struct sim_port *port = pump->port;
	int socket = rte_eth_dev_socket_id(pump->wrapped);
	unsigned on = socket < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)socket;
	uint16_t rxd = DESCRIPTORS, txd = DESCRIPTORS;
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(pump->wrapped, &rxd, &txd);

	for (uint16_t i = 0; ret == 0 && i < pump->n_rx; i++)
		ret = rte_eth_rx_queue_setup(pump->wrapped, i, rxd, on, NULL, port->rx[i].pool);
	for (uint16_t i = 0; ret == 0 && i < pump->n_tx; i++)
		ret = rte_eth_tx_queue_setup(pump->wrapped, i, txd, on, NULL);
	return ret;
}

static int start_wrapped(struct sim_pump *pump)
{
	struct sim_port *port = pump->port;
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint16_t mtu = 0;
	int ret;

	if (pump->wrapped == SIM_NO_PORT)
		return -ENODEV;
	rte_eth_dev_get_mtu(pump->wrapped, &mtu);
	ret = rte_eth_dev_info_get(pump->wrapped, &info);
	if (ret < 0)
		return ret;
	pump->n_rx = (uint16_t)RTE_MIN(port->n_rx, info.max_rx_queues);
	/* one at least: other ports of the NIC may send out of this one */
	pump->n_tx = (uint16_t)RTE_MIN(RTE_MAX(port->n_tx, 1), info.max_tx_queues);
	fill_conf(pump, &info, &conf);
	ret = rte_eth_dev_configure(pump->wrapped, pump->n_rx, pump->n_tx, &conf);
	if (ret == 0 && conf.rxmode.mtu != mtu) {
		ret = rte_eth_dev_set_mtu(pump->wrapped, (uint16_t)conf.rxmode.mtu);
		ret = ret == -ENOTSUP ? 0 : ret;
	}
	if (ret == 0)
		ret = set_up_queues(pump);
	return ret == 0 ? rte_eth_dev_start(pump->wrapped) : ret;
}

/* The NIC's thread: turns and turns. Registered with EAL, else mempools have no cache for it. */
static void *run_nic(void *argument)
{
	struct sim_pump *pump = argument;
	bool registered = rte_thread_register() == 0;

	if (!registered)
		SIM_LOG(WARNING, "%s: the NIC's thread goes without a mempool cache: %s",
			pump->port->name, rte_strerror(rte_errno));
	if (pump->port->args.nic_core < 0)
		sim_firmware_settle();
	while (!__atomic_load_n(&pump->quit, __ATOMIC_RELAXED))
		if (sim_pump_turn_once(pump) == 0)
			sched_yield();
	if (registered)
		rte_thread_unregister();
	return NULL;
}

static int start_thread(struct sim_pump *pump)
{
	struct sim_port *port = pump->port;
	char name[32];
	sigset_t all, before;
	cpu_set_t cpus;
	int ret;

	pump->quit = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&pump->thread, NULL, run_nic, pump);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret != 0)
		return -ret;
	pump->has_thread = true;
	/* the kernel takes 15 characters */
	snprintf(name, sizeof(name), "flowsim-nic%u", port->id);
	pthread_setname_np(pump->thread, name);
	if (port->args.nic_core < 0)
		return 0;
	CPU_ZERO(&cpus);
	if (port->args.nic_core < CPU_SETSIZE)
		CPU_SET((unsigned)port->args.nic_core, &cpus);
	ret = pthread_setaffinity_np(pump->thread, sizeof(cpus), &cpus);
	if (ret != 0)
		SIM_LOG(ERR, "%s: nic_core=%d: %s", port->name, port->args.nic_core, strerror(ret));
	return -ret;
}

static void set_running(struct sim_pump *pump, bool running)
{
	lock_all(pump);
	pump->running = running;
	unlock_all(pump);
}

int sim_pump_start(struct sim_port *port)
{
	struct sim_pump *pump = port->pump;
	int ret = start_wrapped(pump);

	if (ret < 0) {
		SIM_LOG(ERR, "%s: port=%s does not start: %s", port->name, port->args.port,
			strerror(-ret));
		return ret;
	}
	set_running(pump, true);
	if (port->args.nic_thread)
		ret = start_thread(pump);
	if (ret < 0)
		sim_pump_stop(port);
	return ret;
}

void sim_pump_stop(struct sim_port *port)
{
	struct sim_pump *pump = port->pump;

	if (pump->has_thread) {
		__atomic_store_n(&pump->quit, true, __ATOMIC_RELAXED);
		pthread_join(pump->thread, NULL);
		pump->has_thread = false;
	}
	if (!pump->running)
		return;
	set_running(pump, false);
	if (pump->wrapped != SIM_NO_PORT)
		rte_eth_dev_stop(pump->wrapped);
}
