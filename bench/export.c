/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This bench measures how many IPFIX records one processor sends in a second. Reports of different flows become records; UDP
 * datagrams carry them through the loopback, and a thread on another processor reads them. Two other rates are measured
 * for comparison: the kernel sends as many datagrams that were made before, and the same flows become lines of JSON in
 * /dev/null.
 *
 * Time is the sending thread's own. What the reader loses is no matter here: the sender has done its work. Then whole
 * programs do the same work (export_rivals.c).
 */
#include "bench/export.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/dpdk.h"
#include "bench/bench.h"
#include "export/collector.h"
#include "export/datagram.h"
#include "export/json.h"
#include "export/output.h"

#define RECORDS_GOAL 3e6
#define DEFAULT_FLOWS 100000

struct exporting {
	const struct bench_options *options;
	struct flow_report *reports;
	unsigned n;
	int reader;
	uint16_t port;
	pthread_t thread;
	atomic_bool leave;
	uint64_t datagrams, bytes; /* that the flows became */
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *read_on(void *arg)
{
	struct exporting *exporting = arg;
	static char bytes[65536];

	while (!atomic_load(&exporting->leave))
		(void)recv(exporting->reader, bytes, sizeof(bytes), 0);
	return NULL;
}

static int start_reader(struct exporting *exporting)
{
	const struct timeval patience = {.tv_usec = 100000};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	exporting->reader = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (exporting->reader < 0 ||
		bind(exporting->reader, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		getsockname(exporting->reader, (struct sockaddr *)&address, &length) < 0 ||
		setsockopt(exporting->reader, SOL_SOCKET, SO_RCVTIMEO, &patience,
			sizeof(patience)) < 0)
		return -errno;
	exporting->port = ntohs(address.sin_port);
	return -pthread_create(&exporting->thread, NULL, read_on, exporting);
}

/* One direction each, so that a flow is a record. */
static void make_reports(struct exporting *exporting)
{
	for (unsigned i = 0; i < exporting->n; i++) {
		struct flow_report *report = &exporting->reports[i];
		struct flow_record *record = &report->record;
		const uint32_t source = htonl(0x0a000000 + i);

		*report = (struct flow_report){.origin_us = UINT64_C(1700000000000000) + i,
			.end_us = 1000 + i,
			.reason = FLOW_END_FIN};
		record->key.version_wire = FLOW_KEY_VERSION_WIRE(4, 0);
		record->key.proto = IPPROTO_TCP;
		memcpy(record->key.addr[0], &source, sizeof(source));
		record->key.addr[1][0] = 192;
		record->key.port[0] = htons((uint16_t)(1024 + i % 60000));
		record->key.port[1] = htons(443);
		flow_set_counts(record, 0, 10 + i, 14000 + i);
		record->end[0].tcp_flags = 0x1b;
	}
}

static bool goes_on(void)
{
	return true;
}

/* Records a second, or 0 when it did not come about. */
static double send_flows(struct exporting *exporting)
{
	struct export_collector *collector;
	struct export_counters counters;
	struct export_target target;
	struct error error;
	char url[64];
	double begin, took;

	snprintf(url, sizeof(url), "ipfix://127.0.0.1:%u", exporting->port);
	if (export_target_parse(&target, url, &error) < 0 ||
		export_collector_open(&collector, &target, NULL, goes_on, &error) < 0)
		return 0;
	begin = now_s();
	for (unsigned i = 0; i < exporting->n; i++) {
		export_collector_add(collector, &exporting->reports[i], NULL);
		/* as the exporter's thread does after each batch of reports */
		if (i % 64 == 63)
			export_collector_tend(collector);
	}
	export_collector_flush(collector);
	took = now_s() - begin;
	export_collector_end(collector);
	export_collector_counters(collector, &counters);
	export_collector_close(collector);
	exporting->datagrams = counters.messages;
	exporting->bytes = counters.bytes;
	return counters.written == exporting->n ? exporting->n / took : 0;
}

/* As many datagrams of the same length, and nothing else. */
static double send_bytes(struct exporting *exporting)
{
	static char bytes[65536];
	struct export_target target;
	struct datagram datagram;
	struct error error;
	struct iovec parts[DATAGRAM_BURST];
	const size_t length = exporting->bytes / exporting->datagrams;
	char url[64];

	for (unsigned i = 0; i < DATAGRAM_BURST; i++)
		parts[i] = (struct iovec){.iov_base = bytes, .iov_len = length};
	snprintf(url, sizeof(url), "ipfix://127.0.0.1:%u", exporting->port);
	if (export_target_parse(&target, url, &error) < 0 ||
		datagram_open(&datagram, &target, &error) < 0)
		return 0;
	const double begin = now_s();

	for (uint64_t left = exporting->datagrams; left > 0;) {
		const int n = datagram_send(
			&datagram, parts, left < DATAGRAM_BURST ? (unsigned)left : DATAGRAM_BURST);

		left -= n > 0 ? (unsigned)n : 0;
	}
	const double took = now_s() - begin;

	datagram_close(&datagram);
	return exporting->n / took;
}

static double write_lines(struct exporting *exporting)
{
	static char line[EXPORT_JSON_MAX];
	struct export_output *output;
	struct error error;

	if (export_output_open(&output, "/dev/null", &error) < 0)
		return 0;
	const double begin = now_s();

	for (unsigned i = 0; i < exporting->n; i++)
		export_output_write(
			output, line, export_json_line(line, &exporting->reports[i], NULL, false));
	export_output_flush(output);
	const double took = now_s() - begin;

	export_output_close(output, &error);
	return exporting->n / took;
}

static int measure(struct exporting *exporting)
{
	const bool json = exporting->options->json;
	struct bench_row goal = {.bench = "export",
		.measure = "export",
		.load = "udp",
		.flows = exporting->n,
		.unit = "1/s",
		.against = "goal",
		.goal = 1,
		.rate = true,
		.rounds = BENCH_ROUNDS};
	struct bench_row kernel = goal, lines = goal;

	kernel.against = "kernel_alone";
	lines.against = "json_lines";
	kernel.goal = lines.goal = 0;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		const double ours = send_flows(exporting);

		if (ours == 0)
			return -EIO;
		goal.ours[i] = kernel.ours[i] = lines.ours[i] = ours;
		goal.theirs[i] = RECORDS_GOAL;
		kernel.theirs[i] = send_bytes(exporting);
		lines.theirs[i] = write_lines(exporting);
	}
	bench_print(&goal, json);
	bench_print(&kernel, json);
	bench_print(&lines, json);
	return 0;
}

int bench_export(const struct bench_options *options)
{
	struct exporting exporting = {.options = options, .reader = -1};
	const unsigned n = options->n_flows > 0 ? options->n_flows : 1;
	static const uint32_t programs_flows[] = {100000, 1000000};
	struct error error;
	int ret = dpdk_start(64, &error);

	if (ret < 0) {
		fprintf(stderr, "millrace: bench export: %s\n", error.text);
		return ret;
	}
	ret = start_reader(&exporting);
	bench_pin();
	bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && i < n && bench_asked(options->measures, "export"); i++) {
		exporting.n = options->n_flows > 0 ? options->flows[i] : DEFAULT_FLOWS;
		exporting.reports = aligned_alloc(64, exporting.n * sizeof(*exporting.reports));
		if (exporting.reports == NULL) {
			ret = -ENOMEM;
			break;
		}
		make_reports(&exporting);
		ret = measure(&exporting);
		free(exporting.reports);
	}
	if (ret == 0 && bench_asked(options->measures, "programs"))
		ret = export_rivals(options->n_flows > 0 ? options->flows : programs_flows,
			options->n_flows > 0 ? options->n_flows : RTE_DIM(programs_flows),
			exporting.port, options->against, options->json);
	if (exporting.port != 0) {
		atomic_store(&exporting.leave, true);
		pthread_join(exporting.thread, NULL);
	}
	if (exporting.reader >= 0)
		close(exporting.reader);
	dpdk_stop();
	return ret;
}
