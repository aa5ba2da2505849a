/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two threads that insert and delete at once: into two shards of ours, or both into one rte_hash that is
 * made for several writers (under a lock for readers and writers, or with readers without locks, whatever
 * is better). Keys are made within the time, by both sides alike.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "bench/table.h"

#define WRITERS 2

/* Flows of a writer at most, and operations in a round at least. */
#define MAX_FLOWS (UINT32_C(1) << 19)
#define LEAST_OPERATIONS (UINT32_C(256) << 10)

/* What a thread does: fills and empties its part, `times` times. */
struct writer {
	const struct table_contender *is;
	void *side;
	uint32_t first;
	uint32_t flows;
	unsigned times;
	unsigned *started; /* of all writers that begin at once */
	unsigned n;
	uint64_t begin, end;
	int ret;
};

static int write_all(struct writer *writer, struct table_chunk *chunk, bool insert)
{
	for (uint32_t done = 0; done < writer->flows; done += TABLE_CHUNK) {
		unsigned n = RTE_MIN((uint32_t)TABLE_CHUNK, writer->flows - done);
		uint32_t positions[TABLE_CHUNK];

		table_chunk_row(chunk, writer->first + done, n);
		if (!insert)
			writer->is->remove(writer->side, chunk, n);
		else if (!writer->is->insert(writer->side, chunk, n, positions))
			return -ENOSPC;
	}
	return 0;
}

static void *run(void *argument)
{
	struct writer *writer = argument;
	struct table_chunk *chunk = aligned_alloc(64, sizeof(*chunk));

	/* rte_hash keeps free slots for each thread that DPDK knows */
	writer->ret = chunk == NULL ? -ENOMEM : rte_thread_register() == 0 ? 0 : -rte_errno;
	/* a writer without means begins too, so that the others do not wait for ever */
	__atomic_add_fetch(writer->started, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(writer->started, __ATOMIC_ACQUIRE) < writer->n)
		sched_yield();
	if (writer->ret < 0) {
		free(chunk);
		return NULL;
	}
	memset(chunk, 0, sizeof(*chunk));
	table_chunk_point(chunk);
	writer->begin = rte_rdtsc_precise();
	for (unsigned i = 0; writer->ret == 0 && i < writer->times; i++) {
		writer->ret = write_all(writer, chunk, true);
		if (writer->ret == 0)
			writer->ret = write_all(writer, chunk, false);
	}
	writer->end = rte_rdtsc_precise();
	rte_thread_unregister();
	free(chunk);
	return NULL;
}

/* The processors that two threads may have for themselves; false when there are not two. */
static bool processors(const cpu_set_t *allowed, cpu_set_t *sets)
{
	unsigned n = 0;

	for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && n < WRITERS; cpu--) {
		if (!CPU_ISSET(cpu, allowed))
			continue;
		CPU_ZERO(&sets[n]);
		CPU_SET(cpu, &sets[n++]);
	}
	return n == WRITERS;
}

/* A thread that is on its processor from the beginning: it may not be let onto another's later. */
static int create_on(const cpu_set_t *set, pthread_t *thread, struct writer *writer)
{
	pthread_attr_t attributes;
	int ret = pthread_attr_init(&attributes);

	if (ret != 0)
		return -ret;
	pthread_attr_setaffinity_np(&attributes, sizeof(*set), set);
	ret = pthread_create(thread, &attributes, run, writer);
	pthread_attr_destroy(&attributes);
	return -ret;
}

/* Operations a second of `n` writers together, each on its own side or all on one; negative errno. */
static double write_round(
	const struct table_side *sides, bool shared, unsigned n, uint32_t flows, cpu_set_t *sets)
{
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	unsigned started = 0, made = 0;
	uint64_t begin = UINT64_MAX, end = 0;
	int ret = 0;

	for (; made < n; made++) {
		const struct table_side *side = &sides[shared ? 0 : made];

		writers[made] = (struct writer){.is = side->is,
			.side = side->side,
			.first = made * MAX_FLOWS,
			.flows = flows,
			.times = LEAST_OPERATIONS / (2 * flows) + 1,
			.started = &started,
			.n = n};
		ret = create_on(&sets[made], &threads[made], &writers[made]);
		if (ret != 0)
			break;
	}
	/* those that were not made will not be waited for */
	__atomic_add_fetch(&started, n - made, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < made; i++) {
		pthread_join(threads[i], NULL);
		ret = ret != 0 ? ret : writers[i].ret;
		begin = RTE_MIN(begin, writers[i].begin);
		end = RTE_MAX(end, writers[i].end);
	}
	if (ret != 0)
		return ret;
	return 2.0 * flows * writers[0].times * n * (double)rte_get_tsc_hz() /
	       (double)(end - begin);
}

