/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told of a flow, living or ended. */
#include "offload/agent_admit.h"
#include "offload/agent_full.h"

unsigned agent_port_of(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned from)
{
	const struct topology *topology = &agent->config.topology;
	const unsigned domain = flow_key_wire(&record->key);
	const unsigned port =
		entry != NULL ? entry->direction[from].port : offload_port(record, from);

	if (offload_state(record, from) != OFFLOAD_SOFTWARE)
		return port;
	/* by the port of the flow's first packet, or the other one */
	if (topology_is_wire(topology, domain))
		return topology_port(topology, domain, record->side ^ (from != record->initiator));
	/* by that of the last sample; without any it is nobody's */
	return topology->domain[port] == domain ? port : topology_port(topology, domain, 0);
}

/* Of a kind whose rules never mark hardly any flow is asked in, whatever was before. */
static bool is_out(const struct agent *agent, const struct flow_record *record, unsigned port)
{
	struct installer *installer = agent->port[port].installer;
	enum provider_kind kind = provider_kind(&record->key);

	return installer != NULL && kind != PROVIDER_N_KINDS &&
	       health_kind_out(installer_health(installer), kind) != 0;
}

/* Why nobody asked for a direction that arrives at that port. */
static uint8_t reason_of_quiet(
	const struct agent *agent, const struct flow_record *record, unsigned from, unsigned port)
{
	struct installer *installer = agent->port[port].installer;

	if (installer == NULL || agent->off)
		return OFFLOAD_OFF;
	if (flow_is_rejected(record, from))
		return OFFLOAD_REJECTED;
	uint8_t reason = installer_reason(installer, provider_kind(&record->key));

	if (reason != OFFLOAD_QUIET)
		return reason;
	/* they are made when the trial is over; or there is no memory for any */
	const unsigned wire = flow_key_wire(&record->key);

	if (agent->wire[wire].slots.n == 0)
		return atomic_load_explicit(&agent->without_slots, memory_order_relaxed) >> wire & 1
			       ? OFFLOAD_NO_SLOT
			       : OFFLOAD_TRIAL;
	if (flow_packets(record, 0) + flow_packets(record, 1) < agent->config.min_packets)
		return OFFLOAD_SHORT;
	return agent_is_closing(agent, record) ? OFFLOAD_CLOSING : OFFLOAD_QUIET;
}

/* A reason for being in software that is over: as if nobody had asked. */
static bool view_is_over(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned from, unsigned port)
{
	struct installer *installer = agent->port[port].installer;

	switch (record->reason[from]) {
	case OFFLOAD_QUIET:
	case OFFLOAD_CLOSING:
	case OFFLOAD_PROMOTED:
	case OFFLOAD_DECIDED:
		return true;
	case OFFLOAD_DISPLACED:
		return agent_waits_us(agent, entry, record, from) == 0 &&
		       queue_needs(&agent->port[port].queue) == 0;
	case OFFLOAD_QUARANTINE:
	case OFFLOAD_NO_SLOT:
		return agent_waits_us(agent, entry, record, from) == 0;
	case OFFLOAD_UNPLAIN:
		return installer == NULL;
	case OFFLOAD_OUTRANKED:
		return agent_has_room(agent, port);
	case OFFLOAD_OFF:
		return !agent->off;
	case OFFLOAD_BREAKER:
		return installer == NULL ||
		       health_state(installer_health(installer)) == HEALTH_CLOSED;
	default:
		return false;
	}
}

/* Rules of those who ended that are looked at for one. */
#define OLDER_MOST 16

bool agent_has_older_rule(const struct agent *agent, const struct flow_record *record,
	unsigned from, uint64_t *since_us)
{
	const struct slots *slots = &agent->wire[flow_key_wire(&record->key)].slots;
	uint32_t slot = slots_severed(slots, &record->key, SLOT_NONE);

	for (unsigned i = 0; i < OLDER_MOST && slot != SLOT_NONE; i++) {
		const struct slot_direction *older = &slots_slot(slots, slot)->direction[from];

		if (offload_state_holds((enum offload_state)older->state)) {
			*since_us = older->state == OFFLOAD_LEAVING ? older->since_us : 0;
			return true;
		}
		slot = slots_severed(slots, &record->key, slot);
	}
	return false;
}

/* On its way to a rule that is proven, and an older one is in the way of that. */
static bool is_behind_older(
	const struct agent *agent, const struct flow_record *record, unsigned from)
{
	enum offload_state state = offload_state(record, from);
	uint64_t since_us;

	return (state == OFFLOAD_QUEUED || state == OFFLOAD_INSTALLING ||
		       state == OFFLOAD_ACCEPTED) &&
	       record->reason[from] == OFFLOAD_BUSY &&
	       agent_has_older_rule(agent, record, from, &since_us);
}

/* Of whom the NIC may have forwarded more than it told. */
static bool is_estimated(
	const struct agent *agent, const struct slot *entry, const struct flow_record *record)
{
	const struct agent_wire *wire = &agent->wire[flow_key_wire(&record->key)];

	return entry != NULL && wire->full != NULL && wire->full[record->slot].estimated;
}

void agent_view(
	const struct agent *agent, const struct flow_record *record, struct flow_offload *view)
{
	const struct slot *entry = agent_slot_of(agent, record);

	*view = (struct flow_offload){.told = true};
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const unsigned port = agent_port_of(agent, entry, record, from);

		view->state[from] = (uint8_t)offload_state(record, from);
		view->reason[from] = record->reason[from];
		if (view->state[from] == OFFLOAD_SOFTWARE &&
			(view_is_over(agent, entry, record, from, port) ||
				is_out(agent, record, port)))
			view->reason[from] = reason_of_quiet(agent, record, from, port);
		else if (is_behind_older(agent, record, from))
			view->reason[from] = OFFLOAD_OLDER_RULE;
		if (entry == NULL)
			continue;
		view->packets += agent_marked_packets(&entry->direction[from], record, from);
		view->full[from] = agent_is_full(&entry->direction[from]) &&
				   agent_holds(&entry->direction[from]);
	}
	view->estimated = is_estimated(agent, entry, record);
	if (entry != NULL)
		view->packets -= entry->reported;
	else if (!offload_has_slot(record) && record->offload & OFFLOAD_LOST_SLOT)
		view->packets = FLOW_OFFLOAD_LOST;
}
