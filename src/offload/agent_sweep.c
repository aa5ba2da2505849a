/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the NIC does what it said, by a look at each slot twice a second: late answers, rates, counters. */
#include "offload/agent_parts.h"

/* Slots that one turn looks at, at most. */
#define SWEEP_MOST 256
/* From a slot to the one whose record is fetched, and from there to the one that is. */
#define SWEEP_AHEAD 6

/* An answer that is late is counted once, and told with others of that second. */
static void look_for_late(const struct agent_at *at)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct slot_side *side = at->side;

	if (!side->awaited || side->late || at->agent->now_us - side->asked_us < AGENT_LATE_US)
		return;
	side->late = true;
	port->counters.stalled++;
	if (!agent_is_new(at->agent, port->stall_told_us))
		return;
	port->stall_told_us = at->agent->now_us;
	agent_tell(at->agent, at->port, CHANGE_STALLED, OFFLOAD_STALLED);
}

static void ask_count(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[agent_wire_of(at->port)];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.op = INSTALLER_COUNT,
		.from = at->side->from,
	};

	/* all that has come by now is in the NIC's counter when it is asked */
	at->side->asked = agent_marked_packets(at) - at->side->nic_base;
	at->side->count_awaited = installer_ask(
		at->agent->port[at->port].installer, at->agent->config.worker, &request);
}

static void ask_count_if_due(const struct agent_at *at)
{
	if (at->side->nic_due_us <= at->agent->now_us && !at->side->count_awaited)
		ask_count(at);
}

void agent_count_soon(const struct agent_at *at, uint64_t us)
{
	struct agent_wire *wire = &at->agent->wire[agent_wire_of(at->port)];
	unsigned i = 0;

	at->side->nic_due_us = at->agent->now_us + us;
	agent_wake(at);
	while (i < wire->n_soon && wire->soon[i] != at->slot)
		i++;
	if (i == AGENT_SOON)
		return;
	wire->soon[i] = at->slot;
	if (i == wire->n_soon)
		wire->n_soon++;
}

/* Is there a counter of the slot that is read earlier than the sweep would? Reads it when it is time. */
static bool count_slot(struct agent *agent, unsigned number, uint32_t slot)
{
	bool any = false;

	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		const struct agent_at at = agent_at_slot(agent, 2 * number + side, slot);
		bool in_hw = at.side->state == OFFLOAD_ACCEPTED || at.side->state == OFFLOAD_PROVEN;

		/* the slot may be another flow's by now */
		if (at.record == NULL || !in_hw)
			continue;
		ask_count_if_due(&at);
		any |= at.side->count_awaited ||
		       at.side->nic_due_us <= agent->now_us + AGENT_DOUBT_US;
	}
	return any;
}

static void count_soon(struct agent *agent, unsigned number)
{
	struct agent_wire *wire = &agent->wire[number];
	unsigned kept = 0, n = wire->n_soon;

	for (unsigned i = 0; i < n; i++)
		if (count_slot(agent, number, wire->soon[i]))
			wire->soon[kept++] = wire->soon[i];
	wire->n_soon = kept;
}

/* A flow that is in the NIC: does its rate still deserve it? */
static void look_at_rate(const struct agent_at *at)
{
	struct slot_side *side = at->side;
	uint64_t passed_us = at->agent->now_us - side->checked_us;

	if (at->side->state != OFFLOAD_SUSPECT)
		ask_count_if_due(at);
	if (passed_us < AGENT_SECOND_US)
		return;
	uint64_t packets = flow_packets(at->record, side->from);
	uint64_t rate = (packets - RTE_MIN(packets, side->checked)) * AGENT_SECOND_US / passed_us;

	side->checked = packets;
	side->checked_us = at->agent->now_us;
	at->record->rate = RTE_MIN(rate, (uint64_t)UINT16_MAX) & UINT16_MAX;
	if (2 * rate < at->agent->config.threshold)
		agent_leave(at, OFFLOAD_SLOWED);
	else if (at->agent->now_us - side->since_us >= 10 * AGENT_SECOND_US)
		offload_set_back_off(at->record, at->port % 2, 0); /* it has been true for long */
}

/* Nothing of it is due. Whatever is to be done next is within a second: more than that is a rest long over. */
static bool rests(const struct agent_used *used, uint64_t now_us)
{
	uint32_t left_ms = used->rests_ms - (uint32_t)(now_us / 1000);

	return used->rests_ms != 0 && left_ms != 0 && left_ms <= AGENT_SECOND_US / 1000;
}

