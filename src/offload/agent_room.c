/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port has room for, and who has to go for a busier flow. */
#include "offload/agent_full.h"
#include "offload/agent_parts.h"

#include <errno.h>

/* A look at the rate of so many, before nobody is found who gives way. */
#define TRIES 8
/* After a refusal for want of room one more rule than the port had is tried, first then; later twice as late. */
#define FULL_US 1000000
#define MOST_FULL_US 64000000
/* Nobody gives way for so long after a NIC refused to let a rule go, at first and at most. */
#define STAY_US 1000000
#define MOST_STAY_US 64000000

/* Rules of this worker's flows that the port may have. */
static uint32_t own_rules(const struct agent_counters *counters)
{
	uint64_t n = 0;

	for (unsigned state = OFFLOAD_INSTALLING; state < OFFLOAD_N_STATES; state++)
		n += counters->flows[state];
	return (uint32_t)n;
}

static const struct share *share_of(const struct agent *agent, unsigned port)
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
	atomic_store_explicit(
		&installer_share(agent->port[port].installer)->room, room, memory_order_relaxed);
}

/* Rules that are in the port, by its installer's book. */
static uint32_t rules_in(const struct agent *agent, unsigned port)
{
	return atomic_load_explicit(
		&installer_counters(agent->port[port].installer)->rules, memory_order_relaxed);
}

static uint32_t rules_of_all(const struct agent *agent, unsigned port)
{
	return own_rules(&agent->port[port].counters) +
	       share_rules(share_of(agent, port), agent->config.n_workers, agent->config.worker);
}

/* What the port is known to take, or may be asked for; UINT32_MAX: nobody knows. */
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

/* What it takes to get another worker's place. Its slot stays with it. */
static uint32_t bar_of_others(const struct agent *agent, unsigned port)
{
	return has_slots(agent, port) ? share_bar(share_of(agent, port), agent->config.n_workers,
						agent->config.worker)
				      : SHARE_NOBODY;
}

void agent_took(struct agent *agent, unsigned port)
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

void agent_no_room(struct agent *agent, unsigned port)
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

void agent_stays(const struct agent_at *at)
{
	struct agent_port *port = &at->agent->port[at->port];

	at->direction->stays = true;
	port->n_stay++;
	if (port->stay_us != 0 && at->agent->now_us < port->exchange_us)
		return; /* others that were asked at the same time */
	port->stay_us =
		port->stay_us == 0 ? STAY_US : RTE_MIN(2 * port->stay_us, (uint64_t)MOST_STAY_US);
	port->exchange_us = at->agent->now_us + port->stay_us;
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

bool agent_gets_in(struct agent *agent, unsigned port, uint32_t rate)
{
	try_one_more(agent, port);
	/* whoever comes first is first where all are wanted */
	return agent->config.threshold == 0 || agent_has_room(agent, port) ||
	       rate >= own_bar(agent, port) || rate >= bar_of_others(agent, port);
}

void agent_look_at_rate(const struct agent_at *at, uint64_t us)
{
	struct agent *agent = at->agent;
	struct slot_direction *direction = at->direction;
	struct admission *admission = agent_admission(agent, at->port);

	rate_look(&direction->rate, agent_packets(agent, at->record, at->from), us);
	admission_look(admission, at->slot, direction->rate.value,
		direction->state != OFFLOAD_INSTALLING &&
			agent->now_us - direction->queued_us >= ADMISSION_STAY_US);
}

bool agent_bar(struct agent *agent, unsigned port, struct agent_rank *rank)
{
	*rank = (struct agent_rank){.bar = UINT32_MAX, .room = UINT32_MAX};
	if (agent->port[port].installer == NULL ||
		agent->wire[agent_domain_of(agent, port)].admission == NULL)
		return false;
	rank->has_room = agent_has_room(agent, port);
	rank->has_slots = has_slots(agent, port);
	rank->bar = rank->has_room ? 0 : RTE_MIN(own_bar(agent, port), bar_of_others(agent, port));
	/* who is there stays until it is at half of the threshold */
	rank->bar = RTE_MAX(rank->bar, rate_of_pps(agent->config.threshold));
	const uint32_t needs = queue_needs(&agent->port[port].queue);

	rank->crowded = needs != 0;
	rank->bar = RTE_MAX(rank->bar, needs);
	if (health_state(installer_health(agent->port[port].installer)) == HEALTH_OPEN)
		rank->bar = UINT32_MAX;
	rank->held = agent_admission(agent, port)->n_held;
	rank->room = room_of(agent, port);
	return true;
}

void agent_rank(struct agent *agent, uint32_t position, unsigned from, struct agent_rank *rank)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, from);
	const unsigned port = agent_port_of(agent, at.entry, record, from);

	if (!agent_bar(agent, port, rank))
		return;
	rank->rate =
		at.entry != NULL && offload_state_holds((enum offload_state)at.direction->state)
			? at.direction->rate.value
			: meter_rate(&agent->meter, record, position, from,
				  agent_packets(agent, record, from), agent->now_us);
	rank->rank = admission_rank(agent_admission(agent, port), rank->rate);
}

