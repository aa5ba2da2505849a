/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker notices of installers that are blocked: the same flows, all in software, in turns while nobody
 * asks the NIC for anything, and while the installers of both ports are in calls of 11 ms, one after the
 * other, as long as the round lasts (profile x710-stock).
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
#include <string.h>

#include "base/monotonic.h"
#include "bench/wire.h"
#include "offload/agent.h"

/* Idle over blocked: less than 3 % apart. */
#define GOAL (1 / 1.03)

/* A round is long enough for some 20 calls, with few flows for 5; in pieces between which rules are asked for. */
#define PACKETS (1u << 23)
#define PACKETS_FEW (1u << 21)
#define MANY 65536
#define PIECE 4096

/* Flows that wait for a port's installer in a blocked round. */
#define WAITING 64
#define SLOTS 4096
/* No rate is that. */
#define THRESHOLD UINT32_MAX

/* Of a blocked round, at least that is spent in calls, whoever else wants the processors. */
#define LEAST_BUSY 0.5
#define QUIET_US UINT64_C(60000000)
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
	uint64_t calls, in_calls_ns, took_ns;
};

static struct station *station_of(const struct blocked *blocked)
{
	return &blocked->engine.plane->stations[0];
}

static struct installer *installer_of(const struct blocked *blocked, unsigned port)
{
	return blocked->engine.plane->installer[port];
}

/* Asks for the direction of the next flow that does not come by this port. */
static void ask_for_one(struct blocked *blocked, unsigned side)
{
	const struct worker *worker = &station_of(blocked)->worker;
	const struct flow_table *table = &worker->shard->table;
	struct agent *agent = worker->agent;

	blocked->next = flow_table_next(table, blocked->next + 1);
	if (blocked->next == FLOW_NONE)
		blocked->next = flow_table_next(table, 0);
	const struct flow_record *record = flow_table_record(table, blocked->next);
	unsigned comes = record->side == side ? record->initiator : !record->initiator;

	/* whatever its rate: the threshold is for the rest */
	agent->config.threshold = 0;
	agent_learned(agent, blocked->next, side, !comes);
	agent->config.threshold = THRESHOLD;
}

static void keep_asking(struct blocked *blocked)
{
	const struct agent *agent = station_of(blocked)->worker.agent;

	for (unsigned side = 0; side < OFFLOAD_SIDES; side++) {
		if (agent->port[side].counters.flows[OFFLOAD_QUEUED] >= WAITING / 2)
			continue;
		for (unsigned i = 0; i < WAITING / 2; i++)
			ask_for_one(blocked, side);
	}
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

/* No rule is there, and none is asked for. */
static bool is_quiet(const struct blocked *blocked)
{
	const struct agent *agent = station_of(blocked)->worker.agent;

	for (unsigned port = 0; port < 2; port++) {
		const struct installer_counters *counters =
			installer_counters(installer_of(blocked, port));

		if (counters->rules != 0 || counters->under_way != 0)
			return false;
		for (unsigned state = OFFLOAD_QUEUED; state < OFFLOAD_N_STATES; state++)
			if (agent->port[port].counters.flows[state] != 0)
				return false;
	}
	return true;
}

static int await_quiet(const struct blocked *blocked)
{
	uint64_t end_us = monotonic_us() + QUIET_US, done;

	while (!is_quiet(blocked)) {
		if (monotonic_us() > end_us) {
			wire_say("installer: rules do not go");
			return -EIO;
		}
		wire_turns(station_of(blocked), WIRE_ROUND_PACKETS, &done);
	}
	return 0;
}

/* Cycles a packet of one round. */
static double measure(struct blocked *blocked, bool asks)
{
	const uint64_t round = blocked->engine.flows < MANY ? PACKETS_FEW : PACKETS;
	uint64_t cycles = 0, packets = 0, done, begin_us, calls[2], ns[2];

	if (asks)
		keep_asking(blocked);
	wire_turns(station_of(blocked), round / WIRE_WARM_SHARE, &done);
	begin_us = monotonic_us();
	add_calls(blocked, &calls[0], &ns[0]);
	while (packets < round) {
		if (asks)
			keep_asking(blocked);
		cycles += wire_turns(station_of(blocked), PIECE, &done);
		packets += done;
	}
	add_calls(blocked, &calls[1], &ns[1]);
	if (asks) {
		blocked->calls += calls[1] - calls[0];
		blocked->in_calls_ns += ns[1] - ns[0];
		/* of two ports */
		blocked->took_ns += 2 * 1000 * (monotonic_us() - begin_us);
	}
	return (double)cycles / (double)packets;
}

/* Were the installers in calls, and was all in software? */
static int check(const struct blocked *blocked)
{
	const struct agent_port *port = station_of(blocked)->worker.agent->port;
	double busy = (double)blocked->in_calls_ns / (double)blocked->took_ns;
	char line[160];

	snprintf(line, sizeof(line),
		"%s: %" PRIu64 " calls of %.1f ms in the blocked rounds, %.0f %% of their time",
		blocked->variant->measure, blocked->calls,
		(double)blocked->in_calls_ns / 1e6 / (double)RTE_MAX(blocked->calls, 1u),
		100 * busy);
	wire_say(line);
	/* two that spin on one processor wait for each other, too */
	if (busy < LEAST_BUSY && blocked->variant->goal != 0) {
		wire_say("installer: it was not blocked");
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
	const struct plane_offload offload = {
		.on = true, .threshold = THRESHOLD, .slots = SLOTS, .verify_one_in = 1};
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

static int measure_variant(struct blocked *blocked, uint32_t flows)
{
	double idle[BENCH_ROUNDS], busy[BENCH_ROUNDS];
	struct wire_schedule mine;

	wire_leave_schedule(blocked->bench, &mine);
	int ret = make_engine(blocked, flows);

	wire_resume_schedule(&mine);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		ret = await_quiet(blocked);
		if (ret < 0)
			break;
		idle[i] = measure(blocked, false);
		busy[i] = measure(blocked, true);
	}
	if (ret == 0)
		ret = check(blocked);
	if (ret == 0)
		print_row(blocked, busy, idle);
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
		ret = measure_variant(&blocked, flows);
	}
	return ret;
}
