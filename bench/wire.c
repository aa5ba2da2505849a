/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `millrace bench wire`: our whole path, from receiving to sending, against others on the same packets:
 * two ports whose packets are known in advance, bursts of 64, one thread, in turns. Cycles are told above
 * the floor, which is receiving and sending alone.
 *
 * Ours is the engine as `millrace run` has it: a plane with one worker between the ports, its station
 * turned here instead of in a thread of its own, by the real clock; states, ageing, counters, the stages'
 * times and what control might ask are all there.
 *
 * Packets are written just before they are received: warmer than a NIC would leave them, for all alike.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "base/mapping.h"
#include "bench/bench.h"
#include "bench/founding.h"
#include "bench/memory.h"
#include "bench/source.h"
#include "bench/stateless.h"
#include "main/dpdk.h"
#include "path/plane_parts.h"
#include "path/turn.h"

/* Packets of a round: these, or two for each flow. */
#define ROUND_PACKETS (1u << 18)

/* Places that the rounds of both ports have at most with Zipf's load: traffic/sequence.h. */
#define ROUND_MAX (1u << 23)

/* As many before it that are not measured: caches fill anew after another's turn. */
#define WARM_SHARE 8

/* At most 0.6 of the founding algorithm's cycles above the floor. */
#define GOAL_FOUNDING (1 / 0.6)
#define GOAL_FOUNDING_FROM 65536
#define GOAL_FLOOR 14

/* What both contenders' tables take: powers of two, at worst twice what is needed. */
#define HEAP_BYTES_A_FLOW 512

struct wire {
	struct bench_options options;
	struct bench_source source;
	struct plane *plane;
	struct founding *founding;
	struct stateless *stateless;
	uint32_t flows;
	int heap; /* of the contenders' tables */
};

enum contender { FLOOR, OURS, FOUNDING, UNLISTED, STATELESS, N_CONTENDERS };

static void say(const char *line)
{
	fprintf(stderr, "millrace: bench wire: %s\n", line);
}

static void ignore(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

/* Receives, lets one work, and sends, until `packets` have passed; the cycles that took. */
static inline uint64_t pass(struct wire *wire, enum contender who, uint64_t packets, uint64_t *done)
{
	uint64_t begin = rte_rdtsc_precise(), now = begin;
	struct rte_mbuf *burst[BENCH_BURST];

	for (*done = 0; *done < packets;) {
		for (unsigned side = 0; side < 2; side++) {
			uint16_t n = rte_eth_rx_burst(
				wire->source.port[side]->id, 0, burst, BENCH_BURST);

			if (who == FOUNDING || who == UNLISTED)
				founding_burst(wire->founding, burst, n, now, who == FOUNDING);
			else if (who == STATELESS)
				stateless_burst(wire->stateless, burst, n, now);
			uint16_t sent = rte_eth_tx_burst(wire->source.port[!side]->id, 0, burst, n);

			if (sent < n)
				rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			*done += n;
		}
		now = rte_rdtsc();
	}
	return rte_rdtsc_precise() - begin;
}

static uint64_t received_by(const struct station *station)
{
	return station->ports[0].rx_packets + station->ports[1].rx_packets;
}

/* The same for ours: the loop of a worker's thread, which always has something to do. */
static uint64_t turns(struct wire *wire, uint64_t packets, uint64_t *done)
{
	struct station *station = &wire->plane->stations[0];
	uint64_t begin = rte_rdtsc_precise(), tsc = begin, before = received_by(station);

	do {
		turn_timed(station, &tsc);
		*done = received_by(station) - before;
	} while (*done < packets);
	return rte_rdtsc_precise() - begin;
}

static uint64_t run(struct wire *wire, enum contender who, uint64_t packets, uint64_t *done)
{
	switch (who) {
	case FLOOR:
		return pass(wire, FLOOR, packets, done);
	case FOUNDING:
		return pass(wire, FOUNDING, packets, done);
	case UNLISTED:
		return pass(wire, UNLISTED, packets, done);
	case STATELESS:
		return pass(wire, STATELESS, packets, done);
	case OURS:
	case N_CONTENDERS:
		break;
	}
	return turns(wire, packets, done);
}

/* Cycles a packet of one turn. */
static double measure(struct wire *wire, enum contender who)
{
	uint64_t packets = RTE_MAX(ROUND_PACKETS, 2 * wire->flows), done;

	run(wire, who, packets / WARM_SHARE, &done);
	uint64_t cycles = run(wire, who, packets, &done);

	return (double)cycles / (double)done;
}

/* Everybody meets every flow; who then does not know the same has not done the work. */
static int learn(struct wire *wire)
{
	struct flow_shard *shard = wire->plane->stations[0].worker.shard;
	/* the whole round of each port, and what a burst or two may have left of the one before */
	uint64_t round = RTE_MAX(
		2 * (uint64_t)wire->flows, RTE_MIN(8 * (uint64_t)wire->flows, (uint64_t)ROUND_MAX));
	uint64_t packets = round + ROUND_PACKETS, done;

	for (enum contender who = OURS; who < N_CONTENDERS; who++)
		run(wire, who, packets, &done);
	uint32_t ours = shard->wire_flows[0];
	uint32_t founding = founding_flows(wire->founding);
	uint32_t stateless = stateless_flows(wire->stateless);

	if (ours == founding && ours == stateless && ours <= wire->flows && ours > 0)
		return 0;
	fprintf(stderr, "millrace: bench wire: %u, %u and %u of %u flows are known\n", ours,
		founding, stateless, wire->flows);
	return -EIO;
}

static void print_stages(const struct wire *wire)
{
	const struct stage_times *times = &wire->plane->stations[0].worker.stages;

	fprintf(stderr, "stages, cycles a packet:");
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (times->packets[stage] != 0)
			fprintf(stderr, " %s %.1f", stage_name(stage),
				(double)times->cycles[stage] / (double)times->packets[stage]);
	fprintf(stderr, "\n");
}

static void print_row(const struct wire *wire, const char *load, const char *measure,
	const char *against, double goal, const double *ours, const double *theirs)
{
	struct bench_row row = {.bench = "wire",
		.measure = measure,
		.load = load,
		.flows = wire->flows,
		.unit = "cycles",
		.against = against,
		.goal = goal,
		.rounds = BENCH_ROUNDS};

	memcpy(row.ours, ours, sizeof(row.ours));
	memcpy(row.theirs, theirs, sizeof(row.theirs));
	bench_print(&row, wire->options.json);
}

/* Against whom, as what, and how much better we are to be with many flows. */
static const struct {
	enum contender who;
	const char *above, *total, *name;
	double goal;
} rivals[] = {
	{FOUNDING, "wire", "wire_total", "founding", GOAL_FOUNDING},
	{STATELESS, "wire", "wire_total", "rte_hash", 0},
	{UNLISTED, "wire_unlisted", NULL, "founding", GOAL_FOUNDING},
};

static void measure_all(struct wire *wire, const char *load)
{
	double cycles[N_CONTENDERS][BENCH_ROUNDS], above[N_CONTENDERS][BENCH_ROUNDS];
	double goals[BENCH_ROUNDS];

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		for (enum contender who = FLOOR; who < N_CONTENDERS; who++) {
			cycles[who][i] = measure(wire, who);
			above[who][i] = cycles[who][i] - cycles[FLOOR][i];
		}
		goals[i] = GOAL_FLOOR;
	}
	for (unsigned i = 0; i < RTE_DIM(rivals); i++)
		print_row(wire, load, rivals[i].above, rivals[i].name,
			wire->flows < GOAL_FOUNDING_FROM ? 0 : rivals[i].goal, above[OURS],
			above[rivals[i].who]);
	for (unsigned i = 0; i < RTE_DIM(rivals); i++)
		if (rivals[i].total != NULL)
			print_row(wire, load, rivals[i].total, rivals[i].name, 0, cycles[OURS],
				cycles[rivals[i].who]);
	print_row(wire, load, "floor", "goal", 1, cycles[FLOOR], goals);
	if (wire->options.stages)
		print_stages(wire);
}

