/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated NIC as an ethdev: through DPDK's public calls alone, but for packets of the NIC's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "base/dpdk.h"
#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/sim.h"

#define POOL 2047
#define BURST 64

static struct rte_mempool *pool;

static int begin(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(128, &error) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
		"packets", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

/* Every packet has come back. A test that failed leaves ports behind. */
static int all_back(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i <= SIM_MAX_NIC_PORTS; i++) {
		snprintf(name, sizeof(name), "net_flowsim%u", i);
		(void)rte_vdev_uninit(name);
	}
	return rte_mempool_avail_count(pool) == POOL ? 0 : -1;
}

static uint16_t probe(const char *name, const char *words)
{
	uint16_t id;

	assert_int_equal(rte_vdev_init(name, words), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	return id;
}

static void configure(uint16_t id, uint16_t n_queues, uint64_t rss_hf)
{
	const struct rte_eth_conf conf = {
		.rxmode = {.mq_mode = rss_hf != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE},
		.rx_adv_conf.rss_conf.rss_hf = rss_hf,
		.intr_conf.lsc = 1,
	};

	assert_int_equal(rte_eth_dev_configure(id, n_queues, n_queues, &conf), 0);
	for (uint16_t i = 0; i < n_queues; i++) {
		assert_int_equal(rte_eth_rx_queue_setup(id, i, 128, 0, NULL, pool), 0);
		assert_int_equal(rte_eth_tx_queue_setup(id, i, 128, 0, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_start(id), 0);
}

static uint16_t open_port(const char *name, const char *words)
{
	uint16_t id = probe(name, words);

	configure(id, 1, 0);
	return id;
}

static void close_port(const char *name)
{
	uint16_t id;

	assert_int_equal(rte_vdev_uninit(name), 0);
	assert_int_not_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
}

/* Receives what comes within some hundred polls; counts, frees. */
static unsigned take(uint16_t id, uint16_t queue)
{
	struct rte_mbuf *packets[BURST];
	unsigned sum = 0;

	for (unsigned i = 0; i < 300; i++) {
		uint16_t n = rte_eth_rx_burst(id, queue, packets, BURST);

		for (uint16_t p = 0; p < n; p++)
			assert_int_equal(packets[p]->port, id);
		rte_pktmbuf_free_bulk(packets, n);
		sum += n;
	}
	return sum;
}

static uint64_t xstat(uint16_t id, const char *name)
{
	uint64_t number, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(id, name, &number), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(id, &number, &value, 1), 1);
	return value;
}

static struct rte_eth_stats stats(uint16_t id)
{
	struct rte_eth_stats stats;

	assert_int_equal(rte_eth_stats_get(id, &stats), 0);
	return stats;
}

static struct rte_mbuf *packet(uint16_t length)
{
	struct rte_mbuf *made = rte_pktmbuf_alloc(pool);

	assert_non_null(made);
	memset(rte_pktmbuf_append(made, length), 0, length);
	return made;
}

static void test_life(void **state)
{
	uint16_t id, other;

	(void)state;
	id = open_port("net_flowsim0", "flows=8,passes=2");
	/* a name is there once; others beside it are fine */
	assert_int_equal(rte_vdev_init("net_flowsim0", ""), -EEXIST);
	other = open_port("net_flowsim1", NULL);
	assert_int_not_equal(id, other);
	assert_int_equal(take(id, 0), 16);
	/* started again, the rounds begin anew */
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
	assert_int_equal(take(id, 0), 16);
	/* with other queues */
	assert_int_equal(rte_eth_dev_stop(id), 0);
	configure(id, 4, 0);
	assert_int_equal(take(id, 0), 16);
	/* removed while it is started, and closed first */
	close_port("net_flowsim0");
	assert_int_equal(rte_eth_dev_stop(other), 0);
	assert_int_equal(rte_eth_dev_close(other), 0);
	assert_int_equal(rte_vdev_uninit("net_flowsim1"), 0);
	/* and is made anew, never configured, or plugged in */
	probe("net_flowsim0", "profile=tiny");
	close_port("net_flowsim0");
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_flowsim7", "flows=3,passes=1"), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_flowsim7", &id), 0);
	configure(id, 1, 0);
	assert_int_equal(take(id, 0), 3);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_flowsim7"), 0);
	assert_int_not_equal(rte_eth_dev_get_port_by_name("net_flowsim7", &id), 0);
}

