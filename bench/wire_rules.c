/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This measures what a flow that is known costs with rules and without, on one engine whose rules are loaded and removed
 * between two measurements, so that flows, order and table are the same. Rules that look at addresses and a port are
 * first, and one that all packets match and that counts them is last: each flow has a rule. The bench looks that each was
 * decided, and that rules were told of every packet.
 *
 * And what it costs while rules come: another thread adds ten thousand, one by one, and the time counts until the
 * last of them holds for every flow.
 *
 * And what it costs that all flows are decided again, when a list of rules is replaced by another one that has no rule in
 * common with it: the second that begins with that, and when in it the last flow was decided.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/wire.h"
#include "rule/rules.h"

#define RULE_BYTES 160
/* At most so many percent more than without rules. */
#define GOAL (1 / 1.03)
/* Rules that are added one by one, and what that may cost while it lasts: a twentieth. */
#define ADDED 10000
#define GOAL_ADDS (1 / 1.05)
/* Rules of each list that replaces another; what the walk may take of the second after that, and how long it may take. */
#define REPLACED 10000
#define GOAL_PERCENT 5
#define GOAL_MS 1000
/* Packets between two looks at how far it is. */
#define LOOK 4096

struct rules_bench {
	struct wire_engine engine;
	char *text;
	size_t size;
	double cycles[2][BENCH_ROUNDS]; /* without rules, and with them */
	double quiet[BENCH_ROUNDS], adding[BENCH_ROUNDS];
	double took_ms; /* from the first to where the last one held, the longest of the rounds */
};

/* The thread that adds rules. */
struct adder {
	struct rules *rules;
	const char *text;
	size_t size;
	atomic_bool is_done;
	int ret; /* once it is done */
};

/*
 * Addresses of the documentation's, which no flow has; like the rules of a firewall they differ in all fields. Lists of
 * different `number` have no rule in common.
 */
static int write_rules(struct rules_bench *rules, uint32_t n, uint32_t number)
{
	size_t room = (size_t)n * RULE_BYTES;
	const uint32_t last = number + 1;

	rules->size = 0;
	rules->text = malloc(room);
	if (rules->text == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++, number = number * 1664525 + 1013904223)
		rules->size += (size_t)snprintf(rules->text + rules->size, room - rules->size,
			"flow create 0 transfer priority 1 pattern eth / ipv4 src is 198.51.%u.%u "
			"dst is 203.0.%u.%u / udp dst is %u / end actions count / end\n",
			i >> 8 & 255, i & 255, number >> 24, number >> 16 & 255, 1024 + i % 50000);
	rules->size += (size_t)snprintf(rules->text + rules->size, room - rules->size,
		"flow create 0 transfer priority %u pattern eth / end actions count / end\n", last);
	return 0;
}

/* Turns until every live flow is decided. */
static void decide_all(struct rules_bench *rules)
{
	struct plane *plane = rules->engine.plane;
	const uint64_t change = rules_touch(plane_rules(plane));
	uint64_t done;

	while (plane_policy_decided(plane) < change)
		wire_turns(&plane->lcores[0], 1024, &done);
	rules_settled(plane_rules(plane), plane_policy_decided(plane));
}

static int set_rules(struct rules_bench *rules, bool wanted)
{
	struct rules *of = plane_rules(rules->engine.plane);
	struct error error;
	uint32_t added;
	int ret = 0;

	if (wanted)
		ret = rules_load_bytes(
			of, "bench", rules->text, rules->size, &added, NULL, NULL, &error);
	else
		(void)rules_flush(of, RULES_NO_PORT);
	if (ret < 0)
		wire_say(error.text);
	else
		decide_all(rules);
	return ret;
}

static double measure_known(struct rules_bench *rules)
{
	struct lcore *lcore = &rules->engine.plane->lcores[0];
	uint64_t packets = wire_round(rules->engine.flows), done;

	/* the change of rules has taken the caches: each flow is met again before it counts */
	wire_turns(lcore, packets, &done);
	uint64_t cycles = wire_turns(lcore, packets, &done);

	return (double)cycles / (double)done;
}

/* Every packet has come to a rule, or to none while there were none; and no flow left the fast path. */
static int check_rules(struct rules_bench *rules)
{
	const struct lcore *lcore = &rules->engine.plane->lcores[0];
	const struct flow_shard *shard = lcore->worker.shard;
	struct rules_view view;
	uint32_t from = 0;
	uint64_t counted = 0;

	decide_all(rules);
	while (from != RULES_NONE)
		if (rules_list(plane_rules(rules->engine.plane), RULES_NO_PORT, &from, &view, 1) ==
			1)
			counted += view.count.packets;
	for (uint32_t at = flow_table_next(&shard->table, 0); at != FLOW_NONE;
		at = flow_table_next(&shard->table, at + 1)) {
		if (!flow_table_record(&shard->table, at)->not_plain &&
			flow_shard_rules(shard, at).rule[0] != FLOW_RULE_NONE)
			continue;
		wire_say("rules: a flow has no rule, or is not plain");
		return -EIO;
	}
	if (counted > 0)
		return 0;
	wire_say("rules: no packet was counted");
	return -EIO;
}

