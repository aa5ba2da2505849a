/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/pump.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "drivers/flowsim/packets/apply.h"
#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/packets/link.h"
#include "drivers/flowsim/packets/pump_device.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/log.h"
#include "drivers/flowsim/port/rss.h"

#define BURST SIM_PUMP_BURST
#define DESCRIPTORS 1024

/* What the wrapped port has said of a packet and we say anew. */
#define OURS (RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID)

/* Whether the wrapped port is there and started. Under one of the locks. */
static bool is_open(const struct sim_pump *pump)
{
	const struct rte_eth_dev_data *data;

	if (!pump->running || pump->wrapped == SIM_NO_PORT)
		return false;
	/* somebody may have stopped it behind our back */
	data = rte_eth_devices[pump->wrapped].data;
	return data != NULL && data->dev_started;
}

/* Sends out of the wrapped port, by that transmit queue or another; returns how many went. */
static uint16_t send_by(
	struct sim_pump *pump, uint16_t queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_pump_out *out;
	uint16_t sent = 0;

	if (unlikely(pump->n_tx == 0))
		return 0;
	queue %= pump->n_tx;
	out = &pump->out[queue];
	rte_spinlock_lock(&out->lock);
	if (is_open(pump))
		sent = rte_eth_tx_burst(pump->wrapped, queue, packets, n);
	rte_spinlock_unlock(&out->lock);
	return sent;
}

uint16_t sim_pump_out(struct sim_port *port, struct rte_mbuf **packets, uint16_t n)
{
	/* always the same one: packets of a flow stay in order */
	return send_by(port->pump, 0, packets, n);
}

static bool has_rules(const struct sim_port *port)
{
	return !__atomic_load_n(&port->dead, __ATOMIC_RELAXED) &&
	       (!sim_table_is_empty(port->table, SIM_INGRESS) ||
		       !sim_table_is_empty(port->table, SIM_TRANSFER));
}

/* One packet: its hash, its rules, and into its queue. */
static void take(struct sim_port *port, struct rte_mbuf *packet, bool rules,
	struct sim_rx_counters *counters)
{
	struct sim_verdict verdict = {0};
	struct sim_view view;
	uint16_t queue;

	sim_view_packet(&view, packet);
	view.port = port->id;
	packet->port = port->id;
	packet->ol_flags &= ~OURS;
	packet->hash.rss = sim_rss_of(port, &view);
	if (__atomic_load_n(&port->rss_hf, __ATOMIC_RELAXED) != 0)
		packet->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	if (rules)
		sim_table_match(port->table, SIM_INGRESS, &view, &verdict);
	if (!sim_apply(port, &verdict, &view, &packet, &queue, counters))
		return;
	if (!sim_queue_put(port, queue, packet))
		rte_pktmbuf_free(packet);
}

static uint64_t bytes_of(struct rte_mbuf *const *packets, uint16_t n)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++)
		bytes += packets[i]->pkt_len;
	return bytes;
}

bool sim_pump_gather(struct sim_port *port, uint16_t to, struct rte_mbuf *packet)
{
	struct sim_pump *pump = port->pump;

	if (pump == NULL || !pump->gathers || pump->n_gathered == BURST ||
		(pump->n_gathered > 0 && pump->gathered_to != to))
		return false;
	pump->gathered_to = to;
	pump->gathered[pump->n_gathered++] = packet;
	return true;
}

