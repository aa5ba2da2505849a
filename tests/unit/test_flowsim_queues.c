/* SPDX-License-Identifier: BSD-3-Clause */
/* What the receive queues of a port have to do with each other: the source's rate and pace, and RSS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf_dyn.h>
#include <rte_pause.h>

#include "base/dpdk.h"
#include "base/monotonic.h"

#define POOL 1023
#define BURST 32
#define NAME "net_flowsim0"

static struct rte_mempool *pool;

static int begin(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(64, &error) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
		"packets", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return pool != NULL ? 0 : -1;
}

static uint16_t open_port(const char *words, uint16_t n_queues, uint64_t rss_hf)
{
	const struct rte_eth_conf conf = {
		.rxmode = {.mq_mode = rss_hf != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE},
		.rx_adv_conf.rss_conf.rss_hf = rss_hf,
	};
	uint16_t id;

	assert_int_equal(rte_vdev_init(NAME, words), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(NAME, &id), 0);
	assert_int_equal(rte_eth_dev_configure(id, n_queues, 1, &conf), 0);
	for (uint16_t i = 0; i < n_queues; i++)
		assert_int_equal(rte_eth_rx_queue_setup(id, i, 128, 0, NULL, pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(id, 0, 128, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(id), 0);
	return id;
}

static int close_port(void **state)
{
	(void)state;
	return rte_vdev_uninit(NAME);
}

static uint64_t xstat(uint16_t id, const char *name)
{
	uint64_t number, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(id, name, &number), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(id, &number, &value, 1), 1);
	return value;
}

static void drop_all(uint16_t id)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;

	assert_non_null(rte_flow_create(id, &attr, pattern, actions, &error));
}

/* Four queues of which nothing reaches the host have the rate of the port, not four times as much. */
static void the_rate_is_the_ports(void **state)
{
	enum { RATE = 20000, ENOUGH = 8000 };
	uint16_t id = open_port("flows=64,rate=20000,hostile=0", 4, RTE_ETH_RSS_NONFRAG_IPV4_UDP);
	uint64_t from = monotonic_us(), dropped;

	(void)state;
	drop_all(id);
	do {
		dropped = xstat(id, "rx_rule_dropped_packets");
		/* read before it is compared with the clock */
		assert_true(dropped <= (monotonic_us() - from) * RATE / 1000000);
		assert_true(monotonic_us() - from < 60000000);
	} while (dropped < ENOUGH);
	for (unsigned i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "rx_q%u_matched", i);
		assert_true(xstat(id, name) > 0);
	}
}

/* Receives some packets of each queue: how many told a hash, and how many a hash that is not 0. */
static void look_at_hashes(
	uint16_t id, uint16_t n_queues, unsigned *n, unsigned *told, unsigned *not_zero)
{
	struct rte_mbuf *packets[BURST];

	*n = *told = *not_zero = 0;
	for (uint16_t queue = 0; queue < n_queues; queue++) {
		uint16_t got = rte_eth_rx_burst(id, queue, packets, BURST);

		for (uint16_t i = 0; i < got; i++) {
			*told += (packets[i]->ol_flags & RTE_MBUF_F_RX_RSS_HASH) != 0;
			*not_zero += packets[i]->hash.rss != 0;
		}
		rte_pktmbuf_free_bulk(packets, got);
		*n += got;
	}
}

static void a_hash_is_told_where_one_is_asked_for(void **state)
{
	/* plain streams, those written one at a time, and others */
	static const char *const words[] = {
		"flows=64,hostile=0", "flows=64,hostile=0,cold=1", "flows=64,hostile=0,vlan=50"};
	unsigned n, told, not_zero;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		uint16_t id = open_port(words[i], 1, 0);

		look_at_hashes(id, 1, &n, &told, &not_zero);
		assert_int_equal(n, BURST);
		assert_int_equal(told, 0);
		assert_int_equal(not_zero, 0);
		assert_int_equal(close_port(NULL), 0);
		id = open_port(words[i], 2, RTE_ETH_RSS_NONFRAG_IPV4_UDP);
		look_at_hashes(id, 2, &n, &told, &not_zero);
		assert_true(n > BURST);
		assert_int_equal(told, n);
		assert_int_equal(not_zero, n);
		assert_int_equal(close_port(NULL), 0);
	}
}

static uint64_t missed(uint16_t id)
{
	struct rte_eth_stats stats;

	assert_int_equal(rte_eth_stats_get(id, &stats), 0);
	return stats.imissed;
}

