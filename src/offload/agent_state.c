/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent_state.h"

#include "offload/agent_full.h"

/* Reasons that are no fixed one. */
enum {
	KEEP = OFFLOAD_REFUSALS - 3, /* the reason stays */
	GIVEN,			     /* the event's own */
	AFTER, /* that of a flow in software, which had this one for leaving: reason_after() */
};
static_assert((int)OFFLOAD_N_REASONS <= (int)KEEP, "no reason has their numbers");

/* Actions beside the change of the state. */
enum {
	DELETE = 1u << 0,    /* the rule's delete is asked for */
	LATER = 1u << 1,     /* the same as soon as nothing is awaited */
	BACK_OFF = 1u << 2,  /* the next try waits 0.1 s, twice as long each time, up to a minute */
	HOLD_DOWN = 1u << 3, /* the next try waits 0.1 s: the flow has done nothing wrong */
	REST = 1u << 4,	     /* the next try waits a minute */
	NEVER = 1u << 5,     /* there is no next try */
	FAILURE = 1u << 6,   /* it is counted, and held against the port's health */
	MARK_NEXT = 1u << 7, /* what was to be full is marked for a while */
	SILENT = 1u << 8,    /* the flow is gone: no follower is told */
	OF_RULES = DELETE | LATER | FAILURE | MARK_NEXT,
};

struct transition {
	bool is_there;
	uint8_t next; /* enum offload_state */
	uint8_t reason;
	uint16_t actions;
};

