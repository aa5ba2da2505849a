/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The installer's calls of the provider. From top to bottom: what is noted of the port, what the NIC has not answered
 * yet (a list by age, found by place), how calls end, what was never answered, and the calls.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "offload/installer_parts.h"
#include "rteflow/answer.h"

#define POLL_EACH 64
/* A call that finds the NIC's queue full is made again for so long, while answers are awaited. */
#define HOLD_US 10000
/* Static rules that go one by one have so much time. */
#define CLEAR_US 5000000
/* So many go by one call for all rules of the port. */
#define FLUSH_FROM 8
/* Places that one look for orphans goes through, and between two rounds of all of them. */
#define ORPHANS_LOOK 4096
#define ORPHANS_US 500000

uint64_t installer_now_us(const struct installer *installer)
{
	uint64_t us = tsc_clock_us(installer->config.clock, rte_rdtsc());

	/* 0 is no time */
	return us ? us : 1;
}

static void installer_add(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static void note(
	struct installer *installer, enum change_kind kind, uint8_t reason, uint32_t detail)
{
	struct offload_change change = {
		.time_us = installer_now_us(installer) & ((UINT64_C(1) << 48) - 1),
		.kind = kind,
		.port = installer->config.number & 0xff,
		.detail = detail,
	};

	change.reason = reason;
	if (mailbox_push(installer->changes, &change, 1) == 0)
		installer_add(&installer->counters.changes_lost);
}

void installer_note(struct installer *installer, enum change_kind kind, uint8_t reason)
{
	note(installer, kind, reason, 0);
}

void installer_note_detail(struct installer *installer, enum change_kind change, uint32_t detail)
{
	note(installer, change, 0, detail);
}

void installer_note_kind(
	struct installer *installer, enum change_kind change, enum provider_kind kind)
{
	note(installer, change, OFFLOAD_MARKLESS, kind);
}

void await_init(struct installer *installer, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		installer->awaited[i].after = i + 1 < n ? i + 1 : AWAIT_NONE;
	installer->free = 0;
	installer->oldest = installer->newest = installer->in_time = AWAIT_NONE;
}

static void await_add(struct installer *installer, const struct call *call)
{
	uint32_t i = installer->free;
	struct awaited *awaited = &installer->awaited[i];

	installer->free = awaited->after;
	*awaited =
		(struct awaited){.call = *call, .before = installer->newest, .after = AWAIT_NONE};
	if (installer->newest != AWAIT_NONE)
		installer->awaited[installer->newest].after = i;
	else
		installer->oldest = i;
	installer->newest = i;
	if (installer->in_time == AWAIT_NONE)
		installer->in_time = i;
	installer->places[call->place].awaited = i;
	installer->n_awaited++;
	installer->n_inserts += call->op == INSTALLER_INSERT;
	installer->n_own += call->own;
}

static void take(struct installer *installer, uint32_t i, struct call *call)
{
	struct awaited *awaited = &installer->awaited[i];

	*call = awaited->call;
	if (awaited->before != AWAIT_NONE)
		installer->awaited[awaited->before].after = awaited->after;
	else
		installer->oldest = awaited->after;
	if (awaited->after != AWAIT_NONE)
		installer->awaited[awaited->after].before = awaited->before;
	else
		installer->newest = awaited->before;
	if (installer->in_time == i)
		installer->in_time = awaited->after;
	installer->places[call->place].awaited = AWAIT_NONE;
	installer->n_awaited--;
	installer->n_inserts -= call->op == INSTALLER_INSERT;
	installer->n_late -= call->late;
	installer->n_own -= call->own;
	awaited->after = installer->free;
	installer->free = i;
}

static bool await_take(struct installer *installer, uint32_t place, unsigned op, struct call *call)
{
	uint32_t i = place < installer->config.provider.n_places ? installer->places[place].awaited
								 : AWAIT_NONE;

	if (i == AWAIT_NONE || installer->awaited[i].call.op != op)
		return false;
	take(installer, i, call);
	return true;
}

bool await_take_oldest(struct installer *installer, struct call *call)
{
	if (installer->oldest == AWAIT_NONE)
		return false;
	take(installer, installer->oldest, call);
	return true;
}

static uint64_t ns_between(const struct installer *installer, uint64_t from, uint64_t to)
{
	/* another core's counter may be some ticks ahead */
	if (to < from)
		return 0;
	return (uint64_t)((double)(to - from) * installer->config.clock->us_per_tick * 1000);
}

static void hand_over(struct installer *installer, unsigned worker, uint64_t asked_tsc,
	struct installer_answer *answer)
{
	uint64_t us = ns_between(installer, asked_tsc, rte_rdtsc()) / 1000;

	answer->took_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
	/* there is room: see INSTALLER_UNDER_WAY */
	mailbox_push(installer->desk[worker].answered, answer, 1);
}

static void count_done(struct installer *installer, unsigned op, int result)
{
	installer_add(
		result == 0 ? &installer->counters.done[op] : &installer->counters.failed[op]);
}

/* What the NIC answered. */
static void count_answer(struct installer *installer, int result)
{
	static const int answers[] = {
		[ANSWER_ENOSPC] = -ENOSPC,
		[ANSWER_EOPNOTSUPP] = -EOPNOTSUPP,
		[ANSWER_EAGAIN] = -EAGAIN,
		[ANSWER_EIO] = -EIO,
	};
	struct installer_counters *counters = &installer->counters;

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (answers[i] == result)
			installer_add(&counters->by_answer[i]);
	}
}

