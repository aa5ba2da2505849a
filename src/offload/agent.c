/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's life, and its turn: policies are told of packets, of answers, and of slots whose time has come. */
#include "offload/agent.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mapping.h"
#include "offload/agent_admit.h"
#include "offload/agent_audit.h"
#include "offload/agent_count.h"
#include "offload/agent_full.h"
#include "offload/agent_state.h"

/* Inserts that one worker hands to a port's installer before it has answers, at first. */
#define FIRST_LIMIT 16
/* Slots that a turn looks at, at least, and more by one for each so many us that have passed. */
#define LOOKS 32
#define LOOK_EACH_US 16
#define LOOKS_MOST 256
/* So many are looked at together: their lines are fetched for all of them at once. */
#define TOGETHER 16

/* Each worker has its part; it is not less than one. */
static uint32_t own_rules_per_s(const struct agent_config *config)
{
	return config->rules_per_s / config->n_workers +
	       (config->worker < config->rules_per_s % config->n_workers);
}

int agent_create(struct agent **out, const struct agent_config *config)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (agent == NULL)
		return -ENOMEM;
	agent->config = *config;
	for (unsigned i = 0; i < config->topology.n_ports; i++) {
		agent->port[i].installer = config->installer[i];
		agent->port[i].limit = FIRST_LIMIT;
		agent->port[i].room_step = 1;
		agent->port[i].counters.read_us = config->full ? AGENT_READ_US : 0;
		agent->port[i].budget.per_s = own_rules_per_s(config);
	}
	*out = agent;
	return 0;
}

void agent_set(struct agent *agent, const struct agent_settings *settings)
{
	struct agent_config *config = &agent->config;

	agent->off = !settings->on;
	config->threshold = settings->threshold;
	config->min_packets = settings->min_packets;
	config->rules = settings->rules;
	config->rules_per_s = settings->rules_per_s;
	for (unsigned i = 0; i < config->topology.n_ports; i++)
		agent->port[i].budget.per_s = own_rules_per_s(config);
}

void agent_introduce(struct agent *const *agents, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			agents[i]->workers[j] = agents[j];
}

void agent_destroy(struct agent *agent)
{
	if (agent == NULL)
		return;
	for (unsigned i = 0; i < RTE_DIM(agent->wire); i++)
		agent_slots_fini(&agent->wire[i]);
	free(agent);
}

int agent_slots_init(struct agent_wire *wire, const struct agent_config *config, unsigned domain,
	uint32_t mark_max)
{
	const struct slots_config slots = {
		.n = config->slots,
		.n_workers = config->n_workers,
		.worker = config->worker,
		.n_ports = config->topology.size[domain],
		.mark_max = mark_max,
		.positions = flow_table_positions(config->table),
		.random = config->random,
	};

	memset(wire, 0, sizeof(*wire));
	int ret = slots_init(&wire->slots, &slots);

	if (ret < 0)
		return ret;
	ret = due_init(&wire->due, wire->slots.n);
	wire->n_ports = config->topology.size[domain];
	wire->admission = calloc(wire->n_ports, sizeof(wire->admission[0]));
	if (ret == 0 && wire->admission == NULL)
		ret = -ENOMEM;
	for (unsigned i = 0; ret == 0 && i < wire->n_ports; i++)
		ret = admission_init(&wire->admission[i], wire->slots.n);
	if (ret == 0 && config->full) {
		wire->full = mapping_create(
			wire->slots.n * sizeof(wire->full[0]), MAPPING_HUGE | MAPPING_POPULATE);
		ret = wire->full != NULL ? 0 : -ENOMEM;
	}
	if (ret < 0)
		agent_slots_fini(wire);
	return ret;
}

void agent_slots_fini(struct agent_wire *wire)
{
	for (unsigned i = 0; wire->admission != NULL && i < wire->n_ports; i++)
		admission_fini(&wire->admission[i]);
	free(wire->admission);
	if (wire->full != NULL)
		mapping_destroy(wire->full, wire->slots.n * sizeof(wire->full[0]));
	due_fini(&wire->due);
	slots_fini(&wire->slots);
	memset(wire, 0, sizeof(*wire));
}

void agent_adopt(struct agent *agent, unsigned number, const struct agent_wire *wire)
{
	agent->wire[number] = *wire;
	atomic_store_explicit(
		&agent->adopted[number], &agent->wire[number].slots, memory_order_release);
}

static struct agent_at at_position(struct agent *agent, uint32_t position, unsigned from)
{
	return agent_at_record(agent, agent_record_at(agent, position), from);
}

