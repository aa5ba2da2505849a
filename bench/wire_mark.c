/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What marks are worth: two engines side by side on TCP data, states, windows and all. One does all in
 * software; in the other the NIC marks every packet, and each mark is verified against its record. And the
 * founding algorithm, all in software, on the packets of the first.
 *
 * All flows are asked into the NIC before anything is measured, and every one has to be proven, in both
 * directions; no packet may be a stranger. Cycles are told above each engine's own floor, which is receiving
 * and sending alone: that of the second has in it what its simulated NIC spends on marks.
 *
 *
 * The same again with packets as cold as DMA leaves them (cold=1): measures that end with _cold.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/monotonic.h"
#include "bench/founding.h"
#include "bench/wire.h"
#include "offload/agent.h"

/* Of our software path's cycles above the floor, at most: with many flows, with very many. */
#define GOAL_SHARE 0.60
#define GOAL_SHARE_MANY 0.75
/* Cycles above the floor with few flows, at 2.6 GHz; and what half of a lost NIC is reckoned by. */
#define GOAL_FEW 12
#define GOAL_HALF_MANY 14
/* Times fewer cycles than the founding algorithm in software. */
#define GOAL_FOUNDING 3.5
#define GOAL_FOUNDING_MANY 4

#define FEW 2048
#define MANY 65536
#define VERY_MANY 1000000

#define INSTALL_US UINT64_C(120000000)

enum { SOFTWARE, MARK, N_ENGINES };

static const struct variant {
	const char *name; /* that the measures end with */
	bool tcp, cold;
} variants[] = {
	{"", false, false},
	{"_tcp", true, false},
	{"_cold", false, true},
	{"_tcp_cold", true, true},
};

struct marks {
	const struct wire_bench *bench;
	uint32_t flows;
	const struct variant *variant;
	struct wire_engine engine[N_ENGINES];
	struct founding *founding;
	double floor[N_ENGINES][BENCH_ROUNDS];
	double total[N_ENGINES][BENCH_ROUNDS];
	double theirs[BENCH_ROUNDS];
};

static struct agent *agent_of(const struct wire_engine *engine)
{
	return engine->plane->lcores[0].worker.agent;
}

/* Asks for both directions of all flows, as long as there are some that nobody asked for. */
static uint32_t ask_for_all(const struct wire_engine *engine)
{
	struct lcore *lcore = &engine->plane->lcores[0];
	const struct flow_table *table = &lcore->worker.shard->table;
	struct agent *agent = agent_of(engine);
	uint32_t left = 0;

	for (uint32_t at = flow_table_next(table, 0); at != FLOW_NONE;
		at = flow_table_next(table, at + 1)) {
		const struct flow_record *record = flow_table_record(table, at);

		for (unsigned port = 0; port < 2; port++) {
			unsigned from =
				record->side == port ? record->initiator : !record->initiator;

			if (offload_state(record, from) >= OFFLOAD_INSTALLING)
				continue;
			agent_learned(agent, at, port, from);
			left++;
		}
		if (left % 64 == 63)
			agent_turn(agent, plane_now_us(engine->plane));
	}
	return left;
}

static uint64_t proven(const struct agent *agent)
{
	return agent->port[0].counters.flows[OFFLOAD_PROVEN] +
	       agent->port[1].counters.flows[OFFLOAD_PROVEN];
}

/* Until every flow's packets are marked, both ways. */
static int install(const struct wire_engine *engine)
{
	struct agent *agent = agent_of(engine);
	uint64_t end_us = monotonic_us() + INSTALL_US, done;
	char line[160];

	while (!plane_tend(engine->plane) && monotonic_us() < end_us)
		sched_yield();
	while (monotonic_us() < end_us && ask_for_all(engine) != 0)
		agent_turn(agent, plane_now_us(engine->plane));
	while (monotonic_us() < end_us && proven(agent) != 2 * (uint64_t)engine->flows)
		wire_turns(&engine->plane->lcores[0], WIRE_ROUND_PACKETS, &done);
	if (proven(agent) == 2 * (uint64_t)engine->flows)
		return 0;
	snprintf(line, sizeof(line), "mark: %llu of %llu directions are proven; the port: %.60s",
		(unsigned long long)proven(agent), 2ULL * engine->flows,
		installer_abilities(agent->port[0].installer)->unable);
	wire_say(line);
	return -EIO;
}

