/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/snapshot.h"

#include <string.h>

#include "dataplane/lcore.h"
#include "dataplane/tx.h"

static void copy_lcore(struct lcore *lcore, struct plane_lcore *copy)
{
	const struct flow_shard *shard = lcore->worker.shard;

	*copy = (struct plane_lcore){
		.kind = lcore->kind,
		.number = lcore->number,
		.cpu = lcore->cpu,
		.stages = lcore->worker.stages,
		.bursts = lcore->bursts,
		.idle_polls = lcore->idle_polls,
		.busy_cycles = lcore->busy_cycles,
		.idle_cycles = lcore->idle_cycles,
		.sleep_cycles = lcore->sleep_cycles,
	};
	memcpy(copy->ports, lcore->ports, sizeof(copy->ports));
	memcpy(copy->crowded_s, lcore->balance.crowded_s, sizeof(copy->crowded_s));
	if (shard != NULL) {
		copy->flows = shard->table.count;
		copy->capacity = shard->table.capacity;
		for (unsigned i = 0; i < FLOW_N_PHASES; i++)
			copy->phase_flows[i] = shard->wheel[i].count;
		copy->flow = shard->counters;
		copy->unmatched = lcore->policy.unmatched;
	}
}

/* Everything of the lcore, as it is between two bursts. */
static void copy(struct lcore *lcore)
{
	struct snapshot *snapshot = &lcore->snapshot;
	const struct flow_shard *shard = lcore->worker.shard;

	copy_lcore(lcore, &snapshot->lcore);
	for (unsigned wire = 0; wire < FLOW_MAX_WIRES; wire++) {
		struct path_counters *sum = &snapshot->wires[wire];

		*sum = lcore->worker.counters[wire];
		if (lcore->parser != NULL)
			path_counters_add(sum, &parser_counters(lcore->parser)[wire]);
		path_counters_add(&snapshot->lcore.sum, sum);
		snapshot->wire_flows[wire] = shard == NULL ? 0 : shard->wire_flows[wire];
	}
	memset(snapshot->distrusted, 0, sizeof(snapshot->distrusted));
	for (unsigned i = 0; i < lcore->n_rx; i++)
		snapshot->distrusted[lcore->rx[i].from.port] |= lcore->trust[i].lost != 0;
	memcpy(snapshot->fallen_back, lcore->fallen_back, sizeof(snapshot->fallen_back));
	memset(snapshot->under_way, 0, sizeof(snapshot->under_way));
}

static void complete(struct snapshot *snapshot)
{
	atomic_store_explicit(&snapshot->done, snapshot->number, memory_order_release);
}

static void take_part(struct lcore *lcore, uint32_t number)
{
	struct snapshot *snapshot = &lcore->snapshot;

	send_settle(lcore);
	copy(lcore);
	snapshot->number = number;
	snapshot->n_awaited = 0;
	snapshot->markers_wait = false;
	for (unsigned i = 0; i < lcore->n_lcores; i++) {
		snapshot->awaited[i] = lcore->from[i] != NULL;
		snapshot->n_awaited += snapshot->awaited[i];
		if (lcore->to[i] != NULL) {
			lcore->to[i]->marker = number;
			snapshot->markers_wait |= !ring_push_marker(lcore->to[i]);
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

void snapshot_asked(struct lcore *lcore, uint32_t number)
{
	/* a marker may have come first */
	if (!taken(&lcore->snapshot, number))
		take_part(lcore, number);
}

void snapshot_marker(struct lcore *lcore, unsigned sender, uint32_t number)
{
	struct snapshot *snapshot = &lcore->snapshot;

	if (!taken(snapshot, number))
		take_part(lcore, number);
	if (number != snapshot->number || !snapshot->awaited[sender])
		return; /* of a snapshot that control gave up */
	snapshot->awaited[sender] = false;
	if (--snapshot->n_awaited == 0)
		complete(snapshot);
}

void snapshot_push_markers(struct lcore *lcore)
{
	lcore->snapshot.markers_wait = false;
	for (unsigned i = 0; i < lcore->n_lcores; i++)
		if (lcore->to[i] != NULL)
			lcore->snapshot.markers_wait |= !ring_push_marker(lcore->to[i]);
}
