/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "export/exporter.h"

#define N_WORKERS 3
#define N_REPORTS 20000

static struct flow_report flow(unsigned worker, uint32_t number)
{
	static const uint8_t protocols[] = {6, 17, 132, 1, 58, 47};
	struct flow_report report = {0};

	report.record.key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
	report.record.key.proto = protocols[number % 6];
	memcpy(report.record.key.addr[1], &number, sizeof(number));
	report.record.key.zone = (uint16_t)worker;
	report.record.count[0].packets_low = 2;
	report.record.count[1].bytes_low = 100 + number;
	report.reason = number % FLOW_N_ENDS & 0x3f;
	report.worker = (uint8_t)worker;
	report.run = worker;
	return report;
}

struct pusher {
	struct exporter *exporter;
	unsigned worker;
};

static void *push_all(void *arg)
{
	struct pusher *pusher = arg;
	struct flow_report burst[7];

	for (uint32_t number = 0; number < N_REPORTS;) {
		unsigned n = 0;

		while (n < 7 && number < N_REPORTS)
			burst[n++] = flow(pusher->worker, number++);
		if (exporter_push(pusher->exporter, pusher->worker, burst, n, true) != n)
			return pusher;
	}
	return NULL;
}

static struct exporter *start(struct exporter_config *config, const char *path)
{
	struct exporter *exporter = NULL;
	struct error error = {""};

	if (export_output_open(&config->output, path, &error) < 0 ||
		exporter_create(&exporter, config, &error) < 0)
		fail_msg("%s", error.text);
	return exporter;
}

static void push_from_all(struct exporter *exporter)
{
	struct pusher pushers[N_WORKERS];
	pthread_t threads[N_WORKERS];

	for (unsigned i = 0; i < N_WORKERS; i++) {
		pushers[i] = (struct pusher){.exporter = exporter, .worker = i};
		assert_int_equal(pthread_create(&threads[i], NULL, push_all, &pushers[i]), 0);
	}
	for (unsigned i = 0; i < N_WORKERS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

/* Each worker's records are all there, in its order, under its capture's name. */
static void check_file(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned seen[N_WORKERS] = {0};
	char line[2048];

	while (fgets(line, sizeof(line), file)) {
		json_t *object = json_loads(line, 0, NULL);
		unsigned worker = (unsigned)json_integer_value(json_object_get(object, "zone"));
		const char *name = json_string_value(json_object_get(object, "file"));

		assert_true(worker < N_WORKERS);
		assert_int_equal(json_integer_value(json_object_get(object, "reverse_bytes")),
			100 + seen[worker]++);
		/* the last run has no name here: a record without "file" */
		if (worker == 2)
			assert_null(name);
		else
			assert_string_equal(name, worker ? "b\"" : "a");
		json_decref(object);
	}
	fclose(file);
	for (unsigned i = 0; i < N_WORKERS; i++)
		assert_int_equal(seen[i], N_REPORTS);
}

static void test_workers(void **state)
{
	const char *names[] = {"a", "b\""};
	/* a mailbox so small that everybody has to wait now and then */
	struct exporter_config config = {
		.n_workers = N_WORKERS, .names = names, .n_names = 2, .top = 5, .mailbox = 16};
	char path[] = "/tmp/millrace-test-XXXXXX";
	struct exporter_totals totals;
	struct error error = {""};
	uint64_t all = (uint64_t)N_WORKERS * N_REPORTS;
	unsigned n;

	(void)state;
	close(mkstemp(path));
	struct exporter *exporter = start(&config, path);

	push_from_all(exporter);
	assert_int_equal(exporter_finish(exporter, &totals, &error), 0);
	assert_int_equal(totals.records, all);
	assert_int_equal(totals.written, all);
	assert_int_equal(totals.lost, 0);
	assert_int_equal(totals.overflowed, 0);
	assert_int_equal(totals.packets, 2 * all);
	assert_int_equal(totals.bytes,
		N_WORKERS *
			(100 * (uint64_t)N_REPORTS + (uint64_t)N_REPORTS * (N_REPORTS - 1) / 2));

	uint64_t by_end = 0, flows = 0;

	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		by_end += totals.by_end[i];
	for (unsigned i = 0; i < EXPORTER_N_PROTOCOLS; i++)
		flows += totals.by_protocol[i];
	assert_int_equal(by_end, all);
	assert_int_equal(flows, all - totals.by_end[FLOW_END_ACTIVE]);
	assert_int_equal(totals.by_protocol[EXPORTER_SCTP] > 0, 1);

	const struct flow_report *top = exporter_top(exporter, &n);

	assert_int_equal(n, 5);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(
			top[i].record.count[1].bytes_low, 100 + N_REPORTS - 1 - i / N_WORKERS);
	exporter_destroy(exporter);
	check_file(path);
	unlink(path);
}

/* A failed output stops nobody; it is told at the end. */
static void test_disk_full(void **state)
{
	struct exporter_config config = {.n_workers = N_WORKERS};
	struct exporter *exporter = start(&config, "/dev/full");
	struct exporter_totals totals;
	struct error error = {""};
	unsigned n = 1;

	(void)state;
	push_from_all(exporter);
	assert_int_equal(exporter_finish(exporter, &totals, &error), -ENOSPC);
	assert_int_equal(totals.records, N_WORKERS * N_REPORTS);
	assert_int_equal(totals.written, 0);
	assert_int_equal(totals.lost, N_WORKERS * N_REPORTS);
	assert_null(exporter_top(exporter, &n));
	assert_int_equal(n, 0);
	exporter_destroy(exporter);
	exporter_destroy(NULL);
}

/* Nobody reads: a worker that must not wait goes on, and its loss is counted. */
static void test_slow_reader(void **state)
{
	struct exporter_config config = {.n_workers = 1, .mailbox = 64};
	struct exporter_totals totals;
	struct error error = {""};
	uint64_t taken = 0;
	char path[32];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	struct exporter *exporter = start(&config, path);

	close(ends[1]);
	for (uint32_t i = 0; i < N_REPORTS; i++) {
		struct flow_report report = flow(0, i);

		taken += exporter_push(exporter, 0, &report, 1, false);
	}
	assert_true(taken < N_REPORTS);
	close(ends[0]);
	int ret = exporter_finish(exporter, &totals, &error);

	assert_true(ret == 0 || ret == -EPIPE);
	assert_int_equal(totals.records, taken);
	assert_int_equal(totals.overflowed, N_REPORTS - taken);
	assert_int_equal(totals.written + totals.lost, taken);
	exporter_destroy(exporter);
}

/* What is there reaches a reader who waits, long before the buffer is full. */
static void test_idle_flush(void **state)
{
	struct exporter_config config = {.n_workers = 1};
	struct flow_report report = flow(0, 1);
	char path[32], bytes[2048];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	struct exporter *exporter = start(&config, path);

	close(ends[1]);
	exporter_push(exporter, 0, &report, 1, true);
	assert_true(read(ends[0], bytes, sizeof(bytes)) > 100);
	exporter_destroy(exporter);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_idle_flush),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
