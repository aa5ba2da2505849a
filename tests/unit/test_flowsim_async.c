/* SPDX-License-Identifier: BSD-3-Clause */
/* The asynchronous calls of rte_flow, as a program calls them. */
#include "flowsim_async.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/monotonic.h"

#define NIC "load=order,profile=cx6-hws,hostile=0"

static void completions_come_in_order(void **state)
{
	struct rte_flow_op_result results[64];
	struct tuple tuples[48];
	struct async async;
	unsigned got = 0;

	(void)state;
	async_begin(&async, "flows=48," NIC, 1, 64, 64);
	async_tuples(&async, tuples, 48);
	for (unsigned i = 0; i < 48; i++)
		assert_non_null(async_create(&async, 0, &postponed, &tuples[i], i, 1000 + i));
	/* nothing was pushed, and nothing is done */
	assert_int_equal(async_pull(&async, 0, results, 64), 0);
	assert_int_equal(async_marked(&async, 96), 0);
	async_push(&async, 0);
	while (got < 48) {
		unsigned n = async_pull(&async, 0, results, 7);

		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(results[i].status, RTE_FLOW_OP_SUCCESS);
			assert_int_equal((uintptr_t)results[i].user_data, 1000 + got);
			got++;
		}
	}
	assert_int_equal(async_pull(&async, 0, results, 64), 0);
	assert_int_equal(async_marked(&async, 48), 48);
	async_end(&async);
}

static void queue_holds_no_more_than_it_says(void **state)
{
	struct tuple tuples[10];
	struct async async;

	(void)state;
	async_begin(&async, "flows=10," NIC, 2, 6, 64);
	async_tuples(&async, tuples, 10);
	for (unsigned i = 0; i < 6; i++)
		assert_non_null(async_create(&async, 0, &at_once, &tuples[i], i, i));
	/* done or not: nobody has pulled */
	rte_errno = 0;
	assert_null(async_create(&async, 0, &at_once, &tuples[6], 6, 6));
	assert_int_equal(rte_errno, EAGAIN);
	assert_int_equal(async_destroy(&async, 0, &at_once, NULL, 0), -EAGAIN);
	/* the other has room */
	assert_non_null(async_create(&async, 1, &at_once, &tuples[6], 6, 6));
	assert_int_equal(async_await(&async, 1, 1), 0);
	assert_int_equal(async_await(&async, 0, 2), 0);
	assert_non_null(async_create(&async, 0, &at_once, &tuples[7], 7, 7));
	assert_non_null(async_create(&async, 0, &at_once, &tuples[8], 8, 8));
	assert_null(async_create(&async, 0, &at_once, &tuples[9], 9, 9));
	assert_int_equal(async_await(&async, 0, 6), 0);
	assert_int_equal(async_marked(&async, 10), 9);
	assert_null(async_create(&async, 2, &at_once, &tuples[9], 9, 9));
	assert_int_equal(rte_errno, EINVAL);
	async_end(&async);
}

static void rules_live_without_a_pull(void **state)
{
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async, "flows=1," NIC, 1, 64, 64);
	async_tuples(&async, &tuple, 1);
	assert_non_null(async_create(&async, 0, &at_once, &tuple, 99, 0));
	while (async_marked(&async, 1) == 0)
		rte_pause();
	assert_int_equal(async_marked(&async, 100), 100);
	assert_int_equal(async_await(&async, 0, 1), 0);
	async_end(&async);
}

static void dropped_completions_are_as_many_as_told(void **state)
{
	struct rte_flow_op_result results[64];
	struct tuple tuples[32];
	struct async async;
	unsigned got = 0;

	(void)state;
	async_begin(&async, "flows=32,fault=drop_completion:every=3," NIC, 1, 64, 64);
	async_tuples(&async, tuples, 32);
	for (unsigned i = 0; i < 32; i++)
		assert_non_null(async_create(&async, 0, &at_once, &tuples[i], i, i));
	/* all are done, and a queue from which they were pulled has room for as many again */
	while (async_marked(&async, 32) < 32)
		got += async_pull(&async, 0, results, 64);
	while (got < 22)
		got += async_pull(&async, 0, results, 64);
	assert_int_equal(got, 22);
	assert_int_equal(async_pull(&async, 0, results, 64), 0);
	async_end(&async);
}

