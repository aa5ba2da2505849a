/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the NIC does what it said, by a look at each slot twice a second: late answers, rates, counters. */
#include "offload/agent_full.h"

/* Slots that one turn looks at, at most. */
#define SWEEP_MOST 256
/* And at least, where these are a small part of all: what a turn fetches for the next one is gone from the caches by then. */
#define SWEEP_LEAST 32
#define SWEEP_PART 64
/* From a slot to the one whose record is fetched, and from there to the one that is. */
#define SWEEP_AHEAD 6
/* Of fewer slots rates are looked at so often, */
#define MANY 16384
#define LOOK_US 250000
/* and of very many, of so many in a second: a look is some hundred cycles, of lines that are in no cache. */
#define LOOKS_A_SECOND UINT32_C(65536)
/* And each at last. */
#define REST_MOST_US (UINT64_C(60) * AGENT_SECOND_US)
/* Counters that are read early are looked for so often. */
#define SOON_STEP_US 500

/* An answer that is late is counted once, and told with others of that second. */
static void look_for_late(const struct agent_at *at)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct slot_direction *direction = at->direction;

	if (!direction->awaited || direction->late ||
		at->agent->now_us - direction->asked_us < AGENT_LATE_US)
		return;
	direction->late = true;
	port->counters.stalled++;
	if (!agent_is_new(at->agent, port->stall_told_us))
		return;
	port->stall_told_us = at->agent->now_us;
	agent_tell(at->agent, at->port, CHANGE_STALLED, OFFLOAD_STALLED);
}

void agent_ask_count(const struct agent_at *at)
{
	const struct agent_wire *wire = &at->agent->wire[at->domain];
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(&wire->slots, at->slot),
		.op = INSTALLER_COUNT,
		.from = at->from,
	};

	/* all that has come by now is in the NIC's counter when it is asked */
	at->direction->asked = agent_marked_packets(at) - at->direction->nic_base;
	at->direction->count_awaited = installer_ask(
		at->agent->port[at->port].installer, at->agent->config.worker, &request);
}

static void ask_count_if_due(const struct agent_at *at)
{
	if (at->direction->nic_due_us <= at->agent->now_us && !at->direction->count_awaited)
		agent_ask_count(at);
}

void agent_count_soon(const struct agent_at *at, uint64_t us)
{
	struct agent_wire *wire = &at->agent->wire[at->domain];
	unsigned i = 0;

	at->direction->nic_due_us = at->agent->now_us + us;
	agent_wake(at);
	while (i < wire->n_soon && wire->soon[i] != at->slot)
		i++;
	if (i == AGENT_SOON)
		return;
	wire->soon[i] = at->slot;
	if (i == wire->n_soon)
		wire->n_soon++;
	wire->soon_due_us = RTE_MIN(wire->soon_due_us, at->direction->nic_due_us);
}

/* Is there a counter of the slot that is read earlier than the sweep would? Reads it when it is time. */
static bool count_slot(struct agent *agent, unsigned number, uint32_t slot)
{
	bool any = false;

	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at at = agent_at_slot(agent, number, slot, from);
		bool in_hw = at.direction->state == OFFLOAD_ACCEPTED ||
			     at.direction->state == OFFLOAD_PROVEN;

		/* the slot may be another flow's by now */
		if (at.record == NULL || !in_hw || agent_is_full(at.direction))
			continue;
		ask_count_if_due(&at);
		any |= at.direction->count_awaited ||
		       at.direction->nic_due_us <= agent->now_us + AGENT_DOUBT_US;
	}
	return any;
}

static void count_soon(struct agent *agent, unsigned number)
{
	struct agent_wire *wire = &agent->wire[number];
	unsigned kept = 0, n = wire->n_soon;

	/* a look at each in every turn would cost an idle worker most of its time, a busy one a tenth */
	if (n == 0 || agent->now_us < wire->soon_due_us)
		return;
	wire->soon_due_us = agent->now_us + SOON_STEP_US;
	for (unsigned i = 0; i < n; i++)
		if (count_slot(agent, number, wire->soon[i]))
			wire->soon[kept++] = wire->soon[i];
	wire->n_soon = kept;
}

/* Where nobody is to be found who deserves less, or there are very many, less often. */
uint64_t agent_look_us(uint32_t n_slots, uint32_t threshold, enum offload_state state)
{
	if (threshold != 0 && n_slots <= MANY)
		return LOOK_US;
	if (state == OFFLOAD_SUSPECT)
		return AGENT_SECOND_US;

	const uint64_t n = RTE_MAX(n_slots, LOOKS_A_SECOND);

	return RTE_MIN(n * AGENT_SECOND_US / LOOKS_A_SECOND, REST_MOST_US);
}

