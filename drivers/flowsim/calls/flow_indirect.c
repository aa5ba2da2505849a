/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "drivers/flowsim/calls/flow.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/rules/indirect.h"

/* Handles take no time that a source would tell: real drivers have their counters in pools. */

static int check_direction(const struct sim_port *port,
	const struct rte_flow_indir_action_conf *conf, struct sim_fault_at *fault)
{
	const struct sim_profile *profile = &port->args.profile;

	*fault = (struct sim_fault_at){.cause = conf,
		.type = RTE_FLOW_ERROR_TYPE_ATTR,
		.message = "for neither ingress, egress nor transfer"};
	if (conf == NULL || (!conf->ingress && !conf->egress && !conf->transfer))
		return -EINVAL;
	fault->message = "this NIC has no rules of that direction";
	if ((conf->egress && !profile->egress) || (conf->transfer && !profile->transfer))
		return -ENOTSUP;
	return 0;
}

struct rte_flow_action_handle *sim_flow_handle_create(struct rte_eth_dev *dev,
	const struct rte_flow_indir_action_conf *conf, const struct rte_flow_action *action,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct rte_flow_action_handle *handle = NULL;
	struct sim_fault_at fault;
	int ret = check_direction(port, conf, &fault);

	if (ret == 0) {
		pthread_mutex_lock(&port->flow->calls);
		pthread_mutex_lock(&port->lock);
		handle = sim_indirect_create(port, action, &ret, &fault);
		pthread_mutex_unlock(&port->lock);
		pthread_mutex_unlock(&port->flow->calls);
	}
	if (handle == NULL)
		sim_refuse(port, error, ret, &fault);
	return handle;
}

/* The end of a call about a handle. */
static int end(
	const struct sim_port *port, int ret, const void *handle, struct rte_flow_error *error)
{
	const struct sim_fault_at fault = {
		.cause = handle, .type = RTE_FLOW_ERROR_TYPE_HANDLE, .message = NULL};

	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

int sim_flow_handle_destroy(struct rte_eth_dev *dev, struct rte_flow_action_handle *handle,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	int ret;

	pthread_mutex_lock(&port->flow->calls);
	pthread_mutex_lock(&port->lock);
	ret = sim_indirect_destroy(port, handle);
	pthread_mutex_unlock(&port->lock);
	pthread_mutex_unlock(&port->flow->calls);
	return end(port, ret, handle, error);
}

int sim_flow_handle_update(struct rte_eth_dev *dev, struct rte_flow_action_handle *handle,
	const void *update, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	int ret;

	pthread_mutex_lock(&port->flow->calls);
	pthread_mutex_lock(&port->lock);
	ret = sim_indirect_update(port, handle, update);
	pthread_mutex_unlock(&port->lock);
	pthread_mutex_unlock(&port->flow->calls);
	return end(port, ret, handle, error);
}

int sim_flow_handle_query(struct rte_eth_dev *dev, const struct rte_flow_action_handle *handle,
	void *data, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	/* a query with reset changes what the handle was const for: the NIC's, not the caller's */
	struct rte_flow_action_handle *own = (struct rte_flow_action_handle *)(uintptr_t)handle;
	uint64_t ns = port->args.profile.query_ns;
	int ret;

	pthread_mutex_lock(&port->flow->calls);
	if (ns > 0)
		sim_firmware_wait(port, ns);
	pthread_mutex_lock(&port->lock);
	ret = sim_indirect_query(port, own, data);
	pthread_mutex_unlock(&port->lock);
	pthread_mutex_unlock(&port->flow->calls);
	return end(port, ret, handle, error);
}
