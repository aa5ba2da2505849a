/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What TCP's states and windows add: two engines side by side, one whose packets are TCP data and one
 * whose are UDP, flows, lengths, order and table alike; the difference of their cycles above their
 * own floors.
 *
 * The segments are of connections of which both ends are known, and each repeats its numbers: data
 * within the window, acknowledging what has come. Every one of them is checked, and passes: the bench
 * sees to it that none was odd.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/wire.h"

/* At 2.6 GHz. */
#define GOAL_CYCLES 20

enum proto { UDP, TCP, N_PROTOS };

struct rounds {
	double floor[BENCH_ROUNDS];
	double total[BENCH_ROUNDS];
};

static int open_engine(struct wire_engine *engine, enum proto proto, uint32_t flows)
{
	const struct bench_source_config source = {.flows = flows,
		.load = SEQUENCE_UNIFORM,
		.words = proto == TCP ? "proto=tcp" : NULL,
		.number = proto};
	struct error error;
	int ret = wire_engine_open(engine, &source, &error);

	if (ret < 0)
		wire_say(error.text);
	return ret < 0 ? ret : wire_engine_learn(engine);
}

static double floor_of(const struct wire_engine *engine)
{
	uint64_t packets = wire_round(engine->flows), done;

	wire_pass(engine, packets / WIRE_WARM_SHARE, &done);
	uint64_t cycles = wire_pass(engine, packets, &done);

	return (double)cycles / (double)done;
}

static double total_of(const struct wire_engine *engine)
{
	struct lcore *lcore = &engine->plane->lcores[0];
	uint64_t packets = wire_round(engine->flows), done;

	wire_turns(lcore, packets / WIRE_WARM_SHARE, &done);
	uint64_t cycles = wire_turns(lcore, packets, &done);

	return (double)cycles / (double)done;
}

/* Have both ends been seen of every flow, and was every segment in its window? */
static int check(const struct wire_engine *engine)
{
	const struct flow_shard *shard = engine->plane->lcores[0].worker.shard;
	const struct flow_table *table = &shard->table;
	uint32_t open = 0;
	char line[128];

	for (uint32_t at = flow_table_next(table, 0); at != FLOW_NONE;
		at = flow_table_next(table, at + 1)) {
		const struct flow_record *record = flow_table_record(table, at);

		open += record->state == FLOW_ESTABLISHED && record->window_known == 3;
	}
	if (open == engine->flows && shard->counters.tcp_odd == 0)
		return 0;
	snprintf(line, sizeof(line),
		"tcp_window: windows of %u of %u flows are known, %llu segments were odd", open,
		engine->flows, (unsigned long long)shard->counters.tcp_odd);
	wire_say(line);
	return -EIO;
}

/*
 * What each round says, in which all four were measured beside one another: their spread is the row's. The
 * share is of one floor, so that it is the same by another unit.
 */
static void print_rows(
	const struct wire_bench *bench, uint32_t flows, const struct rounds rounds[N_PROTOS])
{
	struct bench_row row = {.bench = "wire",
		.measure = "tcp_window",
		.load = "uniform",
		.flows = flows,
		.unit = "cycles",
		.against = "goal",
		.goal = 1,
		.rounds = BENCH_ROUNDS};
	struct bench_row share = row;
	double floors[BENCH_ROUNDS];

	memcpy(floors, rounds[UDP].floor, sizeof(floors));
	double floor = bench_lower_quartile(floors, BENCH_ROUNDS);

	share.measure = "tcp_window_share";
	share.unit = "floors";
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = (rounds[TCP].total[i] - rounds[TCP].floor[i]) -
			      (rounds[UDP].total[i] - rounds[UDP].floor[i]);
		row.theirs[i] = GOAL_CYCLES;
		share.ours[i] = row.ours[i] / floor;
		share.theirs[i] = GOAL_CYCLES / floor;
	}
	wire_print(bench, "tcp_window", &row);
	wire_print(bench, "tcp_window", &share);
}

int wire_tcp(const struct wire_bench *bench, uint32_t flows)
{
	static const char *const words[N_PROTOS] = {[UDP] = " of UDP", [TCP] = " of TCP"};
	struct wire_engine engine[N_PROTOS] = {0};
	struct rounds rounds[N_PROTOS];
	int ret = 0;

	for (enum proto proto = UDP; ret == 0 && proto < N_PROTOS; proto++)
		ret = open_engine(&engine[proto], proto, flows);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		for (enum proto proto = UDP; proto < N_PROTOS; proto++) {
			rounds[proto].floor[i] = floor_of(&engine[proto]);
			rounds[proto].total[i] = total_of(&engine[proto]);
		}
	}
	if (ret == 0)
		ret = check(&engine[TCP]);
	if (ret == 0)
		print_rows(bench, flows, rounds);
	for (enum proto proto = UDP; proto < N_PROTOS; proto++) {
		if (ret == 0 && bench->options.stages)
			wire_print_stages(&engine[proto].plane->lcores[0], words[proto]);
		wire_engine_close(&engine[proto]);
	}
	return ret;
}
