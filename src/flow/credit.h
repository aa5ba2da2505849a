/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Packets that a NIC forwarded alone, credited to their flow when its counter was read. The record is then as if they
 * had passed here: but for flags of TCP, of which nothing is known, and the window, which is to be forgotten and is
 * learned anew. Of the shard's worker, like all that changes a record.
 */

#include "flow/shard.h"

struct flow_credit {
	uint64_t packets, bytes;
	uint8_t from;	   /* the key's end that sent them */
	uint64_t since_us; /* the earliest that one may have come, */
	uint64_t seen_us;  /* and the latest */
};

/* A flow that lives. */
void flow_shard_credit(
	struct flow_shard *shard, uint32_t position, const struct flow_credit *credit);

/* The same of packets that the NIC dropped, as the flow's verdict says: they are in none of the record's counters. */
void flow_shard_credit_dropped(
	struct flow_shard *shard, uint32_t position, const struct flow_credit *credit);
void flow_shard_credit_report_dropped(
	struct flow_shard *shard, struct flow_report *report, const struct flow_credit *credit);

/* One that has ended, whose report was held back: that has them, too. */
void flow_shard_credit_report(
	struct flow_shard *shard, struct flow_report *report, const struct flow_credit *credit);

/*
 * Nothing came of a flow that perhaps only the NIC sees: it ends, as idle, when its time is over. The second that its
 * wheel looks at it in may be long past, as what its packets are credited with is when they were told. Says how many us
 * it has left; 0: it has ended, and its record is gone.
 */
uint64_t flow_shard_end_silent(struct flow_shard *shard, uint32_t position);

/*
 * A connection that both ends have closed, while packets of it went by the NIC alone, the last of them unseen: these
 * are taken for the acknowledgements that are missing. Nobody will send them again.
 */
void flow_shard_close_unseen(struct flow_shard *shard, uint32_t position);
