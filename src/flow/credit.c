/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow/credit.h"

#include <netinet/in.h>

#include "base/clock.h"
#include "flow/decide.h"
#include "flow/end.h"
#include "flow/filing.h"
#include "flow/tcp.h"

static void add(struct flow_record *record, const struct flow_credit *credit)
{
	unsigned from = credit->from;

	/* the first ones since an active report, whose time is the record's start until then */
	if (credit->packets != 0 && flow_packets(record, 0) + flow_packets(record, 1) == 0)
		flow_begin_again(record, RTE_MAX((uint64_t)record->start_us, credit->since_us));
	if (flow_is_fresh(record))
		return;

	flow_set_counts(record, from, flow_packets(record, from) + credit->packets,
		flow_bytes(record, from) + credit->bytes);
}

void flow_shard_credit(
	struct flow_shard *shard, uint32_t position, const struct flow_credit *credit)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	add(record, credit);
	if (credit->seen_us > record->last_seen_us)
		record->last_seen_us = credit->seen_us & CLOCK_MAX_US;
	if (record->key.proto == IPPROTO_TCP)
		flow_tcp_forget_window(record);
	shard->counters.packets += credit->packets;
	shard->counters.bytes += credit->bytes;
}

void flow_shard_credit_report(
	struct flow_shard *shard, struct flow_report *report, const struct flow_credit *credit)
{
	add(&report->record, credit);
	if (credit->seen_us > report->end_us)
		report->end_us = credit->seen_us & CLOCK_MAX_US;
	shard->counters.packets += credit->packets;
	shard->counters.bytes += credit->bytes;
	flow_decide_reported(
		shard, report->rules.rule[credit->from], credit->packets, credit->bytes);
	shard->counters.reported_packets += credit->packets;
	shard->counters.reported_bytes += credit->bytes;
}

void flow_shard_credit_dropped(
	struct flow_shard *shard, uint32_t position, const struct flow_credit *credit)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (flow_is_fresh(record))
		flow_begin_again(record, RTE_MAX((uint64_t)record->start_us, credit->since_us));
	flow_decide_dropped(shard, &shard->verdict_dropped[position],
		flow_decide_rule(shard, position, credit->from), credit->packets, credit->bytes);
	if (credit->seen_us > record->last_seen_us)
		record->last_seen_us = credit->seen_us & CLOCK_MAX_US;
}

void flow_shard_credit_report_dropped(
	struct flow_shard *shard, struct flow_report *report, const struct flow_credit *credit)
{
	/* a report has room for one of the two: measures are given up for what was dropped */
	report->dropped = flow_report_dropped(report);
	report->measured = 0;
	flow_decide_dropped(shard, &report->dropped, report->rules.rule[credit->from],
		credit->packets, credit->bytes);
	if (credit->seen_us > report->end_us)
		report->end_us = credit->seen_us & CLOCK_MAX_US;
}

uint64_t flow_shard_end_silent(struct flow_shard *shard, uint32_t position)
{
	const struct flow_record *record = flow_table_record(&shard->table, position);
	uint32_t timeout =
		flow_idle_timeout(shard, position, flow_silent_state(record), record->key.proto);

	const uint64_t over_us = record->last_seen_us + timeout * CLOCK_US_PER_S;

	if (over_us > shard->now_us)
		return over_us - shard->now_us;
	flow_age_unfile(shard, position, flow_record_phase(record));
	flow_end_record(shard, position, flow_end_reason(record, FLOW_END_IDLE));
	return 0;
}

void flow_shard_close_unseen(struct flow_shard *shard, uint32_t position)
{
	struct flow_record *record = flow_table_record(&shard->table, position);

	if (record->state != FLOW_FIN_BOTH && record->state != FLOW_FIN_ACK_0 &&
		record->state != FLOW_FIN_ACK_1)
		return;
	record->state = FLOW_TIME_WAIT;
	flow_age_unfile(shard, position, flow_record_phase(record));
	flow_age_file(shard, position);
}
