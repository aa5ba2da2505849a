/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/exporter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/idle.h"
#include "base/mailbox.h"
#include "base/privilege.h"
#include "export/json.h"
#include "export/top.h"

#define MAILBOX_REPORTS 4096
#define BATCH 64

struct exporter_worker {
	struct mailbox *mailbox;     /* set once */
	_Atomic uint64_t overflowed; /* the worker writes, anyone reads */
} __attribute__((aligned(64)));

/* The collectors in use; the thread's once it has it. */
struct exporter_set {
	bool takes_lines; /* the output does, or one of these */
	unsigned n;
	struct export_collector *collectors[];
};

/* Others in place of those in use: control makes it, and frees it when those that leave have ended. */
struct exporter_change {
	struct exporter_set *set;	/* NULL once the thread has it */
	struct export_collector **kept; /* control's list of the same; NULL once it is in use */
	struct exporter_change *next;
	unsigned n_leaving;
	struct export_collector *leaving[];
};

struct exporter {
	/* set once */
	struct exporter_worker *workers;
	unsigned n_workers;
	char **files; /* names of the runs as JSON strings */
	unsigned n_files;
	bool wire_is_link;
	pthread_t thread;
	bool running;
	/* anyone writes, the threads read */
	atomic_bool finish;
	atomic_bool stopping;
	/* the thread's, until it ends, but for what others may ask of an output */
	struct export_output *output; /* NULL: none */
	struct exporter_set *current;
	struct exporter_change *leaving; /* chain of those whose leaving ones have not ended */
	struct top *top;
	struct exporter_totals totals;
	char *line;
	struct flow_report batch[BATCH];
	/* control's */
	struct export_collector **collectors; /* as of the last change */
	unsigned n_collectors;
	_Atomic(struct exporter_change *) next; /* that the thread is to take over; NULL: none */
	/* the thread writes, anyone reads, under the lock: no worker is among them */
	pthread_mutex_t lock;
	struct exporter_totals live;
	struct exporter_change *gone; /* chain of those whose leaving ones have ended */
};

const char *exporter_protocol_name(enum exporter_protocol protocol)
{
	static const char *const names[EXPORTER_N_PROTOCOLS] = {
		[EXPORTER_TCP] = "tcp",
		[EXPORTER_UDP] = "udp",
		[EXPORTER_SCTP] = "sctp",
		[EXPORTER_ICMP] = "icmp",
		[EXPORTER_OTHER] = "other",
	};

	return names[protocol];
}

enum exporter_protocol exporter_protocol_of(uint8_t proto)
{
	switch (proto) {
	case 6:
		return EXPORTER_TCP;
	case 17:
		return EXPORTER_UDP;
	case 132:
		return EXPORTER_SCTP;
	case 1:
	case 58:
		return EXPORTER_ICMP;
	default:
		return EXPORTER_OTHER;
	}
}

/* The report's line is made once, whoever takes it. */
static struct export_line make_line(struct exporter *exporter, const struct flow_report *report)
{
	const char *file = report->run < exporter->n_files ? exporter->files[report->run] : NULL;

	return (struct export_line){.bytes = exporter->line,
		.length = export_json_line(exporter->line, report, file, exporter->wire_is_link)};
}

static void export_one(struct exporter *exporter, const struct flow_report *report)
{
	const struct flow_record *record = &report->record;
	struct exporter_totals *totals = &exporter->totals;
	struct export_line line = {0};

	if (exporter->current->takes_lines)
		line = make_line(exporter, report);
	if (exporter->output)
		export_output_write(exporter->output, line.bytes, line.length);
	for (unsigned i = 0; i < exporter->current->n; i++)
		export_collector_add(exporter->current->collectors[i], report, &line);
	if (exporter->top)
		top_add(exporter->top, report);
	totals->records++;
	totals->by_end[report->reason]++;
	if (report->reason != FLOW_END_ACTIVE)
		totals->by_protocol[exporter_protocol_of(record->key.proto)]++;
	totals->packets += flow_packets(record, 0) + flow_packets(record, 1);
	totals->bytes += top_bytes(report);
}

/* Shows the totals to those who ask. */
static void publish(struct exporter *exporter)
{
	struct exporter_totals *totals = &exporter->totals;

	if (exporter->output) {
		totals->written = export_output_written(exporter->output);
		totals->lost = export_output_lost(exporter->output);
		for (unsigned i = 0; i < EXPORT_N_LOSSES; i++)
			totals->lost_by[i] =
				export_output_lost_by(exporter->output, (enum export_loss)i);
	}
	pthread_mutex_lock(&exporter->lock);
	exporter->live = *totals;
	pthread_mutex_unlock(&exporter->lock);
}