static void test_refused(void **state)
{
	static const char *const words[] = {
		"flow=1",
		"flows=0",
		"capture=/no/such/file",
		"port=net_null77",
		"fault=loose",
		"profile=none",
	};
	const struct rte_eth_conf interrupts = {.intr_conf.rxq = 1};
	const struct rte_eth_conf vmdq = {.rxmode.mq_mode = RTE_ETH_MQ_RX_VMDQ_ONLY};
	const struct rte_eth_conf plain = {0};
	struct rte_mempool *small;
	uint16_t id;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		assert_true(rte_vdev_init("net_flowsim0", words[i]) < 0);
		assert_int_not_equal(rte_eth_dev_get_port_by_name("net_flowsim0", &id), 0);
	}
	id = probe("net_flowsim0", "size=2000,queues=2");
	assert_true(rte_eth_dev_configure(id, 1, 1, &interrupts) < 0);
	assert_true(rte_eth_dev_configure(id, 1, 1, &vmdq) < 0);
	assert_true(rte_eth_dev_configure(id, 3, 1, &plain) < 0);
	assert_int_equal(rte_eth_dev_configure(id, 1, 1, &plain), 0);
	/* queues that were not set up, mbufs that are too small */
	assert_true(rte_eth_dev_start(id) < 0);
	small = rte_pktmbuf_pool_create(
		"small", 63, 0, 0, 1024 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	assert_non_null(small);
	assert_int_equal(rte_eth_rx_queue_setup(id, 0, 128, 0, NULL, small), -EINVAL);
	rte_mempool_free(small);
	close_port("net_flowsim0");
}

static void test_info(void **state)
{
	struct rte_eth_dev_info info;
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;
	struct rte_eth_burst_mode mode;
	struct rte_eth_link link;
	struct rte_ether_addr mac;
	uint64_t features = RTE_ETH_RX_METADATA_USER_MARK | RTE_ETH_RX_METADATA_TUNNEL_ID;
	uint16_t id = probe("net_flowsim0", "queues=4,link_mbps=25000,mac=02:00:00:00:00:07,nic=x");

	(void)state;
	assert_int_equal(rte_eth_rx_metadata_negotiate(id, &features), 0);
	assert_int_equal(features, RTE_ETH_RX_METADATA_USER_MARK);
	configure(id, 2, SIM_RSS_TYPES);
	assert_int_equal(rte_eth_dev_info_get(id, &info), 0);
	assert_string_equal(info.driver_name, "net_flowsim");
	assert_int_equal(info.max_rx_queues, 4);
	assert_int_equal(info.nb_rx_queues, 2);
	assert_int_equal(info.reta_size, 128);
	assert_int_equal(info.hash_key_size, 52);
	assert_int_equal(info.speed_capa, RTE_ETH_LINK_SPEED_25G);
	assert_string_equal(info.switch_info.name, "x");
	assert_int_equal(info.rx_offload_capa, RTE_ETH_RX_OFFLOAD_RSS_HASH);
	assert_int_equal(rte_eth_macaddr_get(id, &mac), 0);
	assert_int_equal(mac.addr_bytes[5], 7);
	mac.addr_bytes[5] = 8;
	assert_int_equal(rte_eth_dev_default_mac_addr_set(id, &mac), 0);
	assert_int_equal(rte_eth_dev_set_mtu(id, 9000), 0);
	assert_true(rte_eth_dev_set_mtu(id, 10000) < 0);
	assert_int_equal(rte_eth_promiscuous_enable(id), 0);
	assert_int_equal(rte_eth_promiscuous_disable(id), 0);
	assert_int_equal(rte_eth_allmulticast_disable(id), 0);
	assert_int_equal(rte_eth_rx_queue_info_get(id, 1, &rx), 0);
	assert_true(rx.mp == pool && rx.nb_desc == 128);
	assert_int_equal(rx.queue_state, RTE_ETH_QUEUE_STATE_STARTED);
	assert_int_equal(rte_eth_tx_queue_info_get(id, 1, &tx), 0);
	assert_int_equal(tx.nb_desc, 128);
	assert_int_equal(rte_eth_rx_burst_mode_get(id, 0, &mode), 0);
	assert_string_equal(mode.info, "Streams");
	assert_int_equal(rte_eth_link_get_nowait(id, &link), 0);
	assert_int_equal(link.link_speed, 25000);
	assert_int_equal(link.link_status, RTE_ETH_LINK_UP);
	close_port("net_flowsim0");
}

