/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offload/agent_parts.h"

/* Inserts that one worker hands to a port's installer before it has answers; grows while they are fast. */
#define FIRST_LIMIT 16
#define LEAST_LIMIT 4
#define MOST_LIMIT (INSTALLER_UNDER_WAY / 2)
#define FAST_US 1000
#define SLOW_US 5000

int agent_create(struct agent **out, const struct agent_config *config)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (agent == NULL)
		return -ENOMEM;
	agent->config = *config;
	for (unsigned i = 0; i < config->n_ports; i++) {
		agent->port[i].installer = config->installer[i];
		agent->port[i].limit = FIRST_LIMIT;
	}
	*out = agent;
	return 0;
}

void agent_destroy(struct agent *agent)
{
	if (agent == NULL)
		return;
	for (unsigned i = 0; i < RTE_DIM(agent->wire); i++)
		agent_slots_fini(&agent->wire[i]);
	free(agent);
}

int agent_slots_init(struct agent_wire *wire, const struct agent_config *config, uint32_t mark_max)
{
	const struct slots_config slots = {
		.n = config->slots,
		.n_workers = config->n_workers,
		.worker = config->worker,
		.mark_max = mark_max,
		.positions = flow_table_positions(config->table),
		.random = config->random,
	};

	memset(wire, 0, sizeof(*wire));
	int ret = slots_init(&wire->slots, &slots);

	if (ret < 0)
		return ret;
	wire->used = calloc(RTE_MAX(wire->slots.n, 1u), sizeof(wire->used[0]));
	if (wire->used == NULL) {
		agent_slots_fini(wire);
		return -ENOMEM;
	}
	return 0;
}

void agent_slots_fini(struct agent_wire *wire)
{
	slots_fini(&wire->slots);
	free(wire->used);
	memset(wire, 0, sizeof(*wire));
}

void agent_adopt(struct agent *agent, unsigned number, const struct agent_wire *wire)
{
	agent->wire[number] = *wire;
}

void agent_learned(struct agent *agent, uint32_t position, unsigned side, unsigned from)
{
	if (agent->config.threshold == 0)
		agent_want(agent, position, side, from, 1);
}

void agent_sample(struct agent *agent, uint32_t position, unsigned side, unsigned from)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	enum offload_state state = offload_state(record, side);
	struct meter_result result;

	if (state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED)
		return;
	if (agent->config.threshold == 0) {
		agent_want(agent, position, side, from, 1);
		return;
	}
	if (flow_packets(record, 0) + flow_packets(record, 1) < agent->config.min_packets)
		return;
	if (!meter_packet(&agent->meter, record, position, from, side, agent->now_us, &result))
		return;
	record->rate = RTE_MIN(result.rate, (uint32_t)UINT16_MAX) & UINT16_MAX;
	if (result.rate >= agent->config.threshold)
		agent_want(agent, result.position, result.side, result.from, result.rate);
}

/* The queue's flow that is handed in next; its record, or NULL when it is no more. */
static struct flow_record *waiting(
	struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = flow_table_record(agent->config.table, entry->position);

	if (record->state == FLOW_FREE || agent_tag(record) != entry->tag ||
		offload_state(record, port % 2) != OFFLOAD_QUEUED)
		return NULL;
	return record;
}

/* A slot for the flow, if it has none. */
static bool give_slot(struct agent *agent, struct flow_record *record, uint32_t position)
{
	struct agent_wire *wire = &agent->wire[flow_key_wire(&record->key)];

	if (offload_has_slot(record))
		return true;
	uint32_t slot = slots_take(&wire->slots, &record->key, position);

	if (slot == SLOT_NONE)
		return false;
	struct slot *entry = slots_slot(&wire->slots, slot);

	entry->position = position;
	entry->next = wire->n_used;
	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		entry->side[side].state = (uint8_t)offload_state(record, side);
		entry->side[side].reason = record->reason[side];
		/* what the record had for both */
		entry->side[side].retry_ms = record->slot;
	}
	wire->used[wire->n_used++] = (struct agent_used){.slot = slot};
	record->slot = slot;
	/* a bit-field: through a word of its own */
	unsigned offload = (record->offload | OFFLOAD_HAS_SLOT) & ~OFFLOAD_LOST_SLOT;

	record->offload = offload & 0xff;
	return true;
}

