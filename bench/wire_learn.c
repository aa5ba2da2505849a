/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows learned, aged and handed to an exporter, a second of the worker's CPU time.
 *
 * Every packet begins a flow, and no flow has a second one. The worker is an engine's, turned here: its
 * packets come through its port, are looked up, learned and sent; flows idle out by the worker's own
 * wheels; their reports go as in `millrace run` through the exporter's mailbox to its thread, which runs
 * on another processor. The clock is a test clock, led on by so much with each burst that flows end as
 * fast as they begin, while `flows` are live: it runs as fast as the worker works.
 *
 * Nothing may be lost: where the mailbox has not room for what a turn may bring, the worker waits for the
 * exporter, and that counts as its CPU time. In the end what was learned, what has ended and what the
 * exporter has had must be equal, and no flow may have been evicted.
 *
 * Frames are made by the source as they are received: their cost is in the rate.
 *
 * wire_learn_export() measures what exports cost the worker. It compares two engines under the same churn: the exporter of
 * one sends IPFIX records to an unread socket of the loopback, that of the other only counts. The worker's waits for the
 * mailbox are left out, since a live worker never waits.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_pause.h>

#include "base/idle.h"
#include "base/mapping.h"
#include "bench/source.h"
#include "bench/wire.h"
#include "dataplane/poll.h"
#include "export/exporter.h"
#include "export/json.h"
#include "traffic/stream_write.h"

#define GOAL_LEARNED 4e6
/* With exports the worker may take 3 % more cycles a flow than without (a ratio of theirs to ours). */
#define GOAL_EXPORT (1 / 1.03)

/* Of flows that have had one packet: some seconds, of which the last is not whole. */
#define IDLE_S 10
#define IDLE_S_FEW 1
#define MANY 500000

/* The clock's microseconds before flows end at a steady rate, and when a second's work is surely done. */
#define SECOND_US UINT64_C(1000000)
#define HALF_US (SECOND_US / 2)

/* Reports for the mailbox: its size, and what a turn may bring beside one for each microsecond. */
#define MAILBOX 4096
#define ROOM_BESIDE 512

#define JSON_REPORTS 4096
#define JSON_RECORDS (1u << 17)

struct learning {
	const struct wire_bench *bench;
	uint32_t flows;
	uint32_t idle_s;
	uint64_t burst_us; /* of the clock, for each BENCH_BURST packets */
	uint64_t now_us;
	uint64_t step_us; /* by how much the last turn has led it on */
	uint64_t cycles;  /* of all turns */
	struct port *port[2];
	struct plane *plane;
	struct exporter *exporter;
	int collector_socket; /* where IPFIX records are sent to; -1: there is no export */
	struct export_collector *collector; /* the exporter's, or NULL */
	int cpu;			    /* the exporter's; -1: this one */
	bool ending;
	struct flow_report *reports; /* some, for JSON */
	unsigned n_reports;
};

/* Behind the first port: streams that come once each. */
static struct {
	struct rte_mempool *pool;
	struct stream_set *set;
	uint32_t next;
} source;

static uint16_t receive_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	n = (uint16_t)(n & ~3);
	if (queue == NULL || rte_pktmbuf_alloc_bulk(source.pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i += 4) {
		uint32_t streams[4];
		uint8_t *data[4];

		for (unsigned j = 0; j < 4; j++) {
			struct rte_mbuf *packet = packets[i + j];

			streams[j] = 2 * (source.next++ & (STREAM_MAX_FLOWS - 1));
			data[j] = rte_pktmbuf_mtod(packet, uint8_t *);
			packet->data_len = STREAM_MIN_BYTES;
			packet->pkt_len = STREAM_MIN_BYTES;
		}
		stream_write_4(source.set, streams, data);
	}
	return n;
}

static uint16_t send_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

