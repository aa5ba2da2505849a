/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/actions.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_parts.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/indirect.h"

int sim_actions_refuse(struct sim_fault_at *fault, int code, enum rte_flow_error_type type,
	const void *cause, const char *message)
{
	*fault = (struct sim_fault_at){.cause = cause, .type = type, .message = message};
	return code;
}

int sim_action_refused(struct sim_actions_reader *reader, int code,
	const struct rte_flow_action *action, const char *message)
{
	return sim_actions_refuse(reader->fault, code, RTE_FLOW_ERROR_TYPE_ACTION, action, message);
}

int sim_conf_refused(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	const char *message)
{
	const void *cause = action->conf != NULL ? action->conf : action;

	return sim_actions_refuse(
		reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, cause, message);
}

int sim_actions_take_fate(
	struct sim_actions_reader *reader, const struct rte_flow_action *action, enum sim_fate fate)
{
	if (reader->has_fate)
		return sim_action_refused(reader, -EINVAL, action, "a rule can have one fate only");
	reader->has_fate = true;
	reader->actions->fate = fate;
	return 0;
}

static int read_mark(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_mark *conf = action->conf;

	reader->actions->mark = true;
	reader->actions->mark_id = conf->id;
	return 0;
}

static int read_flag(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	(void)action;
	reader->actions->flag = true;
	return 0;
}

static int read_count(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	(void)action;
	reader->actions->count = true;
	reader->actions->count_handle = NULL;
	return 0;
}

static int read_age(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_age *conf = action->conf;

	if (conf->timeout == 0)
		return sim_conf_refused(reader, action, "AGE without a timeout");
	reader->actions->age = true;
	reader->actions->age_handle = NULL;
	reader->actions->age_seconds = conf->timeout;
	reader->actions->age_context = conf->context;
	return 0;
}

static int read_passthru(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	reader->actions->passthru = true;
	return sim_actions_take_fate(reader, action, SIM_FATE_NONE);
}

static int read_jump(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_jump *conf = action->conf;

	if (conf->group <= reader->group)
		return sim_conf_refused(reader, action, "a jump leads to a higher group only");
	reader->actions->jump = true;
	reader->actions->jump_group = conf->group;
	return sim_actions_take_fate(reader, action, SIM_FATE_NONE);
}

static int read_queue(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_queue *conf = action->conf;

	if (conf->index >= reader->port->n_rx)
		return sim_conf_refused(reader, action, "no such queue");
	reader->actions->queue = conf->index;
	return sim_actions_take_fate(reader, action, SIM_FATE_QUEUE);
}

static int read_drop(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	return sim_actions_take_fate(reader, action, SIM_FATE_DROP);
}

/* Whose number does not fit 16 bits is nobody's. */
static int take_port(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	uint32_t number, enum sim_fate fate)
{
	if (number >= RTE_MAX_ETHPORTS || sim_nic_port(reader->port, (uint16_t)number) == NULL)
		return sim_conf_refused(reader, action, "no such port of this NIC");
	reader->actions->port = (uint16_t)number;
	return sim_actions_take_fate(reader, action, fate);
}

static int read_port_id(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_port_id *conf = action->conf;

	return take_port(
		reader, action, conf->original ? reader->port->id : conf->id, SIM_FATE_SEND);
}

static int read_represented(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_ethdev *conf = action->conf;

	return take_port(reader, action, conf->port_id, SIM_FATE_SEND);
}

static int read_representor(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_ethdev *conf = action->conf;

	return take_port(reader, action, conf->port_id, SIM_FATE_GIVE);
}

static int read_meter(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_meter *conf = action->conf;

	if (reader->actions->meter)
		return sim_action_refused(reader, -ENOTSUP, action, "a rule can have one meter");
	/* parsing has the port's lock or not: meters look after themselves */
	if (!sim_meter_is((struct sim_port *)(uintptr_t)reader->port, conf->mtr_id))
		return sim_conf_refused(reader, action, "no such meter");
	reader->actions->meter = true;
	reader->actions->meter_id = conf->mtr_id;
	reader->actions->meter_at = reader->n_steps++;
	return 0;
}

static int read_list(
	struct sim_actions_reader *reader, const void *cause, const struct rte_flow_action list[]);

static int read_sample(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_sample *conf = action->conf;
	struct sim_actions *actions = reader->actions;
	struct sim_actions_reader copy = {
		.port = reader->port,
		.group = reader->group,
		.in_sample = true,
		.fault = reader->fault,
	};

	if (actions->sample)
		return sim_action_refused(reader, -ENOTSUP, action, "a rule can have one sample");
	if (conf->ratio == 0)
		return sim_conf_refused(reader, action, "a sample of ratio 0");
	actions->sampled = calloc(1, sizeof(*actions->sampled));
	if (actions->sampled == NULL)
		return sim_action_refused(reader, -ENOMEM, action, "no memory");
	copy.actions = actions->sampled;
	actions->sample = true;
	actions->sample_ratio = conf->ratio;
	actions->sample_at = reader->n_steps++;

	int result = read_list(&copy, conf, conf->actions);

	actions->named |= actions->sampled->named;
	return result;
}

