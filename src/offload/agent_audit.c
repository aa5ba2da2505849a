/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the NIC does what it said, by what the worker's packets show. */
#include "offload/agent_full.h"

/* So long a mark of ours that is not in force is looked at before another is, if it is not found to be a rule's. */
#define GHOST_US 10000000

/* Is the direction's rule in force, so that what the record counts is taken to be marked? */
static bool is_counted(const struct slot_direction *direction)
{
	return direction->state == OFFLOAD_PROVEN || direction->state == OFFLOAD_SUSPECT;
}

/* One packet of the direction came without the mark of its rule, by whatever port: it is not among those with it. */
static void count_unmarked(const struct agent_at *at)
{
	if (is_counted(at->direction))
		at->direction->base++;
}

/*
 * One came with the mark by another port than the rule's: of a rule that was there before, and that is gone or is to be.
 * It is none that the counter of the rule in force can have.
 */
static void count_elsewhere(const struct agent_at *at)
{
	at->direction->marked++;
	at->direction->nic_base++;
	count_unmarked(at);
}

static void tell_proven(const struct agent_at *at)
{
	struct health *health = installer_health(at->agent->port[at->port].installer);
	struct health_worker *worker = &health->worker[at->agent->config.worker];

	agent_remember_proven(at);
	health_kind_proven(worker, provider_kind(&at->entry->key));
	health_proven(worker);
}

/* A packet has the mark of a rule that the NIC said is gone, where the flow has no other there. */
static void look_at_stale(const struct agent_at *at, struct stale *stale)
{
	const struct stale_packet packet = {
		.now_us = at->agent->now_us,
		.turn = at->agent->wire[at->domain].slots.turns,
		.packets = flow_packets(at->record, at->from),
	};
	struct installer *installer = at->agent->port[at->port].installer;

	if (stale_marked(stale, &packet))
		health_stale(&installer_health(installer)->worker[at->agent->config.worker]);
}

/* Late: of a rule that is gone, or begins to be. */
static void count_late(const struct agent_at *at)
{
	at->direction->marked++;
	look_at_stale(at, &at->direction->stale);
}

void agent_marked(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, from);

	/* all of its packets may come so, by a rule that was to go and did not: its rate is measured nowhere else then */
	if (offload_state(record, from) != OFFLOAD_QUEUED)
		agent_sample(agent, position, port, from);
	if (at.entry == NULL)
		return; /* of a rule that is gone */
	if (at.port != port) {
		count_elsewhere(&at);
		return;
	}
	if (agent_is_full(at.direction)) {
		/* of a rule that marked it before */
		at.direction->marked++;
		return;
	}
	at.direction->unmarked = 0;
	switch ((enum offload_state)at.direction->state) {
	case OFFLOAD_ACCEPTED:
		/* this packet has been counted already */
		at.direction->base = flow_packets(record, from) - 1;
		tell_proven(&at);
		agent_move(&at, OFFLOAD_PROVEN, at.direction->reason,
			(uint32_t)(agent->now_us - at.direction->queued_us));
		break;
	case OFFLOAD_SUSPECT:
		agent_move(&at, OFFLOAD_PROVEN, OFFLOAD_BUSY, 0);
		break;
	case OFFLOAD_INSTALLING:
	case OFFLOAD_LEAVING:
	case OFFLOAD_SOFTWARE:
	case OFFLOAD_QUEUED:
	case OFFLOAD_REFUSED:
		count_late(&at);
		break;
	case OFFLOAD_PROVEN:
	case OFFLOAD_N_STATES:
		break;
	}
}

/* A packet that should have had the mark, and had none or another's. */
static void missed(const struct agent_at *at, uint8_t reason)
{
	struct slot_direction *direction = at->direction;

	direction->unmarked++;
	switch ((enum offload_state)direction->state) {
	case OFFLOAD_ACCEPTED:
		if (direction->unmarked >= AGENT_UNSEEN &&
			at->agent->now_us - direction->since_us >= AGENT_UNSEEN_US)
			agent_fall_out(at, reason == OFFLOAD_UNMARKED ? OFFLOAD_UNSEEN : reason);
		break;
	case OFFLOAD_PROVEN:
		agent_move(at, OFFLOAD_SUSPECT, reason, 0);
		break;
	case OFFLOAD_SUSPECT:
		if (direction->unmarked >= AGENT_UNMARKED)
			agent_fall_out(at, reason);
		break;
	case OFFLOAD_SOFTWARE:
	case OFFLOAD_QUEUED:
	case OFFLOAD_REFUSED:
	case OFFLOAD_INSTALLING:
	case OFFLOAD_LEAVING:
	case OFFLOAD_N_STATES:
		break;
	}
}

void agent_dropped(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, info->from);

	/* the rule that was to drop it did not */
	if (at.entry != NULL && at.port == port && at.direction->deed == PROVIDER_DROPS &&
		!agent_opens_or_closes(info))
		missed(&at, OFFLOAD_RETURNED);
}

