/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A simulated port of 64 streams on which faults are set as telemetry does, for tests that count how often
 * they struck. Between open_scene() and close_scene() rules are created and packets received by ethdev's
 * calls.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "base/dpdk.h"
#include "drivers/flowsim/sim.h"

#define DEVICE "net_flowsim0"
#define STREAMS 64

static struct rte_mempool *pool;

/* A port of 64 streams, one queue, started. */
struct scene {
	uint16_t id;
	struct sim_port *port;
};

static inline int start_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(64, &error) != 0) {
		print_error("%s\n", error.text);
		return -1;
	}
	pool = rte_pktmbuf_pool_create("fault", 1023, 0, 0, 2176, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

static inline int stop_environment(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	dpdk_stop();
	return 0;
}

static inline void open_scene(struct scene *scene, const char *words)
{
	static const struct rte_eth_conf conf;
	char all[256];

	snprintf(all, sizeof(all), "flows=64,hostile=0%s%s", words[0] != '\0' ? "," : "", words);
	assert_int_equal(rte_vdev_init(DEVICE, all), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(DEVICE, &scene->id), 0);
	scene->port = sim_port_of(&rte_eth_devices[scene->id]);
	assert_int_equal(rte_eth_dev_configure(scene->id, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(scene->id, 0, 64, 0, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(scene->id, 0, 64, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(scene->id), 0);
}

static inline void close_scene(void)
{
	assert_int_equal(rte_vdev_uninit(DEVICE), 0);
}

static inline int try_fault(struct scene *scene, const char *text, struct error *error)
{
	int ret;

	pthread_mutex_lock(&scene->port->lock);
	ret = sim_fault_parse(scene->port, text, error);
	pthread_mutex_unlock(&scene->port->lock);
	return ret;
}

static inline void fault(struct scene *scene, const char *text)
{
	struct error error;

	if (try_fault(scene, text, &error) != 0)
		fail_msg("%s: %s", text, error.text);
}

static inline void struck(
	struct scene *scene, enum sim_fault_name name, uint64_t chances, uint64_t strikes)
{
	struct sim_fault_state state;

	pthread_mutex_lock(&scene->port->lock);
	state = sim_fault_look(scene->port, name);
	pthread_mutex_unlock(&scene->port->lock);
	assert_int_equal(state.chances, chances);
	assert_int_equal(state.strikes, strikes);
}

/* A rule for all UDP, or for nothing that comes: from 192.0.2.n. */
static inline struct rte_flow *create_for(struct scene *scene, uint8_t n, uint32_t mark)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item_ipv4 from = {.hdr.src_addr = RTE_BE32(0xc0000200u + n)};
	const struct rte_flow_item_ipv4 mask = {.hdr.src_addr = n == 0 ? 0 : UINT32_MAX};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &from, .mask = &mask},
		{.type = RTE_FLOW_ITEM_TYPE_UDP},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action_mark id = {.id = mark};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &id},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	return rte_flow_create(scene->id, &attr, items, actions, &error);
}

static inline struct rte_flow *create(struct scene *scene, uint32_t mark)
{
	return create_for(scene, 0, mark);
}

static inline int destroy(struct scene *scene, struct rte_flow *rule)
{
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	return rte_flow_destroy(scene->id, rule, &error);
}

static inline int query(
	struct scene *scene, struct rte_flow *rule, struct rte_flow_query_count *count)
{
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	memset(count, 0, sizeof(*count));
	return rte_flow_query(scene->id, rule, actions, count, &error);
}

/* Receives n packets; of these, how many had that mark, and any at all. */
static inline void receive(
	struct scene *scene, unsigned n, uint32_t mark, unsigned *with_it, unsigned *marked)
{
	*with_it = 0;
	*marked = 0;
	for (unsigned got = 0; got < n;) {
		struct rte_mbuf *packets[32];
		unsigned want = n - got < 32 ? n - got : 32;
		uint16_t burst = rte_eth_rx_burst(scene->id, 0, packets, (uint16_t)want);

		for (unsigned i = 0; i < burst; i++) {
			bool has = (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;

			*marked += has;
			*with_it += has && packets[i]->hash.fdir.hi == mark;
			rte_pktmbuf_free(packets[i]);
		}
		got += burst;
	}
}

static inline unsigned count_marked(struct scene *scene, unsigned n)
{
	unsigned with_it, marked;

	receive(scene, n, 0, &with_it, &marked);
	return marked;
}