/* The direction of a slot that holds a rule at that port: one does. */
static struct agent_at holder(struct agent *agent, unsigned port, uint32_t slot)
{
	const unsigned domain = agent_domain_of(agent, port);
	const struct slot *entry = slots_slot(&agent->wire[domain].slots, slot);

	return agent_at_slot(agent, domain, slot, !agent_holds_at(entry, 0, port));
}

/* Somebody leaves for a flow of that rate, of this worker's `own` or another's; false: nobody does. */
static bool give_way(struct agent *agent, unsigned port, uint32_t rate, bool own)
{
	struct admission *admission = agent_admission(agent, port);

	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t slot = admission_least(admission, rate);

		if (slot == ADMISSION_NONE)
			return false;
		const struct agent_at at = holder(agent, port, slot);
		const struct agent_at other = agent_at_slot(agent, at.domain, slot, !at.from);

		/* of one that the NIC has alone nothing newer is known */
		if (at.record != NULL && !agent_is_full(at.direction))
			agent_look_at_rate(&at, agent->now_us);
		if (admission_least(admission, rate) != slot)
			continue;
		/* a slot is free when neither direction has a rule */
		if (own && !has_slots(agent, port) && other.direction->state >= OFFLOAD_SUSPECT)
			agent_leave(&other, OFFLOAD_OUTRANKED);
		agent_leave(&at, OFFLOAD_OUTRANKED);
		return true;
	}
	return false;
}

/* Places that are about to be free: where slots are short, those that drain, too. */
static uint32_t about_to_be_free(const struct agent *agent, unsigned port)
{
	const struct slots *slots = &agent->wire[agent_domain_of(agent, port)].slots;
	const bool is_short = slots->n_used + slots->n_draining >= slots->n;
	uint64_t leaving =
		agent->port[port].counters.flows[OFFLOAD_LEAVING] - agent->port[port].n_stay;

	return (uint32_t)leaving + (is_short ? slots->n_draining : 0);
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

	/* who leaves for it was the least busy one: the others' bar is higher by now */
	of->claims = has_slots(agent, port) &&
		     (rate >= bar_of_others(agent, port) ||
			     share_is_served(share_of(agent, port), agent->config.n_workers,
				     agent->config.worker, rate));
	return of->claims;
}

void agent_share(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	struct share *share = installer_share(of->installer);
	const struct share_told told = {
		.rules = own_rules(&of->counters),
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

bool agent_make_room(struct agent *agent, unsigned port)
{
	struct agent_port *of = &agent->port[port];
	const struct queue *queue = &of->queue;

	if (queue->n == 0)
		return false;
	/* whoever comes first is refused by the NIC, if that is full */
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
			agent_send_home(agent, port, OFFLOAD_OUTRANKED);
		return false;
	}
	return false;
}
