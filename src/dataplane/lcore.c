/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/lcore.h"

#include <string.h>

#include "offload/agent.h"

void lcore_init(struct lcore *lcore, enum lcore_kind kind, unsigned number, unsigned place)
{
	memset(lcore, 0, sizeof(*lcore));
	lcore->kind = kind;
	lcore->number = number;
	lcore->place = place;
	lcore->cpu = -1;
	lcore->burst = LCORE_BURST;
	lcore->receiving = true;
	lcore->worker.number = number;
	lcore->drops.lcore = lcore;
}

void lcore_event(struct lcore *lcore, struct path_event event)
{
	event.time_us = lcore->now_us & CLOCK_MAX_US;
	if (mailbox_push(lcore->events, &event, 1) == 1)
		return;
	/* one writer */
	uint64_t lost = atomic_load_explicit(&lcore->events_lost, memory_order_relaxed);

	atomic_store_explicit(&lcore->events_lost, lost + 1, memory_order_relaxed);
}

void lcore_flow_event(
	struct lcore *lcore, enum path_event_kind kind, const struct flow_record *record)
{
	lcore_event(lcore, (struct path_event){
				   .key = record->key,
				   .kind = kind,
				   .initiator = record->initiator,
				   .worker = (uint8_t)lcore->worker.number,
			   });
}

void lcore_event_once(struct lcore *lcore, enum path_event_kind kind, unsigned port)
{
	if (lcore->told[kind] >> port & 1)
		return;
	lcore->told[kind] |= UINT32_C(1) << port;
	lcore_event(lcore, (struct path_event){.kind = kind, .port = (uint8_t)port});
}

/* How long a flow's end waits for room, before it is asked for again. */
#define ROOM_AGAIN_US 10000

unsigned lcore_room(void *context)
{
	const struct lcore *lcore = context;

	return lcore->room == NULL ? UINT32_MAX : lcore->room(lcore->sink_context, lcore->number);
}

/* Lets the offload agent complete the reports. It keeps some and hands them over later; returns how many are left. */
static unsigned ask_agent(struct agent *agent, struct flow_report *told,
	const struct flow_report *reports, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		told[kept] = reports[i];
		kept += !agent_ended(agent, &told[kept]);
	}
	return kept;
}

void lcore_take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct lcore *lcore = context;
	struct flow_report told[FLOW_SHARD_REPORTS];

	for (unsigned i = 0; lcore->worker.follow && i < n; i++) {
		if (reports[i].reason == FLOW_END_ACTIVE)
			continue;
		lcore_event(lcore, (struct path_event){
					   .key = reports[i].record.key,
					   .kind = PATH_EVENT_FLOW_END,
					   .reason = reports[i].reason,
					   .initiator = reports[i].record.initiator,
					   .worker = (uint8_t)lcore->worker.number,
				   });
	}
	if (lcore->worker.agent != NULL) {
		n = ask_agent(lcore->worker.agent, told, reports, n);
		reports = told;
	}
	if (n != 0)
		lcore->sink(lcore->sink_context, reports, n);
}

void lcore_verdict_changed(void *context, uint32_t position, bool was_dropped)
{
	struct lcore *lcore = context;
	const struct flow_record *record = flow_table_record(&lcore->worker.shard->table, position);

	if (lcore->worker.agent != NULL)
		agent_decided(lcore->worker.agent, position);
	if (lcore->worker.follow && flow_is_blocked(record) != was_dropped)
		lcore_flow_event(lcore,
			!was_dropped ? PATH_EVENT_FLOW_BLOCKED : PATH_EVENT_FLOW_UNBLOCKED, record);
}

void lcore_log(void *context, const struct policy_logged *logged)
{
	struct lcore *lcore = context;
	const struct policy_others *others = &lcore->policy.others;
	const unsigned wire = logged->key != NULL ? flow_key_wire(logged->key)
						  : lcore->topology->domain[logged->port];
	struct path_counters *counters = &lcore->worker.counters[wire];
	struct path_event event = {
		.time_us = lcore->now_us & CLOCK_MAX_US,
		.kind = PATH_EVENT_LOG,
		.worker = (uint8_t)lcore->worker.number,
		.port = (uint8_t)RTE_MIN(logged->port, (uint16_t)UINT8_MAX),
		.from = logged->from,
		.by_packet = logged->packet,
		.verdict = logged->verdict,
		.lost = lcore->log_lost,
	};

	if (rate_limit_has(&lcore->log_limit, lcore->now_us)) {
		const struct flow_rule_told told = others->tell(others->context, logged->rule);

		if (logged->key != NULL)
			event.key = *logged->key;
		event.rule = told.number;
		event.rule_port = told.port;
		if (mailbox_push(lcore->events, &event, 1) == 1) {
			rate_limit_take(&lcore->log_limit);
			lcore->log_lost = 0;
			counters->logged++;
			return;
		}
	}
	counters->log_lost++;
	if (lcore->log_lost != UINT16_MAX)
		lcore->log_lost++;
}

void lcore_take_held_report(void *context, const struct flow_report *report)
{
	struct lcore *lcore = context;

	lcore->sink(lcore->sink_context, report, 1);
}

uint64_t lcore_end_silent(void *context, uint32_t position)
{
	struct flow_shard *shard = ((struct lcore *)context)->worker.shard;

	/* it has a little longer when there is no room for its report: the shard's patience is not without end */
	if (lcore_room(context) <= shard->n_reports)
		return ROOM_AGAIN_US;
	uint64_t left_us = flow_shard_end_silent(shard, position);

	/* the agent hears of it before it looks at anything else: the record is nobody's */
	if (left_us == 0)
		flow_shard_flush(shard);
	return left_us;
}

/* Packets that a NIC dropped. */
static void credit_dropped(struct lcore *lcore, const struct agent_credit *credit)
{
	struct flow_shard *shard = lcore->worker.shard;
	struct path_counters *counters =
		&lcore->worker.counters[lcore->topology->domain[credit->port]];
	const struct flow_credit *dropped = &credit->credit;

	counters->nic_dropped += dropped->packets;
	counters->nic_dropped_bytes += dropped->bytes;
	if (credit->position != FLOW_NONE) {
		flow_shard_credit_dropped(shard, credit->position, dropped);
		policy_count(
			&lcore->policy, shard, credit->position, dropped->packets, dropped->bytes);
	} else if (credit->report != NULL) {
		flow_shard_credit_report_dropped(shard, credit->report, dropped);
		policy_count_cause(&lcore->policy, credit->report->dropped.cause, dropped->packets,
			dropped->bytes);
	}
}

void lcore_credit(void *context, const struct agent_credit *credit)
{
	struct lcore *lcore = context;
	struct flow_shard *shard = lcore->worker.shard;
	struct path_counters *counters =
		&lcore->worker.counters[lcore->topology->domain[credit->port]];

	if (credit->dropped) {
		credit_dropped(lcore, credit);
		return;
	}
	counters->nic_forwarded += credit->credit.packets;
	counters->nic_forwarded_bytes += credit->credit.bytes;
	if (credit->position != FLOW_NONE) {
		flow_shard_credit(shard, credit->position, &credit->credit);
		if (credit->last)
			flow_shard_close_unseen(shard, credit->position);
	} else if (credit->report != NULL) {
		flow_shard_credit_report(shard, credit->report, &credit->credit);
	} else {
		counters->nic_unaccounted += credit->credit.packets;
	}
}
