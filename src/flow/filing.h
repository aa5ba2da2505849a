/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Puts records on wheels (flow/wheel.h), and says when each is due. For the files of the shard, whose users
 * have flow/shard.h.
 */

#include "flow/shard.h"
#include "flow/sides.h"

/* Do packets of that key say by which side of a wire they came? */
static inline bool flow_shard_is_two_sided(
	const struct flow_shard *shard, const struct flow_key *key)
{
	static_assert(FLOW_MAX_WIRES <= 16, "a bit for each");
	return shard->config.two_sided >> flow_key_wire(key) & 1;
}

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

/* The ticks at which a flow is to be looked at, by what its record says or will say: for silence, and for a report of an active flow. */
uint64_t flow_idle_tick(const struct flow_shard *shard, uint32_t position, uint64_t last_seen_us,
	enum flow_state state, uint8_t proto);
uint64_t flow_active_tick(const struct flow_shard *shard, uint64_t start_us);

/* Puts a record that is on no wheel on that of its phase, and takes it off the wheel of `phase`. */
void flow_age_file(struct flow_shard *shard, uint32_t position);
/*
 * The same for one that begins now, without reading what has just been written: a word of which a byte was
 * stored is not to be had before that store is done.
 */
void flow_age_file_new(
	struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto);
void flow_age_unfile(struct flow_shard *shard, uint32_t position, enum flow_phase phase);

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