void installer_answer(struct installer *installer, unsigned worker,
	const struct installer_request *request, int result, uint8_t reason)
{
	struct installer_answer answer = {
		.place = request->place,
		.result = (int16_t)result,
		.op = request->op,
		.from = request->from,
		.reason = reason,
	};

	/* the NIC was not asked */
	count_done(installer, request->op, result);
	hand_over(installer, worker, request->tsc, &answer);
}

static void set_rule(struct installer *installer, uint32_t place, bool rule)
{
	struct place_state *state = &installer->places[place];
	_Atomic uint32_t *rules = &installer->counters.rules;
	uint32_t n = atomic_load_explicit(rules, memory_order_relaxed);

	if (state->rule != rule)
		atomic_store_explicit(rules, rule ? n + 1 : n - 1, memory_order_relaxed);
	state->rule = rule;
	installer->n_orphans -= state->orphan;
	state->orphan = state->stays = false;
}

static void installer_failed(struct installer *installer, const struct call *call, uint8_t reason)
{
	struct place_state *place = &installer->places[call->place];

	if (call->op != INSTALLER_REMOVE)
		health_call(&installer->health, false, reason);
	else
		health_delete_failed(&installer->health, reason, place->stays);
	place->stays |= call->op == INSTALLER_REMOVE;
}

static void await_stalled(struct installer *installer, const struct call *call)
{
	_Atomic uint64_t *times = &installer->counters.by_answer[ANSWER_TIMED_OUT];

	atomic_store_explicit(
		times, atomic_load_explicit(times, memory_order_relaxed) + 1, memory_order_relaxed);
	installer_failed(installer, call, OFFLOAD_STALLED);
	if (!installer->stalled)
		installer_note(installer, CHANGE_STALLED, OFFLOAD_STALLED);
	installer->stalled = true;
}

/* The health of the port, by this end: whoever says no, and why, is alive. */
static void installer_judge(struct installer *installer, const struct call *call, int result,
	uint8_t reason, bool guess)
{
	bool late = installer_now_us(installer) - call->us >= INSTALLER_STALL_US;
	uint32_t rules = atomic_load_explicit(&installer->counters.rules, memory_order_relaxed);

	/* it was counted when it became late; a blocking call is only now */
	if (call->late)
		return;
	if (late)
		await_stalled(installer, call);
	else if (installer->n_late == 0)
		installer->stalled = false;
	/* whether counters can be read says nothing of rules */
	if (!late && call->op == INSTALLER_COUNT)
		return;
	if (!late && result == -EIO)
		installer_failed(installer, call, reason);
	else if (!late && guess && rules == 0)
		health_call_guessed(&installer->health, reason);
	else if (!late && guess)
		return; /* no room, most likely; but nobody knows */
	else if (!late)
		health_call(&installer->health, true, 0);
}

