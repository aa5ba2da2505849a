/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A provider over a simulated port, set up as the engine does it, for tests that look at what packets carry.
 * Packets are known by key and end, as the engine reads them.
 */

#include "flowsim_port.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "base/monotonic.h"
#include "drivers/flowsim/sim.h"
#include "packet/extract.h"
#include "rteflow/provider.h"

#define SCENE_PLACES 1024
#define SCENE_DEVICE "net_flowsim_provider"

struct provider_scene {
	struct nic nic;
	struct provider *provider;
	struct provider_config config;
	bool negotiated;
};

/* A flow in one direction that was seen, and what its packets carry. */
struct seen {
	struct flow_key key;
	uint8_t from;
	uint64_t packets, marked, others, bytes, queue[NIC_QUEUES];
};

struct seen_set {
	unsigned n;
	struct seen seen[512];
};

static const uint8_t scene_queues[] = {0, 1};

/* Up to the port's start, with flow queues if `async`. */
static inline void scene_port(struct provider_scene *scene, const char *args, bool async)
{
	struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
	struct nic *nic = &scene->nic;

	memset(scene, 0, sizeof(*scene));
	snprintf(nic->name, sizeof(nic->name), "%s", SCENE_DEVICE);
	nic->pool = rte_pktmbuf_pool_create(
		"provider", NIC_POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(nic->pool);
	assert_int_equal(rte_vdev_init(nic->name, args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(nic->name, &nic->id), 0);
	scene->negotiated = provider_negotiate(nic->id);
	assert_int_equal(rte_eth_dev_configure(nic->id, NIC_QUEUES, 1, &conf), 0);
	for (uint16_t i = 0; i < NIC_QUEUES; i++)
		assert_int_equal(rte_eth_rx_queue_setup(
					 nic->id, i, 256, (unsigned)SOCKET_ID_ANY, NULL, nic->pool),
			0);
	assert_int_equal(rte_eth_tx_queue_setup(nic->id, 0, 256, (unsigned)SOCKET_ID_ANY, NULL), 0);
	if (async)
		assert_true(provider_prepare(nic->id, SCENE_PLACES));
	nic_start(nic);
	scene->config = (struct provider_config){.port_id = nic->id,
		.n_places = SCENE_PLACES,
		.n_queues = NIC_QUEUES,
		.worker_queue = scene_queues,
		.metadata = scene->negotiated,
		.async = async,
		.random = 1};
}

static inline void scene_open(struct provider_scene *scene, const char *args, bool async)
{
	scene_port(scene, args, async);
	assert_int_equal(provider_open(&scene->provider, &scene->config), 0);
}

static inline uint64_t scene_count(const struct provider_scene *scene, const char *name)
{
	uint64_t id, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(scene->nic.id, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(scene->nic.id, &id, &value, 1), 1);
	return value;
}

/* The provider goes, and its rules with it. */
static inline void scene_close(struct provider_scene *scene)
{
	provider_close(scene->provider);
	assert_int_equal(scene_count(scene, "flow_rules"), 0);
	nic_close(&scene->nic);
}

static inline void scene_fault(struct provider_scene *scene, const char *text)
{
	struct sim_port *port = sim_port_of(&rte_eth_devices[scene->nic.id]);
	struct error error;
	int ret;

	pthread_mutex_lock(&port->lock);
	ret = sim_fault_parse(port, text, &error);
	pthread_mutex_unlock(&port->lock);
	if (ret != 0)
		fail_msg("%s: %s", text, error.text);
}

/* How often that fault has struck since it was set. */
static inline uint64_t scene_strikes(const struct provider_scene *scene, enum sim_fault_name name)
{
	struct sim_port *port = sim_port_of(&rte_eth_devices[scene->nic.id]);

	pthread_mutex_lock(&port->lock);
	uint64_t strikes = sim_fault_look(port, name).strikes;

	pthread_mutex_unlock(&port->lock);
	return strikes;
}

static inline void scene_restart(struct provider_scene *scene)
{
	assert_int_equal(rte_eth_dev_stop(scene->nic.id), 0);
	nic_start(&scene->nic);
	provider_reset(scene->provider);
}

static inline struct seen *seen_of(struct seen_set *set, const struct packet_info *info)
{
	struct seen *seen;

	for (unsigned i = 0; i < set->n; i++)
		if (set->seen[i].from == info->from &&
			flow_key_equal(&set->seen[i].key, &info->key))
			return &set->seen[i];
	assert_true(set->n < RTE_DIM(set->seen));
	seen = &set->seen[set->n++];
	memset(seen, 0, sizeof(*seen));
	seen->key = info->key;
	seen->from = info->from;
	return seen;
}

/* The rule of set->seen[i] gives this. */
static inline uint32_t scene_mark(unsigned i)
{
	return 1000 + 7 * i;
}

static inline void see(
	struct seen_set *set, const struct rte_mbuf *packet, uint16_t queue, bool zone_vlan)
{
	const struct hash_secret secret = {.word = {1, 2}};
	const struct extract_options options = {.secret = &secret, .zone_vlan = zone_vlan};
	struct packet_info info;
	struct seen *seen;

	assert_int_equal(extract(&options, packet, 0, &info), EXTRACT_IP);
	seen = seen_of(set, &info);
	seen->packets++;
	seen->bytes += packet->pkt_len;
	seen->queue[queue]++;
	if (!(packet->ol_flags & RTE_MBUF_F_RX_FDIR_ID))
		return;
	if (packet->hash.fdir.hi == scene_mark((unsigned)(seen - set->seen)))
		seen->marked++;
	else
		seen->others++;
}

/* Looks at the next n packets, of all queues; what is known of flows stays, what was counted does not. */
static inline void scene_look(struct provider_scene *scene, struct seen_set *set, unsigned n)
{
	for (unsigned i = 0; i < set->n; i++)
		set->seen[i] = (struct seen){.key = set->seen[i].key, .from = set->seen[i].from};
	for (unsigned got = 0, queue = 0; got < n; queue = (queue + 1) % NIC_QUEUES) {
		struct rte_mbuf *packets[32];
		uint16_t burst = rte_eth_rx_burst(
			scene->nic.id, (uint16_t)queue, packets, (uint16_t)RTE_MIN(n - got, 4u));

		for (uint16_t i = 0; i < burst; i++)
			see(set, packets[i], (uint16_t)queue, scene->config.zone_vlan);
		rte_pktmbuf_free_bulk(packets, burst);
		got += burst;
	}
}

static inline struct offload_rule scene_rule(const struct seen_set *set, unsigned i)
{
	return (struct offload_rule){.key = set->seen[i].key,
		.from = set->seen[i].from,
		.mark = scene_mark(i),
		.worker = (uint8_t)(i % NIC_QUEUES)};
}

/* The one answer that comes next. */
static inline struct provider_done scene_await(struct provider_scene *scene)
{
	uint64_t begin = monotonic_us();
	struct provider_done done;

	while (provider_poll(scene->provider, &done, 1) == 0) {
		assert_true(monotonic_us() - begin < 20000000);
		rte_pause();
	}
	return done;
}

/* Asks and waits for the answer. */
static inline int scene_insert(struct provider_scene *scene, uint32_t place,
	const struct offload_rule *rule, struct provider_why *why)
{
	int ret = provider_insert(scene->provider, place, rule, why);
	struct provider_done done;

	if (ret != -EINPROGRESS)
		return ret;
	done = scene_await(scene);
	assert_int_equal(done.place, place);
	assert_int_equal(done.op, PROVIDER_INSERT);
	*why = done.why;
	return done.result;
}

static inline int scene_remove(struct provider_scene *scene, uint32_t place)
{
	struct provider_why why;
	int ret = provider_remove(scene->provider, place, &why);
	struct provider_done done;

	if (ret != -EINPROGRESS)
		return ret;
	done = scene_await(scene);
	assert_int_equal(done.place, place);
	assert_int_equal(done.op, PROVIDER_REMOVE);
	return done.result;
}

/* Rules that match nothing that comes, all different: UDP. */
static inline struct offload_rule scene_idle_rule(unsigned i)
{
	struct offload_rule rule = {.mark = i + 1};

	rule.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	rule.key.proto = 17;
	memcpy(rule.key.addr[0], (uint8_t[4]){172, 16, 0, 1}, 4);
	memcpy(rule.key.addr[1], (uint8_t[4]){172, 16, 0, 2}, 4);
	rule.key.port[0] = rte_cpu_to_be_16((uint16_t)i);
	rule.key.port[1] = RTE_BE16(53);
	return rule;
}
