/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The parts of `millrace bench wire`: an engine between two simulated NICs, turned by the bench, and the
 * measures that are made of such.
 *
 * Life-cycle of an engine: wire_engine_open(), wire_engine_learn(), turns, wire_engine_close(), which takes
 * a zeroed one too, and has to follow a failure. Each of its lcores is turned by one thread at a time;
 * all else belongs to the thread that opened it.
 */

#include <sched.h>
#include <stdint.h>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/source.h"
#include "plane/plane_private.h"

/* Packets of a round: these, or two for each flow; and as many before it that are not measured. */
#define WIRE_ROUND_PACKETS (1u << 18)
#define WIRE_WARM_SHARE 8

struct wire_engine {
	struct policy_others
		policy;	    /* set before it is opened; its `decide` is NULL: all is forwarded */
	uint32_t max_rules; /* the same: room for rules, which decide in place of it */
	struct bench_source source;
	struct plane *plane;
	uint32_t flows;
};

/*
 * As `millrace run` has it, one worker for each queue of the source, and a table for 1/0.875 of its flows.
 * Returns 0 or a negative errno with a line.
 */
int wire_engine_open(
	struct wire_engine *engine, const struct bench_source_config *source, struct error *error);
/* The same, with NICs that are given flows. */
int wire_engine_open_as(struct wire_engine *engine, const struct bench_source_config *source,
	const struct plane_offload *offload, struct error *error);
void wire_engine_close(struct wire_engine *engine);

/*
 * Turns all lcores until every flow is known, with packets of both its ends. Returns 0, or -EIO when
 * that does not come about.
 */
int wire_engine_learn(struct wire_engine *engine);

/* Flows that are known, of all workers. */
uint32_t wire_engine_flows(const struct wire_engine *engine);

/* Turns an lcore until `packets` have been received, and tells how many have; the cycles that took. */
uint64_t wire_turns(struct lcore *lcore, uint64_t packets, uint64_t *done);

/* Receives and sends, no more; the same. Of a source with one queue a port. */
uint64_t wire_pass(const struct wire_engine *engine, uint64_t packets, uint64_t *done);

/* How many packets a round has. */
uint64_t wire_round(uint32_t flows);

/* Prints the cycles a packet that each stage has taken on an lcore, on stderr. */
void wire_print_stages(const struct lcore *lcore, const char *what);

/* A line on stderr. */
void wire_say(const char *line);

/* CPU time of this thread, in seconds. */
double wire_cpu_time(void);

/* What measures need to know of the bench. */
struct wire_bench {
	struct bench_options options;
	cpu_set_t allowed; /* processors, before the bench took one for itself */
	int heap;	   /* by which DPDK's tables of others are asked for memory */
};

/*
 * Prints a row if --measure names it, or the measure that it comes along with (`main`, which may be itself),
 * or nothing.
 */
void wire_print(const struct wire_bench *bench, const char *main, struct bench_row *row);

/*
 * How the bench's thread is scheduled, which threads that it makes are not to be: between these two calls it
 * runs as usual, and on other processors where there are any.
 */
struct wire_schedule {
	cpu_set_t cpus;
	int policy;
	struct sched_param param;
};

void wire_leave_schedule(const cpu_set_t *allowed, struct wire_schedule *mine);
void wire_resume_schedule(const struct wire_schedule *mine);

/* A processor that the bench does not use itself; -1: there is none. */
int wire_other_cpu(const struct wire_bench *bench);

/*
 * The measures, at one size each; they print their rows. Return 0, or a negative errno after a line.
 * mark and mark_total; installer; tcp_window; two_workers; learn_rate and json_rate; learn_export; attack; act; rules;
 * rule_adds; redecide and redecide_share; syn_flood.
 */
int wire_mark(const struct wire_bench *bench, uint32_t flows);
int wire_installer(const struct wire_bench *bench, uint32_t flows);
int wire_tcp(const struct wire_bench *bench, uint32_t flows);
int wire_workers(const struct wire_bench *bench, uint32_t flows);
int wire_learn(const struct wire_bench *bench, uint32_t flows);
int wire_learn_export(const struct wire_bench *bench, uint32_t flows);
int wire_act(const struct wire_bench *bench, uint32_t flows);
int wire_rules(const struct wire_bench *bench, uint32_t flows);
int wire_rule_adds(const struct wire_bench *bench, uint32_t flows);
int wire_redecide(const struct wire_bench *bench, uint32_t flows);
int wire_flood(const struct wire_bench *bench, uint32_t flows);
int wire_attack(const struct wire_bench *bench, uint32_t flows);
