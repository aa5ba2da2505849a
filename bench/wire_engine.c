/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/wire.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <rte_ethdev.h>

#include "base/mapping.h"
#include "dataplane/poll.h"

/* Packets of each flow, of either port, within which all have come in any order. */
#define LEARN_ROUNDS 4

void wire_say(const char *line)
{
	fprintf(stderr, "millrace: bench wire: %s\n", line);
}

double wire_cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int wire_other_cpu(const struct wire_bench *bench)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &bench->allowed) && cpu != sched_getcpu())
			return cpu;
	return -1;
}

void wire_leave_schedule(const cpu_set_t *allowed, struct wire_schedule *mine)
{
	const struct sched_param usual = {0};
	cpu_set_t others = *allowed;

	sched_getaffinity(0, sizeof(mine->cpus), &mine->cpus);
	mine->policy = sched_getscheduler(0);
	sched_getparam(0, &mine->param);
	sched_setscheduler(0, SCHED_OTHER, &usual);
	CPU_CLR(sched_getcpu(), &others);
	sched_setaffinity(0, sizeof(others), CPU_COUNT(&others) == 0 ? allowed : &others);
}

void wire_resume_schedule(const struct wire_schedule *mine)
{
	sched_setaffinity(0, sizeof(mine->cpus), &mine->cpus);
	sched_setscheduler(0, mine->policy, &mine->param);
}

static void ignore(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

int wire_engine_open(
	struct wire_engine *engine, const struct bench_source_config *source, struct error *error)
{
	const struct plane_offload offload = {.on = false};

	return wire_engine_open_as(engine, source, &offload, error);
}

int wire_engine_open_as(struct wire_engine *engine, const struct bench_source_config *source,
	const struct plane_offload *offload, struct error *error)
{
	struct plane_config config = {
		.topology = topology_of_wires(1),
		.n_workers = RTE_MAX(source->n_queues, 1u),
		.poll_always = true,
		.flows = RTE_MAX((uint32_t)(source->flows / 0.875), 1024u),
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		.offload = *offload,
		.policy = engine->policy,
		.max_rules = engine->max_rules,
		.max_programs = engine->policy.decide == NULL ? 0 : 16,
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = ignore,
	};
	int ret = bench_source_open(&engine->source, source, error);

	if (ret < 0)
		return ret;
	engine->flows = source->flows;
	config.port[0] = engine->source.port[0];
	config.port[1] = engine->source.port[1];
	return plane_create(&engine->plane, &config, error);
}

void wire_engine_close(struct wire_engine *engine)
{
	if (engine->plane != NULL)
		plane_stop(engine->plane);
	bench_source_close(&engine->source);
	plane_destroy(engine->plane);
	engine->plane = NULL;
}

uint32_t wire_engine_flows(const struct wire_engine *engine)
{
	uint32_t flows = 0;

	for (unsigned i = 0; i < engine->plane->n_lcores; i++)
		flows += engine->plane->lcores[i].worker.shard->wire_flows[0];
	return flows;
}

int wire_engine_learn(struct wire_engine *engine)
{
	struct plane *plane = engine->plane;
	uint64_t packets = 2 * LEARN_ROUNDS * (uint64_t)engine->flows / plane->n_lcores, done;
	char line[128];

	for (unsigned i = 0; i < plane->n_lcores; i++)
		wire_turns(&plane->lcores[i], packets + WIRE_ROUND_PACKETS, &done);
	if (wire_engine_flows(engine) == engine->flows)
		return 0;
	snprintf(line, sizeof(line), "%u of %u flows are known", wire_engine_flows(engine),
		engine->flows);
	wire_say(line);
	return -EIO;
}

static uint64_t received_by(const struct lcore *lcore)
{
	return lcore->ports[0].rx_packets + lcore->ports[1].rx_packets;
}

/* The loop of a worker's thread, which always has something to do. */
uint64_t wire_turns(struct lcore *lcore, uint64_t packets, uint64_t *done)
{
	uint64_t begin = rte_rdtsc_precise(), tsc = begin, before = received_by(lcore);

	do {
		lcore_poll_timed(lcore, &tsc);
		*done = received_by(lcore) - before;
	} while (*done < packets);
	return rte_rdtsc_precise() - begin;
}

uint64_t wire_pass(const struct wire_engine *engine, uint64_t packets, uint64_t *done)
{
	const struct bench_source *source = &engine->source;
	const uint16_t most = engine->plane->lcores[0].burst;
	uint64_t begin = rte_rdtsc_precise();
	struct rte_mbuf *burst[BENCH_BURST];

	for (*done = 0; *done < packets;) {
		for (unsigned side = 0; side < 2; side++) {
			uint16_t n = rte_eth_rx_burst(source->port[side]->id, 0, burst, most);
			uint16_t sent = rte_eth_tx_burst(source->port[!side]->id, 0, burst, n);

			if (sent < n)
				rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			*done += n;
		}
	}
	return rte_rdtsc_precise() - begin;
}

uint64_t wire_round(uint32_t flows)
{
	return RTE_MAX((uint64_t)WIRE_ROUND_PACKETS, 2 * (uint64_t)flows);
}

void wire_print_stages(const struct lcore *lcore, const char *what)
{
	const struct stage_times *times = &lcore->worker.stages;

	fprintf(stderr, "stages%s, cycles a packet:", what);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (times->packets[stage] != 0)
			fprintf(stderr, " %s %.1f", stage_name(stage),
				(double)times->cycles[stage] / (double)times->packets[stage]);
	fprintf(stderr, "\n");
}
