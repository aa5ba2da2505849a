/* SPDX-License-Identifier: BSD-3-Clause */
/* What the NIC counted of flows that it sends on alone: read, credited, and waited for at the end. */
#include <errno.h>

#include "offload/agent_full.h"

/* Of many flows: as often as takes so much of an installer's time, which is for rules; ... */
#define READ_PART 4
/* ... and the less often, the more of them are told later than that: in so small steps, by so many times at most. */
#define READ_LATE_US 300000
#define READ_STEPS 64
#define READ_MOST 15
/* The first one: whatever a port carries, no counter comes round in that time. */
#define FIRST_US 1000
/* Bytes of a frame, where nobody says what the port takes. */
#define LONGEST 16384
/* A report is not held for longer, whatever the NIC says. */
#define HOLD_US (5 * UINT64_C(1000000))
/* Nor does it wait for longer after that for whoever takes reports: see FLOW_SHARD_PATIENCE_S. */
#define PATIENCE_US (2 * UINT64_C(1000000))

static struct agent_wire *wire_of(const struct agent_at *at)
{
	return &at->agent->wire[at->domain];
}

static struct agent_full *full_of(const struct agent_at *at)
{
	return &wire_of(at)->full[at->slot];
}

static struct agent_full_direction *full_count_direction_of(const struct agent_at *at)
{
	return &full_of(at)->direction[at->from];
}

/* Whose record it is; another may have the place. NULL: it has gone. */
static const struct flow_record *record_of(const struct agent_at *at)
{
	const struct flow_record *record = at->record;

	if (record == NULL || !offload_has_slot(record) || record->slot != at->slot ||
		!flow_key_equal(&record->key, &at->entry->key))
		return NULL;
	return record;
}

/* Bytes of a packet of that end, so far. */
static uint32_t full_count_size_of(const struct agent_at *at)
{
	const struct flow_record *record = record_of(at);
	uint64_t packets, bytes;

	if (record == NULL && full_of(at)->held)
		record = &full_of(at)->report.record;
	packets = record == NULL ? 0 : flow_packets(record, at->from);
	bytes = record == NULL ? 0 : flow_bytes(record, at->from);
	/* an active report may have taken them: any size that is usual */
	return packets == 0 ? 1024 : (uint32_t)RTE_MAX(bytes / packets, UINT64_C(1));
}

/* What the tally has, and nobody was told of yet. */
static uint64_t credit(const struct agent_at *at, bool last)
{
	struct agent_full *full = full_of(at);
	struct agent_full_direction *direction = full_count_direction_of(at);
	struct agent_counters *counters = &at->agent->port[at->port].counters;
	struct agent_credit credit = {
		.port = at->port,
		.position = record_of(at) != NULL ? at->entry->position : FLOW_NONE,
		.last = last,
		.credit = {.packets = direction->tally.packets.total - direction->packets,
			.bytes = direction->tally.bytes.total - direction->bytes,
			.from = at->from,
			.since_us = direction->looked_us,
			.seen_us = at->agent->now_us},
		.dropped = at->direction->deed == PROVIDER_DROPS,
	};
	const uint64_t packets = credit.credit.packets;

	/* that the last ones were credited before is news as well */
	if (packets == 0 && (!last || direction->packets == 0))
		return 0;
	if (packets == 0)
		credit.credit.seen_us = 0;
	if (credit.position == FLOW_NONE && full->held) {
		credit.report = &full->report;
		if (full->report.offload.packets != FLOW_OFFLOAD_LOST)
			full->report.offload.packets += packets;
	}
	direction->packets += packets;
	direction->bytes += credit.credit.bytes;
	at->direction->marked += packets;
	if (!credit.dropped) {
		counters->forwarded += packets;
		counters->forwarded_bytes += credit.credit.bytes;
	}
	if (credit.position == FLOW_NONE && credit.report == NULL)
		counters->unaccounted += packets;
	at->agent->config.credit(at->agent->config.context, &credit);
	return packets;
}

