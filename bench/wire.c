/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `millrace bench wire`: our whole path, from receiving to sending, against others on the same packets:
 * two ports whose packets are known in advance, bursts of 64, one thread, in turns. Cycles are told above
 * the floor, which is receiving and sending alone.
 *
 * Ours is the engine as `millrace run` has it: a plane with one worker between the ports, its lcore
 * turned here instead of in a thread of its own. So everything is there that a live packet pays for:
 * states, by protocol; ageing, by the real clock and the usual timeouts, the wheels turned every second
 * and each record looked at when its time comes; eviction, should the table be full; reports, to a sink
 * that ignores them; counters, the stages' times, and what control might ask.
 *
 * Packets are written just before they are received: warmer than a NIC would leave them, for all alike.
 *
 * The other measures have files of their own: wire_mark.c, wire_installer.c, wire_tcp.c,
 * wire_workers.c, wire_learn.c, wire_flood.c,
 * wire_attack.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "base/dpdk.h"
#include "bench/founding.h"
#include "bench/memory.h"
#include "bench/stateless.h"
#include "bench/wire.h"

/* Places that the rounds of both ports have at most with Zipf's load: traffic/sequence.h. */
#define ROUND_MAX (1u << 23)

/* At most 0.5 and 0.4 of the founding algorithm's cycles above the floor, and none more than rte_hash. */
#define GOAL_FOUNDING 2.0
#define GOAL_FOUNDING_MANY 2.5
#define GOAL_STATELESS 1.0
#define GOAL_UNLISTED (1 / 0.6)
#define GOAL_FROM 65536
#define GOAL_MANY_FROM 1000000
#define GOAL_FLOOR 14

/* What both contenders' tables take: powers of two, at worst twice what is needed. */
#define HEAP_BYTES_A_FLOW 512

/* Mbufs of the planes that are there at once, rings, and what DPDK wants itself. */
#define MEGABYTES 384

/* Fewer than that come to one queue of two alone, or are no stream worth the name. */
#define LEAST_FLOWS 64

struct wire {
	struct wire_bench bench;
	struct wire_engine engine;
	struct founding *founding;
	struct stateless *stateless;
	uint32_t flows;
};

enum contender { FLOOR, OURS, FOUNDING, UNLISTED, STATELESS, N_CONTENDERS };

/* Receives, lets one work, and sends, until `packets` have passed; the cycles that took. */
static inline uint64_t pass(struct wire *wire, enum contender who, uint64_t packets, uint64_t *done)
{
	const struct bench_source *source = &wire->engine.source;
	uint64_t begin = rte_rdtsc_precise(), now = begin;
	struct rte_mbuf *burst[BENCH_BURST];

	for (*done = 0; *done < packets;) {
		for (unsigned side = 0; side < 2; side++) {
			uint16_t n =
				rte_eth_rx_burst(source->port[side]->id, 0, burst, BENCH_BURST);

			if (who == FOUNDING || who == UNLISTED)
				founding_burst(wire->founding, burst, n, now, who == FOUNDING);
			else
				stateless_burst(wire->stateless, burst, n, now);
			uint16_t sent = rte_eth_tx_burst(source->port[!side]->id, 0, burst, n);

			if (sent < n)
				rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			*done += n;
		}
		now = rte_rdtsc();
	}
	return rte_rdtsc_precise() - begin;
}

