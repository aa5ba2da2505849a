/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/learn.h"

#include "dataplane/account.h"
#include "dataplane/handoff.h"
#include "policy/policy.h"
#include "port/rss.h"

/* Unknown packets of a burst, by whether they are the first of their flow. */
struct missing {
	unsigned n_first, n_further;
	const struct packet_info *first[LCORE_BURST];
	uint8_t place[LCORE_BURST];	/* of these, in the burst */
	uint8_t further[LCORE_BURST];	/* places in the burst */
	uint8_t slots[2 * LCORE_BURST]; /* by hash: place in `first` + 1, or 0 */
};

/* A bit for each unknown packet of a burst, which are those that may begin flows. */
struct unknown {
	struct burst *burst;
	uint64_t packets;
};

/* The packet that an info is of. */
static const struct rte_mbuf *packet_of(const void *from, const struct packet_info *info)
{
	const struct unknown *unknown = from;
	uint64_t left = unknown->packets;

	while (burst_info(unknown->burst, (unsigned)__builtin_ctzll(left)) != info)
		left &= left - 1;
	return unknown->burst->packet[__builtin_ctzll(left)];
}

/* Whoever decides flows of these packets is to find them. */
static void show_packets(struct lcore *lcore, const struct unknown *unknown)
{
	struct policy *policy = lcore->worker.policy;

	if (policy == NULL)
		return;
	policy->packet_of = packet_of;
	policy->from = unknown;
	policy->port = unknown->burst->from.port;
}

/* Whether the flow is among the first packets already; else it is now. */
static bool is_further(struct missing *missing, const struct packet_info *info, unsigned i)
{
	const unsigned mask = sizeof(missing->slots) - 1;
	unsigned slot = (unsigned)(info->hash >> 32) & mask;

	for (; missing->slots[slot] != 0; slot = (slot + 1) & mask)
		if (flow_key_equal(&missing->first[missing->slots[slot] - 1]->key, &info->key))
			return true;
	missing->place[missing->n_first] = (uint8_t)i;
	missing->first[missing->n_first++] = info;
	missing->slots[slot] = (uint8_t)missing->n_first;
	return false;
}

/* A plain packet was brought to the wrong worker. After some of them the shard of this kind is computed, for a while. */
static void lose_trust(struct lcore *lcore, unsigned port, const struct flow_key *key)
{
	const enum rss_kind kind = rss_kind(key);
	bool lost = false;

	for (unsigned i = 0; i < lcore->n_rx; i++) {
		struct lcore_rx *rx = &lcore->rx[i];

		if (rx->from.port != port ||
			!trust_misplaced(&lcore->trust[i], kind, lcore->now_us))
			continue;
		rx->from.trusted &= (uint8_t)~(1u << kind);
		lost = true;
	}
	if (!lost)
		return;
	lcore->fallen_back[port]++;
	lcore_event(lcore, (struct path_event){
				   .key = *key,
				   .kind = PATH_EVENT_SHARDING_FALLBACK,
				   .worker = (uint8_t)lcore->worker.number,
				   .port = (uint8_t)port,
			   });
}

/* Hands a packet that would begin a flow off to the worker that it belongs to, unless that is this one. */
static bool hand_off(struct lcore *lcore, struct burst *burst, unsigned i)
{
	const struct packet_info *info = burst_info(burst, i);
	struct rte_mbuf *packet = burst->packet[i];
	struct packet_meta *meta = packet_meta(packet);
	const unsigned shard = steer_shard(&lcore->worker.steer, info);

	if (shard == lcore->worker.number)
		return false;
	/* with a mark it is a rule's doing, not RSS's; and what is not plain the NIC may read otherwise than we do */
	if (!mark_is_there(packet) && extract_is_plain(packet, info))
		lose_trust(lcore, burst->from.port, &info->key);
	if (!burst->resumed) {
		meta->info = *info;
		meta->time_us = lcore->now_us;
		meta->wire = burst->from.domain;
		meta->port = burst->from.port;
		meta->kind = PACKET_KIND_FLOW;
		meta->waited = 0;
	}
	meta->unchecked = 0;
	handoff_to_lcore(lcore, lcore->shard_lcore[shard], &packet, 1);
	return true;
}

static void learn_one(struct lcore *lcore, struct burst *burst, unsigned i, struct outcome *outcome)
{
	struct flow_shard *shard = lcore->worker.shard;
	const struct packet_info *info = burst_info(burst, i);
	struct flow_learned learned;
	const uint32_t position = flow_shard_learn_packet(shard, info, &learned);
	const struct flow_record *record = flow_table_record(&shard->table, position);
	const bool blocked = flow_is_blocked(record);

	if (lcore->worker.follow)
		lcore_flow_event(lcore, PATH_EVENT_FLOW_NEW, record);
	if (lcore->worker.follow && blocked)
		lcore_flow_event(lcore, PATH_EVENT_FLOW_BLOCKED, record);
	if (flow_verdict_drops(learned.verdict))
		account_dropped(lcore, burst, i, position, learned.verdict, outcome);
	else
		burst_act(burst, i, learned.verdict, outcome);
}

