/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told of a flow, living or ended. */
#include "offload/agent_full.h"

/* Of a kind whose rules never mark hardly any flow is asked in, whatever was before. */
static bool is_out(const struct agent *agent, const struct flow_record *record, unsigned side)
{
	struct installer *installer =
		agent->port[agent_port_of(agent, &record->key, side)].installer;
	enum provider_kind kind = provider_kind(&record->key);

	return installer != NULL && kind != PROVIDER_N_KINDS &&
	       health_kind_out(installer_health(installer), kind) != 0;
}

/* Why nobody asked for a flow. */
static uint8_t reason_of_quiet(
	const struct agent *agent, const struct flow_record *record, unsigned side)
{
	unsigned port = agent_port_of(agent, &record->key, side);
	struct installer *installer = agent->port[port].installer;

	if (installer == NULL)
		return OFFLOAD_OFF;
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
	return agent_is_passing(agent, record) ? OFFLOAD_CLOSING : OFFLOAD_QUIET;
}

/* A reason for being in software that is over: as if nobody had asked. */
static bool is_over(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned side)
{
	struct installer *installer =
		agent->port[agent_port_of(agent, &record->key, side)].installer;

	switch (record->reason[side]) {
	case OFFLOAD_QUIET:
	case OFFLOAD_CLOSING:
	case OFFLOAD_PROMOTED:
	case OFFLOAD_DECIDED:
		return true;
	case OFFLOAD_DISPLACED:
		return agent_waits_us(agent, entry, record, side) == 0 &&
		       queue_needs(&agent->port[agent_port_of(agent, &record->key, side)].queue) ==
			       0;
	case OFFLOAD_QUARANTINE:
	case OFFLOAD_NO_SLOT:
		return agent_waits_us(agent, entry, record, side) == 0;
	case OFFLOAD_UNPLAIN:
		return installer == NULL;
	case OFFLOAD_OUTRANKED:
		return agent_has_room(agent, agent_port_of(agent, &record->key, side));
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
	unsigned side, uint64_t *since_us)
{
	const struct slots *slots = &agent->wire[flow_key_wire(&record->key)].slots;
	uint32_t slot = slots_severed(slots, &record->key, SLOT_NONE);

	for (unsigned i = 0; i < OLDER_MOST && slot != SLOT_NONE; i++) {
		const struct slot_side *older = &slots_slot(slots, slot)->side[side];

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
	const struct agent *agent, const struct flow_record *record, unsigned side)
{
	enum offload_state state = offload_state(record, side);
	uint64_t since_us;

	return (state == OFFLOAD_QUEUED || state == OFFLOAD_INSTALLING ||
		       state == OFFLOAD_ACCEPTED) &&
	       record->reason[side] == OFFLOAD_BUSY &&
	       agent_has_older_rule(agent, record, side, &since_us);
}

/* The slot of a record or of its copy; NULL: it has none any more. */
static struct slot *slot_of(const struct agent *agent, const struct flow_record *record)
{
	const struct agent_wire *wire = &agent->wire[flow_key_wire(&record->key)];

	if (!offload_has_slot(record) || record->slot >= wire->slots.n)
		return NULL;
	struct slot *entry = slots_slot(&wire->slots, record->slot);

	return flow_key_equal(&entry->key, &record->key) ? entry : NULL;
}

/* Marked packets of one side, by the record's counters as they are in the copy. */
static uint64_t marked(const struct slot_side *side, const struct flow_record *record)
{
	if (agent_is_full(side) ||
		(side->state != OFFLOAD_PROVEN && side->state != OFFLOAD_SUSPECT))
		return side->marked;
	return side->marked + flow_packets(record, side->from) - side->base;
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
	const struct slot *entry = slot_of(agent, record);

	*view = (struct flow_offload){.told = true};
	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		view->state[side] = (uint8_t)offload_state(record, side);
		view->reason[side] = record->reason[side];
		if (view->state[side] == OFFLOAD_SOFTWARE &&
			(is_over(agent, entry, record, side) || is_out(agent, record, side)))
			view->reason[side] = reason_of_quiet(agent, record, side);
		else if (is_behind_older(agent, record, side))
			view->reason[side] = OFFLOAD_OLDER_RULE;
		if (entry == NULL)
			continue;
		view->packets += marked(&entry->side[side], record);
		view->full[side] = agent_is_full(&entry->side[side]) &&
				   offload_state_holds((enum offload_state)view->state[side]);
	}
	view->estimated = is_estimated(agent, entry, record);
	if (entry != NULL)
		view->packets -= entry->reported;
	else if (!offload_has_slot(record) && record->offload & OFFLOAD_LOST_SLOT)
		view->packets = FLOW_OFFLOAD_LOST;
}

/* An active report: the record's counters began anew at 0. */
static void begin_anew(struct slot *entry, const struct flow_record *record, uint64_t now_us)
{
	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		struct slot_side *at = &entry->side[side];

		entry->side[side].marked = marked(at, record);
		at->base = 0;
		at->rate.packets = 0;
		at->rate.us = now_us;
	}
	entry->reported = entry->side[0].marked + entry->side[1].marked;
}

static void end_side(struct agent *agent, unsigned port, const struct flow_record *record)
{
	enum offload_state state = offload_state(record, agent_side_of(agent, port));
	struct agent_counters *counters = &agent->port[port].counters;

	/* its entry in the queue is passed over when it is its turn */
	if (state == OFFLOAD_QUEUED || state == OFFLOAD_REFUSED) {
		counters->flows[state]--;
		counters->arrows[state][OFFLOAD_SOFTWARE]++;
	}
}

/* No packet is this flow's any more, and its rules are to go. */
static void end_slot(struct agent *agent, unsigned number, uint32_t slot)
{
	struct agent_wire *wire = &agent->wire[number];
	struct slot *entry = slots_slot(&wire->slots, slot);

	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		struct agent_at at = agent_at_slot(
			agent, topology_port(&agent->config.topology, number, side), slot);

		/* the record is another's already, or will be: what it counted is in the report */
		at.record = NULL;
		if (at.side->state == OFFLOAD_QUEUED || at.side->state == OFFLOAD_REFUSED)
			at.side->state = OFFLOAD_SOFTWARE;
		else if (at.side->state != OFFLOAD_SOFTWARE)
			agent_leave(&at, OFFLOAD_ENDED);
	}
	entry->position = FLOW_NONE;
	slots_sever(&wire->slots, slot);
	agent_release(agent, number, slot);
}

bool agent_ended(struct agent *agent, struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	unsigned number = flow_key_wire(&record->key);
	struct slot *entry = slot_of(agent, record);

	agent_view(agent, record, &report->offload);
	if (report->reason == FLOW_END_ACTIVE) {
		if (entry != NULL)
			begin_anew(entry, record, agent->now_us);
		return false;
	}
	for (unsigned side = 0; side < OFFLOAD_SIDES; side++)
		end_side(agent, topology_port(&agent->config.topology, number, side), record);
	if (entry == NULL)
		return false;
	const struct agent_at at = agent_at_slot(agent, 2 * number, record->slot);
	bool holds = agent_full_hold(&at, report);

	end_slot(agent, number, record->slot);
	return holds;
}
