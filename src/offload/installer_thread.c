/* SPDX-License-Identifier: BSD-3-Clause */
/* The installer's thread. */
#include <errno.h>
#include <time.h>

#include "offload/installer_parts.h"

/* Requests of each worker before the NIC's answers are taken again. */
#define ROUNDS 32
/* Between two looks at the port's health. */
#define LOOK_US 5000
/* What counters have of an installer's time is not saved for longer. */
#define COUNTS_MOST_US 20000
#define SLEEP_NS 20000
/*
 * A rule is to be there a millisecond after it was asked for, also where they come one by one: a sleep is longer than
 * the first one by a sixteenth of the time that nothing has come for, and the most after ten milliseconds. When each was
 * twice the last one that was after 0.6. With some hundred rules a second it wakes several times as often for it.
 */
#define SLEEP_SHARE 16
#define MOST_SLEEP_NS 640000
#define MOST_SLEEP_AWAITING_NS 160000

/* What has to be done first. 0, or it failed: the breaker is open again. */
static int prepare_try(struct installer *installer)
{
	/* of a port that is down calls may do well: its rules are gone */
	if (installer->config.restart &&
		(installer->down || health_calls_fail(&installer->health))) {
		int ret = installer_restart(installer);

		if (ret < 0)
			return ret;
	} else if (installer->provider) {
		kinds_change_actions(installer);
	}
	if (!installer->provider)
		return 0;
	/* after a restart, too: there are ports that keep their rules */
	return health_has_stale(&installer->health) ? installer_flush(installer) : 0;
}

static void thread_try_again(struct installer *installer)
{
	uint8_t why = atomic_load_explicit(&installer->health.why, memory_order_relaxed);

	if (prepare_try(installer) < 0) {
		why = atomic_load_explicit(&installer->health.why, memory_order_relaxed);
		installer_note(installer, CHANGE_BREAKER_OPEN, why);
		return;
	}
	installer_note(installer, CHANGE_BREAKER_TRIES, why);
}

/* Nothing is asked of a port whose calls fail, or that is about to be tried. */
static bool look_at_static_rules(struct installer *installer, uint64_t now_us)
{
	return installer->static_rules != NULL && !installer->holds && !installer->down &&
	       static_rules_turn(installer->static_rules, now_us,
		       health_state(&installer->health) != HEALTH_OPEN);
}

/* Answers first: none is late that only was not taken. */
static bool look_after(struct installer *installer)
{
	struct health *health = &installer->health;
	bool busy = installer_poll(installer);
	uint64_t now_us = installer_now_us(installer);

	await_judge(installer, now_us);
	await_gauge(installer, 0);
	if (now_us - installer->looked_us < LOOK_US)
		return busy;
	installer->looked_us = now_us;
	await_orphans(installer, now_us);
	kinds_look(installer, now_us);
	installer_look_at_trial(installer, now_us);
	busy |= look_at_static_rules(installer, now_us);
	switch (health_turn(health, now_us)) {
	case HEALTH_OPENS:
		installer_note(installer, CHANGE_BREAKER_OPEN,
			atomic_load_explicit(&health->why, memory_order_relaxed));
		break;
	case HEALTH_TRIES:
		thread_try_again(installer);
		break;
	case HEALTH_CLOSES:
		installer_note(installer, CHANGE_BREAKER_CLOSED, 0);
		break;
	case HEALTH_STAYS:
		break;
	}
	return busy;
}

/*
 * A worker's next request, deletes before inserts before counters; one that is held goes first. But counters may have as
 * much time as all else takes: whose counter is not read for long leaves the NIC, which were more to do yet.
 */
static bool next_request(struct desk *desk, struct installer_request *request)
{
	static const enum installer_op order[] = {
		INSTALLER_REMOVE, INSTALLER_INSERT, INSTALLER_COUNT};

	if (desk->held_us != 0) {
		*request = desk->held;
		return true;
	}
	if (desk->counts_us > 0 && mailbox_pop(desk->asked[INSTALLER_COUNT], request, 1) == 1)
		return true;
	for (unsigned i = 0; i < INSTALLER_N_OPS; i++) {
		if (mailbox_pop(desk->asked[order[i]], request, 1) == 1)
			return true;
	}
	return false;
}

/* Carries it out, or holds it. */
static bool try_to(
	struct installer *installer, unsigned worker, const struct installer_request *request)
{
	struct desk *desk = &installer->desk[worker];

	if (installer_carry_out(installer, worker, request)) {
		desk->held_us = 0;
		return true;
	}
	if (desk->held_us == 0) {
		desk->held = *request;
		desk->held_us = installer_now_us(installer);
	}
	return false;
}