static void read_counter(
	const struct agent_at *at, const struct installer_answer *answer, uint64_t passed_us)
{
	const struct agent_config *config = &at->agent->config;
	const struct tally_look look = {
		.passed_us = passed_us,
		.link_mbps = config->link_mbps[at->port],
		.longest = config->longest[at->port] != 0 ? config->longest[at->port] : LONGEST,
		.size = full_count_size_of(at),
	};
	const struct provider_count told = {
		.packets = answer->packets, .bytes = answer->bytes, .has_bytes = answer->has_bytes};

	if (!tally_read(&full_count_direction_of(at)->tally, &at->agent->port[at->port].tally,
		    &told, &look))
		full_of(at)->estimated = true;
	/* as users see it */
	at->direction->nic.total = full_count_direction_of(at)->tally.packets.total;
}

/* A flow that becomes busy between two readings is not to come round meanwhile: of narrow counters all are read often. */
static uint64_t read_us(const struct agent_port *port)
{
	const unsigned bits = port->tally.packets.bits;

	return bits != 0 && bits < 32 ? AGENT_READ_US : port->counters.read_us;
}

/* `most_us`: nobody knows how its rate changes. */
static void full_count_plan(const struct agent_at *at, uint64_t rate, uint64_t most_us)
{
	uint64_t us = tally_interval_us(&at->agent->port[at->port].tally, rate,
		full_count_size_of(at), RTE_MIN(most_us, read_us(&at->agent->port[at->port])));

	at->direction->nic_due_us = at->agent->now_us + us;
	agent_wake(at);
	agent_full_read_often(at, us);
}

/* How often counters are read follows from how many there are, and from whether they are read when they are to be. */
static void full_count_adapt(struct agent_port *port, uint64_t now_us, uint64_t due_us)
{
	const uint64_t flows = port->counters.flows[OFFLOAD_ACCEPTED] +
			       port->counters.flows[OFFLOAD_PROVEN] +
			       port->counters.flows[OFFLOAD_SUSPECT];
	const uint64_t least = RTE_MAX(
		(uint64_t)AGENT_READ_US, flows * READ_PART * installer_count_us(port->installer));

	if (now_us > due_us && now_us - due_us > READ_LATE_US)
		port->read_late += 1 + port->read_late / READ_STEPS;
	else if (port->read_late > 0)
		port->read_late -= 1 + port->read_late / READ_STEPS;
	port->read_late = RTE_MIN(port->read_late, READ_STEPS * READ_MOST);
	port->counters.read_us = least + least * port->read_late / READ_STEPS;
}

void agent_full_accepted(const struct agent_at *at)
{
	struct agent_full_direction *direction = full_count_direction_of(at);

	direction->looked_us = at->agent->now_us;
	at->direction->rate.us = at->agent->now_us;
	full_count_plan(at, 0, FIRST_US);
}

/* It is in the NIC, as its counter shows. */
static void prove(const struct agent_at *at)
{
	struct health *health = installer_health(at->agent->port[at->port].installer);

	at->direction->unmarked = 0;
	if (record_of(at) != NULL)
		agent_remember_proven(at);
	if (at->direction->state == OFFLOAD_ACCEPTED) {
		health_proven(&health->worker[at->agent->config.worker]);
		agent_move(at, OFFLOAD_PROVEN, at->direction->reason,
			(uint32_t)(at->agent->now_us - at->direction->queued_us));
	} else if (at->direction->state == OFFLOAD_SUSPECT) {
		agent_move(at, OFFLOAD_PROVEN, OFFLOAD_BUSY, 0);
	}
}

/* Of the flow's packets since the last reading more came here, which no rule can be expected to match, than it counted. */
static bool is_mostly_unplain(const struct agent_at *at, uint64_t packets, uint64_t passed_us)
{
	struct slot_direction *direction = at->direction;
	const uint32_t unplain = direction->unplain;

	if (passed_us < AGENT_UNSEEN_US || direction->state < OFFLOAD_SUSPECT)
		return false;
	direction->unplain = 0;
	return unplain >= AGENT_UNSEEN && unplain > packets;
}

