/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/calls/flow.h"

#include <errno.h>
#include <stdlib.h>

#include "drivers/flowsim/calls/flow_find.h"
#include "drivers/flowsim/port/firmware.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/draft.h"
#include "drivers/flowsim/rules/extra.h"
#include "drivers/flowsim/rules/fault_set.h"
#include "drivers/flowsim/rules/flow_state.h"
#include "drivers/flowsim/rules/rule_life.h"

/* The answer of a blocking call, when that fault strikes. Under the lock of `home`. */
static uint64_t lateness(struct sim_port *home)
{
	uint64_t ns = sim_fault_delay_ns(home, SIM_FAULT_LATE);

	home->told.late += ns > 0;
	return ns;
}

static void pause_for(const struct sim_port *port, uint64_t ns)
{
	if (ns > 0)
		sim_firmware_wait(port, ns);
}

static int validate(struct rte_eth_dev *dev, const struct rte_flow_attr *attr,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_draft draft;
	int ret;

	pthread_mutex_lock(&port->lock);
	if (port->dead)
		ret = -EIO;
	else if (port->args.profile.quirks & SIM_QUIRK_VALIDATE_YES)
		ret = sim_draft_read(&draft, port, attr, items, actions, &fault);
	else
		ret = sim_draft_parse(&draft, port, attr, items, actions, &fault);
	if (ret == 0)
		sim_draft_fini(&draft);
	pthread_mutex_unlock(&port->lock);
	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

static int parse(struct sim_port *port, struct sim_draft *draft, const struct rte_flow_attr *attr,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct sim_fault_at *fault)
{
	int ret;

	pthread_mutex_lock(&port->lock);
	ret = sim_draft_parse(draft, port, attr, items, actions, fault);
	if (ret < 0)
		port->told.refused++;
	pthread_mutex_unlock(&port->lock);
	return ret;
}

/* Where the draft's packets arrive: a transfer rule may be about another port of the NIC. */
static struct sim_port *home_of_draft(struct sim_port *port, const struct sim_draft *draft)
{
	uint16_t named = draft->pattern.port;

	if (named == SIM_NO_PORT || named == port->id)
		return port;
	return sim_nic_port(port, named);
}

/* In the table at once, live when the NIC has done its work. */
static struct rte_flow *create_in(struct sim_port *home, const struct sim_port *asker,
	struct sim_draft *draft, int *error, struct sim_fault_at *fault)
{
	struct rte_flow *rule;
	uint64_t late;

	pthread_mutex_lock(&home->lock);
	rule = sim_rule_create(home, draft, error, fault);
	pthread_mutex_unlock(&home->lock);
	if (rule == NULL)
		return NULL;
	if (home != asker)
		rule->asked_by = (uint16_t)(asker->id + 1);
	pause_for(home, home->args.profile.create_ns);
	pthread_mutex_lock(&home->lock);
	sim_rule_go_live(rule);
	late = lateness(home);
	pthread_mutex_unlock(&home->lock);
	pause_for(home, late);
	return rule;
}

static struct rte_flow *create(struct rte_eth_dev *dev, const struct rte_flow_attr *attr,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev), *home = NULL;
	struct sim_fault_at fault = {.cause = NULL};
	struct rte_flow *rule = NULL;
	struct sim_draft draft;
	int ret;

	pthread_mutex_lock(&port->flow->calls);
	ret = parse(port, &draft, attr, items, actions, &fault);
	if (ret == 0) {
		home = home_of_draft(port, &draft);
		if (home != NULL)
			rule = create_in(home, port, &draft, &ret, &fault);
		else
			ret = -ENODEV;
		if (rule == NULL)
			sim_draft_fini(&draft);
	}
	pthread_mutex_unlock(&port->flow->calls);
	if (rule == NULL)
		sim_refuse(port, error, ret, &fault);
	return rule;
}

/* A rule that no asynchronous operation is at work on leaves; the lock is let go meanwhile. */
static int leave(struct sim_port *home, struct rte_flow *rule, uint64_t *late)
{
	uint64_t ns = home->args.profile.destroy_ns;
	int ret = sim_fault_fails(home, SIM_OP_DESTROY);

	if (ret < 0)
		return ret;
	rule->state = SIM_RULE_LEAVING;
	ns += sim_fault_delay_ns(home, SIM_FAULT_STALL_DELETE);
	pthread_mutex_unlock(&home->lock);
	pause_for(home, ns);
	pthread_mutex_lock(&home->lock);
	sim_rule_destroy(rule);
	*late = lateness(home);
	return 0;
}

