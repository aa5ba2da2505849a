/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From top to bottom: creating and stopping; requests and answers between workers and the thread; a request from its desk
 * to its call (calls.h); restarts, flushes and trials; and the thread's turns.
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

#include "offload/calls.h"
#include "offload/marking.h"
#include "offload/trials.h"
#include "rteflow/answer.h"

/* A call that finds the NIC's queue full is made again for so long, while answers are awaited. */
#define HOLD_US 10000
/* Static rules that go one by one have so much time; so many go by one call for all rules of the port. */
#define CLEAR_US 5000000
#define FLUSH_FROM 8
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

/* The requests of one worker and its answers: it hands in and takes out, the thread the other way round. */
struct desk {
	/* the worker's: asked, answer not taken, and how many counters are among these */
	_Alignas(128) unsigned n_out;
	unsigned n_counts;
	_Alignas(128) struct mailbox *asked[INSTALLER_N_OPS];
	_Alignas(128) struct installer_request held; /* the thread's: the NIC's queue was full */
	uint64_t held_us;			     /* since when; 0: none */
	int64_t counts_us; /* the thread's: for so long counters go before all else */
};

struct installer {
	struct installer_config config;
	_Atomic uint32_t most_rules;	   /* of all workers; 0: as many as the port takes */
	struct static_rules *static_rules; /* NULL: there are none */
	pthread_t thread;
	bool running;
	atomic_bool ready, stopping;
	atomic_bool done; /* the thread takes no requests any more, and has closed the provider */
	struct desk desk[INSTALLER_MAX_WORKERS];
	struct share share;
	struct trials trials;
	/* what the call for a counter takes on average, in sixteenths of a us */
	_Atomic uint32_t count_16us;
	/* the thread's own */
	struct calls calls;
	struct marking marking;
	uint64_t looked_us;
	bool down; /* a restart failed: nothing comes by the port until one does not */
};

static void *run(void *context);

static int make_desk(struct desk *desk)
{
	for (unsigned i = 0; i < INSTALLER_N_OPS; i++) {
		desk->asked[i] = mailbox_create(
			"requests", sizeof(struct installer_request), INSTALLER_UNDER_WAY);
		if (!desk->asked[i])
			return -ENOMEM;
	}
	return 0;
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
		installer->most_rules = config->rules;
		installer->config.provider.stop = &installer->stopping;
		trials_init(&installer->trials);
		share_init(&installer->share, config->room);
		ret = calls_init(&installer->calls, config);
	}
	for (unsigned i = 0; i < config->n_workers && ret == 0; i++)
		ret = make_desk(&installer->desk[i]);
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

void installer_set_rules(struct installer *installer, uint32_t rules)
{
	atomic_store_explicit(&installer->most_rules, rules, memory_order_relaxed);
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
	for (unsigned i = 0; i < installer->config.n_workers; i++)
		for (unsigned j = 0; j < INSTALLER_N_OPS; j++)
			mailbox_destroy(installer->desk[i].asked[j]);
	calls_free(&installer->calls);
	static_rules_destroy(installer->static_rules);
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
	unsigned n = mailbox_pop(installer->calls.answers[worker], answers, max);

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
	return &installer->calls.health;
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
	return &installer->calls.refusals;
}

const struct installer_counters *installer_counters(const struct installer *installer)
{
	return &installer->calls.counters;
}

const struct installer_histograms *installer_histograms(const struct installer *installer)
{
	return &installer->calls.histograms;
}

unsigned installer_changes(
	struct installer *installer, struct offload_change *changes, unsigned max)
{
	return mailbox_pop(installer->calls.changes, changes, max);
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
	uint32_t rules =
		atomic_load_explicit(&installer->calls.counters.rules, memory_order_relaxed);

	if (installer->static_rules != NULL) {
		/* static rules go before those of flows */
		if (static_rules_want_room(installer->static_rules))
			return true;
		rules += static_rules_there(installer->static_rules);
	}
	const uint32_t most = atomic_load_explicit(&installer->most_rules, memory_order_relaxed);

	return most != 0 && rules + installer->calls.awaited.n_inserts >= most;
}

/* Why the NIC is not asked; 0: it is. */
static uint8_t why_not(struct installer *installer, const struct installer_request *request)
{
	if (request->op == INSTALLER_INSERT &&
		health_state(&installer->calls.health) == HEALTH_OPEN)
		return OFFLOAD_BREAKER;
	if (request->op == INSTALLER_INSERT && is_at_limit(installer))
		return OFFLOAD_OUTRANKED;
	if (request->op != INSTALLER_COUNT && !calls_is_free(&installer->calls, request))
		return OFFLOAD_STALLED;
	return 0;
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
		calls_answer(&installer->calls, worker, &request, -EAGAIN, reason);
		return true;
	}
	const uint64_t begin_us = calls_now(&installer->calls);
	const bool last = desk->held_us != 0 && begin_us - desk->held_us >= HOLD_US;
	const bool done = calls_make(&installer->calls, worker, &request, last);

	if (done) {
		desk->held_us = 0;
	} else if (desk->held_us == 0) {
		desk->held = request;
		desk->held_us = calls_now(&installer->calls);
	}
	share_time(installer, desk, (enum installer_op)request.op,
		calls_now(&installer->calls) - begin_us);
	return done;
}

