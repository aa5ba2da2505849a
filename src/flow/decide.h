/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What a shard's policy decides of its flows, and what it counts by rules: what the shard's other halves call. Not for
 * users of the shard, who have flow/shard.h.
 *
 * Where rules count, each record has a row beside it. It says which rule each direction has, and how many of its
 * packets that rule knows of. The rest is told when the flow is decided again, is reported, or ends.
 */

#include "flow/shard.h"
#include "flow/sides.h"

/* What rules have of one direction of a flow. */
struct flow_row_end {
	uint64_t bytes; /* of the record's, and its packets, those that have been told to rules */
	uint64_t packets;
	uint32_t rule;
	uint32_t mark; /* where the row's `marked` has a bit */
};

struct flow_row {
	struct flow_row_end end[2];
	uint8_t marked;
	/* of the conversation (struct flow_conversation); 0 where the policy does not care */
	uint8_t initiator : 1, midway : 1, accepted : 1, follows : 1, kept : 1, asked : 2;
	uint16_t counted;
	uint32_t age_s; /* as in struct flow_decision */
};

static_assert(sizeof(struct flow_row) == 56, "one for each flow");

/* What is done with the first packet of a flow. */
struct flow_first {
	bool by_packet; /* the decision is the packet's own */
	struct flow_packet_decision packet;
};

/* Takes the memory that the policy of the configuration needs. 0 or -ENOMEM. */
int flow_decide_init(struct flow_shard *shard);
/* Mirrors it, as far as it came. */
void flow_decide_fini(struct flow_shard *shard);
size_t flow_decide_memory(const struct flow_shard *shard);

/* Decides a new flow, whose record has its key and is zeroed else, and its first packet. */
void flow_decide_first(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	struct flow_first *first);
/*
 * A new conversation begins with this packet on the record of another, which was reported and has its verdicts still. It
 * is decided anew where its beginning counts. False: it has the same rules; then flow_decide_reopened() follows. `passed`:
 * the packet went on when it came, so that only those after it are decided.
 */
bool flow_decide_anew(struct flow_shard *shard, uint32_t position, const struct packet_info *info,
	bool passed, struct flow_first *first);
/* A new conversation has begun on the record of another, by the same rules. */
void flow_decide_reopened(struct flow_shard *shard, uint32_t position);
/* Does the policy care who began the flow's conversation? */
static inline bool flow_decide_keeps(const struct flow_shard *shard, uint32_t position)
{
	return shard->rows != NULL && shard->rows[position].kept;
}
/* Would a packet of the flow that is let pass by itself accept its conversation? */
bool flow_decide_accepts(
	const struct flow_shard *shard, uint32_t position, const struct packet_info *info);
/*
 * It did, by this decision: the flow is decided by that, and takes over what limits have counted. True: its verdicts are
 * others than before.
 */
bool flow_decide_accepted(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet);
/* It did not: limits that have counted it for the key's end `from` do so no more. 0: none has. */
void flow_decide_leave(const struct flow_shard *shard, const struct flow_key *key, unsigned from,
	uint16_t counted);
/* The flow, or the conversation on its record, has ended: limits count it no more. */
void flow_decide_ended(struct flow_shard *shard, uint32_t position);
/*
 * All flows end now. Limits go on counting them: other shards may still learn flows of the same moment, which are not to pass
 * because this one has come to its end before them.
 */
void flow_decide_last(struct flow_shard *shard);
/*
 * Is the conversation of a live flow one that is let pass, and are packets of the end `from` in it? Then an ICMP error
 * about them is related to it. `answers` is as in struct flow_packet_ct.
 */
bool flow_decide_related(
	const struct flow_shard *shard, uint32_t position, unsigned from, uint32_t *answers);
/* The record counts a packet that was decided by itself: it is its own rule's. */
void flow_decide_carried(struct flow_shard *shard, uint32_t position,
	const struct packet_info *info, const struct flow_packet_decision *packet);
/* Counts packets that were dropped, and tells the rule of them unless a block did it. */
void flow_decide_dropped(struct flow_shard *shard, struct flow_dropped *dropped, uint32_t rule,
	uint64_t packets, uint64_t bytes);
/* Before the first of them: the record has a place for what was dropped. */
void flow_decide_begin_dropped(struct flow_shard *shard, uint32_t position);
/* A packet is in the record's counters no more, but among those that a rule dropped. Rules were told of it (fold). */
void flow_decide_uncounted(
	struct flow_shard *shard, uint32_t position, const struct packet_info *info);
/* Counts `packets` that are in a report already. */
void flow_decide_reported(
	struct flow_shard *shard, uint32_t rule, uint64_t packets, uint64_t bytes);
/* Tells rules what the record has more than they know. */
void flow_decide_fold(struct flow_shard *shard, uint32_t position);
/* The record was reported, and counts from 0 on. */
void flow_decide_restart(struct flow_shard *shard, uint32_t position);

/* Nothing of the flow was let pass so far. */
static inline bool flow_is_uncarried(const struct flow_record *record)
{
	return flow_phase((enum flow_state)record->state) == FLOW_PHASE_NEW &&
	       flow_packets(record, 0) == 0 && flow_packets(record, 1) == 0;
}

/* The rule that a direction of a live flow has. */
static inline uint32_t flow_decide_rule(
	const struct flow_shard *shard, uint32_t position, unsigned from)
{
	return shard->rows == NULL ? FLOW_RULE_NONE : shard->rows[position].end[from].rule;
}
