/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers against one: the packets a second that two carry at once, each on a processor of its own and
 * with queues of its own, over those that one carries, of the same flows. Flows fall to the two by the
 * NIC's RSS, symmetric, so that nothing is handed from one to the other; the bench looks that nothing was.
 *
 * A rate is of packets a second of the worker's own CPU time, so that what other programs take does not
 * count. Both begin together, and whoever is done first works on until the other is.
 *
 * Two workers have half of the flows each, which may suit a processor's cache. So the second row
 * compares with one of the two while the other rests: what is missing from 2 there is what they cost
 * each other.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_lcore.h>
#include <rte_pause.h>

#include "bench/wire.h"

#define GOAL 1.9
#define WORKERS 2

/* Where those who work at once wait for one another. */
struct meeting {
	unsigned n;
	atomic_uint ready, done;
};

struct job {
	struct lcore *lcore;
	struct meeting *meeting;
	uint64_t packets;
	double rate;
};

static void work(struct job *job)
{
	struct meeting *meeting = job->meeting;
	uint64_t done, more;

	wire_turns(job->lcore, job->packets / WIRE_WARM_SHARE, &done);
	atomic_fetch_add(&meeting->ready, 1);
	while (atomic_load(&meeting->ready) < meeting->n)
		rte_pause();
	double begin = wire_cpu_time();

	wire_turns(job->lcore, job->packets, &done);
	job->rate = (double)done / (wire_cpu_time() - begin);
	atomic_fetch_add(&meeting->done, 1);
	while (atomic_load(&meeting->done) < meeting->n)
		wire_turns(job->lcore, 1, &more);
}

/* As a worker's thread has a cache of mbufs. */
static void *work_beside(void *job)
{
	int registered = rte_thread_register();

	work(job);
	if (registered == 0)
		rte_thread_unregister();
	return NULL;
}

static double rate_of_one(struct lcore *lcore, uint64_t packets)
{
	struct meeting meeting = {.n = 1};
	struct job job = {.lcore = lcore, .meeting = &meeting, .packets = packets};

	work(&job);
	return job.rate;
}

/* Together. Negative errno as a rate: the other thread does not start. */
static double rate_of_both(struct plane *plane, uint64_t packets, int cpu)
{
	struct meeting meeting = {.n = WORKERS};
	struct job job[WORKERS];
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t other;

	for (unsigned i = 0; i < WORKERS; i++)
		job[i] = (struct job){
			.lcore = &plane->lcores[i], .meeting = &meeting, .packets = packets};
	CPU_ZERO(&other);
	CPU_SET(cpu, &other);
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof(other), &other);
	int ret = pthread_create(&thread, &attributes, work_beside, &job[1]);

	pthread_attr_destroy(&attributes);
	if (ret != 0)
		return -ret;
	work(&job[0]);
	pthread_join(thread, NULL);
	return job[0].rate + job[1].rate;
}

static int open_engine(
	struct wire_engine *engine, unsigned n_workers, unsigned number, uint32_t flows)
{
	const struct bench_source_config source = {
		.flows = flows, .load = SEQUENCE_UNIFORM, .n_queues = n_workers, .number = number};
	struct error error;
	int ret = wire_engine_open(engine, &source, &error);

	if (ret < 0)
		wire_say(error.text);
	return ret < 0 ? ret : wire_engine_learn(engine);
}

/* Had each worker flows, and did it keep to its own? */
static int check(const struct wire_engine *engine)
{
	for (unsigned i = 0; i < engine->plane->n_lcores; i++) {
		const struct worker *worker = &engine->plane->lcores[i].worker;

		if (worker->counters[0].handed_out == 0 && worker->shard->wire_flows[0] != 0)
			continue;
		wire_say("two_workers: flows are not spread by the NIC");
		return -EIO;
	}
	return 0;
}

static void print_row(const struct wire_bench *bench, uint32_t flows, const char *measure,
	const char *against, double goal, const double *both, const double *one)
{
	struct bench_row row = {.bench = "wire",
		.measure = measure,
		.load = "uniform",
		.flows = flows,
		.unit = "packets/s",
		.against = against,
		.goal = goal,
		.rate = true,
		.rounds = BENCH_ROUNDS};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = both[i];
		row.theirs[i] = one[i];
	}
	wire_print(bench, "two_workers", &row);
}

int wire_workers(const struct wire_bench *bench, uint32_t flows)
{
	double one[BENCH_ROUNDS], half[BENCH_ROUNDS], both[BENCH_ROUNDS];
	struct wire_engine single = {0}, pair = {0};
	uint64_t packets = wire_round(flows);
	int cpu = wire_other_cpu(bench);

	if (cpu < 0) {
		wire_say("two_workers: left out, it takes two processors");
		return 0;
	}
	int ret = open_engine(&single, 1, 0, flows);

	if (ret == 0)
		ret = open_engine(&pair, WORKERS, 1, flows);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		one[i] = rate_of_one(&single.plane->lcores[0], packets);
		both[i] = rate_of_both(pair.plane, packets / WORKERS, cpu);
		half[i] = rate_of_one(&pair.plane->lcores[0], packets / WORKERS);
		if (both[i] < 0) {
			wire_say("two_workers: the other thread does not start");
			ret = (int)both[i];
		}
	}
	if (ret == 0)
		ret = check(&pair);
	if (ret == 0) {
		print_row(bench, flows, "two_workers", "one_worker", GOAL, both, one);
		print_row(bench, flows, "two_workers_half", "one_of_them", 0, both, half);
	}
	wire_engine_close(&single);
	wire_engine_close(&pair);
	return ret;
}