#define ON(state, event) [OFFLOAD_##state][EVENT_##event]
#define TO(state, why, act) \
	{.is_there = true, .next = OFFLOAD_##state, .reason = (why), .actions = (act)}

/* Whatever the reason, a rule leaves the same way from each state in which it is in the NIC by its word. */
#define LEAVES(state)                                                                              \
	ON(state, OUTRANKED) = TO(LEAVING, OFFLOAD_OUTRANKED, DELETE),                             \
		  ON(state, FAILED) = TO(LEAVING, GIVEN, DELETE | BACK_OFF | FAILURE | MARK_NEXT), \
		  ON(state, UNPLAIN) = TO(LEAVING, OFFLOAD_UNPLAIN, DELETE | REST),                \
		  ON(state, BREAKER) = TO(LEAVING, OFFLOAD_BREAKER, DELETE),                       \
		  ON(state, OFF) = TO(LEAVING, OFFLOAD_OFF, DELETE),                               \
		  ON(state, UNREAD) = TO(LEAVING, OFFLOAD_COUNTER, DELETE | MARK_NEXT),            \
		  ON(state, MUTE) = TO(LEAVING, OFFLOAD_SLOWED, DELETE | MARK_NEXT),               \
		  ON(state, CLOSING) = TO(LEAVING, OFFLOAD_CLOSING, DELETE),                       \
		  ON(state, PROMOTED) = TO(LEAVING, OFFLOAD_PROMOTED, DELETE),                     \
		  ON(state, DECIDED) = TO(LEAVING, OFFLOAD_DECIDED, DELETE),                       \
		  ON(state, SLOWED) = TO(LEAVING, OFFLOAD_SLOWED, DELETE),                         \
		  ON(state, ENDED) = TO(LEAVING, OFFLOAD_ENDED, DELETE)

/* One line for each state and event; devtools/offload-diagram reads it. */
static const struct transition transitions[OFFLOAD_N_STATES][AGENT_N_EVENTS] = {
	ON(SOFTWARE, WANTED) = TO(QUEUED, GIVEN, 0),
	ON(SOFTWARE, DISPLACED) = TO(SOFTWARE, OFFLOAD_DISPLACED, 0),
	ON(SOFTWARE, OUTRANKED) = TO(SOFTWARE, OFFLOAD_OUTRANKED, 0),
	ON(SOFTWARE, UNPLAIN) = TO(SOFTWARE, OFFLOAD_UNPLAIN, 0),
	ON(SOFTWARE, PLAIN) = TO(SOFTWARE, OFFLOAD_QUIET, 0),
	ON(QUEUED, HANDED_IN) = TO(INSTALLING, KEEP, 0),
	ON(QUEUED, DISPLACED) = TO(SOFTWARE, OFFLOAD_DISPLACED, HOLD_DOWN),
	ON(QUEUED, OUTRANKED) = TO(SOFTWARE, OFFLOAD_OUTRANKED, 0),
	ON(QUEUED, BREAKER) = TO(SOFTWARE, OFFLOAD_BREAKER, 0),
	ON(QUEUED, OFF) = TO(SOFTWARE, OFFLOAD_OFF, 0),
	ON(QUEUED, NO_SLOT) = TO(SOFTWARE, OFFLOAD_NO_SLOT, BACK_OFF),
	ON(QUEUED, ENDED) = TO(SOFTWARE, OFFLOAD_ENDED, SILENT),
	ON(REFUSED, WANTED) = TO(QUEUED, GIVEN, 0),
	ON(REFUSED, ENDED) = TO(SOFTWARE, OFFLOAD_ENDED, SILENT),
	ON(INSTALLING, ACCEPTED) = TO(ACCEPTED, KEEP, 0),
	ON(INSTALLING, REFUSED) = TO(REFUSED, GIVEN, BACK_OFF | MARK_NEXT),
	ON(INSTALLING, UNABLE) = TO(REFUSED, GIVEN, NEVER),
	ON(INSTALLING, PUT_OFF) = TO(REFUSED, GIVEN, BACK_OFF),
	ON(INSTALLING, NOT_TAKEN) = TO(SOFTWARE, GIVEN, BACK_OFF),
	ON(INSTALLING, CLOSING) = TO(INSTALLING, KEEP, LATER),
	ON(INSTALLING, DECIDED) = TO(INSTALLING, KEEP, LATER),
	ON(INSTALLING, ENDED) = TO(INSTALLING, KEEP, LATER),
	ON(ACCEPTED, PROVEN) = TO(PROVEN, KEEP, 0),
	LEAVES(ACCEPTED),
	ON(PROVEN, MISSED) = TO(SUSPECT, GIVEN, 0),
	LEAVES(PROVEN),
	ON(SUSPECT, PROVEN) = TO(PROVEN, OFFLOAD_BUSY, 0),
	LEAVES(SUSPECT),
	ON(LEAVING, REMOVED) = TO(SOFTWARE, AFTER, 0),
	ON(LEAVING, KEPT) = TO(LEAVING, KEEP, LATER),
};

/* The reason that a flow has in software, after it left for that one. */
static uint8_t reason_after(uint8_t reason)
{
	switch (reason) {
	case OFFLOAD_UNSEEN:
	case OFFLOAD_UNMARKED:
	case OFFLOAD_WRONG_MARK:
	case OFFLOAD_COUNTER:
	case OFFLOAD_RETURNED:
		return OFFLOAD_QUARANTINE;
	case OFFLOAD_SLOWED:
		return OFFLOAD_QUIET;
	default:
		return reason;
	}
}

#define FIRST_WAIT_MS 100
#define MOST_WAITS 10
#define RETRY_FULL_MS 10000
#define MOST_FULL_RETRIES 6

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
		.record = entry->position == FLOW_NONE ? NULL
						       : agent_record_at(agent, entry->position),
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

uint64_t agent_marked_packets(
	const struct slot_direction *direction, const struct flow_record *record, unsigned from)
{
	if (record == NULL || agent_is_full(direction) ||
		(direction->state != OFFLOAD_PROVEN && direction->state != OFFLOAD_SUSPECT))
		return direction->marked;
	return direction->marked + flow_packets(record, from) - direction->base;
}

void agent_due(const struct agent_at *at, uint64_t at_us)
{
	due_hasten(&at->agent->wire[at->domain].due, at->slot, at_us);
}

static void note_change(struct agent *agent, const struct offload_change *change)
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

	note_change(agent, &change);
}

