/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/health.h"

#include <string.h>

#include "base/clock.h"

#define LEAST_FAILURES 8
#define BACK_OFF_MS 1000
#define MOST_BACK_OFF_MS 60000
#define FAILED_IN_A_ROW 16
#define FAILED_OF_A_SECOND 3
#define STUCK 4
#define STUCK_US (2 * CLOCK_US_PER_S)
/* What has their marks yet when rules were taken out has come by then. */
#define STALE_DRAIN_US (CLOCK_US_PER_S / 10)

static const char *const names[HEALTH_N_STATES] = {
	[HEALTH_CLOSED] = "closed",
	[HEALTH_OPEN] = "open",
	[HEALTH_TRYING] = "trying",
};

const char *health_state_name(enum health_state state)
{
	return names[state];
}

void health_init(struct health *health, const struct health_config *config)
{
	memset(health, 0, sizeof(*health));
	health->config = *config;
	if (health->config.least_failures == 0)
		health->config.least_failures = LEAST_FAILURES;
	if (health->config.back_off_ms == 0)
		health->config.back_off_ms = BACK_OFF_MS;
}

void health_call(struct health *health, bool well, uint8_t why)
{
	if (well) {
		health->now.calls_done++;
		health->row = health->guesses = 0;
		health->stuck = 0;
		health->n_guessed = 0;
		return;
	}
	health->now.calls_failed++;
	health->row++;
	health->call_why = why;
}

void health_call_guessed(struct health *health, uint8_t why)
{
	health_call(health, false, why);
	health->guesses++;
}

void health_delete_failed(struct health *health, uint8_t why, bool again)
{
	health->row += !again;
	if (health->stuck++ == 0)
		health->stuck_us = health->now.us;
	health->call_why = why;
}

/* Nothing is in the NIC, and it lets nothing go: where no flow can be tried, nothing else would tell. */
static bool is_stuck(const struct health *health)
{
	return health->stuck >= STUCK && health->now.in_hw == 0 &&
	       health->now.us - health->stuck_us >= STUCK_US;
}

bool health_has_stale(const struct health *health)
{
	return health->has_stale;
}

void health_flushed(struct health *health, uint64_t now_us)
{
	health->has_stale = false;
	health->then.us = now_us;
}

bool health_calls_fail(const struct health *health)
{
	return health->calls_fail;
}

static void gather(struct health *health, uint64_t now_us)
{
	struct health_sums *now = &health->now;
	struct health_sums *part = &health->part[(health->n_parts - 1) % HEALTH_PARTS];
	uint64_t proven = 0, failed = 0, stale = 0;
	uint32_t in_hw = 0;

	for (unsigned i = 0; i < HEALTH_MAX_WORKERS; i++) {
		struct health_worker *worker = &health->worker[i];
		uint64_t fell = atomic_load_explicit(&worker->failed, memory_order_acquire);

		if (fell != health->seen[i])
			health->flow_why = atomic_load_explicit(&worker->why, memory_order_relaxed);
		health->seen[i] = fell;
		failed += fell;
		proven += atomic_load_explicit(&worker->proven, memory_order_relaxed);
		stale += atomic_load_explicit(&worker->stale, memory_order_relaxed);
		in_hw += atomic_load_explicit(&worker->in_hw, memory_order_relaxed);
	}
	now->proven = proven;
	now->failed = failed;
	now->stale = stale;
	now->in_hw = in_hw;
	now->us = now_us;
	if (health->n_parts == 0 || now_us - part->us >= CLOCK_US_PER_S / HEALTH_PARTS) {
		/* what came since the last look is of the new part */
		part = &health->part[health->n_parts++ % HEALTH_PARTS];
		*part = health->last;
		part->us = now_us;
	}
	if (part->in_hw < in_hw)
		part->in_hw = in_hw;
	health->last = *now;
}

