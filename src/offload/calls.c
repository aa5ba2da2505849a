/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From top to bottom: how a call ends, calls that are never answered, and how a request becomes a call.
 */
#include "offload/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#define GIVE_UP_US 5000000
/* Inserts that were given up, and are being taken back. */
#define OWN_CALLS 1024
#define POLL_EACH 64
/* Places that one look for orphans goes through, and the time between two rounds of all of them. */
#define ORPHANS_LOOK 4096
#define ORPHANS_US 500000

/* Places in installer_counters.by_answer. */
enum {
	ANSWER_ENOSPC,
	ANSWER_EOPNOTSUPP,
	ANSWER_EAGAIN,
	ANSWER_EIO,
	ANSWER_TIMED_OUT,
};

int calls_init(struct calls *calls, const struct installer_config *config)
{
	const uint32_t n_places = config->provider.n_places;
	int ret = awaited_init(
		&calls->awaited, config->n_workers * INSTALLER_UNDER_WAY + OWN_CALLS, n_places);

	calls->clock = config->clock;
	calls->port = config->number;
	calls->n_places = n_places;
	health_init(&calls->health, &config->health);
	calls->places = calloc(n_places, sizeof(*calls->places));
	calls->changes =
		mailbox_create("changes", sizeof(struct offload_change), INSTALLER_CHANGES);
	if (!calls->places || !calls->changes)
		return -ENOMEM;
	for (unsigned i = 0; i < config->n_workers && ret == 0; i++) {
		calls->answers[i] = mailbox_create(
			"answers", sizeof(struct installer_answer), INSTALLER_UNDER_WAY);
		ret = calls->answers[i] ? 0 : -ENOMEM;
	}
	return ret;
}

void calls_free(struct calls *calls)
{
	for (unsigned i = 0; i < INSTALLER_MAX_WORKERS; i++)
		mailbox_destroy(calls->answers[i]);
	mailbox_destroy(calls->changes);
	awaited_free(&calls->awaited);
	free(calls->places);
}

uint64_t calls_now(const struct calls *calls)
{
	uint64_t us = tsc_clock_us(calls->clock, rte_rdtsc());

	/* 0 is no time */
	return us ? us : 1;
}

