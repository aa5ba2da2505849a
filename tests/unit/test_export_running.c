/* SPDX-License-Identifier: BSD-3-Clause */
/* The exporter of a live engine: asked and told things while its workers push. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "export_live.h"

#include "export/exporter.h"
#include "export/news.h"

#define N_WORKERS 2

/* The worker's number in the zone, the flow's own in the bytes. */
static struct flow_report flow(unsigned worker, uint32_t number)
{
	struct flow_report report = {0};

	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	report.record.key.proto = 17;
	report.record.key.zone = (uint16_t)worker;
	report.record.count[0].packets_low = 1;
	report.record.count[0].bytes_low = number;
	report.reason = number % 2 ? FLOW_END_IDLE : FLOW_END_ACTIVE;
	report.worker = (uint8_t)worker;
	return report;
}

struct pusher {
	struct exporter *exporter;
	unsigned worker;
	bool wait;
	atomic_bool end;
	pthread_t thread;
	/* when the thread has ended */
	uint32_t n;
	uint64_t taken;
};

/* Pushes until told to end, and a burst more. */
static void *push(void *arg)
{
	struct pusher *pusher = arg;
	struct flow_report burst[16];
	bool end;

	do {
		end = atomic_load(&pusher->end);
		for (unsigned i = 0; i < 16; i++)
			burst[i] = flow(pusher->worker, pusher->n++);
		pusher->taken +=
			exporter_push(pusher->exporter, pusher->worker, burst, 16, pusher->wait);
	} while (!end);
	return NULL;
}

static void start_pushers(struct pusher *pushers, struct exporter *exporter, bool wait)
{
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pushers[i] = (struct pusher){.exporter = exporter, .worker = i, .wait = wait};
		assert_int_equal(pthread_create(&pushers[i].thread, NULL, push, &pushers[i]), 0);
	}
}

static void end_pushers(struct pusher *pushers)
{
	for (unsigned i = 0; i < N_WORKERS; i++)
		atomic_store(&pushers[i].end, true);
	for (unsigned i = 0; i < N_WORKERS; i++)
		pthread_join(pushers[i].thread, NULL);
}

static struct exporter *start(
	const char *name, const struct export_output_limits *limits, unsigned mailbox)
{
	struct exporter_config config = {.n_workers = N_WORKERS, .mailbox = mailbox};
	struct exporter *exporter = NULL;
	struct error error = {""};

	if (name)
		config.output = open_live(name, limits);
	if (exporter_create(&exporter, &config, &error) < 0)
		fail_msg("%s", error.text);
	return exporter;
}

static struct export_output_state output_state(struct exporter *exporter)
{
	struct export_output_state state;

	exporter_output_state(exporter, &state);
	return state;
}

static struct exporter_totals totals_of(struct exporter *exporter)
{
	struct exporter_totals totals;

	exporter_live_totals(exporter, &totals);
	return totals;
}

