/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offload/agent_full.h"

/* Inserts that one worker hands to a port's installer before it has answers; grows while they are fast. */
#define FIRST_LIMIT 16
#define LEAST_LIMIT 4
#define MOST_LIMIT (INSTALLER_UNDER_WAY / 2)
#define FAST_US 500
#define SLOW_US 1000
/* Between two readings of a counter. */
#define TELLING UINT64_C(16)
#define LEAST_COUNT_US 250000
#define MOST_COUNT_US 4000000
/* Of all rules of a wire together. */
#define COUNT_EACH_US 100

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
	for (unsigned i = 0; i < config->topology.n_ports; i++) {
		agent->port[i].budget.per_s = own_rules_per_s(config);
		if (agent->off && agent->port[i].installer != NULL)
			agent_send_home(agent, i, OFFLOAD_OFF);
	}
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
	wire->used = calloc(RTE_MAX(wire->slots.n, 1u), sizeof(wire->used[0]));
	wire->n_ports = config->topology.size[domain];
	wire->admission = calloc(wire->n_ports, sizeof(wire->admission[0]));
	ret = wire->used == NULL || wire->admission == NULL ? -ENOMEM : 0;
	for (unsigned i = 0; ret == 0 && i < wire->n_ports; i++)
		ret = admission_init(&wire->admission[i], wire->slots.n);
	if (ret == 0 && config->full)
		ret = agent_full_init(wire);
	if (ret < 0)
		agent_slots_fini(wire);
	return ret;
}

void agent_slots_fini(struct agent_wire *wire)
{
	for (unsigned i = 0; wire->admission != NULL && i < wire->n_ports; i++)
		admission_fini(&wire->admission[i]);
	free(wire->admission);
	agent_full_fini(wire);
	slots_fini(&wire->slots);
	free(wire->used);
	memset(wire, 0, sizeof(*wire));
}

void agent_adopt(struct agent *agent, unsigned number, const struct agent_wire *wire)
{
	agent->wire[number] = *wire;
	atomic_store_explicit(
		&agent->adopted[number], &agent->wire[number].slots, memory_order_release);
}

/* Nobody's place is in front of a slow NIC for long: a busier flow that comes later is to overtake it. */
static void agent_adapt(struct agent_port *port, const struct installer_answer *answer)
{
	port->under_way--;
	if (answer->took_us < FAST_US && port->limit < MOST_LIMIT)
		port->limit++;
	else if (answer->took_us > SLOW_US)
		port->limit = RTE_MAX(port->limit / 2, (uint32_t)LEAST_LIMIT);
}

static void inserted(const struct agent_at *at, const struct installer_answer *answer)
{
	const struct provider_abilities *abilities =
		installer_abilities(at->agent->port[at->port].installer);

	if (answer->result == -ENOSPC)
		agent_no_room(at->agent, at->port);
	else if (answer->result == 0)
		agent_took(at->agent, at->port);
	agent_adapt(&at->agent->port[at->port], answer);
	at->direction->awaited = false;
	if (answer->result < 0) {
		/* another worker's flows have what the port may have */
		bool is_limit = answer->reason == OFFLOAD_OUTRANKED;

		at->direction->remove = false;
		agent_move(at, at->record != NULL && !is_limit ? OFFLOAD_REFUSED : OFFLOAD_SOFTWARE,
			answer->reason, 0);
		at->agent->port[at->port].counters.refused += answer->reason >= OFFLOAD_REFUSALS;
		if (agent_is_full(at->direction))
			agent_full_refused(at, answer);
		if (at->record != NULL && answer->result == -EOPNOTSUPP &&
			!agent_is_full(at->direction))
			offload_set_back_off(at->record, at->from, OFFLOAD_NEVER);
		else
			agent_back_off(at);
		agent_release(at->agent, at->domain, at->slot);
		return;
	}
	counter_begin(&at->direction->nic, 0);
	if (agent_is_full(at->direction))
		agent_full_accepted(at);
	else if (abilities->counts && at->agent->config.audit_counters)
		agent_count_soon(at, AGENT_DOUBT_US);
	agent_move(at, OFFLOAD_ACCEPTED, at->direction->reason,
		(uint32_t)(at->agent->now_us - at->direction->queued_us));
	/* what lives on was seen to close meanwhile: agent_full_saw() */
	if (at->record == NULL || at->direction->remove)
		agent_leave(at, at->record == NULL ? OFFLOAD_ENDED : OFFLOAD_CLOSING);
}