static int link_changed(uint16_t id, enum rte_eth_event_type event, void *context, void *more)
{
	(void)id;
	(void)event;
	(void)more;
	++*(unsigned *)context;
	return 0;
}

static void test_link(void **state)
{
	uint16_t id = open_port("net_flowsim0", "flows=4,passes=3");
	struct rte_mbuf *one = packet(60);
	struct rte_eth_link link;
	unsigned changes = 0;

	(void)state;
	assert_int_equal(
		rte_eth_dev_callback_register(id, RTE_ETH_EVENT_INTR_LSC, link_changed, &changes),
		0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	assert_int_equal(changes, 1);
	assert_int_equal(rte_eth_link_get_nowait(id, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
	/* nothing comes, nothing goes, nothing is lost */
	assert_int_equal(take(id, 0), 0);
	assert_int_equal(rte_eth_tx_burst(id, 0, &one, 1), 0);
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	assert_int_equal(changes, 1);
	assert_int_equal(rte_eth_dev_set_link_up(id), 0);
	assert_int_equal(changes, 2);
	assert_int_equal(take(id, 0), 12);
	assert_int_equal(rte_eth_tx_burst(id, 0, &one, 1), 1);
	/* it stays down over a restart */
	assert_int_equal(rte_eth_dev_set_link_down(id), 0);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
	assert_int_equal(take(id, 0), 0);
	assert_int_equal(rte_eth_dev_set_link_up(id), 0);
	assert_int_equal(take(id, 0), 12);
	assert_int_equal(
		rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_INTR_LSC, link_changed, &changes),
		0);
	close_port("net_flowsim0");
}

static void test_counters(void **state)
{
	uint16_t id = probe("net_flowsim0", "flows=200,passes=2,size=100");
	struct rte_eth_stats sum;
	unsigned queue[2];

	(void)state;
	configure(id, 2, RTE_ETH_RSS_UDP & SIM_RSS_TYPES);
	queue[0] = take(id, 0);
	queue[1] = take(id, 1);
	assert_int_equal(queue[0] + queue[1], 400);
	assert_true(queue[0] > 0 && queue[1] > 0);
	sum = stats(id);
	assert_int_equal(sum.ipackets, 400);
	assert_int_equal(sum.ibytes, 40000);
	assert_int_equal(xstat(id, "rx_good_packets"), 400);
	assert_int_equal(xstat(id, "rx_port_packets"), 400);
	assert_int_equal(xstat(id, "rx_q0_packets"), queue[0]);
	assert_int_equal(xstat(id, "rx_q1_bytes"), 100 * queue[1]);
	assert_int_equal(xstat(id, "rx_marked"), 0);
	/* those of a queue that is no longer there stay in the sum; a reset begins anew */
	assert_int_equal(rte_eth_dev_stop(id), 0);
	configure(id, 1, 0);
	assert_int_equal(stats(id).ipackets, 400);
	assert_int_equal(rte_eth_stats_reset(id), 0);
	assert_int_equal(stats(id).ipackets, 0);
	assert_int_equal(take(id, 0), 400);
	assert_int_equal(stats(id).ipackets, 400);
	assert_int_equal(rte_eth_xstats_reset(id), 0);
	assert_int_equal(xstat(id, "rx_port_packets"), 0);
	assert_int_equal(stats(id).ipackets, 0);
	close_port("net_flowsim0");
}

/* Packets of one pool, and odd ones: in pieces, with a second owner, of another pool. */
static void test_send(void **state)
{
	uint16_t id = open_port("net_flowsim0", "source=none");
	struct rte_mempool *other = rte_pktmbuf_pool_create(
		"other", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_mbuf *packets[BURST], *shared = packet(70), *clone;

	(void)state;
	assert_non_null(other);
	for (unsigned i = 0; i < BURST; i++)
		packets[i] = packet((uint16_t)(60 + i));
	assert_int_equal(rte_eth_tx_burst(id, 0, packets, BURST), BURST);
	assert_int_equal(stats(id).opackets, BURST);
	assert_int_equal(stats(id).obytes, BURST * 60 + BURST * (BURST - 1) / 2);
	packets[0] = packet(60);
	packets[1] = rte_pktmbuf_alloc(other);
	assert_non_null(packets[1]);
	packets[2] = packet(60);
	assert_int_equal(rte_pktmbuf_chain(packets[2], packet(40)), 0);
	clone = rte_pktmbuf_clone(shared, pool);
	assert_non_null(clone);
	packets[3] = clone;
	packets[4] = shared;
	rte_mbuf_refcnt_update(shared, 1);
	assert_int_equal(rte_eth_tx_burst(id, 0, packets, 5), 5);
	assert_int_equal(rte_mempool_avail_count(other), 63);
	assert_int_equal(rte_mempool_avail_count(pool), POOL - 1);
	rte_pktmbuf_free(shared);
	assert_int_equal(xstat(id, "tx_port_packets"), BURST + 5);
	assert_int_equal(rte_eth_tx_burst(id, 0, packets, 0), 0);
	rte_mempool_free(other);
	close_port("net_flowsim0");
}

static void test_rss(void **state)
{
	uint8_t key[52], back[52] = {0};
	struct rte_eth_rss_conf conf = {
		.rss_key = key, .rss_key_len = sizeof(key), .rss_hf = RTE_ETH_RSS_IPV4};
	struct rte_eth_rss_reta_entry64 reta[2];
	uint16_t id = probe("net_flowsim0", "flows=64,passes=1");

	(void)state;
	memset(key, 0x5a, sizeof(key));
	configure(id, 2, RTE_ETH_RSS_UDP & SIM_RSS_TYPES);
	assert_int_equal(rte_eth_dev_rss_hash_update(id, &conf), 0);
	conf = (struct rte_eth_rss_conf){.rss_key = back, .rss_key_len = sizeof(back)};
	assert_int_equal(rte_eth_dev_rss_hash_conf_get(id, &conf), 0);
	assert_memory_equal(key, back, sizeof(key));
	assert_int_equal(conf.rss_hf, RTE_ETH_RSS_IPV4);
	/* types that are not there, keys too short */
	conf.rss_hf = RTE_ETH_RSS_L2TPV3;
	assert_true(rte_eth_dev_rss_hash_update(id, &conf) < 0);
	conf = (struct rte_eth_rss_conf){.rss_key = key, .rss_key_len = 16};
	assert_true(rte_eth_dev_rss_hash_update(id, &conf) < 0);
	/* the table, an entry of it, all to queue 1: and the packets go there */
	memset(reta, 0, sizeof(reta));
	reta[0].mask = reta[1].mask = UINT64_MAX;
	assert_int_equal(rte_eth_dev_rss_reta_query(id, reta, 128), 0);
	for (unsigned i = 0; i < 128; i++) {
		assert_int_equal(reta[i / 64].reta[i % 64], i % 2);
		reta[i / 64].reta[i % 64] = 1;
	}
	assert_int_equal(rte_eth_dev_rss_reta_update(id, reta, 128), 0);
	reta[0].mask = 2;
	reta[1].mask = 0;
	reta[0].reta[1] = 0;
	assert_int_equal(rte_eth_dev_rss_reta_update(id, reta, 128), 0);
	reta[0].mask = 3;
	assert_int_equal(rte_eth_dev_rss_reta_query(id, reta, 128), 0);
	assert_true(reta[0].reta[0] == 1 && reta[0].reta[1] == 0);
	reta[0].mask = 2;
	reta[0].reta[1] = 1;
	assert_int_equal(rte_eth_dev_rss_reta_update(id, reta, 128), 0);
	assert_true(rte_eth_dev_rss_reta_update(id, reta, 64) < 0);
	assert_int_equal(take(id, 0), 0);
	assert_int_equal(take(id, 1), 64);
	close_port("net_flowsim0");
}

/* Ports of one NIC send and give packets to each other; a port of another one is none of theirs. */
static void test_nic(void **state)
{
	uint16_t a = open_port("net_flowsim0", "source=none,nic=one");
	uint16_t b = open_port("net_flowsim1", "source=none,nic=one");
	uint16_t c = open_port("net_flowsim2", "source=none,nic=two");
	struct sim_port *from = rte_eth_devices[a].data->dev_private;
	struct rte_mbuf *one = packet(60);
	struct rte_eth_dev_info info[3];

	(void)state;
	assert_int_equal(rte_eth_dev_info_get(a, &info[0]), 0);
	assert_int_equal(rte_eth_dev_info_get(b, &info[1]), 0);
	assert_int_equal(rte_eth_dev_info_get(c, &info[2]), 0);
	assert_int_equal(info[0].switch_info.domain_id, info[1].switch_info.domain_id);
	assert_int_not_equal(info[0].switch_info.domain_id, info[2].switch_info.domain_id);
	assert_int_not_equal(info[0].switch_info.port_id, info[1].switch_info.port_id);
	assert_ptr_equal(sim_nic_port(from, a), from);
	assert_null(sim_nic_port(from, c));
	assert_int_equal(sim_nic_send(from, c, &one, 1), 0);
	assert_false(sim_nic_give(from, c, one));
	assert_int_equal(sim_nic_send(from, b, &one, 1), 1);
	assert_int_equal(xstat(b, "tx_nic_packets"), 1);
	assert_int_equal(xstat(b, "tx_port_bytes"), 60);
	assert_int_equal(stats(b).opackets, 0);
	sim_nic_sent(from, b, 10, 600);
	assert_int_equal(xstat(b, "tx_port_packets"), 11);
	/* into its queue, till that is full */
	for (unsigned i = 0; i < 128; i++)
		assert_true(sim_nic_give(from, b, packet(80)));
	one = packet(80);
	assert_false(sim_nic_give(from, b, one));
	assert_int_equal(stats(b).imissed, 1);
	assert_int_equal(take(b, 0), 128);
	assert_int_equal(stats(b).ibytes, 128 * 80);
	assert_true(sim_nic_give(from, b, one));
	/* what lies in the queue goes with a stop; nobody gives to a port that is stopped, or down */
	assert_int_equal(rte_eth_dev_stop(b), 0);
	one = packet(60);
	assert_false(sim_nic_give(from, b, one));
	assert_int_equal(sim_nic_send(from, b, &one, 1), 0);
	close_port("net_flowsim1");
	assert_int_equal(sim_nic_send(from, b, &one, 1), 0);
	rte_pktmbuf_free(one);
	close_port("net_flowsim0");
	close_port("net_flowsim2");
}

static void test_full_nic(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i < SIM_MAX_NIC_PORTS; i++) {
		snprintf(name, sizeof(name), "net_flowsim%u", i);
		probe(name, "source=none,nic=full");
	}
	assert_int_equal(rte_vdev_init("net_flowsim8", "source=none,nic=full"), -ENOSPC);
	close_port("net_flowsim3");
	probe("net_flowsim8", "source=none,nic=full");
	close_port("net_flowsim8");
	for (unsigned i = 0; i < SIM_MAX_NIC_PORTS; i++) {
		snprintf(name, sizeof(name), "net_flowsim%u", i);
		if (i != 3)
			close_port(name);
	}
}

/* Every stream is sent on by the NIC: the host sees nothing, and the NIC's own time goes on. */
static void test_hardware(void **state)
{
	uint16_t a = open_port("net_flowsim0", "flows=16,passes=3,nic=one,hostile=0");
	uint16_t b = open_port("net_flowsim1", "source=none,nic=one");
	const struct rte_flow_attr attr = {.transfer = 1};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action_ethdev to = {.port_id = b};
	const struct rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_COUNT},
		{.type = RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, .conf = &to},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;
	struct rte_flow *rule = rte_flow_create(a, &attr, pattern, actions, &error);

	(void)state;
	assert_non_null(rule);
	for (uint64_t end = sim_now_ms() + 60000; xstat(a, "rx_forwarded_packets") < 48;)
		assert_true(sim_now_ms() < end);
	assert_int_equal(take(a, 0), 0);
	assert_int_equal(xstat(a, "rx_port_packets"), 48);
	assert_int_equal(xstat(b, "tx_nic_packets"), 48);
	assert_int_equal(xstat(b, "tx_nic_bytes"), 48 * 64);
	assert_int_equal(stats(a).ipackets, 0);
	assert_int_equal(rte_flow_query(a, rule, actions, &count, &error), 0);
	assert_int_equal(count.hits, 48);
	close_port("net_flowsim0");
	close_port("net_flowsim1");
}

struct worker {
	pthread_t thread;
	uint16_t id;
	bool over;
	uint64_t received, sent;
};

static void *work(void *context)
{
	struct worker *worker = context;
	struct rte_mbuf *packets[BURST];

	while (!__atomic_load_n(&worker->over, __ATOMIC_RELAXED)) {
		uint16_t n = rte_eth_rx_burst(worker->id, 0, packets, BURST);
		uint16_t sent = rte_eth_tx_burst(worker->id, 0, packets, n);

		rte_pktmbuf_free_bulk(&packets[sent], n - sent);
		worker->received += n;
		worker->sent += sent;
	}
	return NULL;
}

/* Control does what it may while packets come and go; the sums are right all the same. */
static void test_threads(void **state)
{
	struct worker worker = {.id = probe("net_flowsim0", "flows=256")};
	uint8_t key[52] = {1};
	struct rte_eth_rss_reta_entry64 reta[2];

	(void)state;
	configure(worker.id, 2, RTE_ETH_RSS_UDP & SIM_RSS_TYPES);
	assert_int_equal(pthread_create(&worker.thread, NULL, work, &worker), 0);
	for (unsigned round = 0; round < 300; round++) {
		struct rte_eth_rss_conf conf = {.rss_key = key,
			.rss_key_len = sizeof(key),
			.rss_hf = round % 2 ? RTE_ETH_RSS_IPV4 : RTE_ETH_RSS_NONFRAG_IPV4_UDP};

		key[round % sizeof(key)]++;
		assert_int_equal(rte_eth_dev_rss_hash_update(worker.id, &conf), 0);
		memset(reta, 0, sizeof(reta));
		reta[round / 64 % 2].mask = UINT64_C(1) << round % 64;
		assert_int_equal(rte_eth_dev_rss_reta_update(worker.id, reta, 128), 0);
		if (round % 10 == 5)
			assert_int_equal(rte_eth_dev_set_link_down(worker.id), 0);
		if (round % 10 == 6)
			assert_int_equal(rte_eth_dev_set_link_up(worker.id), 0);
		assert_true(stats(worker.id).ipackets <= xstat(worker.id, "rx_port_packets"));
	}
	__atomic_store_n(&worker.over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(worker.thread, NULL), 0);
	assert_int_equal(stats(worker.id).ipackets, worker.received);
	assert_int_equal(stats(worker.id).opackets, worker.sent);
	close_port("net_flowsim0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_life, all_back),
		cmocka_unit_test_teardown(test_refused, all_back),
		cmocka_unit_test_teardown(test_info, all_back),
		cmocka_unit_test_teardown(test_link, all_back),
		cmocka_unit_test_teardown(test_counters, all_back),
		cmocka_unit_test_teardown(test_send, all_back),
		cmocka_unit_test_teardown(test_rss, all_back),
		cmocka_unit_test_teardown(test_nic, all_back),
		cmocka_unit_test_teardown(test_full_nic, all_back),
		cmocka_unit_test_teardown(test_hardware, all_back),
		cmocka_unit_test_teardown(test_threads, all_back),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