static uint64_t look_us(
	const struct agent *agent, unsigned wire, const struct slot_direction *direction)
{
	return agent_look_us(agent->wire[wire].n_used, agent->config.threshold,
		(enum offload_state)direction->state);
}

/* A flow that is in the NIC: does its rate still deserve it? */
static void look_at_flow(const struct agent_at *at)
{
	struct slot_direction *direction = at->direction;
	uint64_t passed_us = at->agent->now_us - direction->rate.us;

	if (at->direction->state != OFFLOAD_SUSPECT)
		ask_count_if_due(at);
	if (passed_us < look_us(at->agent, at->domain, direction))
		return;
	agent_look_at_rate(at, at->agent->now_us);
	if (2 * (uint64_t)direction->rate.value < rate_of_pps(at->agent->config.threshold))
		agent_leave(at, OFFLOAD_SLOWED);
	else if (at->agent->now_us - direction->since_us >= 10 * AGENT_SECOND_US)
		offload_set_back_off(at->record, at->from, 0); /* it has been true for long */
}

/* Nothing of it is due. Nobody rests longer than REST_MOST_US: more than that is a rest long over. */
static bool rests(const struct agent_used *used, uint64_t now_us)
{
	uint32_t left_ms = used->rests_ms - (uint32_t)(now_us / 1000);

	return used->rests_ms != 0 && left_ms != 0 && left_ms <= REST_MOST_US / 1000;
}

/*
 * No rule may stay that was asked for before the port was put to software: also where it was answered so late, or the
 * port is tried again so soon, that no sweep came by in between. Flows that are tried would wait for its place.
 */
static bool is_of_before(const struct agent_at *at)
{
	const struct health *health = installer_health(at->agent->port[at->port].installer);

	switch (health_state(health)) {
	case HEALTH_OPEN:
		return true;
	case HEALTH_TRYING:
		return at->direction->queued_us <
		       atomic_load_explicit(&health->since_us, memory_order_relaxed);
	case HEALTH_CLOSED:
	case HEALTH_N_STATES:
		break;
	}
	return false;
}

static void sweep_look(struct agent *agent, unsigned number, uint32_t slot, unsigned from)
{
	const struct slots *slots = &agent->wire[number].slots;

	/* it has no rule, and is none on its way */
	if (slots_slot(slots, slot)->direction[from].state < OFFLOAD_INSTALLING)
		return;
	const struct agent_at at = agent_at_slot(agent, number, slot, from);

	switch ((enum offload_state)at.direction->state) {
	case OFFLOAD_LEAVING:
		if (at.direction->remove && !at.direction->awaited)
			agent_remove(&at);
		look_for_late(&at);
		agent_full_look_leaving(&at);
		break;
	case OFFLOAD_INSTALLING:
		look_for_late(&at);
		agent_full_look_leaving(&at);
		break;
	case OFFLOAD_SUSPECT:
	case OFFLOAD_ACCEPTED:
	case OFFLOAD_PROVEN:
		if (agent->off)
			agent_leave(&at, OFFLOAD_OFF);
		else if (is_of_before(&at))
			agent_leave(&at, OFFLOAD_BREAKER);
		else if (at.record != NULL && !agent_full_look(&at))
			look_at_flow(&at);
		break;
	case OFFLOAD_SOFTWARE:
	case OFFLOAD_QUEUED:
	case OFFLOAD_REFUSED:
	case OFFLOAD_N_STATES:
		break;
	}
}

/* The slot that is looked at `ahead` steps after the next one; NULL: it rests, or there are not so many. */
static const struct slot *slot_ahead(
	const struct agent *agent, const struct agent_wire *wire, uint32_t ahead)
{
	const uint32_t left = RTE_MIN(wire->sweep, wire->n_used);
	const uint32_t at = (ahead < left ? left : left + wire->n_used) - 1 - ahead;

	if (at >= wire->n_used || rests(&wire->used[at], agent->now_us))
		return NULL;
	return slots_slot(&wire->slots, wire->used[at].slot);
}

static void fetch_slot(const struct agent *agent, const struct agent_wire *wire, uint32_t ahead)
{
	const struct slot *slot = slot_ahead(agent, wire, ahead);

	if (slot == NULL)
		return;
	rte_prefetch1(slot);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		/* of a rule that marks and is well the first line is all */
		if (wire->full == NULL)
			rte_prefetch1(&slot->direction[from]);
		else
			agent_fetch_direction(wire, (uint32_t)(slot - wire->slots.slots), from);
	}
}

static void fetch_record(const struct agent *agent, const struct agent_wire *wire, uint32_t ahead)
{
	const struct slot *slot = slot_ahead(agent, wire, ahead);

	if (slot != NULL)
		agent_fetch_record(agent, slot);
}

