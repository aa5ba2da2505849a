/* SPDX-License-Identifier: BSD-3-Clause */
/* What a station answers of its flows' offload. */
#include "dataplane/ask.h"

#include "offload/agent.h"

void ask_adopt(struct station *station, struct ask *ask)
{
	agent_adopt(station->worker.agent, ask->number, &ask->wire);
}

void ask_offload(const struct station *station, struct ask *ask)
{
	ask->offload = station->worker.agent->port[ask->number].counters;
}

void ask_slots(const struct station *station, struct ask *ask)
{
	const struct slots *slots = &station->worker.agent->wire[ask->number].slots;

	ask->slots = (struct plane_slots){
		.n = slots->n,
		.used = slots->n_used,
		.draining = slots->n_draining,
	};
}

void ask_held(const struct station *station, struct ask *ask)
{
	ask->number = station->worker.agent != NULL ? station->worker.agent->n_held : 0;
}

void ask_changes(const struct station *station, struct ask *ask)
{
	ask->n_changes = change_read(
		&station->worker.agent->changes, &ask->from, ask->changes, ASK_CHANGES_MOST);
}

void ask_view(
	const struct station *station, const struct flow_record *record, struct flow_offload *view)
{
	*view = (struct flow_offload){0};
	if (station->worker.agent != NULL)
		agent_view(station->worker.agent, record, view);
}

/* What the slot of a record has. */
static void slot(const struct agent *agent, struct plane_flow *flow)
{
	const struct slots *slots = &agent->wire[flow_key_wire(&flow->record.key)].slots;
	const struct slot *entry;

	entry = offload_has_slot(&flow->record) ? slots_slot(slots, flow->record.slot) : NULL;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		uint64_t waits_us = agent_waits_us(agent, entry, &flow->record, from);

		flow->port[from] = (uint8_t)agent_port_of(agent, entry, &flow->record, from);
		if (flow->offload.reason[from] == OFFLOAD_OLDER_RULE)
			(void)agent_has_older_rule(
				agent, &flow->record, from, &flow->older_us[from]);
		if (waits_us != 0)
			flow->retry_us[from] = agent->now_us + waits_us;
		if (entry == NULL)
			continue;
		/* what is left of a rule that is gone, or is about to be, is nobody's */
		if (entry->direction[from].state >= OFFLOAD_SUSPECT)
			flow->nic[from] = entry->direction[from].nic.total;
		flow->since_us[from] = entry->direction[from].since_us;
	}
	if (entry != NULL)
		flow->mark = slots_mark(slots, flow->record.slot);
}

/* At each port of the flow's domain. */
static void bars(const struct station *station, struct ask *ask)
{
	const unsigned domain = flow_key_wire(&ask->key);

	for (unsigned place = 0; place < station->topology->size[domain]; place++)
		(void)agent_bar(station->worker.agent,
			topology_port(station->topology, domain, place), &ask->flow.bar[place]);
}

void ask_flow(const struct station *station, struct ask *ask)
{
	const struct flow_table *table = &station->worker.shard->table;
	struct agent *agent = station->worker.agent;
	uint32_t position = flow_table_find(table, &ask->key, ask->hash);
	struct plane_flow *flow = &ask->flow;

	*flow = (struct plane_flow){.now_us = station->now_us};
	ask->found = position != FLOW_NONE;
	if (agent != NULL)
		bars(station, ask);
	if (!ask->found)
		return;
	flow->record = *flow_table_record(table, position);
	ask_view(station, &flow->record, &flow->offload);
	flow->dropped = flow_shard_dropped(station->worker.shard, position);
	if (agent == NULL)
		return;
	slot(agent, flow);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		agent_rank(agent, position, from, &flow->rank[from]);
	flow->n_changes = change_of_flow(
		&agent->changes, &ask->key, flow->changes, PLANE_CHANGES, &flow->lost);
}