/* All packets may come so, by a rule that was to go and did not: the rate is measured nowhere else then. */
static void sample_unless_queued(
	struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	if (offload_state(agent_record_at(agent, position), from) != OFFLOAD_QUEUED)
		agent_sample(agent, position, port, from);
}

void agent_marked(struct agent *agent, uint32_t position, unsigned port, unsigned from)
{
	const struct agent_at at = at_position(agent, position, from);

	sample_unless_queued(agent, position, port, from);
	if (at.entry != NULL)
		agent_audit_marked(&at, port);
}

void agent_unmarked(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info)
{
	const struct agent_at at = at_position(agent, position, info->from);

	if (at.entry == NULL)
		return;
	agent_full_saw(&at, info);
	agent_audit_unmarked(&at, port, info);
}

void agent_unplain(struct agent *agent, uint32_t position, unsigned port,
	const struct packet_info *info, bool marked)
{
	const struct agent_at at = at_position(agent, position, info->from);

	if (at.entry == NULL)
		return;
	if (marked) {
		agent_audit_unplain_marked(&at, port);
	} else {
		agent_full_saw(&at, info);
		agent_audit_unplain(&at, port);
	}
}

void agent_stranger_unplain(
	struct agent *agent, unsigned port, uint32_t position, const struct packet_info *info)
{
	agent->port[port].counters.strangers++;
	if (position != FLOW_NONE)
		agent_unplain(agent, position, port, info, false);
}

void agent_stranger(struct agent *agent, unsigned port, uint32_t mark, uint32_t position,
	const struct packet_info *info)
{
	const bool ghost = agent_audit_ghost(agent, port, mark);

	agent->port[port].counters.strangers++;
	if (position == FLOW_NONE)
		return;
	sample_unless_queued(agent, position, port, info->from);
	if (ghost) {
		const struct agent_at there =
			agent_at_port(agent, port, agent_record_at(agent, position), info->from);

		agent_audit_look_at_ghost(&there, position, mark);
	}
	const struct agent_at at = at_position(agent, position, info->from);

	if (at.entry == NULL)
		return;
	agent_full_saw(&at, info);
	agent_audit_stranger(&at, port, mark);
}

void agent_dropped(
	struct agent *agent, uint32_t position, unsigned port, const struct packet_info *info)
{
	const struct agent_at at = at_position(agent, position, info->from);

	/* the rule that was to drop it did not */
	if (at.entry != NULL && at.port == port && at.direction->deed == PROVIDER_DROPS &&
		!agent_opens_or_closes(info))
		agent_audit_dropped(&at);
}

void agent_decided(struct agent *agent, uint32_t position)
{
	if (!offload_has_slot(agent_record_at(agent, position)))
		return;
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at at = at_position(agent, position, from);

		agent_full_decided(&at);
	}
}

/* An active report: the record's counters began anew at 0. */
static void begin_anew(struct slot *entry, const struct flow_record *record, uint64_t now_us)
{
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		struct slot_direction *at = &entry->direction[from];

		at->marked = agent_marked_packets(at, record, from);
		at->base = 0;
		at->rate.packets = 0;
		at->rate.us = now_us;
	}
	entry->reported = entry->direction[0].marked + entry->direction[1].marked;
}

bool agent_ended(struct agent *agent, struct flow_report *report)
{
	struct flow_record *record = &report->record;
	const unsigned number = flow_key_wire(&record->key);
	struct slot *entry = agent_slot_of(agent, record);
	bool holds = false;

	agent_view(agent, record, &report->offload);
	if (report->reason == FLOW_END_ACTIVE) {
		if (entry != NULL)
			begin_anew(entry, record, agent->now_us);
		return false;
	}
	if (entry != NULL) {
		const struct agent_at at = agent_at_slot(agent, number, record->slot, 0);

		holds = agent_full_hold(&at, report);
	}
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		struct agent_at at = agent_at_record(agent, record, from);

		/* the record is another's already, or will be: what it counted is in the report */
		if (entry != NULL)
			at.record = NULL;
		agent_event(&at, EVENT_ENDED, 0, 0);
	}
	if (entry == NULL)
		return false;
	entry->position = FLOW_NONE;
	slots_sever(&agent->wire[number].slots, record->slot);
	(void)agent_release(agent, number, record->slot);
	return holds;
}

void agent_give_up(struct agent *agent)
{
	for (unsigned number = 0; number < agent->config.topology.n_domains; number++)
		agent_full_give_up(agent, number);
}

