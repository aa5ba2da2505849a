/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent_admit.h"

#include <errno.h>

#include "offload/agent_full.h"

/* Inserts that one worker hands to a port's installer before it has answers; more while they are fast. */
#define LEAST_LIMIT 4
#define MOST_LIMIT (INSTALLER_UNDER_WAY / 2)
#define FAST_US 500
#define SLOW_US 1000
/* So long only flows that were proven before are canaries. */
#define CANARY_WAIT_US CLOCK_US_PER_S
/* A look at the rate of so many, before it is said that none gives way. */
#define TRIES 8
/* After a refusal for want of room one more rule than the port had is tried, first then; later twice as late. */
#define FULL_US 1000000
#define MOST_FULL_US 64000000
/* No flow gives way for so long after a NIC refused to let a rule go, at first and at most. */
#define STAY_US 1000000
#define MOST_STAY_US 64000000
/* The rates of fewer slots are looked at so often, */
#define MANY 16384
#define LOOK_US 250000
/* of very many so many in a second: a look is some hundred cycles, of lines that are in no cache; and each at last. */
#define LOOKS_A_SECOND UINT32_C(65536)
#define LOOK_MOST_US (60 * AGENT_SECOND_US)
/* A flow that was true for so long waits no longer than others when it comes again. */
#define TRUE_US (10 * AGENT_SECOND_US)

/* This worker's flows in states from that one on. */
static uint32_t flows_from(const struct agent_counters *counters, unsigned state)
{
	uint64_t n = 0;

	for (; state < OFFLOAD_N_STATES; state++)
		n += counters->flows[state];
	return (uint32_t)n;
}

static struct share *share_of(const struct agent *agent, unsigned port)
{
	return installer_share(agent->port[port].installer);
}

/* 0: not known. */
static uint32_t known_room(const struct agent *agent, unsigned port)
{
	return atomic_load_explicit(&share_of(agent, port)->room, memory_order_relaxed);
}

static void know_room(const struct agent *agent, unsigned port, uint32_t room)
{
	atomic_store_explicit(&share_of(agent, port)->room, room, memory_order_relaxed);
}

/* Rules that are in the port, by its installer's book. */
static uint32_t rules_in(const struct agent *agent, unsigned port)
{
	return atomic_load_explicit(
		&installer_counters(agent->port[port].installer)->rules, memory_order_relaxed);
}

static uint32_t rules_of_all(const struct agent *agent, unsigned port)
{
	return flows_from(&agent->port[port].counters, OFFLOAD_INSTALLING) +
	       share_rules(share_of(agent, port), agent->config.n_workers, agent->config.worker);
}

/* The port is known to take so many, or may be asked for so many; UINT32_MAX: that is not known. */
static uint32_t room_of(const struct agent *agent, unsigned port)
{
	uint32_t room = known_room(agent, port);
	uint32_t known = room == 0 ? UINT32_MAX : room;
	uint32_t allowed = agent->config.rules == 0 ? UINT32_MAX : agent->config.rules;

	return RTE_MIN(known, allowed);
}

static bool has_slots(const struct agent *agent, unsigned port)
{
	const struct slots *slots = &agent->wire[agent_domain_of(agent, port)].slots;

	return slots->n_used + slots->n_draining < slots->n;
}

bool agent_has_room(const struct agent *agent, unsigned port)
{
	const uint32_t before =
		share_before(share_of(agent, port), agent->config.n_workers, agent->config.worker);

	return rules_of_all(agent, port) + before < room_of(agent, port) && has_slots(agent, port);
}

/* The least rate that takes a place of another worker's. Its slot stays with it. */
static uint32_t bar_of_others(const struct agent *agent, unsigned port)
{
	return has_slots(agent, port) ? share_bar(share_of(agent, port), agent->config.n_workers,
						agent->config.worker)
				      : SHARE_NOBODY;
}

/* Would a rule go that is asked to? */
static bool may_exchange(const struct agent *agent, unsigned port)
{
	return agent->port[port].stay_us == 0 || agent->now_us >= agent->port[port].exchange_us;
}

