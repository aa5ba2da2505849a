/* SPDX-License-Identifier: BSD-3-Clause */
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

#include "drivers/flowsim/sim.h"
#include "main/dpdk.h"

#define DEVICE "net_flowsim0"
#define STREAMS 64

static struct rte_mempool *pool;

/* A port of 64 streams, one queue, started. */
struct scene {
	uint16_t id;
	struct sim_port *port;
};

static int start_environment(void **state)
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

static int stop_environment(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	dpdk_stop();
	return 0;
}

static void open_scene(struct scene *scene, const char *words)
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

static void close_scene(void)
{
	assert_int_equal(rte_vdev_uninit(DEVICE), 0);
}

static int try_fault(struct scene *scene, const char *text, struct error *error)
{
	int ret;

	pthread_mutex_lock(&scene->port->lock);
	ret = sim_fault_parse(scene->port, text, error);
	pthread_mutex_unlock(&scene->port->lock);
	return ret;
}

static void fault(struct scene *scene, const char *text)
{
	struct error error;

	if (try_fault(scene, text, &error) != 0)
		fail_msg("%s: %s", text, error.text);
}

static void struck(
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
static struct rte_flow *create_for(struct scene *scene, uint8_t n, uint32_t mark)
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

static struct rte_flow *create(struct scene *scene, uint32_t mark)
{
	return create_for(scene, 0, mark);
}

static int destroy(struct scene *scene, struct rte_flow *rule)
{
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	return rte_flow_destroy(scene->id, rule, &error);
}

static int query(struct scene *scene, struct rte_flow *rule, struct rte_flow_query_count *count)
{
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_error error;

	memset(&error, 0, sizeof(error));
	memset(count, 0, sizeof(*count));
	return rte_flow_query(scene->id, rule, actions, count, &error);
}

/* Receives n packets; of these, how many had that mark, and any at all. */
static void receive(
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

static unsigned count_marked(struct scene *scene, unsigned n)
{
	unsigned with_it, marked;

	receive(scene, n, 0, &with_it, &marked);
	return marked;
}

/* An order with a fault in it changes nothing. */
static void test_all_or_nothing(void **state)
{
	struct scene scene;
	struct error error;

	(void)state;
	open_scene(&scene, "");
	fault(&scene, "lose:every=2");
	assert_int_equal(try_fault(&scene, "lose:off/dead:x", &error), -EINVAL);
	assert_int_equal(try_fault(&scene, "dead/lose:off/x", &error), -EINVAL);
	assert_false(scene.port->dead);
	assert_non_null(create_for(&scene, 1, 1));
	assert_non_null(create_for(&scene, 2, 2));
	struck(&scene, SIM_FAULT_LOSE, 2, 1);
	close_scene();
}

static void test_lose(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rules[9];
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=lose:every=3");
	for (unsigned i = 0; i < 9; i++) {
		rules[i] = create_for(&scene, (uint8_t)(i + 1), i);
		assert_non_null(rules[i]);
	}
	struck(&scene, SIM_FAULT_LOSE, 9, 3);
	assert_int_equal(rules[2]->state, SIM_RULE_LOST);
	assert_int_equal(rules[8]->state, SIM_RULE_LOST);
	assert_int_equal(rules[3]->state, SIM_RULE_LIVE);
	/* who does not know can go on: query and destroy are as of any rule */
	assert_int_equal(query(&scene, rules[2], &count), 0);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(destroy(&scene, rules[i]), 0);
	assert_int_equal(scene.port->n_rules, 0);
	close_scene();
}

static void test_lost_packets(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=lose:times=1");
	assert_non_null(create(&scene, 1));
	assert_int_equal(count_marked(&scene, 100), 0);
	assert_non_null(create(&scene, 2));
	struck(&scene, SIM_FAULT_LOSE, 1, 1);
	assert_int_equal(count_marked(&scene, 100), 100);
	close_scene();
}

static void test_fail(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rule;
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=fail:every=2:errno=ENOSPC:op=create");
	rule = create_for(&scene, 1, 1);
	assert_non_null(rule);
	assert_null(create_for(&scene, 2, 1));
	assert_int_equal(rte_errno, ENOSPC);
	/* other calls are no chances */
	assert_int_equal(query(&scene, rule, &count), 0);
	struck(&scene, SIM_FAULT_FAIL, 2, 1);
	fault(&scene, "fail:op=destroy,errno=16,times=2,after=1");
	assert_int_equal(destroy(&scene, create_for(&scene, 3, 1)), 0);
	assert_int_equal(destroy(&scene, rule), -EBUSY);
	assert_int_equal(destroy(&scene, rule), -EBUSY);
	struck(&scene, SIM_FAULT_FAIL, 3, 2);
	assert_int_equal(destroy(&scene, rule), 0);
	fault(&scene, "fail:op=query");
	rule = create_for(&scene, 1, 1);
	assert_int_equal(query(&scene, rule, &count), -EIO);
	struck(&scene, SIM_FAULT_FAIL, 1, 1);
	fault(&scene, "fail:off");
	assert_int_equal(query(&scene, rule, &count), 0);
	close_scene();
}

static void test_slowness(void **state)
{
	struct rte_flow *rule;
	struct scene scene;
	uint64_t before;

	(void)state;
	open_scene(&scene, "");
	rule = create_for(&scene, 1, 1);
	fault(&scene, "stall_delete:ms=20/late:ms=20:after=1");
	before = sim_now_ms();
	assert_int_equal(destroy(&scene, rule), 0);
	assert_true(sim_now_ms() - before >= 20);
	struck(&scene, SIM_FAULT_STALL_DELETE, 1, 1);
	struck(&scene, SIM_FAULT_LATE, 1, 0);
	before = sim_now_ms();
	assert_non_null(create_for(&scene, 1, 1));
	assert_true(sim_now_ms() - before >= 20);
	struck(&scene, SIM_FAULT_LATE, 2, 1);
	struck(&scene, SIM_FAULT_STALL_DELETE, 1, 1);
	close_scene();
}

static void test_stop_mark(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rule;
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=stop_mark:after=100");
	rule = create(&scene, 7);
	assert_non_null(rule);
	assert_int_equal(count_marked(&scene, 300), 100);
	struck(&scene, SIM_FAULT_STOP_MARK, 300, 200);
	/* silently: the counter goes on */
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(count.hits, 300);
	fault(&scene, "stop_mark:off");
	assert_int_equal(count_marked(&scene, 50), 50);
	fault(&scene, "stop_mark:every=5:times=3");
	assert_int_equal(count_marked(&scene, 100), 97);
	struck(&scene, SIM_FAULT_STOP_MARK, 15, 3);
	/* of another flow: nothing */
	fault(&scene, "stop_mark:mark=8");
	assert_int_equal(count_marked(&scene, 64), 64);
	struck(&scene, SIM_FAULT_STOP_MARK, 0, 0);
	fault(&scene, "stop_mark:mark=7");
	assert_int_equal(count_marked(&scene, 64), 0);
	struck(&scene, SIM_FAULT_STOP_MARK, 64, 64);
	close_scene();
}

static void test_stop_mark_in_time(void **state)
{
	struct scene scene;
	struct sim_fault_state now;
	unsigned marked, all = 0;

	(void)state;
	open_scene(&scene, "");
	assert_non_null(create(&scene, 7));
	fault(&scene, "stop_mark:after_ms=3600000");
	assert_int_equal(count_marked(&scene, 64), 64);
	struck(&scene, SIM_FAULT_STOP_MARK, 64, 0);
	fault(&scene, "stop_mark:after_ms=1");
	do {
		marked = count_marked(&scene, 32);
		all += 32;
	} while (marked > 0);
	pthread_mutex_lock(&scene.port->lock);
	now = sim_fault_look(scene.port, SIM_FAULT_STOP_MARK);
	pthread_mutex_unlock(&scene.port->lock);
	assert_int_equal(now.chances, all);
	assert_in_range(now.strikes, 32, all);
	close_scene();
}

static void test_wrong_mark(void **state)
{
	unsigned right, marked;
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=wrong_mark:every=4");
	assert_non_null(create(&scene, 8));
	receive(&scene, 200, 9, &right, &marked);
	assert_int_equal(right, 50);
	assert_int_equal(marked, 200);
	struck(&scene, SIM_FAULT_WRONG_MARK, 200, 50);
	fault(&scene, "wrong_mark:value=240");
	receive(&scene, 64, 8 ^ 240, &right, &marked);
	assert_int_equal(right, 64);
	/* what is not marked cannot be marked wrongly */
	fault(&scene, "stop_mark:every=2/wrong_mark");
	receive(&scene, 64, 9, &right, &marked);
	assert_int_equal(right, 32);
	assert_int_equal(marked, 32);
	struck(&scene, SIM_FAULT_WRONG_MARK, 32, 32);
	close_scene();
}

static void test_dead(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rule;
	struct scene scene;

	(void)state;
	open_scene(&scene, "");
	rule = create(&scene, 7);
	assert_int_equal(count_marked(&scene, 64), 64);
	fault(&scene, "dead");
	assert_int_equal(count_marked(&scene, 64), 0);
	assert_null(create_for(&scene, 1, 1));
	assert_int_equal(rte_errno, EIO);
	assert_int_equal(query(&scene, rule, &count), -EIO);
	assert_int_equal(destroy(&scene, rule), -EIO);
	struck(&scene, SIM_FAULT_DEAD, 3, 3);
	/* off does not wake the dead; a restart does */
	fault(&scene, "dead:off");
	assert_null(create_for(&scene, 1, 1));
	assert_int_equal(rte_eth_dev_stop(scene.id), 0);
	assert_int_equal(rte_eth_dev_start(scene.id), 0);
	assert_non_null(create(&scene, 7));
	assert_int_equal(count_marked(&scene, 64), 64);
	fault(&scene, "dead:after=2");
	assert_non_null(create_for(&scene, 1, 1));
	assert_non_null(create_for(&scene, 2, 1));
	assert_int_equal(count_marked(&scene, 64), 64);
	assert_null(create_for(&scene, 3, 1));
	assert_int_equal(count_marked(&scene, 64), 0);
	struck(&scene, SIM_FAULT_DEAD, 3, 1);
	close_scene();
}

static void test_count_nothing(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rule, *later;
	struct scene scene;

	(void)state;
	open_scene(&scene, "");
	rule = create(&scene, 7);
	assert_int_equal(count_marked(&scene, 100), 100);
	fault(&scene, "count_nothing");
	assert_int_equal(count_marked(&scene, 50), 50);
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(count.hits, 100);
	assert_int_equal(count.bytes, 6400);
	later = create_for(&scene, 1, 1);
	assert_int_equal(query(&scene, later, &count), 0);
	assert_int_equal(count.hits, 0);
	struck(&scene, SIM_FAULT_COUNT_NOTHING, 3, 3);
	fault(&scene, "count_nothing:off");
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(count.hits, 150);
	close_scene();
}

static void test_wrap(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *rule;
	struct scene scene;

	(void)state;
	open_scene(&scene, "counter_bits=8");
	rule = create(&scene, 7);
	assert_int_equal(count_marked(&scene, 300), 300);
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(count.hits, 300 % 256);
	assert_int_equal(count.bytes, 300 * 64 % 256);
	struck(&scene, SIM_FAULT_WRAP, 2, 2);
	fault(&scene, "wrap:bits=10");
	assert_int_equal(query(&scene, rule, &count), 0);
	assert_int_equal(count.hits, 300);
	assert_int_equal(count.bytes, 300 * 64 % 1024);
	struck(&scene, SIM_FAULT_WRAP, 2, 1);
	close_scene();
}

static void test_forget(void **state)
{
	struct rte_flow *rules[3];
	struct scene scene;

	(void)state;
	open_scene(&scene, "");
	rules[0] = create(&scene, 7);
	rules[1] = create_for(&scene, 1, 1);
	rules[2] = create_for(&scene, 2, 1);
	assert_int_equal(count_marked(&scene, 64), 64);
	fault(&scene, "forget");
	struck(&scene, SIM_FAULT_FORGET, 3, 3);
	assert_int_equal(count_marked(&scene, 64), 0);
	/* later rules are not forgotten */
	assert_non_null(create(&scene, 8));
	assert_int_equal(count_marked(&scene, 64), 64);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(destroy(&scene, rules[i]), 0);
	assert_int_equal(scene.port->n_rules, 1);
	close_scene();
}

static void test_evict(void **state)
{
	struct rte_flow *rules[4];
	struct scene scene;

	(void)state;
	open_scene(&scene, "fault=evict");
	for (unsigned i = 0; i < 4; i++)
		rules[i] = create_for(&scene, (uint8_t)(i + 1), i);
	/* the first had nobody to evict: no chance */
	struck(&scene, SIM_FAULT_EVICT, 3, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rules[i]->state, SIM_RULE_GONE);
	assert_int_equal(rules[3]->state, SIM_RULE_LIVE);
	fault(&scene, "evict:every=2");
	assert_non_null(create_for(&scene, 11, 1));
	assert_non_null(create_for(&scene, 12, 1));
	struck(&scene, SIM_FAULT_EVICT, 2, 1);
	assert_int_equal(rules[3]->state, SIM_RULE_GONE);
	close_scene();
}

/* Rules of an earlier run: they mark, take room, and survive what the application can do. */
static void test_ghosts(void **state)
{
	unsigned with_it, marked;
	struct rte_flow_error error;
	struct scene scene;

	(void)state;
	open_scene(&scene, "ghost=16,rules=18");
	struck(&scene, SIM_FAULT_GHOST, 16, 16);
	receive(&scene, STREAMS, 3, &with_it, &marked);
	assert_int_equal(marked, 16);
	assert_int_equal(with_it, 1);
	assert_non_null(create_for(&scene, 1, 1));
	assert_non_null(create_for(&scene, 2, 1));
	assert_null(create_for(&scene, 3, 1));
	assert_int_equal(rte_errno, ENOSPC);
	memset(&error, 0, sizeof(error));
	assert_int_equal(rte_flow_flush(scene.id, &error), 0);
	assert_int_equal(scene.port->n_rules, 16);
	assert_int_equal(rte_eth_dev_stop(scene.id), 0);
	assert_int_equal(rte_eth_dev_start(scene.id), 0);
	assert_int_equal(count_marked(&scene, STREAMS), 16);
	fault(&scene, "ghost:off");
	assert_int_equal(scene.port->n_rules, 0);
	assert_int_equal(count_marked(&scene, STREAMS), 0);
	/* other faults are not about them, more than there are streams are not made */
	fault(&scene, "lose/fail/evict/ghost:rules=100");
	struck(&scene, SIM_FAULT_GHOST, 100, 18);
	struck(&scene, SIM_FAULT_LOSE, 0, 0);
	struck(&scene, SIM_FAULT_FAIL, 0, 0);
	struck(&scene, SIM_FAULT_EVICT, 0, 0);
	fault(&scene, "forget");
	struck(&scene, SIM_FAULT_FORGET, 18, 18);
	assert_int_equal(count_marked(&scene, STREAMS), 0);
	close_scene();
}

static void test_ghosts_of_x710(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, "profile=x710,ghost=4");
	assert_int_equal(count_marked(&scene, STREAMS), 4);
	/* they hold the input set of their packet type */
	assert_null(create(&scene, 1));
	close_scene();
}

/* Totals go on when a fault is set anew; the rest begins again. */
static void test_set_anew(void **state)
{
	struct sim_fault_state now;
	struct scene scene;

	(void)state;
	open_scene(&scene, "");
	fault(&scene, "lose");
	assert_non_null(create_for(&scene, 1, 1));
	assert_non_null(create_for(&scene, 2, 1));
	fault(&scene, "lose:every=2");
	assert_non_null(create_for(&scene, 3, 1));
	pthread_mutex_lock(&scene.port->lock);
	now = sim_fault_look(scene.port, SIM_FAULT_LOSE);
	pthread_mutex_unlock(&scene.port->lock);
	assert_int_equal(now.chances, 1);
	assert_int_equal(now.strikes, 0);
	assert_int_equal(now.total_strikes, 2);
	assert_string_equal(now.told, "every=2");
	close_scene();
}

static void test_bad_devarg(void **state)
{
	(void)state;
	assert_int_not_equal(rte_vdev_init(DEVICE, "flows=64,fault=loose"), 0);
	assert_int_not_equal(rte_vdev_init(DEVICE, "flows=64,fault=lose:every=0"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_lose),
		cmocka_unit_test(test_lost_packets),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_slowness),
		cmocka_unit_test(test_stop_mark),
		cmocka_unit_test(test_stop_mark_in_time),
		cmocka_unit_test(test_wrong_mark),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_count_nothing),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_evict),
		cmocka_unit_test(test_ghosts),
		cmocka_unit_test(test_ghosts_of_x710),
		cmocka_unit_test(test_set_anew),
		cmocka_unit_test(test_bad_devarg),
	};

	return cmocka_run_group_tests_name(
		"flowsim faults", tests, start_environment, stop_environment);
}
