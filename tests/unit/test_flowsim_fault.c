/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of calls, of their time and of marks, and how faults are told. */
#include "flowsim_faults.h"

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
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_slowness),
		cmocka_unit_test(test_stop_mark),
		cmocka_unit_test(test_stop_mark_in_time),
		cmocka_unit_test(test_wrong_mark),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_set_anew),
		cmocka_unit_test(test_bad_devarg),
	};

	return cmocka_run_group_tests_name(
		"flowsim faults", tests, start_environment, stop_environment);
}