/* Ports that are ordinary ethdevs but for their bursts. */
static void use_source(const struct learning *learning)
{
	source.pool = plane_pool(learning->plane);
	for (unsigned side = 0; side < 2; side++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[learning->port[side]->id];

		ops->rx_pkt_burst = receive_burst;
		ops->tx_pkt_burst = send_burst;
		ops->rxq.data[0] = side == 0 ? (void *)&source : NULL;
	}
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct learning *learning = context;

	for (unsigned i = 0; learning->ending && i < n && learning->n_reports < JSON_REPORTS; i++)
		learning->reports[learning->n_reports++] = reports[i];
	exporter_push(learning->exporter, 0, reports, n, learning->ending);
}

static unsigned room(void *context, unsigned worker)
{
	const struct learning *learning = context;

	return exporter_room(learning->exporter, worker);
}

static int open_collector(struct learning *learning, struct error *error)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	struct export_target target;
	char url[64];
	int ret;

	if (getsockname(learning->collector_socket, (struct sockaddr *)&address, &length) < 0)
		return error_set(error, -errno, "no address of the loopback");
	snprintf(url, sizeof(url), "ipfix://127.0.0.1:%u", ntohs(address.sin_port));
	ret = export_target_parse(&target, url, error);
	return ret < 0 ? ret
		       : export_collector_open(&learning->collector, &target, NULL, NULL, error);
}

static int create_exporter(struct learning *learning, struct error *error)
{
	struct exporter_config config = {.n_workers = 1, .mailbox = MAILBOX};
	cpu_set_t cpus;
	int ret = learning->collector_socket < 0 ? 0 : open_collector(learning, error);

	if (ret < 0)
		return ret;
	config.collectors = &learning->collector;
	config.n_collectors = learning->collector != NULL;
	CPU_ZERO(&cpus);
	if (learning->cpu >= 0) {
		CPU_SET(learning->cpu, &cpus);
		config.cpus = &cpus;
	}
	return exporter_create(&learning->exporter, &config, error);
}

static int create_plane(struct learning *learning, struct error *error)
{
	/* as elsewhere; of short lives many more may be there just before a tick */
	uint32_t flows = learning->idle_s == IDLE_S ? (uint32_t)(learning->flows / 0.875)
						    : 2 * learning->flows;
	struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {learning->port[0], learning->port[1]},
		.n_workers = 1,
		.poll_always = true,
		.flows = RTE_MAX(flows, 1024u),
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = take_reports,
		.room = room,
		.sink_context = learning,
	};

	config.timeouts.seconds[FLOW_TIMEOUT_UDP_NEW] = learning->idle_s;
	return plane_create(&learning->plane, &config, error);
}

static int create(struct learning *learning, struct error *error)
{
	const struct stream_config streams = {.flows = STREAM_MAX_FLOWS};
	int ret = stream_set_create(&source.set, &streams, error);

	learning->reports = calloc(JSON_REPORTS, sizeof(learning->reports[0]));
	if (ret == 0 && learning->reports == NULL)
		ret = error_set(error, -ENOMEM, "no memory for reports");
	if (ret == 0)
		ret = bench_null_ports(learning->port, error);
	if (ret == 0)
		ret = create_exporter(learning, error);
	if (ret == 0)
		ret = create_plane(learning, error);
	if (ret == 0)
		use_source(learning);
	return ret;
}

static void destroy(struct learning *learning)
{
	for (unsigned side = 0; side < 2; side++)
		port_close(learning->port[side]);
	plane_destroy(learning->plane);
	exporter_destroy(learning->exporter);
	stream_set_destroy(source.set);
	source.set = NULL;
	free(learning->reports);
}

static void await_room(const struct learning *learning)
{
	unsigned wanted = (unsigned)RTE_MIN(learning->step_us + ROOM_BESIDE, (uint64_t)MAILBOX);
	unsigned idle = 0;

	while (exporter_room(learning->exporter, 0) < wanted) {
		if (learning->cpu >= 0)
			rte_pause();
		else
			idle_wait(&idle);
	}
}

