/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/poll.h"

#include <rte_lcore.h>
#include <rte_pause.h>

#include "base/idle.h"
#include "base/privilege.h"
#include "dataplane/handoff_take.h"
#include "dataplane/punt.h"
#include "dataplane/rx.h"
#include "dataplane/settings.h"
#include "dataplane/snapshot.h"
#include "dataplane/tx.h"
#include "offload/agent.h"

/*
 * Unless an iteration left something where it was, the next one waits so long. With one that followed at once after 24
 * packets a worker that marked packets come to polled all the time at half of what it can carry, each packet half again
 * as dear. An iteration and each of its polls cost some hundred cycles whatever they bring: after 4 us that was 37 % of the
 * time at such a load, after 8 us 35 %, after 16 us no less.
 */
#define GATHER_US 8

static bool is_worker(const struct lcore *lcore)
{
	return lcore->worker.shard != NULL;
}

/* What was lost a while ago is tried again. */
static void trust_anew(struct lcore *lcore)
{
	for (unsigned i = 0; i < lcore->n_rx; i++) {
		struct lcore_rx *rx = &lcore->rx[i];
		const uint8_t again = trust_again(&lcore->trust[i], lcore->now_us);

		if (again == 0)
			continue;
		rx->from.trusted |= again;
		lcore_event(lcore, (struct path_event){
					   .kind = PATH_EVENT_SHARDING_RETRY,
					   .worker = (uint8_t)lcore->worker.number,
					   .port = rx->from.port,
				   });
	}
}

/* Once a second. */
static __rte_noinline void look_each_second(struct lcore *lcore)
{
	lcore->look_us = lcore->now_us + BALANCE_LOOK_US;
	trust_anew(lcore);
	if (lcore->board == NULL)
		return;
	const struct flow_counters *counters = &lcore->worker.shard->counters;
	const uint64_t had[BALANCE_N] = {
		[BALANCE_FLOWS] = counters->learned, [BALANCE_PACKETS] = counters->packets};
	const unsigned news = balance_look(
		&lcore->balance, lcore->board, lcore->number, lcore->worker.steer.n_shards, had);

	for (unsigned of = 0; of < BALANCE_N; of++)
		if (news >> of & 1)
			lcore_event(lcore, (struct path_event){
						   .kind = PATH_EVENT_CROWDED,
						   .reason = of & 0xff,
						   .worker = (uint8_t)lcore->number,
					   });
}

/* From here to the next iteration nothing is asked of a paused port. */
static void see_pauses(struct lcore *lcore)
{
	uint32_t paused = atomic_load_explicit(lcore->pause, memory_order_acquire);

	if (likely(paused == lcore->paused))
		return;
	lcore->paused = paused;
	lcore->careful = paused | lcore->any_length;
	atomic_store_explicit(&lcore->paused_seen, paused, memory_order_release);
}

bool lcore_poll(struct lcore *lcore, uint64_t now_us)
{
	bool busy = false;

	see_pauses(lcore);
	settings_take(lcore);
	lcore->now_us = now_us;
	lcore->iterations++;
	lcore->more_wait = false;
	if (unlikely(now_us >= lcore->look_us))
		look_each_second(lcore);
	if (lcore->receiving)
		busy |= rx_poll(lcore);
	busy |= handoff_take(lcore);
	if (unlikely(lcore->punt.n_lines != 0))
		busy |= punt_turn(lcore);
	if (lcore->parser != NULL)
		parser_advance(lcore->parser, now_us);
	if (is_worker(lcore)) {
		busy |= !flow_shard_advance(lcore->worker.shard, now_us);
		busy |= policy_turn(
			&lcore->policy, lcore->worker.shard, !busy, lcore_verdict_changed, lcore);
		flow_shard_flush(lcore->worker.shard);
		if (lcore->worker.agent != NULL)
			agent_turn(lcore->worker.agent, now_us);
	}
	send_settle(lcore);
	if (lcore->snapshot.markers_wait)
		snapshot_push_markers(lcore);
	busy |= lcore->answer(lcore);
	lcore->busy = busy;
	return busy;
}

bool lcore_poll_timed(struct lcore *lcore, uint64_t *tsc)
{
	uint64_t now_us = tsc_clock_us(lcore->clock, *tsc);

	/* a record's times are all told by what the machine's clock is set to when it is reported */
	if (is_worker(lcore))
		lcore->worker.shard->origin_us = tsc_clock_origin_us(lcore->clock);
	bool busy = lcore_poll(lcore, RTE_MAX(now_us, lcore->now_us));
	uint64_t now = rte_rdtsc();
	uint64_t passed = now > *tsc ? now - *tsc : 0; /* the counter may have begun anew */

	if (busy)
		lcore->busy_cycles += passed;
	else
		lcore->idle_cycles += passed;
	*tsc = now;
	return busy;
}

static uint64_t gather_cycles(void)
{
	return rte_get_tsc_hz() * GATHER_US / CLOCK_US_PER_S;
}

uint64_t lcore_wait(bool more_wait, uint64_t *tsc)
{
	const uint64_t begin = *tsc, most = gather_cycles();

	if (more_wait)
		return 0;
	/* a counter that begins anew ends it */
	while (*tsc - begin < most) {
		rte_pause();
		*tsc = rte_rdtsc();
	}
	return *tsc > begin ? *tsc - begin : 0;
}

void lcore_gather(struct lcore *lcore, uint64_t *tsc)
{
	uint64_t walked = 0, waited;

	/* what would be waited goes to flows that are to be decided again */
	if (!lcore->more_wait && is_worker(lcore))
		walked = policy_walk_until(&lcore->policy, lcore->worker.shard,
			*tsc + gather_cycles(), lcore_verdict_changed, lcore);
	waited = lcore_wait(lcore->more_wait, tsc);
	lcore->busy_cycles += walked;
	lcore->idle_cycles += waited > walked ? waited - walked : 0;
}

void *lcore_run(void *argument)
{
	struct lcore *lcore = argument;
	unsigned idle = 0;
	uint64_t tsc = rte_rdtsc();

	privilege_drop_admin();
	/* a thread that DPDK knows has a cache of mbufs of its own; without, it only is slower */
	int registered = rte_thread_register();

	while (!lcore->leaving) {
		if (lcore_poll_timed(lcore, &tsc)) {
			idle = 0;
			if (!lcore->poll_always)
				lcore_gather(lcore, &tsc);
		} else if (!lcore->poll_always) {
			idle_wait(&idle);

			uint64_t awake = rte_rdtsc();

			lcore->sleep_cycles += awake > tsc ? awake - tsc : 0;
			tsc = awake;
		}
	}
	if (registered == 0)
		rte_thread_unregister();
	return NULL;
}
