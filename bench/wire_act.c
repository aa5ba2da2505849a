/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This measures the cost of verdicts, on one engine whose flows are decided again between two measurements, so that flows, order and
 * table are the same: all forwarded, all with a router's program (both MAC addresses, TTL), all with both addresses and
 * ports translated, and one flow in a hundred dropped. What comes on top of forwarding is held against what
 * forwarding costs above the floor.
 *
 * And what deciding costs: the policy changes every 100 ms of ten seconds at full rate, and after the last change each
 * flow is looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "action/programs.h"
#include "bench/wire.h"

enum way { FORWARD, ROUTER, NAT, BLOCKED, N_WAYS };

#define ONE_IN 100
#define CHANGES 100
#define CHANGE_S 0.1
/* A twentieth of the worker's time, and a second. */
#define GOAL_PERCENT 5
#define GOAL_MS 1000

/* The verdicts that the flows get. */
struct act_chooser {
	enum way way;
	uint16_t verdict[N_WAYS][2]; /* by the end with the lower port, and the other */
};

struct act_bench {
	struct wire_engine engine;
	struct act_chooser chooser;
	double floor[BENCH_ROUNDS], cycles[N_WAYS][BENCH_ROUNDS];
};

static void choose(void *context, const struct flow_key *key, const uint16_t port[2],
	struct flow_decision *decision)
{
	const struct act_chooser *chooser = context;
	const uint16_t *verdict = chooser->verdict[chooser->way];
	const uint32_t mixed =
		((uint32_t)key->port[0] << 16 | key->port[1]) * UINT32_C(0x9e3779b1) ^
		key->addr[0][3] ^ (uint32_t)key->addr[1][3] << 8;

	(void)port;
	if (chooser->way == BLOCKED && mixed % ONE_IN != 0)
		return;
	decision->verdict[0] = verdict[0];
	decision->verdict[1] = verdict[1];
}

static int make(struct programs *programs, const struct action *list, unsigned n, uint16_t *number)
{
	struct action_program program;
	struct error error;
	int ret = action_program_compile(&program, list, n, &error);

	if (ret == 0)
		ret = programs_intern(programs, &program, number, &error);
	if (ret < 0)
		wire_say(error.text);
	return ret;
}

static int make_all(struct act_bench *act)
{
	struct programs *programs = plane_programs(act->engine.plane);
	const struct action router[] = {
		{.kind = ACTION_SET_MAC_SRC, .mac = {2, 0, 0, 0, 0, 1}},
		{.kind = ACTION_SET_MAC_DST, .mac = {2, 0, 0, 0, 0, 2}},
		{.kind = ACTION_DECREMENT_TTL},
	};
	const struct action nat[] = {
		{.kind = ACTION_SET_IPV4_SRC, .address = {192, 0, 2, 1}},
		{.kind = ACTION_SET_IPV4_DST, .address = {198, 51, 100, 1}},
		{.kind = ACTION_SET_PORT_SRC, .l4_port = 0x3412},
		{.kind = ACTION_SET_PORT_DST, .l4_port = 0x7856},
	};
	int ret = make(programs, router, RTE_DIM(router), &act->chooser.verdict[ROUTER][0]);

	if (ret == 0)
		ret = make(programs, nat, RTE_DIM(nat), &act->chooser.verdict[NAT][0]);
	act->chooser.verdict[BLOCKED][0] = FLOW_VERDICT_DROP;
	for (enum way way = FORWARD; way < N_WAYS; way++)
		act->chooser.verdict[way][1] = act->chooser.verdict[way][0];
	return ret;
}

/* Turns until every live flow is decided. */
static void decide_all(struct act_bench *act, enum way way)
{
	struct plane *plane = act->engine.plane;
	uint64_t done, change;

	act->chooser.way = way;
	change = plane_policy_changed(plane);
	while (plane_policy_decided(plane) < change)
		wire_turns(&plane->lcores[0], 1024, &done);
}

static double measure(struct act_bench *act)
{
	struct lcore *lcore = &act->engine.plane->lcores[0];
	uint64_t packets = wire_round(act->engine.flows), done;

	wire_turns(lcore, packets / WIRE_WARM_SHARE, &done);
	uint64_t cycles = wire_turns(lcore, packets, &done);

	return (double)cycles / (double)done;
}

static double floor_of(const struct wire_engine *engine)
{
	uint64_t packets = wire_round(engine->flows), done;

	wire_pass(engine, packets / WIRE_WARM_SHARE, &done);
	uint64_t cycles = wire_pass(engine, packets, &done);

	return (double)cycles / (double)done;
}

static void print_way(
	const struct wire_bench *bench, const struct act_bench *act, enum way way, double goal)
{
	static const char *const names[N_WAYS] = {NULL, "act", "act_nat", "act_blocked"};
	struct bench_row row = {.bench = "wire",
		.measure = names[way],
		.load = "uniform",
		.flows = act->engine.flows,
		.unit = "cycles",
		.against = "forwarding",
		.goal = goal,
		.rounds = BENCH_ROUNDS};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = act->cycles[way][i] - act->cycles[FORWARD][i];
		row.theirs[i] = act->cycles[FORWARD][i] - act->floor[i];
	}
	wire_print(bench, "act", &row);
}

