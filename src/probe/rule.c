/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "probe/rule.h"

#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"
#include "rteflow/trial.h"

/* Marks of rules, in turn: numbers that any card has room for which marks at all. */
#define MARK_FIRST 0x21
#define N_MARKS 31
#define QUEUE 0
#define AWAIT_US 1000000
#define TRIES 8
/* So many errors in a row say of a rule which may never have been made that it was not. */
#define UNKNOWN_ERRORS 2

void rule_step(const struct rule *rule, const char *what, unsigned rules)
{
	const struct rule_port *port = rule->port;
	char text[128];

	snprintf(text, sizeof(text), "%s, %s: %s", rule->form->pattern.name,
		rule->form->actions->name, what);
	if (port->step != NULL)
		port->step(port->context, text, port->n_left + rules);
}

uint32_t rule_mark(struct rule_port *port)
{
	return port->mark != 0 ? port->mark : MARK_FIRST + port->n_marks++ % N_MARKS;
}

static void aim_at_queues(struct rule *rule)
{
	const struct form_actions *actions = rule->form->actions;
	const struct rule_port *port = rule->port;
	struct form_aim *aim = &rule->aim;
	uint16_t from = rule->flow.queue < 2 ? 2 : 0;

	aim->port = port->rss;
	aim->queue = (uint16_t)((rule->flow.queue + 1) % port->n_queues);
	rule->queues = UINT64_MAX;
	if (actions->fate == FORM_QUEUE || (actions->mark && actions->marked == SHAPE_QUEUE)) {
		rule->queues = UINT64_C(1) << aim->queue;
	} else if (actions->mark && actions->marked == SHAPE_RSS && port->n_queues >= 4) {
		/* two that lie together: ice takes no others */
		aim->port.n_queues = 2;
		aim->port.queues[0] = from;
		aim->port.queues[1] = from + 1;
		rule->queues = UINT64_C(3) << from;
	}
}

bool rule_aim(struct rule *rule, struct rule_port *port, const struct form *form)
{
	const struct form_pattern *pattern = &form->pattern;
	const struct observer *observer = port->observer;

	*rule = (struct rule){.port = port, .form = form};
	rule->observed = observer != NULL && pattern->special != FORM_VXLAN &&
			 observer->find(observer->context, pattern, &rule->flow);
	if (rule->observed) {
		rule->aim.rule.key = rule->flow.key;
		rule->aim.rule.from = rule->flow.from;
		rule->aim.to = rule->flow.to;
	} else {
		trial_rule(&rule->aim.rule,
			pattern->kind == PROVIDER_N_KINDS ? PROVIDER_IPV4_UDP : pattern->kind,
			pattern->shape.vlan, 0);
		/* an address for private use */
		rule->aim.to = (struct rte_ether_addr){{0x02, 0, 0x5e, 0, 0x53, 0x01}};
	}
	rule->aim.rule.mark = rule_mark(port);
	rule->aim.target = port->target;
	aim_at_queues(rule);
	return rule->observed;
}

void rule_watch(const struct rule *rule, uint64_t queues, unsigned wanted, struct observed *seen)
{
	const struct observer *observer = rule->port->observer;
	const struct observer_watch watch = {.flow = &rule->flow,
		.mark = rule->aim.rule.mark,
		.queues = queues,
		.wanted = wanted};

	memset(seen, 0, sizeof(*seen));
	observer->watch(observer->context, &watch, seen);
}

int rule_validate(
	const struct rule_port *port, const struct form_rule *built, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret;

	if (port->by_templates)
		return -ENOSYS;
	rte_errno = 0;
	ret = rte_flow_validate(port->id, &built->attr, built->items, built->actions, &said);
	if (ret != 0)
		answer_why(why, ret < 0 ? -ret : ret, &said);
	return ret;
}

/* Operations are told apart by it: completions may come late. */
static void *next_serial(struct rule_port *port)
{
	return (void *)(uintptr_t)++port->serial;
}

/* Waits until what was asked of the queue last is done. */
static int await_serial(const struct rule_port *port, struct provider_why *why)
{
	uint64_t begin_us = monotonic_us();
	struct rte_flow_error said = {0};
	struct rte_flow_op_result result;
	int ret = -EIO;

	for (unsigned i = 0; i < TRIES && ret != 0; i++)
		ret = rte_flow_push(port->id, QUEUE, &said);
	if (ret < 0) {
		answer_why(why, -ret, &said);
		return ret;
	}
	while (monotonic_us() - begin_us < AWAIT_US) {
		int got = rte_flow_pull(port->id, QUEUE, &result, 1, &said);

		if (got <= 0 || (uintptr_t)result.user_data != port->serial) {
			rte_pause();
			continue;
		}
		if (result.status == RTE_FLOW_OP_SUCCESS)
			return 0;
		answer_words(why, EIO, "its completion says error, and not why");
		return -EIO;
	}
	answer_words(why, ETIMEDOUT, "no completion came");
	return -ETIMEDOUT;
}

