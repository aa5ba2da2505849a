/* SPDX-License-Identifier: BSD-3-Clause */
/* Indirect actions are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "rteflow/flow_rule.h"

#include <errno.h>

#include <rte_errno.h>

#include "rteflow/answer.h"

/* How often a counter is asked for its last value, and its handle to go. */
#define TRIES 8

static int make_counter(
	const struct flow_request *request, struct flow_rule *rule, struct provider_why *why)
{
	const struct rte_flow_indir_action_conf conf = {
		.ingress = request->attr.ingress, .transfer = request->attr.transfer};
	static const struct rte_flow_action_count count;
	const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &count};
	struct rte_flow_error said = {0};

	rte_errno = 0;
	rule->handle = rte_flow_action_handle_create(request->port_id, &conf, &action, &said);
	request->actions[0].conf = rule->handle;
	if (rule->handle != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	return request->others ? -EOPNOTSUPP : answer_insert(why->error, request->taken);
}

static int make_flow(
	const struct flow_request *request, struct flow_rule *rule, struct provider_why *why)
{
	struct rte_flow_error said = {0};

	/* a driver may have no such call, or say yes to all */
	int ret = !request->others ? 0
				   : rte_flow_validate(request->port_id, &request->attr,
					     request->items, request->actions, &said);

	if (ret != 0 && ret != -ENOSYS) {
		answer_why(why, -ret, &said);
		return -EOPNOTSUPP;
	}
	said = (struct rte_flow_error){0};
	rte_errno = 0;
	rule->flow = rte_flow_create(
		request->port_id, &request->attr, request->items, request->actions, &said);
	if (rule->flow != NULL)
		return 0;
	answer_why(why, rte_errno, &said);
	return answer_insert(why->error, request->taken);
}

int flow_rule_make(
	const struct flow_request *request, struct flow_rule *rule, struct provider_why *why)
{
	const struct rte_flow_action *action = request->actions;
	int ret = 0;

	*rule = (struct flow_rule){0};
	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++)
		rule->counts |= action->type == RTE_FLOW_ACTION_TYPE_COUNT ||
				action->type == RTE_FLOW_ACTION_TYPE_INDIRECT;
	if (request->actions[0].type == RTE_FLOW_ACTION_TYPE_INDIRECT)
		ret = make_counter(request, rule, why);
	if (ret == 0)
		ret = make_flow(request, rule, why);
	if (ret != 0)
		flow_rule_forget(request->port_id, rule, NULL);
	return ret;
}

int flow_rule_count(uint16_t port_id, const struct flow_rule *rule, struct provider_count *count,
	struct provider_why *why)
{
	struct rte_flow_query_count told = {0};
	struct rte_flow_error said = {0};

	if (rule->handle == NULL)
		return answer_count(port_id, rule->flow, count, why);
	int ret = rte_flow_action_handle_query(port_id, rule->handle, &told, &said);

	return answer_told(ret, &told, &said, count, why);
}

int flow_rule_remove(
	uint16_t port_id, struct flow_rule *rule, struct flow_last *last, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	struct provider_why unread;

	/* a counter of the rule's own goes with it: this is the last that is known */
	if (last != NULL)
		last->told = rule->handle == NULL && rule->counts &&
			     flow_rule_count(port_id, rule, &last->count, &unread) == 0;
	int ret = rte_flow_destroy(port_id, rule->flow, &said);

	if (ret != 0) {
		answer_why(why, -ret, &said);
		ret = answer_remove(why->error);
	}
	if (ret == 0)
		flow_rule_forget(port_id, rule, last);
	return ret;
}

void flow_rule_forget(uint16_t port_id, struct flow_rule *rule, struct flow_last *last)
{
	struct rte_flow_error said = {0};
	struct provider_why why;
	int read = last != NULL && rule->handle != NULL ? -EIO : 0;
	int ret = rule->handle != NULL ? -EIO : 0;

	if (read != 0) {
		for (unsigned i = 0; i < TRIES && (read == -EAGAIN || read == -EIO); i++)
			read = flow_rule_count(port_id, rule, &last->count, &why);
		last->told = last->count.final = read == 0;
	}
	/* what does not go goes with the port */
	for (unsigned i = 0; i < TRIES && ret != 0; i++)
		ret = rte_flow_action_handle_destroy(port_id, rule->handle, &said);
	*rule = (struct flow_rule){0};
}
