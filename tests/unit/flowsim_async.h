/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Flow queues of a simulated port for tests: `eth / ipv4 / udp` with a tuple, `mark / queue`, both given
 * by the rule. After async_begin() the port has its queues, its templates and a table.
 */

#include "flowsim_port.h"

#include <errno.h>

#include <rte_errno.h>
#include <rte_pause.h>

struct async {
	struct nic nic;
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_actions_template *actions;
	struct rte_flow_template_table *table;
};

/* What a rule is made of; the actions point into it. */
struct mark_queue {
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	struct rte_flow_action list[3];
};

static const struct rte_flow_op_attr at_once = {.postpone = 0};
static const struct rte_flow_op_attr postponed = {.postpone = 1};

static inline const struct rte_flow_action *mark_queue(
	struct mark_queue *to, uint32_t mark, uint16_t queue)
{
	*to = (struct mark_queue){
		.mark.id = mark,
		.queue.index = queue,
		.list = {{.type = RTE_FLOW_ACTION_TYPE_MARK}, {.type = RTE_FLOW_ACTION_TYPE_QUEUE},
			{.type = RTE_FLOW_ACTION_TYPE_END}},
	};
	to->list[0].conf = &to->mark;
	to->list[1].conf = &to->queue;
	return to->list;
}

static inline int async_configure(const struct nic *nic, uint16_t n, uint32_t size)
{
	const struct rte_flow_port_attr port_attr = {0};
	const struct rte_flow_queue_attr attr = {.size = size};
	const struct rte_flow_queue_attr *attrs[8];
	struct rte_flow_error error;

	for (unsigned i = 0; i < RTE_DIM(attrs); i++)
		attrs[i] = &attr;
	return rte_flow_configure(nic->id, &port_attr, n, attrs, &error);
}

static inline struct rte_flow_template_table *async_table(struct async *async, uint32_t n_rules)
{
	const struct rte_flow_template_table_attr attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = n_rules};
	struct rte_flow_error error = {0};

	return rte_flow_template_table_create(
		async->nic.id, &attr, &async->pattern, 1, &async->actions, 1, &error);
}

static inline void async_templates(struct async *async)
{
	const struct rte_flow_pattern_template_attr pattern_attr = {.ingress = 1};
	const struct rte_flow_actions_template_attr actions_attr = {.ingress = 1};
	struct rte_flow_error error = {0};
	struct tuple any = {0};
	struct tuple_items items;
	struct mark_queue given, masks;

	async->pattern = rte_flow_pattern_template_create(
		async->nic.id, &pattern_attr, tuple_items(&items, &any), &error);
	assert_non_null(async->pattern);
	async->actions = rte_flow_actions_template_create(async->nic.id, &actions_attr,
		mark_queue(&given, 0, 0), mark_queue(&masks, 0, 0), &error);
	assert_non_null(async->actions);
}

/* `args` as behind the device's name; flow queues of that size, a table of that many rules. */
static inline void async_begin(
	struct async *async, const char *args, uint16_t n_queues, uint32_t size, uint32_t n_rules)
{
	nic_open(&async->nic, "net_flowsim_async", args);
	assert_int_equal(rte_eth_dev_stop(async->nic.id), 0);
	assert_int_equal(async_configure(&async->nic, n_queues, size), 0);
	nic_start(&async->nic);
	async_templates(async);
	async->table = async_table(async, n_rules);
	assert_non_null(async->table);
}

static inline struct rte_flow *async_create(struct async *async, uint32_t queue,
	const struct rte_flow_op_attr *attr, const struct tuple *tuple, uint32_t mark,
	uintptr_t user)
{
	struct rte_flow_error error;
	struct tuple_items items;
	struct mark_queue actions;

	return rte_flow_async_create(async->nic.id, queue, attr, async->table,
		tuple_items(&items, tuple), 0, mark_queue(&actions, mark, 0), 0, (void *)user,
		&error);
}

static inline int async_destroy(struct async *async, uint32_t queue,
	const struct rte_flow_op_attr *attr, struct rte_flow *flow, uintptr_t user)
{
	struct rte_flow_error error;

	return rte_flow_async_destroy(async->nic.id, queue, attr, flow, (void *)user, &error);
}

static inline void async_push(struct async *async, uint32_t queue)
{
	struct rte_flow_error error;

	assert_int_equal(rte_flow_push(async->nic.id, queue, &error), 0);
}

static inline unsigned async_pull(
	struct async *async, uint32_t queue, struct rte_flow_op_result *results, uint16_t n)
{
	struct rte_flow_error error;
	int got = rte_flow_pull(async->nic.id, queue, results, n, &error);

	assert_true(got >= 0);
	return (unsigned)got;
}

/* Pulls until n have come; they do come. Returns how many of them had failed. */
static inline unsigned async_await(struct async *async, uint32_t queue, unsigned n)
{
	struct rte_flow_op_result results[64];
	unsigned failed = 0;

	while (n > 0) {
		unsigned got = async_pull(
			async, queue, results, (uint16_t)RTE_MIN(n, (unsigned)RTE_DIM(results)));

		for (unsigned i = 0; i < got; i++)
			failed += results[i].status != RTE_FLOW_OP_SUCCESS;
		n -= got;
		if (got == 0)
			rte_pause();
	}
	return failed;
}

/* The tuples of the first n packets: all streams of a port with load=order. */
static inline void async_tuples(struct async *async, struct tuple *tuples, unsigned n)
{
	while (n > 0) {
		struct rte_mbuf *packets[32];
		uint16_t got =
			rte_eth_rx_burst(async->nic.id, 0, packets, (uint16_t)RTE_MIN(n, 32u));

		for (uint16_t i = 0; i < got; i++)
			*tuples++ = tuple_of(packets[i]);
		rte_pktmbuf_free_bulk(packets, got);
		n -= got;
	}
}

/* How many of the next n packets are marked. */
static inline uint64_t async_marked(struct async *async, uint64_t n)
{
	struct taken taken;

	nic_take(&async->nic, 0, n, 0, NULL, &taken);
	return taken.marked + taken.others;
}

static inline void async_end(struct async *async)
{
	nic_close(&async->nic);
}