void installer_end(struct installer *installer, const struct call *call, int result,
	const struct provider_why *why, const struct provider_count *count)
{
	struct installer_answer answer = {
		.place = call->place,
		.result = (int16_t)result,
		.op = call->op,
		.from = call->from,
	};

	/* a counter that is not there: the NIC was not asked, and has refused nothing */
	if (call->op == INSTALLER_COUNT && result != 0 && why->error == 0) {
		hand_over(installer, call->worker, call->asked_tsc, &answer);
		return;
	}
	histogram_add(&installer->histograms.call[call->op],
		ns_between(installer, call->tsc, rte_rdtsc()));
	/* no driver has said so: that there was no answer is our own finding */
	if (result != 0)
		answer.reason =
			call->gave_up ? OFFLOAD_STALLED
				      : refusal_note(&installer->refusals, why->error, why->words);
	else if (call->op != INSTALLER_COUNT)
		set_rule(installer, call->place, call->op == INSTALLER_INSERT);
	installer_judge(installer, call, result, answer.reason, result != 0 && why->guess);
	if (call->own)
		return;
	/* as it is told: that the table is full is our guess, and no word of the NIC's */
	count_done(installer, call->op, result);
	count_answer(installer, result != 0 && why->guess ? -EIO : result);
	if (count && result == 0) {
		answer.packets = count->packets;
		answer.bytes = count->bytes;
		answer.counted = true;
		answer.has_bytes = count->has_bytes;
		answer.final = count->final;
	}
	hand_over(installer, call->worker, call->asked_tsc, &answer);
}

/*
 * Nothing is known of an insert that was never answered. Its rule, if there is one, is to go before the place
 * gets another.
 */
static void take_back(struct installer *installer, uint32_t place, uint64_t now_us)
{
	struct provider_why why = {0};
	struct call call = {
		.tsc = rte_rdtsc(),
		.us = now_us,
		.place = place,
		.op = INSTALLER_REMOVE,
		.own = true,
	};
	int ret;

	/* else when the place is asked for again, or it is the next time for all of them */
	if (installer->n_own == INSTALLER_OWN)
		return;
	ret = provider_remove(installer->provider, place, &why);
	if (ret == -EINPROGRESS)
		await_add(installer, &call);
	else
		installer_end(installer, &call, ret, &why, NULL);
}

static void give_up(struct installer *installer, uint64_t now_us)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	struct call call;

	if (!await_take_oldest(installer, &call))
		return;
	call.gave_up = true;
	if (!call.own)
		installer_end(installer, &call, -EIO, &why, NULL);
	if (call.op != INSTALLER_INSERT)
		return;
	installer->n_orphans += !installer->places[call.place].orphan;
	installer->places[call.place].orphan = true;
	take_back(installer, call.place, now_us);
}

/* Those whose rules could not be taken back at once: nobody else may ever ask for their places again. */
void await_orphans(struct installer *installer, uint64_t now_us)
{
	const uint32_t n = installer->config.provider.n_places;

	if (installer->n_orphans == 0 || now_us < installer->orphans_us ||
		health_state(&installer->health) == HEALTH_OPEN)
		return;
	for (unsigned i = 0; i < ORPHANS_LOOK && i < n; i++) {
		const uint32_t place = installer->orphan;
		const struct place_state *state = &installer->places[place];

		installer->orphan = place + 1 < n ? place + 1 : 0;
		if (state->orphan && state->awaited == AWAIT_NONE)
			take_back(installer, place, now_us);
		if (installer->orphan == 0) {
			installer->orphans_us = now_us + ORPHANS_US;
			return;
		}
	}
}

static bool await_place_is_free(
	struct installer *installer, const struct installer_request *request)
{
	struct place_state *place = &installer->places[request->place];

