/* SPDX-License-Identifier: BSD-3-Clause */
/* The way into the NIC: who asks, who waits in the queue, who is handed to the installer. */
#include "offload/agent_full.h"
#include "offload/agent_parts.h"

/* So long canaries are flows that were proven before, and no others. */
#define CANARY_WAIT_US CLOCK_US_PER_S

/* Flows that are in the NIC, or on their way; not those that a NIC does not let go. */
static uint64_t there(const struct agent_counters *counters)
{
	uint64_t sum = 0;

	for (unsigned state = OFFLOAD_QUEUED; state < OFFLOAD_N_STATES; state++)
		if (state != OFFLOAD_REFUSED && state != OFFLOAD_LEAVING)
			sum += counters->flows[state];
	return sum;
}

/* Of a kind whose rules never mark some are tried. */
static bool may_try(const struct agent_port *port, enum provider_kind kind)
{
	uint32_t number = health_kind_out(installer_health(port->installer), kind);
	const struct agent_try *tries = &port->tries[kind];

	return number == 0 || tries->number != number || tries->asked < HEALTH_CANARIES;
}

/* It is asked in; true: to see whether the NIC keeps its word. */
static bool count_try(struct agent_port *port, enum provider_kind kind)
{
	const struct health *health = installer_health(port->installer);
	uint32_t number = health_kind_out(health, kind);
	struct agent_try *tries = &port->tries[kind];

	if (number == 0)
		return health_state(health) == HEALTH_TRYING;
	if (tries->number != number)
		*tries = (struct agent_try){.number = number};
	tries->asked++;
	return true;
}

/*
 * Canaries are flows of which a rule has done what it was to before: else whoever sends what no rule matches could be
 * one, and the NIC found wanting for it. After a second any may, since there may be none of these.
 */
static bool may_be_canary(const struct agent_at *at, const struct agent_port *port)
{
	const struct health *health = installer_health(port->installer);
	const uint64_t since_us = atomic_load_explicit(&health->since_us, memory_order_relaxed);

	return there(&port->counters) < HEALTH_CANARIES &&
	       (at->record->nic_proven >> at->from & 1 ||
		       at->agent->now_us - since_us >= CANARY_WAIT_US);
}

/* May the flow be asked in now? */
static bool may_ask(struct agent *agent, const struct agent_at *at)
{
	const struct agent_port *port = &agent->port[at->port];
	enum offload_state state = offload_state(at->record, at->from);

	if (port->installer == NULL || agent->off || agent->wire[at->domain].slots.n == 0)
		return false;
	if (state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED)
		return false;
	/* an answer that is late would be taken for the next rule's */
	if (at->entry != NULL &&
		(at->direction->awaited || at->direction->count_awaited || at->direction->remove))
		return false;
	enum provider_kind kind = provider_kind(&at->record->key);

	if (kind == PROVIDER_N_KINDS || !installer_abilities(port->installer)->kind[kind] ||
		!may_try(port, kind))
		return false;
	if (agent_full_waits(at))
		return false;
	if (offload_back_off(at->record, at->from) == OFFLOAD_NEVER ||
		agent_waits_us(agent, at->entry, at->record, at->from) != 0)
		return false;
	switch (health_state(installer_health(port->installer))) {
	case HEALTH_CLOSED:
		return true;
	case HEALTH_TRYING:
		return may_be_canary(at, port);
	case HEALTH_OPEN:
	case HEALTH_N_STATES:
		break;
	}
	return false;
}

/*
 * The queue's flow that is handed in next; its record, or NULL when it is no more. One that began anew may wait for
 * another port.
 */
static struct flow_record *waiting(
	struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = flow_table_record(agent->config.table, entry->position);

	if (record->state == FLOW_FREE || agent_tag(record) != entry->tag ||
		offload_state(record, entry->from) != OFFLOAD_QUEUED ||
		agent_at_record(agent, record, entry->from).port != port)
		return NULL;
	return record;
}