/* Nobody fell out while it was measured. */
static int check(const struct wire_engine *engine)
{
	const struct agent *agent = agent_of(engine);
	uint64_t strangers = agent->port[0].counters.strangers + agent->port[1].counters.strangers;
	char line[160];

	if (proven(agent) == 2 * (uint64_t)engine->flows && strangers == 0)
		return 0;
	snprintf(line, sizeof(line),
		"mark: at the end %llu of %llu directions are proven, and %llu packets were marked "
		"as others",
		(unsigned long long)proven(agent), 2ULL * engine->flows,
		(unsigned long long)strangers);
	wire_say(line);
	return -EIO;
}

static int make_engine(struct marks *marks, unsigned which)
{
	const uint32_t slots = marks->flows + marks->flows / 4 + 1024;
	char words[32];
	const struct bench_source_config source = {.flows = marks->flows,
		.load = SEQUENCE_UNIFORM,
		.words = words,
		.number = which,
		.offload_places = which == MARK ? slots : 0};
	const struct plane_offload offload = {.on = which == MARK, .threshold = 0, .slots = slots};
	struct error error;

	snprintf(words, sizeof(words), "proto=%s,cold=%u", marks->variant->tcp ? "tcp" : "udp",
		marks->variant->cold);
	int ret = wire_engine_open_as(&marks->engine[which], &source, &offload, &error);

	if (ret < 0)
		wire_say(error.text);
	if (ret == 0)
		ret = wire_engine_learn(&marks->engine[which]);
	return ret == 0 && which == MARK ? install(&marks->engine[which]) : ret;
}

/* Installers and what the simulated NIC does beside are threads of their own, elsewhere and as usual. */
static int open_engine(struct marks *marks, unsigned which)
{
	struct wire_schedule mine;

	wire_leave_schedule(&marks->bench->allowed, &mine);
	int ret = make_engine(marks, which);

	wire_resume_schedule(&mine);
	return ret;
}

static uint64_t founding_pass(const struct marks *marks, uint64_t packets, uint64_t *done)
{
	const struct bench_source *source = &marks->engine[SOFTWARE].source;
	uint64_t begin = rte_rdtsc_precise(), now = begin;
	struct rte_mbuf *burst[BENCH_BURST];

	for (*done = 0; *done < packets;) {
		for (unsigned side = 0; side < 2; side++) {
			uint16_t n =
				rte_eth_rx_burst(source->port[side]->id, 0, burst, BENCH_BURST);

			founding_burst(marks->founding, burst, n, now, true);
			uint16_t sent = rte_eth_tx_burst(source->port[!side]->id, 0, burst, n);

			if (sent < n)
				rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			*done += n;
		}
		now = rte_rdtsc();
	}
	return rte_rdtsc_precise() - begin;
}

static void measure_round(struct marks *marks, unsigned round)
{
	uint64_t packets = wire_round(marks->flows), done, cycles;

	for (unsigned i = 0; i < N_ENGINES; i++) {
		struct lcore *lcore = &marks->engine[i].plane->lcores[0];

		wire_pass(&marks->engine[i], packets / WIRE_WARM_SHARE, &done);
		cycles = wire_pass(&marks->engine[i], packets, &done);
		marks->floor[i][round] = (double)cycles / (double)done;
		wire_turns(lcore, packets / WIRE_WARM_SHARE, &done);
		cycles = wire_turns(lcore, packets, &done);
		marks->total[i][round] = (double)cycles / (double)done;
	}
	founding_pass(marks, packets / WIRE_WARM_SHARE, &done);
	cycles = founding_pass(marks, packets, &done);
	marks->theirs[round] = (double)cycles / (double)done;
}

