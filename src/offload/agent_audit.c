/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent_audit.h"

/* Such a number of packets in a row without their mark is a failure: one or two may have been overtaken. */
#define UNMARKED 3
/* The same of rules that were only accepted: what was in flight then has no mark. */
#define UNSEEN 16
#define UNSEEN_US 10000
/* So many packets that no rule can be expected to match are held against those that came with the mark. */
#define UNPLAIN 64
/* An answer that takes longer is told by the next look: within a second. */
#define LATE_US 400000
/* A mark that is not in force is watched for so long before another is, if it is not found to be a rule's. */
#define GHOST_US 10000000

/* Is the direction's rule in force, so that what the record counts is taken to be marked? */
static bool is_counted(const struct slot_direction *direction)
{
	return direction->state == OFFLOAD_PROVEN || direction->state == OFFLOAD_SUSPECT;
}

/* A packet of the direction came without the mark of its rule, by whatever port: it is not among those with it. */
static void count_unmarked(const struct agent_at *at)
{
	if (is_counted(at->direction))
		at->direction->base++;
}

/*
 * A packet came with the mark by another port than the rule's: of a rule that was there before, and that is gone or is
 * to be. The counter of the rule in force cannot have it.
 */
static void count_elsewhere(const struct agent_at *at)
{
	at->direction->marked++;
	at->direction->nic_base++;
	count_unmarked(at);
}

/* A packet has the mark of a rule that the NIC said is gone, where the flow has no other there. */
static void look_at_stale(const struct agent_at *at, struct stale *stale)
{
	const struct stale_packet packet = {
		.now_us = at->agent->now_us,
		.turn = at->agent->wire[at->domain].slots.turns,
		.packets = flow_packets(at->record, at->from),
	};

	if (stale_marked(stale, &packet))
		health_stale(agent_health_worker(at));
}

/* The first packet came with the mark of a rule that was only accepted. */
static void prove_by_mark(const struct agent_at *at)
{
	struct health_worker *worker = agent_health_worker(at);

	/* this packet has been counted already */
	at->direction->base = flow_packets(at->record, at->from) - 1;
	agent_remember_proven(at);
	health_kind_proven(worker, provider_kind(&at->entry->key));
	health_proven(worker);
	agent_event(at, EVENT_PROVEN, 0, (uint32_t)(at->agent->now_us - at->direction->queued_us));
}

void agent_audit_marked(const struct agent_at *at, unsigned port)
{
	struct slot_direction *direction = at->direction;

	if (at->port != port) {
		count_elsewhere(at);
		return;
	}
	if (agent_is_full(direction)) {
		/* of a rule that marked it before */
		direction->marked++;
		return;
	}
	direction->unmarked = 0;
	if (direction->state == OFFLOAD_ACCEPTED) {
		prove_by_mark(at);
	} else if (direction->state < OFFLOAD_SUSPECT) {
		/* late: of a rule that is gone, or begins to be */
		direction->marked++;
		look_at_stale(at, &direction->stale);
	} else {
		agent_event(at, EVENT_PROVEN, 0, 0);
	}
}

/* A packet should have had the mark, and had none or another's. */
static void missed(const struct agent_at *at, uint8_t reason)
{
	struct slot_direction *direction = at->direction;

	direction->unmarked++;
	if (direction->state == OFFLOAD_PROVEN) {
		agent_event(at, EVENT_MISSED, reason, 0);
	} else if (direction->state == OFFLOAD_ACCEPTED) {
		if (direction->unmarked >= UNSEEN &&
			at->agent->now_us - direction->since_us >= UNSEEN_US)
			agent_event(at, EVENT_FAILED,
				reason == OFFLOAD_UNMARKED ? OFFLOAD_UNSEEN : reason, 0);
	} else if (direction->state == OFFLOAD_SUSPECT && direction->unmarked >= UNMARKED) {
		agent_event(at, EVENT_FAILED, reason, 0);
	}
}

void agent_audit_dropped(const struct agent_at *at)
{
	missed(at, OFFLOAD_RETURNED);
}

/*
 * A rule that cannot match most packets of its direction is of little use, and gives its place
 * to others. The counter of a full one says how many are not: agent_count.c.
 */
static void count_unplain(const struct agent_at *at)
{
	struct slot_direction *direction = at->direction;
	const uint32_t marked = (uint32_t)agent_marked_packets(direction, at->record, at->from);

	if (!agent_is_in_hw(direction))
		return;
	if (direction->unplain == 0)
		direction->plain = marked;
	if (direction->unplain < UINT16_MAX)
		direction->unplain++;
	if (agent_is_full(direction) || direction->unplain < UNPLAIN ||
		at->agent->now_us - direction->since_us < UNSEEN_US)
		return;
	const bool most = direction->unplain > marked - direction->plain + direction->unmarked;

	direction->unplain = 0;
	if (most)
		agent_event(at, EVENT_UNPLAIN, 0, 0);
}

void agent_audit_unmarked(const struct agent_at *at, unsigned port, const struct packet_info *info)
{
	count_unmarked(at);
	/* the rule is not expected to see what comes by another port */
	if (at->port != port)
		return;
	if (agent_opens_or_closes(info))
		count_unplain(at);
	else
		missed(at, agent_is_full(at->direction) ? OFFLOAD_RETURNED : OFFLOAD_UNMARKED);
}