static void look(struct agent *agent, unsigned port, uint32_t slot)
{
	const struct agent_at at = agent_at_slot(agent, port, slot);

	switch ((enum offload_state)at.side->state) {
	case OFFLOAD_LEAVING:
		if (at.side->remove && !at.side->awaited)
			agent_remove(&at);
		look_for_late(&at);
		break;
	case OFFLOAD_INSTALLING:
		look_for_late(&at);
		break;
	case OFFLOAD_SUSPECT:
	case OFFLOAD_ACCEPTED:
	case OFFLOAD_PROVEN:
		if (health_state(installer_health(agent->port[port].installer)) == HEALTH_OPEN)
			agent_leave(&at, OFFLOAD_BREAKER);
		else if (at.record != NULL)
			look_at_rate(&at);
		break;
	case OFFLOAD_SOFTWARE:
	case OFFLOAD_QUEUED:
	case OFFLOAD_REFUSED:
	case OFFLOAD_N_STATES:
		break;
	}
}

/* A slot is looked at two steps after it is seen here, its record one step after: their lines are on their way. */
static void look_ahead(const struct agent *agent, unsigned number)
{
	const struct agent_wire *wire = &agent->wire[number];
	uint32_t far = wire->sweep + 2 * SWEEP_AHEAD, near = wire->sweep + SWEEP_AHEAD;
	const struct slot *slot;

	if (far < wire->n_used && !rests(&wire->used[far], agent->now_us)) {
		slot = slots_slot(&wire->slots, wire->used[far].slot);
		rte_prefetch1(slot);
		for (unsigned side = 0; side < OFFLOAD_SIDES; side++)
			rte_prefetch1(&slot->side[side]);
	}
	if (near >= wire->n_used || rests(&wire->used[near], agent->now_us))
		return;
	slot = slots_slot(&wire->slots, wire->used[near].slot);
	if (slot->position != FLOW_NONE)
		rte_prefetch1(flow_table_record(agent->config.table, slot->position));
}

/* Until when nothing of a slot is to be looked at, as long as its sides stay in their states; 0: it does not rest. */
static uint32_t rest_of(const struct slot *slot)
{
	uint64_t until_us = UINT64_MAX;

	for (unsigned i = 0; i < OFFLOAD_SIDES; i++) {
		const struct slot_side *side = &slot->side[i];

		switch ((enum offload_state)side->state) {
		case OFFLOAD_ACCEPTED:
		case OFFLOAD_PROVEN:
			until_us = RTE_MIN(until_us, side->nic_due_us);
			/* fallthrough */
		case OFFLOAD_SUSPECT:
			until_us = RTE_MIN(until_us, side->checked_us + AGENT_SECOND_US);
			break;
		case OFFLOAD_INSTALLING:
		case OFFLOAD_LEAVING:
			return 0;
		case OFFLOAD_SOFTWARE:
		case OFFLOAD_QUEUED:
		case OFFLOAD_REFUSED:
		case OFFLOAD_N_STATES:
			break;
		}
	}
	/* one without a rule is given back when slots are few */
	return until_us == UINT64_MAX ? 0 : (uint32_t)(until_us / 1000);
}

static void sweep_slot(struct agent *agent, unsigned number)
{
	struct agent_wire *wire = &agent->wire[number];
	struct agent_used *used = &wire->used[wire->sweep];
	const uint32_t slot = used->slot;

	for (unsigned side = 0; side < OFFLOAD_SIDES; side++)
		if (agent->port[2 * number + side].installer != NULL)
			look(agent, 2 * number + side, slot);
	used->rests_ms = rest_of(slots_slot(&wire->slots, slot));
	wire->sweep++;
	agent_release(agent, number, slot);
}

static bool is_open(const struct agent *agent, unsigned port)
{
	struct installer *installer = agent->port[port].installer;

	return installer != NULL && health_state(installer_health(installer)) == HEALTH_OPEN;
}

static void sweep_wire(struct agent *agent, unsigned number, uint64_t passed_us)
{
	struct agent_wire *wire = &agent->wire[number];
	/* all of them in half a second */
	uint64_t due = wire->due + 2 * wire->n_used * RTE_MIN(passed_us, (uint64_t)AGENT_SECOND_US);
	uint64_t n = RTE_MIN(due / AGENT_SECOND_US, (uint64_t)RTE_MIN(wire->n_used, SWEEP_MOST));
	/* nothing rests when rules are to be taken out */
	const bool any = is_open(agent, 2 * number) || is_open(agent, 2 * number + 1);

	wire->due = (uint32_t)(due % AGENT_SECOND_US);
	for (; n > 0 && wire->n_used > 0; n--) {
		if (wire->sweep >= wire->n_used)
			wire->sweep = 0;
		look_ahead(agent, number);
		if (!any && rests(&wire->used[wire->sweep], agent->now_us))
			wire->sweep++;
		else
			sweep_slot(agent, number);
	}
}

void agent_sweep(struct agent *agent, uint64_t passed_us)
{
	for (unsigned number = 0; number < agent->config.n_ports / 2; number++) {
		if (agent->wire[number].slots.n == 0)
			continue;
		slots_turn(&agent->wire[number].slots, agent->now_us);
		count_soon(agent, number);
		sweep_wire(agent, number, passed_us);
	}
}