static void free_templates(const struct rule_port *port, struct rule_handle *handle)
{
	struct rte_flow_error said = {0};

	/* what does not go goes with the port */
	if (handle->table != NULL)
		(void)rte_flow_template_table_destroy(port->id, handle->table, &said);
	if (handle->actions != NULL)
		(void)rte_flow_actions_template_destroy(port->id, handle->actions, &said);
	if (handle->pattern != NULL)
		(void)rte_flow_pattern_template_destroy(port->id, handle->pattern, &said);
	memset(handle, 0, sizeof(*handle));
}

static bool make_templates(const struct rule_port *port, const struct form_rule *built,
	struct rule_handle *handle, struct rte_flow_error *said)
{
	const struct rte_flow_pattern_template_attr pattern = {
		.ingress = built->attr.ingress, .transfer = built->attr.transfer};
	const struct rte_flow_actions_template_attr actions = {
		.ingress = built->attr.ingress, .transfer = built->attr.transfer};
	const struct rte_flow_template_table_attr table = {
		.flow_attr = built->attr, .nb_flows = 16};

	handle->pattern = rte_flow_pattern_template_create(port->id, &pattern, built->items, said);
	if (handle->pattern != NULL)
		handle->actions = rte_flow_actions_template_create(
			port->id, &actions, built->actions, built->masks, said);
	if (handle->actions != NULL)
		handle->table = rte_flow_template_table_create(
			port->id, &table, &handle->pattern, 1, &handle->actions, 1, said);
	return handle->table != NULL;
}

static int destroy_once(
	struct rule_port *port, const struct rule_handle *handle, struct provider_why *why)
{
	static const struct rte_flow_op_attr at_once = {.postpone = 0};
	struct rte_flow_error said = {0};
	int ret;

	if (handle->table == NULL)
		ret = rte_flow_destroy(port->id, handle->flow, &said);
	else
		ret = rte_flow_async_destroy(
			port->id, QUEUE, &at_once, handle->flow, next_serial(port), &said);
	if (ret == 0 && handle->table != NULL)
		return await_serial(port, why);
	if (ret != 0)
		answer_why(why, -ret, &said);
	return ret;
}

/* `unheard`: no completion told of what was asked of it last. */
static int destroy(
	struct rule_port *port, struct rule_handle *handle, bool unheard, struct provider_why *why)
{
	unsigned n_errors = 0;
	int ret = -EIO;

	for (unsigned i = 0; i < TRIES && ret != 0; i++) {
		ret = destroy_once(port, handle, why);
		n_errors += unheard && ret == -EIO;
		/*
		 * One that is gone already, or was never made, is no longer known: that is an error then. One alone
		 * may be a failure.
		 */
		if (ret == -ENOENT || n_errors >= UNKNOWN_ERRORS)
			ret = 0;
		unheard |= ret == -ETIMEDOUT;
	}
	if (ret == 0)
		free_templates(port, handle);
	else
		port->n_left++;
	return ret;
}

static int create_by_template(struct rule_port *port, const struct form_rule *built,
	struct rule_handle *handle, struct provider_why *why)
{
	static const struct rte_flow_op_attr at_once = {.postpone = 0};
	struct rte_flow_error said = {0};
	struct provider_why ignored;
	int ret;

	rte_errno = 0;
	if (make_templates(port, built, handle, &said))
		handle->flow = rte_flow_async_create(port->id, QUEUE, &at_once, handle->table,
			built->items, 0, built->actions, 0, next_serial(port), &said);
	if (handle->flow == NULL) {
		answer_why(why, rte_errno, &said);
		free_templates(port, handle);
		return -why->error;
	}
	ret = await_serial(port, why);
	if (ret == -EIO) {
		/* its handle is given back as well, where it is one still */
		(void)destroy_once(port, handle, &ignored);
		free_templates(port, handle);
	} else if (ret < 0) {
		(void)destroy(port, handle, ret == -ETIMEDOUT, &ignored);
	}
	return ret;
}

/* Is it what ethdev says for drivers without blocking calls? */
static bool has_no_calls(const struct provider_why *why)
{
	return why->error == ENOSYS && strcmp(why->words, rte_strerror(ENOSYS)) == 0;
}

int rule_create(struct rule_port *port, const struct form_rule *built, struct rule_handle *handle,
	struct provider_why *why)
{
	struct rte_flow_error said = {0};

	memset(handle, 0, sizeof(*handle));
	for (unsigned i = 0; i < RULE_TRIES && !port->by_templates; i++) {
		rte_errno = 0;
		handle->flow = rte_flow_create(
			port->id, &built->attr, built->items, built->actions, &said);
		if (handle->flow != NULL) {
			*why = (struct provider_why){0};
			return 0;
		}
		answer_why(why, rte_errno, &said);
		if (!rule_is_passing(why->error))
			break;
	}
	if (!port->by_templates && !(port->flow_queues && has_no_calls(why)))
		return -why->error;
	port->by_templates = true;
	return create_by_template(port, built, handle, why);
}

int rule_destroy(struct rule_port *port, struct rule_handle *handle, struct provider_why *why)
{
	return destroy(port, handle, false, why);
}
