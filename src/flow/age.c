/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/age.h"

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

enum flow_end flow_end_reason(const struct flow_record *record, enum flow_end otherwise)
{
	if (record->state == FLOW_TIME_WAIT)
		return FLOW_END_FIN;
	if (record->state == FLOW_RESET)
		return FLOW_END_RST;
	if (otherwise == FLOW_END_IDLE && flow_tcp_has_unproven_rst(record))
		return FLOW_END_RST; /* silence is the proof */
	return otherwise;
}

/* When a flow is to be looked at, by what its record says or will say. */
static uint64_t idle_tick(const struct flow_shard *shard, uint32_t position, uint64_t last_seen_us,
	enum flow_state state, uint8_t proto)
{
	uint32_t timeout = flow_idle_timeout(shard, position, state, proto);

	return clock_tick_from(last_seen_us + timeout * CLOCK_US_PER_S);
}

static uint64_t active_tick(const struct flow_shard *shard, uint64_t start_us)
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
		idle_tick(shard, position, record->last_seen_us, flow_silent_state(record),
			record->key.proto),
		active_tick(shard, record->start_us));
}

void flow_age_file_new(
	struct flow_shard *shard, uint32_t position, enum flow_state state, uint8_t proto)
{
	uint64_t now_us = (shard->now_us - shard->waited_us) & CLOCK_MAX_US;
	/* flow_record_phase(): of two sides one has spoken */
	const struct flow_key *key = &flow_table_record(&shard->table, position)->key;
	enum flow_phase phase =
		flow_shard_is_two_sided(shard, key) ? FLOW_PHASE_NEW : flow_phase(state);

	file(shard, position, phase, idle_tick(shard, position, now_us, state, proto),
		active_tick(shard, now_us));
}

void flow_age_unfile(struct flow_shard *shard, uint32_t position, enum flow_phase phase)
{
	wheel_remove(&shard->wheel[phase], position);
}

/* Nothing came since then, or since the report before: the record tells of no packet, and begins and ends now. */
static void begin_now(struct flow_shard *shard, struct flow_record *record, uint64_t since_us)
{
	const uint64_t now_us = shard->tick * CLOCK_TICK_US;

	if (shard->stamps != NULL) {
		struct flow_stamps *stamps = &shard->stamps[record - shard->table.records];

		/* by the clock: no packet came that has a stamp */
		stamps->end_us += now_us > since_us ? now_us - since_us : 0;
		stamps->start_us = stamps->end_us;
	}
	record->start_us = now_us & CLOCK_MAX_US;
}

/*
 * The record's counters and flags begin anew, so that the reports of one flow add up. Its start is now for as long as
 * nothing comes, and then the next packet's time.
 */
static void report_active(struct flow_shard *shard, struct flow_record *record)
{
	flow_report(shard, record, FLOW_END_ACTIVE);
	flow_set_fresh(record);
	for (unsigned i = 0; i < 2; i++)
		record->end[i].tcp_flags = 0;
	record->icmp_errors = 0;
}

/* A shard whose time passes, and what ends in it. */
struct passing {
	struct flow_shard *shard;
	struct flow_ended ended;
};

static void due(void *context, uint32_t position)
{
	struct passing *passing = context;
	struct flow_shard *shard = passing->shard;
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (idle_tick(shard, position, record->last_seen_us, flow_silent_state(record),
		    record->key.proto) <= shard->tick) {
		flow_end_later(
			shard, &passing->ended, position, flow_end_reason(record, FLOW_END_IDLE));
		return;
	}
	if (active_tick(shard, record->start_us) <= shard->tick) {
		/* silence is not worth a report; the next one is due as long after it */
		bool silent = flow_is_fresh(record);

		if (!silent)
			report_active(shard, record);
		begin_now(shard, record, silent ? record->start_us : record->last_seen_us);
	}
	flow_age_file(shard, position);
}

/* Works off the shard's tick on all wheels, in step: a record may go from one to another. */
static bool age_work_off(struct flow_shard *shard, unsigned *budget)
{
	struct passing passing;
	bool done = true;

	passing.shard = shard;
	passing.ended.n = 0;
	for (unsigned i = 0; i < FLOW_N_PHASES; i++)
		done &= wheel_turn(&shard->wheel[i], shard->tick, due, &passing, budget);
	flow_end_all_now(shard, &passing.ended);
	return done;
}

/* How many records may be looked at in this call; see flow_shard_advance(). */
static unsigned pace(const struct flow_shard *shard, uint64_t passed_us, uint64_t until)
{
	unsigned budget, room;

	if (!shard->config.paced)
		return UINT32_MAX;
	budget = FLOW_SHARD_PACE + (unsigned)RTE_MIN(passed_us, UINT64_C(4096));
	if (shard->config.room == NULL ||
		until - shard->tick > FLOW_SHARD_PATIENCE_S * CLOCK_TICKS_PER_S)
		return budget;
	room = shard->config.room(shard->config.sink_context);
	/* what waits in the shard goes first */
	room -= RTE_MIN(room, shard->n_reports);
	return RTE_MIN(budget, room);
}

void flow_shard_set_times(
	struct flow_shard *shard, const struct flow_timeouts *timeouts, uint32_t active_s)
{
	shard->config.timeouts = *timeouts;
	shard->config.active_s = active_s;
	shard->refile = 0;
}

/* Some live flows more are filed by the newest time-outs. */
static void refile_some(struct flow_shard *shard)
{
	for (unsigned i = 0; i < FLOW_SHARD_REFILE; i++) {
		const uint32_t position = flow_table_touched(&shard->table, shard->refile);

		shard->refile = position == FLOW_NONE ? FLOW_NONE : position + 1;
		if (position == FLOW_NONE)
			return;
		const struct flow_record *record = flow_table_record(&shard->table, position);

		if (record->state == FLOW_FREE)
			continue;
		flow_age_unfile(shard, position, flow_record_phase(record));
		flow_age_file(shard, position);
	}
}

/* flow_shard_advance(), but for flows that are to be filed anew. */
static bool advance(struct flow_shard *shard, uint64_t now_us)
{
	uint64_t passed_us;
	unsigned budget;

	if (now_us > CLOCK_MAX_US)
		now_us = CLOCK_MAX_US;
	if (now_us <= shard->now_us && !shard->behind)
		return true;
	if (now_us < shard->now_us)
		now_us = shard->now_us;

	uint64_t until = clock_tick(now_us);

	passed_us = now_us - shard->now_us;
	shard->now_us = now_us;
	shard->waited_us = 0;
	if (shard->tick >= until && !shard->behind)
		return true;
	budget = pace(shard, passed_us, until);

	bool may = budget != 0;

	if (shard->behind)
		shard->behind = !age_work_off(shard, &budget);
	while (shard->tick < until && !shard->behind) {
		uint64_t next = until;

		for (unsigned i = 0; i < FLOW_N_PHASES; i++)
			next = wheel_next_tick(&shard->wheel[i], next);
		shard->tick = next;
		shard->behind = !age_work_off(shard, &budget);
	}
	return !(shard->behind && may);
}

bool flow_shard_advance(struct flow_shard *shard, uint64_t now_us)
{
	const bool done = advance(shard, now_us);

	if (likely(shard->refile == FLOW_NONE))
		return done;
	refile_some(shard);
	return done && shard->refile == FLOW_NONE;
}