/* Restarts, flushes, and trials. */

static void reset(struct installer *installer)
{
	const struct provider_why why = {.error = EIO, .words = "the port was restarted"};
	struct static_rules *static_rules = installer->static_rules;

	/* a port that keeps its rules keeps their handles, too */
	if (static_rules != NULL && answer_keeps_rules(installer->config.provider.port_id))
		static_rules_clear(static_rules, CLEAR_US);
	provider_reset(installer->calls.provider);
	if (static_rules != NULL && !answer_keeps_rules(installer->config.provider.port_id))
		static_rules_forget(static_rules);
	calls_forget_all(&installer->calls, -EIO, &why);
	calls_note(&installer->calls, CHANGE_RESET, 0, 0);
}

/* Stops and starts the port: 0, or it did not come up again. */
static int restart(struct installer *installer)
{
	int ret = installer->config.restart(installer->config.restart_context);
	uint64_t now_us = calls_now(&installer->calls);

	installer->down = ret != 0;
	if (ret == 0) {
		reset(installer);
		return 0;
	}
	health_call(&installer->calls.health, false,
		refusal_note(&installer->calls.refusals, -ret, "the port does not start again"));
	if (health_state(&installer->calls.health) != HEALTH_CLOSED)
		health_reopen(&installer->calls.health, now_us);
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
	int ret = provider_flush(installer->calls.provider, &why);
	const uint64_t now_us = calls_now(&installer->calls);

	if (ret == 0)
		why = (struct provider_why){.error = EIO, .words = "all rules were taken out"};
	if (ret == 0 && installer->static_rules != NULL)
		static_rules_forget(installer->static_rules);
	/* without such a call all is as it was; answers that were taken meanwhile are given up, and asked for again */
	if (ret != -EOPNOTSUPP)
		calls_forget_all(&installer->calls, ret, &why);
	if (ret == 0)
		calls_note(&installer->calls, CHANGE_FLUSHED, 0, 0);
	if (ret != -EIO) {
		health_flushed(&installer->calls.health, now_us);
		return 0;
	}
	health_call(&installer->calls.health, false,
		refusal_note(&installer->calls.refusals, why.error, why.words));
	health_reopen(&installer->calls.health, now_us);
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
	return refusal_note(&installer->calls.refusals, abilities->refused[kind].error,
		abilities->refused[kind].words);
}

static void end_trial(struct installer *installer, const struct provider_abilities *abilities)
{
	const struct trials_news news =
		trials_end(&installer->trials, abilities, calls_now(&installer->calls));

	/* what a stop has cut short is no news */
	if (is_stopping(installer))
		return;
	if (news.untried)
		calls_note(&installer->calls, CHANGE_UNTRIED,
			why_untried(installer, installer_abilities(installer)), 0);
	if (news.granted != 0)
		calls_note(&installer->calls, CHANGE_TRIED, 0, news.granted);
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

	if (open(&installer->calls.provider, &installer->config.provider) == 0)
		end_trial(installer, provider_abilities(installer->calls.provider));
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

	if (installer->config.restart == NULL || installer->calls.provider == NULL)
		return false;
	return installer->down ||
	       (provider_abilities(installer->calls.provider)->dead && (n & (n - 1)) == 0);
}

static void look_at_trial(struct installer *installer, uint64_t now_us)
{
	struct provider_config config = installer->config.provider;

	if (health_state(&installer->calls.health) == HEALTH_OPEN) {
		installer->trials.holds = false;
		return;
	}
	if (!trials_due(&installer->trials, now_us, installer->calls.awaited.n))
		return;
	config.trials = installer->trials.n;
	/* what was told before stands, where nothing could be tried */
	if ((is_to_restart(installer) && restart(installer) < 0) ||
		installer->calls.provider == NULL ||
		provider_try_again(&installer->calls.provider, &config) < 0)
		end_trial(installer, installer_abilities(installer));
	else
		end_trial(installer, provider_abilities(installer->calls.provider));
}

static void note_kinds(struct installer *installer, enum change_kind change, uint32_t kinds)
{
	for (unsigned kind = 0; kind < PROVIDER_N_KINDS; kind++)
		if (kinds & 1u << kind)
			calls_note(&installer->calls, change, OFFLOAD_MARKLESS, kind);
}