	if (request->op == INSTALLER_COUNT)
		return true;
	if (request->op == INSTALLER_INSERT && place->orphan && place->awaited == AWAIT_NONE)
		take_back(installer, request->place, installer_now_us(installer));
	return place->awaited == AWAIT_NONE && !(request->op == INSTALLER_INSERT && place->orphan);
}

void await_judge(struct installer *installer, uint64_t now_us)
{
	while (installer->in_time != AWAIT_NONE) {
		struct awaited *awaited = &installer->awaited[installer->in_time];

		if (now_us - awaited->call.us < INSTALLER_STALL_US)
			break;
		awaited->call.late = true;
		installer->n_late++;
		installer->in_time = awaited->after;
		await_stalled(installer, &awaited->call);
	}
	while (installer->oldest != AWAIT_NONE &&
		now_us - installer->awaited[installer->oldest].call.us >= INSTALLER_GIVE_UP_US)
		give_up(installer, now_us);
}

void await_gauge(struct installer *installer, uint64_t begins_us)
{
	uint64_t oldest_us = begins_us;

	if (installer->oldest != AWAIT_NONE)
		oldest_us = installer->awaited[installer->oldest].call.us;
	atomic_store_explicit(&installer->counters.under_way,
		installer->n_awaited + (begins_us != 0), memory_order_relaxed);
	atomic_store_explicit(&installer->counters.oldest_us, oldest_us, memory_order_relaxed);
}

static int make_call(struct installer *installer, unsigned worker,
	const struct installer_request *request, struct provider_count *count,
	struct provider_why *why)
{
	struct offload_rule rule = {
		.key = request->key,
		.mark = request->mark,
		.from = request->from,
		.worker = (uint8_t)worker,
		.deed = request->deed,
	};

	if (!installer->provider) {
		*why = (struct provider_why){.error = ENOMEM, .words = "no memory for rules"};
		return -EOPNOTSUPP;
	}
	switch (request->op) {
	case INSTALLER_INSERT:
		return provider_insert(installer->provider, request->place, &rule, why);
	case INSTALLER_REMOVE:
		return provider_remove(installer->provider, request->place, why);
	default:
		return provider_query(installer->provider, request->place, count, why);
	}
}

/* Does that which has ended come with a number? */
static bool has_count(struct installer *installer, const struct installer_request *request,
	int result, struct provider_count *count)
{
	if (request->op != INSTALLER_REMOVE)
		return request->op == INSTALLER_COUNT;
	return result == 0 && installer->provider &&
	       provider_last_count(installer->provider, request->place, count);
}

bool installer_carry_out(
	struct installer *installer, unsigned worker, const struct installer_request *request)
{
	uint64_t held_us = installer->desk[worker].held_us;
	struct provider_count count = {0};
	struct provider_why why = {0};
	struct call call = {
		.asked_tsc = request->tsc,
		.tsc = rte_rdtsc(),
		.us = installer_now_us(installer),
		.place = request->place,
		.op = request->op,
		.worker = (uint8_t)worker,
		.from = request->from,
	};

	assert(request->place < installer->config.provider.n_places);
	if (!await_place_is_free(installer, request)) {
		installer_answer(installer, worker, request, -EAGAIN, OFFLOAD_STALLED);
		return true;
	}
	await_gauge(installer, call.us);
	int result = make_call(installer, worker, request, &count, &why);

	if (result == -EAGAIN && installer->n_awaited > 0 &&
		(held_us == 0 || call.us - held_us < HOLD_US))
		return false;
	histogram_add(&installer->histograms.wait, ns_between(installer, request->tsc, call.tsc));
	if (result == -EINPROGRESS)
		await_add(installer, &call);
	else
		installer_end(installer, &call, result, &why,
			has_count(installer, request, result, &count) ? &count : NULL);
	await_gauge(installer, 0);
	return true;
}