struct scene {
	struct table_side ours[WRITERS];
	struct table_side theirs[2]; /* with a lock; without locks for readers */
	cpu_set_t sets[WRITERS];
	uint32_t flows; /* of each writer */
};

static int create(struct table_bench *bench, struct scene *scene)
{
	/* each shard is made for its part; keys are not divided by their hashes here */
	const struct table_config part = {
		.flows = bench->flows / WRITERS, .held = scene->flows, .secret = &bench->secret};
	const struct table_config whole = {.flows = bench->flows,
		.held = WRITERS * scene->flows,
		.writers = true,
		.secret = &bench->secret};
	int ret = 0;

	for (unsigned i = 0; ret == 0 && i < WRITERS; i++)
		ret = table_side_create(&scene->ours[i], &table_ours, &part, &bench->error);
	if (ret == 0)
		ret = table_side_create(&scene->theirs[0], &table_rte_hash, &whole, &bench->error);
	if (ret == 0)
		ret = table_side_create(
			&scene->theirs[1], &table_rte_hash_lf, &whole, &bench->error);
	return ret;
}

static void destroy(struct scene *scene)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		table_side_destroy(&scene->ours[i]);
		table_side_destroy(&scene->theirs[i]);
	}
}

static int rounds(struct table_bench *bench, struct scene *scene, struct bench_row *writers,
	struct bench_row *scale)
{
	double theirs[2][BENCH_ROUNDS];

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		table_progress("writers", "rte_hash", bench->flows, i);
		writers->ours[i] = scale->ours[i] =
			write_round(scene->ours, false, WRITERS, scene->flows, scene->sets);
		scale->theirs[i] = write_round(scene->ours, false, 1, scene->flows, scene->sets);
		for (unsigned kind = 0; kind < 2; kind++)
			theirs[kind][i] = write_round(
				&scene->theirs[kind], true, WRITERS, scene->flows, scene->sets);
		double least = RTE_MIN(RTE_MIN(writers->ours[i], scale->theirs[i]),
			RTE_MIN(theirs[0][i], theirs[1][i]));

		if (least < 0)
			return error_set(&bench->error, (int)least, "two writers: %s",
				strerror(-(int)least));
	}
	bool lf = bench_lower_quartile(theirs[1], BENCH_ROUNDS) >
		  bench_lower_quartile(theirs[0], BENCH_ROUNDS);

	memcpy(writers->theirs, theirs[lf], sizeof(writers->theirs));
	return 0;
}

int table_writers(struct table_bench *bench)
{
	struct bench_row writers = table_row(bench, "writers", "uniform", "rte_hash", 0);
	struct bench_row scale = table_row(bench, "writers_scale", "uniform", "one_shard", 0);
	struct scene scene = {.flows = RTE_MIN(bench->held / WRITERS, MAX_FLOWS)};

	if (!table_wants(bench, "writers") && !table_wants(bench, "writers_scale"))
		return 0;
	if (!processors(&bench->processors, scene.sets)) {
		fprintf(stderr, "millrace: bench table: writers: one processor is too few\n");
		return 0;
	}
	int ret = create(bench, &scene);

	if (ret == 0)
		ret = rounds(bench, &scene, &writers, &scale);
	destroy(&scene);
	if (ret < 0)
		return ret;
	writers.unit = scale.unit = "ops/s";
	writers.rate = scale.rate = true;
	if (table_wants(bench, "writers"))
		table_print(bench, &writers);
	if (table_wants(bench, "writers_scale"))
		table_print(bench, &scale);
	return 0;
}