static bool ask_insert(const struct agent_at *at, unsigned from)
{
	const struct agent_wire *wire = &at->agent->wire[agent_wire_of(at->port)];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.mark = slots_mark(&wire->slots, at->slot),
		.op = INSTALLER_INSERT,
		.from = (uint8_t)from,
	};

	return installer_ask(
		at->agent->port[at->port].installer, at->agent->config.worker, &request);
}

/* The installer has been asked. */
static void begin_insert(const struct agent_at *at, uint8_t from)
{
	struct agent *agent = at->agent;
	unsigned side = at->port % 2;

	slots_set_from(&agent->wire[agent_wire_of(at->port)].slots, at->slot, side, from);
	if (offload_crosses(at->record, side, from)) {
		unsigned offload = at->record->offload | OFFLOAD_CROSSED;

		at->record->offload = offload & 0xff;
	}
	at->side->from = from;
	at->side->awaited = true;
	at->side->late = false;
	at->side->remove = false;
	at->side->unmarked = 0;
	at->side->queued_us = at->side->asked_us = agent->now_us;
	at->side->nic_base = at->side->marked;
	at->side->nic_due_us = UINT64_MAX;
	agent->port[at->port].under_way++;
}

/* Hands in one flow of the queue; false: no more can be handed in now. */
static bool hand_in(struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = waiting(agent, port, entry);
	struct queue_entry displaced;

	if (record == NULL)
		return true;
	struct agent_at at = agent_at_waiting(agent, port % 2, record, entry->from);

	if (!give_slot(agent, record, entry->position)) {
		agent->port[port].counters.no_slot++;
		/* else it were asked for, and noted, again and again */
		agent_back_off(&at);
		agent_move(&at, OFFLOAD_SOFTWARE, OFFLOAD_NO_SLOT, 0);
		return true;
	}
	at = agent_at_waiting(agent, port % 2, record, entry->from);
	/* the other one was queued for the same packets, and was first */
	if (agent_comes_by_both(&at, entry->from)) {
		agent_move(&at, OFFLOAD_SOFTWARE, OFFLOAD_BOTH_SIDES, 0);
		return true;
	}
	if (!ask_insert(&at, entry->from)) {
		queue_put(&agent->port[port].queue, *entry, &displaced);
		return false;
	}
	begin_insert(&at, entry->from);
	agent_move(&at, OFFLOAD_INSTALLING, record->reason[port % 2], 0);
	return true;
}

/* The port went to software while flows waited. */
static void send_home(struct agent *agent, unsigned port)
{
	struct queue_entry entry;

	while (queue_take(&agent->port[port].queue, &entry)) {
		struct flow_record *record = waiting(agent, port, &entry);

		if (record == NULL)
			continue;
		const struct agent_at at = agent_at_waiting(agent, port % 2, record, entry.from);

		agent_move(&at, OFFLOAD_SOFTWARE, OFFLOAD_BREAKER, 0);
	}
}

void agent_pump(struct agent *agent, unsigned port)
{
	struct agent_port *to = &agent->port[port];
	struct queue_entry entry;

	if (health_state(installer_health(to->installer)) == HEALTH_OPEN)
		send_home(agent, port);
	while (to->under_way < to->limit && queue_take(&to->queue, &entry))
		if (!hand_in(agent, port, &entry))
			break;
}