static bool is_settled(const struct rte_flow *rule)
{
	return rule->state != SIM_RULE_PENDING && rule->state != SIM_RULE_LEAVING;
}

static int destroy(struct rte_eth_dev *dev, struct rte_flow *rule, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev), *home;
	struct sim_fault_at fault = {
		.cause = rule, .type = RTE_FLOW_ERROR_TYPE_HANDLE, .message = NULL};
	uint64_t late = 0;
	int ret = -ENOENT;

	pthread_mutex_lock(&port->flow->calls);
	home = sim_find_rule(port, rule);
	if (home != NULL) {
		ret = is_settled(rule) ? leave(home, rule, &late) : -EBUSY;
		pthread_mutex_unlock(&home->lock);
		pause_for(home, late);
	}
	pthread_mutex_unlock(&port->flow->calls);
	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

/* The first that the application may destroy; those that stay are few, or about to leave. */
static struct rte_flow *first_of(const struct sim_port *home, uint16_t asked_by)
{
	struct rte_flow *rule;

	TAILQ_FOREACH(rule, &home->rules, link) {
		if (rule->asked_by == asked_by && !rule->ghost && is_settled(rule))
			return rule;
	}
	return NULL;
}

/* The whole table at once. */
static int empty_table(struct sim_port *home, uint16_t asked_by)
{
	uint64_t ns = home->args.profile.flush_ns;
	struct rte_flow *rule;
	int ret = sim_fault_fails(home, SIM_OP_DESTROY);

	if (ret < 0)
		return ret;
	ns += sim_fault_delay_ns(home, SIM_FAULT_STALL_DELETE);
	pthread_mutex_unlock(&home->lock);
	pause_for(home, ns);
	pthread_mutex_lock(&home->lock);
	while ((rule = first_of(home, asked_by)) != NULL)
		sim_rule_destroy(rule);
	return 0;
}

static int flush_in(struct sim_port *home, uint16_t asked_by)
{
	struct rte_flow *rule;
	int ret = 0;

	pthread_mutex_lock(&home->lock);
	if (home->args.profile.flush_ns != 0 && first_of(home, asked_by) != NULL)
		ret = empty_table(home, asked_by);
	while (ret == 0 && (rule = first_of(home, asked_by)) != NULL) {
		uint64_t late = 0;

		ret = leave(home, rule, &late);
		if (late > 0) {
			pthread_mutex_unlock(&home->lock);
			pause_for(home, late);
			pthread_mutex_lock(&home->lock);
		}
	}
	pthread_mutex_unlock(&home->lock);
	return ret;
}

/* As slow as its destroys, where the NIC has no such call. */
static int flush(struct rte_eth_dev *dev, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	int ret;

	pthread_mutex_lock(&port->flow->calls);
	ret = flush_in(port, 0);
	for (uint16_t id = 0; ret == 0 && id < RTE_MAX_ETHPORTS; id++) {
		struct sim_port *other = id == port->id ? NULL : sim_nic_port(port, id);

		if (other != NULL)
			ret = flush_in(other, (uint16_t)(port->id + 1));
	}
	pthread_mutex_unlock(&port->flow->calls);
	return ret < 0 ? sim_refuse(port, error, ret, NULL) : 0;
}

static int query_count(struct sim_port *home, const struct rte_flow *rule, void *data)
{
	struct sim_indirect *handle = rule->count_handle;

	if (handle != NULL) {
		sim_count_answer(
			home, sim_indirect_count(handle), handle, 0, &handle->reported, data);
		return 0;
	}
	if (!rule->actions->count)
		return -EINVAL;
	sim_count_answer(
		home, sim_rule_count(rule), rule, rule->serial, &rule->extra->reported, data);
	return 0;
}

static int query_age(struct sim_port *home, const struct rte_flow *rule, void *data)
{
	if (rule->age_handle != NULL)
		sim_age_answer(home, &rule->age_handle->age, data);
	else if (rule->actions->age)
		sim_age_answer(home, &rule->extra->age, data);
	else
		return -EINVAL;
	return 0;
}