/* The least rate that takes a place of this worker's. */
static uint32_t own_bar(struct agent *agent, unsigned port)
{
	return may_exchange(agent, port) ? admission_bar(agent_admission(agent, port))
					 : SHARE_NOBODY;
}

static void took(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const uint32_t room = known_room(agent, port);

	if (room == 0 || rules_in(agent, port) < room)
		return;
	/* it took the place of another, or came while the table was filled: nothing more was tried */
	if (!of->grows && of->again_us != UINT64_MAX)
		return;
	/* it has more room than was thought: on to twice as many, or as many as there are slots */
	know_room(agent, port, room + of->room_step);
	of->room_step = RTE_MIN(2 * of->room_step, (uint32_t)1 << 20);
	of->grows = true;
	of->again_us = 0;
}

static void found_no_room(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const bool others = !of->grows && of->full_us != 0 && of->again_us != UINT64_MAX &&
			    agent->now_us < of->again_us;

	know_room(agent, port, RTE_MAX(rules_in(agent, port), 1u));
	of->room_step = 1;
	if (others)
		return; /* that were asked at the same time */
	of->full_us = of->grows || of->full_us == 0
			      ? FULL_US
			      : RTE_MIN(2 * of->full_us, (uint64_t)MOST_FULL_US);
	of->grows = false;
	of->again_us = agent->now_us + of->full_us;
}

/* Now and then one more than the port had room for. */
static void try_one_more(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const uint32_t room = known_room(agent, port);

	if (room == 0 || of->grows)
		return;
	/* another worker found it out, or a probe: it may be wrong */
	if (of->full_us == 0) {
		of->full_us = FULL_US;
		of->again_us = agent->now_us + FULL_US;
	}
	if (agent->now_us < of->again_us)
		return;
	of->again_us = UINT64_MAX;
	know_room(agent, port, room + 1);
}

void agent_admit_answered(const struct agent_at *at, const struct installer_answer *answer)
{
	struct agent_port *port = &at->agent->port[at->port];

	if (answer->result == -ENOSPC)
		found_no_room(at->agent, at->port);
	else if (answer->result == 0)
		took(at->agent, at->port);
	/* few are under way at a slow NIC, so that a busier flow that comes later goes first */
	port->under_way--;
	if (answer->took_us < FAST_US && port->limit < MOST_LIMIT)
		port->limit++;
	else if (answer->took_us > SLOW_US)
		port->limit = RTE_MAX(port->limit / 2, (uint32_t)LEAST_LIMIT);
}

void agent_admit_stays(const struct agent_at *at)
{
	struct agent_port *port = &at->agent->port[at->port];

	if (at->direction->stays)
		return;
	at->direction->stays = true;
	port->n_stay++;
	if (port->stay_us != 0 && at->agent->now_us < port->exchange_us)
		return; /* others that were asked at the same time */
	port->stay_us =
		port->stay_us == 0 ? STAY_US : RTE_MIN(2 * port->stay_us, (uint64_t)MOST_STAY_US);
	port->exchange_us = at->agent->now_us + port->stay_us;
}

/* The rate of a direction with a rule, and with that its rank, by what its record has counted until then. */
static void look_at_rate(const struct agent_at *at, uint64_t us)
{
	struct agent *agent = at->agent;
	struct slot_direction *direction = at->direction;

	rate_look(&direction->rate, agent_packets(agent, at->record, at->from), us);
	admission_look(agent_admission(agent, at->port), at->slot, direction->rate.value,
		direction->state != OFFLOAD_INSTALLING &&
			agent->now_us - direction->queued_us >= ADMISSION_STAY_US);
}

uint64_t agent_look_us(uint32_t n_slots, uint32_t threshold, enum offload_state state)
{
	if (threshold != 0 && n_slots <= MANY)
		return LOOK_US;
	if (state == OFFLOAD_SUSPECT)
		return AGENT_SECOND_US;

	const uint64_t n = RTE_MAX(n_slots, LOOKS_A_SECOND);

	return RTE_MIN(n * AGENT_SECOND_US / LOOKS_A_SECOND, LOOK_MOST_US);
}

static uint64_t look_us(const struct agent_at *at)
{
	return agent_look_us(at->agent->wire[at->domain].slots.n_used, at->agent->config.threshold,
		(enum offload_state)at->direction->state);
}