/* Nobody's place is in front of a slow NIC for long: a busier flow that comes later is to overtake it. */
static void adapt(struct agent_port *port, const struct installer_answer *answer)
{
	port->under_way--;
	if (answer->took_us < FAST_US && port->limit < MOST_LIMIT)
		port->limit++;
	else if (answer->took_us > SLOW_US)
		port->limit = RTE_MAX(port->limit / 2, (uint32_t)LEAST_LIMIT);
}

static void inserted(const struct agent_at *at, const struct installer_answer *answer)
{
	const struct provider_abilities *abilities =
		installer_abilities(at->agent->port[at->port].installer);

	adapt(&at->agent->port[at->port], answer);
	at->side->awaited = false;
	if (answer->result < 0) {
		at->side->remove = false;
		agent_move(at, at->record != NULL ? OFFLOAD_REFUSED : OFFLOAD_SOFTWARE,
			answer->reason, 0);
		at->agent->port[at->port].counters.refused++;
		if (at->record != NULL && answer->result == -EOPNOTSUPP)
			offload_set_back_off(at->record, at->port % 2, OFFLOAD_NEVER);
		else
			agent_back_off(at);
		agent_release(at->agent, agent_wire_of(at->port), at->slot);
		return;
	}
	counter_begin(&at->side->nic, 0);
	if (abilities->counts && at->agent->config.audit_counters)
		agent_count_soon(at, AGENT_DOUBT_US);
	at->side->checked_us = at->agent->now_us;
	at->side->checked = at->record == NULL ? 0 : flow_packets(at->record, at->side->from);
	agent_move(at, OFFLOAD_ACCEPTED, at->side->reason,
		(uint32_t)(at->agent->now_us - at->side->queued_us));
	if (at->record == NULL || at->side->remove)
		agent_leave(at, OFFLOAD_ENDED);
}

/* What a flow is told to have in software, after it left for this reason. */
static uint8_t reason_after(uint8_t reason)
{
	switch (reason) {
	case OFFLOAD_UNSEEN:
	case OFFLOAD_UNMARKED:
	case OFFLOAD_WRONG_MARK:
	case OFFLOAD_COUNTER:
		return OFFLOAD_QUARANTINE;
	case OFFLOAD_SLOWED:
		return OFFLOAD_QUIET;
	default:
		return reason;
	}
}

/* Packets without marks are worth no look any more where no port has a rule. */
static void uncross(const struct agent_at *at)
{
	if (at->record == NULL || flow_is_in_nic(at->record))
		return;
	unsigned offload = at->record->offload & ~OFFLOAD_CROSSED;

	at->record->offload = offload & 0xff;
}

/* It is told, unless that is what a NIC says that has not answered. */
static void delete_failed(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = &at->agent->port[at->port];
	const struct refusal *refusal = refusal_of(installer_refusals(port->installer), reason);

	if (refusal == NULL || refusal->error == ETIMEDOUT ||
		!agent_is_new(at->agent, port->refusal_told_us))
		return;
	port->refusal_told_us = at->agent->now_us;
	agent_tell(at->agent, at->port, CHANGE_DELETE_REFUSED, reason);
}

static void removed(const struct agent_at *at, const struct installer_answer *answer)
{
	at->side->awaited = false;
	if (answer->result < 0) {
		/* the rule may be there still: asked again by the sweep */
		at->side->remove = true;
		delete_failed(at, answer->reason);
		return;
	}
	at->side->remove = false;
	agent_move(at, OFFLOAD_SOFTWARE, reason_after(at->side->reason), 0);
	uncross(at);
	agent_release(at->agent, agent_wire_of(at->port), at->slot);
}

/* What one rule's counter says of the age of readings holds for all of the port. */
static void learn_age(struct agent_port *port, const struct counter *counter)
{
	port->caches |= counter->caches;
	port->fresh = !port->caches && (port->fresh || counter->fresh >= COUNTER_FRESH);
}