static void send_gathered(struct sim_port *port, struct sim_rx_counters *counters)
{
	struct sim_pump *pump = port->pump;
	struct rte_mbuf **packets = pump->gathered;
	uint16_t n = pump->n_gathered, sent;
	uint64_t bytes = bytes_of(packets, n);

	if (n == 0)
		return;
	pump->n_gathered = 0;
	sent = sim_nic_send(port, pump->gathered_to, packets, n);
	bytes -= bytes_of(&packets[sent], (uint16_t)(n - sent));
	sim_count_add(&counters->forwarded, sent);
	sim_count_add(&counters->forwarded_bytes, bytes);
	if (sent == n)
		return;
	__atomic_fetch_add(&counters->missed, (uint64_t)(n - sent), __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(&packets[sent], (unsigned)(n - sent));
}

static void take_burst(struct sim_port *port, struct rte_mbuf **packets, uint16_t n,
	struct sim_rx_counters *counters)
{
	bool rules;

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	pthread_rwlock_rdlock(&port->rules_lock);
	rules = has_rules(port);
	port->pump->gathers = true;
	for (uint16_t i = 0; i < n; i++)
		take(port, packets[i], rules, counters);
	port->pump->gathers = false;
	send_gathered(port, counters);
	pthread_rwlock_unlock(&port->rules_lock);
}

/* Under the pump's lock. Returns how many packets came. */
static unsigned turn(struct sim_pump *pump)
{
	struct sim_port *port = pump->port;
	struct rte_mbuf *packets[BURST];
	unsigned sum = 0;

	for (uint16_t i = 0; i < pump->n_rx; i++) {
		uint16_t n = rte_eth_rx_burst(pump->wrapped, i, packets, BURST);

		if (n == 0)
			continue;
		sum += n;
		if (__atomic_load_n(&port->link_down, __ATOMIC_RELAXED)) {
			rte_pktmbuf_free_bulk(packets, n);
			continue;
		}
		/* nobody tells us when the wire's link changes: packets do */
		if (!__atomic_load_n(&port->link_up, __ATOMIC_RELAXED))
			sim_link_look(port->dev);
		take_burst(port, packets, n, &port->rx[i].counters);
	}
	return sum;
}

/* Turns once; returns how many packets came. */
static unsigned turn_once(struct sim_pump *pump)
{
	unsigned n = 0;

	if (rte_spinlock_trylock(&pump->lock) == 0)
		return 0;
	if (is_open(pump))
		n = turn(pump);
	rte_spinlock_unlock(&pump->lock);
	return n;
}

void sim_pump_turn(struct sim_port *port)
{
	turn_once(port->pump);
}

uint16_t sim_pump_receive(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_queue *rx = queue;
	struct sim_port *port = rx->port;

	/* no more than is asked for: what one worker turns in for others must not pile up there */
	if (!port->args.nic_thread && rte_ring_count(rx->ring) < n)
		sim_pump_turn(port);
	if (__atomic_load_n(&port->link_down, __ATOMIC_RELAXED))
		return 0;
	return sim_queue_take(rx, packets, n);
}

uint16_t sim_pump_send(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_tx_queue *tx = queue;
	struct sim_port *port = tx->port;
	bool rules = !sim_table_is_empty(port->table, SIM_EGRESS);
	uint16_t left = n, sent;
	uint64_t bytes;

	if (n == 0 || __atomic_load_n(&port->link_down, __ATOMIC_RELAXED))
		return 0;
	if (rules)
		left = sim_apply_egress(port, packets, n, &tx->counters);
	/* packets that were taken are no longer ours */
	bytes = bytes_of(packets, left);
	sent = send_by(port->pump, tx->number, packets, left);
	bytes -= bytes_of(&packets[sent], (uint16_t)(left - sent));
	sim_count_add(&tx->counters.packets, sent);
	sim_count_add(&tx->counters.bytes, bytes);
	if (!rules)
		return sent;
	sim_count_add(&tx->counters.errors, (uint16_t)(left - sent));
	rte_pktmbuf_free_bulk(&packets[sent], (uint16_t)(left - sent));
	return n;
}

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
 * Listens to all devices, for good: a listener to one device could not be taken off its list any more when it
 * has gone, and would hear of the next one with its number.
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

/* Takes over the device that was found. */
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
	ret = sim_device_find(pump->port->args.port, pump->made, &wrapped, error);
	if (ret == 0)
		ret = take_over(pump, wrapped, error);
	if (ret < 0) {
		sim_device_remove(pump->made, pump->wrapped);
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
	sim_device_remove(pump->made, pump->wrapped);
	port->pump = NULL;
	free(pump);
}

/* Configures it as the port is; a NIC behind it spreads packets over its queues by itself. */
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
		if (turn_once(pump) == 0)
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