uint64_t agent_admit_due_us(const struct agent_at *at)
{
	if (agent_is_full(at->direction))
		return UINT64_MAX;
	return at->direction->rate.us + RTE_MAX(look_us(at), agent_rest_us(at->agent));
}

void agent_admit_look(const struct agent_at *at)
{
	const bool full = agent_is_full(at->direction);
	const struct slot_direction *direction = at->direction;
	/* nothing newer than the last reading of its counter is known of a full one */
	const uint64_t us = full ? agent_full_direction_of(at)->looked_us : at->agent->now_us;

	if (us < direction->rate.us ||
		us - direction->rate.us < (full ? AGENT_SECOND_US : look_us(at)))
		return;
	look_at_rate(at, us);
	if (2 * (uint64_t)direction->rate.value < rate_of_pps(at->agent->config.threshold)) {
		agent_event(at, EVENT_SLOWED, 0, 0);
	} else if (at->agent->now_us - direction->since_us >= TRUE_US) {
		if (full)
			agent_full_direction_of(at)->failures = 0;
		offload_set_back_off(at->record, at->from, 0);
	}
}

/* Some flows of a kind whose rules never mark are tried. */
static bool may_try(const struct agent *agent, unsigned port, enum provider_kind kind)
{
	uint32_t number = health_kind_out(agent_health(agent, port), kind);
	const struct agent_try *tries = &agent->port[port].tries[kind];

	return number == 0 || tries->number != number || tries->asked < HEALTH_CANARIES;
}

/* It is asked in; true: to see whether the NIC keeps its word. */
static bool count_try(struct agent *agent, unsigned port, enum provider_kind kind)
{
	const struct health *health = agent_health(agent, port);
	uint32_t number = health_kind_out(health, kind);
	struct agent_try *tries = &agent->port[port].tries[kind];

	if (number == 0)
		return health_state(health) == HEALTH_TRYING;
	if (tries->number != number)
		*tries = (struct agent_try){.number = number};
	tries->asked++;
	return true;
}

/*
 * Canaries are flows of which a rule has done what it was to before: else a sender of what no rule matches could be
 * one, and the NIC found wanting for it. After a second any may, since there may be none of these.
 */
static bool may_be_canary(const struct agent_at *at)
{
	const struct agent_counters *counters = &at->agent->port[at->port].counters;
	const struct health *health = agent_health(at->agent, at->port);
	const uint64_t since_us = atomic_load_explicit(&health->since_us, memory_order_relaxed);
	/* in the NIC, or on their way; not those that a NIC does not let go */
	const uint32_t there =
		flows_from(counters, OFFLOAD_QUEUED) -
		(uint32_t)(counters->flows[OFFLOAD_REFUSED] + counters->flows[OFFLOAD_LEAVING]);

	return there < HEALTH_CANARIES && (at->record->nic_proven >> at->from & 1 ||
						  at->agent->now_us - since_us >= CANARY_WAIT_US);
}

/* An answer that is late would be taken for the next rule's. */
static bool awaits_answer(const struct slot_direction *direction)
{
	return direction->awaited || direction->count_awaited || direction->remove;
}

/*
 * The other direction has a rule at the port, or is on its way to one or back: a port has one rule of a flow, as both
 * have one mark there, and one place.
 */
static bool other_is_there(const struct agent_at *at)
{
	if (at->entry == NULL)
		return offload_state(at->record, !at->from) == OFFLOAD_QUEUED &&
		       offload_port(at->record, !at->from) == at->port;
	const struct slot_direction *other = &at->entry->direction[!at->from];

	return other->port == at->port &&
	       (other->state == OFFLOAD_QUEUED || agent_holds(other) || awaits_answer(other));
}

