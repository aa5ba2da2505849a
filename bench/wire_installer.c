/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker notices of installers that are blocked: the same flows, all in software, while the installers of
 * both ports are in calls of 11 ms (profile x710-stock), and while they are not. Both many times a round, some 30 ms
 * each, so that what neighbours of the machine do weighs on both alike; a round's figure is the median of its pieces,
 * of which one takes a tenth of a millisecond. Pieces in which one of the two installers was in a call, or a call
 * began or ended, count for neither.
 *
 * The rules that are asked for go the agent's own way, through queue, slots, mailboxes and back; but they are for
 * directions that do not arrive at their port, so that no packet is marked and all have the same work. Below
 * the threshold, they are taken back after a second: half of the calls are deletes.
 *
 * The simulated calls sleep. The real driver burns that time, and so does installer_spin: it shows what an
 * installer on a processor of its own costs the worker beside it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "bench/wire.h"
#include "offload/agent.h"

/* Idle over blocked: less than 3 % apart. */
#define GOAL (1 / 1.03)

#define ROUND_US UINT64_C(2000000)
#define ROUND_FEW_US UINT64_C(300000)
#define MANY 65536
/* A round goes on until it has so many pieces of either sort, but not for longer than ten. */
#define LEAST_PIECES 32
#define PIECE 4096
#define MOST_PIECES 65536
/* So many flows are asked for each time, at each port; as many rules go in that time that came before. */
#define ASKED 3
#define PERIOD_US UINT64_C(150000)

#define SLOTS 4096
/* No rate is that. */
#define THRESHOLD UINT32_MAX

/* Of all pieces at least so many are of either sort, whoever else wants the processors. */
#define LEAST_SHARE 0.02
/* Until rules go that came first. */
#define WARM_US UINT64_C(1500000)
#define READY_US UINT64_C(20000000)

static const struct variant {
	const char *measure, *words;
	double goal;
} variants[] = {
	{"installer", "profile=x710-stock", GOAL},
	{"installer_spin", "profile=x710-stock,spin=1", 0},
};

struct blocked {
	const struct wire_bench *bench;
	const struct variant *variant;
	struct wire_engine engine;
	uint32_t next; /* position of the flow that is asked for next */
	uint64_t asked_us;
	/* of one round: cycles a packet, of pieces in whose time nobody was in a call, or all were */
	double *pieces[2];
	unsigned n[2];
	uint64_t n_pieces, n_of[2];
};

static struct lcore *lcore_of(const struct blocked *blocked)
{
	return &blocked->engine.plane->lcores[0];
}

static struct installer *installer_of(const struct blocked *blocked, unsigned port)
{
	return blocked->engine.plane->installer[port];
}

/* Asks for the direction of the next flow that does not come by this port. */
static void ask_for_one(struct blocked *blocked, unsigned port)
{
	const struct worker *worker = &lcore_of(blocked)->worker;
	const struct flow_table *table = &worker->shard->table;
	struct agent *agent = worker->agent;

	blocked->next = flow_table_next(table, blocked->next + 1);
	if (blocked->next == FLOW_NONE)
		blocked->next = flow_table_next(table, 0);
	const struct flow_record *record = flow_table_record(table, blocked->next);
	unsigned comes = record->side == port ? record->initiator : !record->initiator;

	/* whatever its rate: the threshold is for the rest */
	agent->config.threshold = 0;
	agent_learned(agent, blocked->next, port, !comes);
	agent->config.threshold = THRESHOLD;
}

static void keep_asking(struct blocked *blocked)
{
	uint64_t now_us = monotonic_us();

	if (now_us - blocked->asked_us < PERIOD_US)
		return;
	blocked->asked_us = now_us;
	for (unsigned port = 0; port < 2; port++)
		for (unsigned i = 0; i < ASKED; i++)
			ask_for_one(blocked, port);
}