/* Too much of the last second went wrong; tells the reason. */
static bool goes_wrong(const struct health *health, uint8_t *why)
{
	const struct health_sums *now = &health->now, *then = now;
	uint32_t in_hw = now->in_hw;

	/* the parts of the last second, newest first; at least the one that is under way */
	for (unsigned i = health->n_parts; i > 0 && health->n_parts - i < HEALTH_PARTS; i--) {
		const struct health_sums *part = &health->part[(i - 1) % HEALTH_PARTS];

		if (i < health->n_parts && now->us - part->us > CLOCK_US_PER_S)
			break;
		then = part;
		in_hw = part->in_hw > in_hw ? part->in_hw : in_hw;
	}
	uint64_t failed = now->failed - then->failed;
	uint64_t calls_failed = now->calls_failed - then->calls_failed;

	*why = OFFLOAD_STALE;
	if (now->stale != health->then.stale)
		return true;
	*why = health->call_why;
	if (health->row >= FAILED_IN_A_ROW || is_stuck(health) ||
		(calls_failed >= FAILED_OF_A_SECOND && now->calls_done == then->calls_done))
		return true;
	*why = health->flow_why;
	return failed >= health->config.least_failures && failed * 4 >= in_hw;
}

static void enter(struct health *health, enum health_state state)
{
	health->then = health->now;
	health->proven_us = 0;
	health->stuck = 0;
	/* what was before does not count any more */
	health->n_parts = 0;
	atomic_store_explicit(&health->since_us, health->now.us, memory_order_relaxed);
	atomic_store_explicit(&health->state, (uint8_t)state, memory_order_relaxed);
}

static enum health_decision opens(struct health *health, uint8_t why)
{
	uint64_t last_us = (uint64_t)health->back_off_ms * 1000;
	uint64_t since_us = atomic_load_explicit(&health->since_us, memory_order_relaxed);
	bool again = health_state(health) != HEALTH_CLOSED || health->now.us - since_us < last_us;

	if (!again || health->back_off_ms == 0)
		health->back_off_ms = health->config.back_off_ms;
	else if (health->back_off_ms < MOST_BACK_OFF_MS / 2)
		health->back_off_ms *= 2;
	else
		health->back_off_ms = MOST_BACK_OFF_MS;
	health->has_stale |= why == OFFLOAD_STALE;
	atomic_store_explicit(&health->why, why, memory_order_relaxed);
	atomic_store_explicit(&health->retry_us,
		health->now.us + (uint64_t)health->back_off_ms * 1000, memory_order_relaxed);
	enter(health, HEALTH_OPEN);
	/* behind the state: who sees it counted sees the state, or a later one */
	atomic_store_explicit(&health->opened,
		atomic_load_explicit(&health->opened, memory_order_relaxed) + 1,
		memory_order_release);
	return HEALTH_OPENS;
}

static enum health_decision tries(struct health *health)
{
	health->calls_fail = (health->row > 0 || health->stuck > 0) &&
			     health->now.calls_done == health->then.calls_done;
	/* nobody knows whether a restart helps: more and more seldom */
	if (health->calls_fail && health->guesses == health->row && health->stuck == 0) {
		health->n_guessed++;
		health->calls_fail = (health->n_guessed & (health->n_guessed - 1)) == 0;
	}
	health->has_stale |= health->now.stale != health->then.stale;
	health->row = health->guesses = 0;
	atomic_store_explicit(&health->retry_us, 0, memory_order_relaxed);
	enter(health, HEALTH_TRYING);
	return HEALTH_TRIES;
}

static enum health_decision try_on(struct health *health)
{
	const struct health_sums *now = &health->now;
	struct health_sums *then = &health->then;

	if (now->us - then->us < STALE_DRAIN_US)
		then->stale = now->stale;
	if (now->stale > then->stale)
		return opens(health, OFFLOAD_STALE);
	if (now->calls_failed > then->calls_failed)
		return opens(health, health->call_why);
	if (now->failed > then->failed)
		return opens(health, health->flow_why);
	if (is_stuck(health))
		return opens(health, health->call_why);
	if (now->proven == then->proven)
		return HEALTH_STAYS;
	if (health->proven_us == 0)
		health->proven_us = now->us;
	if (now->us - health->proven_us < CLOCK_US_PER_S)
		return HEALTH_STAYS;
	enter(health, HEALTH_CLOSED);
	return HEALTH_CLOSES;
}

enum health_decision health_turn(struct health *health, uint64_t now_us)
{
	uint8_t why;

	gather(health, now_us);
	if (health_state(health) == HEALTH_CLOSED)
		return goes_wrong(health, &why) ? opens(health, why) : HEALTH_STAYS;
	if (health_state(health) == HEALTH_TRYING)
		return try_on(health);
	if (now_us < atomic_load_explicit(&health->retry_us, memory_order_relaxed))
		return HEALTH_STAYS;
	return tries(health);
}

void health_reopen(struct health *health, uint64_t now_us)
{
	health->now.us = now_us;
	opens(health, health->call_why);
}