static void ignore_line(void *context, const char *line)
{
	(void)context;
	(void)line;
}

static void *add_all(void *context)
{
	struct adder *adder = context;
	const char *line = adder->text, *end = adder->text + adder->size;
	struct error error = {0};
	unsigned column;

	while (adder->ret == 0 && line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		adder->ret = rules_command(adder->rules, line, (size_t)(newline - line), &column,
			ignore_line, NULL, &error);
		line = newline + 1;
	}
	if (adder->ret < 0)
		wire_say(error.text);
	atomic_store(&adder->is_done, true);
	return NULL;
}

/* Cycles of a packet from the first rule added until the last one holds for every flow. */
static int measure_adding(struct rules_bench *rules, const struct wire_bench *bench, unsigned round)
{
	struct plane *plane = rules->engine.plane;
	struct adder adder = {
		.rules = plane_rules(plane), .text = rules->text, .size = rules->size};
	uint64_t cycles = 0, packets = 0, done;
	bool is_added = false;
	struct wire_schedule mine;
	pthread_t thread;

	rules->quiet[round] = measure_known(rules);
	wire_leave_schedule(&bench->allowed, &mine);
	int ret = -pthread_create(&thread, NULL, add_all, &adder);

	wire_resume_schedule(&mine);
	if (ret < 0)
		return ret;
	while (!is_added ||
		plane_policy_decided(plane) < atomic_load(rules_generation(plane_rules(plane)))) {
		is_added = atomic_load(&adder.is_done);
		cycles += wire_turns(&plane->lcores[0], LOOK, &done);
		packets += done;
	}
	pthread_join(thread, NULL);
	rules->adding[round] = (double)cycles / (double)packets;
	rules->took_ms = RTE_MAX(rules->took_ms, (double)cycles * 1e3 / (double)rte_get_tsc_hz());
	return adder.ret;
}

/* Nothing of what came was dropped. */
static int check_none_lost(const struct rules_bench *rules)
{
	const struct lcore *lcore = &rules->engine.plane->lcores[0];
	uint64_t lost = 0;

	for (enum drop_reason reason = 0; reason < DROP_N_REASONS; reason++)
		lost += lcore->worker.counters[0].dropped[reason];
	if (lost == 0)
		return 0;
	wire_say("rules: packets were dropped");
	return -EIO;
}

static int measure_adds(const struct wire_bench *bench, struct rules_bench *rules)
{
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		ret = set_rules(rules, false);
		if (ret == 0)
			ret = measure_adding(rules, bench, i);
	}
	return ret == 0 ? check_none_lost(rules) : ret;
}

static int open_engine(struct rules_bench *rules, uint32_t flows, uint32_t n_rules)
{
	const struct bench_source_config source = {.flows = flows, .load = SEQUENCE_UNIFORM};
	struct error error;
	int ret = write_rules(rules, n_rules, 1);

	rules->engine.max_rules = n_rules;
	if (ret == 0) {
		ret = wire_engine_open(&rules->engine, &source, &error);
		if (ret < 0)
			wire_say(error.text);
	}
	return ret == 0 ? wire_engine_learn(&rules->engine) : ret;
}

int wire_rule_adds(const struct wire_bench *bench, uint32_t flows)
{
	struct rules_bench rules = {0};
	int ret = open_engine(&rules, flows, ADDED);

	if (ret == 0)
		ret = measure_adds(bench, &rules);
	if (ret == 0) {
		struct bench_row row = {.bench = "wire",
			.measure = "rule_adds",
			.load = "uniform",
			.flows = flows,
			.unit = "cycles",
			.against = "no_rules",
			.goal = GOAL_ADDS,
			.rounds = BENCH_ROUNDS};

		fprintf(stderr,
			"rule_adds: the last of %d rules held for %u flows after %.0f ms at most\n",
			ADDED, flows, rules.took_ms);
		memcpy(row.ours, rules.adding, sizeof(rules.adding));
		memcpy(row.theirs, rules.quiet, sizeof(rules.quiet));
		wire_print(bench, "rule_adds", &row);
	}
	wire_engine_close(&rules.engine);
	free(rules.text);
	return ret;
}

