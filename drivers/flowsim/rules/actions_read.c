/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/match/actions.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_read.h"
#include "drivers/flowsim/rules/indirect.h"

/* A list of actions that is being read. */
struct sim_actions_reader {
	struct sim_actions *actions;
	const struct sim_port *port;
	uint32_t group;
	bool in_sample;
	bool has_fate;	 /* JUMP and PASSTHRU too */
	uint8_t n_steps; /* edits, meter, sample */
	struct sim_fault_at *fault;
};

/* Fills in what is wrong, and returns `code`. */
static int refuse(struct sim_fault_at *fault, int code, enum rte_flow_error_type type,
	const void *cause, const char *message)
{
	*fault = (struct sim_fault_at){.cause = cause, .type = type, .message = message};
	return code;
}

static int refuse_action(struct sim_actions_reader *reader, int code,
	const struct rte_flow_action *action, const char *message)
{
	return refuse(reader->fault, code, RTE_FLOW_ERROR_TYPE_ACTION, action, message);
}

static int refuse_conf(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	const char *message)
{
	const void *cause = action->conf != NULL ? action->conf : action;

	return refuse(reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, cause, message);
}

/* A fate, when there is none yet. */
static int take_fate(
	struct sim_actions_reader *reader, const struct rte_flow_action *action, enum sim_fate fate)
{
	if (reader->has_fate)
		return refuse_action(reader, -EINVAL, action, "a rule can have one fate only");
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
		return refuse_conf(reader, action, "AGE without a timeout");
	reader->actions->age = true;
	reader->actions->age_handle = NULL;
	reader->actions->age_seconds = conf->timeout;
	reader->actions->age_context = conf->context;
	return 0;
}

static int read_passthru(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	reader->actions->passthru = true;
	return take_fate(reader, action, SIM_FATE_NONE);
}

static int read_jump(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_jump *conf = action->conf;

	if (conf->group <= reader->group)
		return refuse_conf(reader, action, "a jump leads to a higher group only");
	reader->actions->jump = true;
	reader->actions->jump_group = conf->group;
	return take_fate(reader, action, SIM_FATE_NONE);
}

static int read_queue(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	const struct rte_flow_action_queue *conf = action->conf;

	if (conf->index >= reader->port->n_rx)
		return refuse_conf(reader, action, "no such queue");
	reader->actions->queue = conf->index;
	return take_fate(reader, action, SIM_FATE_QUEUE);
}

static int read_drop(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	return take_fate(reader, action, SIM_FATE_DROP);
}

/* Whose number does not fit 16 bits is nobody's. */
static int take_port(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	uint32_t number, enum sim_fate fate)
{
	if (number >= RTE_MAX_ETHPORTS || sim_nic_port(reader->port, (uint16_t)number) == NULL)
		return refuse_conf(reader, action, "no such port of this NIC");
	reader->actions->port = (uint16_t)number;
	return take_fate(reader, action, fate);
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
		return refuse_action(reader, -ENOTSUP, action, "a rule can have one meter");
	/* parsing has the port's lock or not: meters look after themselves */
	if (!sim_meter_is((struct sim_port *)(uintptr_t)reader->port, conf->mtr_id))
		return refuse_conf(reader, action, "no such meter");
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
		return refuse_action(reader, -ENOTSUP, action, "a rule can have one sample");
	if (conf->ratio == 0)
		return refuse_conf(reader, action, "a sample of ratio 0");
	actions->sampled = calloc(1, sizeof(*actions->sampled));
	if (actions->sampled == NULL)
		return refuse_action(reader, -ENOMEM, action, "no memory");
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
		return refuse_conf(reader, action, "no such handle of this port");
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
		return refuse_action(reader, -ENOTSUP, action, "a handle of another kind");
	actions->rss_handle = handle;
	return take_fate(reader, action, SIM_FATE_RSS);
}

static const char *rss_fault(const struct sim_port *port, const struct rte_flow_action_rss *conf)
{
	if (conf->queue_num == 0 || conf->queue == NULL)
		return "RSS without queues";
	if (conf->queue_num > SIM_MAX_RSS_QUEUES)
		return "RSS over more than 128 queues";
	for (uint32_t i = 0; i < conf->queue_num; i++)
		if (conf->queue[i] >= port->n_rx)
			return "RSS to a queue that is not there";
	if (conf->key_len > SIM_RSS_KEY)
		return "a key of more than 52 bytes";
	if (conf->key_len > 0 && conf->key == NULL)
		return "a key with a length and no bytes";
	if ((unsigned)conf->func > (unsigned)SIM_HASH_SYMMETRIC_SORT)
		return "no such hash function";
	return NULL;
}

int sim_actions_parse_rss(struct sim_rss *rss, const struct sim_port *port,
	const struct rte_flow_action *action, struct sim_fault_at *fault)
{
	const struct rte_flow_action_rss *conf = action->conf;

	if (conf == NULL)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action,
			"this action needs a configuration");
	if (conf->level > 1)
		return refuse(fault, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION_CONF, conf,
			"RSS by inner headers");

	const char *wrong = rss_fault(port, conf);

	if (wrong != NULL)
		return refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, conf, wrong);
	memset(rss, 0, sizeof(*rss));
	rss->n_queues = (uint16_t)conf->queue_num;
	memcpy(rss->queues, conf->queue, conf->queue_num * sizeof(rss->queues[0]));
	rss->function = conf->func;
	rss->types = conf->types;
	rss->key_length = (uint8_t)conf->key_len;
	if (conf->key_len > 0)
		memcpy(rss->key, conf->key, conf->key_len);
	return 0;
}

