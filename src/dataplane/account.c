/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/account.h"

#include "dataplane/policy.h"

static enum flow_account account_told(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet)
{
	return likely(packet == NULL) ? flow_shard_account(shard, position, info)
				      : flow_shard_account_packet(shard, position, info, packet);
}

/* The same, telling followers when the flow has come into another phase. */
static enum flow_account account_followed(struct lcore *lcore, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet)
{
	static const enum path_event_kind events[FLOW_N_PHASES] = {
		[FLOW_PHASE_NEW] = PATH_EVENT_FLOW_NEW,
		[FLOW_PHASE_OPEN] = PATH_EVENT_FLOW_OPEN,
		[FLOW_PHASE_CLOSING] = PATH_EVENT_FLOW_CLOSING,
	};
	struct flow_shard *shard = lcore->worker.shard;
	const struct flow_record *record = flow_table_record(&shard->table, position);
	enum flow_phase before = flow_phase((enum flow_state)record->state);
	uint64_t learned = shard->counters.learned;
	enum flow_account account = account_told(shard, position, info, packet);
	enum flow_phase after = flow_phase((enum flow_state)record->state);
	bool anew = shard->counters.learned != learned;

	if (!anew && after == before)
		return account;
	/* a flow that began anew on its key ended before: that is to be heard first */
	flow_shard_flush(shard);
	if (anew && after != FLOW_PHASE_NEW)
		lcore_flow_event(lcore, PATH_EVENT_FLOW_NEW, record);
	lcore_flow_event(lcore, events[after], record);
	return account;
}

void account_dropped(struct lcore *lcore, struct burst *burst, unsigned i, uint32_t position,
	struct outcome *outcome)
{
	const struct packet_info *info = burst_info(burst, i);
	struct worker *worker = &lcore->worker;

	const uint32_t cause = flow_shard_dropped(worker->shard, position).cause;

	burst_drop(burst, i, policy_drop_reason(cause), outcome);
	policy_count_cause(worker->policy, cause, 1, info->bytes);
	mark_verify_dropped(worker->agent, burst->from.port, burst->packet[i], position, info);
}

void account_slow(struct lcore *lcore, struct burst *burst, unsigned i, struct flow_record *record,
	struct outcome *outcome)
{
	struct worker *worker = &lcore->worker;
	const struct packet_info *info = burst_info(burst, i);
	const uint32_t position = flow_table_position_of(&worker->shard->table, record);
	const uint64_t verdicts = flow_verdicts(record);
	const bool by_packet = flow_is_by_packet(record, info),
		   was_dropped = flow_is_blocked(record);
	struct flow_packet_decision packet = {.verdict = flow_verdict(record, info->from)};

	if (unlikely(by_packet))
		policy_classify(worker->policy, burst->packet[i], info, burst->from.port, &packet);

	const struct flow_packet_decision *own = by_packet ? &packet : NULL;
	const enum flow_account account =
		unlikely(worker->follow) ? account_followed(lcore, position, info, own)
					 : account_told(worker->shard, position, info, own);

	/* the packet has shown where the ends are, and the flow was decided anew by that */
	if (unlikely(flow_verdicts(record) != verdicts))
		lcore_verdict_changed(lcore, position, was_dropped);
	switch (account) {
	case FLOW_ACCOUNT_TCP_ODD:
		burst_drop(burst, i, DROP_TCP_WINDOW, outcome);
		return;
	case FLOW_ACCOUNT_DROPPED:
		account_dropped(lcore, burst, i, position, outcome);
		return;
	case FLOW_ACCOUNT_ONE_SIDED:
		worker->counters[burst->from.domain].one_sided++;
		break;
	case FLOW_ACCOUNT_GO:
		break;
	}
	burst_act(burst, i, packet.verdict, outcome);
	/* what is dropped is in no record: nor is it among those that came without a mark */
	if (worker->agent != NULL &&
		(mark_is_there(burst->packet[i]) || offload_is_watched(record, info->from)))
		mark_verify(worker->agent, burst->from.port, burst->packet[i], position, info);
}

void account_rest(struct lcore *lcore, struct burst *burst, unsigned i, struct flow_record *record,
	struct outcome *outcome)
{
	outcome->n++;
	outcome->bytes += burst_info(burst, i)->bytes;
	if (record == NULL)
		outcome->unknown |= UINT64_C(1) << i;
	else
		account_slow(lcore, burst, i, record, outcome);
}

void account_sample(struct lcore *lcore, struct burst *burst)
{
	struct worker *worker = &lcore->worker;
	const unsigned i = worker_draw(worker, burst->n);
	const struct flow_record *record;

	worker->sampled++;
	/* a flow that a mark names is in the NIC */
	if (burst->marked >> i & 1 || !agent_samples(worker->agent))
		return;
	if (burst->info_of[i] >= burst->up.n)
		return;
	record = find_confirm(&worker->shard->table, &burst->up, burst->info_of[i]);
	if (record == NULL)
		return;
	const struct packet_info *info = burst_info(burst, i);

	/* its port is not where the flow's packets come */
	if (!(record->by_port && flow_sides_cross(record, info)))
		mark_sample(worker->agent, burst->from.port, burst->packet[i],
			flow_table_position_of(&worker->shard->table, record), info);
}

void account_others(struct lcore *lcore, struct burst *burst, struct outcome *outcome)
{
	struct policy *policy = lcore->worker.policy;

	if (policy == NULL || policy->others.classify == NULL)
		return;
	for (uint64_t left = burst->others; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);
		const struct rte_mbuf *packet = burst->packet[i];
		struct flow_packet_decision decision;

		policy_classify(policy, packet, NULL, burst->from.port, &decision);
		policy_count_rule(policy, decision.rule, 0, 1, packet->pkt_len);
		if (decision.verdict == FLOW_VERDICT_DROP)
			burst_drop(burst, i, DROP_RULE, outcome);
		else
			burst_act(burst, i, decision.verdict, outcome);
	}
}