/* Until the clock says so. */
static void turn_until(struct learning *learning, uint64_t until_us)
{
	struct lcore *lcore = &learning->plane->lcores[0];

	while (learning->now_us < until_us) {
		await_room(learning);

		const uint64_t begin = rte_rdtsc();

		lcore_poll(lcore, learning->now_us);
		learning->cycles += rte_rdtsc() - begin;
		/* by what has come: how many bursts a turn takes is the engine's business */
		uint64_t now_us = lcore->ports[0].rx_packets * learning->burst_us / BENCH_BURST;

		learning->step_us = now_us - learning->now_us;
		learning->now_us = now_us;
	}
}

static uint64_t ended(const struct learning *learning)
{
	const struct flow_counters *counters = &learning->plane->lcores[0].worker.shard->counters;
	uint64_t sum = 0;

	for (unsigned i = 0; i < FLOW_N_ENDS; i++)
		sum += counters->ended[i];
	return sum;
}

/* Flows a second that begin and end, over a whole number of the clock's seconds. */
static double measure(struct learning *learning)
{
	const struct flow_counters *counters = &learning->plane->lcores[0].worker.shard->counters;
	uint64_t learned_before = counters->learned, ended_before = ended(learning);
	double begin = wire_cpu_time();

	turn_until(learning, learning->now_us + learning->idle_s * SECOND_US);
	double took = wire_cpu_time() - begin;
	uint64_t learned = counters->learned - learned_before;

	return (double)RTE_MIN(learned, ended(learning) - ended_before) / took;
}

/* Ends what lives, and has everything counted once more. */
static int settle(struct learning *learning)
{
	const struct flow_shard *shard = learning->plane->lcores[0].worker.shard;
	const struct flow_counters *counters = &shard->counters;
	struct exporter_totals totals;
	struct error error;
	char line[256];

	learning->ending = true;
	flow_shard_end_all(learning->plane->lcores[0].worker.shard);
	int ret = exporter_finish(learning->exporter, &totals, &error);

	if (ret < 0)
		wire_say(error.text);
	if (ret == 0 && counters->learned == ended(learning) &&
		counters->learned == totals.records && counters->packets == totals.packets &&
		totals.overflowed == 0 && counters->ended[FLOW_END_EVICTED] == 0)
		return 0;
	snprintf(line, sizeof(line),
		"learn_rate: %" PRIu64 " flows learned, %" PRIu64 " ended, %" PRIu64
		" of them evicted, %" PRIu64 " exported, %" PRIu64 " lost",
		counters->learned, ended(learning), counters->ended[FLOW_END_EVICTED],
		totals.records, totals.overflowed);
	wire_say(line);
	return -EIO;
}

/* Records a second that become JSON and are written, to where nothing is kept. */
static int measure_json(const struct learning *learning, double rates[BENCH_ROUNDS])
{
	static char json[EXPORT_JSON_MAX];
	struct export_output *output;
	struct error error;
	int ret = export_output_open(&output, "/dev/null", &error);

	for (unsigned round = 0; ret == 0 && round < BENCH_ROUNDS; round++) {
		double begin = wire_cpu_time();

		for (unsigned i = 0; i < JSON_RECORDS; i++) {
			const struct flow_report *report =
				&learning->reports[i % learning->n_reports];

			export_output_write(
				output, json, export_json_line(json, report, NULL, false));
		}
		export_output_flush(output);
		rates[round] = JSON_RECORDS / (wire_cpu_time() - begin);
	}
	if (ret == 0)
		ret = export_output_close(output, &error);
	if (ret < 0)
		wire_say(error.text);
	return ret;
}

static void print_rows(const struct learning *learning, const double *learned, const double *json)
{
	const struct bench_options *options = &learning->bench->options;
	struct bench_row row = {.bench = "wire",
		.measure = "learn_rate",
		.load = "uniform",
		.flows = learning->flows,
		.unit = "flows/s",
		.against = "goal",
		.goal = 1,
		.rate = true,
		.rounds = BENCH_ROUNDS};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = learned[i];
		row.theirs[i] = GOAL_LEARNED;
	}
	if (bench_asked(options->measures, "learn_rate"))
		bench_print(&row, options->json);
	row.measure = "json_rate";
	row.unit = "records/s";
	row.against = "learn_rate";
	row.goal = 0;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = json[i];
		row.theirs[i] = learned[i];
	}
	if (bench_asked(options->measures, "json_rate"))
		bench_print(&row, options->json);
}