static void print_row(const struct marks *marks, const char *measure, const char *against,
	double goal, const double *ours, const double *theirs)
{
	char name[32];
	struct bench_row row = {.bench = "wire",
		.measure = name,
		.load = "uniform",
		.flows = marks->flows,
		.unit = "cycles",
		.against = against,
		.goal = goal,
		.rounds = BENCH_ROUNDS};

	snprintf(name, sizeof(name), "%s%s", measure, marks->variant->name);
	memcpy(row.ours, ours, sizeof(row.ours));
	memcpy(row.theirs, theirs, sizeof(row.theirs));
	bench_print(&row, marks->bench->options.json);
}

static double by_size(uint32_t flows, double many, double very_many)
{
	if (flows < MANY)
		return 0;
	return flows < VERY_MANY ? many : very_many;
}

static void print_rows(const struct marks *marks)
{
	double above[N_ENGINES][BENCH_ROUNDS], goal[BENCH_ROUNDS], half[BENCH_ROUNDS];
	/* packets that are cold are told, and have no goals of their own */
	uint32_t flows = marks->variant->cold ? 0 : marks->flows;

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		for (unsigned j = 0; j < N_ENGINES; j++)
			above[j][i] = marks->total[j][i] - marks->floor[j][i];
		goal[i] = GOAL_FEW;
		half[i] = 2 *
			  (marks->floor[SOFTWARE][i] + (flows < MANY ? GOAL_FEW : GOAL_HALF_MANY));
	}
	/* a floor that does not read cold packets is none for who does */
	if (!marks->variant->cold)
		print_row(marks, "mark", "software",
			by_size(flows, 1 / GOAL_SHARE, 1 / GOAL_SHARE_MANY), above[MARK],
			above[SOFTWARE]);
	if (flows != 0 && flows <= FEW)
		print_row(marks, "mark", "goal", 1, above[MARK], goal);
	print_row(marks, "mark_total", "software", 0, marks->total[MARK], marks->total[SOFTWARE]);
	print_row(marks, "mark_total", "founding",
		by_size(flows, GOAL_FOUNDING, GOAL_FOUNDING_MANY), marks->total[MARK],
		marks->theirs);
	if (flows != 0 && flows < VERY_MANY)
		print_row(marks, "mark_lost", "goal", 1, marks->total[SOFTWARE], half);
}

static int measure(struct marks *marks)
{
	static const char *const words[N_ENGINES] = {
		[SOFTWARE] = " in software", [MARK] = " marked"};
	uint64_t packets = 8 * wire_round(marks->flows), done;
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < N_ENGINES; i++)
		ret = open_engine(marks, i);
	if (ret == 0)
		ret = founding_create(&marks->founding,
			RTE_MAX((uint32_t)(marks->flows / 0.875), 1024u), marks->bench->heap);
	if (ret == 0)
		founding_pass(marks, packets, &done);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++)
		measure_round(marks, i);
	if (ret == 0)
		ret = check(&marks->engine[MARK]);
	if (ret == 0)
		print_rows(marks);
	for (unsigned i = 0; i < N_ENGINES; i++) {
		if (ret == 0 && marks->bench->options.stages)
			wire_print_stages(&marks->engine[i].plane->lcores[0], words[i]);
		wire_engine_close(&marks->engine[i]);
	}
	founding_destroy(marks->founding);
	return ret;
}

int wire_mark(const struct wire_bench *bench, uint32_t flows)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < RTE_DIM(variants); i++) {
		struct marks marks = {.bench = bench, .flows = flows, .variant = &variants[i]};

		ret = measure(&marks);
	}
	return ret;
}
