/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a flow's state, and what goes with them. */
#include "offload/agent_full.h"

#include <string.h>

struct agent_at agent_at_slot(struct agent *agent, unsigned port, uint32_t slot)
{
	struct slot *entry = slots_slot(&agent->wire[agent_wire_of(agent, port)].slots, slot);

	return (struct agent_at){
		.agent = agent,
		.port = port,
		.slot = slot,
		.entry = entry,
		.side = &entry->side[agent_side_of(agent, port)],
		.from = entry->side[agent_side_of(agent, port)].from,
		.record = entry->position == FLOW_NONE
				  ? NULL
				  : flow_table_record(agent->config.table, entry->position),
	};
}

struct agent_at agent_at_record(struct agent *agent, unsigned side, struct flow_record *record)
{
	unsigned port = agent_port_of(agent, &record->key, side);
	struct agent_at at = {.agent = agent, .port = port, .slot = SLOT_NONE};

	if (offload_has_slot(record))
		at = agent_at_slot(agent, port, record->slot);
	at.record = record;
	return at;
}

struct agent_at agent_at_waiting(
	struct agent *agent, unsigned side, struct flow_record *record, unsigned from)
{
	struct agent_at at = agent_at_record(agent, side, record);

	at.from = from;
	return at;
}

static void note(struct agent *agent, const struct offload_change *change)
{
	change_note(&agent->changes, change);
	if (agent->config.tell != NULL)
		agent->config.tell(agent->config.context, change);
}

void agent_tell(struct agent *agent, unsigned port, enum change_kind kind, uint8_t reason)
{
	const struct offload_change change = {
		.time_us = agent->now_us & CLOCK_MAX_US,
		.kind = kind,
		.reason = reason,
		.port = port & 0xff,
	};

	note(agent, &change);
}

/* Who has a rule, or is on the way to one, has a rank. */
static void rank(const struct agent_at *at, enum offload_state after)
{
	struct admission *admission = &at->agent->wire[agent_wire_of(at->agent, at->port)]
					       .admission[agent_side_of(at->agent, at->port)];

	if (after == OFFLOAD_INSTALLING)
		admission_hold(admission, at->slot, at->side->rate.value);
	else if (after < OFFLOAD_SUSPECT)
		admission_release(admission, at->slot);
}

void agent_move(
	const struct agent_at *at, enum offload_state after, uint8_t reason, uint32_t detail)
{
	struct agent_counters *counters = &at->agent->port[at->port].counters;
	unsigned side = agent_side_of(at->agent, at->port);
	enum offload_state before = at->entry != NULL ? (enum offload_state)at->side->state
						      : offload_state(at->record, side);
	const struct offload_change change = {
		.key = at->entry != NULL ? at->entry->key : at->record->key,
		.time_us = at->agent->now_us & CLOCK_MAX_US,
		.kind = CHANGE_FLOW,
		.reason = reason,
		.port = at->port & 0xff,
		.from = at->from & 1,
		.before = before & 7,
		.after = after & 7,
		.full = at->entry != NULL && offload_state_holds(after) && agent_is_full(at->side),
		.detail = detail,
	};

	counters->arrows[before][after]++;
	if (before != OFFLOAD_SOFTWARE)
		counters->flows[before]--;
	if (after != OFFLOAD_SOFTWARE)
		counters->flows[after]++;
	if (at->entry != NULL) {
		rank(at, after);
		if (at->side->stays && after != OFFLOAD_LEAVING) {
			at->side->stays = false;
			at->agent->port[at->port].n_stay--;
		}
		at->side->state = (uint8_t)after;
		at->side->reason = reason;
		at->side->since_us = at->agent->now_us;
		agent_wake(at);
	}
	if (at->record != NULL) {
		offload_set_state(at->record, side, after);
		at->record->reason[side] = reason;
	}
	note(at->agent, &change);
}

uint64_t agent_waits_us(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned side)
{
	uint32_t now_ms = (uint32_t)(agent->now_us / 1000);
	uint32_t retry_ms = entry != NULL ? entry->side[side].retry_ms : record->slot;
	/* 32 bits are 49 days: more than the longest wait is one that is over */
	uint32_t left_ms = retry_ms - now_ms;

	if (!offload_waits(record, side) || left_ms > AGENT_MOST_WAIT_MS)
		return 0;
	return UINT64_C(1000) * left_ms;
}

bool agent_comes_by_both(const struct agent_at *at, unsigned from)
{
	if (at->entry == NULL)
		return false;
	const struct slot_side *other = &at->entry->side[!agent_side_of(at->agent, at->port)];

	return offload_state_holds((enum offload_state)other->state) && other->from == from;
}

uint64_t agent_marked_packets(const struct agent_at *at)
{
	const struct slot_side *side = at->side;

	if (at->record == NULL || agent_is_full(side) ||
		(side->state != OFFLOAD_PROVEN && side->state != OFFLOAD_SUSPECT))
		return side->marked;
	return side->marked + flow_packets(at->record, side->from) - side->base;
}