/* The place that another flow had in the queue is taken. */
static void displace(struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = waiting(agent, port, entry);

	if (record == NULL)
		return;
	const struct agent_at at = agent_at_record(agent, record, entry->from);

	agent->port[port].counters.displaced++;
	/* else it were queued, and sent home, with each of its packets while the queue is full */
	agent_hold_down(&at);
	agent_move(&at, OFFLOAD_SOFTWARE, OFFLOAD_DISPLACED, 0);
}

/* It is not asked in, for this reason; who was refused keeps what the driver said. */
static void stay(const struct agent_at *at, uint8_t reason)
{
	if (offload_state(at->record, at->from) == OFFLOAD_SOFTWARE)
		at->record->reason[at->from] = reason;
}

/* Puts the direction into the queue of the port where it arrives, if it may be asked in now. */
static void want(
	struct agent *agent, uint32_t position, unsigned port, unsigned from, uint32_t rate)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_port(agent, port, record, from);
	struct queue_entry entry = {
		.rate = rate,
		.position = position,
		.tag = agent_tag(record),
		.from = (uint8_t)from,
	};
	struct queue_entry displaced;

	if (!may_ask(agent, &at) || agent_other_is_there(&at))
		return;
	if (!agent_gets_in(agent, port, rate)) {
		stay(&at, OFFLOAD_OUTRANKED);
		return;
	}
	switch (queue_put(&agent->port[port].queue, entry, &displaced)) {
	case QUEUE_FULL:
		agent->port[port].counters.displaced++;
		stay(&at, OFFLOAD_DISPLACED);
		return;
	case QUEUE_TOOK_PLACE:
		displace(agent, port, &displaced);
		break;
	case QUEUE_TAKEN:
		break;
	}
	bool canary = count_try(&agent->port[port], provider_kind(&record->key));

	/* with threshold 0 nothing was measured */
	agent_move(&at, OFFLOAD_QUEUED, canary ? OFFLOAD_CANARY : OFFLOAD_BUSY,
		agent->config.threshold > 0 ? rate_pps(rate) : 0);
}

void agent_learned(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	if (agent->config.threshold == 0)
		want(agent, position, port, from, 1);
}

/* Who was asked in with its first packets has been taken for less busy than it is. */
static void look_at_waiting(struct agent *agent, uint32_t position, unsigned from, uint32_t rate)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, from);
	const struct queue_entry entry = {
		.rate = rate,
		.position = position,
		.tag = agent_tag(record),
		.from = (uint8_t)from,
	};

	queue_raise(&agent->port[at.port].queue, &entry);
}

void agent_sample(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	enum offload_state state = offload_state(record, from);

	if (state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED && state != OFFLOAD_QUEUED)
		return;
	if (state == OFFLOAD_SOFTWARE && !offload_has_slot(record))
		offload_set_port(record, from, port);
	/* a mark is of no use to what is dropped, and no NIC tells a sender */
	if (flow_is_rejected(record, from))
		return;
	if (flow_is_dropped(record, from) && !agent_full_drops(agent, port, record, from))
		return;
	if (agent->config.threshold == 0) {
		if (state == OFFLOAD_QUEUED)
			return;
		want(agent, position, port, from, 1);
		return;
	}
	if (agent_packets(agent, record, 0) + agent_packets(agent, record, 1) <
			agent->config.min_packets ||
		agent_is_closing(agent, record))
		return;
	if (record->reason[from] == OFFLOAD_UNPLAIN && !offload_waits(record, from))
		record->reason[from] = OFFLOAD_QUIET;
	uint32_t rate = meter_packet(&agent->meter, record, position, from,
		agent_packets(agent, record, from), agent->now_us);

	if (state == OFFLOAD_QUEUED)
		look_at_waiting(agent, position, from, rate);
	else if (rate >= rate_of_pps(agent->config.threshold))
		want(agent, position, port, from, rate);
}