/* A batch from each worker in turn; returns how many reports there were. */
static unsigned export_round(struct exporter *exporter)
{
	unsigned n_all = 0;

	for (unsigned i = 0; i < exporter->n_workers; i++) {
		unsigned n = mailbox_pop(exporter->workers[i].mailbox, exporter->batch, BATCH);

		for (unsigned j = 0; j < n; j++)
			export_one(exporter, &exporter->batch[j]);
		if (n > 0)
			publish(exporter);
		n_all += n;
	}
	return n_all;
}

/* Whoever reads along sees what there is, once there is a pause. */
static void pause_writing(struct exporter *exporter)
{
	struct export_output *output = exporter->output;

	for (unsigned i = 0; i < exporter->current->n; i++)
		export_collector_flush(exporter->current->collectors[i]);
	if (!output)
		return;
	export_output_flush(output);
	if (export_output_written(output) != exporter->totals.written)
		publish(exporter);
}

/*
 * Collectors that are not in use any more have taken what was theirs, or are not waited for longer. `all`: they are waited for
 * here.
 */
static void end_leaving(struct exporter *exporter, bool all)
{
	struct exporter_change **at = &exporter->leaving;

	while (*at != NULL) {
		struct exporter_change *change = *at;
		bool over = true;

		for (unsigned i = 0; i < change->n_leaving; i++)
			over &= all || export_collector_ends(change->leaving[i]);
		if (!over) {
			at = &change->next;
			continue;
		}
		for (unsigned i = 0; i < change->n_leaving; i++)
			export_collector_end(change->leaving[i]);
		*at = change->next;
		pthread_mutex_lock(&exporter->lock);
		change->next = exporter->gone;
		exporter->gone = change;
		pthread_mutex_unlock(&exporter->lock);
	}
}

/* From the next report on others take them. */
static void take_change(struct exporter *exporter)
{
	struct exporter_change *change =
		atomic_exchange_explicit(&exporter->next, NULL, memory_order_acquire);

	if (change == NULL)
		return;
	free(exporter->current);
	exporter->current = change->set;
	change->set = NULL;
	change->next = NULL;
	for (struct exporter_change **at = &exporter->leaving;; at = &(*at)->next)
		if (*at == NULL) {
			*at = change;
			break;
		}
}

/* All collectors are waited for at once. */
static void end_collectors(struct exporter *exporter)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	bool over = exporter->current->n == 0;

	while (!over) {
		over = true;
		for (unsigned i = 0; i < exporter->current->n; i++)
			over &= export_collector_ends(exporter->current->collectors[i]);
		if (!over)
			(void)nanosleep(&pause, NULL);
	}
	for (unsigned i = 0; i < exporter->current->n; i++)
		export_collector_end(exporter->current->collectors[i]);
	end_leaving(exporter, true);
}

static void end_writing(struct exporter *exporter)
{
	end_collectors(exporter);
	if (exporter->output)
		export_output_end(exporter->output);
	publish(exporter);
}

/* All of the output's life but its begin is in this thread, which no signal of files can end. */
static void *run(void *arg)
{
	struct exporter *exporter = arg;
	struct export_output *output = exporter->output;
	unsigned idle = 0;

	privilege_drop_admin();
	for (;;) {
		/* asked for before the look into the mailboxes: then an empty one stays empty */
		bool finish = atomic_load_explicit(&exporter->finish, memory_order_acquire);

		if (output)
			export_output_tend(output);
		take_change(exporter);
		if (exporter->leaving != NULL)
			end_leaving(exporter, false);
		if (export_round(exporter) > 0) {
			for (unsigned i = 0; i < exporter->current->n; i++)
				export_collector_tend(exporter->current->collectors[i]);
			idle = 0;
			continue;
		}
		if (finish)
			break;
		if (idle >= IDLE_PAUSE)
			pause_writing(exporter);
		idle_wait(&idle);
	}
	end_writing(exporter);
	return NULL;
}

unsigned exporter_push(struct exporter *exporter, unsigned worker,
	const struct flow_report *reports, unsigned n, bool wait)
{
	struct exporter_worker *from = &exporter->workers[worker];
	unsigned done = mailbox_push(from->mailbox, reports, n);
	unsigned idle = 0;

	if (done == n)
		return n;
	wait = wait || atomic_load_explicit(&exporter->stopping, memory_order_relaxed);
	while (wait && done < n) {
		idle_wait(&idle);
		done += mailbox_push(from->mailbox, reports + done, n - done);
	}
	/* one writer: nobody comes between the two */
	uint64_t before = atomic_load_explicit(&from->overflowed, memory_order_relaxed);

	atomic_store_explicit(&from->overflowed, before + n - done, memory_order_relaxed);
	return done;
}

unsigned exporter_room(const struct exporter *exporter, unsigned worker)
{
	return mailbox_room(exporter->workers[worker].mailbox);
}

