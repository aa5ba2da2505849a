/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood of SYNs from random sources through the wire, with a table that is full: each begins a flow, and ends another,
 * whose report goes through the exporter's own mailbox to its thread. One connection is open all the time, and sends a
 * segment each way with each burst.
 *
 * In turns with that the same engine gets the SYNs of flows once more that are in its table: what a packet of a known
 * flow costs.
 *
 * The clock is a test clock, led on with each burst. Where the mailbox has not room for a turn's reports the bench waits
 * for the exporter: that is in no figure, as a live worker never waits. In the end the open connection has every packet of its
 * own, what has ended was exported, and all packets that came were sent on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/idle.h"
#include "base/mapping.h"
#include "bench/source.h"
#include "bench/wire.h"
#include "dataplane/poll.h"
#include "export/exporter.h"
#include "traffic/draw.h"

/* A packet of the flood costs as many as so many of known flows, at most. */
#define GOAL (1.0 / 8)
/* Five million packets a second. */
#define BURST_US 12
#define MAILBOX 4096
#define FRAME_BYTES 60
#define OPEN_SEQ UINT32_C(1000)
#define SYN 0x02
#define ACK 0x10

struct flood {
	uint32_t flows;
	struct port *port[2];
	struct plane *plane;
	struct exporter *exporter;
	uint64_t now_us;
	bool ending;
};

struct flood_frame {
	struct rte_ether_hdr ethernet;
	struct rte_ipv4_hdr ip;
	struct rte_tcp_hdr tcp;
	uint8_t padding[6];
} __attribute__((packed, aligned(2)));
static_assert(sizeof(struct flood_frame) == FRAME_BYTES, "the shortest");

/* Behind both ports. */
static struct {
	struct rte_mempool *pool;
	bool known;	  /* SYNs of flows that are in the table */
	uint32_t flows;	  /* that the table has, but the open one */
	uint64_t n_begun; /* flows so far */
	uint64_t n_known; /* SYNs of known ones so far */
	uint64_t open_sent
		[2]; /* segments of the open connection, by the port that they came in by */
	uint64_t open_gone[2]; /* those that were sent on, by the same */
	uint64_t others_gone;
} source;

static void fill(struct flood_frame *frame, unsigned side, uint64_t client, uint8_t flags)
{
	const uint32_t ends[2] = {(uint32_t)client, UINT32_C(0xc6120001)};
	const uint16_t ports[2] = {(uint16_t)(client >> 32), 80};

	*frame = (struct flood_frame){
		.ethernet.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
			.total_length = RTE_BE16(sizeof(frame->ip) + sizeof(frame->tcp)),
			.time_to_live = 64,
			.next_proto_id = IPPROTO_TCP,
			.src_addr = rte_cpu_to_be_32(ends[side]),
			.dst_addr = rte_cpu_to_be_32(ends[!side])},
		.tcp = {.src_port = rte_cpu_to_be_16(ports[side]),
			.dst_port = rte_cpu_to_be_16(ports[!side]),
			.sent_seq = rte_cpu_to_be_32(OPEN_SEQ),
			.recv_ack = flags & ACK ? rte_cpu_to_be_32(OPEN_SEQ) : 0,
			.data_off = sizeof(frame->tcp) / 4 << 4,
			.tcp_flags = flags,
			.rx_win = RTE_BE16(64240)},
	};
}

/* A source that nobody had before: address, and port above it. */
static uint64_t client_of(uint64_t number)
{
	return draw_at(7, number) & UINT64_C(0xffffffffffff);
}

static uint64_t next_client(void)
{
	const uint64_t back = draw_below(draw_at(8, source.n_known), source.flows / 2);

	if (!source.known)
		return client_of(source.n_begun++);
	source.n_known++;
	return client_of(source.n_begun - 1 - back);
}

static uint16_t take(uint16_t side, struct rte_mbuf **packets, uint16_t n)
{
	/* by the second port nothing comes but the connection's answers */
	if (side == 1)
		n = n < 1 ? n : 1;
	if (n == 0 || rte_pktmbuf_alloc_bulk(source.pool, packets, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		struct flood_frame *frame = rte_pktmbuf_mtod(packets[i], void *);

		packets[i]->data_len = FRAME_BYTES;
		packets[i]->pkt_len = FRAME_BYTES;
		if (i == 0)
			fill(frame, side, 1, ACK);
		else
			fill(frame, 0, next_client(), SYN);
	}
	source.open_sent[side]++;
	return n;
}

static uint16_t receive_first(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	return take(0, packets, n);
}

static uint16_t receive_second(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	return take(1, packets, n);
}

static uint16_t send_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	(void)queue;
	for (uint16_t i = 0; i < n; i++) {
		const struct flood_frame *frame =
			rte_pktmbuf_mtod(packets[i], const struct flood_frame *);

		if (frame->tcp.tcp_flags == SYN)
			source.others_gone++;
		else
			source.open_gone[frame->tcp.src_port == RTE_BE16(80)]++;
	}
	rte_pktmbuf_free_bulk(packets, n);
	return n;
}

static void flood_take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	const struct flood *flood = context;

	exporter_push(flood->exporter, 0, reports, n, flood->ending);
}

static unsigned flood_room(void *context, unsigned worker)
{
	const struct flood *flood = context;

	return exporter_room(flood->exporter, worker);
}

