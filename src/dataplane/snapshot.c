/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/snapshot.h"

#include <string.h>

#include "dataplane/tx.h"

static void copy_station(struct station *station, struct plane_station *copy)
{
	const struct flow_shard *shard = station->worker.shard;

	*copy = (struct plane_station){
		.kind = station->kind,
		.number = station->number,
		.cpu = station->cpu,
		.stages = station->worker.stages,
		.bursts = station->bursts,
		.idle_polls = station->idle_polls,
		.busy_cycles = station->busy_cycles,
		.idle_cycles = station->idle_cycles,
		.sleep_cycles = station->sleep_cycles,
	};
	memcpy(copy->ports, station->ports, sizeof(copy->ports));
	memcpy(copy->crowded_s, station->balance.crowded_s, sizeof(copy->crowded_s));
	if (shard != NULL) {
		copy->flows = shard->table.count;
		copy->capacity = shard->table.capacity;
		copy->flow = shard->counters;
		copy->unmatched = station->policy.unmatched;
	}
}

/* Everything of the station, as it is between two bursts. */
static void copy(struct station *station)
{
	struct snapshot *snapshot = &station->snapshot;
	const struct flow_shard *shard = station->worker.shard;

	copy_station(station, &snapshot->station);
	for (unsigned wire = 0; wire < FLOW_MAX_WIRES; wire++) {
		struct path_counters *sum = &snapshot->wires[wire];

		*sum = station->worker.counters[wire];
		if (station->parser != NULL)
			path_counters_add(sum, &parser_counters(station->parser)[wire]);
		path_counters_add(&snapshot->station.sum, sum);
		snapshot->wire_flows[wire] = shard == NULL ? 0 : shard->wire_flows[wire];
	}
	memset(snapshot->distrusted, 0, sizeof(snapshot->distrusted));
	for (unsigned i = 0; i < station->n_rx; i++)
		snapshot->distrusted[station->rx[i].from.port] |= station->trust[i].lost != 0;
	memcpy(snapshot->fallen_back, station->fallen_back, sizeof(snapshot->fallen_back));
	memset(snapshot->under_way, 0, sizeof(snapshot->under_way));
}

static void complete(struct snapshot *snapshot)
{
	atomic_store_explicit(&snapshot->done, snapshot->number, memory_order_release);
}

static void take_part(struct station *station, uint32_t number)
{
	struct snapshot *snapshot = &station->snapshot;

	send_settle(station);
	copy(station);
	snapshot->number = number;
	snapshot->n_awaited = 0;
	snapshot->markers_wait = false;
	for (unsigned i = 0; i < station->n_stations; i++) {
		snapshot->awaited[i] = station->from[i] != NULL;
		snapshot->n_awaited += snapshot->awaited[i];
		if (station->to[i] != NULL) {
			station->to[i]->marker = number;
			snapshot->markers_wait |= !ring_push_marker(station->to[i]);
		}
	}
	if (snapshot->n_awaited == 0)
		complete(snapshot);
}

/* Was that taken already, or a later one? Numbers may wrap. */
static bool taken(const struct snapshot *snapshot, uint32_t number)
{
	return (int32_t)(number - snapshot->number) <= 0;
}

void snapshot_asked(struct station *station, uint32_t number)
{
	/* a marker may have come first */
	if (!taken(&station->snapshot, number))
		take_part(station, number);
}

void snapshot_marker(struct station *station, unsigned sender, uint32_t number)
{
	struct snapshot *snapshot = &station->snapshot;

	if (!taken(snapshot, number))
		take_part(station, number);
	if (number != snapshot->number || !snapshot->awaited[sender])
		return; /* of a snapshot that control gave up */
	snapshot->awaited[sender] = false;
	if (--snapshot->n_awaited == 0)
		complete(snapshot);
}

void snapshot_push_markers(struct station *station)
{
	station->snapshot.markers_wait = false;
	for (unsigned i = 0; i < station->n_stations; i++)
		if (station->to[i] != NULL)
			station->snapshot.markers_wait |= !ring_push_marker(station->to[i]);
}