/* The direction is not asked for before that; `waits`: how often it waited then, in a row. */
static void wait(const struct agent_at *at, uint32_t wait_ms, unsigned waits)
{
	const uint32_t now_ms = (uint32_t)(at->agent->now_us / 1000);
	const uint32_t until_ms = now_ms + RTE_MIN(wait_ms, (uint32_t)AGENT_MOST_WAIT_MS);

	if (at->entry != NULL)
		at->direction->retry_ms = until_ms;
	else if (!offload_waits(at->record, !at->from) ||
		 (int32_t)(until_ms - offload_retry_ms(at->record, now_ms)) > 0)
		offload_set_retry_ms(at->record, until_ms); /* the later one of both */
	offload_set_back_off(at->record, at->from, RTE_MIN(waits, (unsigned)MOST_WAITS));
}

static void wait_by(const struct agent_at *at, unsigned actions)
{
	if (at->record == NULL || offload_back_off(at->record, at->from) == OFFLOAD_NEVER)
		return;
	const unsigned waits = offload_back_off(at->record, at->from);

	if (actions & BACK_OFF)
		wait(at, (uint32_t)FIRST_WAIT_MS << waits, waits + 1);
	if (actions & HOLD_DOWN)
		wait(at, FIRST_WAIT_MS, RTE_MAX(waits, 1u));
	if (actions & REST)
		wait(at, AGENT_MOST_WAIT_MS, MOST_WAITS);
	if (actions & NEVER)
		offload_set_back_off(at->record, at->from, OFFLOAD_NEVER);
}

/* A direction that could not be full is marked for so long, doubled each time. */
static void mark_next(const struct agent_at *at)
{
	struct agent_full_direction *full =
		&at->agent->wire[at->domain].full[at->slot].direction[at->from];

	full->retry_ms = at->agent->now_us / 1000 + ((uint64_t)RETRY_FULL_MS << full->failures);
	if (full->failures < MOST_FULL_RETRIES)
		full->failures++;
}