/* The event that an answer other than 0 to an insert is. */
static enum agent_event refusal_event(
	const struct agent_at *at, const struct installer_answer *answer)
{
	if (at->record == NULL || answer->reason == OFFLOAD_OUTRANKED)
		return EVENT_NOT_TAKEN;
	if (answer->result == -EOPNOTSUPP)
		return agent_is_full(at->direction) ? EVENT_REFUSED : EVENT_UNABLE;
	return answer->reason >= OFFLOAD_REFUSALS ? EVENT_REFUSED : EVENT_PUT_OFF;
}

static void inserted(const struct agent_at *at, const struct installer_answer *answer)
{
	const bool leaves = at->direction->remove;

	agent_admit_answered(at, answer);
	at->direction->awaited = false;
	if (answer->result < 0) {
		at->direction->remove = false;
		at->agent->port[at->port].counters.refused += answer->reason >= OFFLOAD_REFUSALS;
		agent_event(at, refusal_event(at, answer), answer->reason, 0);
		agent_full_settle(at);
		(void)agent_release(at->agent, at->domain, at->slot);
		return;
	}
	agent_event(
		at, EVENT_ACCEPTED, 0, (uint32_t)(at->agent->now_us - at->direction->queued_us));
	agent_count_begin(at);
	/* what lives on was decided anew meanwhile, or seen to close: agent_full_saw() */
	if (at->record == NULL)
		agent_event(at, EVENT_ENDED, 0, 0);
	else if (leaves)
		agent_event(at, at->direction->decided ? EVENT_DECIDED : EVENT_CLOSING, 0, 0);
}

/* The refusal of a delete is told, but not a time-out, which is none. */
static void tell_kept(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = &at->agent->port[at->port];
	const struct refusal *refusal = refusal_of(installer_refusals(port->installer), reason);

	if (refusal != NULL && refusal->error != ETIMEDOUT &&
		agent_tells_again(at->agent, &port->refusal_told_us))
		agent_tell(at->agent, at->port, CHANGE_DELETE_REFUSED, reason);
}

static void removed(const struct agent_at *at, const struct installer_answer *answer)
{
	at->direction->awaited = false;
	if (answer->result < 0) {
		/* the rule may be there still: its delete is asked for again by the next look */
		agent_event(at, EVENT_KEPT, 0, 0);
		agent_admit_stays(at);
		tell_kept(at, answer->reason);
		return;
	}
	at->direction->remove = false;
	at->agent->port[at->port].stay_us = 0;
	if (agent_is_full(at->direction))
		agent_count_last(at, answer);
	agent_event(at, EVENT_REMOVED, 0, 0);
	stale_gone(
		&at->direction->stale, at->agent->now_us, at->agent->wire[at->domain].slots.turns);
	/* packets without marks are worth no look any more where no port has a rule */
	if (at->record != NULL && !flow_is_in_nic(at->record)) {
		unsigned offload = at->record->offload & ~OFFLOAD_LOOKED_AT;

		at->record->offload = offload & 0xff;
	}
	agent_full_settle(at);
	(void)agent_release(at->agent, at->domain, at->slot);
}