/* May the flow be asked in now? */
static bool may_ask(const struct agent_at *at)
{
	const struct agent *agent = at->agent;
	const struct agent_port *port = &agent->port[at->port];
	const enum offload_state state = offload_state(at->record, at->from);
	const enum provider_kind kind = provider_kind(&at->record->key);

	if (port->installer == NULL || agent->off || agent->wire[at->domain].slots.n == 0)
		return false;
	if (state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED)
		return false;
	if (at->entry != NULL && awaits_answer(at->direction))
		return false;
	if (kind == PROVIDER_N_KINDS || !installer_abilities(port->installer)->kind[kind] ||
		!may_try(agent, at->port, kind) || agent_full_waits(at))
		return false;
	if (offload_back_off(at->record, at->from) == OFFLOAD_NEVER ||
		agent_waits_us(agent, at->entry, at->record, at->from) != 0)
		return false;
	const enum health_state health = health_state(agent_health(agent, at->port));

	return (health == HEALTH_CLOSED || (health == HEALTH_TRYING && may_be_canary(at))) &&
	       !other_is_there(at);
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

/* Tells a flow at a position from an earlier one, by its key alone: all else changes while it lives. */
static uint32_t queue_tag(const struct flow_record *record)
{
	uint64_t word[sizeof(record->key) / sizeof(uint64_t)], tag = 0;

	memcpy(word, &record->key, sizeof(word));
	for (unsigned i = 0; i < RTE_DIM(word); i++)
		tag = (tag ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(tag >> 32);
}

/*
 * The queue's flow that is handed in next; its record, or NULL when it is no more. One that began anew may wait for
 * another port.
 */
static struct flow_record *waiting(
	struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = agent_record_at(agent, entry->position);

	if (record->state == FLOW_FREE || queue_tag(record) != entry->tag ||
		offload_state(record, entry->from) != OFFLOAD_QUEUED ||
		agent_at_record(agent, record, entry->from).port != port)
		return NULL;
	return record;
}

/* A flow that waits in the queue is not to wait any more. */
static void send_home(
	struct agent *agent, unsigned port, const struct queue_entry *entry, enum agent_event event)
{
	struct flow_record *record = waiting(agent, port, entry);

	if (record == NULL)
		return;
	const struct agent_at at = agent_at_record(agent, record, entry->from);

	agent->port[port].counters.displaced += event == EVENT_DISPLACED;
	agent_event(&at, event, 0, 0);
}

static void send_all_home(struct agent *agent, unsigned port, enum agent_event event)
{
	struct queue_entry entry;

	agent->port[port].claims = false;
	while (queue_take(&agent->port[port].queue, &entry))
		send_home(agent, port, &entry, event);
}

/* There is room for a flow of that rate, or one that gives way to it. */
static bool gets_in(struct agent *agent, unsigned port, uint32_t rate)
{
	try_one_more(agent, port);
	/* the first is first where all are wanted */
	return agent->config.threshold == 0 || agent_has_room(agent, port) ||
	       rate >= own_bar(agent, port) || rate >= bar_of_others(agent, port);
}

/* Puts the direction into the queue of the port where it arrives, if it may be asked in now. */
static void want(
	struct agent *agent, uint32_t position, unsigned port, unsigned from, uint32_t rate)
{
	struct flow_record *record = agent_record_at(agent, position);
	const struct agent_at at = agent_at_port(agent, port, record, from);
	struct queue_entry entry = {
		.rate = rate,
		.position = position,
		.tag = queue_tag(record),
		.from = (uint8_t)from,
	};
	struct queue_entry displaced;

	if (!may_ask(&at))
		return;
	if (!gets_in(agent, port, rate)) {
		agent_event(&at, EVENT_OUTRANKED, 0, 0);
		return;
	}
	switch (queue_put(&agent->port[port].queue, entry, &displaced)) {
	case QUEUE_FULL:
		agent->port[port].counters.displaced++;
		agent_event(&at, EVENT_DISPLACED, 0, 0);
		return;
	case QUEUE_TOOK_PLACE:
		send_home(agent, port, &displaced, EVENT_DISPLACED);
		break;
	case QUEUE_TAKEN:
		break;
	}
	bool canary = count_try(agent, port, provider_kind(&record->key));

	/* with threshold 0 nothing was measured */
	agent_event(&at, EVENT_WANTED, canary ? OFFLOAD_CANARY : OFFLOAD_BUSY,
		agent->config.threshold > 0 ? rate_pps(rate) : 0);
}

void agent_learned(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	if (agent->config.threshold == 0)
		want(agent, position, port, from, 1);
}

/* The rate of a flow that was queued with its first packets was too low. */
static void raise_waiting(struct agent *agent, uint32_t position, unsigned from, uint32_t rate)
{
	struct flow_record *record = agent_record_at(agent, position);
	const struct queue_entry entry = {
		.rate = rate,
		.position = position,
		.tag = queue_tag(record),
		.from = (uint8_t)from,
	};

	queue_raise(&agent->port[agent_at_record(agent, record, from).port].queue, &entry);
}

/* A mark is of no use to what is dropped, and no NIC tells a sender. */
static bool is_of_no_use(
	struct agent *agent, unsigned port, struct flow_record *record, unsigned from)
{
	if (flow_is_rejected(record, from))
		return true;
	if (!flow_is_dropped(record, from))
		return false;
	const struct agent_at at = agent_at_port(agent, port, record, from);

	return !agent_full_drops(&at);
}

/* The direction is in software, and stays there: its reason is another one. */
static void tell_software(
	struct agent *agent, struct flow_record *record, unsigned from, enum agent_event event)
{
	const struct agent_at at = agent_at_record(agent, record, from);

	agent_event(&at, event, 0, 0);
}

void agent_sample(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	struct flow_record *record = agent_record_at(agent, position);
	const enum offload_state state = offload_state(record, from);

	if (state != OFFLOAD_SOFTWARE && state != OFFLOAD_REFUSED && state != OFFLOAD_QUEUED)
		return;
	if (state == OFFLOAD_SOFTWARE && !offload_has_slot(record))
		offload_set_port(record, from, port);
	if (is_of_no_use(agent, port, record, from))
		return;
	if (agent->config.threshold == 0) {
		if (state != OFFLOAD_QUEUED)
			want(agent, position, port, from, 1);
		return;
	}
	if (agent_packets(agent, record, 0) + agent_packets(agent, record, 1) <
			agent->config.min_packets ||
		agent_is_closing(agent, record))
		return;
	if (record->reason[from] == OFFLOAD_UNPLAIN && !offload_waits(record, from))
		tell_software(agent, record, from, EVENT_PLAIN);
	uint32_t rate = meter_packet(&agent->meter, record, position, from,
		agent_packets(agent, record, from), agent->now_us);

	if (state == OFFLOAD_QUEUED)
		raise_waiting(agent, position, from, rate);
	else if (rate >= rate_of_pps(agent->config.threshold))
		want(agent, position, port, from, rate);
}

void agent_sample_unplain(struct agent *agent, uint32_t position, unsigned from)
{
	struct flow_record *record = agent_record_at(agent, position);

	if (offload_state(record, from) == OFFLOAD_SOFTWARE &&
		record->reason[from] == OFFLOAD_QUIET)
		tell_software(agent, record, from, EVENT_UNPLAIN);
}

/* The installer is asked for the rule of a flow that has a slot; false: not now. */
static bool ask_insert(const struct agent_at *at, uint32_t rate)
{
	struct agent *agent = at->agent;
	struct slots *slots = &agent->wire[at->domain].slots;
	struct slot_direction *direction = at->direction;
	const struct installer_request request = {
		.key = at->entry->key,
		.tsc = rte_rdtsc(),
		.place = slots_place(slots, at->slot),
		.mark = slots_mark(slots, at->slot),
		.op = INSTALLER_INSERT,
		.from = at->from,
		.deed = direction->deed,
	};

	if (!installer_ask(agent->port[at->port].installer, agent->config.worker, &request))
		return false;
	admission_charge(&agent->port[at->port].budget);
	agent->port[at->port].under_way++;
	slots_set_from(slots, at->slot, agent->config.topology.place[at->port], at->from);
	direction->awaited = true;
	direction->late = direction->remove = false;
	direction->unmarked = direction->unplain = 0;
	direction->queued_us = direction->asked_us = agent->now_us;
	direction->nic_base = direction->marked;
	direction->nic_due_us = UINT64_MAX;
	direction->rate = (struct rate){
		.packets = agent_packets(agent, at->record, at->from),
		.us = agent->now_us,
		.value = rate,
	};
	if (agent_is_full(direction))
		agent_full_begin(at);
	stale_forget(&direction->stale);
	return true;
}

/* Hands in one flow of the queue; false: no more can be handed in now. */
static bool hand_in(struct agent *agent, unsigned port, const struct queue_entry *entry)
{
	struct flow_record *record = waiting(agent, port, entry);
	struct queue_entry displaced;

	if (record == NULL)
		return true;
	struct agent_at at = agent_at_record(agent, record, entry->from);

	if (!agent_give_slot(agent, record, entry->position)) {
		agent->port[port].counters.no_slot++;
		agent_event(&at, EVENT_NO_SLOT, 0, 0);
		return true;
	}
	at = agent_at_record(agent, record, entry->from);
	at.direction->deed = (uint8_t)agent_full_choose(&at);
	if (!ask_insert(&at, entry->rate)) {
		queue_put(&agent->port[port].queue, *entry, &displaced);
		return false;
	}
	agent->port[port].claims = false;
	agent_event(&at, EVENT_HANDED_IN, 0, 0);
	return true;
}

/* The direction of a slot that holds a rule at that port: one does. */
static struct agent_at holder(struct agent *agent, unsigned port, uint32_t slot)
{
	const struct agent_at first = agent_at_slot(agent, agent_domain_of(agent, port), slot, 0);

	if (first.port == port && agent_holds(first.direction))
		return first;
	return agent_at_slot(agent, first.domain, slot, 1);
}

/* One leaves for a flow of that rate, of this worker's `own` or another's; false: none does. */
static bool give_way(struct agent *agent, unsigned port, uint32_t rate, bool own)
{
	struct admission *admission = agent_admission(agent, port);

	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t slot = admission_least(admission, rate);

		if (slot == ADMISSION_NONE)
			return false;
		const struct agent_at at = holder(agent, port, slot);
		const struct agent_at other = agent_at_slot(agent, at.domain, slot, !at.from);

		/* nothing newer is known of one that the NIC has alone */
		if (at.record != NULL && !agent_is_full(at.direction))
			look_at_rate(&at, agent->now_us);
		if (admission_least(admission, rate) != slot)
			continue;
		/* a slot is free when neither direction has a rule */
		if (own && !has_slots(agent, port) && agent_is_in_hw(other.direction))
			agent_event(&other, EVENT_OUTRANKED, 0, 0);
		agent_event(&at, EVENT_OUTRANKED, 0, 0);
		return true;
	}
	return false;
}

/* Places that are about to be free: where slots are short, those that drain, too. */
static uint32_t about_to_be_free(const struct agent *agent, unsigned port)
{
	const struct slots *slots = &agent->wire[agent_domain_of(agent, port)].slots;
	uint64_t leaving =
		agent->port[port].counters.flows[OFFLOAD_LEAVING] - agent->port[port].n_stay;

	return (uint32_t)leaving + (has_slots(agent, port) ? 0 : slots->n_draining);
}

/* A rule may be asked for: what is to go has its part of the budget first. */
static bool affords_insert(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];

	return admission_affords(
		&of->budget, agent->now_us, of->counters.flows[OFFLOAD_LEAVING] > 0 ? 2 : 1);
}