static void failures_are_told_with_the_completion(void **state)
{
	struct rte_flow *flows[32];
	struct tuple tuples[32];
	struct async async;

	(void)state;
	async_begin(&async, "flows=32,fault=fail:every=4:errno=5:op=create," NIC, 1, 64, 32);
	async_tuples(&async, tuples, 32);
	for (unsigned i = 0; i < 32; i++) {
		flows[i] = async_create(&async, 0, &at_once, &tuples[i], i, i);
		assert_non_null(flows[i]);
	}
	assert_int_equal(async_await(&async, 0, 32), 8);
	assert_int_equal(async_marked(&async, 32), 24);
	/* those that failed took no place in the table, and are no rules */
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(async_destroy(&async, 0, &postponed, flows[i], i), 0);
	async_push(&async, 0);
	assert_int_equal(async_await(&async, 0, 32), 8);
	assert_int_equal(async_marked(&async, 32), 0);
	async_end(&async);
}

static void table_has_as_many_rules_as_it_was_made_for(void **state)
{
	struct tuple tuples[5];
	struct rte_flow *flows[4];
	struct rte_flow_error error;
	struct async async;

	(void)state;
	async_begin(&async, "flows=5," NIC, 1, 64, 4);
	async_tuples(&async, tuples, 5);
	for (unsigned i = 0; i < 4; i++) {
		flows[i] = async_create(&async, 0, &at_once, &tuples[i], i, i);
		assert_non_null(flows[i]);
	}
	assert_null(async_create(&async, 0, &at_once, &tuples[4], 4, 4));
	assert_int_equal(rte_errno, ENOSPC);
	assert_int_equal(async_await(&async, 0, 4), 0);
	assert_int_equal(
		rte_flow_template_table_destroy(async.nic.id, async.table, &error), -EBUSY);
	assert_int_equal(async_destroy(&async, 0, &at_once, flows[2], 0), 0);
	assert_int_equal(async_await(&async, 0, 1), 0);
	flows[2] = async_create(&async, 0, &at_once, &tuples[4], 4, 4);
	assert_non_null(flows[2]);
	assert_int_equal(async_await(&async, 0, 1), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(async_destroy(&async, 0, &at_once, flows[i], 0), 0);
	assert_int_equal(async_await(&async, 0, 4), 0);
	assert_int_equal(rte_flow_template_table_destroy(async.nic.id, async.table, &error), 0);
	async_end(&async);
}

static void what_is_in_use_stays(void **state)
{
	struct rte_flow_error error;
	struct async async;

	(void)state;
	async_begin(&async, "flows=4," NIC, 1, 64, 4);
	uint16_t id = async.nic.id;

	assert_int_equal(rte_flow_pattern_template_destroy(id, async.pattern, &error), -EBUSY);
	assert_int_equal(rte_flow_actions_template_destroy(id, async.actions, &error), -EBUSY);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(async_configure(&async.nic, 1, 64), -EBUSY);
	nic_start(&async.nic);
	assert_int_equal(rte_flow_template_table_destroy(id, async.table, &error), 0);
	assert_int_equal(rte_flow_template_table_destroy(id, async.table, &error), -ENOENT);
	assert_int_equal(rte_flow_actions_template_destroy(id, async.actions, &error), 0);
	assert_int_equal(rte_flow_pattern_template_destroy(id, async.pattern, &error), 0);
	assert_int_equal(rte_flow_pattern_template_destroy(id, async.pattern, &error), -ENOENT);
	assert_int_equal(rte_eth_dev_stop(id), 0);
	assert_int_equal(async_configure(&async.nic, 8, 5), 0);
	assert_int_equal(async_configure(&async.nic, 0, 5), -EINVAL);
	assert_int_equal(async_configure(&async.nic, 1, UINT32_MAX), -EINVAL);
	nic_start(&async.nic);
	async_end(&async);
}

/* At 200 rules a second all of them are under way for a while. */
static void destroy_comes_after_its_create(void **state)
{
	struct rte_flow *flow;
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async, "flows=1,rate_rules=200," NIC, 1, 64, 64);
	async_tuples(&async, &tuple, 1);
	uint64_t from = monotonic_us();

	flow = async_create(&async, 0, &at_once, &tuple, 5, 1);
	assert_non_null(flow);
	assert_int_equal(async_destroy(&async, 0, &at_once, flow, 2), 0);
	assert_int_equal(async_destroy(&async, 0, &at_once, flow, 3), 0);
	struct rte_flow_op_result results[3];
	unsigned got = 0;

	while (got < 3)
		got += async_pull(&async, 0, &results[got], (uint16_t)(3 - got));
	/* one after the other, at the rate */
	assert_true(monotonic_us() - from >= 15000);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal((uintptr_t)results[i].user_data, i + 1);
	assert_int_equal(results[0].status, RTE_FLOW_OP_SUCCESS);
	assert_int_equal(results[1].status, RTE_FLOW_OP_SUCCESS);
	/* by then it was no rule any more */
	assert_int_equal(results[2].status, RTE_FLOW_OP_ERROR);
	assert_int_equal(async_marked(&async, 10), 0);
	async_end(&async);
}

