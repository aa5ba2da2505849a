/* SPDX-License-Identifier: BSD-3-Clause */

/* A simulated NIC over another port: its queues, its life, and the life of what it took over. */

#include "unit/flowsim_line.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "drivers/flowsim/packets/pump.h"

#define END {.type = RTE_FLOW_ACTION_TYPE_END}
#define ACTION(name, pointer) {.type = RTE_FLOW_ACTION_TYPE_##name, .conf = (pointer)}

static const struct rte_flow_attr ingress = {.ingress = 1};

/* Both queues of the port behind are read; a stream comes to one queue, always the same, by its hash. */
static void test_spread(void **state)
{
	struct line_taken taken[LINE_QUEUES];
	unsigned spread[LINE_QUEUES] = {0};
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	/* a queue has room for all of them */
	for (unsigned i = 0; i < 240; i++)
		assert_int_equal(
			rte_ring_enqueue(line.rings[i / 16 % 2], line_packet(&line, i % 16)), 0);
	line_take(&line, 0, &taken[0]);
	line_take(&line, 1, &taken[1]);
	assert_int_equal(taken[0].n + taken[1].n, 240);
	assert_int_equal(taken[0].hashed + taken[1].hashed, 240);
	for (unsigned i = 0; i < 16; i++) {
		unsigned q = taken[1].streams[i] > 0;

		spread[q]++;
		assert_int_equal(taken[q].streams[i], 15);
		assert_int_equal(taken[!q].streams[i], 0);
	}
	assert_true(spread[0] > 0 && spread[1] > 0);
	assert_int_equal(line_counter(&line, "rx_port_packets"), 240);
	line_close(&line);
}

/* Nobody takes packets out of a queue: what it has no room for is counted, what came is not lost. */
static void test_missed(void **state)
{
	const struct rte_flow_action_queue queue = {.index = 1};
	const struct rte_flow_action list[] = {ACTION(QUEUE, &queue), ACTION(COUNT, NULL), END};
	struct rte_eth_stats stats;
	struct line_taken taken;
	struct rte_mbuf *packet;
	struct rte_flow *rule;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	rule = line_rule(&line, &ingress, -1, list);
	line_arrive(&line, 700, 5);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rte_eth_rx_burst(line.nic.id, 0, &packet, 1), 0);
	assert_int_equal(rte_eth_stats_get(line.nic.id, &stats), 0);
	assert_int_equal(stats.imissed, 700 - 256);
	assert_int_equal(line_hits(&line, rule, NULL), 700);
	line_take(&line, 1, &taken);
	assert_int_equal(taken.n, 256);
	assert_int_equal(line_counter(&line, "rx_port_packets"), 700);
	line_close(&line);
}

/* Two queues asked in turn, all packets for one: turning for others loses nothing. */
static void test_no_pile(void **state)
{
	const struct rte_flow_action_queue queue = {.index = 1};
	const struct rte_flow_action list[] = {ACTION(QUEUE, &queue), END};
	struct rte_mbuf *packets[32];
	unsigned got = 0;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	line_rule(&line, &ingress, -1, list);
	for (unsigned round = 0; round < 40; round++) {
		line_arrive(&line, 48, 5);
		for (uint16_t q = 0; q < 2; q++) {
			uint16_t n = rte_eth_rx_burst(line.nic.id, q, packets, 32);

			rte_pktmbuf_free_bulk(packets, n);
			got += n;
		}
	}
	while ((packets[0] = line_receive(&line, 1)) != NULL) {
		rte_pktmbuf_free(packets[0]);
		got++;
	}
	assert_int_equal(got, 40 * 48);
	line_close(&line);
}