/*
 * A packet of a direction with a rule came without the mark, and that rule cannot be expected to match it. Where most are such the rule is of
 * little use, and its place is for others. Of a flow that the NIC has whole its counter says how many are not:
 * agent_full_counted().
 */
static void count_unplain(const struct agent_at *at)
{
	struct slot_direction *direction = at->direction;
	const uint32_t marked = (uint32_t)agent_marked_packets(at);

	if (direction->state < OFFLOAD_SUSPECT)
		return;
	if (direction->unplain == 0)
		direction->plain = marked;
	if (direction->unplain < UINT16_MAX)
		direction->unplain++;
	if (agent_is_full(direction) || direction->unplain < AGENT_UNPLAIN ||
		at->agent->now_us - direction->since_us < AGENT_UNSEEN_US)
		return;
	if (direction->unplain > marked - direction->plain + direction->unmarked)
		agent_leave_unplain(at);
	else
		direction->unplain = 0;
}

void agent_unmarked(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, info->from);

	if (at.entry == NULL)
		return;
	count_unmarked(&at);
	agent_full_saw(&at, info);
	/* the rule is not expected to see what comes by another port */
	if (at.port != port)
		return;
	if (agent_opens_or_closes(info))
		count_unplain(&at);
	else
		missed(&at, agent_is_full(at.direction) ? OFFLOAD_RETURNED : OFFLOAD_UNMARKED);
}

void agent_unplain(struct agent *agent, uint32_t position, unsigned port,
	const struct packet_info *info, bool marked)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);
	const struct agent_at at = agent_at_record(agent, record, info->from);

	if (at.entry == NULL)
		return;
	if (!marked) {
		count_unmarked(&at);
		agent_full_saw(&at, info);
		if (at.port == port)
			count_unplain(&at);
		return;
	}
	/* counted as it came; what it proves is nothing */
	if (at.port != port)
		count_elsewhere(&at);
	else if (!is_counted(at.direction))
		at.direction->marked++;
}

void agent_stranger_unplain(
	struct agent *agent, unsigned port, uint32_t position, const struct packet_info *info)
{
	agent->port[port].counters.strangers++;
	if (position != FLOW_NONE)
		agent_unplain(agent, position, port, info, false);
}

/*
 * The flow began anew, and the NIC still has the rule of who had its key before, or packets that it marked are on
 * their way: which of the two rules marks is the NIC's choice, until the older one is surely gone.
 */
static bool is_of_older_rule(const struct agent_at *at, uint32_t mark)
{
	const struct slots *slots = &at->agent->wire[at->domain].slots;

	return slots_is_given(slots, mark) &&
	       flow_key_equal(&slots_slot(slots, slots_of_mark(slots, mark))->key, &at->entry->key);
}

/*
 * One of the flow's rules at the port may put a wrong mark on its packets; or did lately, when they may be on their way.
 */
static bool had_rule_lately(const struct agent_at *at)
{
	if (at->entry == NULL)
		return false;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct slot_direction *direction = &at->entry->direction[from];

		if (direction->port == at->port &&
			(offload_state_holds((enum offload_state)direction->state) ||
				at->agent->now_us - direction->since_us < STALE_US))
			return true;
	}
	return false;
}

/* A mark that was ours, and is not in force: of a rule that was to go with a flow of before? */
static void look_at_ghost(const struct agent_at *at, uint32_t position, uint32_t mark)
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

/* A mark that another worker gave, and no other of that number after it. */
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

void agent_stranger(struct agent *agent, unsigned port, uint32_t mark, uint32_t position,
	const struct packet_info *info)
{
	struct agent_port *at_port = &agent->port[port];
	const struct slots *slots = &agent->wire[agent_domain_of(agent, port)].slots;
	const bool ghost = !slots_is_given(slots, mark) && !is_of_other(agent, port, mark);

	at_port->counters.strangers++;
	if (ghost) {
		at_port->counters.ghosts++;
		/* what this run gave last is looked at below */
		if (slots_of_mark(slots, mark) == SLOT_NONE &&
			agent_is_new(agent, at_port->ghost_told_us)) {
			at_port->ghost_told_us = agent->now_us;
			agent_tell(agent, port, CHANGE_GHOST, OFFLOAD_WRONG_MARK);
		}
	}
	if (position == FLOW_NONE)
		return;
	struct flow_record *record = flow_table_record(agent->config.table, position);

	/* all of a flow's packets may come so: its rate is measured nowhere else then, but is known of one that waits */
	if (offload_state(record, info->from) != OFFLOAD_QUEUED)
		agent_sample(agent, position, port, info->from);
	if (ghost) {
		const struct agent_at there = agent_at_port(agent, port, record, info->from);

		look_at_ghost(&there, position, mark);
	}
	const struct agent_at at = agent_at_record(agent, record, info->from);

	if (at.entry == NULL)
		return;
	count_unmarked(&at);
	agent_full_saw(&at, info);
	if (at.port == port && !is_of_older_rule(&at, mark))
		missed(&at, agent_is_full(at.direction) ? OFFLOAD_RETURNED : OFFLOAD_WRONG_MARK);
}
