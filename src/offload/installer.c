/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From top to bottom: creating and stopping; requests and answers between workers and the thread; how a call of the provider
 * ends; calls that are never answered; a request from its desk to its call; restarts and flushes; and the thread's turns.
 */
#include "offload/installer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>

#include "base/mailbox.h"
#include "offload/awaited.h"
#include "offload/marking.h"
#include "offload/trials.h"
#include "rteflow/answer.h"

#define GIVE_UP_US 5000000
/* Inserts that were given up, and are being taken back. */
#define OWN_CALLS 1024
#define POLL_EACH 64
/* A call that finds the NIC's queue full is made again for so long, while answers are awaited. */
#define HOLD_US 10000
/* Static rules that go one by one have so much time; so many go by one call for all rules of the port. */
#define CLEAR_US 5000000
#define FLUSH_FROM 8
/* Places that one look for orphans goes through, and the time between two rounds of all of them. */
#define ORPHANS_LOOK 4096
#define ORPHANS_US 500000
/* Requests of each worker before the NIC's answers are taken again. */
#define ROUNDS 32
/* Between two looks at the port's health. */
#define LOOK_US 5000
/* The part of an installer's time that counters have not used is not saved for longer. */
#define COUNTS_MOST_US 20000
/*
 * A rule is to be there a millisecond after it was asked for, also where they come one by one: a sleep is longer than
 * the first one by a sixteenth of the time that nothing has come for, and the most after ten milliseconds. When each was
 * twice the last one that was after 0.6. With some hundred rules a second it wakes several times as often for it.
 */
#define SLEEP_NS 20000
#define SLEEP_SHARE 16
#define MOST_SLEEP_NS 640000
#define MOST_SLEEP_AWAITING_NS 160000

/* Places in installer_counters.by_answer. */
enum {
	ANSWER_ENOSPC,
	ANSWER_EOPNOTSUPP,
	ANSWER_EAGAIN,
	ANSWER_EIO,
	ANSWER_TIMED_OUT,
};

struct place {
	bool rule;   /* taken by the NIC, and not given back */
	bool orphan; /* may have a rule by an insert that was given up */
	bool stays;  /* its delete failed, which the port's health was told */
};

/* The requests of one worker and its answers: it hands in and takes out, the thread the other way round. */
struct desk {
	/* the worker's: asked, answer not taken, and how many counters are among these */
	_Alignas(128) unsigned n_out;
	unsigned n_counts;
	_Alignas(128) struct mailbox *asked[INSTALLER_N_OPS];
	struct mailbox *answered;
	_Alignas(128) struct installer_request held; /* the thread's: the NIC's queue was full */
	uint64_t held_us;			     /* since when; 0: none */
	int64_t counts_us; /* the thread's: for so long counters go before all else */
};

struct installer {
	struct installer_config config;
	struct provider *provider;	   /* NULL: there was no memory for it */
	struct static_rules *static_rules; /* NULL: there are none */
	pthread_t thread;
	bool running;
	atomic_bool ready, stopping;
	atomic_bool done; /* the thread takes no requests any more, and has closed the provider */
	struct desk desk[INSTALLER_MAX_WORKERS];
	struct mailbox *changes;
	struct health health;
	struct share share;
	struct refusals refusals;
	struct installer_counters counters;
	struct installer_histograms histograms;
	struct trials trials;
	/* what the call for a counter takes on average, in sixteenths of a us */
	_Atomic uint32_t count_16us;
	/* the thread's own */
	struct awaited awaited;
	struct place *places;
	struct marking marking;
	uint32_t n_orphans, orphan; /* places that have one, and where the next look begins */
	uint64_t orphans_us;	    /* when they are taken back again */
	uint64_t looked_us;
	bool stalled;
	bool down; /* a restart failed: nothing comes by the port until one does not */
};

static void *run(void *context);

static uint64_t now(const struct installer *installer)
{
	uint64_t us = tsc_clock_us(installer->config.clock, rte_rdtsc());

	/* 0 is no time */
	return us ? us : 1;
}

