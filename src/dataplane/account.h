/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Accounts packets to the records that were found for them. Nearly all are only counted: account_found() does that, and is
 * compiled once per SIMD level. Everything else is left to account_rest(): packets that move the state of their flow,
 * that no record was found for, or that are to be dropped.
 */

#include "dataplane/burst.h"
#include "dataplane/lcore.h"
#include "dataplane/mark_verify.h"
#include "flow/account.h"
#include "flow/find.h"

/* The packet at index `i`: all that flow_shard_account() does, what followers hear of, and what the NIC showed. */
void account_slow(struct lcore *lcore, struct burst *burst, unsigned i, struct flow_record *record,
	struct outcome *outcome);

/* The same, for a packet that is not among those that were only counted; `record` may be NULL: it is unknown. */
void account_rest(struct lcore *lcore, struct burst *burst, unsigned i, struct flow_record *record,
	struct outcome *outcome);

/*
 * Where the shard counts octets: what each packet of these bits has beside its IP packet is told to the record of its
 * flow. They were counted there in passing, or learned.
 */
void account_octets(struct lcore *lcore, struct burst *burst, uint64_t packets);
/* The same for all of a burst that were counted in passing, before any are learned. */
void account_octets_counted(
	struct lcore *lcore, struct burst *burst, const struct outcome *outcome);

/*
 * Accounts the packets of flows that verdicts drop, after the others of the burst. account_rest() has prefetched the row
 * that counts what was dropped; nothing earlier knows that a flow has one.
 */
void account_waiting(struct lcore *lcore, struct burst *burst, struct outcome *outcome);

/* Packets without a flow: policy may drop each, or do something with it. */
void account_others(struct lcore *lcore, struct burst *burst, struct outcome *outcome);

/* The packet at index `i` is dropped by this verdict, which has that cause. */
static inline void account_drop(
	struct burst *burst, unsigned i, uint16_t verdict, uint32_t cause, struct outcome *outcome)
{
	enum drop_reason reason = cause == FLOW_CAUSE_NONE ? DROP_RULE : DROP_BLOCKED;

	if (flow_verdict_rejects(verdict))
		reason = DROP_REJECTED;
	burst->verdict[i] = verdict;
	burst_drop(burst, i, reason, outcome);
}

/* A packet that its flow's verdict drops, or its own, is counted, beside the record. */
void account_dropped(struct lcore *lcore, struct burst *burst, unsigned i, uint32_t position,
	uint16_t verdict, struct outcome *outcome);

/* One packet of the burst, another index each time, for the rate of its flow. With an agent. */
void account_sample(struct lcore *lcore, struct burst *burst);

/*
 * The packet at index `i`, whose place among those that were looked up is `up`. `far` as fetch_record() has it; `marks`:
 * its flow may have a rule in the NIC.
 */
static __rte_always_inline void account_found(struct lcore *lcore, struct burst *burst, unsigned i,
	unsigned up, bool far, bool marks, struct outcome *outcome)
{
	struct flow_shard *shard = lcore->worker.shard;
	struct packet_info *info = &burst->info[up];
	struct flow_record *record = find_confirm(&shard->table, &burst->up, up);

	if (likely(record != NULL)) {
		bool counted = true;

		fetch_rest(record, far);
		if (unlikely(!account_plain(record, info, shard->now_us))) {
			counted = account_acting(record, info, shard->now_us);
			if (counted)
				burst_act(burst, i, flow_verdict(record, info->from), outcome);
		}
		if (likely(counted)) {
			if (marks && unlikely(mark_is_there(burst->packet[i]) ||
					      offload_is_watched(record, info->from)))
				mark_verify(lcore->worker.agent, burst->from.port, burst->packet[i],
					flow_table_position_of(&shard->table, record), info);
			return;
		}
	}
	info->hash = burst->up.hash[up];
	account_rest(lcore, burst, i, record, outcome);
}

/* More is to be asked about fragments, ICMP errors and TCP without a whole header than account_found() asks. */
static inline bool account_is_rare(const struct packet_info *info)
{
	return info->flags & (PACKET_FRAGMENT | PACKET_ICMP_ERROR) ||
	       (info->key.proto == PROTO_TCP && !(info->flags & PACKET_TCP));
}

/*
 * The packets of flows of a burst that was parsed before, which has been looked up; `flows` has a bit for each. `slow`:
 * more is to be done for each than to count it.
 */
static __rte_always_inline void account_resumed(struct lcore *lcore, struct burst *burst,
	uint64_t flows, bool slow, bool marks, struct outcome *outcome)
{
	const struct flow_table *table = &lcore->worker.shard->table;
	unsigned up = 0;

	for (; flows != 0; flows &= flows - 1, up++) {
		const unsigned i = (unsigned)__builtin_ctzll(flows);

		if (unlikely(slow || account_is_rare(&burst->info[up])))
			account_rest(lcore, burst, i, find_confirm(table, &burst->up, up), outcome);
		else
			account_found(lcore, burst, i, up, false, marks, outcome);
	}
	flow_shard_counted(lcore->worker.shard, up - outcome->n, burst->bytes - outcome->bytes);
}
