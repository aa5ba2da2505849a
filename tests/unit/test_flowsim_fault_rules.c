/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of rules and their counters: lost, forgotten, evicted, of an earlier run. */
#include "flowsim_faults.h"

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

/* As forget, and nobody learns any more what was counted. */
static void test_reset(void **state)
{
	struct rte_flow_query_count count;
	struct rte_flow *before, *after;
	struct scene scene;

	(void)state;
	open_scene(&scene, "");
	before = create(&scene, 7);
	assert_int_equal(count_marked(&scene, 64), 64);
	fault(&scene, "reset");
	struck(&scene, SIM_FAULT_RESET, 1, 1);
	assert_int_equal(count_marked(&scene, 64), 0);
	assert_int_equal(query(&scene, before, &count), -EIO);
	after = create(&scene, 8);
	assert_int_equal(count_marked(&scene, 64), 64);
	assert_int_equal(query(&scene, after, &count), 0);
	assert_int_equal(count.hits, 64);
	assert_int_equal(destroy(&scene, before), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lose),
		cmocka_unit_test(test_lost_packets),
		cmocka_unit_test(test_count_nothing),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_evict),
		cmocka_unit_test(test_ghosts),
		cmocka_unit_test(test_ghosts_of_x710),
	};

	return cmocka_run_group_tests_name(
		"flowsim faults of rules", tests, start_environment, stop_environment);
}