void agent_audit_unplain(const struct agent_at *at, unsigned port)
{
	count_unmarked(at);
	if (at->port == port)
		count_unplain(at);
}

void agent_audit_unplain_marked(const struct agent_at *at, unsigned port)
{
	/* counted as it came; it proves nothing */
	if (at->port != port)
		count_elsewhere(at);
	else if (!is_counted(at->direction))
		at->direction->marked++;
}

/*
 * The flow began anew, and the NIC still has the rule of the earlier flow with its key, or packets that it marked are on
 * their way: which of the two rules marks is the NIC's choice, until the older one is surely gone.
 */
static bool is_of_older_rule(const struct agent_at *at, uint32_t mark)
{
	const struct slots *slots = &at->agent->wire[at->domain].slots;

	return slots_is_given(slots, mark) &&
	       flow_key_equal(&slots_slot(slots, slots_of_mark(slots, mark))->key, &at->entry->key);
}

void agent_audit_stranger(const struct agent_at *at, unsigned port, uint32_t mark)
{
	count_unmarked(at);
	if (at->port == port && !is_of_older_rule(at, mark))
		missed(at, agent_is_full(at->direction) ? OFFLOAD_RETURNED : OFFLOAD_WRONG_MARK);
}

/* Another worker gave that mark, and no other of that number after it. */
static bool is_of_other(const struct agent *agent, unsigned port, uint32_t mark)
{
	const unsigned wire = agent_domain_of(agent, port);
	const unsigned worker = slots_worker(&agent->wire[wire].slots, mark);

	if (worker == agent->config.worker || worker >= agent->config.n_workers ||
		agent->workers[worker] == NULL)
		return false;
	const struct slots *slots =
		atomic_load_explicit(&agent->workers[worker]->adopted[wire], memory_order_acquire);

	return slots != NULL && slots_gave(slots, mark);
}

bool agent_audit_ghost(struct agent *agent, unsigned port, uint32_t mark)
{
	const struct slots *slots = &agent->wire[agent_domain_of(agent, port)].slots;
	struct agent_port *of = &agent->port[port];

	if (slots_is_given(slots, mark) || is_of_other(agent, port, mark))
		return false;
	of->counters.ghosts++;
	/* what this run gave last is watched: agent_audit_look_at_ghost() */
	if (slots_of_mark(slots, mark) == SLOT_NONE && agent_tells_again(agent, &of->ghost_told_us))
		agent_tell(agent, port, CHANGE_GHOST, OFFLOAD_WRONG_MARK);
	return true;
}

/* One of the flow's rules at the port may put a wrong mark on its packets; or did lately, when they may be on their way. */
static bool had_rule_lately(const struct agent_at *at)
{
	if (at->entry == NULL)
		return false;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct slot_direction *direction = &at->entry->direction[from];

		if (direction->port == at->port &&
			(agent_holds(direction) ||
				at->agent->now_us - direction->since_us < STALE_US))
			return true;
	}
	return false;
}

void agent_audit_look_at_ghost(const struct agent_at *at, uint32_t position, uint32_t mark)
{
	struct agent_port *port = &at->agent->port[at->port];
	const struct slots *slots = &at->agent->wire[at->domain].slots;
	const uint64_t now_us = at->agent->now_us;
	const uint32_t slot = slots_of_mark(slots, mark);

	/* a port where offload is off has no rule of ours */
	if (port->installer == NULL || slot == SLOT_NONE || had_rule_lately(at))
		return;
	if (mark != port->ghost_mark || position != port->ghost_position) {
		/* one at a time, for so long */
		if (port->ghost.since_us != 0 && now_us - port->ghost.since_us < GHOST_US)
			return;
		const struct slot *was = slots_slot(slots, slot);

		port->ghost_mark = mark;
		port->ghost_position = position;
		stale_gone(&port->ghost, was->back_us, was->back_turn);
	}
	look_at_stale(at, &port->ghost);
}

void agent_audit_late(const struct agent_at *at)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct slot_direction *direction = at->direction;

	if (!direction->awaited || direction->late ||
		at->agent->now_us - direction->asked_us < LATE_US)
		return;
	direction->late = true;
	port->counters.stalled++;
	if (agent_tells_again(at->agent, &port->stall_told_us))
		agent_tell(at->agent, at->port, CHANGE_STALLED, OFFLOAD_STALLED);
}

/*
 * No rule may stay that was asked for before the port was put to software: also where it was answered so late, or the
 * port is tried again so soon, that no look came in between. Flows that are tried would wait for its place.
 */
bool agent_audit_breaker(const struct agent_at *at)
{
	const struct health *health = agent_health(at->agent, at->port);
	const enum health_state state = health_state(health);

	if (state == HEALTH_CLOSED ||
		(state == HEALTH_TRYING &&
			at->direction->queued_us >=
				atomic_load_explicit(&health->since_us, memory_order_relaxed)))
		return false;
	agent_event(at, EVENT_BREAKER, 0, 0);
	return true;
}