/* Has the port as many rules as it may, or will it have them when it has answered? What leaves it is still there. */
static bool is_at_limit(const struct installer *installer)
{
	uint32_t rules = atomic_load_explicit(&installer->counters.rules, memory_order_relaxed);

	if (installer->static_rules != NULL) {
		/* static rules go before those of flows */
		if (static_rules_want_room(installer->static_rules))
			return true;
		rules += static_rules_there(installer->static_rules);
	}
	const uint32_t most = atomic_load_explicit(&installer->most_rules, memory_order_relaxed);

	return most != 0 && rules + installer->n_inserts >= most;
}

/* What a request took is for counters to have, or they have had it. */
static void share_time(
	struct installer *installer, struct desk *desk, enum installer_op op, uint64_t took_us)
{
	const uint32_t before = atomic_load_explicit(&installer->count_16us, memory_order_relaxed);
	const int64_t us = (int64_t)RTE_MIN(took_us + 1, (uint64_t)COUNTS_MOST_US);

	desk->counts_us += op == INSTALLER_COUNT ? -us : us;
	desk->counts_us = RTE_MAX(RTE_MIN(desk->counts_us, COUNTS_MOST_US), 0);
	if (op == INSTALLER_COUNT)
		atomic_store_explicit(&installer->count_16us,
			(63 * before + 16 * (uint32_t)us + 32) / 64, memory_order_relaxed);
}

static bool serve(struct installer *installer, unsigned worker)
{
	struct desk *desk = &installer->desk[worker];
	struct installer_request request;

	if (!next_request(desk, &request))
		return false;
	if (request.op == INSTALLER_INSERT && health_state(&installer->health) == HEALTH_OPEN) {
		desk->held_us = 0;
		installer_answer(installer, worker, &request, -EAGAIN, OFFLOAD_BREAKER);
		return true;
	}
	if (request.op == INSTALLER_INSERT && is_at_limit(installer)) {
		desk->held_us = 0;
		installer_answer(installer, worker, &request, -EAGAIN, OFFLOAD_OUTRANKED);
		return true;
	}
	const uint64_t begin_us = installer_now_us(installer);
	const bool done = try_to(installer, worker, &request);

	share_time(installer, desk, (enum installer_op)request.op,
		installer_now_us(installer) - begin_us);
	return done;
}

static bool is_stopping(const struct installer *installer)
{
	return atomic_load_explicit(&installer->stopping, memory_order_acquire);
}

static bool turn(struct installer *installer)
{
	bool any = true, busy = false;

	for (unsigned round = 0; round < ROUNDS && any && !installer->holds; round++) {
		any = false;
		for (unsigned i = 0; i < installer->config.n_workers; i++) {
			/* what has not begun then does not begin */
			if (is_stopping(installer))
				return true;
			any |= serve(installer, i);
			/* calls may be slow */
			if (installer_now_us(installer) - installer->looked_us >= LOOK_US)
				busy |= look_after(installer);
		}
		busy |= any;
	}
	return look_after(installer) || busy;
}

static void rest(const struct installer *installer, long *ns)
{
	const long most = installer->n_awaited ? MOST_SLEEP_AWAITING_NS : MOST_SLEEP_NS;
	const struct timespec sleep = {.tv_nsec = *ns < most ? *ns : most};

	nanosleep(&sleep, NULL);
	if (*ns < MOST_SLEEP_NS)
		*ns += *ns / SLEEP_SHARE;
}

/* What has begun ends, within a second; all rules go together, and with them what workers asked for. */
static void finish(struct installer *installer)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	uint64_t end_us = installer_now_us(installer) + INSTALLER_STALL_US;
	struct installer_request request;
	struct call call;
	long ns = SLEEP_NS;

	while (installer->n_awaited > 0 && installer_now_us(installer) < end_us) {
		if (!installer_poll(installer))
			rest(installer, &ns);
	}
	while (await_take_oldest(installer, &call))
		installer_end(installer, &call, -EIO, &why, NULL);
	uint32_t left = provider_close(installer->provider);

	if (installer->static_rules != NULL)
		left += installer_clear_static_rules(installer);
	atomic_store_explicit(&installer->counters.rules, left, memory_order_relaxed);
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		struct desk *desk = &installer->desk[i];

		for (; next_request(desk, &request); desk->held_us = 0)
			installer_answer(installer, i, &request,
				request.op == INSTALLER_REMOVE ? 0 : -EIO, OFFLOAD_STOPPING);
	}
	await_gauge(installer, 0);
}

void *installer_run(void *context)
{
	struct installer *installer = context;
	long ns = SLEEP_NS;

	installer_open(installer);
	while (!is_stopping(installer)) {
		if (turn(installer))
			ns = SLEEP_NS;
		else
			rest(installer, &ns);
	}
	finish(installer);
	atomic_store_explicit(&installer->done, true, memory_order_release);
	return NULL;
}
