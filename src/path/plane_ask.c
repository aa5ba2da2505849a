/* SPDX-License-Identifier: BSD-3-Clause */
/* What control asks the plane. */
#include <errno.h>
#include <string.h>

#include "base/idle.h"
#include "path/ask.h"
#include "path/plane_parts.h"
#include "path/snapshot.h"
#include "path/turn.h"

/* Looks in vain for a station's part, most of them 250 us apart. */
#define SNAPSHOT_TRIES 8000

const struct plane_config *plane_config(const struct plane *plane)
{
	return &plane->config;
}

enum simd_level plane_simd(const struct plane *plane)
{
	return plane->secret.simd;
}

size_t plane_memory(const struct plane *plane)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < plane->config.n_workers; i++)
		bytes += flow_shard_memory(plane_shard_station(plane, i)->worker.shard);
	return bytes;
}

struct rte_mempool *plane_pool(const struct plane *plane)
{
	return plane->pools[0];
}

void plane_correct_clock(struct plane *plane)
{
	tsc_clock_correct(&plane->clock);
}

uint64_t plane_origin_us(const struct plane *plane)
{
	return plane->clock.origin_us;
}

uint64_t plane_now_us(const struct plane *plane)
{
	return tsc_clock_us(&plane->clock, rte_rdtsc());
}

static int wait_for(const struct station *station, uint32_t number)
{
	unsigned idle = 0;

	while (atomic_load_explicit(&station->snapshot.done, memory_order_acquire) != number) {
		if (idle == SNAPSHOT_TRIES)
			return -ETIMEDOUT;
		idle_wait(&idle);
	}
	return 0;
}

static void add_station(struct plane_snapshot *sum, const struct snapshot *snapshot)
{
	sum->stations[sum->n_stations++] = snapshot->station;
	for (unsigned wire = 0; wire < FLOW_MAX_WIRES; wire++) {
		path_counters_add(&sum->wires[wire], &snapshot->wires[wire]);
		sum->wires[wire].held += snapshot->under_way[wire];
		sum->wire_flows[wire] += snapshot->wire_flows[wire];
	}
	for (unsigned port = 0; port < PLANE_MAX_PORTS; port++)
		sum->rss_fallen_back[port] |= snapshot->fallen_back[port];
}

void plane_gather(const struct plane *plane, struct plane_snapshot *snapshot)
{
	*snapshot = (struct plane_snapshot){.now_us = plane_now_us(plane)};
	for (unsigned i = 0; i < plane->n_stations; i++)
		add_station(snapshot, &plane->stations[i].snapshot);
}

/* Stations that have no thread (any more) answer on ours. */
static void ask_snapshot(struct plane *plane, struct station *station)
{
	if (!station->started) {
		snapshot_asked(station, plane->n_snapshots);
		return;
	}
	if (ask_prepare(station, ASK_SNAPSHOT) == NULL)
		return;
	station->ask.ask.number = plane->n_snapshots;
	(void)ask_station(station);
}

int plane_snapshot(struct plane *plane, struct plane_snapshot *snapshot)
{
	if (++plane->n_snapshots == 0)
		plane->n_snapshots = 1; /* 0 is no marker */
	for (unsigned i = 0; i < plane->n_stations; i++)
		ask_snapshot(plane, &plane->stations[i]);
	if (!plane->running) {
		/* markers lie in rings that nobody takes from: let each station have one more turn */
		for (unsigned i = 0; i < plane->n_stations; i++)
			(void)turn_station(&plane->stations[i], plane->stations[i].now_us);
	}
	for (unsigned i = 0; i < plane->n_stations; i++)
		if (wait_for(&plane->stations[i], plane->n_snapshots) < 0)
			return -ETIMEDOUT;
	plane_gather(plane, snapshot);
	return 0;
}

int plane_page(struct plane *plane, unsigned worker, uint32_t position, struct plane_page *page)
{
	struct station *station = plane_shard_station(plane, worker);
	struct ask *ask = ask_prepare(station, ASK_PAGE);

	if (ask == NULL)
		return -ETIMEDOUT;
	ask->position = position;
	if (ask_station(station) < 0)
		return -ETIMEDOUT;
	*page = ask->page;
	return 0;
}

static int find(struct plane *plane, enum ask_kind kind, const struct flow_key *key,
	unsigned *worker, struct flow_record *record)
{
	const struct packet_info info = {.key = *key, .hash = flow_key_hash(&plane->secret, key)};

	*worker = steer_shard(&plane->steer, &info);
	struct station *station = plane_shard_station(plane, *worker);
	struct ask *ask = ask_prepare(station, kind);

	if (ask == NULL)
		return -ETIMEDOUT;
	ask->key = info.key;
	ask->hash = info.hash;
	if (ask_station(station) < 0)
		return -ETIMEDOUT;
	if (!ask->found)
		return -ENOENT;
	*record = ask->record;
	return 0;
}

int plane_find(struct plane *plane, const struct flow_key *key, unsigned *worker,
	struct flow_record *record)
{
	return find(plane, ASK_FIND, key, worker, record);
}

int plane_kill(struct plane *plane, const struct flow_key *key, unsigned *worker,
	struct flow_record *record)
{
	return find(plane, ASK_KILL, key, worker, record);
}

int plane_follow(struct plane *plane, bool follow)
{
	int ret = 0;

	for (unsigned i = 0; i < plane->n_stations; i++) {
		struct station *station = &plane->stations[i];
		struct ask *ask = ask_prepare(station, ASK_FOLLOW);

		if (ask != NULL)
			ask->follow = follow;
		if (ask == NULL || ask_station(station) < 0)
			ret = -ETIMEDOUT;
	}
	return ret;
}

unsigned plane_events(struct plane *plane, struct path_event *events, unsigned max, uint64_t *lost)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plane->n_stations; i++) {
		struct station *station = &plane->stations[i];
		uint64_t all = atomic_load_explicit(&station->events_lost, memory_order_relaxed);

		n += mailbox_pop(station->events, &events[n], max - n);
		*lost += all - station->events_lost_told;
		station->events_lost_told = all;
	}
	return n;
}