static struct learning learning_of(const struct wire_bench *bench, uint32_t flows)
{
	const uint32_t idle_s = flows < MANY ? IDLE_S_FEW : IDLE_S;

	return (struct learning){.bench = bench,
		.flows = flows,
		.idle_s = idle_s,
		/* a flow lives for its timeout and then to the next tick: a quarter of a second on average */
		.burst_us = BENCH_BURST * (idle_s * SECOND_US + HALF_US / 2) / flows,
		.cpu = wire_other_cpu(bench),
		.step_us = MAILBOX,
		.collector_socket = -1};
}

/* Nearly all became records that were sent, where they were to. */
static bool has_sent(const struct learning *learning)
{
	const struct flow_counters *flows = &learning->plane->lcores[0].worker.shard->counters;
	struct export_counters counters;
	char line[128];

	if (learning->collector == NULL)
		return true;
	export_collector_counters(learning->collector, &counters);
	if (counters.written >= flows->learned - flows->learned / 100)
		return true;
	snprintf(line, sizeof(line), "learn_export: of %" PRIu64 " flows %" PRIu64 " were sent",
		flows->learned, counters.written);
	wire_say(line);
	return false;
}

/* An engine of its own: cycles a flow that its worker takes, or 0 when that did not come about. */
static double cycles_a_flow(const struct wire_bench *bench, uint32_t flows, int collector_socket)
{
	struct learning learning = learning_of(bench, flows);
	struct error error;
	double cycles = 0;

	learning.collector_socket = collector_socket;
	if (create(&learning, &error) != 0) {
		wire_say(error.text);
	} else {
		const struct flow_counters *counters =
			&learning.plane->lcores[0].worker.shard->counters;

		turn_until(&learning, (learning.idle_s + 2) * SECOND_US + HALF_US);
		const uint64_t begin = learning.cycles, learned = counters->learned;

		(void)measure(&learning);
		cycles = (double)(learning.cycles - begin) / (double)(counters->learned - learned);
		if (settle(&learning) != 0 || !has_sent(&learning))
			cycles = 0;
	}
	destroy(&learning);
	return cycles;
}

int wire_learn_export(const struct wire_bench *bench, uint32_t flows)
{
	const struct sockaddr_in loopback = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct bench_row row = {.bench = "wire",
		.measure = "learn_export",
		.load = "uniform",
		.flows = flows,
		.unit = "cycles",
		.against = "no_export",
		.goal = GOAL_EXPORT,
		.rounds = BENCH_ROUNDS};
	const int unread = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret = 0;

	if (unread < 0 || bind(unread, (const struct sockaddr *)&loopback, sizeof(loopback)) < 0)
		ret = -errno;
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		row.ours[i] = cycles_a_flow(bench, flows, unread);
		row.theirs[i] = cycles_a_flow(bench, flows, -1);
		if (row.ours[i] == 0 || row.theirs[i] == 0)
			ret = -EIO;
	}
	if (ret == 0)
		bench_print(&row, bench->options.json);
	if (unread >= 0)
		close(unread);
	return ret;
}

int wire_learn(const struct wire_bench *bench, uint32_t flows)
{
	struct learning learning = learning_of(bench, flows);
	double learned[BENCH_ROUNDS], json[BENCH_ROUNDS];
	struct error error;
	int ret = create(&learning, &error);

	if (ret != 0) {
		wire_say(error.text);
	} else {
		turn_until(&learning, (learning.idle_s + 2) * SECOND_US + HALF_US);
		for (unsigned i = 0; i < BENCH_ROUNDS; i++)
			learned[i] = measure(&learning);
		ret = settle(&learning);
	}
	if (ret == 0)
		ret = measure_json(&learning, json);
	if (ret == 0)
		print_rows(&learning, learned, json);
	if (ret == 0 && bench->options.stages)
		wire_print_stages(&learning.plane->lcores[0], " of learning");
	destroy(&learning);
	return ret;
}