void agent_full_counted(const struct agent_at *at, const struct installer_answer *answer)
{
	struct agent_full_direction *direction = full_count_direction_of(at);
	struct agent_port *port = &at->agent->port[at->port];
	uint64_t passed_us = at->agent->now_us - direction->looked_us, packets, left_us;

	if (answer->result < 0) {
		/* of a rule that is gone nobody can be asked: its end tells */
		at->direction->nic_due_us = at->agent->now_us + AGENT_READ_US;
		return;
	}
	full_count_adapt(port, at->agent->now_us, at->direction->nic_due_us);
	read_counter(at, answer, passed_us);
	packets = credit(at, false);
	direction->looked_us = at->agent->now_us;
	if (packets != 0)
		prove(at);
	if (is_mostly_unplain(at, packets, passed_us)) {
		agent_leave_unplain(at);
		return;
	}
	full_count_plan(
		at, packets * AGENT_SECOND_US / RTE_MAX(passed_us, UINT64_C(1)), 4 * passed_us);
	/* last: the record may be gone then */
	if (packets != 0 || record_of(at) == NULL)
		return;
	left_us = at->agent->config.silent(at->agent->config.context, at->entry->position);
	if (left_us != 0 && left_us < at->direction->nic_due_us - at->agent->now_us) {
		at->direction->nic_due_us = at->agent->now_us + left_us;
		agent_full_read_often(at, left_us);
	}
}

void agent_full_removed(const struct agent_at *at, const struct installer_answer *answer)
{
	if (answer->counted)
		read_counter(
			at, answer, at->agent->now_us - full_count_direction_of(at)->looked_us);
	if (!answer->counted || !answer->final)
		full_of(at)->estimated = true;
	(void)credit(at, true);
}

static void full_count_let_go(const struct agent_at *at)
{
	struct agent_full *full = full_of(at);

	full->held = full->ready = false;
	full->report.offload.estimated = full->estimated;
	at->agent->n_held--;
	at->agent->config.release(at->agent->config.context, &full->report);
}

static bool has_room(const struct agent *agent)
{
	return agent->config.room == NULL || agent->config.room(agent->config.context) != 0;
}

/* Nothing more is waited for but room among the reports: whoever writes them may not have had its turn. */
static void release(const struct agent_at *at)
{
	struct agent_wire *wire = wire_of(at);
	struct agent_full *full = full_of(at);

	if (full->ready)
		return;
	if (wire->n_ready == 0 && has_room(at->agent)) {
		full_count_let_go(at);
		return;
	}
	full->ready = true;
	full->ready_us = at->agent->now_us;
	if (wire->n_ready++ == 0)
		wire->ready_first = at->slot;
	else
		wire->full[wire->ready_last].next_ready = at->slot;
	wire->ready_last = at->slot;
}

void agent_full_release(struct agent *agent, unsigned number)
{
	struct agent_wire *wire = &agent->wire[number];

	while (wire->n_ready != 0) {
		const struct agent_at at = agent_at_slot(agent, number, wire->ready_first, 0);
		const struct agent_full *full = full_of(&at);

		if (!has_room(agent) && agent->now_us - full->ready_us < PATIENCE_US)
			return;
		wire->n_ready--;
		wire->ready_first = full->next_ready;
		full_count_let_go(&at);
		agent_release(agent, number, at.slot);
	}
}

bool agent_full_hold(const struct agent_at *at, const struct flow_report *report)
{
	struct agent_full *full;

	if (wire_of(at)->full == NULL || !agent_has_full(at->entry))
		return false;
	full = full_of(at);
	full->report = *report;
	full->held = true;
	full->held_us = at->agent->now_us;
	at->agent->n_held++;
	return true;
}

void agent_full_settle(const struct agent_at *at)
{
	if (full_of(at)->held && !agent_has_full(at->entry))
		release(at);
}

void agent_full_look_leaving(const struct agent_at *at)
{
	struct agent_full *full;

	if (!agent_is_full(at->direction))
		return;
	full = full_of(at);
	/* a delete that was refused: it goes on sending them */
	if (at->direction->remove && !at->direction->awaited)
		agent_full_poll(at);
	if (!full->held || full->ready || at->agent->now_us - full->held_us < HOLD_US)
		return;
	full->estimated = true;
	release(at);
}

void agent_full_poll(const struct agent_at *at)
{
	if (at->direction->nic_due_us <= at->agent->now_us && !at->direction->count_awaited)
		agent_ask_count(at);
}

void agent_give_up(struct agent *agent)
{
	for (unsigned number = 0; number < agent->config.topology.n_domains; number++) {
		struct agent_wire *wire = &agent->wire[number];

		for (uint32_t i = 0; wire->full != NULL && i < wire->slots.n; i++) {
			const struct agent_at at = agent_at_slot(agent, number, i, 0);

			if (!wire->full[i].held)
				continue;
			if (!wire->full[i].ready)
				wire->full[i].estimated = true;
			full_count_let_go(&at);
		}
		wire->n_ready = 0;
	}
}