/* The thread alone writes these. */
static void add(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

static void note(
	struct installer *installer, enum change_kind kind, uint8_t reason, uint32_t detail)
{
	const struct offload_change change = {
		.time_us = now(installer) & ((UINT64_C(1) << 48) - 1),
		.kind = kind,
		.reason = reason,
		.port = installer->config.number & 0xff,
		.detail = detail,
	};

	if (mailbox_push(installer->changes, &change, 1) == 0)
		add(&installer->counters.changes_lost);
}

void installer_note(struct installer *installer, enum change_kind kind, uint8_t reason)
{
	note(installer, kind, reason, 0);
}

static int make_desk(struct desk *desk)
{
	desk->answered =
		mailbox_create("answers", sizeof(struct installer_answer), INSTALLER_UNDER_WAY);
	for (unsigned i = 0; i < INSTALLER_N_OPS; i++) {
		desk->asked[i] = mailbox_create(
			"requests", sizeof(struct installer_request), INSTALLER_UNDER_WAY);
		if (!desk->asked[i])
			return -ENOMEM;
	}
	return desk->answered ? 0 : -ENOMEM;
}

static int make_room(struct installer *installer)
{
	const struct installer_config *config = &installer->config;
	const uint32_t n_places = config->provider.n_places;
	int ret = awaited_init(
		&installer->awaited, config->n_workers * INSTALLER_UNDER_WAY + OWN_CALLS, n_places);

	installer->places = calloc(n_places, sizeof(*installer->places));
	installer->changes =
		mailbox_create("changes", sizeof(struct offload_change), INSTALLER_CHANGES);
	for (unsigned i = 0; i < config->n_workers && ret == 0; i++)
		ret = make_desk(&installer->desk[i]);
	return installer->places && installer->changes ? ret : -ENOMEM;
}

/* Signals are the main thread's: this one starts with all of them blocked. */
static int start_thread(struct installer *installer)
{
	pthread_attr_t attr;
	sigset_t all, before;
	char name[16];
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -ret;
	if (installer->config.cpus)
		ret = pthread_attr_setaffinity_np(
			&attr, sizeof(*installer->config.cpus), installer->config.cpus);
	if (ret == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = pthread_create(&installer->thread, &attr, run, installer);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (ret != 0)
		return -ret;
	snprintf(name, sizeof(name), "installer-%u", installer->config.number);
	pthread_setname_np(installer->thread, name);
	installer->running = true;
	return 0;
}

int installer_create(
	struct installer **out, const struct installer_config *config, struct error *error)
{
	struct installer *installer;
	int ret = -ENOMEM;

	if (config->n_workers == 0 || config->n_workers > INSTALLER_MAX_WORKERS ||
		config->provider.n_places == 0 || config->provider.n_places > INT32_MAX)
		return error_set(error, -EINVAL,
			"an installer has 1 to %d workers, and a place at least",
			INSTALLER_MAX_WORKERS);
	installer = aligned_alloc(_Alignof(struct installer), sizeof(*installer));
	if (installer) {
		memset(installer, 0, sizeof(*installer));
		installer->config = *config;
		installer->config.provider.stop = &installer->stopping;
		trials_init(&installer->trials);
		health_init(&installer->health, &config->health);
		share_init(&installer->share, config->room);
		ret = make_room(installer);
	}
	if (ret == 0 && config->static_rules != 0)
		ret = static_rules_create(
			&installer->static_rules, config->provider.port_id, config->static_rules);
	if (ret == 0)
		ret = start_thread(installer);
	if (ret < 0) {
		installer_destroy(installer);
		return error_set(error, ret, "the installer of port %u does not start: %s",
			config->number, strerror(-ret));
	}
	*out = installer;
	return 0;
}

void installer_stop(struct installer *installer)
{
	if (!installer->running)
		return;
	atomic_store_explicit(&installer->stopping, true, memory_order_release);
	pthread_join(installer->thread, NULL);
	installer->running = false;
}

void installer_destroy(struct installer *installer)
{
	if (!installer)
		return;
	installer_stop(installer);
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		for (unsigned j = 0; j < INSTALLER_N_OPS; j++)
			mailbox_destroy(installer->desk[i].asked[j]);
		mailbox_destroy(installer->desk[i].answered);
	}
	mailbox_destroy(installer->changes);
	static_rules_destroy(installer->static_rules);
	awaited_free(&installer->awaited);
	free(installer->places);
	trials_destroy(&installer->trials);
	free(installer);
}

/* Requests and answers. */

bool installer_ask(
	struct installer *installer, unsigned worker, const struct installer_request *request)
{
	struct desk *desk = &installer->desk[worker];

	if (desk->n_out >= INSTALLER_UNDER_WAY ||
		(request->op == INSTALLER_COUNT && desk->n_counts >= INSTALLER_COUNTS) ||
		!installer_ready(installer) ||
		atomic_load_explicit(&installer->stopping, memory_order_relaxed))
		return false;
	/* each mailbox has room for all that may be under way */
	mailbox_push(desk->asked[request->op], request, 1);
	desk->n_out++;
	desk->n_counts += request->op == INSTALLER_COUNT;
	return true;
}

/* What came too late for the thread, which has ended, its worker answers itself. */
static unsigned answer_the_rest(struct desk *desk, struct installer_answer *answers, unsigned max)
{
	struct installer_request request;
	unsigned n = 0;

	for (unsigned op = 0; op < INSTALLER_N_OPS; op++) {
		while (n < max && mailbox_pop(desk->asked[op], &request, 1) == 1)
			answers[n++] = (struct installer_answer){
				.place = request.place,
				/* the provider was closed: all rules are gone */
				.result = op == INSTALLER_REMOVE ? 0 : -EIO,
				.op = request.op,
				.from = request.from,
				.reason = OFFLOAD_STOPPING,
			};
	}
	return n;
}

unsigned installer_answers(struct installer *installer, unsigned worker,
	struct installer_answer *answers, unsigned max)
{
	struct desk *desk = &installer->desk[worker];
	/* read before the mailbox: when it has ended, all that it answered is there */
	bool done = atomic_load_explicit(&installer->done, memory_order_acquire);
	unsigned n = mailbox_pop(desk->answered, answers, max);

	if (done && n == 0 && desk->n_out > 0)
		n = answer_the_rest(desk, answers, max);
	desk->n_out -= n;
	for (unsigned i = 0; i < n; i++)
		desk->n_counts -= answers[i].op == INSTALLER_COUNT;
	return n;
}

uint32_t installer_count_us(const struct installer *installer)
{
	return 1 + atomic_load_explicit(&installer->count_16us, memory_order_relaxed) / 16;
}

bool installer_ready(const struct installer *installer)
{
	return atomic_load_explicit(&installer->ready, memory_order_acquire);
}

const struct provider_abilities *installer_abilities(const struct installer *installer)
{
	return trials_abilities(&installer->trials);
}

uint64_t installer_trial_us(const struct installer *installer)
{
	return atomic_load_explicit(&installer->trials.due_us, memory_order_relaxed);
}

uint32_t installer_agree_on_marks(struct installer *installer, uint32_t most)
{
	return trials_agree_on_marks(&installer->trials, most);
}

struct health *installer_health(struct installer *installer)
{
	return &installer->health;
}

struct share *installer_share(struct installer *installer)
{
	return &installer->share;
}

struct static_rules *installer_static_rules(const struct installer *installer)
{
	return installer->static_rules;
}

const struct refusals *installer_refusals(const struct installer *installer)
{
	return &installer->refusals;
}

const struct installer_counters *installer_counters(const struct installer *installer)
{
	return &installer->counters;
}

const struct installer_histograms *installer_histograms(const struct installer *installer)
{
	return &installer->histograms;
}

unsigned installer_changes(
	struct installer *installer, struct offload_change *changes, unsigned max)
{
	return mailbox_pop(installer->changes, changes, max);
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

/* A call that is no stall counts; so does a request that the NIC was not asked for. */
static void count_done(struct installer *installer, unsigned op, int result)
{
	add(result == 0 ? &installer->counters.done[op] : &installer->counters.failed[op]);
}

/* Answers a request without asking the NIC. */
static void answer_unasked(struct installer *installer, unsigned worker,
	const struct installer_request *request, int result, uint8_t reason)
{
	struct installer_answer answer = {
		.place = request->place,
		.result = (int16_t)result,
		.op = request->op,
		.from = request->from,
		.reason = reason,
	};

	count_done(installer, request->op, result);
	hand_over(installer, worker, request->tsc, &answer);
}

/* How calls end. */

static void count_answer(struct installer *installer, int result)
{
	static const int answers[] = {
		[ANSWER_ENOSPC] = -ENOSPC,
		[ANSWER_EOPNOTSUPP] = -EOPNOTSUPP,
		[ANSWER_EAGAIN] = -EAGAIN,
		[ANSWER_EIO] = -EIO,
	};

	for (unsigned i = 0; i < RTE_DIM(answers); i++)
		if (answers[i] == result)
			add(&installer->counters.by_answer[i]);
}

static void set_rule(struct installer *installer, uint32_t place, bool rule)
{
	struct place *state = &installer->places[place];
	_Atomic uint32_t *rules = &installer->counters.rules;
	uint32_t n = atomic_load_explicit(rules, memory_order_relaxed);

	if (state->rule != rule)
		atomic_store_explicit(rules, rule ? n + 1 : n - 1, memory_order_relaxed);
	state->rule = rule;
	installer->n_orphans -= state->orphan;
	state->orphan = state->stays = false;
}

static void call_failed(struct installer *installer, const struct call *call, uint8_t reason)
{
	struct place *place = &installer->places[call->place];

	if (call->op != INSTALLER_REMOVE)
		health_call(&installer->health, false, reason);
	else
		health_delete_failed(&installer->health, reason, place->stays);
	place->stays |= call->op == INSTALLER_REMOVE;
}

static void call_stalled(struct installer *installer, const struct call *call)
{
	add(&installer->counters.by_answer[ANSWER_TIMED_OUT]);
	call_failed(installer, call, OFFLOAD_STALLED);
	if (!installer->stalled)
		installer_note(installer, CHANGE_STALLED, OFFLOAD_STALLED);
	installer->stalled = true;
}

/* Updates the port's health. A NIC that refuses, and says why, is alive. */
static void judge(struct installer *installer, const struct call *call, int result, uint8_t reason,
	bool guess)
{
	/* it was counted when it became late; a blocking call is only now */
	if (call->late)
		return;
	if (now(installer) - call->us >= AWAITED_STALL_US) {
		call_stalled(installer, call);
		return;
	}
	if (installer->awaited.n_late == 0)
		installer->stalled = false;
	/* whether counters can be read says nothing of rules */
	if (call->op == INSTALLER_COUNT)
		return;
	if (result == -EIO)
		call_failed(installer, call, reason);
	else if (!guess)
		health_call(&installer->health, true, 0);
	else if (atomic_load_explicit(&installer->counters.rules, memory_order_relaxed) == 0)
		health_call_guessed(&installer->health, reason);
	/* else there is no room, most likely; but nobody knows */
}

/* A call has ended. `count`: what came with that; NULL: nothing did. */
static void end_call(struct installer *installer, const struct call *call, int result,
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
	judge(installer, call, result, answer.reason, guess);
	if (call->own)
		return;
	/* as it is told: that the table is full is our guess, and no word of the NIC's */
	count_done(installer, call->op, result);
	count_answer(installer, guess ? -EIO : result);
	if (count && result == 0) {
		answer.packets = count->packets;
		answer.bytes = count->bytes;
		answer.counted = true;
		answer.has_bytes = count->has_bytes;
		answer.final = count->final;
	}
	hand_over(installer, call->worker, call->asked_tsc, &answer);
}

static bool poll(struct installer *installer)
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
			if (awaited_take(&installer->awaited, done[i].place, op, &call))
				end_call(installer, &call, done[i].result, &done[i].why, NULL);
		}
		all += n;
	} while (n == POLL_EACH);
	return all > 0;
}

