/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent_full.h"

#include <netinet/in.h>

#include "flow/tcp.h"

/* A connection that is not open yet may be, and can be full then. */
#define FEW_PACKETS 16
/* A marked flow that could be full is asked for again no earlier than that. */
#define PROMOTE_US (10 * AGENT_SECOND_US)
/* A flow leaves when its counter was not read for so long, plus four times the interval of readings. */
#define UNREAD_US AGENT_SECOND_US
/* A report is not held for longer, whatever the NIC says. */
#define HOLD_US (5 * AGENT_SECOND_US)
/* Nor does it wait for longer after that for room: see FLOW_SHARD_PATIENCE_S. It is tried so often. */
#define PATIENCE_US (2 * AGENT_SECOND_US)
#define ROOM_US 1000

/* The port can, and the agent is to. */
static bool is_possible(const struct agent_at *at, enum provider_deed deed)
{
	const struct agent *agent = at->agent;
	const struct installer *installer = agent->port[at->port].installer;
	enum provider_kind kind = provider_kind(&at->record->key);

	if (!agent->config.full || installer == NULL || kind == PROVIDER_N_KINDS)
		return false;
	/* the NIC checks no window of what it sends on */
	if (deed == PROVIDER_FORWARDS && at->record->key.proto == IPPROTO_TCP &&
		agent->config.tcp_strict)
		return false;
	return installer_abilities(installer)->full[deed][kind];
}

static bool is_retry_over(const struct agent_at *at)
{
	return at->entry == NULL ||
	       agent_full_direction_of(at)->retry_ms <= at->agent->now_us / 1000;
}

bool agent_full_waits(const struct agent_at *at)
{
	const struct flow_record *record = at->record;

	if (record->key.proto != IPPROTO_TCP || record->not_plain ||
		!is_possible(at, PROVIDER_FORWARDS) || !is_retry_over(at))
		return false;
	return flow_phase((enum flow_state)record->state) == FLOW_PHASE_NEW &&
	       flow_packets(record, 0) + flow_packets(record, 1) < FEW_PACKETS;
}

enum provider_deed agent_full_choose(const struct agent_at *at)
{
	const enum provider_deed deed =
		flow_is_dropped(at->record, at->from) ? PROVIDER_DROPS : PROVIDER_FORWARDS;

	if (!is_possible(at, deed) || !is_retry_over(at) || flow_is_rejected(at->record, at->from))
		return PROVIDER_MARKS;
	if (deed == PROVIDER_DROPS)
		return deed;
	/* a rule does nothing but forward so far: other programs are the engine's */
	if (at->record->not_plain)
		return PROVIDER_MARKS;
	if (at->record->key.proto == IPPROTO_TCP && at->record->state != FLOW_ESTABLISHED)
		return PROVIDER_MARKS;
	return PROVIDER_FORWARDS;
}

bool agent_full_drops(const struct agent_at *at)
{
	return is_possible(at, PROVIDER_DROPS);
}

void agent_full_decided(const struct agent_at *at)
{
	const enum provider_deed deed = (enum provider_deed)at->direction->deed;
	const bool fits =
		flow_is_dropped(at->record, at->from)
			? deed == PROVIDER_DROPS && !flow_is_rejected(at->record, at->from)
			: deed == PROVIDER_MARKS ||
				  (deed == PROVIDER_FORWARDS && !at->record->not_plain);

	if (fits || !agent_holds(at->direction))
		return;
	/* one that marks brings packets to software, which does as was decided */
	if (deed != PROVIDER_MARKS && !at->direction->decided) {
		at->direction->decided = true;
		at->agent->port[at->port].counters.decided++;
	}
	agent_event(at, EVENT_DECIDED, 0, 0);
}

/* A rule takes packets unseen: what is known of the window is old by the next one. */
static void forget_window(const struct agent_at *at)
{
	if (at->record != NULL && at->record->key.proto == IPPROTO_TCP)
		flow_tcp_forget_window(at->record);
}

