/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that the NIC sends on alone: which, and when they come back. */
#include "offload/agent_full.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "flow/tcp.h"

/* A connection that is not open yet may be, and can be full then. */
#define FEW_PACKETS 16
/* A direction that could not be full is marked for so long, doubled each time. */
#define RETRY_MS 10000
#define MOST_RETRIES 6
/* Whose counter cannot be read for so long, and four times what there is between two readings, is not left to the NIC. */
#define UNREAD_US UINT64_C(1000000)
/* One that is marked, and could be full, is asked again no earlier than that. */
#define PROMOTE_US (10 * UINT64_C(1000000))

int agent_full_init(struct agent_wire *wire)
{
	wire->full = mapping_create(
		wire->slots.n * sizeof(wire->full[0]), MAPPING_HUGE | MAPPING_POPULATE);
	wire->often = calloc(1, sizeof(*wire->often));
	return wire->full != NULL && wire->often != NULL ? 0 : -ENOMEM;
}

void agent_full_fini(struct agent_wire *wire)
{
	if (wire->full != NULL)
		mapping_destroy(wire->full, wire->slots.n * sizeof(wire->full[0]));
	free(wire->often);
}

static struct agent_full_direction *full_direction_of(const struct agent_at *at)
{
	return &at->agent->wire[at->domain].full[at->slot].direction[at->from];
}

void agent_full_forget(const struct agent_wire *wire, uint32_t slot)
{
	uint16_t often;

	if (wire->full == NULL)
		return;
	/* it stays in that list until the list is looked at */
	often = wire->full[slot].often;
	memset(&wire->full[slot], 0, sizeof(wire->full[slot]));
	wire->full[slot].often = often;
}

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
	return at->entry == NULL || full_direction_of(at)->retry_ms <= at->agent->now_us / 1000;
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

bool agent_full_drops(struct agent *agent, unsigned port, struct flow_record *record, unsigned from)
{
	const struct agent_at at = agent_at_port(agent, port, record, from);

	return is_possible(&at, PROVIDER_DROPS);
}

void agent_decided(struct agent *agent, uint32_t position)
{
	struct flow_record *record = flow_table_record(agent->config.table, position);

	if (!offload_has_slot(record))
		return;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at at = agent_at_record(agent, record, from);
		const enum provider_deed deed = (enum provider_deed)at.direction->deed;
		const bool fits =
			flow_is_dropped(record, from)
				? deed == PROVIDER_DROPS && !flow_is_rejected(record, from)
				: deed == PROVIDER_MARKS ||
					  (deed == PROVIDER_FORWARDS && !record->not_plain);

		if (fits || !offload_state_holds((enum offload_state)at.direction->state))
			continue;
		/* one that marks brings packets to software, which does as was decided */
		if (deed != PROVIDER_MARKS && !at.direction->decided) {
			at.direction->decided = true;
			agent->port[at.direction->port].counters.decided++;
		}
		agent_leave(&at, OFFLOAD_DECIDED);
	}
}

/* Of whoever has a rule that takes packets unseen: what is known of the window is old by the next one. */
static void forget_window(const struct agent_at *at)
{
	if (at->record != NULL && at->record->key.proto == IPPROTO_TCP)
		flow_tcp_forget_window(at->record);
}

void agent_full_begin(const struct agent_at *at)
{
	struct agent_full_direction *direction = full_direction_of(at);
	unsigned offload = at->record->offload | OFFLOAD_LOOKED_AT;

	/* every packet of the flow that comes is looked at from now on */
	at->record->offload = offload & 0xff;
	tally_begin(&direction->tally);
	direction->packets = direction->bytes = 0;
	forget_window(at);
}

void agent_full_failed(const struct agent_at *at)
{
	struct agent_full_direction *direction = full_direction_of(at);

	direction->retry_ms =
		at->agent->now_us / 1000 + ((uint64_t)RETRY_MS << direction->failures);
	if (direction->failures < MOST_RETRIES)
		direction->failures++;
}

void agent_full_refused(const struct agent_at *at, const struct installer_answer *answer)
{
	/* what the installer says by itself is nothing that the card cannot */
	if (answer->reason >= OFFLOAD_REFUSALS || answer->result == -EOPNOTSUPP)
		agent_full_failed(at);
	agent_full_settle(at);
}

void agent_full_saw(const struct agent_at *at, const struct packet_info *info)
{
	if (!agent_has_full(at->entry))
		return;
	forget_window(at);
	if (!agent_opens_or_closes(info))
		return;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at each = agent_at_slot(at->agent, at->domain, at->slot, from);

		if (agent_is_full(each.direction))
			agent_leave(&each, OFFLOAD_CLOSING);
	}
}

/* Does a flow that is marked deserve to be tried again? */
static bool is_to_promote(const struct agent_at *at)
{
	return at->direction->state == OFFLOAD_PROVEN &&
	       at->agent->now_us - at->direction->since_us >= PROMOTE_US &&
	       agent_full_choose(at) == PROVIDER_FORWARDS;
}

/*
 * Of a busy flow nothing was counted since it was accepted, nor did anything come here. It may have fallen silent; or
 * the counter is not to be believed, and the next time it is marked.
 */
static bool is_mute(const struct agent_at *at, const struct agent_full_direction *direction)
{
	return at->direction->state == OFFLOAD_ACCEPTED && at->agent->config.threshold > 0 &&
	       direction->tally.packets.total == 0 &&
	       direction->looked_us > at->direction->since_us &&
	       at->agent->now_us - at->direction->since_us >= AGENT_SECOND_US;
}

/* By what was credited when its counter was read last. */
static void look_at_rate(const struct agent_at *at, struct agent_full_direction *direction)
{
	const struct slot_direction *of = at->direction;

	if (direction->looked_us < of->rate.us ||
		direction->looked_us - of->rate.us < AGENT_SECOND_US)
		return;
	agent_look_at_rate(at, direction->looked_us);
	if (2 * (uint64_t)of->rate.value < rate_of_pps(at->agent->config.threshold)) {
		agent_leave(at, OFFLOAD_SLOWED);
	} else if (at->agent->now_us - of->since_us >= 10 * AGENT_SECOND_US) {
		direction->failures = 0;
		offload_set_back_off(at->record, at->from, 0);
	}
}

bool agent_full_look(const struct agent_at *at)
{
	struct agent_full_direction *direction;

	if (!agent_is_full(at->direction)) {
		if (!at->agent->config.full || !is_to_promote(at))
			return false;
		agent_leave(at, OFFLOAD_PROMOTED);
		return true;
	}
	direction = full_direction_of(at);
	agent_full_poll(at);
	if (at->agent->now_us - direction->looked_us >=
		UNREAD_US + 4 * at->agent->port[at->port].counters.read_us) {
		agent_full_failed(at);
		agent_leave(at, OFFLOAD_COUNTER);
	} else if (is_mute(at, direction)) {
		agent_full_failed(at);
		agent_leave(at, OFFLOAD_SLOWED);
	} else {
		look_at_rate(at, direction);
	}
	return true;
}