/* What any thread may read of calls under way. `begins_us` of a call that is being made; 0: none is. */
static void gauge(struct installer *installer, uint64_t begins_us)
{
	const uint64_t oldest_us = awaited_oldest_us(&installer->awaited);

	atomic_store_explicit(&installer->counters.under_way,
		installer->awaited.n + (begins_us != 0), memory_order_relaxed);
	atomic_store_explicit(&installer->counters.oldest_us,
		oldest_us != 0 ? oldest_us : begins_us, memory_order_relaxed);
}

/* Calls that are never answered. */

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

	/* else when the place is asked for again, or it is the next time for all of them */
	if (installer->awaited.n_own == OWN_CALLS)
		return;
	int ret = provider_remove(installer->provider, place, &why);

	if (ret == -EINPROGRESS)
		awaited_add(&installer->awaited, &call);
	else
		end_call(installer, &call, ret, &why, NULL);
}

/* Counts calls that are late, and gives up what is hopeless. */
static void judge_awaited(struct installer *installer, uint64_t now_us)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	const struct call *late;
	struct call call;

	while ((late = awaited_late(&installer->awaited, now_us)) != NULL)
		call_stalled(installer, late);
	while (awaited_take_oldest(&installer->awaited, now_us, GIVE_UP_US, &call)) {
		call.gave_up = true;
		if (!call.own)
			end_call(installer, &call, -EIO, &why, NULL);
		if (call.op != INSTALLER_INSERT)
			continue;
		installer->n_orphans += !installer->places[call.place].orphan;
		installer->places[call.place].orphan = true;
		take_back(installer, call.place, now_us);
	}
}