static int answer(struct sim_port *home, const struct rte_flow *rule,
	const struct rte_flow_action *action, void *data, struct sim_fault_at *fault)
{
	int ret = -ENOTSUP;

	*fault = (struct sim_fault_at){.cause = action, .type = RTE_FLOW_ERROR_TYPE_ACTION};
	if (action->type == RTE_FLOW_ACTION_TYPE_COUNT)
		ret = query_count(home, rule, data);
	else if (action->type == RTE_FLOW_ACTION_TYPE_AGE)
		ret = query_age(home, rule, data);
	else
		fault->message = "only COUNT and AGE can be queried";
	if (ret == -EINVAL)
		fault->message = "the rule has no such action";
	home->told.queried += ret == 0;
	return ret;
}

static int query(struct rte_eth_dev *dev, struct rte_flow *rule,
	const struct rte_flow_action *action, void *data, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev), *home;
	struct sim_fault_at fault = {.cause = rule, .type = RTE_FLOW_ERROR_TYPE_HANDLE};
	int ret = -ENOENT;

	if (action == NULL || data == NULL)
		return sim_refuse(port, error, -EINVAL, &fault);
	pthread_mutex_lock(&port->flow->calls);
	pause_for(port, port->args.profile.query_ns);
	home = sim_find_rule(port, rule);
	if (home != NULL) {
		ret = rule->uncounted ? -EIO : sim_fault_fails(home, SIM_OP_QUERY);
		if (ret == 0)
			ret = answer(home, rule, action, data, &fault);
		pthread_mutex_unlock(&home->lock);
	}
	pthread_mutex_unlock(&port->flow->calls);
	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

static int isolate(struct rte_eth_dev *dev, int set, struct rte_flow_error *error)
{
	static const struct sim_fault_at fault = {.type = RTE_FLOW_ERROR_TYPE_UNSPECIFIED,
		.message = "the port has to be stopped for that"};
	struct sim_port *port = sim_port_of(dev);
	int ret = 0;

	pthread_mutex_lock(&port->lock);
	if (port->started && port->isolated != (set != 0))
		ret = -EBUSY;
	else
		port->isolated = set != 0;
	pthread_mutex_unlock(&port->lock);
	return ret < 0 ? sim_refuse(port, error, ret, &fault) : 0;
}

static int dev_dump(
	struct rte_eth_dev *dev, struct rte_flow *rule, FILE *file, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev), *home = port;

	if (file == NULL)
		return sim_refuse(port, error, -EINVAL, NULL);
	if (rule != NULL)
		home = sim_find_rule(port, rule);
	else
		pthread_mutex_lock(&home->lock);
	if (home == NULL)
		return sim_refuse(port, error, -ENOENT, NULL);
	sim_dump(home, rule, file);
	pthread_mutex_unlock(&home->lock);
	return 0;
}

static int get_aged_flows(
	struct rte_eth_dev *dev, void **contexts, uint32_t n_contexts, struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	int ret;

	if (contexts == NULL && n_contexts != 0)
		return sim_refuse(port, error, -EINVAL, NULL);
	pthread_mutex_lock(&port->lock);
	ret = port->dead ? -EIO : sim_age_take(port, contexts, n_contexts);
	pthread_mutex_unlock(&port->lock);
	return ret < 0 ? sim_refuse(port, error, ret, NULL) : ret;
}

/* Flow queues share what has aged: without RTE_FLOW_PORT_FLAG_STRICT_QUEUE the queue does not matter. */
static int get_q_aged_flows(struct rte_eth_dev *dev, uint32_t queue, void **contexts,
	uint32_t n_contexts, struct rte_flow_error *error)
{
	(void)queue;
	return get_aged_flows(dev, contexts, n_contexts, error);
}

const struct rte_flow_ops sim_flow_ops = {
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.flush = flush,
	.query = query,
	.isolate = isolate,
	.dev_dump = dev_dump,
	.get_aged_flows = get_aged_flows,
	.get_q_aged_flows = get_q_aged_flows,
	.action_handle_create = sim_flow_handle_create,
	.action_handle_destroy = sim_flow_handle_destroy,
	.action_handle_update = sim_flow_handle_update,
	.action_handle_query = sim_flow_handle_query,
};