int wire_rules(const struct wire_bench *bench, uint32_t flows)
{
	struct rules_bench rules = {0};
	int ret = open_engine(&rules, flows, bench->options.rules);

	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		for (unsigned wanted = 0; ret == 0 && wanted < 2; wanted++) {
			ret = set_rules(&rules, wanted != 0);
			rules.cycles[wanted][i] = ret == 0 ? measure_known(&rules) : 0;
		}
	}
	if (ret == 0)
		ret = check_rules(&rules);
	if (ret == 0) {
		struct bench_row row = {.bench = "wire",
			.measure = "rules",
			.load = "uniform",
			.flows = flows,
			.unit = "cycles",
			.against = "no_rules",
			.goal = GOAL,
			.rounds = BENCH_ROUNDS};

		memcpy(row.ours, rules.cycles[1], sizeof(rules.cycles[1]));
		memcpy(row.theirs, rules.cycles[0], sizeof(rules.cycles[0]));
		wire_print(bench, "rules", &row);
	}
	wire_engine_close(&rules.engine);
	free(rules.text);
	return ret;
}

/* ---------------------------------------------------- a list in place of another */

struct redecide {
	struct wire_engine *engine; /* the first list's */
	struct rules_bench list[2];
	double share[BENCH_ROUNDS]; /* percent of the second that the walk took */
	double ms[BENCH_ROUNDS];    /* until the last flow was decided */
};

/* Puts a list in force: all flows are decided by it when they are at `generation`. */
static int replace_list(
	const struct redecide *redecide, const struct rules_bench *by, uint64_t *generation)
{
	struct plane *plane = redecide->engine->plane;
	struct rules *rules = plane_rules(plane);
	struct rules_change change = {0};
	struct error error = {0};
	struct rules_list *list;
	uint64_t done;
	int ret = rules_list_create(rules, &list);

	if (ret < 0)
		return ret;
	ret = rules_list_read(rules, list, "bench", by->text, by->size, NULL, NULL, &error);
	if (ret == 0)
		ret = rules_replace(rules, list, &change, &error);
	/* what the list before last had is there until the worker holds nothing of it */
	for (; ret == -EAGAIN; ret = rules_replace(rules, list, &change, &error)) {
		wire_turns(&plane->lcores[0], LOOK, &done);
		rules_settled(rules, plane_policy_decided(plane));
	}
	if (ret < 0) {
		rules_list_destroy(rules, list);
		wire_say(error.text);
	}
	*generation = change.generation;
	return ret;
}

/*
 * The second that begins with a new list, and what is over of it when all flows are decided: of the thread's CPU time, as a
 * worker has its processor for itself.
 */
static int measure_redecide(struct redecide *redecide, unsigned round)
{
	struct plane *plane = redecide->engine->plane;
	struct lcore *lcore = &plane->lcores[0];
	uint64_t generation, done;
	int ret = replace_list(redecide, &redecide->list[1 - round % 2], &generation);
	const uint64_t begin_tsc = rte_rdtsc(), walked = lcore->policy.cycles;
	const double begin = wire_cpu_time();
	double passed = 0, decided = 0;

	if (ret < 0)
		return ret;
	while (passed < 1 || decided == 0) {
		wire_turns(lcore, 256, &done);
		passed = wire_cpu_time() - begin;
		if (decided == 0 && plane_policy_decided(plane) >= generation)
			decided = passed;
	}
	redecide->ms[round] = decided * 1e3;
	redecide->share[round] =
		(double)(lcore->policy.cycles - walked) * 100 / (double)(rte_rdtsc() - begin_tsc);
	return check_rules(&redecide->list[0]);
}

static void print_redecide(const struct wire_bench *bench, uint32_t flows, const char *measure,
	const char *unit, const double *ours, double goal)
{
	struct bench_row row = {.bench = "wire",
		.measure = measure,
		.load = "uniform",
		.flows = flows,
		.unit = unit,
		.against = "goal",
		.goal = 1,
		.rounds = BENCH_ROUNDS};

	memcpy(row.ours, ours, sizeof(row.ours));
	for (unsigned i = 0; i < BENCH_ROUNDS; i++)
		row.theirs[i] = goal;
	wire_print(bench, "redecide", &row);
}

int wire_redecide(const struct wire_bench *bench, uint32_t flows)
{
	static struct redecide redecide;
	uint64_t generation;

	memset(&redecide, 0, sizeof(redecide));
	redecide.engine = &redecide.list[0].engine;
	int ret = write_rules(&redecide.list[1], REPLACED, 2);

	if (ret == 0)
		ret = open_engine(&redecide.list[0], flows, REPLACED);
	if (ret == 0)
		ret = replace_list(&redecide, &redecide.list[0], &generation);
	if (ret == 0)
		decide_all(&redecide.list[0]);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++)
		ret = measure_redecide(&redecide, i);
	if (ret == 0) {
		print_redecide(bench, flows, "redecide_share", "%", redecide.share, GOAL_PERCENT);
		print_redecide(bench, flows, "redecide", "ms", redecide.ms, GOAL_MS);
	}
	wire_engine_close(redecide.engine);
	for (unsigned i = 0; i < 2; i++)
		free(redecide.list[i].text);
	return ret;
}