/* `rate`: packets a second since the last look at the side. */
static void watch_counter(const struct agent_at *at, uint64_t raw, uint64_t most, uint64_t rate)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct counter *counter = &at->side->nic;
	const struct counter_look look = {
		.raw = raw,
		.least = at->side->asked,
		.most = most,
		.now_us = at->agent->now_us,
		.patience_us = port->fresh ? AGENT_FRESH_US : AGENT_CACHED_US,
	};
	enum counter_verdict verdict = counter_watch(counter, &look);

	/* what it has too many never came here, and never will: from now on it is expected */
	if (verdict == COUNTER_AHEAD)
		at->side->nic_base -= counter->total - (most - AGENT_NIC_AHEAD);
	/* so that no look of the sweep's is too early for it */
	uint64_t us = counter_interval_us(counter, rate, AGENT_SECOND_US / 4);

	learn_age(port, counter);
	if (verdict == COUNTER_STUCK)
		agent_fall_out(at, OFFLOAD_COUNTER);
	else if (verdict == COUNTER_BEHIND ||
		 (!port->fresh && !port->caches && rate >= AGENT_TELLING))
		agent_count_soon(at, RTE_MIN(us, (uint64_t)AGENT_DOUBT_US));
	else
		at->side->nic_due_us = at->agent->now_us + us;
}

static void counted(const struct agent_at *at, const struct installer_answer *answer)
{
	struct slot_side *side = at->side;
	uint64_t now = agent_marked_packets(at) - side->nic_base;
	uint64_t passed_us = at->agent->now_us - side->checked_us + 1;
	uint64_t rate;

	side->count_awaited = false;
	if (side->state < OFFLOAD_SUSPECT || at->record == NULL)
		return;
	side->nic_due_us = UINT64_MAX;
	if (answer->result == -EOPNOTSUPP)
		return; /* the port cannot, whatever it said */
	rate = (flow_packets(at->record, side->from) - side->checked) * AGENT_SECOND_US / passed_us;
	if (answer->result < 0) {
		side->nic_due_us = at->agent->now_us + AGENT_SECOND_US;
		return;
	}
	/* packets that the NIC dropped when the host was late are in its counter, too */
	watch_counter(at, answer->packets, now + AGENT_NIC_AHEAD, rate);
}

void agent_answers(struct agent *agent, unsigned port)
{
	struct installer_answer answers[32];
	unsigned n = installer_answers(
		agent->port[port].installer, agent->config.worker, answers, RTE_DIM(answers));

	for (unsigned i = 0; i < n; i++) {
		const struct slots *slots = &agent->wire[agent_wire_of(port)].slots;
		struct agent_at at = agent_at_slot(agent, port, answers[i].place - slots->first);

		switch ((enum installer_op)answers[i].op) {
		case INSTALLER_INSERT:
			inserted(&at, &answers[i]);
			break;
		case INSTALLER_REMOVE:
			removed(&at, &answers[i]);
			break;
		case INSTALLER_COUNT:
			counted(&at, &answers[i]);
			break;
		case INSTALLER_N_OPS:
			break;
		}
	}
}

static void tell_health(struct agent *agent, unsigned port)
{
	const uint64_t *flows = agent->port[port].counters.flows;
	struct health_worker *health =
		&installer_health(agent->port[port].installer)->worker[agent->config.worker];

	atomic_store_explicit(&health->in_hw,
		(uint32_t)(flows[OFFLOAD_ACCEPTED] + flows[OFFLOAD_PROVEN] +
			   flows[OFFLOAD_SUSPECT]),
		memory_order_relaxed);
}

void agent_turn(struct agent *agent, uint64_t now_us)
{
	uint64_t passed_us = now_us - agent->now_us;

	agent->now_us = now_us;
	for (unsigned port = 0; port < agent->config.n_ports; port++) {
		if (agent->port[port].installer == NULL ||
			agent->wire[agent_wire_of(port)].slots.n == 0)
			continue;
		agent_answers(agent, port);
		agent_pump(agent, port);
		tell_health(agent, port);
	}
	agent_sweep(agent, passed_us);
}