/* The thread alone writes these. */
static void add(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

void calls_note(struct calls *calls, enum change_kind kind, uint8_t reason, uint32_t detail)
{
	const struct offload_change change = {
		.time_us = calls_now(calls) & ((UINT64_C(1) << 48) - 1),
		.kind = kind,
		.reason = reason,
		.port = calls->port & 0xff,
		.detail = detail,
	};

	if (mailbox_push(calls->changes, &change, 1) == 0)
		add(&calls->counters.changes_lost);
}

static uint64_t ns_between(const struct calls *calls, uint64_t from, uint64_t to)
{
	/* another core's counter may be some ticks ahead */
	if (to < from)
		return 0;
	return (uint64_t)((double)(to - from) * calls->clock->us_per_tick * 1000);
}

static void hand_over(
	struct calls *calls, unsigned worker, uint64_t asked_tsc, struct installer_answer *answer)
{
	uint64_t us = ns_between(calls, asked_tsc, rte_rdtsc()) / 1000;

	answer->took_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
	/* there is room: see INSTALLER_UNDER_WAY */
	mailbox_push(calls->answers[worker], answer, 1);
}

/* Requests that the NIC was not asked for count, too. */
static void count_done(struct calls *calls, unsigned op, int result)
{
	add(result == 0 ? &calls->counters.done[op] : &calls->counters.failed[op]);
}

void calls_answer(struct calls *calls, unsigned worker, const struct installer_request *request,
	int result, uint8_t reason)
{
	struct installer_answer answer = {
		.place = request->place,
		.result = (int16_t)result,
		.op = request->op,
		.from = request->from,
		.reason = reason,
	};

	count_done(calls, request->op, result);
	hand_over(calls, worker, request->tsc, &answer);
}

static void count_answer(struct calls *calls, int result)
{
	static const int answers[] = {
		[ANSWER_ENOSPC] = -ENOSPC,
		[ANSWER_EOPNOTSUPP] = -EOPNOTSUPP,
		[ANSWER_EAGAIN] = -EAGAIN,
		[ANSWER_EIO] = -EIO,
	};

	for (unsigned i = 0; i < RTE_DIM(answers); i++)
		if (answers[i] == result)
			add(&calls->counters.by_answer[i]);
}

static void set_rule(struct calls *calls, uint32_t place, bool rule)
{
	struct calls_place *state = &calls->places[place];
	_Atomic uint32_t *rules = &calls->counters.rules;
	uint32_t n = atomic_load_explicit(rules, memory_order_relaxed);

	if (state->rule != rule)
		atomic_store_explicit(rules, rule ? n + 1 : n - 1, memory_order_relaxed);
	state->rule = rule;
	calls->n_orphans -= state->orphan;
	state->orphan = state->stays = false;
}

static void call_failed(struct calls *calls, const struct call *call, uint8_t reason)
{
	struct calls_place *place = &calls->places[call->place];

	if (call->op != INSTALLER_REMOVE)
		health_call(&calls->health, false, reason);
	else
		health_delete_failed(&calls->health, reason, place->stays);
	place->stays |= call->op == INSTALLER_REMOVE;
}

static void call_stalled(struct calls *calls, const struct call *call)
{
	add(&calls->counters.by_answer[ANSWER_TIMED_OUT]);
	call_failed(calls, call, OFFLOAD_STALLED);
	if (!calls->stalled)
		calls_note(calls, CHANGE_STALLED, OFFLOAD_STALLED, 0);
	calls->stalled = true;
}

/* Updates the port's health. A NIC that refuses, and says why, is alive. */
static void judge(
	struct calls *calls, const struct call *call, int result, uint8_t reason, bool guess)
{
	/* it was counted when it became late; a blocking call is only now */
	if (call->late)
		return;
	if (calls_now(calls) - call->us >= AWAITED_STALL_US) {
		call_stalled(calls, call);
		return;
	}
	if (calls->awaited.n_late == 0)
		calls->stalled = false;
	/* whether counters can be read says nothing of rules */
	if (call->op == INSTALLER_COUNT)
		return;
	if (result == -EIO)
		call_failed(calls, call, reason);
	else if (!guess)
		health_call(&calls->health, true, 0);
	else if (atomic_load_explicit(&calls->counters.rules, memory_order_relaxed) == 0)
		health_call_guessed(&calls->health, reason);
	/* else there is no room, most likely; but nobody knows */
}

/* A call has ended. `count`: what came with that; NULL: nothing did. */
static void end_call(struct calls *calls, const struct call *call, int result,
	const struct provider_why *why, const struct provider_count *count)
{
	struct installer_answer answer = {
		.place = call->place,
		.result = (int16_t)result,
		.op = call->op,
		.from = call->from,
	};
	const bool guess = result != 0 && why->guess;

	/* a counter that is not there: the NIC was not asked, and has refused nothing */
	if (call->op == INSTALLER_COUNT && result != 0 && why->error == 0) {
		hand_over(calls, call->worker, call->asked_tsc, &answer);
		return;
	}
	histogram_add(&calls->histograms.call[call->op], ns_between(calls, call->tsc, rte_rdtsc()));
	/* no driver has said so: that there was no answer is our own finding */
	if (result != 0)
		answer.reason = call->gave_up
					? OFFLOAD_STALLED
					: refusal_note(&calls->refusals, why->error, why->words);
	else if (call->op != INSTALLER_COUNT)
		set_rule(calls, call->place, call->op == INSTALLER_INSERT);
	judge(calls, call, result, answer.reason, guess);
	if (call->own)
		return;
	/* as it is told: that the table is full is our guess, and no word of the NIC's */
	count_done(calls, call->op, result);
	count_answer(calls, guess ? -EIO : result);
	if (count && result == 0) {
		answer.packets = count->packets;
		answer.bytes = count->bytes;
		answer.counted = true;
		answer.has_bytes = count->has_bytes;
		answer.final = count->final;
	}
	hand_over(calls, call->worker, call->asked_tsc, &answer);
}

bool calls_poll(struct calls *calls)
{
	struct provider_done done[POLL_EACH];
	unsigned n, all = 0;

	if (!calls->provider)
		return false;
	do {
		n = provider_poll(calls->provider, done, POLL_EACH);
		for (unsigned i = 0; i < n; i++) {
			unsigned op =
				done[i].op == PROVIDER_INSERT ? INSTALLER_INSERT : INSTALLER_REMOVE;
			struct call call;

			/* what was given up is nobody's any more */
			if (awaited_take(&calls->awaited, done[i].place, op, &call))
				end_call(calls, &call, done[i].result, &done[i].why, NULL);
		}
		all += n;
	} while (n == POLL_EACH);
	return all > 0;
}

void calls_gauge(struct calls *calls, uint64_t begins_us)
{
	const uint64_t oldest_us = awaited_oldest_us(&calls->awaited);

	atomic_store_explicit(&calls->counters.under_way, calls->awaited.n + (begins_us != 0),
		memory_order_relaxed);
	atomic_store_explicit(&calls->counters.oldest_us, oldest_us != 0 ? oldest_us : begins_us,
		memory_order_relaxed);
}

/* Calls that are never answered. */

/*
 * Nothing is known of an insert that was never answered. Its rule, if there is one, is to go before the place
 * gets another.
 */
static void take_back(struct calls *calls, uint32_t place, uint64_t now_us)
{
	struct provider_why why = {0};
	struct call call = {
		.tsc = rte_rdtsc(),
		.us = now_us,
		.place = place,
		.op = INSTALLER_REMOVE,
		.own = true,
	};

	/* else when the place is asked for again, or it is the next time for all of them */
	if (calls->awaited.n_own == OWN_CALLS)
		return;
	int ret = provider_remove(calls->provider, place, &why);

	if (ret == -EINPROGRESS)
		awaited_add(&calls->awaited, &call);
	else
		end_call(calls, &call, ret, &why, NULL);
}

void calls_judge(struct calls *calls, uint64_t now_us)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	const struct call *late;
	struct call call;

	while ((late = awaited_late(&calls->awaited, now_us)) != NULL)
		call_stalled(calls, late);
	while (awaited_take_oldest(&calls->awaited, now_us, GIVE_UP_US, &call)) {
		call.gave_up = true;
		if (!call.own)
			end_call(calls, &call, -EIO, &why, NULL);
		if (call.op != INSTALLER_INSERT)
			continue;
		calls->n_orphans += !calls->places[call.place].orphan;
		calls->places[call.place].orphan = true;
		take_back(calls, call.place, now_us);
	}
}

