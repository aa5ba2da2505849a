/* SPDX-License-Identifier: BSD-3-Clause */
/* What control asks the plane. */
#include <errno.h>
#include <string.h>

#include "base/idle.h"
#include "base/monotonic.h"
#include "dataplane/poll.h"
#include "dataplane/snapshot.h"
#include "plane/ask.h"
#include "plane/plane_private.h"

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
		bytes += flow_shard_memory(plane_shard_lcore(plane, i)->worker.shard);
	return bytes;
}

uint32_t plane_positions(const struct plane *plane, unsigned worker)
{
	return flow_table_positions(&plane_shard_lcore(plane, worker)->worker.shard->table);
}

struct rte_mempool *plane_pool(const struct plane *plane)
{
	return plane->pools[0];
}

int64_t plane_correct_clock(struct plane *plane)
{
	return tsc_clock_correct(&plane->clock);
}

uint64_t plane_origin_us(const struct plane *plane)
{
	return tsc_clock_origin_us(&plane->clock);
}

uint64_t plane_now_us(const struct plane *plane)
{
	return tsc_clock_us(&plane->clock, rte_rdtsc());
}

static int wait_for(const struct lcore *lcore, uint32_t number)
{
	const uint64_t begin_us = monotonic_us();
	unsigned idle = 0;

	while (atomic_load_explicit(&lcore->snapshot.done, memory_order_acquire) != number) {
		if (ask_gives_up(lcore->ask->patience, idle, begin_us))
			return -ETIMEDOUT;
		idle_wait(&idle);
	}
	return 0;
}

static void add_lcore(struct plane_snapshot *sum, const struct snapshot *snapshot)
{
	sum->lcores[sum->n_lcores++] = snapshot->lcore;
	for (unsigned wire = 0; wire < FLOW_MAX_WIRES; wire++) {
		path_counters_add(&sum->wires[wire], &snapshot->wires[wire]);
		sum->wires[wire].held += snapshot->under_way[wire];
		sum->wire_flows[wire] += snapshot->wire_flows[wire];
	}
	for (unsigned port = 0; port < PLANE_MAX_PORTS; port++) {
		sum->rss_fallen_back[port] |= snapshot->distrusted[port];
		sum->rss_fallbacks[port] += snapshot->fallen_back[port];
	}
}

void plane_gather(const struct plane *plane, struct plane_snapshot *snapshot)
{
	*snapshot = (struct plane_snapshot){.now_us = plane_now_us(plane)};
	for (unsigned i = 0; i < plane->n_lcores; i++)
		add_lcore(snapshot, &plane->lcores[i].snapshot);
	plane_nic_rules_gather(plane, snapshot);
}

/* Lcores that have no thread (any more) answer on ours. */
static int ask_snapshot(struct plane *plane, struct lcore *lcore)
{
	if (!lcore->started) {
		snapshot_asked(lcore, plane->n_snapshots);
		return 0;
	}
	if (ask_prepare(lcore, ASK_SNAPSHOT) == NULL)
		return -ETIMEDOUT;
	lcore->ask->ask.number = plane->n_snapshots;
	return ask_lcore(lcore);
}

/* An lcore that has not answered what it was asked before: a picture is not begun, whose markers would fill its rings. */
static bool is_deaf(const struct plane *plane)
{
	bool deaf = false;

	for (unsigned i = 0; i < plane->n_lcores; i++)
		deaf |= plane->lcores[i].started && ask_waits(&plane->lcores[i]);
	return deaf;
}

void plane_be_quick(struct plane *plane)
{
	ask_be_quick(&plane->patience);
}

int plane_snapshot(struct plane *plane, struct plane_snapshot *snapshot)
{
	if (plane->patience.quick && is_deaf(plane))
		return -ETIMEDOUT;
	if (++plane->n_snapshots == 0)
		plane->n_snapshots = 1; /* 0 is no marker */
	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (ask_snapshot(plane, &plane->lcores[i]) < 0 && plane->patience.quick)
			return -ETIMEDOUT;
	if (!plane->running) {
		/* markers lie in rings that nobody takes from: let each lcore have one more iteration */
		for (unsigned i = 0; i < plane->n_lcores; i++)
			(void)lcore_poll(&plane->lcores[i], plane->lcores[i].now_us);
	}
	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (wait_for(&plane->lcores[i], plane->n_snapshots) < 0)
			return -ETIMEDOUT;
	plane_gather(plane, snapshot);
	return 0;
}