/* What a flow is told to have in software, after it left for this reason. */
static uint8_t reason_after(uint8_t reason)
{
	switch (reason) {
	case OFFLOAD_UNSEEN:
	case OFFLOAD_UNMARKED:
	case OFFLOAD_WRONG_MARK:
	case OFFLOAD_COUNTER:
	case OFFLOAD_RETURNED:
		return OFFLOAD_QUARANTINE;
	case OFFLOAD_SLOWED:
		return OFFLOAD_QUIET;
	default:
		return reason;
	}
}

/* Packets without marks are worth no look any more where no port has a rule. */
static void look_no_more(const struct agent_at *at)
{
	if (at->record == NULL || flow_is_in_nic(at->record))
		return;
	unsigned offload = at->record->offload & ~OFFLOAD_LOOKED_AT;

	at->record->offload = offload & 0xff;
}

/* It is told, unless that is what a NIC says that has not answered. */
static void delete_failed(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = &at->agent->port[at->port];
	const struct refusal *refusal = refusal_of(installer_refusals(port->installer), reason);

	if (refusal == NULL || refusal->error == ETIMEDOUT ||
		!agent_is_new(at->agent, port->refusal_told_us))
		return;
	port->refusal_told_us = at->agent->now_us;
	agent_tell(at->agent, at->port, CHANGE_DELETE_REFUSED, reason);
}

static void removed(const struct agent_at *at, const struct installer_answer *answer)
{
	at->direction->awaited = false;
	if (answer->result < 0) {
		/* the rule may be there still: asked again by the sweep */
		at->direction->remove = true;
		if (!at->direction->stays)
			agent_stays(at);
		delete_failed(at, answer->reason);
		return;
	}
	at->direction->remove = false;
	at->agent->port[at->port].stay_us = 0;
	if (agent_is_full(at->direction))
		agent_full_removed(at, answer);
	agent_move(at, OFFLOAD_SOFTWARE, reason_after(at->direction->reason), 0);
	stale_gone(
		&at->direction->stale, at->agent->now_us, at->agent->wire[at->domain].slots.turns);
	look_no_more(at);
	if (agent_is_full(at->direction))
		agent_full_settle(at);
	agent_release(at->agent, at->domain, at->slot);
}

/* What one rule's counter says of the age of readings holds for all of the port. */
static void learn_age(struct agent_port *port, const struct counter *counter)
{
	port->caches |= counter->caches;
	port->fresh = !port->caches && (port->fresh || counter->fresh >= COUNTER_FRESH);
}

/*
 * Until the next reading of a counter, at most: as long as some packets take that it may be held against. What is
 * known of the rate is one of a few seconds. Of many rules each is read less often, as readings take the installer's time,
 * too: what goes wrong with all of them is seen of those whose turn it is.
 */
static uint64_t longest_us(const struct agent_at *at, uint64_t rate)
{
	const uint64_t each_us = (uint64_t)at->agent->wire[at->domain].n_used * COUNT_EACH_US;
	const uint64_t least_us = RTE_MAX((uint64_t)LEAST_COUNT_US, each_us);
	uint64_t pps = RTE_MAX(rate, (uint64_t)rate_pps(at->direction->rate.value));
	uint64_t us = pps == 0 ? UINT64_MAX : TELLING * CLOCK_US_PER_S / pps;

	if (at->agent->now_us - at->direction->queued_us < MOST_COUNT_US)
		return least_us;
	return RTE_MAX(RTE_MIN(us, (uint64_t)MOST_COUNT_US), least_us);
}

/* `rate`: packets a second since the last look at the direction. */
static void watch_counter(const struct agent_at *at, uint64_t raw, uint64_t most, uint64_t rate)
{
	struct agent_port *port = &at->agent->port[at->port];
	struct counter *counter = &at->direction->nic;
	const struct counter_look look = {
		.raw = raw,
		.least = at->direction->asked,
		.most = most,
		.now_us = at->agent->now_us,
		.patience_us = port->fresh ? AGENT_FRESH_US : AGENT_CACHED_US,
	};
	enum counter_verdict verdict = counter_watch(counter, &look);

	/* what it has too many never came here, and never will: from now on it is expected */
	if (verdict == COUNTER_AHEAD)
		at->direction->nic_base -= counter->total - (most - AGENT_NIC_AHEAD);
	/* so that no look of the sweep's is too early for it */
	uint64_t us = counter_interval_us(counter, rate, longest_us(at, rate));

	learn_age(port, counter);
	if (verdict == COUNTER_STUCK)
		agent_fall_out(at, OFFLOAD_COUNTER);
	else if (verdict == COUNTER_BEHIND ||
		 (!port->fresh && !port->caches && rate >= AGENT_TELLING))
		agent_count_soon(at, RTE_MIN(us, (uint64_t)AGENT_DOUBT_US));
	else
		at->direction->nic_due_us = at->agent->now_us + us;
}

