/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The end of flows, and reports of them. For the files of the shard. */

#include "flow/shard.h"

/* Copies the record into a report. */
void flow_report(struct flow_shard *shard, const struct flow_record *record, enum flow_end reason);

/*
 * Records that are on no wheel, reported, and still in the table: they are taken out of it together, so that
 * their lines of the index come from memory at the same time. Nobody looks anything up before that.
 */
struct flow_ended {
	unsigned n;
	uint32_t position[FLOW_BURST];
};

/* Reports a record that is on no wheel, and adds it; when there are enough, all are taken out. */
void flow_end_later(struct flow_shard *shard, struct flow_ended *ended, uint32_t position,
	enum flow_end reason);
/* Takes out those added. */
void flow_end_all_now(struct flow_shard *shard, struct flow_ended *ended);

/* Reports and frees a record that is on no wheel. */
void flow_end_record(struct flow_shard *shard, uint32_t position, enum flow_end reason);

/* Gives the measurements of both ends of a live flow; zeros where nothing is measured. */
void flow_shard_measured(
	const struct flow_shard *shard, uint32_t position, struct flow_measured measured[2]);

/* FLOW_END_FIN or _RST for a record that only waits for stragglers, else `otherwise`. */
enum flow_end flow_end_reason(const struct flow_record *record, enum flow_end otherwise);
