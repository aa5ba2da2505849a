/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is what a flow says of itself consistent? Reasons stand with the states that docs/offload.md has for them;
 * the newest change of each port is what brought the flow to where it is, and each change begins where the one
 * before it ended.
 */
#include "offload_soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The longest that a flow waits for its next try, and the longest step of the clock meanwhile. */
#define WAIT_US UINT64_C(61000000)

/* Bits of enum offload_state by which a reason may stand, by reason. */
static unsigned allowed[OFFLOAD_N_REASONS];

static unsigned states_of(const char *cell, const char *end)
{
	unsigned states = 0;

	for (unsigned state = 0; state < OFFLOAD_N_STATES; state++) {
		const char *name = offload_state_name((enum offload_state)state);
		const char *found = strstr(cell, name);

		if (found != NULL && found < end)
			states |= 1u << state;
	}
	return states;
}

int soak_read_reasons(void)
{
	FILE *file = fopen(OFFLOAD_MD, "r");
	bool inside = false;
	unsigned n = 0;
	char line[1024], start[64];

	if (file == NULL)
		return -1;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "## ", 3) == 0)
			inside = strcmp(line, "## Reasons\n") == 0;
		for (unsigned i = 0; inside && i < OFFLOAD_N_REASONS; i++) {
			int length = snprintf(
				start, sizeof(start), "| `%s` |", offload_reason_name((uint8_t)i));

			if (strncmp(line, start, (size_t)length) != 0)
				continue;
			const char *cell = line + length;

			allowed[i] = states_of(cell, cell + strcspn(cell, "|"));
			n++;
		}
	}
	fclose(file);
	return n == OFFLOAD_N_REASONS ? 0 : -1;
}

static bool may_stand(uint8_t reason, unsigned state)
{
	if (reason >= OFFLOAD_REFUSALS)
		return state == OFFLOAD_REFUSED;
	return reason < OFFLOAD_N_REASONS && allowed[reason] >> state & 1;
}

/* From the newest change of a direction back to the oldest that is told. */
static bool changes_lead_here(const struct plane_flow *answer, unsigned from)
{
	unsigned state = answer->offload.state[from];

	for (unsigned i = 0; i < answer->n_changes; i++) {
		if (answer->changes[i].from != from)
			continue;
		if (answer->changes[i].after != state)
			return false;
		state = answer->changes[i].before;
	}
	return true;
}

/* A slot of that key, other than the flow's own, which has a rule of that direction: all slots are looked at. */
static bool has_older_rule(
	const struct agent *agent, const struct flow_record *record, unsigned from)
{
	const struct agent_wire *wire = &agent->wire[flow_key_wire(&record->key)];

	for (uint32_t i = 0; i < wire->slots.n; i++) {
		const struct slot *slot = slots_slot(&wire->slots, i);

		if (slot->used && slot->position == FLOW_NONE &&
			flow_key_equal(&slot->key, &record->key) &&
			offload_state_holds((enum offload_state)slot->direction[from].state))
			return true;
	}
	return false;
}

/* The flow says that it waits behind an older rule where, and only where, there is one and it is not proven. */
static void check_older(struct offload_live *live, uint32_t number)
{
	const struct live_flow *flow = &live->flows[number];
	const unsigned worker = offload_live_worker(live, flow);
	const struct agent *agent = plane_shard_lcore(live->plane, worker)->worker.agent;
	const struct flow_record *record = offload_live_record(live, flow);
	struct flow_offload view;

	agent_view(agent, record, &view);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		const unsigned waits =
			1u << OFFLOAD_QUEUED | 1u << OFFLOAD_INSTALLING | 1u << OFFLOAD_ACCEPTED;
		bool asked = record->reason[from] == OFFLOAD_BUSY &&
			     waits >> offload_state(record, from) & 1;

		assert_int_equal(view.reason[from] == OFFLOAD_OLDER_RULE,
			asked && has_older_rule(agent, record, from));
	}
}

static void check_flow(struct offload_live *live, uint32_t number)
{
	const struct live_flow *flow = &live->flows[number];
	/* what its rules did after it ended stands among the changes of who came after it */
	bool is_first = flow->reported[0] + flow->reported[1] == 0;
	struct plane_flow answer;

	if (!offload_live_knows(live, flow))
		return;
	check_older(live, number);
	offload_live_ask(live, flow, &answer);
	for (unsigned from = 0; from < OFFLOAD_DIRECTIONS; from++) {
		unsigned state = answer.offload.state[from];

		if (may_stand(answer.offload.reason[from], state) &&
			(!offload_state_holds((enum offload_state)state) || answer.mark != 0) &&
			answer.retry_us[from] <= answer.now_us + WAIT_US &&
			(!is_first || changes_lead_here(&answer, from)))
			continue;
		offload_live_print(live);
		fail_msg("flow %u, from end %u, says '%s, %s', mark %u, to be tried in %ld us",
			number, from, offload_state_name((enum offload_state)state),
			offload_reason_name(answer.offload.reason[from]), answer.mark,
			(long)(answer.retry_us[from] - answer.now_us));
	}
}

void soak_check_explanations(struct offload_live *live)
{
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		check_flow(live, i);
}