static uint64_t run(struct wire *wire, enum contender who, uint64_t packets, uint64_t *done)
{
	switch (who) {
	case FLOOR:
		return wire_pass(&wire->engine, packets, done);
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
	return wire_turns(&wire->engine.plane->lcores[0], packets, done);
}

/* Cycles a packet of one turn. */
static double measure(struct wire *wire, enum contender who)
{
	uint64_t packets = wire_round(wire->flows), done;

	run(wire, who, packets / WIRE_WARM_SHARE, &done);
	uint64_t cycles = run(wire, who, packets, &done);

	return (double)cycles / (double)done;
}

/* Everybody meets every flow; who then does not know the same has not done the work. */
static int learn(struct wire *wire)
{
	/* the whole round of each port, and what a burst or two may have left of the one before */
	uint64_t round = RTE_MAX(
		2 * (uint64_t)wire->flows, RTE_MIN(8 * (uint64_t)wire->flows, (uint64_t)ROUND_MAX));
	uint64_t packets = round + WIRE_ROUND_PACKETS, done;

	for (enum contender who = OURS; who < N_CONTENDERS; who++)
		run(wire, who, packets, &done);
	uint32_t ours = wire_engine_flows(&wire->engine);
	uint32_t founding = founding_flows(wire->founding);
	uint32_t stateless = stateless_flows(wire->stateless);

	if (ours == founding && ours == stateless && ours <= wire->flows && ours > 0)
		return 0;
	fprintf(stderr, "millrace: bench wire: %u, %u and %u of %u flows are known\n", ours,
		founding, stateless, wire->flows);
	return -EIO;
}

void wire_print(const struct wire_bench *bench, const char *main, struct bench_row *row)
{
	const char *measures = bench->options.measures;

	if (bench_asked(measures, main) || bench_asked(measures, row->measure))
		bench_print(row, bench->options.json);
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
	wire_print(&wire->bench, "wire", &row);
}

/* Against whom, as what, and how much better we are to be with many flows, and with very many. */
static const struct {
	enum contender who;
	const char *above, *total, *name;
	double goal, goal_many;
} rivals[] = {
	{FOUNDING, "wire", "wire_total", "founding", GOAL_FOUNDING, GOAL_FOUNDING_MANY},
	{STATELESS, "wire", "wire_total", "rte_hash", GOAL_STATELESS, GOAL_STATELESS},
	{UNLISTED, "wire_unlisted", NULL, "founding", GOAL_UNLISTED, GOAL_UNLISTED},
};

static double goal_of(unsigned rival, uint32_t flows)
{
	if (flows < GOAL_FROM)
		return 0;
	return flows < GOAL_MANY_FROM ? rivals[rival].goal : rivals[rival].goal_many;
}

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
		print_row(wire, load, rivals[i].above, rivals[i].name, goal_of(i, wire->flows),
			above[OURS], above[rivals[i].who]);
	for (unsigned i = 0; i < RTE_DIM(rivals); i++)
		if (rivals[i].total != NULL)
			print_row(wire, load, rivals[i].total, rivals[i].name, 0, cycles[OURS],
				cycles[rivals[i].who]);
	print_row(wire, load, "floor", "goal", 1, cycles[FLOOR], goals);
	if (wire->bench.options.stages)
		wire_print_stages(&wire->engine.plane->lcores[0], "");
}

static int create(struct wire *wire, enum sequence_load load, struct error *error)
{
	const struct bench_source_config source = {.flows = wire->flows, .load = load};
	uint32_t capacity = RTE_MAX((uint32_t)(wire->flows / 0.875), 1024u);
	int ret = wire_engine_open(&wire->engine, &source, error);

	if (ret < 0)
		return ret;
	ret = founding_create(&wire->founding, capacity, wire->bench.heap);
	if (ret == 0)
		ret = stateless_create(&wire->stateless, capacity, wire->bench.heap);
	if (ret < 0)
		error_set(error, ret, "no memory for %u flows", capacity);
	return ret;
}

static void destroy(struct wire *wire)
{
	wire_engine_close(&wire->engine);
	founding_destroy(wire->founding);
	stateless_destroy(wire->stateless);
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
			wire_say(error.text);
		else
			ret = learn(wire);
		if (ret == 0)
			measure_all(wire, loads[i].name);
		destroy(wire);
	}
	return ret;
}

static int measure_wire(struct wire *wire, const uint32_t *flows, unsigned n)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < n; i++)
		ret = measure_size(wire, flows[i]);
	return ret;
}

/* Those that come along with `wire`. */
static const char *const wire_others[] = {"wire_total", "wire_unlisted", "floor"};

