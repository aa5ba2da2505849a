/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/filing.h"

#include "base/clock.h"
#include "flow/decide.h"

uint32_t flow_idle_timeout(
	const struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto)
{
	const uint32_t seconds = shard->config.timeouts.seconds[flow_timeout_of(state, proto)];

	if (shard->rows == NULL)
		return seconds;
	return flow_timeout_by_rule(seconds, shard->rows[position].age_s, state);
}

/* When a flow is to be looked at, by what its record says or will say. */
uint64_t flow_idle_tick(const struct flow_shard *shard, uint32_t position, uint64_t last_seen_us,
	enum flow_state state, uint8_t proto)
{
	uint32_t timeout = flow_idle_timeout(shard, position, state, proto);

	return clock_tick_from(last_seen_us + timeout * CLOCK_US_PER_S);
}

uint64_t flow_active_tick(const struct flow_shard *shard, uint64_t start_us)
{
	if (shard->config.active_s == 0)
		return UINT64_MAX;
	return clock_tick_from(start_us + shard->config.active_s * CLOCK_US_PER_S);
}

static void file(struct flow_shard *shard, uint32_t position, enum flow_phase phase, uint64_t idle,
	uint64_t active)
{
	wheel_add(&shard->wheel[phase], position, active < idle ? active : idle);
}

void flow_age_file(struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	file(shard, position, flow_record_phase(record),
		flow_idle_tick(shard, position, record->last_seen_us, flow_silent_state(record),
			record->key.proto),
		flow_active_tick(shard, record->start_us));
}

void flow_age_file_new(
	struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto)
{
	uint64_t now_us = (shard->now_us - shard->waited_us) & CLOCK_MAX_US;
	/* flow_record_phase(): of two sides one has spoken */
	const struct flow_key *key = &flow_table_record(&shard->table, position)->key;
	enum flow_phase phase =
		flow_shard_is_two_sided(shard, key) ? FLOW_PHASE_NEW : flow_phase(state);

	file(shard, position, phase, flow_idle_tick(shard, position, now_us, state, proto),
		flow_active_tick(shard, now_us));
}

void flow_age_unfile(struct flow_shard *shard, uint32_t position, enum flow_phase phase)
{
	wheel_remove(&shard->wheel[phase], position);
}
