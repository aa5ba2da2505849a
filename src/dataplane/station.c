/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/station.h"

#include <string.h>

#include "dataplane/pipeline.h"
#include "offload/agent.h"

void station_init(struct station *station, enum station_kind kind, unsigned number, unsigned place)
{
	memset(station, 0, sizeof(*station));
	station->kind = kind;
	station->number = number;
	station->place = place;
	station->cpu = -1;
	station->burst = STATION_BURST;
	station->receiving = true;
	station->worker.number = number;
}

int station_init_portless(
	struct station *station, unsigned number, const struct hash_secret *secret)
{
	static const struct topology nowhere;

	station_init(station, STATION_WORKER, number, number);
	station->secret = secret;
	station->topology = &nowhere;
	station->worker.steer.n_shards = 1;
	return pipeline_create(&station->pipeline, secret, false);
}

void station_fini_portless(struct station *station)
{
	pipeline_destroy(station->pipeline);
	flow_shard_destroy(station->worker.shard);
}

void station_event(struct station *station, struct path_event event)
{
	event.time_us = station->now_us & CLOCK_MAX_US;
	if (mailbox_push(station->events, &event, 1) == 1)
		return;
	/* one writer */
	uint64_t lost = atomic_load_explicit(&station->events_lost, memory_order_relaxed);

	atomic_store_explicit(&station->events_lost, lost + 1, memory_order_relaxed);
}

void station_flow_event(
	struct station *station, enum path_event_kind kind, const struct flow_record *record)
{
	station_event(station, (struct path_event){
				       .key = record->key,
				       .kind = kind,
				       .initiator = record->initiator,
				       .worker = (uint8_t)station->worker.number,
			       });
}

void station_event_once(struct station *station, enum path_event_kind kind, unsigned port)
{
	if (station->told[kind] >> port & 1)
		return;
	station->told[kind] |= UINT32_C(1) << port;
	station_event(station, (struct path_event){.kind = kind, .port = (uint8_t)port});
}

/* How long a flow's end waits for room, before it is asked for again. */
#define ROOM_AGAIN_US 10000

unsigned station_room(void *context)
{
	const struct station *station = context;

	return station->room == NULL ? UINT32_MAX
				     : station->room(station->sink_context, station->number);
}

/* What the agent has to say of them; of those that it holds back, it hands over later. Says how many are left. */
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

void station_take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct station *station = context;
	struct flow_report told[FLOW_SHARD_REPORTS];

	for (unsigned i = 0; station->worker.follow && i < n; i++) {
		if (reports[i].reason == FLOW_END_ACTIVE)
			continue;
		station_event(station, (struct path_event){
					       .key = reports[i].record.key,
					       .kind = PATH_EVENT_FLOW_END,
					       .reason = reports[i].reason,
					       .initiator = reports[i].record.initiator,
					       .worker = (uint8_t)station->worker.number,
				       });
	}
	if (station->worker.agent != NULL) {
		n = ask_agent(station->worker.agent, told, reports, n);
		reports = told;
	}
	if (n != 0)
		station->sink(station->sink_context, reports, n);
}

void station_verdict_changed(void *context, uint32_t position, bool was_dropped)
{
	struct station *station = context;
	const struct flow_record *record =
		flow_table_record(&station->worker.shard->table, position);

	if (station->worker.agent != NULL)
		agent_decided(station->worker.agent, position);
	if (station->worker.follow && flow_is_blocked(record) != was_dropped)
		station_flow_event(station,
			!was_dropped ? PATH_EVENT_FLOW_BLOCKED : PATH_EVENT_FLOW_UNBLOCKED, record);
}

void station_take_held_report(void *context, const struct flow_report *report)
{
	struct station *station = context;

	station->sink(station->sink_context, report, 1);
}

uint64_t station_end_silent(void *context, uint32_t position)
{
	struct flow_shard *shard = ((struct station *)context)->worker.shard;

	/* it has a little longer when there is no room for its report: the shard's patience is not without end */
	if (station_room(context) <= shard->n_reports)
		return ROOM_AGAIN_US;
	uint64_t left_us = flow_shard_end_silent(shard, position);

	/* the agent hears of it before it looks at anything else: the record is nobody's */
	if (left_us == 0)
		flow_shard_flush(shard);
	return left_us;
}

/* Packets that a NIC dropped. */
static void credit_dropped(struct station *station, const struct agent_credit *credit)
{
	struct flow_shard *shard = station->worker.shard;
	struct path_counters *counters =
		&station->worker.counters[station->topology->domain[credit->port]];
	const struct flow_credit *dropped = &credit->credit;

	counters->nic_dropped += dropped->packets;
	counters->nic_dropped_bytes += dropped->bytes;
	if (credit->position != FLOW_NONE) {
		flow_shard_credit_dropped(shard, credit->position, dropped);
		policy_count(&station->policy, shard, credit->position, dropped->packets,
			dropped->bytes);
	} else if (credit->report != NULL) {
		flow_shard_credit_report_dropped(shard, credit->report, dropped);
		policy_count_cause(&station->policy, credit->report->dropped.cause,
			dropped->packets, dropped->bytes);
	}
}

void station_credit(void *context, const struct agent_credit *credit)
{
	struct station *station = context;
	struct flow_shard *shard = station->worker.shard;
	struct path_counters *counters =
		&station->worker.counters[station->topology->domain[credit->port]];

	if (credit->dropped) {
		credit_dropped(station, credit);
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
