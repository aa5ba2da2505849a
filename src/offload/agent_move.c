/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a flow's state, and what goes with them. */
#include "offload/agent_full.h"

#include <string.h>

struct agent_at agent_at_slot(struct agent *agent, unsigned domain, uint32_t slot, unsigned from)
{
	struct slot *entry = slots_slot(&agent->wire[domain].slots, slot);

	return (struct agent_at){
		.agent = agent,
		.domain = domain,
		.port = entry->direction[from].port,
		.from = from & 1,
		.slot = slot,
		.entry = entry,
		.direction = &entry->direction[from],
		.record = entry->position == FLOW_NONE
				  ? NULL
				  : flow_table_record(agent->config.table, entry->position),
	};
}

struct agent_at agent_at_record(struct agent *agent, struct flow_record *record, unsigned from)
{
	if (offload_has_slot(record))
		return agent_at_slot(agent, flow_key_wire(&record->key), record->slot, from);
	return (struct agent_at){
		.agent = agent,
		.domain = flow_key_wire(&record->key),
		.port = offload_port(record, from),
		.from = from & 1,
		.slot = SLOT_NONE,
		.record = record,
	};
}

struct agent_at agent_at_port(
	struct agent *agent, unsigned port, struct flow_record *record, unsigned from)
{
	struct agent_at at = agent_at_record(agent, record, from);

	at.port = port;
	return at;
}

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

static void move_note(struct agent *agent, const struct offload_change *change)
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

	move_note(agent, &change);
}

/* Who has a rule, or is on the way to one, has a rank. */
static void rank(const struct agent_at *at, enum offload_state before, enum offload_state after)
{
	struct admission *admission = agent_admission(at->agent, at->port);

	if (after == OFFLOAD_INSTALLING)
		admission_hold(admission, at->slot, at->direction->rate.value);
	else if (after < OFFLOAD_SUSPECT && offload_state_holds(before))
		admission_release(admission, at->slot);
}

static void count_move(const struct agent_at *at, enum offload_state before, unsigned port_before,
	enum offload_state after)
{
	struct agent_counters *counters = &at->agent->port[at->port].counters;

	counters->arrows[before][after]++;
	/* one that was refused may be queued elsewhere */
	if (before != OFFLOAD_SOFTWARE)
		at->agent->port[port_before].counters.flows[before]--;
	if (after != OFFLOAD_SOFTWARE)
		counters->flows[after]++;
}

static void set_entry(const struct agent_at *at, enum offload_state after, uint8_t reason)
{
	struct slot_direction *direction = at->direction;

	if (direction->decided && !offload_state_holds(after)) {
		direction->decided = false;
		at->agent->port[direction->port].counters.decided--;
	}
	if (direction->stays && after != OFFLOAD_LEAVING) {
		direction->stays = false;
		at->agent->port[at->port].n_stay--;
	}
	if (direction->port != at->port)
		stale_forget(&direction->stale);
	direction->state = (uint8_t)after;
	direction->reason = reason;
	direction->port = (uint8_t)at->port;
	direction->since_us = at->agent->now_us;
	agent_wake(at);
}

void agent_move(
	const struct agent_at *at, enum offload_state after, uint8_t reason, uint32_t detail)
{
	const enum offload_state before = at->entry != NULL
						  ? (enum offload_state)at->direction->state
						  : offload_state(at->record, at->from);
	const struct offload_change change = {
		.key = at->entry != NULL ? at->entry->key : at->record->key,
		.time_us = at->agent->now_us & CLOCK_MAX_US,
		.kind = CHANGE_FLOW,
		.reason = reason,
		.port = at->port & 0xff,
		.from = at->from & 1u,
		.before = before & 7,
		.after = after & 7,
		.full = at->entry != NULL && offload_state_holds(after) &&
			agent_is_full(at->direction),
		.detail = detail,
	};

	if (at->entry != NULL) {
		count_move(at, before, at->direction->port, after);
		rank(at, before, after);
		set_entry(at, after, reason);
	} else {
		count_move(at, before, offload_port(at->record, at->from), after);
		offload_set_port(at->record, at->from, at->port);
	}
	if (at->record != NULL) {
		offload_set_state(at->record, at->from, after);
		at->record->reason[at->from] = reason;
	}
	move_note(at->agent, &change);
}

uint64_t agent_waits_us(const struct agent *agent, const struct slot *entry,
	const struct flow_record *record, unsigned from)
{
	uint32_t now_ms = (uint32_t)(agent->now_us / 1000);
	uint32_t retry_ms =
		entry != NULL ? entry->direction[from].retry_ms : offload_retry_ms(record, now_ms);
	/* 32 bits are 49 days: more than the longest wait is one that is over */
	uint32_t left_ms = retry_ms - now_ms;

	if (!offload_waits(record, from) || left_ms > AGENT_MOST_WAIT_MS)
		return 0;
	return UINT64_C(1000) * left_ms;
}

