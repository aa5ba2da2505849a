/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Ageing, eviction and reports of a shard: what its other halves (shard.c) call. Not for users of the
 * shard, who have flow/shard.h.
 */

#include "flow/shard.h"
#include "flow/sides.h"

/* Seconds without a packet after which the flow of a record ends, in this state. */
uint32_t flow_idle_timeout(
	const struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto);

/*
 * The state by which a record is told how long it may be silent: an open connection that has perhaps been closed
 * or reset ends as early as one that is closing.
 */
static inline enum flow_state flow_silent_state(const struct flow_record *record)
{
	return flow_tcp_is_doubted(record) ? FLOW_FIN_0 : (enum flow_state)record->state;
}

/* Puts a record that is on no wheel on that of its phase, and takes it off the wheel of `phase`. */
void flow_age_file(struct flow_shard *shard, uint32_t position);
/*
 * The same for one that begins now, without reading what has just been written: a word of which a byte was
 * stored is not to be had before that store is done.
 */
void flow_age_file_new(
	struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto);
void flow_age_unfile(struct flow_shard *shard, uint32_t position, enum flow_phase phase);

/* Makes room by ending `n` flows, of which there are as many. */
void flow_evict(struct flow_shard *shard, unsigned n);

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

/* FLOW_END_FIN or _RST for a record that only waits for stragglers, else `otherwise`. */
enum flow_end flow_end_reason(const struct flow_record *record, enum flow_end otherwise);

/*
 * The wheel that a record is on: that of its phase. A conversation that only one side has closed, while the other
 * was never heard, is embryonic to whoever looks for room.
 */
static inline enum flow_phase flow_record_phase(const struct flow_record *record)
{
	enum flow_phase phase = flow_phase((enum flow_state)record->state);

	return phase == FLOW_PHASE_CLOSING && record->heard != FLOW_HEARD_APART ? FLOW_PHASE_NEW
										: phase;
}