void agent_full_begin(const struct agent_at *at)
{
	struct agent_full_direction *direction = agent_full_direction_of(at);
	unsigned offload = at->record->offload | OFFLOAD_LOOKED_AT;

	/* every packet of the flow that comes is looked at from now on */
	at->record->offload = offload & 0xff;
	tally_begin(&direction->tally);
	direction->packets = direction->bytes = 0;
	forget_window(at);
}

/* A rule of the slot may be in the NIC that sends packets on alone. */
static bool has_full(const struct slot *entry)
{
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
		if (agent_is_full(&entry->direction[from]) && agent_holds(&entry->direction[from]))
			return true;
	return false;
}

void agent_full_saw(const struct agent_at *at, const struct packet_info *info)
{
	if (!has_full(at->entry))
		return;
	forget_window(at);
	if (!agent_opens_or_closes(info))
		return;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at each = agent_at_slot(at->agent, at->domain, at->slot, from);

		if (agent_is_full(each.direction))
			agent_event(&each, EVENT_CLOSING, 0, 0);
	}
}

/*
 * Nothing was counted of a busy flow since it was accepted, nor did anything come here. It may have fallen silent; or
 * the counter is not to be believed, and the next time it is marked.
 */
static bool is_mute(const struct agent_at *at)
{
	const struct agent_full_direction *full = agent_full_direction_of(at);

	return at->direction->state == OFFLOAD_ACCEPTED && at->agent->config.threshold > 0 &&
	       full->tally.packets.total == 0 && full->looked_us > at->direction->since_us &&
	       at->agent->now_us - at->direction->since_us >= AGENT_SECOND_US;
}

void agent_full_look(const struct agent_at *at)
{
	const struct slot_direction *direction = at->direction;
	const uint64_t now_us = at->agent->now_us;

	if (!agent_is_full(direction)) {
		if (at->agent->config.full && direction->state == OFFLOAD_PROVEN &&
			now_us - direction->since_us >= PROMOTE_US &&
			agent_full_choose(at) == PROVIDER_FORWARDS)
			agent_event(at, EVENT_PROMOTED, 0, 0);
	} else if (now_us - agent_full_direction_of(at)->looked_us >=
		   UNREAD_US + 4 * at->agent->port[at->port].counters.read_us) {
		agent_event(at, EVENT_UNREAD, 0, 0);
	} else if (is_mute(at)) {
		agent_event(at, EVENT_MUTE, 0, 0);
	}
}

static bool has_room(const struct agent *agent)
{
	return agent->config.room == NULL || agent->config.room(agent->config.context) != 0;
}

static void let_go(struct agent *agent, struct agent_full *full)
{
	full->held = full->ready = false;
	full->report.offload.estimated = full->estimated;
	agent->n_held--;
	agent->config.release(agent->config.context, &full->report);
}

bool agent_full_hold(const struct agent_at *at, const struct flow_report *report)
{
	struct agent_full *full;

	if (at->agent->wire[at->domain].full == NULL || !has_full(at->entry))
		return false;
	full = agent_full_of(at);
	full->report = *report;
	full->held = true;
	full->held_us = at->agent->now_us;
	at->agent->n_held++;
	return true;
}

void agent_full_settle(const struct agent_at *at)
{
	const uint64_t now_us = at->agent->now_us;
	struct agent_full *full;

	if (at->agent->wire[at->domain].full == NULL || !agent_full_of(at)->held)
		return;
	full = agent_full_of(at);
	if (!full->ready) {
		if (has_full(at->entry)) {
			if (now_us - full->held_us < HOLD_US)
				return;
			full->estimated = true;
		}
		full->ready = true;
		full->ready_us = now_us;
	}
	/* the writer of reports may not have had its turn */
	if (has_room(at->agent) || now_us - full->ready_us >= PATIENCE_US)
		let_go(at->agent, full);
	else
		agent_due(at, now_us + ROOM_US);
}

void agent_full_give_up(struct agent *agent, unsigned number)
{
	struct agent_wire *wire = &agent->wire[number];

	for (uint32_t i = 0; wire->full != NULL && i < wire->slots.n; i++) {
		if (!wire->full[i].held)
			continue;
		wire->full[i].estimated |= !wire->full[i].ready;
		let_go(agent, &wire->full[i]);
	}
}