/* Turns the names into JSON once; returns the length of the longest, or -ENOMEM. */
static ssize_t take_names(struct exporter *exporter, const struct exporter_config *config)
{
	size_t longest = 0;

	if (!config->names)
		return 0;
	exporter->files = calloc(config->n_names, sizeof(exporter->files[0]));
	if (!exporter->files && config->n_names > 0)
		return -ENOMEM;
	for (; exporter->n_files < config->n_names; exporter->n_files++) {
		char *file = export_json_string(config->names[exporter->n_files]);

		if (!file)
			return -ENOMEM;
		exporter->files[exporter->n_files] = file;
		if (strlen(file) > longest)
			longest = strlen(file);
	}
	return (ssize_t)longest;
}

/* NULL: no memory. */
static struct exporter_set *make_set(
	const struct exporter *exporter, struct export_collector *const *collectors, unsigned n)
{
	struct exporter_set *set = malloc(sizeof(*set) + n * sizeof(set->collectors[0]));

	if (set == NULL)
		return NULL;
	set->takes_lines = exporter->output != NULL;
	set->n = n;
	for (unsigned i = 0; i < n; i++) {
		set->collectors[i] = collectors[i];
		set->takes_lines |= export_collector_takes_lines(collectors[i]);
	}
	return set;
}

static int create_parts(struct exporter *exporter, const struct exporter_config *config)
{
	unsigned count = config->mailbox > 0 ? config->mailbox : MAILBOX_REPORTS;
	ssize_t longest = take_names(exporter, config);

	if (longest < 0)
		return -ENOMEM;
	exporter->line = malloc(EXPORT_JSON_MAX + (size_t)longest);
	exporter->collectors = calloc(config->n_collectors + 1, sizeof(exporter->collectors[0]));
	exporter->current = make_set(exporter, config->collectors, config->n_collectors);
	exporter->workers = aligned_alloc(_Alignof(struct exporter_worker),
		config->n_workers * sizeof(struct exporter_worker));
	if (!exporter->line || !exporter->workers || !exporter->collectors || !exporter->current)
		return -ENOMEM;
	if (config->n_collectors > 0)
		memcpy(exporter->collectors, config->collectors,
			config->n_collectors * sizeof(exporter->collectors[0]));
	for (; exporter->n_workers < config->n_workers; exporter->n_workers++) {
		struct exporter_worker *worker = &exporter->workers[exporter->n_workers];

		atomic_init(&worker->overflowed, 0);
		worker->mailbox = mailbox_create("reports", sizeof(struct flow_report), count);
		if (!worker->mailbox)
			return -errno;
	}
	if (config->top > 0) {
		exporter->top = top_create(config->top);
		if (!exporter->top)
			return -ENOMEM;
	}
	return 0;
}

/* Signals are the main thread's: this one starts with all of them blocked. */
static int start_thread(struct exporter *exporter, const struct exporter_config *config)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -ret;
	if (config->cpus)
		ret = pthread_attr_setaffinity_np(&attr, sizeof(*config->cpus), config->cpus);
	if (ret == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = pthread_create(&exporter->thread, &attr, run, exporter);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (ret != 0)
		return -ret;
	pthread_setname_np(exporter->thread, "exporter");
	exporter->running = true;
	return 0;
}

int exporter_create(
	struct exporter **out, const struct exporter_config *config, struct error *error)
{
	struct exporter *exporter =
		aligned_alloc(_Alignof(struct exporter), sizeof(struct exporter));
	int ret = -ENOMEM;

	if (exporter) {
		memset(exporter, 0, sizeof(*exporter));
		pthread_mutex_init(&exporter->lock, NULL);
		exporter->output = config->output;
		exporter->wire_is_link = config->wire_is_link;
		ret = create_parts(exporter, config);
		exporter->n_collectors = ret == 0 ? config->n_collectors : 0;
		if (ret == 0)
			ret = start_thread(exporter, config);
	}
	if (ret < 0) {
		if (exporter) {
			exporter->output = NULL;
			exporter->n_collectors = 0;
		}
		exporter_destroy(exporter);
		return error_set(error, ret, "the exporter does not start: %s", strerror(-ret));
	}
	*out = exporter;
	return 0;
}

static uint64_t overflowed(const struct exporter *exporter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < exporter->n_workers; i++)
		sum += atomic_load_explicit(&exporter->workers[i].overflowed, memory_order_relaxed);
	return sum;
}

void exporter_live_totals(struct exporter *exporter, struct exporter_totals *totals)
{
	pthread_mutex_lock(&exporter->lock);
	*totals = exporter->live;
	pthread_mutex_unlock(&exporter->lock);
	totals->overflowed = overflowed(exporter);
}

void exporter_output_state(struct exporter *exporter, struct export_output_state *state)
{
	if (exporter->output)
		export_output_state(exporter->output, state);
	else
		*state = (struct export_output_state){0};
}