bool installer_poll(struct installer *installer)
{
	struct provider_done done[POLL_EACH];
	unsigned n, all = 0;

	if (!installer->provider)
		return false;
	do {
		n = provider_poll(installer->provider, done, POLL_EACH);
		for (unsigned i = 0; i < n; i++) {
			unsigned op =
				done[i].op == PROVIDER_INSERT ? INSTALLER_INSERT : INSTALLER_REMOVE;
			struct call call;

			/* what was given up is nobody's any more */
			if (await_take(installer, done[i].place, op, &call))
				installer_end(installer, &call, done[i].result, &done[i].why, NULL);
		}
		all += n;
	} while (n == POLL_EACH);
	return all > 0;
}

/* No rule is there any more, as far as anybody knows, and no answer will come: deletes end so, all else failed. */
static void installer_forget_all(
	struct installer *installer, int removes, const struct provider_why *why)
{
	struct call call;

	for (uint32_t i = 0; i < installer->config.provider.n_places; i++)
		installer->places[i] =
			(struct place_state){.awaited = installer->places[i].awaited};
	installer->n_orphans = 0;
	atomic_store_explicit(&installer->counters.rules, 0, memory_order_relaxed);
	while (await_take_oldest(installer, &call)) {
		/* that is not held against the port which comes up now */
		call.late = true;
		if (!call.own)
			installer_end(installer, &call,
				call.op == INSTALLER_REMOVE ? removes : -EIO, why, NULL);
	}
	installer->stalled = false;
}

static void installer_reset(struct installer *installer)
{
	const struct provider_why why = {.error = EIO, .words = "the port was restarted"};
	struct static_rules *static_rules = installer->static_rules;

	/* a port that keeps its rules keeps their handles, too */
	if (static_rules != NULL && answer_keeps_rules(installer->config.provider.port_id))
		static_rules_clear(static_rules, CLEAR_US);
	provider_reset(installer->provider);
	if (static_rules != NULL && !answer_keeps_rules(installer->config.provider.port_id))
		static_rules_forget(static_rules);
	installer_forget_all(installer, -EIO, &why);
	installer_note(installer, CHANGE_RESET, 0);
}

int installer_restart(struct installer *installer)
{
	int ret = installer->config.restart(installer->config.restart_context);
	uint64_t now_us = installer_now_us(installer);

	installer->down = ret != 0;
	if (ret == 0) {
		installer_reset(installer);
		return 0;
	}
	health_call(&installer->health, false,
		refusal_note(&installer->refusals, -ret, "the port does not start again"));
	if (health_state(&installer->health) != HEALTH_CLOSED)
		health_reopen(&installer->health, now_us);
	return ret;
}

int installer_flush(struct installer *installer)
{
	struct provider_why why;

	/* by their own handles first: when the call fails nobody knows what is left */
	if (installer->static_rules != NULL)
		static_rules_clear(installer->static_rules, CLEAR_US);
	int ret = provider_flush(installer->provider, &why);
	const uint64_t now_us = installer_now_us(installer);

	if (ret == 0)
		why = (struct provider_why){.error = EIO, .words = "all rules were taken out"};
	if (ret == 0 && installer->static_rules != NULL)
		static_rules_forget(installer->static_rules);
	/* without such a call all is as it was; answers that were taken meanwhile are given up, and asked for again */
	if (ret != -EOPNOTSUPP)
		installer_forget_all(installer, ret, &why);
	if (ret == 0)
		installer_note(installer, CHANGE_FLUSHED, 0);
	if (ret != -EIO) {
		health_flushed(&installer->health, now_us);
		return 0;
	}
	health_call(&installer->health, false,
		refusal_note(&installer->refusals, why.error, why.words));
	health_reopen(&installer->health, now_us);
	return ret;
}

uint32_t installer_clear_static_rules(struct installer *installer)
{
	struct static_rules *rules = installer->static_rules;
	struct provider_why why;

	if (static_rules_there(rules) >= FLUSH_FROM &&
		answer_flush(installer->config.provider.port_id, &why) == 0)
		static_rules_forget(rules);
	return static_rules_clear(rules, CLEAR_US);
}