/* The measures beside `wire`, and the sizes that each is of. */
static const struct {
	const char *name, *other; /* `other` comes along */
	uint32_t flows[3];
	int (*run)(const struct wire_bench *bench, uint32_t flows);
} more[] = {
	{"mark", "mark_total", {2048, 65536, 1000000}, wire_mark},
	{"installer", "installer_spin", {65536}, wire_installer},
	{"tcp_window", "tcp_window_share", {65536}, wire_tcp},
	{"two_workers", "two_workers_half", {65536, 1000000}, wire_workers},
	{"learn_rate", "json_rate", {1000000}, wire_learn},
	{"learn_export", NULL, {1000000}, wire_learn_export},
	{"act", NULL, {65536, 1000000}, wire_act},
	{"rules", NULL, {65536, 1000000}, wire_rules},
	{"rule_adds", NULL, {65536, 1000000}, wire_rule_adds},
	{"redecide", "redecide_share", {1000000}, wire_redecide},
	{"syn_flood", NULL, {65536}, wire_flood},
	{"attack", "attack_portable", {1000000}, wire_attack},
};

/* Is any of --measure's words this? Without such words, it is not. */
static bool is_named(const struct bench_options *options, const char *name)
{
	return name != NULL && options->measures != NULL && bench_asked(options->measures, name);
}

static bool wants_wire(const struct bench_options *options)
{
	bool wants = bench_asked(options->measures, "wire");

	for (unsigned i = 0; i < RTE_DIM(wire_others); i++)
		wants = wants || is_named(options, wire_others[i]);
	return wants;
}

static bool has_size(const struct bench_options *options, uint32_t flows)
{
	for (unsigned i = 0; i < options->n_flows; i++)
		if (options->flows[i] == flows)
			return true;
	return options->n_flows == 0;
}

/*
 * Each at its own sizes, as far as --flows has them; what --measure names, at all that --flows has.
 */
static int measure_more(struct wire *wire, unsigned which)
{
	const struct bench_options *options = &wire->bench.options;
	bool named = is_named(options, more[which].name) || is_named(options, more[which].other);
	bool all = named && options->n_flows != 0;
	const uint32_t *flows = all ? options->flows : more[which].flows;
	unsigned n = all ? options->n_flows : RTE_DIM(more[which].flows);
	int ret = 0;

	if (options->measures != NULL && !named)
		return 0;
	for (unsigned i = 0; ret == 0 && i < n; i++) {
		if (flows[i] == 0 || !has_size(options, flows[i]))
			continue;
		if (flows[i] < LEAST_FLOWS) {
			fprintf(stderr,
				"millrace: bench wire: %s: %u flows are too few, %u are not\n",
				more[which].name, flows[i], LEAST_FLOWS);
			return -EINVAL;
		}
		ret = more[which].run(&wire->bench, flows[i]);
	}
	return ret;
}

/* For the tables of others, as far as any measure has them. */
static int make_heap(struct wire *wire, const uint32_t *flows, unsigned n)
{
	const struct bench_options *options = &wire->bench.options;
	bool marks = options->measures == NULL || is_named(options, "mark") ||
		     is_named(options, "mark_total");
	uint32_t most = 0;

	if (!marks && !wants_wire(options))
		return 0;
	for (unsigned i = 0; i < n; i++)
		most = RTE_MAX(most, flows[i]);
	wire->bench.heap = bench_heap_create(((size_t)64 << 20) + (size_t)most * HEAP_BYTES_A_FLOW);
	if (wire->bench.heap < 0)
		wire_say("no memory for the tables of others");
	return RTE_MIN(wire->bench.heap, 0);
}

int bench_wire(const struct bench_options *options)
{
	static const uint32_t sizes[] = {1, 2048, 65536, 1000000};
	struct wire wire = {.bench.options = *options};
	const uint32_t *flows = options->n_flows == 0 ? sizes : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(sizes) : options->n_flows;
	struct error error;
	int ret = dpdk_start(MEGABYTES, &error);
	if (ret < 0) {
		wire_say(error.text);
		return ret;
	}
	CPU_ZERO(&wire.bench.allowed);
	sched_getaffinity(0, sizeof(wire.bench.allowed), &wire.bench.allowed);
	bench_pin();
	bench_print_head(options->json);
	ret = make_heap(&wire, flows, n);
	if (ret == 0 && wants_wire(options))
		ret = measure_wire(&wire, flows, n);
	for (unsigned i = 0; ret == 0 && i < RTE_DIM(more); i++)
		ret = measure_more(&wire, i);
	dpdk_stop();
	return ret;
}
