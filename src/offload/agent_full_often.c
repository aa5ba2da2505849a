/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of flows that the NIC sends on alone which are read more often than the sweep comes by. */
#include "offload/agent_full.h"

/* Between two looks at the list. */
#define STEP_US 500
/* What is read less often than that is the sweep's, but for a few. */
#define OFTEN_US 100000
#define FEW 64
/* So many are looked at together: what they need is on its way for all of them at once. */
#define TOGETHER 16

void agent_full_read_often(const struct agent_at *at, uint64_t us)
{
	struct agent_wire *wire = &at->agent->wire[at->domain];
	struct agent_often *often = wire->often;
	struct agent_full *full = &wire->full[at->slot];

	if (full->often == 0) {
		if (often->n == AGENT_OFTEN || (us > OFTEN_US && often->n >= FEW))
			return;
		if (often->n == 0)
			often->due_us = at->direction->nic_due_us;
		often->due[often->n++] =
			(struct agent_due){.us = at->direction->nic_due_us, .slot = at->slot};
		full->often = (uint16_t)often->n;
	}
	struct agent_due *due = &often->due[full->often - 1];

	due->us = RTE_MIN(due->us, at->direction->nic_due_us);
	often->due_us = RTE_MIN(often->due_us, at->direction->nic_due_us);
}

/*
 * When a slot's counters are to be looked at next, having asked for those that are due; UINT64_MAX: never. An answer that
 * is awaited says so itself.
 */
static uint64_t poll_slot(struct agent *agent, unsigned number, uint32_t slot)
{
	uint64_t due_us = UINT64_MAX;

	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const struct agent_at at = agent_at_slot(agent, number, slot, from);

		if (!agent_is_full(at.direction) || at.direction->state < OFFLOAD_SUSPECT ||
			at.entry->position == FLOW_NONE)
			continue;
		agent_full_poll(&at);
		due_us = RTE_MIN(due_us, at.direction->count_awaited ? agent->now_us + OFTEN_US
								     : at.direction->nic_due_us);
	}
	return due_us;
}

/* One that is due: polled, and out of the list where the sweep comes by as often. False: another has its place. */
static bool look_at(struct agent *agent, unsigned number, uint32_t i)
{
	struct agent_wire *wire = &agent->wire[number];
	struct agent_often *often = wire->often;
	struct agent_due *due = &often->due[i];

	due->us = poll_slot(agent, number, due->slot);
	if (due->us <= agent->now_us + OFTEN_US || (due->us != UINT64_MAX && often->n <= FEW)) {
		/* a queue that is full is asked again by the next look */
		due->us = RTE_MAX(due->us, agent->now_us + STEP_US);
		return true;
	}
	wire->full[due->slot].often = 0;
	*due = often->due[--often->n];
	if (i < often->n)
		wire->full[due->slot].often = (uint16_t)(i + 1);
	return false;
}

/* The first of those from `begin` on that are due are looked at together; says where to go on. */
static uint32_t look_at_some(struct agent *agent, unsigned number, uint32_t begin)
{
	struct agent_wire *wire = &agent->wire[number];
	struct agent_often *often = wire->often;
	uint32_t which[TOGETHER], n = 0, at;

	for (at = begin; at < often->n && n < TOGETHER; at++) {
		if (often->due[at].us > agent->now_us) {
			often->due_us = RTE_MIN(often->due_us, often->due[at].us);
			continue;
		}
		for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++)
			agent_fetch_direction(wire, often->due[at].slot, from);
		which[n++] = at;
	}
	for (uint32_t i = 0; i < n; i++)
		agent_fetch_record(agent, slots_slot(&wire->slots, often->due[which[i]].slot));
	/* backwards: the last of all takes the place of one that leaves */
	while (n > 0) {
		uint32_t i = which[--n];

		if (look_at(agent, number, i))
			often->due_us = RTE_MIN(often->due_us, often->due[i].us);
		else
			at = RTE_MIN(at, i);
	}
	return at;
}

void agent_full_turn(struct agent *agent, unsigned number)
{
	struct agent_often *often = agent->wire[number].often;

	if (unlikely(agent->wire[number].n_ready != 0))
		agent_full_release(agent, number);
	if (often == NULL || often->n == 0 || agent->now_us < often->due_us)
		return;
	often->due_us = UINT64_MAX;
	for (uint32_t at = 0; at < often->n;)
		at = look_at_some(agent, number, at);
	often->due_us = RTE_MAX(often->due_us, agent->now_us + STEP_US);
}
