/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/evict.h"

#include "flow/end.h"
#include "flow/filing.h"

/* How many of the oldest are compared for the idlest. */
#define CHOICE 16

/*
 * The idlest of the oldest; those held by a NIC last. The old end is ordered by when a record was to
 * be looked at, which its packets since then have put off: hence the comparison.
 */
static uint32_t idlest(const struct flow_shard *shard, const struct wheel *wheel)
{
	uint32_t choice[CHOICE];
	unsigned n = wheel_oldest(wheel, choice, CHOICE);
	const struct flow_record *best = NULL;

	for (unsigned i = 0; i < n; i++) {
		const struct flow_record *record = flow_table_record(&shard->table, choice[i]);
		bool held = flow_is_in_nic(record),
		     best_held = best != NULL && flow_is_in_nic(best);
		bool better = best == NULL || (!held && best_held) ||
			      (held == best_held && record->last_seen_us < best->last_seen_us);

		if (better)
			best = record;
	}
	return best == NULL ? FLOW_NONE : (uint32_t)(best - shard->table.records);
}

uint32_t flow_shard_victim(const struct flow_shard *shard)
{
	uint32_t victim;

	if (wheel_oldest(&shard->wheel[FLOW_PHASE_NEW], &victim, 1) == 1)
		return victim;
	if (wheel_oldest(&shard->wheel[FLOW_PHASE_CLOSING], &victim, 1) == 1)
		return victim;
	return idlest(shard, &shard->wheel[FLOW_PHASE_OPEN]);
}

static void evict_one(struct flow_shard *shard, struct flow_ended *ended)
{
	uint32_t victim = flow_shard_victim(shard);

	flow_age_unfile(shard, victim, flow_record_phase(flow_table_record(&shard->table, victim)));
	flow_end_later(shard, ended, victim, FLOW_END_EVICTED);
}

void flow_evict(struct flow_shard *shard, unsigned n)
{
	struct flow_ended ended;

	ended.n = 0;
	while (n-- > 0)
		evict_one(shard, &ended);
	flow_end_all_now(shard, &ended);
}
