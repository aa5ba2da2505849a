/* SPDX-License-Identifier: BSD-3-Clause */
#include "path/judge.h"

uint32_t judge_position(const struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	const struct flow_key *key)
{
	if (agent == NULL || !judge_has_mark(packet))
		return FLOW_NONE;
	uint32_t position = agent_position(agent, port, judge_mark(packet));

	if (position == FLOW_NONE ||
		!flow_key_equal(&flow_table_record(agent->config.table, position)->key, key))
		return FLOW_NONE;
	return position;
}

void judge_packet(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info)
{
	if (judge_has_mark(packet) && agent->port[port].installer != NULL) {
		uint32_t named = agent_position(agent, port, judge_mark(packet));

		if (position != FLOW_NONE && named == position)
			agent_marked(agent, position, port % 2, info->from);
		else
			agent_stranger(agent, port, judge_mark(packet), position, info);
	} else if (position != FLOW_NONE &&
		   offload_is_watched(flow_table_record(agent->config.table, position), port % 2,
			   info->from)) {
		agent_unmarked(agent, position, port % 2, info);
	}
}

void judge_learned(struct agent *agent, unsigned port, const struct packet_info *info)
{
	if (agent->config.threshold != 0)
		return;
	uint32_t position = flow_table_find(agent->config.table, &info->key, info->hash);

	/* in a table smaller than a burst it may have gone already */
	if (position != FLOW_NONE)
		agent_learned(agent, position, port % 2, info->from);
}
