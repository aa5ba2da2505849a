/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/indirect.h"

/*
 * Indirect actions of flow queues. What an application hands over for a create or an update need not
 * live longer than the call: both are done in it, and told as if the firmware had done them. A destroy
 * waits in the queue, behind those of the rules that have the handle; a query too.
 */

static int refuse(struct sim_port *port, struct rte_flow_error *error, int code, const void *cause,
	const char *why)
{
	const struct sim_fault_at fault = {cause, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, why};

	return sim_refuse(port, error, code, &fault);
}

static int check_direction(
	const struct sim_port *port, const struct rte_flow_indir_action_conf *conf)
{
	if (conf == NULL || (!conf->ingress && !conf->egress && !conf->transfer))
		return -EINVAL;
	if ((conf->egress && !port->args.profile.egress) ||
		(conf->transfer && !port->args.profile.transfer))
		return -ENOTSUP;
	return 0;
}

struct rte_flow_action_handle *sim_async_handle_create(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, const struct rte_flow_indir_action_conf *conf,
	const struct rte_flow_action *action, void *user_data, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct rte_flow_action_handle *handle = NULL;
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret == 0)
		ret = check_direction(port, conf);
	if (ret == 0) {
		pthread_mutex_lock(&port->lock);
		handle = sim_indirect_create(port, action, &ret, &fault);
		pthread_mutex_unlock(&port->lock);
	}
	if (handle == NULL) {
		sim_refuse(port, error, ret, &fault);
		return NULL;
	}
	op->kind = SIM_OP_INDIRECT_DONE;
	op->user_data = user_data;
	sim_async_enqueue(queue, attr);
	return handle;
}

int sim_async_handle_destroy(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_action_handle *handle, void *user_data,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret < 0)
		return sim_refuse(port, error, ret, &fault);
	op->kind = SIM_OP_INDIRECT_DESTROY;
	op->user_data = user_data;
	op->indirect = handle;
	sim_async_enqueue(queue, attr);
	return 0;
}

int sim_async_handle_update(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_action_handle *handle,
	const void *update, void *user_data, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret < 0)
		return sim_refuse(port, error, ret, &fault);
	if (update == NULL)
		return refuse(port, error, -EINVAL, handle, "no update");
	pthread_mutex_lock(&port->lock);
	op->status = sim_indirect_update(port, handle, update);
	pthread_mutex_unlock(&port->lock);
	op->kind = SIM_OP_INDIRECT_DONE;
	op->user_data = user_data;
	sim_async_enqueue(queue, attr);
	return 0;
}

int sim_async_handle_query(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, const struct rte_flow_action_handle *handle,
	void *data, void *user_data, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret < 0)
		return sim_refuse(port, error, ret, &fault);
	if (data == NULL)
		return refuse(port, error, -EINVAL, handle, "no room for the answer");
	op->kind = SIM_OP_INDIRECT_QUERY;
	op->user_data = user_data;
	op->indirect = (struct sim_indirect *)(uintptr_t)handle;
	op->data = data;
	sim_async_enqueue(queue, attr);
	return 0;
}