/* Takes back, now and then, what could not be at once: nobody else may ever ask for these places again. */
static void look_for_orphans(struct installer *installer, uint64_t now_us)
{
	const uint32_t n = installer->config.provider.n_places;

	if (installer->n_orphans == 0 || now_us < installer->orphans_us ||
		health_state(&installer->health) == HEALTH_OPEN)
		return;
	for (unsigned i = 0; i < ORPHANS_LOOK && i < n; i++) {
		const uint32_t place = installer->orphan;

		installer->orphan = place + 1 < n ? place + 1 : 0;
		if (installer->places[place].orphan && !awaited_has(&installer->awaited, place))
			take_back(installer, place, now_us);
		if (installer->orphan == 0) {
			installer->orphans_us = now_us + ORPHANS_US;
			return;
		}
	}
}

/* A request, from its desk to its call. */

/*
 * A worker's next request, deletes before inserts before counters; one that is held goes first. But counters may have as
 * much time as all else takes: a flow whose counter is not read for long leaves the NIC, which would be one more delete.
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
	return installer->config.rules != 0 &&
	       rules + installer->awaited.n_inserts >= installer->config.rules;
}

/* Is the place free of calls, and of what an insert that was given up may have left there? */
static bool is_free(struct installer *installer, const struct installer_request *request)
{
	const struct place *place = &installer->places[request->place];
	const bool insert = request->op == INSTALLER_INSERT;

	if (insert && place->orphan && !awaited_has(&installer->awaited, request->place))
		take_back(installer, request->place, now(installer));
	return !awaited_has(&installer->awaited, request->place) && !(insert && place->orphan);
}

