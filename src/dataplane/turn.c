/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/turn.h"

#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/idle.h"
#include "base/privilege.h"
#include "dataplane/ask.h"
#include "dataplane/handoff.h"
#include "dataplane/rx.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"
#include "offload/agent.h"

/*
 * Unless a turn left something where it was, the next one waits so long. With one that followed at once after 24
 * packets a worker that marked packets come to turned all the time at half of what it can carry, each packet half again
 * as dear. A turn and each of its polls cost some hundred cycles whatever they bring: after 4 us that was 37 % of the
 * time at such a load, after 8 us 35 %, after 16 us no less.
 */
#define GATHER_US 8

static bool is_worker(const struct station *station)
{
	return station->worker.shard != NULL;
}

/* What was lost a while ago is tried again. */
static void trust_anew(struct station *station)
{
	for (unsigned i = 0; i < station->n_rx; i++) {
		struct station_rx *rx = &station->rx[i];
		const uint8_t again = trust_again(&station->trust[i], station->now_us);

		if (again == 0)
			continue;
		rx->from.trusted |= again;
		station_event(station, (struct path_event){
					       .kind = PATH_EVENT_SHARDING_RETRY,
					       .worker = (uint8_t)station->worker.number,
					       .port = rx->from.port,
				       });
	}
}

/* Once a second. */
static __rte_noinline void look_each_second(struct station *station)
{
	station->look_us = station->now_us + BALANCE_LOOK_US;
	trust_anew(station);
	if (station->board == NULL)
		return;
	const struct flow_counters *counters = &station->worker.shard->counters;
	const uint64_t had[BALANCE_N] = {
		[BALANCE_FLOWS] = counters->learned, [BALANCE_PACKETS] = counters->packets};
	const unsigned news = balance_look(&station->balance, station->board, station->number,
		station->worker.steer.n_shards, had);

	for (unsigned of = 0; of < BALANCE_N; of++)
		if (news >> of & 1)
			station_event(station, (struct path_event){
						       .kind = PATH_EVENT_CROWDED,
						       .reason = of & 0xff,
						       .worker = (uint8_t)station->number,
					       });
}

/* From here to the next turn nothing is asked of a paused port. */
static void see_pauses(struct station *station)
{
	uint32_t paused = atomic_load_explicit(station->pause, memory_order_acquire);

	if (likely(paused == station->paused))
		return;
	station->paused = paused;
	station->careful = paused | station->any_length;
	atomic_store_explicit(&station->paused_seen, paused, memory_order_release);
}

bool turn_station(struct station *station, uint64_t now_us)
{
	bool busy = false;

	see_pauses(station);
	station->now_us = now_us;
	station->turns++;
	station->more_wait = false;
	if (unlikely(now_us >= station->look_us))
		look_each_second(station);
	if (station->receiving)
		busy |= rx_poll(station);
	busy |= handoff_take(station);
	if (station->parser != NULL)
		parser_advance(station->parser, now_us);
	if (is_worker(station)) {
		busy |= !flow_shard_advance(station->worker.shard, now_us);
		busy |= policy_turn(&station->policy, station->worker.shard, !busy,
			station_verdict_changed, station);
		flow_shard_flush(station->worker.shard);
		if (station->worker.agent != NULL)
			agent_turn(station->worker.agent, now_us);
	}
	send_settle(station);
	if (station->snapshot.markers_wait)
		snapshot_push_markers(station);
	busy |= ask_answer(station);
	station->busy = busy;
	return busy;
}

bool turn_timed(struct station *station, uint64_t *tsc)
{
	uint64_t now_us = tsc_clock_us(station->clock, *tsc);

	/* a record's times are all told by what the machine's clock is set to when it is reported */
	if (is_worker(station))
		station->worker.shard->origin_us = tsc_clock_origin_us(station->clock);
	bool busy = turn_station(station, RTE_MAX(now_us, station->now_us));
	uint64_t now = rte_rdtsc();
	uint64_t passed = now > *tsc ? now - *tsc : 0; /* the counter may have begun anew */

	if (busy)
		station->busy_cycles += passed;
	else
		station->idle_cycles += passed;
	*tsc = now;
	return busy;
}

uint64_t turn_wait(bool more_wait, uint64_t *tsc)
{
	const uint64_t begin = *tsc, most = rte_get_tsc_hz() * GATHER_US / CLOCK_US_PER_S;

	if (more_wait)
		return 0;
	/* a counter that begins anew ends it */
	while (*tsc - begin < most) {
		rte_pause();
		*tsc = rte_rdtsc();
	}
	return *tsc > begin ? *tsc - begin : 0;
}

void turn_gather(struct station *station, uint64_t *tsc)
{
	station->idle_cycles += turn_wait(station->more_wait, tsc);
}

void *turn_forever(void *argument)
{
	struct station *station = argument;
	unsigned idle = 0;
	uint64_t tsc = rte_rdtsc();

	privilege_drop_admin();
	/* a thread that DPDK knows has a cache of mbufs of its own; without, it only is slower */
	int registered = rte_thread_register();

	while (!station->leaving) {
		if (turn_timed(station, &tsc)) {
			idle = 0;
			if (!station->poll_always)
				turn_gather(station, &tsc);
		} else if (!station->poll_always) {
			idle_wait(&idle);

			uint64_t awake = rte_rdtsc();

			station->sleep_cycles += awake > tsc ? awake - tsc : 0;
			tsc = awake;
		}
	}
	if (registered == 0)
		rte_thread_unregister();
	return NULL;
}