static void test_owner(void **state)
{
	struct rte_ether_addr ours, theirs;
	struct rte_eth_dev_owner owner;
	struct line line;
	uint16_t wrapped;

	(void)state;
	line_open(&line, "a", "hostile=0");
	assert_int_equal(rte_eth_dev_get_port_by_name(line.ring_name, &wrapped), 0);
	assert_int_equal(rte_eth_dev_owner_get(wrapped, &owner), 0);
	assert_string_equal(owner.name, line.nic.name);
	assert_int_equal(rte_eth_macaddr_get(wrapped, &theirs), 0);
	assert_int_equal(rte_eth_macaddr_get(line.nic.id, &ours), 0);
	assert_true(rte_is_same_ether_addr(&ours, &theirs));
	/* who goes through all ports passes it by */
	assert_int_not_equal(rte_eth_find_next_owned_by(wrapped, RTE_ETH_DEV_NO_OWNER), wrapped);
	/* one owner, and one that is there */
	assert_true(rte_vdev_init("net_flowsim_c", "port=net_flowsim_c") < 0);
	assert_true(rte_vdev_init("net_flowsim_c", "port=net_nothing") < 0);
	char text[64];

	snprintf(text, sizeof(text), "port=%s", line.ring_name);
	assert_true(rte_vdev_init("net_flowsim_c", text) < 0);
	assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
	assert_int_equal(rte_eth_dev_close(line.nic.id), 0);
	(void)rte_vdev_uninit(line.nic.name);
	/* free again for somebody else */
	assert_int_equal(rte_eth_dev_owner_get(wrapped, &owner), 0);
	assert_int_equal(owner.id, RTE_ETH_DEV_NO_OWNER);
	assert_int_equal(rte_vdev_init("net_flowsim_c", text), 0);
	assert_int_equal(rte_vdev_uninit("net_flowsim_c"), 0);
	assert_int_equal(rte_vdev_uninit(line.ring_name), 0);
	rte_mempool_free(line.nic.pool);
}

/* Stopped and started, with packets in flight: none of ours stays behind. */
static void test_restart(void **state)
{
	struct line_taken taken[2];
	struct rte_mbuf *packet;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	for (unsigned round = 0; round < 3; round++) {
		line_arrive(&line, 100, 16);
		packet = line_receive(&line, 0);
		assert_non_null(packet);
		rte_pktmbuf_free(packet);
		assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
		if (round == 1)
			line_configure(&line);
		nic_start(&line.nic);
		line_take(&line, 0, &taken[0]);
		line_take(&line, 1, &taken[1]);
		assert_true(taken[0].n + taken[1].n > 0);
	}
	line_close(&line);
}

