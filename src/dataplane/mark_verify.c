/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/mark_verify.h"

struct flow_record mark_nobody;

/*
 * A packet that no rule can be expected to match as the engine's own reading does shows nothing of the NIC's work, with
 * a mark or without. Nor is its flow worth a rule for it.
 */
static void verify_unplain(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info)
{
	const bool marked = mark_is_there(packet) && agent->port[port].installer != NULL;

	if (marked && (position == FLOW_NONE ||
			      agent_position(agent, port, mark_value(packet)) != position))
		agent_stranger_unplain(agent, port, position, info);
	else if (position != FLOW_NONE &&
		 (marked || offload_is_watched(
				    flow_table_record(agent->config.table, position), info->from)))
		agent_unplain(agent, position, port, info, marked);
}

void mark_verify(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info)
{
	if (unlikely(!extract_is_plain(packet, info))) {
		verify_unplain(agent, port, packet, position, info);
	} else if (mark_is_there(packet) && agent->port[port].installer != NULL) {
		uint32_t named = agent_position(agent, port, mark_value(packet));

		if (position != FLOW_NONE && named == position)
			agent_marked(agent, position, port, info->from);
		else
			agent_stranger(agent, port, mark_value(packet), position, info);
	} else if (position != FLOW_NONE &&
		   offload_is_watched(
			   flow_table_record(agent->config.table, position), info->from)) {
		agent_unmarked(agent, position, port, info);
	}
}

void mark_learned(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	const struct packet_info *info)
{
	if (agent->config.threshold != 0)
		return;
	uint32_t position = flow_table_find(agent->config.table, &info->key, info->hash);

	/* in a table smaller than a burst it may have gone already */
	if (position == FLOW_NONE)
		return;
	if (extract_is_plain(packet, info))
		agent_learned(agent, position, port, info->from);
	else
		agent_sample_unplain(agent, position, info->from);
}

void mark_verify_dropped(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info)
{
	if (agent != NULL && offload_has_slot(flow_table_record(agent->config.table, position)) &&
		extract_is_plain(packet, info))
		agent_dropped(agent, position, port, info);
}

void mark_sample(struct agent *agent, unsigned port, const struct rte_mbuf *packet,
	uint32_t position, const struct packet_info *info)
{
	if (!extract_is_plain(packet, info))
		agent_sample_unplain(agent, position, info->from);
	else
		agent_sample(agent, position, port, info->from);
}