static int read_rss(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	int result =
		sim_actions_parse_rss(&reader->actions->rss, reader->port, action, reader->fault);

	if (result == 0)
		result = take_fate(reader, action, SIM_FATE_RSS);
	return result;
}

static const char *check_tpid(const uint8_t *value)
{
	switch (value[0] << 8 | value[1]) {
	case 0x8100:
	case 0x88a8:
	case 0x9100:
	case 0x9200:
		return NULL;
	default:
		return "no TPID of a VLAN tag";
	}
}

static const char *check_vid(const uint8_t *value)
{
	return value[0] > 0x0f ? "a VLAN number above 4095" : NULL;
}

static const char *check_pcp(const uint8_t *value)
{
	return value[0] > 7 ? "a VLAN priority above 7" : NULL;
}

/* Each configuration begins with the value, in network byte order, and holds nothing else of interest. */
static const struct edit {
	enum rte_flow_action_type action;
	enum sim_edit_type edit;
	uint8_t size;
	const char *(*check)(const uint8_t *value);
} edits[] = {
	{RTE_FLOW_ACTION_TYPE_OF_POP_VLAN, SIM_EDIT_POP_VLAN, 0, NULL},
	{RTE_FLOW_ACTION_TYPE_OF_PUSH_VLAN, SIM_EDIT_PUSH_VLAN, 2, check_tpid},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_VID, SIM_EDIT_VLAN_VID, 2, check_vid},
	{RTE_FLOW_ACTION_TYPE_OF_SET_VLAN_PCP, SIM_EDIT_VLAN_PCP, 1, check_pcp},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_SRC, SIM_EDIT_MAC_SRC, 6, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_MAC_DST, SIM_EDIT_MAC_DST, 6, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV4_SRC, SIM_EDIT_IPV4_SRC, 4, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV4_DST, SIM_EDIT_IPV4_DST, 4, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV6_SRC, SIM_EDIT_IPV6_SRC, 16, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_IPV6_DST, SIM_EDIT_IPV6_DST, 16, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_TP_SRC, SIM_EDIT_TP_SRC, 2, NULL},
	{RTE_FLOW_ACTION_TYPE_SET_TP_DST, SIM_EDIT_TP_DST, 2, NULL},
	{RTE_FLOW_ACTION_TYPE_DEC_TTL, SIM_EDIT_DEC_TTL, 0, NULL},
};

static_assert(offsetof(struct rte_flow_action_of_push_vlan, ethertype) == 0 &&
		      offsetof(struct rte_flow_action_of_set_vlan_vid, vlan_vid) == 0 &&
		      offsetof(struct rte_flow_action_of_set_vlan_pcp, vlan_pcp) == 0 &&
		      offsetof(struct rte_flow_action_set_mac, mac_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_ipv4, ipv4_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_ipv6, ipv6_addr) == 0 &&
		      offsetof(struct rte_flow_action_set_tp, port) == 0,
	"values begin configurations");

static const struct edit *find_edit(enum rte_flow_action_type type)
{
	for (size_t i = 0; i < RTE_DIM(edits); i++)
		if (edits[i].action == type)
			return &edits[i];
	return NULL;
}

static bool is_edit(enum rte_flow_action_type type)
{
	return find_edit(type) != NULL;
}

static int read_edit(struct sim_actions_reader *reader, const struct rte_flow_action *action,
	const struct edit *kind)
{
	struct sim_actions *actions = reader->actions;

	if (kind->size > 0 && action->conf == NULL)
		return refuse_conf(reader, action, "this action needs a configuration");
	if (actions->n_edits == SIM_MAX_EDITS)
		return refuse_action(reader, -ENOTSUP, action, "too many edits");

	struct sim_edit *edit = &actions->edits[actions->n_edits];

	*edit = (struct sim_edit){.type = kind->edit};
	if (kind->size > 0)
		memcpy(edit->value, action->conf, kind->size);

	const char *wrong = kind->check != NULL ? kind->check(edit->value) : NULL;

	if (wrong != NULL)
		return refuse_conf(reader, action, wrong);
	actions->n_edits++;
	reader->n_steps++;
	return 0;
}

static bool read_any_edit(
	struct sim_actions_reader *reader, const struct rte_flow_action *action, int *result)
{
	const struct edit *kind = find_edit(action->type);

	if (kind == NULL)
		return false;
	*result = read_edit(reader, action, kind);
	return true;
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
	{RTE_FLOW_ACTION_TYPE_RSS, read_rss, true, true},
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
		if (!read_any_edit(reader, action, &result))
			return refuse_action(
				reader, -ENOTSUP, action, "this NIC has no such action");
	} else if (reader->in_sample && !kind->in_sample) {
		return refuse_action(
			reader, -ENOTSUP, action, "this is not done to the copies of a sample");
	} else if (kind->needs_conf && action->conf == NULL) {
		return refuse_conf(reader, action, "this action needs a configuration");
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
		return refuse(reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, cause,
			"no list of actions");
	for (unsigned i = 0; i < SIM_MAX_ACTIONS; i++) {
		if (list[i].type == RTE_FLOW_ACTION_TYPE_END)
			return 0;

		int result = read_one(reader, &list[i]);

		if (result != 0)
			return result;
	}
	return refuse(reader->fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, cause,
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
	if (type == RTE_FLOW_ACTION_TYPE_VOID || find_known(type) != NULL || is_edit(type))
		return (int)type;
	return -1;
}