/* Did the flows get what they were to? What is dropped tells it of them all. */
static int check(const struct act_bench *act)
{
	const struct flow_shard *shard = act->engine.plane->lcores[0].worker.shard;
	const uint64_t dropped = shard->counters.dropped_packets;

	if (dropped > 0)
		return 0;
	wire_say("act: nothing was dropped");
	return -EIO;
}

static void print_number(const struct wire_bench *bench, const struct act_bench *act,
	const char *measure, const char *unit, double ours, double goal)
{
	struct bench_row row = {.bench = "wire",
		.measure = measure,
		.load = "uniform",
		.flows = act->engine.flows,
		.unit = unit,
		.against = "goal",
		.goal = 1,
		.rounds = 1,
		.ours = {ours},
		.theirs = {goal}};

	wire_print(bench, "act", &row);
}

/* Live flows whose verdict is not the last one. */
static uint32_t count_old(const struct act_bench *act)
{
	const struct flow_table *table = &act->engine.plane->lcores[0].worker.shard->table;
	uint32_t old = 0;

	for (uint32_t at = flow_table_next(table, 0); at != FLOW_NONE;
		at = flow_table_next(table, at + 1)) {
		const struct flow_record *record = flow_table_record(table, at);
		const uint16_t port[2] = {POLICY_NO_PORT, POLICY_NO_PORT};
		struct flow_decision decision = {.cause = FLOW_CAUSE_NONE};

		choose((void *)(uintptr_t)&act->chooser, &record->key, port, &decision);
		old += memcmp(decision.verdict, record->verdict, sizeof(record->verdict)) != 0;
	}
	return old;
}

static int measure_deciding(const struct wire_bench *bench, struct act_bench *act)
{
	struct lcore *lcore = &act->engine.plane->lcores[0];
	const uint64_t hz = rte_get_tsc_hz(), begin = rte_rdtsc();
	const uint64_t walks = lcore->policy.cycles;
	uint64_t change = 0, decided_tsc = 0, longest = 0, done;

	for (unsigned i = 1; i <= CHANGES; i++) {
		act->chooser.way = i % 2 == 0 ? FORWARD : ROUTER;
		change = plane_policy_changed(act->engine.plane);
		const uint64_t changed = rte_rdtsc();

		decided_tsc = 0;
		while ((double)(rte_rdtsc() - begin) < CHANGE_S * i * (double)hz ||
			(i == CHANGES && decided_tsc == 0)) {
			wire_turns(lcore, 256, &done);
			if (decided_tsc == 0 && plane_policy_decided(act->engine.plane) >= change)
				decided_tsc = rte_rdtsc();
		}
		if (decided_tsc != 0)
			longest = RTE_MAX(longest, decided_tsc - changed);
	}
	const uint64_t end = rte_rdtsc();
	const double share = (double)(lcore->policy.cycles - walks) / (double)(end - begin);

	const double ms = (double)longest * 1000 / (double)hz;
	const uint32_t old = count_old(act);

	if (old != 0) {
		char line[96];

		snprintf(line, sizeof(line), "act: %u flows have an old verdict", old);
		wire_say(line);
		return -EIO;
	}
	print_number(bench, act, "act_decide_share", "percent", share * 100, GOAL_PERCENT);
	print_number(bench, act, "act_decide_time", "ms", ms, GOAL_MS);
	return 0;
}

static int open_engine(struct act_bench *act, uint32_t flows)
{
	const struct bench_source_config source = {.flows = flows, .load = SEQUENCE_UNIFORM};
	struct error error;
	int ret;

	act->engine.policy = (struct policy_others){.context = &act->chooser, .decide = choose};
	ret = wire_engine_open(&act->engine, &source, &error);
	if (ret < 0)
		wire_say(error.text);
	if (ret == 0)
		ret = make_all(act);
	return ret < 0 ? ret : wire_engine_learn(&act->engine);
}

int wire_act(const struct wire_bench *bench, uint32_t flows)
{
	static const double goals[N_WAYS] = {[ROUTER] = 2, [NAT] = 4. / 3, [BLOCKED] = 100. / 7};
	struct act_bench act = {.chooser.way = FORWARD};
	int ret = open_engine(&act, flows);

	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		act.floor[i] = floor_of(&act.engine);
		for (enum way way = FORWARD; way < N_WAYS; way++) {
			decide_all(&act, way);
			act.cycles[way][i] = measure(&act);
		}
	}
	if (ret == 0)
		ret = check(&act);
	for (enum way way = ROUTER; ret == 0 && way < N_WAYS; way++)
		print_way(bench, &act, way, goals[way]);
	if (ret == 0)
		ret = measure_deciding(bench, &act);
	if (ret == 0 && bench->options.stages)
		wire_print_stages(&act.engine.plane->lcores[0], " with verdicts");
	wire_engine_close(&act.engine);
	return ret;
}