/* Packets come when they are due, asked for or not, and say when that was. */
static void packets_come_at_their_pace(void **state)
{
	enum { PACE = 100000, PACKETS = 2000, DESCRIPTORS = 128 };
	struct rte_mbuf *packets[BURST];
	uint64_t flag, n = 0, last = 0;
	int field;

	(void)state;
	assert_int_equal(rte_mbuf_dyn_rx_timestamp_register(&field, &flag), 0);
	const uint64_t begin = rte_rdtsc();
	uint16_t id = open_port("flows=16,pace=100000", 1, 0);

	while (n < PACKETS) {
		uint16_t got = rte_eth_rx_burst(id, 0, packets, BURST);
		const uint64_t tsc = rte_rdtsc();

		for (uint16_t i = 0; i < got; i++) {
			uint64_t came =
				*RTE_MBUF_DYNFIELD(packets[i], field, rte_mbuf_timestamp_t *);

			assert_true(packets[i]->ol_flags & flag);
			assert_true(came >= last && came <= tsc);
			last = came;
		}
		rte_pktmbuf_free_bulk(packets, got);
		n += got;
		/* never more than time has brought */
		assert_true(n <= (tsc - begin) * PACE / rte_get_tsc_hz() + 1);
	}
	/* nobody asks: what finds no descriptor is missed, and all others wait */
	const uint64_t before = missed(id), end = rte_rdtsc() + rte_get_tsc_hz() / 100;

	while (rte_rdtsc() < end)
		rte_pause();
	uint64_t waited = 0;

	for (uint16_t got = BURST; got == BURST; waited += got) {
		got = rte_eth_rx_burst(id, 0, packets, BURST);
		rte_pktmbuf_free_bulk(packets, got);
	}
	assert_true(waited >= DESCRIPTORS);
	assert_true(missed(id) - before + waited >= PACE / 100 - 1);
}

static void take(uint16_t id, unsigned n)
{
	struct rte_mbuf *packets[BURST];

	for (unsigned taken = 0; taken < n;) {
		uint16_t got = rte_eth_rx_burst(id, 0, packets, BURST);

		rte_pktmbuf_free_bulk(packets, got);
		taken += got;
	}
}

/* All packets are the NIC's for a while: then none of them waited for the host, and none was missed. */
static void what_the_nic_keeps_is_not_missed(void **state)
{
	enum { PACE = 100000, PACKETS = 200 };
	const struct rte_flow_attr ingress = {.ingress = 1};
	const struct rte_flow_item items[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_END}};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_mbuf *packets[BURST];
	struct rte_flow_error error;

	(void)state;
	uint16_t id = open_port("flows=16,pace=100000,hostile=0", 1, 0);

	take(id, 1);

	struct rte_flow *rule = rte_flow_create(id, &ingress, items, actions, &error);

	assert_non_null(rule);

	const uint64_t before = missed(id), end = rte_rdtsc() + rte_get_tsc_hz() / 10;
	uint64_t last;

	do {
		last = rte_rdtsc();
		assert_int_equal(rte_eth_rx_burst(id, 0, packets, BURST), 0);
	} while (rte_rdtsc() < end);
	assert_int_equal(rte_flow_destroy(id, rule, &error), 0);
	take(id, PACKETS);
	/* who was held up since the last look has missed what came meanwhile, and no more */
	assert_true(missed(id) - before <= (rte_rdtsc() - last) * PACE / rte_get_tsc_hz());
}

/* After the rounds that were asked for nothing comes any more, whether somebody asks or not. */
static void nothing_is_missed_after_the_last_round(void **state)
{
	enum { FLOWS = 16, PASSES = 100 };

	(void)state;
	uint16_t id = open_port("flows=16,pace=1000000,passes=100", 1, 0);

	take(id, FLOWS * PASSES);

	const uint64_t before = missed(id), end = rte_rdtsc() + rte_get_tsc_hz() / 50;
	struct rte_mbuf *packets[BURST];

	do {
		assert_int_equal(rte_eth_rx_burst(id, 0, packets, BURST), 0);
	} while (rte_rdtsc() < end);
	assert_int_equal(missed(id), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_rate_is_the_ports, close_port),
		cmocka_unit_test(a_hash_is_told_where_one_is_asked_for),
		cmocka_unit_test_teardown(packets_come_at_their_pace, close_port),
		cmocka_unit_test_teardown(what_the_nic_keeps_is_not_missed, close_port),
		cmocka_unit_test_teardown(nothing_is_missed_after_the_last_round, close_port),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
