/* SPDX-License-Identifier: BSD-3-Clause */
/* Templates and flow queues are experimental still. */
#define ALLOW_EXPERIMENTAL_API

#include "probe/cell_calls.h"

#include <errno.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_pause.h>

#include "base/monotonic.h"
#include "rteflow/answer.h"

#define QUEUE 0
#define AWAIT_US 1000000
#define TRIES 8
/* Errors in a row that say of a rule which may never have been made that it was not. */
#define UNKNOWN_ERRORS 2

int cell_validate(
	const struct cell_port *port, const struct form_rule *built, struct provider_why *why)
{
	struct rte_flow_error said = {0};
	int ret;

	rte_errno = 0;
	ret = rte_flow_validate(port->id, &built->attr, built->items, built->actions, &said);
	if (ret != 0)
		answer_why(why, ret < 0 ? -ret : ret, &said);
	return ret;
}

/* Operations are told apart: completions may come late. */
static void *cell_calls_next_serial(struct cell_port *port)
{
	return (void *)(uintptr_t)++port->serial;
}

/* What was asked of the queue last is done. */
static int cell_calls_await(const struct cell_port *port, struct provider_why *why)
{
	uint64_t begin_us = monotonic_us();
	struct rte_flow_error said = {0};
	struct rte_flow_op_result result;
	int ret = -EIO;

	for (unsigned i = 0; i < TRIES && ret != 0; i++)
		ret = rte_flow_push(port->id, QUEUE, &said);
	while (ret == 0 && monotonic_us() - begin_us < AWAIT_US) {
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
	if (ret < 0)
		answer_why(why, -ret, &said);
	else
		answer_words(why, ETIMEDOUT, "no completion came");
	return ret < 0 ? ret : -ETIMEDOUT;
}

static void free_templates(const struct cell_port *port, struct cell_rule *rule)
{
	struct rte_flow_error said = {0};

	/* what does not go goes with the port */
	if (rule->table != NULL)
		(void)rte_flow_template_table_destroy(port->id, rule->table, &said);
	if (rule->actions != NULL)
		(void)rte_flow_actions_template_destroy(port->id, rule->actions, &said);
	if (rule->pattern != NULL)
		(void)rte_flow_pattern_template_destroy(port->id, rule->pattern, &said);
	memset(rule, 0, sizeof(*rule));
}

static bool cell_calls_make_templates(const struct cell_port *port, const struct form_rule *built,
	struct cell_rule *rule, struct rte_flow_error *said)
{
	const struct rte_flow_pattern_template_attr pattern = {
		.ingress = built->attr.ingress, .transfer = built->attr.transfer};
	const struct rte_flow_actions_template_attr actions = {
		.ingress = built->attr.ingress, .transfer = built->attr.transfer};
	const struct rte_flow_template_table_attr table = {
		.flow_attr = built->attr, .nb_flows = 16};

	rule->pattern = rte_flow_pattern_template_create(port->id, &pattern, built->items, said);
	if (rule->pattern != NULL)
		rule->actions = rte_flow_actions_template_create(
			port->id, &actions, built->actions, built->masks, said);
	if (rule->actions != NULL)
		rule->table = rte_flow_template_table_create(
			port->id, &table, &rule->pattern, 1, &rule->actions, 1, said);
	return rule->table != NULL;
}

static int destroy_once(
	struct cell_port *port, const struct cell_rule *rule, struct provider_why *why)
{
	static const struct rte_flow_op_attr at_once = {.postpone = 0};
	struct rte_flow_error said = {0};
	int ret;

	if (rule->table == NULL)
		ret = rte_flow_destroy(port->id, rule->flow, &said);
	else
		ret = rte_flow_async_destroy(
			port->id, QUEUE, &at_once, rule->flow, cell_calls_next_serial(port), &said);
	if (ret == 0 && rule->table != NULL)
		return cell_calls_await(port, why);
	if (ret != 0)
		answer_why(why, -ret, &said);
	return ret;
}

/* `unheard`: no completion told of what was asked of it last. */
static int cell_calls_destroy(
	struct cell_port *port, struct cell_rule *rule, bool unheard, struct provider_why *why)
{
	unsigned n_errors = 0;
	int ret = -EIO;

	for (unsigned i = 0; i < TRIES && ret != 0; i++) {
		ret = destroy_once(port, rule, why);
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
		free_templates(port, rule);
	else
		port->n_left++;
	return ret;
}

static int create_by_template(struct cell_port *port, const struct form_rule *built,
	struct cell_rule *rule, struct provider_why *why)
{
	static const struct rte_flow_op_attr at_once = {.postpone = 0};
	struct rte_flow_error said = {0};
	int ret;

	rte_errno = 0;
	if (cell_calls_make_templates(port, built, rule, &said))
		rule->flow = rte_flow_async_create(port->id, QUEUE, &at_once, rule->table,
			built->items, 0, built->actions, 0, cell_calls_next_serial(port), &said);
	if (rule->flow == NULL) {
		answer_why(why, rte_errno, &said);
		free_templates(port, rule);
		return -why->error;
	}
	ret = cell_calls_await(port, why);
	if (ret == -EIO) {
		struct provider_why ignored;

		/* its handle is given back as well, where it is one still */
		(void)destroy_once(port, rule, &ignored);
		free_templates(port, rule);
	} else if (ret < 0) {
		struct provider_why ignored;

		(void)cell_calls_destroy(port, rule, ret == -ETIMEDOUT, &ignored);
	}
	return ret;
}

/* What ethdev says for drivers without blocking calls. */
static bool has_no_calls(const struct provider_why *why)
{
	return why->error == ENOSYS && strcmp(why->words, rte_strerror(ENOSYS)) == 0;
}

int cell_create(struct cell_port *port, const struct form_rule *built, struct cell_rule *rule,
	struct provider_why *why)
{
	struct rte_flow_error said = {0};

	memset(rule, 0, sizeof(*rule));
	if (port->by_templates)
		return create_by_template(port, built, rule, why);
	for (unsigned i = 0; i < CELL_AGAIN; i++) {
		rte_errno = 0;
		rule->flow = rte_flow_create(
			port->id, &built->attr, built->items, built->actions, &said);
		if (rule->flow != NULL) {
			*why = (struct provider_why){0};
			return 0;
		}
		answer_why(why, rte_errno, &said);
		if (!cell_is_passing(why->error))
			break;
	}
	if (!port->flow_queues || !has_no_calls(why))
		return -why->error;
	port->by_templates = true;
	return create_by_template(port, built, rule, why);
}

int cell_destroy(struct cell_port *port, struct cell_rule *rule, struct provider_why *why)
{
	return cell_calls_destroy(port, rule, false, why);
}