/* Waits for `condition`, which the exporter or a worker will make true. */
#define WAIT_FOR(condition)                                        \
	for (uint64_t until_ms = now_ms() + LONG; !(condition);) { \
		if (now_ms() > until_ms)                           \
			fail_msg("in vain: %s", #condition);       \
		sched_yield();                                     \
	}

/* Whole lines; each worker's in order. Goes on where the last file ended; returns how many. */
static uint64_t check_records(const char *name, uint32_t next[N_WORKERS])
{
	FILE *file = fopen(name, "r");
	char line[2048];
	uint64_t n = 0;

	assert_non_null(file);
	for (; fgets(line, sizeof(line), file); n++) {
		unsigned zone, bytes;
		const char *found = strstr(line, "\"zone\":");

		assert_non_null(found);
		assert_int_equal(
			sscanf(found, "\"zone\":%u,\"packets\":1,\"bytes\":%u,", &zone, &bytes), 2);
		assert_true(zone < N_WORKERS);
		assert_int_equal(bytes, next[zone]++);
		assert_int_equal(strncmp(line, "{\"version\":4,", 13), 0);
		assert_string_equal(line + strlen(line) - 3, "}}\n");
	}
	fclose(file);
	return n;
}

/* Without an output flows are counted, and nothing else. */
static void test_no_output(void **state)
{
	struct exporter *exporter = start(NULL, NULL, 0);
	struct pusher pushers[N_WORKERS];
	struct exporter_totals totals;
	struct export_news news = {0};
	struct error error = {""};

	(void)state;
	start_pushers(pushers, exporter, true);
	WAIT_FOR(totals_of(exporter).records > 1000);
	exporter_reopen(exporter);
	export_news_look(&news, exporter, 1);
	assert_int_equal(news.n_lines, 0);
	assert_int_equal(output_state(exporter).failure, 0);
	assert_string_equal(exporter_output_name(exporter), "");
	end_pushers(pushers);
	assert_int_equal(exporter_finish(exporter, &totals, &error), 0);
	assert_int_equal(totals.records, pushers[0].n + pushers[1].n);
	assert_int_equal(totals.packets, totals.records);
	assert_int_equal(totals.by_end[FLOW_END_IDLE], totals.records / 2);
	assert_int_equal(totals.by_protocol[EXPORTER_UDP], totals.records / 2);
	assert_int_equal(totals.written + totals.lost + totals.overflowed, 0);
	exporter_destroy(exporter);
}

/* The file is rotated again and again while records come: every one is in one file, whole. */
static void test_rotates(void **state)
{
	struct exporter *exporter = start(path, NULL, 64);
	struct pusher pushers[N_WORKERS];
	struct exporter_totals totals, before = {0};
	uint32_t next[N_WORKERS] = {0};
	struct error error = {""};
	uint64_t n = 0;

	(void)state;
	start_pushers(pushers, exporter, true);
	for (unsigned i = 1; i <= 20; i++) {
		WAIT_FOR(totals_of(exporter).written > before.written);
		assert_int_equal(rename(path, moved), 0);
		exporter_reopen(exporter);
		WAIT_FOR(output_state(exporter).n_reopened == i);
		n += check_records(moved, next);
		totals = totals_of(exporter);
		/* of one moment, all of them */
		assert_true(totals.written + totals.lost <= totals.records);
		assert_true(totals.records >= before.records);
		assert_int_equal(totals.packets, totals.records);
		assert_int_equal(totals.by_end[FLOW_END_IDLE] + totals.by_end[FLOW_END_ACTIVE],
			totals.records);
		before = totals;
	}
	end_pushers(pushers);
	assert_int_equal(exporter_finish(exporter, &totals, &error), 0);
	n += check_records(path, next);
	assert_int_equal(n, totals.records);
	assert_int_equal(totals.written, totals.records);
	assert_int_equal(totals.lost + totals.overflowed, 0);
	for (unsigned i = 0; i < N_WORKERS; i++)
		assert_int_equal(next[i], pushers[i].n);
	exporter_destroy(exporter);
}

/* A reader that reads nothing holds up neither the workers, nor reopening, nor the end. */
static void test_stuck(void **state)
{
	const struct export_output_limits limits = {.retry_ms = 1, .stall_ms = 50, .buffer = HOLDS};
	struct pusher pushers[N_WORKERS];
	struct exporter_totals totals;
	struct export_news news = {0};
	struct error error = {""};

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	struct exporter *exporter = start(path, &limits, 64);

	start_pushers(pushers, exporter, false);
	WAIT_FOR(totals_of(exporter).lost_by[EXPORT_LOSS_READER] > 1000);
	export_news_look(&news, exporter, 1);
	assert_true(news.lost > 1000);
	assert_int_equal(news.n_lines, 1);
	assert_non_null(strstr(news.lines[0].text,
		"/records: flows end faster than their records can be written, and some are lost"));
	WAIT_FOR(output_state(exporter).failure == -ETIMEDOUT);
	export_news_look(&news, exporter, 2);
	assert_int_equal(news.n_lines, 1);
	assert_non_null(
		strstr(news.lines[0].text, "/records: the reader of the records takes none"));

	/* somebody puts a file in its place */
	assert_int_equal(rename(path, moved), 0);
	exporter_reopen(exporter);
	WAIT_FOR(output_state(exporter).failure == 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(moved, path), 0);
	exporter_reopen(exporter);
	WAIT_FOR(output_state(exporter).n_reopened == 2);
	uint64_t before = totals_of(exporter).lost_by[EXPORT_LOSS_READER];

	WAIT_FOR(totals_of(exporter).lost_by[EXPORT_LOSS_READER] > before + 1000);
	uint64_t began = now_ms();

	/* from here on the workers wait, but not for ever */
	exporter_stopping(exporter);
	end_pushers(pushers);
	assert_int_equal(exporter_finish(exporter, &totals, &error), -ETIMEDOUT);
	assert_true(now_ms() - began < LONG / 2);
	assert_int_equal(totals.records, pushers[0].taken + pushers[1].taken);
	assert_int_equal(totals.records + totals.overflowed, (uint64_t)pushers[0].n + pushers[1].n);
	assert_int_equal(totals.written + totals.lost, totals.records);
	/* whatever became of them: they add up, by cause */
	assert_int_equal(exporter_made(&totals), (uint64_t)pushers[0].n + pushers[1].n);
	assert_int_equal(totals.written + exporter_lost(&totals), exporter_made(&totals));
	assert_true(totals.lost_by[EXPORT_LOSS_READER] > 0);
	assert_int_equal(totals.lost_by[EXPORT_LOSS_READER], totals.lost);
	assert_int_equal(totals.lost_by[EXPORT_LOSS_WRITE], 0);
	exporter_destroy(exporter);
	close(reader);
}

/* The reports that every flow makes at the end are more than the mailbox holds; none is lost. */
static void test_stopping(void **state)
{
	struct exporter *exporter = start(path, NULL, 64);
	struct flow_report *reports = aligned_alloc(64, 5000 * sizeof(*reports));
	struct exporter_totals totals;
	uint32_t next[N_WORKERS] = {0};
	struct error error = {""};

	(void)state;
	for (uint32_t i = 0; i < 5000; i++)
		reports[i] = flow(1, i);
	exporter_stopping(exporter);
	assert_int_equal(exporter_push(exporter, 1, reports, 5000, false), 5000);
	assert_int_equal(exporter_finish(exporter, &totals, &error), 0);
	assert_int_equal(totals.written, 5000);
	assert_int_equal(totals.overflowed, 0);
	assert_int_equal(check_records(path, next), 5000);
	exporter_destroy(exporter);
	free(reports);
}

static void push_some(struct exporter *exporter, uint32_t *number, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct flow_report report = flow(0, (*number)++);

		assert_int_equal(exporter_push(exporter, 0, &report, 1, true), 1);
	}
}