static void add_calls(const struct blocked *blocked, uint64_t *calls, uint64_t *ns)
{
	*calls = *ns = 0;
	for (unsigned port = 0; port < 2; port++) {
		const struct histogram *call =
			installer_histograms(installer_of(blocked, port))->call;

		*calls += call[INSTALLER_INSERT].times + call[INSTALLER_REMOVE].times;
		*ns += call[INSTALLER_INSERT].sum_ns + call[INSTALLER_REMOVE].sum_ns;
	}
}

/* The begin of the call that an installer is in; 0: in none. */
static uint64_t in_call(const struct blocked *blocked, unsigned port)
{
	return atomic_load_explicit(
		&installer_counters(installer_of(blocked, port))->oldest_us, memory_order_relaxed);
}

/* Of the time between two looks at both ports: 0: none was in a call, 1: each was in one, 2: neither of these. */
static unsigned sort_of(const uint64_t before[2], const uint64_t after[2])
{
	if (before[0] != after[0] || before[1] != after[1])
		return 2;
	if (before[0] == 0 && before[1] == 0)
		return 0;
	return before[0] != 0 && before[1] != 0 ? 1 : 2;
}

static void one_piece(struct blocked *blocked)
{
	const uint64_t before[2] = {in_call(blocked, 0), in_call(blocked, 1)};
	uint64_t packets, cycles = wire_turns(lcore_of(blocked), PIECE, &packets);
	const uint64_t after[2] = {in_call(blocked, 0), in_call(blocked, 1)};
	unsigned sort = sort_of(before, after);

	blocked->n_pieces++;
	if (sort < 2 && packets > 0 && blocked->n[sort] < MOST_PIECES)
		blocked->pieces[sort][blocked->n[sort]++] = (double)cycles / (double)packets;
}

/* Cycles a packet of one round, of either sort. */
static int measure(struct blocked *blocked, uint64_t us, double *idle, double *busy)
{
	uint64_t begin_us = monotonic_us(), passed_us = 0;
	bool few = true;

	blocked->n[0] = blocked->n[1] = 0;
	while (passed_us < us || (few && passed_us < 10 * us)) {
		keep_asking(blocked);
		one_piece(blocked);
		passed_us = monotonic_us() - begin_us;
		few = RTE_MIN(blocked->n[0], blocked->n[1]) < LEAST_PIECES;
	}
	if (few) {
		wire_say("installer: it was always in a call, or never");
		return -EIO;
	}
	*idle = bench_median(blocked->pieces[0], blocked->n[0]);
	*busy = bench_median(blocked->pieces[1], blocked->n[1]);
	for (unsigned sort = 0; sort < 2; sort++)
		blocked->n_of[sort] += blocked->n[sort];
	return 0;
}

/* Were the installers in calls, and was all in software? */
static int check(const struct blocked *blocked)
{
	const struct agent_port *port = lcore_of(blocked)->worker.agent->port;
	double share[2];
	uint64_t calls, ns;
	char line[160];

	add_calls(blocked, &calls, &ns);
	for (unsigned sort = 0; sort < 2; sort++)
		share[sort] = (double)blocked->n_of[sort] / (double)blocked->n_pieces;
	snprintf(line, sizeof(line),
		"%s: %" PRIu64 " calls of %.1f ms; both installers were in one in %.0f %% of the "
		"pieces, none in %.0f %%",
		blocked->variant->measure, calls, (double)ns / 1e6 / (double)RTE_MAX(calls, 1u),
		100 * share[1], 100 * share[0]);
	wire_say(line);
	/* two that spin on one processor wait for each other, too */
	if ((share[0] < LEAST_SHARE || share[1] < LEAST_SHARE) && blocked->variant->goal != 0) {
		wire_say("installer: it was hardly ever blocked, or nearly always");
		return -EIO;
	}
	for (unsigned side = 0; side < 2; side++)
		if (port[side].counters.arrows[OFFLOAD_ACCEPTED][OFFLOAD_PROVEN] != 0) {
			wire_say("installer: packets were marked");
			return -EIO;
		}
	return 0;
}