static void test_link(void **state)
{
	struct line_taken taken[2];
	struct rte_eth_link link;
	struct rte_mbuf *packet;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	assert_int_equal(rte_eth_link_get_nowait(line.nic.id, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_UP);
	assert_int_equal(rte_eth_dev_set_link_down(line.nic.id), 0);
	line_arrive(&line, 100, 5);
	line_take(&line, 0, &taken[0]);
	assert_int_equal(taken[0].n, 0);
	packet = line_packet(&line, 0);
	assert_int_equal(rte_eth_tx_burst(line.nic.id, 0, &packet, 1), 0);
	rte_pktmbuf_free(packet);
	assert_int_equal(rte_eth_dev_set_link_up(line.nic.id), 0);
	line_arrive(&line, 50, 5);
	line_take(&line, 0, &taken[0]);
	line_take(&line, 1, &taken[1]);
	/* what came without a link never arrived */
	assert_int_equal(taken[0].n + taken[1].n, 50);
	line_close(&line);
}

/* The device behind goes, before or while we are started: the port lives on with nothing to do. */
static void test_removed(void **state)
{
	(void)state;
	for (unsigned started = 0; started < 2; started++) {
		struct rte_mbuf *packet;
		struct rte_eth_link link;
		struct line_taken taken;
		struct line line;

		line_open(&line, "a", "hostile=0");
		if (!started)
			assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
		assert_int_equal(rte_vdev_uninit(line.ring_name), 0);
		if (started) {
			line_take(&line, 0, &taken);
			assert_int_equal(taken.n, 0);
			packet = line_packet(&line, 0);
			assert_int_equal(rte_eth_tx_burst(line.nic.id, 0, &packet, 1), 0);
			rte_pktmbuf_free(packet);
			assert_int_equal(rte_eth_link_get_nowait(line.nic.id, &link), 0);
			assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
			assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
		}
		assert_true(rte_eth_dev_start(line.nic.id) < 0);
		assert_true(rte_eth_dev_set_mtu(line.nic.id, 1400) < 0);
		assert_int_equal(rte_eth_dev_close(line.nic.id), 0);
		(void)rte_vdev_uninit(line.nic.name);
		assert_int_equal(rte_mempool_avail_count(line.nic.pool), LINE_POOL);
		rte_mempool_free(line.nic.pool);
	}
}

/* The NIC's own thread matches; here we only take out. */
static void test_thread(void **state)
{
	const struct rte_flow_action_mark mark = {.id = 11};
	const struct rte_flow_action list[] = {ACTION(MARK, &mark), ACTION(COUNT, NULL), END};
	unsigned got = 0, marked = 0;
	struct rte_flow *rule;
	rte_spinlock_t *lock;
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0,nic_core=-1");
	rule = line_rule(&line, &ingress, 3, list);
	lock = &((struct sim_port *)rte_eth_devices[line.nic.id].data->dev_private)->pump->lock;
	for (unsigned round = 0; round < 20; round++) {
		/* the thread sanitizer does not see into net_ring: so it sees a hand-over */
		rte_spinlock_lock(lock);
		line_arrive(&line, 100, 5);
		rte_spinlock_unlock(lock);
		/* until all have come: the thread sees to it */
		for (unsigned here = 0; here < 100;) {
			struct rte_mbuf *packets[32];
			uint16_t n = rte_eth_rx_burst(line.nic.id, 0, packets, 32);

			n += rte_eth_rx_burst(line.nic.id, 1, &packets[n], (uint16_t)(32 - n));
			for (uint16_t i = 0; i < n; i++)
				marked += (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
			rte_pktmbuf_free_bulk(packets, n);
			here += n;
			got += n;
			if (n == 0)
				sched_yield();
		}
	}
	assert_int_equal(got, 2000);
	assert_int_equal(marked, 400);
	assert_int_equal(line_hits(&line, rule, NULL), 400);
	assert_int_equal(line_counter(&line, "rx_marked"), 400);
	assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
	nic_start(&line.nic);
	line_close(&line);
}

static void test_bad_core(void **state)
{
	struct line line;

	(void)state;
	line_open(&line, "a", "hostile=0");
	assert_int_equal(rte_eth_dev_stop(line.nic.id), 0);
	assert_int_equal(rte_eth_dev_close(line.nic.id), 0);
	(void)rte_vdev_uninit(line.nic.name);

	char text[96];

	snprintf(text, sizeof(text), "port=%s,hostile=0,nic_core=1023", line.ring_name);
	assert_true(rte_vdev_init(line.nic.name, text) < 0);
	assert_int_equal(rte_vdev_uninit(line.ring_name), 0);
	rte_mempool_free(line.nic.pool);
}

struct storm {
	struct line *line;
	unsigned char stop;
	unsigned got;
};

static void *receive_all(void *argument)
{
	struct storm *storm = argument;

	while (!__atomic_load_n(&storm->stop, __ATOMIC_ACQUIRE)) {
		struct rte_mbuf *packets[32];
		uint16_t n = rte_eth_rx_burst(storm->line->nic.id, 0, packets, 32);

		/* round it goes */
		uint16_t sent = rte_eth_tx_burst(storm->line->nic.id, 0, packets, n);

		rte_pktmbuf_free_bulk(&packets[sent], (uint16_t)(n - sent));
		storm->got += n;
	}
	return NULL;
}

/* Rules come and go while packets go round: for the sanitizers. */
static void test_storm(void **state)
{
	struct rte_flow_action_mark mark = {.id = 11};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action list[] = {
		ACTION(MARK, &mark), ACTION(QUEUE, &queue), ACTION(COUNT, NULL), END};
	const struct rte_flow_attr egress = {.egress = 1};
	struct rte_flow_error error;
	struct storm storm = {0};
	struct line line;
	pthread_t thread;
	uint64_t hits = 0;

	(void)state;
	line_open(&line, "a", "hostile=0");
	line_rule(&line, &ingress, -1, &list[1]);
	storm.line = &line;
	line_arrive(&line, 200, 16);
	assert_int_equal(pthread_create(&thread, NULL, receive_all, &storm), 0);
	for (unsigned i = 0; i < 300 || hits == 0; i++) {
		struct rte_flow *rules[8];

		for (int j = 0; j < 8; j++) {
			mark.id = i * 8 + (unsigned)j;
			rules[j] = j < 6 ? line_rule(&line, &ingress, j, list)
					 : line_rule(&line, &egress, j, &list[2]);
		}
		sched_yield();
		for (int j = 0; j < 8; j++) {
			hits += line_hits(&line, rules[j], NULL);
			assert_int_equal(rte_flow_destroy(line.nic.id, rules[j], &error), 0);
		}
	}
	__atomic_store_n(&storm.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(storm.got > 0);
	for (struct rte_mbuf *packet; (packet = line_sent(&line)) != NULL;)
		rte_pktmbuf_free(packet);
	line_close(&line);
}

static int end(void **state)
{
	(void)state;
	dpdk_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_missed),
		cmocka_unit_test(test_no_pile),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_bad_core),
		cmocka_unit_test(test_storm),
	};

	return cmocka_run_group_tests(tests, nic_begin, end);
}
