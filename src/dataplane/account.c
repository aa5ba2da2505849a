/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/account.h"

#include "dataplane/policy.h"

/* The same as flow_shard_account(), telling followers when the flow has come into another phase. */
static enum flow_account account_followed(
	struct station *station, uint32_t position, const struct packet_info *info)
{
	static const enum path_event_kind events[FLOW_N_PHASES] = {
		[FLOW_PHASE_NEW] = PATH_EVENT_FLOW_NEW,
		[FLOW_PHASE_OPEN] = PATH_EVENT_FLOW_OPEN,
		[FLOW_PHASE_CLOSING] = PATH_EVENT_FLOW_CLOSING,
	};
	struct flow_shard *shard = station->worker.shard;
	const struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_phase before = flow_phase((enum flow_state)record->state);
	uint64_t learned = shard->counters.learned;
	enum flow_account account = flow_shard_account(shard, position, info);
	enum flow_phase after = flow_phase((enum flow_state)record->state);
	bool anew = shard->counters.learned != learned;

	if (!anew && after == before)
		return account;
	/* a flow that began anew on its key ended before: that is to be heard first */
	flow_shard_flush(shard);
	if (anew && after != FLOW_PHASE_NEW)
		station_flow_event(station, PATH_EVENT_FLOW_NEW, record);
	station_flow_event(station, events[after], record);
	return account;
}

void account_dropped(struct station *station, struct burst *burst, unsigned i, uint32_t position,
	struct outcome *outcome)
{
	const struct packet_info *info = burst_info(burst, i);
	struct worker *worker = &station->worker;

	burst_drop(burst, i, DROP_BLOCKED, outcome);
	policy_count(worker->policy, worker->shard, position, 1, info->bytes);
	mark_verify_dropped(worker->agent, burst->from.port, burst->packet[i], position, info);
}

void account_slow(struct station *station, struct burst *burst, unsigned i,
	struct flow_record *record, struct outcome *outcome)
{
	struct worker *worker = &station->worker;
	const struct packet_info *info = burst_info(burst, i);
	const uint32_t position = flow_table_position_of(&worker->shard->table, record);
	const enum flow_account account =
		unlikely(worker->follow) ? account_followed(station, position, info)
					 : flow_shard_account(worker->shard, position, info);

	switch (account) {
	case FLOW_ACCOUNT_TCP_ODD:
		burst_drop(burst, i, DROP_TCP_WINDOW, outcome);
		return;
	case FLOW_ACCOUNT_DROPPED:
		account_dropped(station, burst, i, position, outcome);
		return;
	case FLOW_ACCOUNT_ONE_SIDED:
		worker->counters[burst->from.domain].one_sided++;
		break;
	case FLOW_ACCOUNT_GO:
		break;
	}
	burst_act(burst, i, flow_verdict(record, info->from), outcome);
	/* what is dropped is in no record: nor is it among those that came without a mark */
	if (worker->agent != NULL &&
		(mark_is_there(burst->packet[i]) || offload_is_watched(record, info->from)))
		mark_verify(worker->agent, burst->from.port, burst->packet[i], position, info);
}

void account_rest(struct station *station, struct burst *burst, unsigned i,
	struct flow_record *record, struct outcome *outcome)
{
	outcome->n++;
	outcome->bytes += burst_info(burst, i)->bytes;
	if (record == NULL)
		outcome->unknown |= UINT64_C(1) << i;
	else
		account_slow(station, burst, i, record, outcome);
}

void account_sample(struct station *station, struct burst *burst)
{
	struct worker *worker = &station->worker;
	const unsigned i = worker_draw(worker, burst->n);
	const struct flow_record *record;

	worker->sampled++;
	/* a flow that a mark names is in the NIC */
	if (burst->marked >> i & 1 || !agent_samples(worker->agent))
		return;
	if (burst->info_of[i] >= burst->up.n)
		return;
	record = find_confirm(&worker->shard->table, &burst->up, burst->info_of[i]);
	if (record != NULL)
		mark_sample(worker->agent, burst->from.port, burst->packet[i],
			flow_table_position_of(&worker->shard->table, record),
			burst_info(burst, i));
}
