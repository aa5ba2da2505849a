/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What admission costs the worker that carries the packets: the whole path with 65,536 flows, of which the NIC has as many
 * as a X710 holds, while flows are sampled, measured, ranked and exchanged, against the same with nobody sampled; the rules
 * that are there stay. In turns, on one engine.
 */
#include <errno.h>
#include <sched.h>

#include "base/monotonic.h"
#include "bench/admission_cost.h"
#include "bench/admission_engine.h"
#include "bench/wire.h"

#define FLOWS 65536
#define ENTRIES 7168
#define SLOTS 16384
/* At most 2 %. */
#define GOAL (1 / 1.02)
#define FILL_US 20000000
/* Who was first in it gives way to who is busier. */
#define SETTLE_US 2000000

static struct agent *agent_of(const struct wire_engine *engine)
{
	return engine->plane->lcores[0].worker.agent;
}

static bool is_full(const struct agent_port *port)
{
	return port->counters.flows[OFFLOAD_PROVEN] >= ENTRIES * 99 / 100;
}

/* Until both ports' tables are as full as they get, and have been for a while. */
static int fill(const struct wire_engine *engine, struct error *error)
{
	const uint64_t end_us = monotonic_us() + FILL_US;
	const struct agent *agent = agent_of(engine);
	uint64_t done, full_us = 0;

	while (!plane_tend(engine->plane) && monotonic_us() < end_us)
		sched_yield();
	do {
		wire_turns(&engine->plane->lcores[0], WIRE_ROUND_PACKETS, &done);
		if (full_us == 0 && is_full(&agent->port[0]) && is_full(&agent->port[1]))
			full_us = monotonic_us();
		if (full_us != 0 && monotonic_us() - full_us >= SETTLE_US)
			return 0;
	} while (monotonic_us() < end_us);
	return error_set(error, -EIO, "cost: the NIC's table does not get full");
}

static double turns(const struct wire_engine *engine, uint32_t min_packets)
{
	const uint64_t packets = 4 * wire_round(FLOWS);
	uint64_t done, cycles;

	agent_of(engine)->config.min_packets = min_packets;
	wire_turns(&engine->plane->lcores[0], packets / WIRE_WARM_SHARE, &done);
	cycles = wire_turns(&engine->plane->lcores[0], packets, &done);
	return (double)cycles / (double)done;
}

static void measure(const struct bench_options *options, const struct wire_engine *engine)
{
	const uint32_t usual = agent_of(engine)->config.min_packets;
	struct bench_row row = {.bench = "admission",
		.measure = "cost",
		.load = "zipf",
		.flows = FLOWS,
		.entries = ENTRIES,
		.unit = "cycles",
		.against = "without",
		.goal = GOAL,
		.rounds = BENCH_ROUNDS};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = turns(engine, usual);
		row.theirs[i] = turns(engine, UINT32_MAX);
	}
	bench_print(&row, options->json);
}

int admission_cost(const struct bench_options *options, struct error *error)
{
	const struct bench_source_config source = {.flows = FLOWS,
		.load = SEQUENCE_ZIPF,
		.words = "profile=x710",
		.offload_places = SLOTS};
	const struct plane_offload offload = {
		.on = true, .threshold = ADMISSION_THRESHOLD, .slots = SLOTS};
	struct wire_engine engine = {.plane = NULL};
	int ret = wire_engine_open_as(&engine, &source, &offload, error);

	if (ret == 0)
		ret = fill(&engine, error);
	if (ret == 0) {
		bench_pin();
		measure(options, &engine);
	}
	wire_engine_close(&engine);
	return ret;
}