void agent_remove(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[agent_wire_of(at->agent, at->port)];
	struct agent_port *port = &at->agent->port[at->port];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.mark = slots_mark(&wire->slots, at->slot),
		.op = INSTALLER_REMOVE,
		.from = at->side->from,
	};

	at->side->awaited = admission_affords(&port->budget, at->agent->now_us, 1) &&
			    installer_ask(port->installer, at->agent->config.worker, &request);
	at->side->late = false;
	at->side->asked_us = at->agent->now_us;
	at->side->remove = !at->side->awaited;
	if (at->side->awaited)
		admission_charge(&port->budget);
}

void agent_leave(const struct agent_at *at, uint8_t reason)
{
	if (at->side->state == OFFLOAD_INSTALLING) {
		at->side->remove = true;
		return;
	}
	if (at->side->state < OFFLOAD_SUSPECT)
		return;
	at->side->marked = agent_marked_packets(at);
	agent_move(at, OFFLOAD_LEAVING, reason, 0);
	agent_remove(at);
}

#define FIRST_WAIT_MS 100
#define MOST_WAITS 10

/* The side is not asked for before that; `waits`: how often it waited then, in a row. */
static void wait(const struct agent_at *at, uint32_t wait_ms, unsigned waits)
{
	unsigned side = agent_side_of(at->agent, at->port);
	uint32_t until_ms = (uint32_t)(at->agent->now_us / 1000) + wait_ms;

	if (at->entry != NULL)
		at->side->retry_ms = until_ms;
	else if (!offload_waits(at->record, !side) || (int32_t)(until_ms - at->record->slot) > 0)
		at->record->slot = until_ms; /* the later one of both */
	offload_set_back_off(at->record, side, RTE_MIN(waits, (unsigned)MOST_WAITS));
}

static bool waits_in_vain(const struct agent_at *at)
{
	return at->record == NULL ||
	       offload_back_off(at->record, agent_side_of(at->agent, at->port)) == OFFLOAD_NEVER;
}

void agent_back_off(const struct agent_at *at)
{
	if (waits_in_vain(at))
		return;
	unsigned waits = offload_back_off(at->record, agent_side_of(at->agent, at->port));

	wait(at, RTE_MIN((uint32_t)FIRST_WAIT_MS << waits, (uint32_t)AGENT_MOST_WAIT_MS),
		waits + 1);
}

void agent_hold_down(const struct agent_at *at)
{
	if (!waits_in_vain(at))
		wait(at, FIRST_WAIT_MS,
			RTE_MAX(offload_back_off(at->record, agent_side_of(at->agent, at->port)),
				1u));
}

void agent_leave_unplain(const struct agent_at *at)
{
	at->side->unplain = 0;
	if (!waits_in_vain(at))
		wait(at, AGENT_MOST_WAIT_MS, MOST_WAITS);
	agent_leave(at, OFFLOAD_UNPLAIN);
}

void agent_fall_out(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct health *health = installer_health(port->installer);
	struct health_worker *worker = &health->worker[at->agent->config.worker];
	enum provider_kind kind = provider_kind(&at->entry->key);

	port->counters.fell_out[reason]++;
	if (reason == OFFLOAD_UNSEEN)
		health_kind_unseen(worker, kind);
	/* of a kind that is out nothing else was expected */
	if (reason != OFFLOAD_UNSEEN || health_kind_out(health, kind) == 0)
		health_failed(worker, reason);
	agent_back_off(at);
	if (agent_is_full(at->side))
		agent_full_failed(at);
	agent_leave(at, reason);
}

static bool holds(const struct slot *entry)
{
	for (unsigned side = 0; side < OFFLOAD_SIDES; side++)
		if (offload_state_holds((enum offload_state)entry->side[side].state) ||
			entry->side[side].state == OFFLOAD_QUEUED || entry->side[side].awaited ||
			entry->side[side].count_awaited)
			return true;
	return false;
}

/* What the record remembers of its slot. */
static void detach(const struct slot *entry, struct flow_record *record)
{
	unsigned offload = (record->offload & ~OFFLOAD_HAS_SLOT) | OFFLOAD_LOST_SLOT;
	uint32_t first_ms = entry->side[0].retry_ms, second_ms = entry->side[1].retry_ms;
	bool later = (int32_t)(second_ms - first_ms) > 0;

	record->offload = offload & 0xff;
	if (!offload_waits(record, 0) || (offload_waits(record, 1) && later))
		record->slot = second_ms;
	else
		record->slot = first_ms;
}

void agent_release(struct agent *agent, unsigned number, uint32_t slot)
{
	struct agent_wire *wire = &agent->wire[number];
	struct slot *entry = slots_slot(&wire->slots, slot);
	/* what is known of a flow that left is kept while there are slots enough */
	bool enough = wire->n_used < wire->slots.n / 4 * 3;

	if (holds(entry) || agent_full_is_held(wire, slot) ||
		(entry->position != FLOW_NONE && enough))
		return;
	if (entry->position != FLOW_NONE)
		detach(entry, flow_table_record(agent->config.table, entry->position));
	const struct agent_used last = wire->used[--wire->n_used];

	wire->used[entry->next] = last;
	slots_slot(&wire->slots, last.slot)->next = entry->next;
	slots_give_back(&wire->slots, slot);
}