static int make_engine(struct blocked *blocked, uint32_t flows)
{
	const struct bench_source_config source = {.flows = flows,
		.load = SEQUENCE_UNIFORM,
		.words = blocked->variant->words,
		.offload_places = SLOTS};
	const struct plane_offload offload = {.on = true, .threshold = THRESHOLD, .slots = SLOTS};
	uint64_t end_us = monotonic_us() + READY_US;
	struct error error;
	int ret = wire_engine_open_as(&blocked->engine, &source, &offload, &error);

	if (ret < 0) {
		wire_say(error.text);
		return ret;
	}
	ret = wire_engine_learn(&blocked->engine);
	while (ret == 0 && !plane_tend(blocked->engine.plane)) {
		if (monotonic_us() > end_us)
			ret = -ETIMEDOUT;
		sched_yield();
	}
	return ret;
}

static void print_row(const struct blocked *blocked, const double *ours, const double *theirs)
{
	struct bench_row row = {.bench = "wire",
		.measure = blocked->variant->measure,
		.load = "uniform",
		.flows = blocked->engine.flows,
		.unit = "cycles",
		.against = "idle",
		.goal = blocked->variant->goal,
		.rounds = BENCH_ROUNDS};

	memcpy(row.ours, ours, sizeof(row.ours));
	memcpy(row.theirs, theirs, sizeof(row.theirs));
	wire_print(blocked->bench, "installer", &row);
}

/* Of each round by itself: the machine's moods weigh on both of its figures. */
static void say_ratios(const struct blocked *blocked, const double *busy, const double *idle)
{
	double ratios[BENCH_ROUNDS];
	char line[120];

	for (unsigned i = 0; i < BENCH_ROUNDS; i++)
		ratios[i] = idle[i] / busy[i];
	double median = bench_median(ratios, BENCH_ROUNDS);

	snprintf(line, sizeof(line), "%s: idle / blocked by round: %.3f to %.3f, median %.3f",
		blocked->variant->measure, ratios[0], ratios[BENCH_ROUNDS - 1], median);
	wire_say(line);
}

static int measure_variant(struct blocked *blocked, uint32_t flows)
{
	double idle[BENCH_ROUNDS], busy[BENCH_ROUNDS];
	struct wire_schedule mine;

	wire_leave_schedule(&blocked->bench->allowed, &mine);
	int ret = make_engine(blocked, flows);

	wire_resume_schedule(&mine);
	if (ret == 0)
		ret = measure(blocked, WARM_US, &idle[0], &busy[0]);
	blocked->n_pieces = blocked->n_of[0] = blocked->n_of[1] = 0;
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++)
		ret = measure(blocked, flows < MANY ? ROUND_FEW_US : ROUND_US, &idle[i], &busy[i]);
	if (ret == 0)
		ret = check(blocked);
	if (ret == 0) {
		say_ratios(blocked, busy, idle);
		print_row(blocked, busy, idle);
	}
	wire_engine_close(&blocked->engine);
	return ret;
}

int wire_installer(const struct wire_bench *bench, uint32_t flows)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < RTE_DIM(variants); i++) {
		struct blocked blocked = {.bench = bench, .variant = &variants[i]};

		if (i > 0 && wire_other_cpu(bench) < 0) {
			wire_say("installer_spin: left out, it takes two processors");
			break;
		}
		ret = -ENOMEM;
		for (unsigned sort = 0; sort < 2; sort++)
			blocked.pieces[sort] = calloc(MOST_PIECES, sizeof(double));
		if (blocked.pieces[0] != NULL && blocked.pieces[1] != NULL)
			ret = measure_variant(&blocked, flows);
		for (unsigned sort = 0; sort < 2; sort++)
			free(blocked.pieces[sort]);
		/* for show: where processors are scarce they wait for one another all the time */
		if (ret == -EIO && variants[i].goal == 0)
			ret = 0;
	}
	return ret;
}