static uint32_t busiest_queued(const struct agent_port *of)
{
	return of->queue.n == 0 ? 0 : of->queue.entry[of->queue.n - 1].rate;
}

/* The busiest that is queued waits for a place of another worker's, if there is one for it. */
static bool waits_for_others(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const uint32_t rate = busiest_queued(of);

	/* the flow that leaves for it was the least busy one: the others' bar is higher by now */
	of->claims = has_slots(agent, port) &&
		     (rate >= bar_of_others(agent, port) ||
			     share_is_served(share_of(agent, port), agent->config.n_workers,
				     agent->config.worker, rate));
	return of->claims;
}

/* Tells the other workers how it is here, and makes a place for a flow of another's. */
static void share_room(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	struct share *share = share_of(agent, port);
	const struct share_told told = {
		.rules = flows_from(&of->counters, OFFLOAD_INSTALLING),
		.leaving = (uint32_t)(of->counters.flows[OFFLOAD_LEAVING] - of->n_stay),
		.bar = own_bar(agent, port),
		.waits = of->claims ? busiest_queued(of) : 0,
	};

	share_tell(share, agent->config.worker, &told);
	uint32_t rate = share_asks(
		share, agent->config.n_workers, agent->config.worker, room_of(agent, port));

	if (rate != 0 && admission_affords(&of->budget, agent->now_us, 1))
		(void)give_way(agent, port, rate, false);
}