static void count_failure(const struct agent_at *at, uint8_t reason)
{
	struct health_worker *worker = agent_health_worker(at);
	const enum provider_kind kind = provider_kind(&at->entry->key);

	at->agent->port[at->port].counters.fell_out[reason]++;
	if (reason == OFFLOAD_UNSEEN)
		health_kind_unseen(worker, kind);
	/* nothing else was expected of a kind that is out */
	if (reason != OFFLOAD_UNSEEN ||
		health_kind_out(agent_health(at->agent, at->port), kind) == 0)
		health_failed(worker, reason);
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

static void set_entry(
	const struct agent_at *at, enum offload_state before, enum offload_state after)
{
	struct slot_direction *direction = at->direction;
	struct admission *admission = agent_admission(at->agent, at->port);

	/* a flow has a rank while it has a rule, or is on the way to one */
	if (after == OFFLOAD_INSTALLING)
		admission_hold(admission, at->slot, direction->rate.value);
	else if (after < OFFLOAD_SUSPECT && offload_state_holds(before))
		admission_release(admission, at->slot);
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
	direction->port = (uint8_t)at->port;
	agent_due(at, at->agent->now_us + agent_rest_us(at->agent));
}

static void enter_state(
	const struct agent_at *at, enum offload_state before, enum offload_state after)
{
	if (at->entry != NULL) {
		count_move(at, before, at->direction->port, after);
		set_entry(at, before, after);
	} else {
		count_move(at, before, offload_port(at->record, at->from), after);
		offload_set_port(at->record, at->from, at->port);
	}
	if (at->record != NULL)
		offload_set_state(at->record, at->from, after);
}

/* The reason, and since when it is so. */
static void set_reason(const struct agent_at *at, uint8_t reason)
{
	if (at->record != NULL)
		at->record->reason[at->from] = reason;
	if (at->entry == NULL)
		return;
	at->direction->reason = reason;
	at->direction->since_us = at->agent->now_us;
}

static void tell_move(const struct agent_at *at, enum offload_state before,
	enum offload_state after, uint8_t reason, uint32_t detail)
{
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

	note_change(at->agent, &change);
}

void agent_event(const struct agent_at *at, enum agent_event event, uint8_t reason, uint32_t detail)
{
	const enum offload_state before = at->entry != NULL
						  ? (enum offload_state)at->direction->state
						  : offload_state(at->record, at->from);
	const struct transition *to = &transitions[before][event];
	const enum offload_state after = (enum offload_state)to->next;
	const uint8_t old =
		at->entry != NULL ? at->direction->reason : at->record->reason[at->from];
	/* only a direction with a slot has a rule */
	const unsigned actions = at->entry != NULL ? to->actions : to->actions & ~OF_RULES;

	if (!to->is_there)
		return;
	if (to->reason == KEEP)
		reason = old;
	else if (to->reason == AFTER)
		reason = reason_after(old);
	else if (to->reason != GIVEN)
		reason = to->reason;
	if (actions & FAILURE)
		count_failure(at, reason);
	if (actions & MARK_NEXT && agent_is_full(at->direction))
		mark_next(at);
	if (actions & LATER)
		at->direction->remove = true;
	wait_by(at, actions);
	if (at->entry != NULL && after == OFFLOAD_LEAVING && after != before)
		at->direction->marked = agent_marked_packets(at->direction, at->record, at->from);
	if (after != before)
		enter_state(at, before, after);
	if (after != before || reason != old)
		set_reason(at, reason);
	if (after != before && !(actions & SILENT))
		tell_move(at, before, after, reason, detail);
	if (actions & DELETE && at->entry != NULL)
		agent_remove(at);
}

bool agent_give_slot(struct agent *agent, struct flow_record *record, uint32_t position)
{
	const unsigned number = flow_key_wire(&record->key);
	struct agent_wire *wire = &agent->wire[number];

	if (offload_has_slot(record))
		return true;
	uint32_t slot = slots_take(&wire->slots, &record->key, position);

	if (slot == SLOT_NONE)
		return false;
	struct slot *entry = slots_slot(&wire->slots, slot);

	if (wire->full != NULL)
		memset(&wire->full[slot], 0, sizeof(wire->full[slot]));
	entry->position = position;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		entry->direction[from].state = (uint8_t)offload_state(record, from);
		entry->direction[from].reason = record->reason[from];
		/* the record had one for both */
		entry->direction[from].retry_ms =
			offload_retry_ms(record, (uint32_t)(agent->now_us / 1000));
		entry->direction[from].port = (uint8_t)offload_port(record, from);
	}
	record->slot = slot;
	/* a bit-field: through a word of its own */
	unsigned offload = (record->offload | OFFLOAD_HAS_SLOT) & ~OFFLOAD_LOST_SLOT;

	record->offload = offload & 0xff;
	return true;
}

static bool is_needed(const struct slot *entry)
{
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		if (agent_holds(&entry->direction[from]) ||
			entry->direction[from].state == OFFLOAD_QUEUED ||
			entry->direction[from].awaited || entry->direction[from].count_awaited)
			return true;
	return false;
}

/* The record remembers of its slot what it has room for. */
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

bool agent_release(struct agent *agent, unsigned number, uint32_t slot)
{
	struct agent_wire *wire = &agent->wire[number];
	struct slot *entry = slots_slot(&wire->slots, slot);
	/* a flow that left keeps its slot while there are enough, for what is known of it there */
	bool enough = wire->slots.n_used < wire->slots.n / 4 * 3;

	if (is_needed(entry) || (wire->full != NULL && wire->full[slot].held) ||
		(entry->position != FLOW_NONE && enough))
		return false;
	if (entry->position != FLOW_NONE)
		detach(entry, agent_record_at(agent, entry->position));
	due_remove(&wire->due, slot);
	slots_give_back(&wire->slots, slot);
	return true;
}
