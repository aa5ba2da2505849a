/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "drivers/flowsim/calls/async.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_pool.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/rule_life.h"

static int refuse(
	struct sim_fault_at *fault, int code, enum rte_flow_error_type type, const char *why)
{
	*fault = (struct sim_fault_at){NULL, type, why};
	return code;
}

/* A blank rule: from the stock that the firmware fills or, where it did not keep up, by ourselves. */
static struct rte_flow *blank_rule(struct sim_flow_queue *queue, unsigned n_words)
{
	struct sim_stock *stock = __atomic_load_n(&queue->stocks[n_words], __ATOMIC_ACQUIRE);

	if (stock == NULL || __atomic_load_n(&stock->put, __ATOMIC_ACQUIRE) == stock->taken) {
		pthread_mutex_lock(&queue->port->lock);
		int ret = sim_stock_fill(queue, n_words);

		pthread_mutex_unlock(&queue->port->lock);
		if (ret < 0)
			return NULL;
		stock = queue->stocks[n_words];
	}
	struct rte_flow *rule = stock->rules[stock->taken % SIM_STOCK];

	__atomic_store_n(&stock->taken, stock->taken + 1, __ATOMIC_RELEASE);
	return rule;
}

/* Back to where it came from, since it was the last that was taken and nobody fills that far. */
static void unblank_rule(struct sim_flow_queue *queue, struct rte_flow *rule, unsigned n_words)
{
	pthread_mutex_lock(&queue->port->lock);
	sim_rule_free(queue->port, rule, n_words);
	pthread_mutex_unlock(&queue->port->lock);
}

/* Actions that take a parse, and then a look whether this kind of NIC has them. */
static int parse_actions(struct rte_flow *rule, const struct sim_template_use *use,
	const struct sim_actions_use *actions_use, const struct rte_flow_action actions[],
	struct sim_actions **held, struct sim_fault_at *fault)
{
	struct rte_flow_action list[SIM_MAX_ACTIONS];
	struct rte_flow_action_age ages[SIM_MAX_ACTIONS];
	struct sim_port *port = rule->port;
	struct sim_draft draft = {.domain = rule->domain,
		.group = rule->group,
		.priority = rule->priority,
		.pattern = use->template->read.pattern};
	int ret = sim_actions_merge(actions_use->template, actions, list, ages, fault);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&port->lock);
	ret = sim_actions_parse(&draft.actions, port, rule->group, list, fault);
	pthread_mutex_unlock(&port->lock);
	if (ret < 0)
		return ret;
	ret = sim_profile_check(&port->args.profile, &draft, fault);
	if (ret == 0) {
		rule->mark_id = draft.actions.mark_id;
		rule->age_context = draft.actions.age_context;
		rule->count_handle = draft.actions.count_handle;
		rule->age_handle = draft.actions.age_handle;
		draft.actions.count_handle = draft.actions.age_handle = NULL;
		*held = sim_actions_hold(port, &draft.actions);
		ret = *held == NULL ? -errno : 0;
	}
	if (ret < 0)
		sim_actions_fini(&draft.actions);
	return ret;
}

/* What items and actions say goes into the rule and its operation. */
static int fill_rule(struct sim_op *op, struct rte_flow *rule, const struct rte_flow_item items[],
	const struct rte_flow_action actions[], struct sim_fault_at *fault)
{
	const struct sim_template_use *use = sim_template_use_of(rule);
	const struct rte_flow_template_table *table = use->table;
	uint16_t named;
	int ret =
		sim_pattern_template_fill(&use->template->read, rule->values, &named, items, fault);

	if (ret < 0)
		return ret;
	rule->port = table->port;
	if (named != SIM_NO_PORT && named != rule->port->id)
		return refuse(fault, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM,
			"rules of another port's packets are made on that port");
	rule->async = true;
	rule->domain = table->domain;
	rule->group = table->group;
	rule->priority = table->priority;
	rule->ingress = rule->port->id;
	op->held = NULL;
	if (sim_actions_choose(&table->actions[op->actions], actions, &op->choice, rule))
		return 0;
	return parse_actions(rule, use, &table->actions[op->actions], actions, &op->held, fault);
}

static int check_table(const struct sim_port *port, const struct rte_flow_template_table *table,
	uint8_t pattern, uint8_t actions, struct sim_fault_at *fault)
{
	if (table == NULL || table->magic != SIM_TABLE_MAGIC || table->port != port)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_HANDLE,
			"no template table of this port");
	if (pattern >= table->n_patterns || actions >= table->n_actions)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_UNSPECIFIED,
			"the table has no such template");
	return 0;
}

/* The operation is in place; what it takes from here on is given back when it is refused. */
static int create_in(struct sim_flow_queue *queue, struct sim_op *op, struct sim_template_use *use,
	const struct rte_flow_item items[], const struct rte_flow_action actions[],
	struct sim_fault_at *fault)
{
	unsigned n_words = use->template->read.pattern.n_words;

	if (!sim_template_take(use->table))
		return refuse(fault, -ENOSPC, RTE_FLOW_ERROR_TYPE_HANDLE,
			"the table has as many rules as it was made for");
	struct rte_flow *rule = blank_rule(queue, n_words);
	int ret = rule == NULL ? refuse(fault, -ENOMEM, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL) : 0;

	if (ret == 0) {
		rule->use = &use->use;
		ret = fill_rule(op, rule, items, actions, fault);
	}
	if (ret < 0) {
		sim_template_untake(use->table);
		if (rule != NULL)
			unblank_rule(queue, rule, n_words);
		return ret;
	}
	op->kind = SIM_OP_RULE_CREATE;
	op->n_words = (uint8_t)n_words;
	op->rule = rule;
	return 0;
}

struct rte_flow *sim_async_create(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow_template_table *table,
	const struct rte_flow_item items[], uint8_t pattern_template,
	const struct rte_flow_action actions[], uint8_t actions_template, void *user_data,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret == 0)
		ret = check_table(port, table, pattern_template, actions_template, &fault);
	if (ret == 0 && (items == NULL || actions == NULL))
		ret = refuse(&fault, -EINVAL, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, "nothing is said");
	if (ret == 0) {
		op->actions = actions_template;
		op->user_data = user_data;
		ret = create_in(
			queue, op, &table->patterns[pattern_template], items, actions, &fault);
	}
	if (ret < 0) {
		sim_refuse(port, error, ret, &fault);
		return NULL;
	}
	struct rte_flow *rule = op->rule;

	sim_async_enqueue(queue, attr);
	return rule;
}

int sim_async_destroy(struct rte_eth_dev *dev, uint32_t queue_id,
	const struct rte_flow_op_attr *attr, struct rte_flow *flow, void *user_data,
	struct rte_flow_error *error)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_fault_at fault = {.cause = NULL};
	struct sim_flow_queue *queue;
	struct sim_op *op = NULL;
	int ret = sim_async_begin(port, queue_id, &queue, &op, &fault);

	if (ret == 0 && flow == NULL)
		ret = refuse(&fault, -EINVAL, RTE_FLOW_ERROR_TYPE_HANDLE, "no rule");
	if (ret < 0)
		return sim_refuse(port, error, ret, &fault);
	op->kind = SIM_OP_RULE_DESTROY;
	op->user_data = user_data;
	op->rule = flow;
	sim_async_enqueue(queue, attr);
	return 0;
}