/* The lines of a slot that a look at one of its rules needs are on their way. */
static void fetch_direction(const struct agent_wire *wire, uint32_t slot, unsigned from)
{
	const struct slot *of = slots_slot(&wire->slots, slot);

	rte_prefetch0(of);
	rte_prefetch0(&of->direction[from]);
	/* the first line is all of a rule that marks and is well */
	if (wire->full == NULL)
		return;
	const struct agent_full_direction *full = &wire->full[slot].direction[from];

	rte_prefetch0(&of->direction[from].queued_us);
	rte_prefetch0(&of->direction[from].stale);
	for (size_t at = 0; at < sizeof(*full); at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0((const uint8_t *)full + at);
	rte_prefetch0((const uint8_t *)(full + 1) - 1);
}

/* Both lines of its record. */
static void fetch_record(const struct agent *agent, const struct slot *slot)
{
	if (slot->position == FLOW_NONE)
		return;
	const struct flow_record *record = agent_record_at(agent, slot->position);

	rte_prefetch0(record);
	rte_prefetch0(&record->end);
}

static void take_answers(struct agent *agent, unsigned port)
{
	const unsigned domain = agent_domain_of(agent, port);
	const struct agent_wire *wire = &agent->wire[domain];
	const uint32_t first = wire->slots.first;
	struct installer_answer answers[32];
	unsigned n = installer_answers(
		agent->port[port].installer, agent->config.worker, answers, RTE_DIM(answers));

	for (unsigned i = 0; i < n; i++)
		fetch_direction(wire, answers[i].place - first, answers[i].from);
	for (unsigned i = 0; i < n; i++)
		fetch_record(agent, slots_slot(&wire->slots, answers[i].place - first));
	for (unsigned i = 0; i < n; i++) {
		const struct agent_at at =
			agent_at_slot(agent, domain, answers[i].place - first, answers[i].from);

		if (answers[i].op == INSTALLER_INSERT)
			inserted(&at, &answers[i]);
		else if (answers[i].op == INSTALLER_REMOVE)
			removed(&at, &answers[i]);
		else
			agent_count_answer(&at, &answers[i]);
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

/* A rule that is in the NIC, while its record lives. */
static void look_at_rule(const struct agent_at *at)
{
	agent_full_look(at);
	if (!agent_is_in_hw(at->direction))
		return;
	agent_count_look(at);
	agent_admit_look(at);
}

static void look_at_direction(const struct agent_at *at)
{
	struct slot_direction *direction = at->direction;

	if (agent_is_in_hw(direction)) {
		if (at->agent->off)
			agent_event(at, EVENT_OFF, 0, 0);
		else if (!agent_audit_breaker(at) && at->record != NULL)
			look_at_rule(at);
		return;
	}
	if (direction->state == OFFLOAD_LEAVING) {
		if (direction->remove && !direction->awaited)
			agent_remove(at);
		/* a full one whose delete was refused goes on sending packets */
		agent_count_look(at);
	}
	if (agent_holds(direction))
		agent_audit_late(at);
}

/* When a look at a direction is due next, as long as it stays in its state; UINT64_MAX: never. */
static uint64_t due_of(const struct agent_at *at)
{
	const uint64_t rest_us = at->agent->now_us + agent_rest_us(at->agent);

	if (!agent_holds(at->direction))
		return UINT64_MAX;
	if (!agent_is_in_hw(at->direction))
		return rest_us;
	const uint64_t due_us = RTE_MIN(agent_count_due_us(at), agent_admit_due_us(at));
	const bool rests = due_us != UINT64_MAX && !at->agent->wire[at->domain].broken;

	return rests ? due_us : RTE_MIN(due_us, rest_us);
}

static void look_at_slot(struct agent *agent, unsigned number, uint32_t slot)
{
	struct agent_wire *wire = &agent->wire[number];
	uint64_t due_us = UINT64_MAX;

	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at at = agent_at_slot(agent, number, slot, from);

		look_at_direction(&at);
		/* the report of a flow that ended may be held */
		if (from == 0 && at.record == NULL)
			agent_full_settle(&at);
		due_us = RTE_MIN(due_us, due_of(&at));
	}
	/* one without a rule is given back when slots are few */
	if (!agent_release(agent, number, slot))
		due_hasten(&wire->due, slot,
			due_us != UINT64_MAX ? due_us : agent->now_us + agent_rest_us(agent));
}

/* Slots whose time has come, a few at once. */
static void look_at_due(struct agent *agent, unsigned number, uint64_t passed_us)
{
	struct agent_wire *wire = &agent->wire[number];
	unsigned budget =
		RTE_MIN((unsigned)(LOOKS + RTE_MIN(passed_us, UINT64_C(1000000)) / LOOK_EACH_US),
			(unsigned)LOOKS_MOST);
	uint32_t slots[TOGETHER];
	unsigned n;

	while ((n = due_take(&wire->due, agent->now_us, slots, TOGETHER, &budget)) != 0) {
		for (unsigned i = 0; i < n; i++)
			for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
				fetch_direction(wire, slots[i], from);
		for (unsigned i = 0; i < n; i++)
			fetch_record(agent, slots_slot(&wire->slots, slots[i]));
		for (unsigned i = 0; i < n; i++)
			look_at_slot(agent, number, slots[i]);
	}
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

void agent_turn(struct agent *agent, uint64_t now_us)
{
	const struct topology *topology = &agent->config.topology;
	const uint64_t passed_us = now_us - agent->now_us;

	agent->now_us = now_us;
	if (agent->bursts > 0)
		agent->last_bursts = agent->bursts;
	agent->bursts = 0;
	for (unsigned port = 0; port < topology->n_ports; port++) {
		if (agent->port[port].installer == NULL ||
			agent->wire[agent_domain_of(agent, port)].slots.n == 0)
			continue;
		take_answers(agent, port);
		agent_admit_turn(agent, port);
		tell_health(agent, port);
	}
	for (unsigned number = 0; number < topology->n_domains; number++) {
		struct agent_wire *wire = &agent->wire[number];
		const bool was_broken = wire->broken;

		if (wire->slots.n == 0)
			continue;
		slots_turn(&wire->slots, now_us);
		wire->broken = agent->off || is_any_broken(agent, number);
		/* nothing rests when rules are to be taken out */
		if (wire->broken && !was_broken)
			due_hurry(&wire->due);
		look_at_due(agent, number, passed_us);
	}
}