int plane_page(struct plane *plane, unsigned worker, uint32_t position, struct plane_page *page)
{
	struct lcore *lcore = plane_shard_lcore(plane, worker);
	struct ask *ask = ask_prepare(lcore, ASK_PAGE);

	if (ask == NULL)
		return -ETIMEDOUT;
	ask->position = position;
	if (ask_lcore(lcore) < 0)
		return -ETIMEDOUT;
	*page = ask->page;
	return 0;
}

int plane_kill(struct plane *plane, const struct flow_key *key, unsigned *worker,
	struct flow_record *record)
{
	const struct packet_info info = {.key = *key, .hash = flow_key_hash(&plane->secret, key)};

	*worker = steer_shard(&plane->steer, &info);
	struct lcore *lcore = plane_shard_lcore(plane, *worker);
	/* what was killed after control had given up is not killed once more: it would not be there */
	struct ask *ask = ask_late(lcore, ASK_KILL, key);

	if (ask == NULL) {
		ask = ask_prepare(lcore, ASK_KILL);
		if (ask == NULL)
			return -ETIMEDOUT;
		ask->key = info.key;
		ask->hash = info.hash;
		if (ask_lcore(lcore) < 0)
			return -ETIMEDOUT;
	}
	if (!ask->found)
		return -ENOENT;
	*record = ask->record;
	return 0;
}

struct blocks *plane_blocks(const struct plane *plane)
{
	return plane->blocks;
}

struct rules *plane_rules(const struct plane *plane)
{
	return plane->rules;
}

static uint64_t lowest(const struct plane *plane, uint64_t (*of)(const struct policy *policy))
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (plane->lcores[i].worker.shard != NULL)
			least = RTE_MIN(least, of(&plane->lcores[i].policy));
	return least;
}

uint64_t plane_decided(const struct plane *plane)
{
	return lowest(plane, policy_decided);
}

struct programs *plane_programs(const struct plane *plane)
{
	return plane->programs;
}

struct next_hops *plane_next_hops(const struct plane *plane)
{
	return plane->next_hops;
}

uint64_t plane_policy_changed(struct plane *plane)
{
	return atomic_fetch_add_explicit(&plane->policy_generation, 1, memory_order_release) + 1;
}

uint64_t plane_policy_decided(const struct plane *plane)
{
	return lowest(plane, policy_decided_others);
}

unsigned plane_policy_workers(const struct plane *plane, uint64_t number)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++)
		n += plane->lcores[i].worker.shard != NULL &&
		     policy_decided_others(&plane->lcores[i].policy) >= number;
	return n;
}

int plane_follow(struct plane *plane, bool follow)
{
	int ret = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];
		struct ask *ask = ask_prepare(lcore, ASK_FOLLOW);

		if (ask != NULL)
			ask->follow = follow;
		if (ask == NULL || ask_lcore(lcore) < 0)
			ret = -ETIMEDOUT;
	}
	return ret;
}

unsigned plane_events(struct plane *plane, struct path_event *events, unsigned max, uint64_t *lost)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];
		uint64_t all = atomic_load_explicit(&lcore->events_lost, memory_order_relaxed);

		n += mailbox_pop(lcore->events, &events[n], max - n);
		*lost += all - lcore->events_lost_told;
		lcore->events_lost_told = all;
	}
	return n;
}

int plane_watch_drops(struct plane *plane, const struct drop_wanted *wanted)
{
	int ret = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];
		struct ask *ask = ask_prepare(lcore, ASK_WATCH);

		if (ask != NULL) {
			ask->drops = *wanted;
			ask->drops.parts = plane->n_lcores;
		}
		if (ask == NULL || ask_lcore(lcore) < 0)
			ret = -ETIMEDOUT;
	}
	return ret;
}

unsigned plane_drops(struct plane *plane, struct drop_sample *samples, unsigned max,
	uint64_t left_out[DROP_N_REASONS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct drop_watch *watch = &plane->lcores[i].drops;

		for (unsigned reason = 0; reason < DROP_N_REASONS; reason++) {
			const uint64_t all = atomic_load_explicit(
				&watch->left_out[reason], memory_order_relaxed);

			left_out[reason] += all - watch->left_out_told[reason];
			watch->left_out_told[reason] = all;
		}
		n += mailbox_pop(watch->samples, &samples[n], max - n);
	}
	return n;
}
