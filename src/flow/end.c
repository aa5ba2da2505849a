/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of flows: reports made, gathered and handed to the sink. */
#include "flow/end.h"

#include "base/clock.h"
#include "flow/decide.h"

void flow_shard_flush(struct flow_shard *shard)
{
	if (shard->n_reports == 0)
		return;
	shard->config.sink(shard->config.sink_context, shard->reports, shard->n_reports);
	shard->n_reports = 0;
}

/* Where time went back between the first packet and the last, the earlier of them is the start. */
static void stamp_report(const struct flow_shard *shard, struct flow_report *report,
	const struct flow_record *record)
{
	const struct flow_stamps *stamps = &shard->stamps[record - shard->table.records];

	report->stamped = 1;
	report->stamp_start_us = RTE_MIN(stamps->start_us, stamps->end_us);
	report->stamp_end_us = RTE_MAX(stamps->start_us, stamps->end_us);
}

/* What was dropped of the flow since its last report, which counts from 0 on. */
static struct flow_dropped flow_dropped_taken(struct flow_shard *shard, uint32_t position)
{
	struct flow_dropped *dropped = &shard->verdict_dropped[position];
	const struct flow_dropped taken = *dropped;

	dropped->packets = dropped->bytes = 0;
	dropped->rule_packets = dropped->rule_bytes = 0;
	return taken;
}

void flow_shard_measured(
	const struct flow_shard *shard, uint32_t position, struct flow_measured measured[2])
{
	if (flow_table_record(&shard->table, position)->measured)
		memcpy(measured, shard->measure[position].told, 2 * sizeof(measured[0]));
	else
		memset(measured, 0, 2 * sizeof(measured[0]));
}

static void report_measured(struct flow_shard *shard, struct flow_report *report, uint32_t position)
{
	report->measured = 1;
	flow_shard_measured(shard, position, report->measure);
	flow_measure_restart(&shard->measure[position]);
}

void flow_report(struct flow_shard *shard, const struct flow_record *record, enum flow_end reason)
{
	struct flow_report *next = &shard->reports[shard->n_reports++];
	const uint32_t position = flow_table_position_of(&shard->table, record);
	uint64_t end_us = record->last_seen_us;

	flow_decide_fold(shard, position);
	if (reason != FLOW_END_ACTIVE)
		flow_decide_ended(shard, position);

	if (end_us < record->start_us)
		end_us = record->start_us; /* nothing came since the last active report */
	*next = (struct flow_report){
		.record = *record,
		.origin_us = shard->origin_us,
		.end_us = end_us & CLOCK_MAX_US,
		.reason = reason,
		.worker = shard->config.worker,
		.run = shard->run,
	};
	if (flow_is_fresh(record)) {
		flow_set_counts(&next->record, 0, 0, 0);
		flow_set_counts(&next->record, 1, 0, 0);
	}
	if (shard->stamps != NULL)
		stamp_report(shard, next, record);
	if (record->was_dropped)
		next->dropped = flow_dropped_taken(shard, position);
	else if (record->measured)
		report_measured(shard, next, position);
	next->rules = flow_shard_rules(shard, position);
	if (shard->excess != NULL) {
		next->excess = shard->excess[position];
		shard->excess[position] = (struct flow_excess){0};
	}
	shard->counters.ended[reason]++;
	for (unsigned end = 0; end < 2; end++) {
		shard->counters.reported_packets += flow_packets(record, end);
		shard->counters.reported_bytes += flow_bytes(record, end);
	}
	flow_decide_restart(shard, position);
	if (shard->n_reports == FLOW_SHARD_REPORTS)
		flow_shard_flush(shard);
}

void flow_end_later(
	struct flow_shard *shard, struct flow_ended *ended, uint32_t position, enum flow_end reason)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);

	shard->wire_flows[flow_key_wire(&record->key)]--;
	flow_report(shard, record, reason);
	ended->position[ended->n++] = position;
	if (ended->n == FLOW_BURST)
		flow_end_all_now(shard, ended);
}

void flow_end_all_now(struct flow_shard *shard, struct flow_ended *ended)
{
	flow_table_remove_burst(&shard->table, ended->position, ended->n);
	ended->n = 0;
}

void flow_end_record(struct flow_shard *shard, uint32_t position, enum flow_end reason)
{
	struct flow_ended ended;

	ended.n = 0;
	flow_end_later(shard, &ended, position, reason);
	flow_end_all_now(shard, &ended);
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