/* May one of those that wait be handed in? Else a flow is asked to leave for the busiest of them, if it deserves that. */
static bool room_for_next(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const struct queue *queue = &of->queue;

	if (queue->n == 0)
		return false;
	/* the first is refused by the NIC, if that is full */
	if (agent->config.threshold == 0)
		return (agent->config.rules == 0 ||
			       rules_of_all(agent, port) < agent->config.rules) &&
		       affords_insert(agent, port);
	if (agent_has_room(agent, port))
		return affords_insert(agent, port);
	/* as many as wait, each for the one whose place it will be, and no more than are handed in at a time */
	for (unsigned i = 0; i < of->limit; i++) {
		const uint32_t coming = about_to_be_free(agent, port);

		/* what becomes free is for the busiest here, if no other worker has a busier one */
		of->claims |= coming > 0;
		if (coming >= queue->n || coming >= of->limit ||
			!admission_affords(&of->budget, agent->now_us, 1))
			return false;
		if (may_exchange(agent, port) &&
			give_way(agent, port, queue->entry[queue->n - 1 - coming].rate, true))
			continue;
		if (coming == 0 && !waits_for_others(agent, port))
			send_all_home(agent, port, EVENT_OUTRANKED);
		return false;
	}
	return false;
}

void agent_admit_turn(struct agent *agent, unsigned port)
{
	struct agent_port *to = &agent->port[port];
	struct queue_entry entry;

	if (health_state(agent_health(agent, port)) == HEALTH_OPEN)
		send_all_home(agent, port, EVENT_BREAKER);
	if (agent->off)
		send_all_home(agent, port, EVENT_OFF);
	while (to->under_way < to->limit && room_for_next(agent, port) &&
		queue_take(&to->queue, &entry))
		if (!hand_in(agent, port, &entry))
			break;
	if (agent->config.n_workers > 1)
		share_room(agent, port);
}