static uint64_t ended_so_far(struct exporter *exporter)
{
	struct exporter_totals totals = totals_of(exporter);

	return totals.written + totals.lost;
}

/* Looks, and wants this one line, after the file's name; NULL: none. */
static void check_news(
	struct export_news *news, struct exporter *exporter, uint64_t now_us, const char *line)
{
	export_news_look(news, exporter, now_us);
	assert_int_equal(news->n_lines, line ? 1 : 0);
	if (line) {
		assert_int_equal(strncmp(news->lines[0].text, path, strlen(path)), 0);
		assert_string_equal(news->lines[0].text + strlen(path), line);
	}
}

/* One line when writing fails, one when it works again; in between the losses are counted. */
static void test_news(void **state)
{
	struct exporter *exporter = start(path, &quick, 0);
	struct export_news news = {0};
	struct exporter_totals totals;
	struct error error = {""};
	uint32_t number = 0;
	char wanted[256];

	(void)state;
	/* the exporter's thread does not mind that this signal would end the process */
	signal(SIGXFSZ, SIG_DFL);
	check_news(&news, exporter, 0, NULL);
	set_room(1000);
	push_some(exporter, &number, 50);
	WAIT_FOR(output_state(exporter).failure == -EFBIG);
	check_news(&news, exporter, 1000000,
		": writing the records failed: File too large; trying again, and counting what is "
		"lost");
	push_some(exporter, &number, 5000);
	WAIT_FOR(totals_of(exporter).records == number);
	check_news(&news, exporter, 60000000, NULL);
	totals = totals_of(exporter);
	assert_true(totals.lost > 1000);
	assert_int_equal(news.lost, totals.lost);

	set_room(RLIM_INFINITY);
	WAIT_FOR(ended_so_far(exporter) == number);
	assert_int_equal(output_state(exporter).failure, 0);
	check_news(&news, exporter, 61999999, NULL);
	snprintf(wanted, sizeof(wanted), ": writing again; %ju,%03ju records were lost",
		(uintmax_t)totals.lost / 1000, (uintmax_t)totals.lost % 1000);
	check_news(&news, exporter, 62000000, wanted);
	assert_int_equal(exporter_finish(exporter, &totals, &error), 0);
	exporter_destroy(exporter);
	signal(SIGXFSZ, SIG_IGN);
}

static void test_news_of_reopening(void **state)
{
	struct exporter *exporter = start(path, NULL, 0);
	struct export_news news = {0};

	(void)state;
	exporter_reopen(exporter);
	WAIT_FOR(output_state(exporter).n_reopened == 1);
	check_news(&news, exporter, 1, ": opened anew");
	check_news(&news, exporter, 2, NULL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	exporter_reopen(exporter);
	WAIT_FOR(output_state(exporter).n_not_reopened == 1);
	check_news(&news, exporter, 3,
		": cannot be opened anew: Is a directory; writing goes on to what was open");
	assert_int_equal(rmdir(path), 0);
	exporter_destroy(exporter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_output),
		cmocka_unit_test_teardown(test_rotates, remove_files),
		cmocka_unit_test_teardown(test_stuck, remove_files),
		cmocka_unit_test_teardown(test_stopping, remove_files),
		cmocka_unit_test_teardown(test_news, remove_files),
		cmocka_unit_test_teardown(test_news_of_reopening, remove_files),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