static int create(struct wire *wire, enum sequence_load load, struct error *error)
{
	const struct bench_source_config source = {.flows = wire->flows, .load = load};
	uint32_t capacity = RTE_MAX((uint32_t)(wire->flows / 0.875), 1024u);
	struct plane_config config = {
		.n_wires = 1,
		.n_workers = 1,
		.poll_always = true,
		.flows = capacity,
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = ignore,
	};
	int ret = bench_source_open(&wire->source, &source, error);

	if (ret < 0)
		return ret;
	config.port[0] = wire->source.port[0];
	config.port[1] = wire->source.port[1];
	ret = plane_create(&wire->plane, &config, error);
	if (ret == 0) {
		ret = founding_create(&wire->founding, capacity, wire->heap);
		if (ret == 0)
			ret = stateless_create(&wire->stateless, capacity, wire->heap);
		if (ret < 0)
			error_set(error, ret, "no memory for %u flows", capacity);
	}
	return ret;
}

static void destroy(struct wire *wire)
{
	bench_source_close(&wire->source);
	plane_destroy(wire->plane);
	founding_destroy(wire->founding);
	stateless_destroy(wire->stateless);
	wire->plane = NULL;
	wire->founding = NULL;
	wire->stateless = NULL;
}

static int measure_size(struct wire *wire, uint32_t flows)
{
	static const struct {
		enum sequence_load load;
		const char *name;
	} loads[] = {{SEQUENCE_UNIFORM, "uniform"}, {SEQUENCE_ZIPF, "zipf"}};
	int ret = 0;

	wire->flows = flows;
	for (unsigned i = 0; ret == 0 && i < RTE_DIM(loads); i++) {
		struct error error;

		if (flows == 1 && loads[i].load == SEQUENCE_ZIPF)
			continue;
		ret = create(wire, loads[i].load, &error);
		if (ret < 0)
			say(error.text);
		else
			ret = learn(wire);
		if (ret == 0)
			measure_all(wire, loads[i].name);
		destroy(wire);
	}
	return ret;
}

int bench_wire(const struct bench_options *options)
{
	static const uint32_t sizes[] = {1, 2048, 65536, 1000000};
	struct wire wire = {.options = *options};
	const uint32_t *flows = options->n_flows == 0 ? sizes : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(sizes) : options->n_flows;
	uint32_t most = 0;
	struct error error;

	for (unsigned i = 0; i < n; i++)
		most = RTE_MAX(most, flows[i]);
	int ret = dpdk_start(160, &error);

	if (ret < 0) {
		say(error.text);
		return ret;
	}
	bench_pin();
	bench_print_head(options->json);
	ret = wire.heap = bench_heap_create(((size_t)64 << 20) + (size_t)most * HEAP_BYTES_A_FLOW);
	if (ret < 0)
		say("no memory for the tables of others");
	else
		ret = 0;
	for (unsigned i = 0; ret == 0 && i < n; i++)
		ret = measure_size(&wire, flows[i]);
	dpdk_stop();
	return ret;
}