static void learn_first(struct lcore *lcore, struct burst *burst, const struct missing *missing,
	struct outcome *outcome)
{
	struct worker *worker = &lcore->worker;
	struct flow_learned learned[LCORE_BURST];

	if (worker->follow) {
		for (unsigned i = 0; i < missing->n_first; i++)
			learn_one(lcore, burst, missing->place[i], outcome);
		return;
	}
	flow_shard_learn_burst(worker->shard, missing->first, missing->n_first, learned);
	for (unsigned i = 0; i < missing->n_first && worker->shard->decides; i++) {
		const struct packet_info *info = missing->first[i];

		if (!flow_verdict_drops(learned[i].verdict)) {
			burst_act(burst, missing->place[i], learned[i].verdict, outcome);
			continue;
		}
		account_drop(
			burst, missing->place[i], learned[i].verdict, learned[i].cause, outcome);
		if (worker->policy != NULL)
			policy_count_cause(worker->policy, learned[i].cause, 1, info->bytes);
	}
}

static void octets_learned(struct lcore *lcore, struct burst *burst, const struct missing *missing,
	const struct outcome *outcome)
{
	uint64_t learned = 0;

	for (unsigned i = 0; i < missing->n_first; i++)
		learned |= UINT64_C(1) << missing->place[i];
	account_octets(lcore, burst, learned & ~outcome->dropped);
}

/* To the NIC, where all flows are; and a mark of a flow that was not known is nobody's. */
static void offer_learned(struct lcore *lcore, const struct burst *burst,
	const struct missing *missing, const struct outcome *outcome)
{
	struct agent *agent = lcore->worker.agent;

	/* what ended to make room has to be heard of before */
	flow_shard_flush(lcore->worker.shard);
	for (unsigned i = 0; i < missing->n_first; i++) {
		const unsigned place = missing->place[i];
		const struct packet_info *info = missing->first[i];

		if (outcome->dropped >> place & 1)
			continue;
		if (mark_is_there(burst->packet[place]))
			mark_verify(agent, burst->from.port, burst->packet[place], FLOW_NONE, info);
		mark_learned(agent, burst->from.port, burst->packet[place], info);
	}
}

/* In a table smaller than a burst the flow is gone again. */
static void learn_again(
	struct lcore *lcore, struct burst *burst, unsigned i, struct outcome *outcome)
{
	flow_shard_excess(lcore->worker.shard, 0);
	learn_one(lcore, burst, i, outcome);
	if (lcore->worker.shard->excess != NULL)
		account_octets(lcore, burst, UINT64_C(1) << i & ~outcome->dropped);
}

/* A further packet of a flow that was learned in this burst. */
static void account_further(
	struct lcore *lcore, struct burst *burst, unsigned i, struct outcome *outcome)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	const struct packet_info *info = burst_info(burst, i);
	const uint32_t position = flow_table_find(table, &info->key, info->hash);

	if (position != FLOW_NONE)
		account_slow(lcore, burst, i, flow_table_record(table, position), outcome);
	else
		learn_again(lcore, burst, i, outcome);
}

/*
 * Learning may evict a flow that was found in this burst, which is why those are accounted before. A flow
 * may have several packets among the missing: the first of each is learned, all in one go, and the others
 * are accounted then.
 */
void learn_burst(struct lcore *lcore, struct burst *burst, struct outcome *outcome)
{
	struct missing missing;

	missing.n_first = missing.n_further = 0;
	memset(missing.slots, 0, sizeof(missing.slots));
	for (uint64_t left = outcome->unknown; left != 0; left &= left - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(left);

		if (burst->unchecked >> i & 1 && hand_off(lcore, burst, i))
			outcome->gone |= UINT64_C(1) << i;
		else if (is_further(&missing, burst_info(burst, i), i))
			missing.further[missing.n_further++] = (uint8_t)i;
	}
	const struct unknown unknown = {.burst = burst, .packets = outcome->unknown};

	show_packets(lcore, &unknown);
	flow_shard_excess(lcore->worker.shard, 0);
	if (missing.n_first != 0)
		learn_first(lcore, burst, &missing, outcome);
	if (unlikely(lcore->worker.shard->excess != NULL))
		octets_learned(lcore, burst, &missing, outcome);
	if (lcore->worker.agent != NULL)
		offer_learned(lcore, burst, &missing, outcome);
	for (unsigned i = 0; i < missing.n_further; i++) {
		/* the one before was shown alone */
		show_packets(lcore, &unknown);
		account_further(lcore, burst, missing.further[i], outcome);
	}
	if (lcore->worker.policy != NULL)
		lcore->worker.policy->from = NULL;
}