const char *exporter_output_name(const struct exporter *exporter)
{
	return exporter->output ? export_output_name(exporter->output) : "";
}

void exporter_reopen(struct exporter *exporter)
{
	if (exporter->output)
		export_output_reopen(exporter->output);
	for (unsigned i = 0; i < exporter->n_collectors; i++)
		export_collector_reopen(exporter->collectors[i]);
}

bool exporter_reopening(const struct exporter *exporter)
{
	return exporter->output && export_output_reopening(exporter->output);
}

static bool is_among(const struct export_collector *collector,
	struct export_collector *const *collectors, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (collectors[i] == collector)
			return true;
	return false;
}

bool exporter_changing(const struct exporter *exporter)
{
	return atomic_load_explicit(&exporter->next, memory_order_relaxed) != NULL;
}

void exporter_change_drop(struct exporter_change *change)
{
	if (change != NULL) {
		free(change->set);
		free(change->kept);
	}
	free(change);
}

struct exporter_change *exporter_change_make(
	const struct exporter *exporter, struct export_collector *const *collectors, unsigned n)
{
	struct exporter_change *change =
		malloc(sizeof(*change) + exporter->n_collectors * sizeof(change->leaving[0]));

	if (change == NULL)
		return NULL;
	*change = (struct exporter_change){.set = make_set(exporter, collectors, n),
		.kept = calloc(n + 1, sizeof(change->kept[0]))};
	if (change->set == NULL || change->kept == NULL) {
		exporter_change_drop(change);
		return NULL;
	}
	for (unsigned i = 0; i < exporter->n_collectors; i++)
		if (!is_among(exporter->collectors[i], collectors, n))
			change->leaving[change->n_leaving++] = exporter->collectors[i];
	if (n > 0)
		memcpy(change->kept, collectors, n * sizeof(change->kept[0]));
	return change;
}

void exporter_change_begin(struct exporter *exporter, struct exporter_change *change)
{
	free(exporter->collectors);
	exporter->collectors = change->kept;
	exporter->n_collectors = change->set->n;
	change->kept = NULL;
	atomic_store_explicit(&exporter->next, change, memory_order_release);
}

void exporter_left(struct exporter *exporter, exporter_left_fn tell, void *context)
{
	struct exporter_change *gone;

	pthread_mutex_lock(&exporter->lock);
	gone = exporter->gone;
	exporter->gone = NULL;
	pthread_mutex_unlock(&exporter->lock);
	while (gone != NULL) {
		struct exporter_change *next = gone->next;

		for (unsigned i = 0; i < gone->n_leaving; i++) {
			if (tell != NULL)
				tell(context, gone->leaving[i]);
			export_collector_close(gone->leaving[i]);
		}
		free(gone);
		gone = next;
	}
}

void exporter_stopping(struct exporter *exporter)
{
	atomic_store_explicit(&exporter->stopping, true, memory_order_relaxed);
	if (exporter->output)
		export_output_hurry(exporter->output);
	for (unsigned i = 0; i < exporter->n_collectors; i++)
		export_collector_hurry(exporter->collectors[i]);
}

unsigned exporter_n_collectors(const struct exporter *exporter)
{
	return exporter->n_collectors;
}

struct export_collector *exporter_collector(const struct exporter *exporter, unsigned number)
{
	return exporter->collectors[number];
}

int exporter_finish(struct exporter *exporter, struct exporter_totals *totals, struct error *error)
{
	int ret;

	exporter_stopping(exporter);
	atomic_store_explicit(&exporter->finish, true, memory_order_release);
	pthread_join(exporter->thread, NULL);
	exporter->running = false;
	exporter_live_totals(exporter, totals);
	ret = export_output_close(exporter->output, error);
	exporter->output = NULL;
	return ret;
}

const struct flow_report *exporter_top(struct exporter *exporter, unsigned *n)
{
	*n = 0;
	return exporter->top ? top_sorted(exporter->top, n) : NULL;
}

void exporter_destroy(struct exporter *exporter)
{
	struct exporter_totals totals;
	struct error error;

	if (!exporter)
		return;
	if (exporter->running)
		(void)exporter_finish(exporter, &totals, &error);
	exporter_left(exporter, NULL, NULL);
	for (unsigned i = 0; i < exporter->n_workers; i++)
		mailbox_destroy(exporter->workers[i].mailbox);
	for (unsigned i = 0; i < exporter->n_files; i++)
		free(exporter->files[i]);
	for (unsigned i = 0; i < exporter->n_collectors; i++)
		export_collector_close(exporter->collectors[i]);
	free(exporter->collectors);
	free(exporter->current);
	top_destroy(exporter->top);
	pthread_mutex_destroy(&exporter->lock);
	free(exporter->files);
	free(exporter->workers);
	free(exporter->line);
	free(exporter);
}
