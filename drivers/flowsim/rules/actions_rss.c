/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "drivers/flowsim/port/compat.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/rules/actions_parts.h"
#include "drivers/flowsim/rules/actions_read.h"

static const char *fault_of(const struct sim_port *port, const struct rte_flow_action_rss *conf)
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
		return sim_actions_refuse(fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, action,
			"this action needs a configuration");
	if (conf->level > 1)
		return sim_actions_refuse(fault, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION_CONF, conf,
			"RSS by inner headers");

	const char *wrong = fault_of(port, conf);

	if (wrong != NULL)
		return sim_actions_refuse(
			fault, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, conf, wrong);
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

int sim_actions_read_rss(struct sim_actions_reader *reader, const struct rte_flow_action *action)
{
	int result =
		sim_actions_parse_rss(&reader->actions->rss, reader->port, action, reader->fault);

	if (result == 0)
		result = sim_actions_take_fate(reader, action, SIM_FATE_RSS);
	return result;
}