static int read_indirect(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	struct sim_actions *actions = reader->actions;
	/* the handle itself stands where others have what they point to */
	struct sim_indirect *handle = (struct sim_indirect *)(uintptr_t)action->conf;

	if (!sim_indirect_is(reader->port, handle))
		return sim_conf_refused(reader, action, "no such handle of this port");
	actions->named |= 1ull << handle->type;
	if (handle->type == RTE_FLOW_ACTION_TYPE_COUNT) {
		actions->count = true;
		actions->count_handle = handle;
		return 0;
	}
	if (handle->type == RTE_FLOW_ACTION_TYPE_AGE) {
		actions->age = true;
		actions->age_handle = handle;
		return 0;
	}
	if (handle->type != RTE_FLOW_ACTION_TYPE_RSS)
		return sim_action_refused(reader, -ENOTSUP, action, "a handle of another kind");
	actions->rss_handle = handle;
	return sim_actions_take_fate(reader, action, SIM_FATE_RSS);
}

/* What is known, but for edits: these have a table of their own. */
static const struct known {
	enum rte_flow_action_type type;
	int (*read)(struct sim_actions_reader *reader, const struct rte_flow_action *action);
	bool needs_conf;
	bool in_sample;
} known[] = {
	{RTE_FLOW_ACTION_TYPE_MARK, read_mark, true, true},
	{RTE_FLOW_ACTION_TYPE_QUEUE, read_queue, true, true},
	{RTE_FLOW_ACTION_TYPE_COUNT, read_count, false, false},
	{RTE_FLOW_ACTION_TYPE_RSS, sim_actions_read_rss, true, true},
	{RTE_FLOW_ACTION_TYPE_DROP, read_drop, false, true},
	{RTE_FLOW_ACTION_TYPE_FLAG, read_flag, false, true},
	{RTE_FLOW_ACTION_TYPE_PASSTHRU, read_passthru, false, false},
	{RTE_FLOW_ACTION_TYPE_JUMP, read_jump, true, false},
	{RTE_FLOW_ACTION_TYPE_AGE, read_age, true, false},
	{RTE_FLOW_ACTION_TYPE_PORT_ID, read_port_id, true, true},
	{RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, read_represented, true, true},
	{RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, read_representor, true, true},
	{RTE_FLOW_ACTION_TYPE_METER, read_meter, true, false},
	{RTE_FLOW_ACTION_TYPE_SAMPLE, read_sample, true, false},
	{RTE_FLOW_ACTION_TYPE_INDIRECT, read_indirect, true, false},
};

static_assert(RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT < 64, "types are bits of `named`");

static const struct known *find_known(enum rte_flow_action_type type)
{
	for (size_t i = 0; i < RTE_DIM(known); i++)
		if (known[i].type == type)
			return &known[i];
	return NULL;
}

static int read_one(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct known *kind = find_known(action->type);
	int result = 0;

	if (action->type == RTE_FLOW_ACTION_TYPE_VOID)
		return 0;
	if (kind == NULL) {
		if (!sim_actions_read_edit(reader, action, &result))
			return sim_action_refused(
				reader, -ENOTSUP, action, "this NIC has no such action");
	} else if (reader->in_sample && !kind->in_sample) {
		return sim_action_refused(
			reader, -ENOTSUP, action, "this is not done to the copies of a sample");
	} else if (kind->needs_conf && action->conf == NULL) {
		return sim_conf_refused(reader, action, "this action needs a configuration");
	} else {
		result = kind->read(reader, action);
	}
	if (result == 0)
		reader->actions->named |= 1ull << action->type;
	return result;
}

static int read_list(
	struct sim_actions_reader *reader, const void *cause, const struct rte_flow_action list[])
{
	if (list == NULL)
		return sim_actions_refuse(reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM,
			cause, "no list of actions");
	for (unsigned i = 0; i < SIM_MAX_ACTIONS; i++) {
		if (list[i].type == RTE_FLOW_ACTION_TYPE_END)
			return 0;

		int result = read_one(reader, &list[i]);

		if (result != 0)
			return result;
	}
	return sim_actions_refuse(reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, cause,
		"no END among 32 actions");
}

int sim_actions_parse(struct sim_actions *actions, struct sim_port *port, uint32_t group,
	const struct rte_flow_action list[], struct sim_fault_at *fault)
{
	struct sim_actions_reader reader = {
		.actions = actions,
		.port = port,
		.group = group,
		.fault = fault,
	};

	/* edits and RSS are written when they come */
	memset(actions, 0, offsetof(struct sim_actions, edits));
	actions->queue = SIM_NO_QUEUE;

	int result = read_list(&reader, list, list);

	if (result != 0)
		sim_actions_fini(actions);
	return result;
}

void sim_actions_fini(struct sim_actions *actions)
{
	free(actions->sampled);
	actions->sampled = NULL;
}

int sim_action_bit(enum rte_flow_action_type type)
{
	if (type == RTE_FLOW_ACTION_TYPE_VOID || find_known(type) != NULL ||
		sim_action_is_edit(type))
		return (int)type;
	return -1;
}
