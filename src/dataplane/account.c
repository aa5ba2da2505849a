/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/account.h"

#include "policy/policy.h"

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
	uint16_t verdict, struct outcome *outcome)
{
	const struct packet_info *info = burst_info(burst, i);
	struct worker *worker = &lcore->worker;

	const uint32_t cause = flow_shard_dropped(worker->shard, position).cause;

	account_drop(burst, i, verdict, cause, outcome);
	policy_count_cause(worker->policy, cause, 1, info->bytes);
	mark_verify_dropped(worker->agent, burst->from.port, burst->packet[i], position, info);
}

static int32_t excess_of(struct lcore *lcore, struct burst *burst, unsigned i)
{
	const struct extract_options options = {
		.zone_vlan = lcore->zone_vlan, .wire_is_link = lcore->wire_is_link};

	burst->excess_done |= UINT64_C(1) << i;
	burst->excess[i] = extract_excess(&options, burst->packet[i], burst->from.domain,
		lcore->wire_is_link ? packet_missing(burst->packet[i]) : 0);
	return burst->excess[i];
}

/* Of a packet whose mark named its flow, so that it was not read: by what its headers say. Returns its end. */
static uint32_t find_marked(
	const struct lcore *lcore, const struct burst *burst, unsigned i, unsigned *from)
{
	const struct extract_options options = {
		.secret = lcore->secret, .zone_vlan = lcore->zone_vlan};
	struct packet_info info;

	if (extract(&options, burst->packet[i], burst->from.domain, &info) != EXTRACT_IP)
		return FLOW_NONE;
	*from = info.from;
	return flow_table_find(&lcore->worker.shard->table, &info.key, info.hash);
}

static uint32_t find_read(
	const struct lcore *lcore, const struct burst *burst, unsigned i, unsigned *from)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	const unsigned up = burst->info_of[i];
	const struct packet_info *info = &burst->info[up];
	const struct flow_record *record =
		up < burst->up.n ? find_confirm(table, &burst->up, up) : NULL;

	*from = info->from;
	if (likely(record != NULL))
		return flow_table_position_of(table, record);
	return flow_table_find(table, &info->key, flow_key_hash(lcore->secret, &info->key));
}

void account_octets(struct lcore *lcore, struct burst *burst, uint64_t packets)
{
	for (uint64_t left = packets & ~burst->excess_done; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);
		const int32_t excess = excess_of(lcore, burst, i);
		uint32_t position;
		unsigned from;

		if (likely(excess == 0))
			continue;
		position = burst->marked >> i & 1 ? find_marked(lcore, burst, i, &from)
						  : find_read(lcore, burst, i, &from);
		if (position != FLOW_NONE)
			flow_shard_add_excess(lcore->worker.shard, position, from, excess);
	}
}

void account_octets_counted(struct lcore *lcore, struct burst *burst, const struct outcome *outcome)
{
	if (burst->n != 0)
		account_octets(lcore, burst,
			UINT64_MAX >> (64 - burst->n) & ~(outcome->unknown | outcome->dropped |
								outcome->gone | burst->others));
}

/*
 * A packet that the shard accounts is told to it with what it has beside its IP packet. Those before it, which were
 * counted in passing, come first: it may begin a new conversation on the same key. With marks they are not in order.
 */
static __rte_noinline void octets_before(
	struct lcore *lcore, struct burst *burst, unsigned i, const struct outcome *outcome)
{
	const uint64_t before = (UINT64_C(1) << i) - 1;

	if (burst->marked == 0)
		account_octets(lcore, burst,
			before & ~(outcome->unknown | outcome->dropped | outcome->gone |
					 outcome->waiting | burst->others));
	flow_shard_excess(lcore->worker.shard, excess_of(lcore, burst, i));
}

/* There is but one packet whose info may be asked for. */
static const struct rte_mbuf *packet_itself(const void *packet, const struct packet_info *info)
{
	(void)info;
	return packet;
}

/* The packet may begin a new conversation on the key of its flow, which is decided then. */
static inline void show_packet(struct policy *policy, const struct burst *burst, unsigned i)
{
	if (policy == NULL)
		return;
	policy->packet_of = packet_itself;
	policy->from = burst->packet[i];
	policy->port = burst->from.port;
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

	show_packet(worker->policy, burst, i);
	if (unlikely(by_packet))
		policy_decide_packet(worker->policy, burst->packet[i], info, burst->from.port,
			flow_shard_ct(worker->shard, position, info), &packet);
	if (unlikely(worker->shard->excess != NULL))
		octets_before(lcore, burst, i, outcome);

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
		account_dropped(lcore, burst, i, position, packet.verdict, outcome);
		return;
	case FLOW_ACCOUNT_ONE_SIDED:
		worker->counters[burst->from.domain].one_sided++;
		break;
	case FLOW_ACCOUNT_GO:
		break;
	}
	burst_act(burst, i, packet.verdict, outcome);
	/* what is dropped is in no record: nor is it among those that came without a mark */
	if (worker->agent == NULL ||
		!(mark_is_there(burst->packet[i]) || offload_is_watched(record, info->from)))
		return;
	/* the packet may have begun another conversation: the mark names the one that ended, which is to be heard first */
	flow_shard_flush(worker->shard);
	mark_verify(worker->agent, burst->from.port, burst->packet[i], position, info);
}

/* Puts a packet off to account_waiting(). All packets of the flow in this burst are put off, so they keep their order. */
static void wait_for_row(struct lcore *lcore, struct burst *burst, unsigned i,
	const struct flow_record *record, struct outcome *outcome)
{
	const struct flow_shard *shard = lcore->worker.shard;
	const uint32_t position = flow_table_position_of(&shard->table, record);

	flow_shard_fetch_dropped(shard, position);
	burst->position[i] = position;
	outcome->waiting |= UINT64_C(1) << i;
}

void account_rest(struct lcore *lcore, struct burst *burst, unsigned i, struct flow_record *record,
	struct outcome *outcome)
{
	outcome->n++;
	outcome->bytes += burst_info(burst, i)->bytes;
	if (record == NULL)
		outcome->unknown |= UINT64_C(1) << i;
	else if (flow_is_shut(record))
		wait_for_row(lcore, burst, i, record, outcome);
	else
		account_slow(lcore, burst, i, record, outcome);
}

void account_waiting(struct lcore *lcore, struct burst *burst, struct outcome *outcome)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	uint64_t left = outcome->waiting;

	/* a packet no longer counts as waiting while account_slow() handles it */
	outcome->waiting = 0;
	for (; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		account_slow(
			lcore, burst, i, flow_table_record(table, burst->position[i]), outcome);
	}
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

		policy_decide_packet(policy, packet, NULL, burst->from.port,
			(struct flow_packet_ct){0}, &decision);
		policy_count_rule(policy, decision.rule, 0, 1, packet->pkt_len);
		if (flow_verdict_drops(decision.verdict))
			account_drop(burst, i, decision.verdict, FLOW_CAUSE_NONE, outcome);
		else
			burst_act(burst, i, decision.verdict, outcome);
	}
}