static void nothing_is_told_before_its_time(void **state)
{
	struct rte_flow *flow;
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async,
		"flows=1,answer_ns=20000000,fault=stall_delete:ms=30/late:ms=25:every=2," NIC, 1,
		64, 64);
	async_tuples(&async, &tuple, 1);
	uint64_t from = monotonic_us();

	flow = async_create(&async, 0, &at_once, &tuple, 5, 1);
	assert_non_null(flow);
	/* it is live long before that is told */
	while (async_marked(&async, 1) == 0)
		rte_pause();
	assert_int_equal(async_await(&async, 0, 1), 0);
	assert_true(monotonic_us() - from >= 20000);
	/* the delete takes 30 ms, and is told 25 ms later than that */
	from = monotonic_us();
	assert_int_equal(async_destroy(&async, 0, &at_once, flow, 2), 0);
	while (async_marked(&async, 1) == 1)
		rte_pause();
	assert_true(monotonic_us() - from >= 30000);
	assert_int_equal(async_await(&async, 0, 1), 0);
	assert_true(monotonic_us() - from >= 55000);
	async_end(&async);
}

static void stop_and_close_with_operations_under_way(void **state)
{
	struct rte_flow_error error;
	struct tuple tuples[64];
	struct async async;

	(void)state;
	async_begin(&async, "flows=64,rate_rules=100,fault=stall_delete:ms=1000," NIC, 2, 64, 64);
	async_tuples(&async, tuples, 64);
	for (unsigned i = 0; i < 30; i++) {
		struct rte_flow *flow = async_create(&async, 0, &at_once, &tuples[i], i, i);

		assert_non_null(flow);
		if (i % 2 == 0)
			assert_int_equal(async_destroy(&async, 0, &at_once, flow, i), 0);
		assert_non_null(async_create(&async, 1, &postponed, &tuples[30 + i], i, i));
	}
	assert_int_equal(rte_eth_dev_stop(async.nic.id), 0);
	/* what was pushed was done, and the rules went with the stop; what was not pushed is there */
	assert_int_equal(async_await(&async, 0, 45), 0);
	assert_int_equal(
		rte_flow_template_table_destroy(async.nic.id, async.table, &error), -EBUSY);
	nic_start(&async.nic);
	assert_int_equal(async_marked(&async, 64), 0);
	for (unsigned i = 0; i < 30; i++)
		assert_non_null(async_create(&async, 0, &at_once, &tuples[i], i, i));
	async_end(&async);
}

static void profile_without_has_none(void **state)
{
	struct rte_flow_port_info port_info;
	struct rte_flow_queue_info queue_info;
	struct rte_flow_error error;
	struct async async;

	(void)state;
	nic_open(&async.nic, "net_flowsim_async", "flows=4,profile=cx5,hostile=0");
	int ret = rte_flow_info_get(async.nic.id, &port_info, &queue_info, &error);

	assert_true(ret == -ENOTSUP || ret == -ENOSYS);
	assert_int_equal(rte_eth_dev_stop(async.nic.id), 0);
	ret = async_configure(&async.nic, 1, 64);
	assert_true(ret == -ENOTSUP || ret == -ENOSYS);
	nic_start(&async.nic);
	async_end(&async);
}

static void push_fails_and_pushes_nothing(void **state)
{
	struct rte_flow_op_result result;
	struct rte_flow_error error;
	struct tuple tuple;
	struct async async;

	(void)state;
	async_begin(&async, "flows=1,fault=fail:every=2:errno=22:op=push," NIC, 1, 64, 64);
	async_tuples(&async, &tuple, 1);
	async_push(&async, 0);
	assert_non_null(async_create(&async, 0, &postponed, &tuple, 1, 1));
	assert_int_equal(rte_flow_push(async.nic.id, 0, &error), -22);
	assert_int_equal(async_pull(&async, 0, &result, 1), 0);
	async_push(&async, 0);
	assert_int_equal(async_await(&async, 0, 1), 0);
	async_end(&async);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_come_in_order),
		cmocka_unit_test(queue_holds_no_more_than_it_says),
		cmocka_unit_test(rules_live_without_a_pull),
		cmocka_unit_test(dropped_completions_are_as_many_as_told),
		cmocka_unit_test(failures_are_told_with_the_completion),
		cmocka_unit_test(table_has_as_many_rules_as_it_was_made_for),
		cmocka_unit_test(what_is_in_use_stays),
		cmocka_unit_test(destroy_comes_after_its_create),
		cmocka_unit_test(nothing_is_told_before_its_time),
		cmocka_unit_test(stop_and_close_with_operations_under_way),
		cmocka_unit_test(profile_without_has_none),
		cmocka_unit_test(push_fails_and_pushes_nothing),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