/*
 * A slot is looked at two steps after it is seen here, its record one step after: their lines are on their way. `n` are
 * left in this turn.
 */
static void look_ahead(const struct agent *agent, const struct agent_wire *wire, uint64_t n)
{
	if (n > 2 * SWEEP_AHEAD)
		fetch_slot(agent, wire, 2 * SWEEP_AHEAD);
	if (n > SWEEP_AHEAD)
		fetch_record(agent, wire, SWEEP_AHEAD);
}

/* The first of a turn's `n` slots. */
static void fetch_first(const struct agent *agent, const struct agent_wire *wire, uint64_t n)
{
	for (uint32_t i = 0; i < RTE_MIN(n, (uint64_t)2 * SWEEP_AHEAD); i++)
		fetch_slot(agent, wire, i);
	for (uint32_t i = 0; i < RTE_MIN(n, (uint64_t)SWEEP_AHEAD); i++)
		fetch_record(agent, wire, i);
}

/* Until when nothing of a slot is to be looked at, as long as its directions stay in their states; 0: it does not rest. */
static uint32_t rest_of(const struct agent *agent, unsigned number, const struct slot *slot)
{
	uint64_t until_us = UINT64_MAX;

	for (unsigned i = 0; i < OFFLOAD_DIRECTIONS; i++) {
		const struct slot_direction *direction = &slot->direction[i];

		switch ((enum offload_state)direction->state) {
		case OFFLOAD_ACCEPTED:
		case OFFLOAD_PROVEN:
			until_us = RTE_MIN(until_us, direction->nic_due_us);
			/* fallthrough */
		case OFFLOAD_SUSPECT:
			until_us = RTE_MIN(
				until_us, direction->rate.us + look_us(agent, number, direction));
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

static void sweep_slot(struct agent *agent, unsigned number, uint32_t at)
{
	struct agent_wire *wire = &agent->wire[number];
	struct agent_used *used = &wire->used[at];
	const uint32_t slot = used->slot;

	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		sweep_look(agent, number, slot, from);
	used->rests_ms = rest_of(agent, number, slots_slot(&wire->slots, slot));
	agent_release(agent, number, slot);
}

static bool is_any_broken(const struct agent *agent, unsigned number)
{
	const struct topology *topology = &agent->config.topology;

	for (unsigned place = 0; place < topology->size[number]; place++) {
		struct installer *installer =
			agent->port[topology_port(topology, number, place)].installer;

		if (installer != NULL && health_state(installer_health(installer)) != HEALTH_CLOSED)
			return true;
	}
	return false;
}

static void sweep_wire(struct agent *agent, unsigned number, uint64_t passed_us)
{
	struct agent_wire *wire = &agent->wire[number];
	/* all of them in half a second; in a quarter where they may be flows that nobody else sees fall silent */
	const unsigned times = wire->full != NULL ? 4 : 2;
	/* when most of them leave, the others wait no longer for it */
	const uint64_t many = RTE_MAX(wire->n_used, wire->to_look);
	uint64_t due = wire->due + times * many * RTE_MIN(passed_us, (uint64_t)AGENT_SECOND_US);
	uint64_t n = RTE_MIN(due / AGENT_SECOND_US, (uint64_t)RTE_MIN(wire->n_used, SWEEP_MOST));
	/* nothing rests when rules are to be taken out */
	const bool any = agent->off || is_any_broken(agent, number);

	if (n < RTE_MIN(wire->n_used / SWEEP_PART, SWEEP_LEAST)) {
		wire->due = (uint32_t)due;
		return;
	}
	wire->due = (uint32_t)(due % AGENT_SECOND_US);
	fetch_first(agent, wire, n);
	for (; n > 0 && wire->n_used > 0; n--) {
		if (wire->sweep == 0) {
			wire->sweep = wire->n_used;
			wire->to_look = wire->n_used;
		}
		look_ahead(agent, wire, n);
		/* backwards: the last one takes the place of one that leaves, and would be missed */
		wire->sweep = RTE_MIN(wire->sweep, wire->n_used) - 1;
		if (any || !rests(&wire->used[wire->sweep], agent->now_us))
			sweep_slot(agent, number, wire->sweep);
	}
}

void agent_sweep(struct agent *agent, uint64_t passed_us)
{
	for (unsigned number = 0; number < agent->config.topology.n_domains; number++) {
		if (agent->wire[number].slots.n == 0)
			continue;
		slots_turn(&agent->wire[number].slots, agent->now_us);
		count_soon(agent, number);
		agent_full_turn(agent, number);
		sweep_wire(agent, number, passed_us);
	}
}