void agent_sample_unplain(struct agent *agent, uint32_t position, unsigned from)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);

	if (offload_state(record, from) == OFFLOAD_SOFTWARE &&
		record->reason[from] == OFFLOAD_QUIET)
		record->reason[from] = OFFLOAD_UNPLAIN;
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

	agent_full_forget(wire, slot);
	entry->position = position;
	entry->next = wire->n_used;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		entry->direction[from].state = (uint8_t)offload_state(record, from);
		entry->direction[from].reason = record->reason[from];
		/* what the record had for both */
		entry->direction[from].retry_ms =
			offload_retry_ms(record, (uint32_t)(agent->now_us / 1000));
		entry->direction[from].port = (uint8_t)offload_port(record, from);
	}
	wire->used[wire->n_used++] = (struct agent_used){.slot = slot};
	record->slot = slot;
	/* a bit-field: through a word of its own */
	unsigned offload = (record->offload | OFFLOAD_HAS_SLOT) & ~OFFLOAD_LOST_SLOT;

	record->offload = offload & 0xff;
	return true;
}

static bool ask_insert(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[at->domain];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.mark = slots_mark(&wire->slots, at->slot),
		.op = INSTALLER_INSERT,
		.from = at->from,
		.deed = at->direction->deed,
	};

	if (!installer_ask(at->agent->port[at->port].installer, at->agent->config.worker, &request))
		return false;
	admission_charge(&at->agent->port[at->port].budget);
	return true;
}

/* The installer has been asked. */
static void begin_insert(const struct agent_at *at, const struct queue_entry *entry)
{
	struct agent *agent = at->agent;

	slots_set_from(&agent->wire[at->domain].slots, at->slot,
		agent->config.topology.place[at->port], at->from);
	at->direction->awaited = true;
	at->direction->late = false;
	at->direction->remove = false;
	at->direction->unmarked = 0;
	at->direction->unplain = 0;
	at->direction->queued_us = at->direction->asked_us = agent->now_us;
	at->direction->nic_base = at->direction->marked;
	at->direction->nic_due_us = UINT64_MAX;
	at->direction->rate = (struct rate){
		.packets = agent_packets(agent, at->record, at->from),
		.us = agent->now_us,
		.value = entry->rate,
	};
	if (agent_is_full(at->direction))
		agent_full_begin(at);
	agent->port[at->port].under_way++;
}

/* Hands in one flow of the queue; false: no more can be handed in now. */
static bool hand_in(struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = waiting(agent, port, entry);
	struct queue_entry displaced;

	if (record == NULL)
		return true;
	struct agent_at at = agent_at_record(agent, record, entry->from);

	if (!give_slot(agent, record, entry->position)) {
		agent->port[port].counters.no_slot++;
		/* else it were asked for, and noted, again and again */
		agent_back_off(&at);
		agent_move(&at, OFFLOAD_SOFTWARE, OFFLOAD_NO_SLOT, 0);
		return true;
	}
	at = agent_at_record(agent, record, entry->from);
	at.direction->deed = (uint8_t)agent_full_choose(&at);
	if (!ask_insert(&at)) {
		queue_put(&agent->port[port].queue, *entry, &displaced);
		return false;
	}
	agent->port[port].claims = false;
	begin_insert(&at, entry);
	stale_forget(&at.direction->stale);
	agent_move(&at, OFFLOAD_INSTALLING, record->reason[at.from], 0);
	return true;
}

void agent_send_home(struct agent *agent, unsigned port, uint8_t reason)
{
	struct queue_entry entry;

	agent->port[port].claims = false;
	while (queue_take(&agent->port[port].queue, &entry)) {
		struct flow_record *record = waiting(agent, port, &entry);

		if (record == NULL)
			continue;
		const struct agent_at at = agent_at_record(agent, record, entry.from);

		agent_move(&at, OFFLOAD_SOFTWARE, reason, 0);
	}
}

void agent_pump(struct agent *agent, unsigned port)
{
	struct agent_port *to = &agent->port[port];
	struct queue_entry entry;

	if (health_state(installer_health(to->installer)) == HEALTH_OPEN)
		agent_send_home(agent, port, OFFLOAD_BREAKER);
	while (to->under_way < to->limit && agent_make_room(agent, port) &&
		queue_take(&to->queue, &entry))
		if (!hand_in(agent, port, &entry))
			break;
}
