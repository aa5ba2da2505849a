/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/calls/async.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/calls/calls.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/rule_life.h"

static int info_get(struct rte_eth_dev *dev, struct rte_flow_port_info *port_info,
	struct rte_flow_queue_info *queue_info, struct rte_flow_error *error)
{
	const struct sim_profile *profile = &sim_port_of(dev)->args.profile;

	(void)error;
	memset(port_info, 0, sizeof(*port_info));
	port_info->max_nb_queues = SIM_ASYNC_MAX_QUEUES;
	if (profile->actions >> RTE_FLOW_ACTION_TYPE_COUNT & 1)
		port_info->max_nb_counters = profile->size;
	if (profile->actions >> RTE_FLOW_ACTION_TYPE_AGE & 1)
		port_info->max_nb_aging_objects = profile->size;
	if (profile->actions >> RTE_FLOW_ACTION_TYPE_METER & 1)
		port_info->max_nb_meters = profile->size;
	memset(queue_info, 0, sizeof(*queue_info));
	queue_info->max_size = SIM_ASYNC_MAX_SIZE;
	return 0;
}

static const char *objection_to(const struct rte_flow_port_info *most,
	const struct rte_flow_port_attr *attr, uint16_t n_queues,
	const struct rte_flow_queue_attr *const queues[])
{
	if (n_queues == 0 || n_queues > SIM_ASYNC_MAX_QUEUES)
		return "no flow queues, or more than there are";
	for (unsigned i = 0; i < n_queues; i++)
		if (queues[i] == NULL || queues[i]->size > SIM_ASYNC_MAX_SIZE)
			return "a flow queue larger than there are";
	if (attr->nb_counters > most->max_nb_counters ||
		attr->nb_aging_objects > most->max_nb_aging_objects ||
		attr->nb_meters > most->max_nb_meters ||
		attr->nb_conn_tracks > most->max_nb_conn_tracks)
		return "more objects than there are";
	return attr->flags != 0 ? "flags that this NIC does not have" : NULL;
}

/* What hangs on queues as they are stays as it is. */
static bool is_in_use(const struct sim_async *async)
{
	for (unsigned i = 0; i < async->n_queues; i++)
		if (async->queues[i].enqueued != async->queues[i].done)
			return true;
	return !TAILQ_EMPTY(&async->tables) || !TAILQ_EMPTY(&async->pattern_templates) ||
	       !TAILQ_EMPTY(&async->actions_templates);
}

/* Completions that nobody pulled are gone with the old ring. */
static int size_queue(struct sim_flow_queue *queue, uint32_t size)
{
	uint32_t places = rte_align32pow2(size);
	struct sim_op *ops = calloc(places, sizeof(*ops));

	if (ops == NULL)
		return -ENOMEM;
	free(queue->ops);
	queue->ops = ops;
	queue->size = size;
	queue->mask = places - 1;
	queue->pulled = queue->enqueued;
	return 0;
}

static int size_queues(
	struct sim_async *async, uint16_t n, const struct rte_flow_queue_attr *const attr[])
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t size = attr[i]->size != 0 ? attr[i]->size : SIM_ASYNC_SIZE;
		int ret = size_queue(&async->queues[i], size);

		/* those before have their new size, and all work */
		if (ret < 0)
			return ret;
	}
	__atomic_store_n(&async->n_queues, n, __ATOMIC_RELEASE);
	return 0;
}

static int configure(struct rte_eth_dev *dev, const struct rte_flow_port_attr *port_attr,
	uint16_t n_queues, const struct rte_flow_queue_attr *queue_attr[],
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED};
	struct rte_flow_queue_info queue_info;
	struct rte_flow_port_info most;
	int ret = -EINVAL;

	info_get(dev, &most, &queue_info, NULL);
	fault.message = objection_to(&most, port_attr, n_queues, queue_attr);
	if (fault.message != NULL)
		return sim_refuse(port, error, ret, &fault);
	pthread_mutex_lock(&port->lock);
	if (is_in_use(port->async)) {
		fault.message = "templates, tables or operations are there";
		ret = -EBUSY;
	} else {
		ret = size_queues(port->async, n_queues, queue_attr);
	}
	pthread_mutex_unlock(&port->lock);
	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

int sim_async_begin(struct sim_port *port, uint32_t number, struct sim_flow_queue **queue,
	struct sim_op **op, struct sim_fault_at *fault)
{
	struct sim_async *async = port->async;

	fault->type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED;
	fault->message = "no such flow queue";
	if (number >= async->n_queues)
		return -EINVAL;
	*queue = &async->queues[number];
	fault->message = "the flow queue is full";
	if ((*queue)->enqueued - (*queue)->pulled >= (*queue)->size)
		return -EAGAIN;
	fault->message = NULL;
	*op = &(*queue)->ops[(*queue)->enqueued & (*queue)->mask];
	(*op)->delayed = false;
	(*op)->status = 0;
	return 0;
}

static void push(struct sim_flow_queue *queue)
{
	__atomic_store_n(&queue->pushed, queue->enqueued, __ATOMIC_SEQ_CST);
	sim_firmware_nudge(queue->port);
}

void sim_async_enqueue(struct sim_flow_queue *queue, const struct rte_flow_op_attr *attr)
{
	queue->enqueued++;
	if (attr == NULL || !attr->postpone)
		push(queue);
}