static int create_flood(struct flood *flood, const struct wire_bench *bench, struct error *error)
{
	const int cpu = wire_other_cpu(bench);
	struct exporter_config exporter = {.n_workers = 1, .mailbox = MAILBOX};
	struct plane_config config = {
		.topology = topology_of_wires(1),
		.n_workers = 1,
		.poll_always = true,
		.flows = flood->flows,
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = flood_take_reports,
		.room = flood_room,
		.sink_context = flood,
	};
	cpu_set_t cpus;
	int ret = bench_null_ports(flood->port, error);

	CPU_ZERO(&cpus);
	if (cpu >= 0) {
		CPU_SET(cpu, &cpus);
		exporter.cpus = &cpus;
	}
	if (ret == 0)
		ret = exporter_create(&flood->exporter, &exporter, error);
	memcpy(config.port, flood->port, sizeof(flood->port));
	if (ret == 0)
		ret = plane_create(&flood->plane, &config, error);
	if (ret < 0)
		return ret;
	memset(&source, 0, sizeof(source));
	source.pool = plane_pool(flood->plane);
	source.flows = flood->flows - 1;
	for (unsigned side = 0; side < 2; side++) {
		struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[flood->port[side]->id];

		ops->rx_pkt_burst = side == 0 ? receive_first : receive_second;
		ops->tx_pkt_burst = send_burst;
	}
	return 0;
}

static void destroy_flood(struct flood *flood)
{
	for (unsigned side = 0; side < 2; side++)
		port_close(flood->port[side]);
	plane_destroy(flood->plane);
	exporter_destroy(flood->exporter);
}

/* Cycles a packet of turns that bring so many. */
static double turn(struct flood *flood, bool known, uint64_t packets)
{
	struct lcore *lcore = &flood->plane->lcores[0];
	const uint64_t begin = lcore->ports[0].rx_packets;
	uint64_t cycles = 0;

	source.known = known;
	while (lcore->ports[0].rx_packets - begin < packets) {
		unsigned idle = 0;

		while (exporter_room(flood->exporter, 0) < MAILBOX / 2)
			idle_wait(&idle);
		const uint64_t tsc = rte_rdtsc();

		lcore_poll(lcore, flood->now_us);
		cycles += rte_rdtsc() - tsc;
		flood->now_us += BURST_US;
	}
	return (double)cycles / (double)(lcore->ports[0].rx_packets - begin);
}

/* The record of the open connection; NULL: it has gone. */
static const struct flow_record *find_open(const struct flood *flood)
{
	const struct flow_table *table = &flood->plane->lcores[0].worker.shard->table;

	for (uint32_t at = flow_table_next(table, 0); at != FLOW_NONE;
		at = flow_table_next(table, at + 1)) {
		const struct flow_record *record = flow_table_record(table, at);

		if (record->state == FLOW_ESTABLISHED)
			return record;
	}
	return NULL;
}

/* Nothing was lost. */
static int check_flood(struct flood *flood)
{
	struct flow_shard *shard = flood->plane->lcores[0].worker.shard;
	const struct flow_counters *counters = &shard->counters;
	const struct flow_record *open = find_open(flood);
	struct exporter_totals totals = {0};
	struct error error;
	char line[256];
	const bool whole =
		open != NULL && flow_packets(open, open->initiator) == source.open_sent[0] &&
		flow_packets(open, !open->initiator) == source.open_sent[1] &&
		memcmp(source.open_sent, source.open_gone, sizeof(source.open_sent)) == 0 &&
		source.others_gone == source.n_begun + source.n_known;
	const uint64_t evicted = counters->ended[FLOW_END_EVICTED];

	flood->ending = true;
	flow_shard_end_all(shard);
	if (exporter_finish(flood->exporter, &totals, &error) < 0)
		wire_say(error.text);
	else if (whole && totals.overflowed == 0 && totals.records == counters->learned &&
		 evicted == counters->learned - flood->flows)
		return 0;
	snprintf(line, sizeof(line),
		"syn_flood: the open connection is %s; %" PRIu64 " flows learned, %" PRIu64
		" evicted, %" PRIu64 " exported, %" PRIu64 " lost",
		whole ? "whole" : "not whole", counters->learned, evicted, totals.records,
		totals.overflowed);
	wire_say(line);
	return -EIO;
}

int wire_flood(const struct wire_bench *bench, uint32_t flows)
{
	struct flood flood = {.flows = flows};
	struct bench_row row = {.bench = "wire",
		.measure = "syn_flood",
		.load = "random",
		.flows = flows,
		.unit = "cycles",
		.against = "known",
		.goal = GOAL,
		.rounds = BENCH_ROUNDS};
	struct error error;
	int ret = create_flood(&flood, bench, &error);

	if (ret < 0) {
		wire_say(error.text);
	} else {
		/* the connection is open with its first packet each way, and the table full */
		turn(&flood, false, 2 * (uint64_t)flows);
		for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
			row.ours[i] = turn(&flood, false, WIRE_ROUND_PACKETS);
			turn(&flood, true, WIRE_ROUND_PACKETS / WIRE_WARM_SHARE);
			row.theirs[i] = turn(&flood, true, WIRE_ROUND_PACKETS);
		}
		ret = check_flood(&flood);
	}
	if (ret == 0)
		bench_print(&row, bench->options.json);
	if (ret == 0 && bench->options.stages)
		wire_print_stages(&flood.plane->lcores[0], " of a flood and of known flows");
	destroy_flood(&flood);
	return ret;
}