/* Why the NIC is not asked; 0: it is. */
static uint8_t why_not(struct installer *installer, const struct installer_request *request)
{
	if (request->op == INSTALLER_INSERT && health_state(&installer->health) == HEALTH_OPEN)
		return OFFLOAD_BREAKER;
	if (request->op == INSTALLER_INSERT && is_at_limit(installer))
		return OFFLOAD_OUTRANKED;
	if (request->op != INSTALLER_COUNT && !is_free(installer, request))
		return OFFLOAD_STALLED;
	return 0;
}

static int call_provider(struct installer *installer, unsigned worker,
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

/* False: the NIC's queue is full, and it is to be asked again. */
static bool carry_out(
	struct installer *installer, unsigned worker, const struct installer_request *request)
{
	const uint64_t held_us = installer->desk[worker].held_us;
	struct provider_count count = {0};
	struct provider_why why = {0};
	const struct call call = {
		.asked_tsc = request->tsc,
		.tsc = rte_rdtsc(),
		.us = now(installer),
		.place = request->place,
		.op = request->op,
		.worker = (uint8_t)worker,
		.from = request->from,
	};

	gauge(installer, call.us);
	int result = call_provider(installer, worker, request, &count, &why);

	if (result == -EAGAIN && installer->awaited.n > 0 &&
		(held_us == 0 || call.us - held_us < HOLD_US))
		return false;
	histogram_add(&installer->histograms.wait, ns_between(installer, request->tsc, call.tsc));
	const bool counted =
		request->op == INSTALLER_COUNT ||
		(request->op == INSTALLER_REMOVE && result == 0 &&
			provider_last_count(installer->provider, request->place, &count));

	if (result == -EINPROGRESS)
		awaited_add(&installer->awaited, &call);
	else
		end_call(installer, &call, result, &why, counted ? &count : NULL);
	gauge(installer, 0);
	return true;
}

/* Counters may use the time that another request took, or have used it. */
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

/* The worker's next request: it is answered at once, carried out, or held. False: nothing was done. */
static bool serve(struct installer *installer, unsigned worker)
{
	struct desk *desk = &installer->desk[worker];
	struct installer_request request;

	if (!next_request(desk, &request))
		return false;
	assert(request.place < installer->config.provider.n_places);
	const uint8_t reason = why_not(installer, &request);

	if (reason != 0) {
		desk->held_us = 0;
		answer_unasked(installer, worker, &request, -EAGAIN, reason);
		return true;
	}
	const uint64_t begin_us = now(installer);
	const bool done = carry_out(installer, worker, &request);

	if (done) {
		desk->held_us = 0;
	} else if (desk->held_us == 0) {
		desk->held = request;
		desk->held_us = now(installer);
	}
	share_time(installer, desk, (enum installer_op)request.op, now(installer) - begin_us);
	return done;
}

/* Restarts, flushes, and trials. */

/* No rule is there any more, as far as anybody knows, and no answer will come: deletes end so, all else failed. */
static void forget_all(struct installer *installer, int removes, const struct provider_why *why)
{
	struct call call;

	memset(installer->places, 0,
		installer->config.provider.n_places * sizeof(installer->places[0]));
	installer->n_orphans = 0;
	atomic_store_explicit(&installer->counters.rules, 0, memory_order_relaxed);
	while (awaited_take_oldest(&installer->awaited, 0, 0, &call)) {
		/* that is not held against the port which comes up now */
		call.late = true;
		if (!call.own)
			end_call(installer, &call, call.op == INSTALLER_REMOVE ? removes : -EIO,
				why, NULL);
	}
	installer->stalled = false;
}

static void reset(struct installer *installer)
{
	const struct provider_why why = {.error = EIO, .words = "the port was restarted"};
	struct static_rules *static_rules = installer->static_rules;

	/* a port that keeps its rules keeps their handles, too */
	if (static_rules != NULL && answer_keeps_rules(installer->config.provider.port_id))
		static_rules_clear(static_rules, CLEAR_US);
	provider_reset(installer->provider);
	if (static_rules != NULL && !answer_keeps_rules(installer->config.provider.port_id))
		static_rules_forget(static_rules);
	forget_all(installer, -EIO, &why);
	installer_note(installer, CHANGE_RESET, 0);
}

/* Stops and starts the port: 0, or it did not come up again. */
static int restart(struct installer *installer)
{
	int ret = installer->config.restart(installer->config.restart_context);
	uint64_t now_us = now(installer);

	installer->down = ret != 0;
	if (ret == 0) {
		reset(installer);
		return 0;
	}
	health_call(&installer->health, false,
		refusal_note(&installer->refusals, -ret, "the port does not start again"));
	if (health_state(&installer->health) != HEALTH_CLOSED)
		health_reopen(&installer->health, now_us);
	return ret;
}

/*
 * All rules go by one call, when the port is being tried: some work on that are to be gone. 0, or it failed, and the
 * breaker is open again.
 */
static int flush(struct installer *installer)
{
	struct provider_why why;

	/* by their own handles first: when the call fails nobody knows what is left */
	if (installer->static_rules != NULL)
		static_rules_clear(installer->static_rules, CLEAR_US);
	int ret = provider_flush(installer->provider, &why);
	const uint64_t now_us = now(installer);

	if (ret == 0)
		why = (struct provider_why){.error = EIO, .words = "all rules were taken out"};
	if (ret == 0 && installer->static_rules != NULL)
		static_rules_forget(installer->static_rules);
	/* without such a call all is as it was; answers that were taken meanwhile are given up, and asked for again */
	if (ret != -EOPNOTSUPP)
		forget_all(installer, ret, &why);
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

/* Static rules go, by one call for all rules of the port if nothing else is left there. Returns how many may be there. */
static uint32_t clear_static_rules(struct static_rules *rules, uint16_t port_id)
{
	struct provider_why why;

	if (static_rules_there(rules) >= FLUSH_FROM && answer_flush(port_id, &why) == 0)
		static_rules_forget(rules);
	return static_rules_clear(rules, CLEAR_US);
}

static bool is_stopping(const struct installer *installer)
{
	return atomic_load_explicit(&installer->stopping, memory_order_acquire);
}

/* The first of the kinds that could not be tried says why. */
static uint8_t why_untried(struct installer *installer, const struct provider_abilities *abilities)
{
	unsigned kind = 0;

	while (!abilities->trying[kind])
		kind++;
	return refusal_note(&installer->refusals, abilities->refused[kind].error,
		abilities->refused[kind].words);
}

static void end_trial(struct installer *installer, const struct provider_abilities *abilities)
{
	const struct trials_news news = trials_end(&installer->trials, abilities, now(installer));

	/* what a stop has cut short is no news */
	if (is_stopping(installer))
		return;
	if (news.untried)
		installer_note(installer, CHANGE_UNTRIED,
			why_untried(installer, installer_abilities(installer)));
	if (news.granted != 0)
		note(installer, CHANGE_TRIED, 0, news.granted);
}

/* The first trial. */
static void open_port(struct installer *installer)
{
	static const struct provider_abilities none = {
		.back_end = "none",
		.unable = "there was no memory for its rules",
	};
	int (*open)(struct provider **provider, const struct provider_config *config) =
		installer->config.open ? installer->config.open : provider_open;

	if (open(&installer->provider, &installer->config.provider) == 0)
		end_trial(installer, provider_abilities(installer->provider));
	else
		end_trial(installer, &none);
	atomic_store_explicit(&installer->ready, true, memory_order_release);
}

/*
 * All that was asked of the port fails, or is not answered: as for the breaker's, but more and more seldom. A port that
 * takes a rule and fails at its counter, say, is alive, and its packets are not to be lost for that.
 */
static bool is_to_restart(const struct installer *installer)
{
	const unsigned n = installer->trials.n;

	if (installer->config.restart == NULL || installer->provider == NULL)
		return false;
	return installer->down ||
	       (provider_abilities(installer->provider)->dead && (n & (n - 1)) == 0);
}

static void look_at_trial(struct installer *installer, uint64_t now_us)
{
	struct provider_config config = installer->config.provider;

	if (health_state(&installer->health) == HEALTH_OPEN) {
		installer->trials.holds = false;
		return;
	}
	if (!trials_due(&installer->trials, now_us, installer->awaited.n))
		return;
	config.trials = installer->trials.n;
	/* what was told before stands, where nothing could be tried */
	if ((is_to_restart(installer) && restart(installer) < 0) || installer->provider == NULL ||
		provider_try_again(&installer->provider, &config) < 0)
		end_trial(installer, installer_abilities(installer));
	else
		end_trial(installer, provider_abilities(installer->provider));
}

static void note_kinds(struct installer *installer, enum change_kind change, uint32_t kinds)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (kinds & 1u << kind)
			note(installer, change, OFFLOAD_MARKLESS, kind);
}

/* What has to be done before the breaker tries the port. 0, or it failed: the breaker is open again. */
static int prepare_try(struct installer *installer)
{
	/* of a port that is down calls may do well: its rules are gone */
	if (installer->config.restart &&
		(installer->down || health_calls_fail(&installer->health))) {
		int ret = restart(installer);

		if (ret < 0)
			return ret;
	} else if (installer->provider) {
		uint32_t out;
		bool others = marking_change_actions(&installer->marking, &installer->health,
			installer->provider, now(installer), &out);

		note_kinds(installer, CHANGE_KIND_OUT, out);
		if (others)
			installer_note(installer, CHANGE_SHAPE, OFFLOAD_UNSEEN);
	}
	if (!installer->provider)
		return 0;
	/* after a restart, too: there are ports that keep their rules */
	return health_has_stale(&installer->health) ? flush(installer) : 0;
}

static void look_at_health(struct installer *installer, uint64_t now_us)
{
	static const enum change_kind changes[] = {
		[HEALTH_OPENS] = CHANGE_BREAKER_OPEN,
		[HEALTH_TRIES] = CHANGE_BREAKER_TRIES,
		[HEALTH_CLOSES] = CHANGE_BREAKER_CLOSED,
	};
	struct health *health = &installer->health;
	enum health_decision decision = health_turn(health, now_us);
	uint8_t why = atomic_load_explicit(&health->why, memory_order_relaxed);

	if (decision == HEALTH_STAYS)
		return;
	if (decision == HEALTH_TRIES && prepare_try(installer) < 0) {
		decision = HEALTH_OPENS;
		why = atomic_load_explicit(&health->why, memory_order_relaxed);
	}
	installer_note(installer, changes[decision], decision == HEALTH_CLOSES ? 0 : why);
}

/* The thread's turns. */

/* Nothing is asked of a port whose calls fail, or that is about to be tried. */
static bool look_at_static_rules(struct installer *installer, uint64_t now_us)
{
	return installer->static_rules != NULL && !installer->trials.holds && !installer->down &&
	       static_rules_turn(installer->static_rules, now_us,
		       health_state(&installer->health) != HEALTH_OPEN);
}

/* Answers first: none is late that only was not taken. */
static bool look_after(struct installer *installer)
{
	bool busy = poll(installer);
	uint64_t now_us = now(installer);

	judge_awaited(installer, now_us);
	gauge(installer, 0);
	if (now_us - installer->looked_us < LOOK_US)
		return busy;
	installer->looked_us = now_us;
	look_for_orphans(installer, now_us);
	note_kinds(installer, CHANGE_KIND_IN,
		marking_look(&installer->marking, &installer->health, installer->provider, now_us));
	look_at_trial(installer, now_us);
	busy |= look_at_static_rules(installer, now_us);
	look_at_health(installer, now_us);
	return busy;
}

static bool turn(struct installer *installer)
{
	bool any = true, busy = false;

	for (unsigned round = 0; round < ROUNDS && any && !installer->trials.holds; round++) {
		any = false;
		for (unsigned i = 0; i < installer->config.n_workers; i++) {
			/* what has not begun then does not begin */
			if (is_stopping(installer))
				return true;
			any |= serve(installer, i);
			/* calls may be slow */
			if (now(installer) - installer->looked_us >= LOOK_US)
				busy |= look_after(installer);
		}
		busy |= any;
	}
	return look_after(installer) || busy;
}

static void rest(const struct installer *installer, long *ns)
{
	const long most = installer->awaited.n ? MOST_SLEEP_AWAITING_NS : MOST_SLEEP_NS;
	const struct timespec sleep = {.tv_nsec = *ns < most ? *ns : most};

	nanosleep(&sleep, NULL);
	if (*ns < MOST_SLEEP_NS)
		*ns += *ns / SLEEP_SHARE;
}

/* What has begun ends, within a second; all rules go together, and with them what workers asked for. */
static void finish(struct installer *installer)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	uint64_t end_us = now(installer) + AWAITED_STALL_US;
	struct installer_request request;
	struct call call;
	long ns = SLEEP_NS;

	while (installer->awaited.n > 0 && now(installer) < end_us) {
		if (!poll(installer))
			rest(installer, &ns);
	}
	while (awaited_take_oldest(&installer->awaited, 0, 0, &call))
		end_call(installer, &call, -EIO, &why, NULL);
	uint32_t left = provider_close(installer->provider);

	if (installer->static_rules != NULL)
		left += clear_static_rules(
			installer->static_rules, installer->config.provider.port_id);
	atomic_store_explicit(&installer->counters.rules, left, memory_order_relaxed);
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		struct desk *desk = &installer->desk[i];

		for (; next_request(desk, &request); desk->held_us = 0)
			answer_unasked(installer, i, &request,
				request.op == INSTALLER_REMOVE ? 0 : -EIO, OFFLOAD_STOPPING);
	}
	gauge(installer, 0);
}

static void *run(void *context)
{
	struct installer *installer = context;
	long ns = SLEEP_NS;

	open_port(installer);
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
