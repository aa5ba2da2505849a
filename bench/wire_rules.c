/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This measures what a flow that is known costs with rules and without, on one engine whose rules are loaded and removed
 * between two measurements, so that flows, order and table are the same. Rules that look at addresses and a port are
 * first, and one that all packets match and that counts them is last: each flow has a rule. The bench looks that each was
 * decided, and that rules were told of every packet.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/wire.h"
#include "rule/rules.h"

#define RULE_BYTES 160
/* At most so many percent more than without rules. */
#define GOAL (1 / 1.03)

struct rules_bench {
	struct wire_engine engine;
	char *text;
	size_t size;
	double cycles[2][BENCH_ROUNDS]; /* without rules, and with them */
};

/* Addresses of the documentation's, which no flow has; like the rules of a firewall they differ in all fields. */
static int write_rules(struct rules_bench *rules, uint32_t n)
{
	size_t room = (size_t)n * RULE_BYTES;
	uint32_t number = 1;

	rules->text = malloc(room);
	if (rules->text == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++, number = number * 1664525 + 1013904223)
		rules->size += (size_t)snprintf(rules->text + rules->size, room - rules->size,
			"flow create 0 transfer priority 1 pattern eth / ipv4 src is 198.51.%u.%u "
			"dst is 203.0.%u.%u / udp dst is %u / end actions count / end\n",
			i >> 8 & 255, i & 255, number >> 24, number >> 16 & 255, 1024 + i % 50000);
	rules->size += (size_t)snprintf(rules->text + rules->size, room - rules->size,
		"flow create 0 transfer priority 2 pattern eth / end actions count / end\n");
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

int wire_rules(const struct wire_bench *bench, uint32_t flows)
{
	const struct bench_source_config source = {.flows = flows, .load = SEQUENCE_UNIFORM};
	struct rules_bench rules = {.engine.max_rules = bench->options.rules};
	struct error error;
	int ret = write_rules(&rules, bench->options.rules);

	if (ret == 0) {
		ret = wire_engine_open(&rules.engine, &source, &error);
		if (ret < 0)
			wire_say(error.text);
	}
	if (ret == 0)
		ret = wire_engine_learn(&rules.engine);
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