/* It is told once, until one can be read again: what goes wrong with counters from then on nobody would see. */
static void count_failed(const struct agent_at *at, uint8_t reason)
{
	struct agent_port *port = &at->agent->port[at->port];
	const struct refusal *refusal = refusal_of(installer_refusals(port->installer), reason);

	/* a rule that has no counter, or is gone, is nothing that the NIC refused */
	if (refusal == NULL || port->unread || !agent_is_new(at->agent, port->unread_told_us))
		return;
	port->unread = true;
	port->unread_told_us = at->agent->now_us;
	agent_tell(at->agent, at->port, CHANGE_COUNTER_REFUSED, reason);
}

static void counted(const struct agent_at *at, const struct installer_answer *answer)
{
	struct slot_direction *direction = at->direction;
	uint64_t now = agent_marked_packets(at) - direction->nic_base;
	uint64_t passed_us = at->agent->now_us - direction->rate.us + 1;
	uint64_t rate;

	direction->count_awaited = false;
	if (answer->result < 0)
		count_failed(at, answer->reason);
	else
		at->agent->port[at->port].unread = false;
	if (agent_is_full(direction)) {
		if (direction->state >= OFFLOAD_LEAVING)
			agent_full_counted(at, answer);
		return;
	}
	if (direction->state < OFFLOAD_SUSPECT || at->record == NULL)
		return;
	direction->nic_due_us = UINT64_MAX;
	if (answer->result == -EOPNOTSUPP)
		return; /* the port cannot, whatever it said */
	rate = (flow_packets(at->record, at->from) - direction->rate.packets) * AGENT_SECOND_US /
	       passed_us;
	if (answer->result < 0) {
		direction->nic_due_us = at->agent->now_us + AGENT_SECOND_US;
		return;
	}
	/* packets that the NIC dropped when the host was late are in its counter, too */
	watch_counter(at, answer->packets, now + AGENT_NIC_AHEAD, rate);
}

/* What answers are about is on its way: of many flows in the NIC each line would be waited for by itself. */
static void fetch_answered(
	struct agent *agent, unsigned port, const struct installer_answer *answers, unsigned n)
{
	const struct agent_wire *wire = &agent->wire[agent_domain_of(agent, port)];

	for (unsigned i = 0; i < n; i++)
		agent_fetch_direction(wire, answers[i].place - wire->slots.first, answers[i].from);
	for (unsigned i = 0; i < n; i++)
		agent_fetch_record(
			agent, slots_slot(&wire->slots, answers[i].place - wire->slots.first));
}

void agent_answers(struct agent *agent, unsigned port)
{
	struct installer_answer answers[32];
	unsigned n = installer_answers(
		agent->port[port].installer, agent->config.worker, answers, RTE_DIM(answers));

	fetch_answered(agent, port, answers, n);
	for (unsigned i = 0; i < n; i++) {
		const unsigned domain = agent_domain_of(agent, port);
		const uint32_t slot = answers[i].place - agent->wire[domain].slots.first;
		const struct agent_at at = agent_at_slot(agent, domain, slot, answers[i].from);

		switch ((enum installer_op)answers[i].op) {
		case INSTALLER_INSERT:
			inserted(&at, &answers[i]);
			break;
		case INSTALLER_REMOVE:
			removed(&at, &answers[i]);
			break;
		case INSTALLER_COUNT:
			counted(&at, &answers[i]);
			break;
		case INSTALLER_N_OPS:
			break;
		}
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

void agent_turn(struct agent *agent, uint64_t now_us)
{
	uint64_t passed_us = now_us - agent->now_us;

	agent->now_us = now_us;
	if (agent->bursts > 0)
		agent->last_bursts = agent->bursts;
	agent->bursts = 0;
	for (unsigned port = 0; port < agent->config.topology.n_ports; port++) {
		if (agent->port[port].installer == NULL ||
			agent->wire[agent_domain_of(agent, port)].slots.n == 0)
			continue;
		agent_answers(agent, port);
		agent_pump(agent, port);
		tell_health(agent, port);
		if (agent->config.n_workers > 1)
			agent_share(agent, port);
	}
	agent_sweep(agent, passed_us);
}