/* Nobody else may ever ask for these places again. */
void calls_take_back(struct calls *calls, uint64_t now_us)
{
	const uint32_t n = calls->n_places;

	if (calls->n_orphans == 0 || now_us < calls->orphans_us ||
		health_state(&calls->health) == HEALTH_OPEN)
		return;
	for (unsigned i = 0; i < ORPHANS_LOOK && i < n; i++) {
		const uint32_t place = calls->orphan;

		calls->orphan = place + 1 < n ? place + 1 : 0;
		if (calls->places[place].orphan && !awaited_has(&calls->awaited, place))
			take_back(calls, place, now_us);
		if (calls->orphan == 0) {
			calls->orphans_us = now_us + ORPHANS_US;
			return;
		}
	}
}

/* How a request becomes a call. */

bool calls_is_free(struct calls *calls, const struct installer_request *request)
{
	const struct calls_place *place = &calls->places[request->place];
	const bool insert = request->op == INSTALLER_INSERT;

	if (insert && place->orphan && !awaited_has(&calls->awaited, request->place))
		take_back(calls, request->place, calls_now(calls));
	return !awaited_has(&calls->awaited, request->place) && !(insert && place->orphan);
}

static int call_provider(struct calls *calls, unsigned worker,
	const struct installer_request *request, struct provider_count *count,
	struct provider_why *why)
{
	const struct offload_rule rule = {
		.key = request->key,
		.mark = request->mark,
		.from = request->from,
		.worker = (uint8_t)worker,
		.deed = request->deed,
	};

	if (!calls->provider) {
		*why = (struct provider_why){.error = ENOMEM, .words = "no memory for rules"};
		return -EOPNOTSUPP;
	}
	switch (request->op) {
	case INSTALLER_INSERT:
		return provider_insert(calls->provider, request->place, &rule, why);
	case INSTALLER_REMOVE:
		return provider_remove(calls->provider, request->place, why);
	default:
		return provider_query(calls->provider, request->place, count, why);
	}
}

bool calls_make(
	struct calls *calls, unsigned worker, const struct installer_request *request, bool last)
{
	struct provider_count count = {0};
	struct provider_why why = {0};
	const struct call call = {
		.asked_tsc = request->tsc,
		.tsc = rte_rdtsc(),
		.us = calls_now(calls),
		.place = request->place,
		.op = request->op,
		.worker = (uint8_t)worker,
		.from = request->from,
	};

	calls_gauge(calls, call.us);
	int result = call_provider(calls, worker, request, &count, &why);

	if (result == -EAGAIN && calls->awaited.n > 0 && !last)
		return false;
	histogram_add(&calls->histograms.wait, ns_between(calls, request->tsc, call.tsc));
	const bool counted = request->op == INSTALLER_COUNT ||
			     (request->op == INSTALLER_REMOVE && result == 0 &&
				     provider_last_count(calls->provider, request->place, &count));

	if (result == -EINPROGRESS)
		awaited_add(&calls->awaited, &call);
	else
		end_call(calls, &call, result, &why, counted ? &count : NULL);
	calls_gauge(calls, 0);
	return true;
}

void calls_forget_all(struct calls *calls, int removes, const struct provider_why *why)
{
	struct call call;

	memset(calls->places, 0, calls->n_places * sizeof(calls->places[0]));
	calls->n_orphans = 0;
	atomic_store_explicit(&calls->counters.rules, 0, memory_order_relaxed);
	while (awaited_take_oldest(&calls->awaited, 0, 0, &call)) {
		/* that is not held against the port which comes up now */
		call.late = true;
		if (!call.own)
			end_call(calls, &call, call.op == INSTALLER_REMOVE ? removes : -EIO, why,
				NULL);
	}
	calls->stalled = false;
}