bool agent_bar(struct agent *agent, unsigned port, struct agent_rank *rank)
{
	*rank = (struct agent_rank){.bar = UINT32_MAX, .room = UINT32_MAX};
	if (agent->port[port].installer == NULL ||
		agent->wire[agent_domain_of(agent, port)].admission == NULL)
		return false;
	const uint32_t needs = queue_needs(&agent->port[port].queue);

	rank->has_room = agent_has_room(agent, port);
	rank->has_slots = has_slots(agent, port);
	rank->bar = rank->has_room ? 0 : RTE_MIN(own_bar(agent, port), bar_of_others(agent, port));
	/* a flow that is there stays until it is at half of the threshold */
	rank->bar = RTE_MAX(RTE_MAX(rank->bar, rate_of_pps(agent->config.threshold)), needs);
	rank->crowded = needs != 0;
	if (health_state(agent_health(agent, port)) == HEALTH_OPEN)
		rank->bar = UINT32_MAX;
	rank->held = agent_admission(agent, port)->n_held;
	rank->room = room_of(agent, port);
	return true;
}

void agent_rank(struct agent *agent, uint32_t position, unsigned from, struct agent_rank *rank)
{
	struct flow_record *record = agent_record_at(agent, position);
	const struct agent_at at = agent_at_record(agent, record, from);
	const unsigned port = agent_port_of(agent, at.entry, record, from);

	if (!agent_bar(agent, port, rank))
		return;
	rank->rate = at.entry != NULL && agent_holds(at.direction)
			     ? at.direction->rate.value
			     : meter_rate(&agent->meter, record, position, from,
				       agent_packets(agent, record, from), agent->now_us);
	rank->rank = admission_rank(agent_admission(agent, port), rank->rate);
}