/* A look without the lock, which the firmware has most of the time. */
static bool may_fail(const struct sim_port *port)
{
	const struct sim_faults *faults = &port->faults;

	return __atomic_load_n(&port->dead, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&faults->on[SIM_FAULT_FAIL], __ATOMIC_RELAXED) ||
	       __atomic_load_n(&faults->on[SIM_FAULT_DEAD], __ATOMIC_RELAXED);
}

int sim_async_push(struct rte_eth_dev *dev, uint32_t queue_id, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {
		.type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED, .message = "no such flow queue"};
	int ret = 0;

	if (queue_id >= port->async->n_queues)
		return sim_refuse(port, error, -EINVAL, &fault);
	if (may_fail(port)) {
		pthread_mutex_lock(&port->lock);
		ret = sim_fault_fails(port, SIM_OP_PUSH);
		pthread_mutex_unlock(&port->lock);
	}
	if (ret < 0)
		return sim_refuse(port, error, ret, NULL);
	push(&port->async->queues[queue_id]);
	return 0;
}

int sim_async_pull(struct rte_eth_dev *dev, uint32_t queue_id, struct rte_flow_op_result results[],
	uint16_t n, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {
		.type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED, .message = "no such flow queue"};
	uint64_t now = 0;
	uint16_t told = 0;

	if (queue_id >= port->async->n_queues)
		return sim_refuse(port, error, -EINVAL, &fault);
	struct sim_flow_queue *queue = &port->async->queues[queue_id];
	uint64_t done = __atomic_load_n(&queue->done, __ATOMIC_ACQUIRE);

	for (; told < n && queue->pulled != done; queue->pulled++) {
		const struct sim_op *op = &queue->ops[queue->pulled & queue->mask];

		if (op->answer_ns > now) {
			now = sim_now_ns();
			if (op->answer_ns > now)
				break;
		}
		if (op->silent)
			continue;
		results[told].status = op->status < 0 ? RTE_FLOW_OP_ERROR : RTE_FLOW_OP_SUCCESS;
		results[told++].user_data = op->user_data;
	}
	return told;
}

int sim_async_init(struct sim_port *port)
{
	struct sim_async *async;

	if (!port->args.profile.async)
		return 0;
	async = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*async), RTE_CACHE_LINE_SIZE));
	if (async == NULL)
		return -ENOMEM;
	memset(async, 0, sizeof(*async));
	for (unsigned i = 0; i < SIM_ASYNC_MAX_QUEUES; i++)
		async->queues[i].port = port;
	TAILQ_INIT(&async->pattern_templates);
	TAILQ_INIT(&async->actions_templates);
	TAILQ_INIT(&async->tables);
	__atomic_store_n(&port->async, async, __ATOMIC_RELEASE);
	return 0;
}

static void free_queue(struct sim_flow_queue *queue)
{
	for (uint64_t i = queue->done; i != queue->enqueued; i++)
		sim_op_drop(queue->port, &queue->ops[i & queue->mask]);
	for (unsigned i = 0; i < RTE_DIM(queue->stocks); i++) {
		struct sim_stock *stock = queue->stocks[i];

		if (stock == NULL)
			continue;
		for (; stock->taken != stock->put; stock->taken++)
			sim_rule_free(queue->port, stock->rules[stock->taken % SIM_STOCK], i);
		free(stock);
	}
	free(queue->ops);
}

void sim_async_fini(struct sim_port *port)
{
	struct sim_async *async = port->async;
	struct rte_flow *rule;

	/* it looks at queues without any lock */
	sim_firmware_stop(port);
	if (async == NULL)
		return;
	sim_async_stopped(port);
	pthread_mutex_lock(&port->lock);
	for (unsigned i = 0; i < SIM_ASYNC_MAX_QUEUES; i++)
		free_queue(&async->queues[i]);
	TAILQ_FOREACH(rule, &port->rules, link)
		rule->use = NULL;
	sim_templates_free(async);
	port->async = NULL;
	pthread_mutex_unlock(&port->lock);
	free(async);
}

/* clang-format off */
#define ASYNC_OPS                                            \
	.async_create = sim_async_create,                    \
	.async_destroy = sim_async_destroy,                  \
	.push = sim_async_push,                              \
	.pull = sim_async_pull,                              \
	.async_action_handle_create = sim_async_handle_create,   \
	.async_action_handle_destroy = sim_async_handle_destroy, \
	.async_action_handle_update = sim_async_handle_update,   \
	.async_action_handle_query = sim_async_handle_query
/* clang-format on */

void sim_async_add_ops(const struct sim_port *port, struct rte_flow_ops *ops)
{
	static const struct rte_flow_ops ours = {.info_get = info_get,
		.configure = configure,
		.pattern_template_create = sim_pattern_template_create,
		.pattern_template_destroy = sim_pattern_template_destroy,
		.actions_template_create = sim_actions_template_create,
		.actions_template_destroy = sim_actions_template_destroy,
		.template_table_create = sim_template_table_create,
		.template_table_destroy = sim_template_table_destroy,
		SIM_ASYNC_IN_FLOW_OPS(ASYNC_OPS)};

	/* calls only, one pointer after the other; what is NULL here is somebody else's */
	void (*call)(void), (*none)(void) = NULL;

	for (size_t at = 0; port->args.profile.async && at < sizeof(ours); at += sizeof(call)) {
		memcpy(&call, (const char *)&ours + at, sizeof(call));
		if (call != none)
			memcpy((char *)ops + at, &call, sizeof(call));
	}
}

void sim_async_calls(struct rte_eth_dev *dev)
{
	if (sim_port_of(dev)->args.profile.async)
		SIM_ASYNC_SET(dev, ASYNC_OPS);
}
