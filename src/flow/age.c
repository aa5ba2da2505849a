/* SPDX-License-Identifier: BSD-3-Clause */
/* Time passes in a shard: what is due on its wheels. */
#include "base/clock.h"
#include "flow/end.h"
#include "flow/filing.h"

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

	if (flow_idle_tick(shard, position, record->last_seen_us, flow_silent_state(record),
		    record->key.proto) <= shard->tick) {
		flow_end_later(
			shard, &passing->ended, position, flow_end_reason(record, FLOW_END_IDLE));
		return;
	}
	if (flow_active_tick(shard, record->start_us) <= shard->tick) {
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