/* Prepares the port for the try of the breaker. 0, or it failed: the breaker is open again. */
static int prepare_try(struct installer *installer)
{
	/* of a port that is down calls may do well: its rules are gone */
	if (installer->config.restart &&
		(installer->down || health_calls_fail(&installer->calls.health))) {
		int ret = restart(installer);

		if (ret < 0)
			return ret;
	} else if (installer->calls.provider) {
		uint32_t out;
		bool others = marking_change_actions(&installer->marking, &installer->calls.health,
			installer->calls.provider, calls_now(&installer->calls), &out);

		note_kinds(installer, CHANGE_KIND_OUT, out);
		if (others)
			calls_note(&installer->calls, CHANGE_SHAPE, OFFLOAD_UNSEEN, 0);
	}
	if (!installer->calls.provider)
		return 0;
	/* after a restart, too: there are ports that keep their rules */
	return health_has_stale(&installer->calls.health) ? flush(installer) : 0;
}

static void look_at_health(struct installer *installer, uint64_t now_us)
{
	static const enum change_kind changes[] = {
		[HEALTH_OPENS] = CHANGE_BREAKER_OPEN,
		[HEALTH_TRIES] = CHANGE_BREAKER_TRIES,
		[HEALTH_CLOSES] = CHANGE_BREAKER_CLOSED,
	};
	struct health *health = &installer->calls.health;
	enum health_decision decision = health_turn(health, now_us);
	uint8_t why = atomic_load_explicit(&health->why, memory_order_relaxed);

	if (decision == HEALTH_STAYS)
		return;
	if (decision == HEALTH_TRIES && prepare_try(installer) < 0) {
		decision = HEALTH_OPENS;
		why = atomic_load_explicit(&health->why, memory_order_relaxed);
	}
	calls_note(&installer->calls, changes[decision], decision == HEALTH_CLOSES ? 0 : why, 0);
}

/* The thread's turns. */

/* Nothing is asked of a port whose calls fail, or that is about to be tried. */
static bool look_at_static_rules(struct installer *installer, uint64_t now_us)
{
	return installer->static_rules != NULL && !installer->trials.holds && !installer->down &&
	       static_rules_turn(installer->static_rules, now_us,
		       health_state(&installer->calls.health) != HEALTH_OPEN);
}

/* Answers first: none is late that only was not taken. */
static bool look_after(struct installer *installer)
{
	bool busy = calls_poll(&installer->calls);
	uint64_t now_us = calls_now(&installer->calls);

	calls_judge(&installer->calls, now_us);
	calls_gauge(&installer->calls, 0);
	if (now_us - installer->looked_us < LOOK_US)
		return busy;
	installer->looked_us = now_us;
	calls_take_back(&installer->calls, now_us);
	note_kinds(installer, CHANGE_KIND_IN,
		marking_look(&installer->marking, &installer->calls.health,
			installer->calls.provider, now_us));
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
			if (calls_now(&installer->calls) - installer->looked_us >= LOOK_US)
				busy |= look_after(installer);
		}
		busy |= any;
	}
	return look_after(installer) || busy;
}

static void rest(const struct installer *installer, long *ns)
{
	const long most = installer->calls.awaited.n ? MOST_SLEEP_AWAITING_NS : MOST_SLEEP_NS;
	const struct timespec sleep = {.tv_nsec = *ns < most ? *ns : most};

	nanosleep(&sleep, NULL);
	if (*ns < MOST_SLEEP_NS)
		*ns += *ns / SLEEP_SHARE;
}

/* Ends what has begun, within a second; all rules go together, and with them the requests of workers. */
static void finish(struct installer *installer)
{
	const struct provider_why why = {.error = ETIMEDOUT, .words = "no answer"};
	uint64_t end_us = calls_now(&installer->calls) + AWAITED_STALL_US;
	struct installer_request request;
	long ns = SLEEP_NS;

	while (installer->calls.awaited.n > 0 && calls_now(&installer->calls) < end_us) {
		if (!calls_poll(&installer->calls))
			rest(installer, &ns);
	}
	calls_judge(&installer->calls, calls_now(&installer->calls));
	calls_forget_all(&installer->calls, -EIO, &why);
	uint32_t left = provider_close(installer->calls.provider);

	if (installer->static_rules != NULL)
		left += clear_static_rules(
			installer->static_rules, installer->config.provider.port_id);
	atomic_store_explicit(&installer->calls.counters.rules, left, memory_order_relaxed);
	for (unsigned i = 0; i < installer->config.n_workers; i++) {
		struct desk *desk = &installer->desk[i];

		for (; next_request(desk, &request); desk->held_us = 0)
			calls_answer(&installer->calls, i, &request,
				request.op == INSTALLER_REMOVE ? 0 : -EIO, OFFLOAD_STOPPING);
	}
	calls_gauge(&installer->calls, 0);
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