bool agent_other_is_there(const struct agent_at *at)
{
	if (at->entry == NULL)
		return offload_state(at->record, !at->from) == OFFLOAD_QUEUED &&
		       offload_port(at->record, !at->from) == at->port;
	const struct slot_direction *other = &at->entry->direction[!at->from];

	/* an answer that is late would be taken for this one's */
	return other->port == at->port &&
	       (other->state == OFFLOAD_QUEUED ||
		       offload_state_holds((enum offload_state)other->state) || other->awaited ||
		       other->count_awaited || other->remove);
}

uint64_t agent_marked_packets(const struct agent_at *at)
{
	const struct slot_direction *direction = at->direction;

	if (at->record == NULL || agent_is_full(direction) ||
		(direction->state != OFFLOAD_PROVEN && direction->state != OFFLOAD_SUSPECT))
		return direction->marked;
	return direction->marked + flow_packets(at->record, at->from) - direction->base;
}

void agent_remove(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[at->domain];
	struct agent_port *port = &at->agent->port[at->port];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.mark = slots_mark(&wire->slots, at->slot),
		.op = INSTALLER_REMOVE,
		.from = at->from,
	};

	at->direction->awaited = admission_affords(&port->budget, at->agent->now_us, 1) &&
				 installer_ask(port->installer, at->agent->config.worker, &request);
	at->direction->late = false;
	at->direction->asked_us = at->agent->now_us;
	at->direction->remove = !at->direction->awaited;
	if (at->direction->awaited)
		admission_charge(&port->budget);
}

void agent_leave(const struct agent_at *at, uint8_t reason)
{
	if (at->direction->state == OFFLOAD_INSTALLING) {
		at->direction->remove = true;
		return;
	}
	if (at->direction->state < OFFLOAD_SUSPECT)
		return;
	at->direction->marked = agent_marked_packets(at);
	agent_move(at, OFFLOAD_LEAVING, reason, 0);
	agent_remove(at);
}

#define FIRST_WAIT_MS 100
#define MOST_WAITS 10

/* The direction is not asked for before that; `waits`: how often it waited then, in a row. */
static void wait(const struct agent_at *at, uint32_t wait_ms, unsigned waits)
{
	const uint32_t now_ms = (uint32_t)(at->agent->now_us / 1000);
	const uint32_t until_ms = now_ms + wait_ms;

	if (at->entry != NULL)
		at->direction->retry_ms = until_ms;
	else if (!offload_waits(at->record, !at->from) ||
		 (int32_t)(until_ms - offload_retry_ms(at->record, now_ms)) > 0)
		offload_set_retry_ms(at->record, until_ms); /* the later one of both */
	offload_set_back_off(at->record, at->from, RTE_MIN(waits, (unsigned)MOST_WAITS));
}

static bool waits_in_vain(const struct agent_at *at)
{
	return at->record == NULL || offload_back_off(at->record, at->from) == OFFLOAD_NEVER;
}

void agent_back_off(const struct agent_at *at)
{
	if (waits_in_vain(at))
		return;
	unsigned waits = offload_back_off(at->record, at->from);

	wait(at, RTE_MIN((uint32_t)FIRST_WAIT_MS << waits, (uint32_t)AGENT_MOST_WAIT_MS),
		waits + 1);
}

void agent_hold_down(const struct agent_at *at)
{
	if (!waits_in_vain(at))
		wait(at, FIRST_WAIT_MS, RTE_MAX(offload_back_off(at->record, at->from), 1u));
}

void agent_leave_unplain(const struct agent_at *at)
{
	at->direction->unplain = 0;
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
	if (agent_is_full(at->direction))
		agent_full_failed(at);
	agent_leave(at, reason);
}

static bool holds(const struct slot *entry)
{
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		if (offload_state_holds((enum offload_state)entry->direction[from].state) ||
			entry->direction[from].state == OFFLOAD_QUEUED ||
			entry->direction[from].awaited || entry->direction[from].count_awaited)
			return true;
	return false;
}

/* What the record remembers of its slot. */
static void detach(const struct slot *entry, struct flow_record *record)
{
	unsigned offload = (record->offload & ~OFFLOAD_HAS_SLOT) | OFFLOAD_LOST_SLOT;
	uint32_t first_ms = entry->direction[0].retry_ms, second_ms = entry->direction[1].retry_ms;
	bool later = (int32_t)(second_ms - first_ms) > 0;

	record->offload = offload & 0xff;
	if (!offload_waits(record, 0) || (offload_waits(record, 1) && later))
		offload_set_retry_ms(record, second_ms);
	else
		offload_set_retry_ms(record, first_ms);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		offload_set_port(record, from, entry->direction[from].port);
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
