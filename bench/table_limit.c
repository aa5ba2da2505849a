/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine's limit: reading two random cache lines a key, one of memory as large as our index and one
 * of memory as large as our records, each in bursts of 64 that are prefetched and then read: one burst
 * after the other, or carried, the next one prefetched before this one is read. It is our table's own
 * memory that is read, so that it lies on the same pages.
 */
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "bench/table.h"
#include "traffic/draw.h"

#define GOAL 0.85
#define LEAST_FLOWS 1000000
#define PROBES (UINT32_C(512) << 10)
#define WARM_UP (UINT32_C(128) << 10)

/* Where lines lie, and how far apart. */
struct lines {
	const char *memory;
	size_t stride;
	uint32_t n;
};

static void prefetch_burst(const struct lines *lines, const uint32_t *numbers, const char **at)
{
	for (unsigned i = 0; i < TABLE_BURST; i++) {
		at[i] = lines->memory + numbers[i] * lines->stride;
		rte_prefetch0(at[i]);
	}
}

static uint64_t read_burst(const char *const *at)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TABLE_BURST; i++)
		sum += (unsigned char)*(const volatile char *)at[i];
	return sum;
}

/* A chunk, with `ahead` bursts prefetched beside the one that is read: 0 or 1. */
static uint64_t read_lines(const struct lines *lines, const uint32_t *numbers, unsigned ahead)
{
	const unsigned n = TABLE_CHUNK / TABLE_BURST;
	const char *at[2][TABLE_BURST];
	uint64_t sum = 0;

	for (unsigned i = 0; i < n + ahead; i++) {
		if (i < n)
			prefetch_burst(lines, &numbers[i * TABLE_BURST], at[i % 2]);
		if (i >= ahead)
			sum += read_burst(at[(i - ahead) % 2]);
	}
	return sum;
}

/* Cycles for a line of each kind. */
static double read_round(const struct lines *lines, unsigned n, unsigned ahead, struct draw *draw)
{
	uint64_t cycles = 0;

	for (uint32_t done = 0; done < WARM_UP + PROBES; done += TABLE_CHUNK) {
		for (unsigned kind = 0; kind < n; kind++) {
			uint32_t numbers[TABLE_CHUNK];

			for (unsigned i = 0; i < TABLE_CHUNK; i++)
				numbers[i] = draw_below(draw_next(draw), lines[kind].n);
			uint64_t begin = rte_rdtsc_precise();

			read_lines(&lines[kind], numbers, ahead);
			if (done >= WARM_UP)
				cycles += rte_rdtsc_precise() - begin;
		}
	}
	return (double)cycles / PROBES;
}

/* Each burst by itself on both sides, or the next one prefetched before this one is read, on both. */
static void limit_row(struct table_bench *bench, const char *measure, const struct lines *lines,
	unsigned n, bool carried)
{
	struct bench_row row = table_row(bench, measure, "uniform", "limit", GOAL);
	struct table_look_up hit = {.order = &bench->order,
		.burst = TABLE_BURST,
		.way = carried ? TABLE_OURS_CARRIED : TABLE_OURS_ALONE};
	struct draw draw = {.seed = bench->flows};

	if (!table_wants(bench, measure))
		return;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		table_progress(measure, "limit", bench->flows, i);
		hit.round = i;
		row.ours[i] = table_look_ups(&bench->ours, &hit);
		row.theirs[i] = read_round(lines, n, carried, &draw);
	}
	table_print(bench, &row);
}

int table_limit(struct table_bench *bench)
{
	const struct flow_table *table = table_ours_inside(bench->ours.side);
	const struct lines lines[] = {
		{(const char *)table->lines, sizeof(struct flow_line),
			table->n_groups * table->group_lines},
		{(const char *)table->records, sizeof(struct flow_record),
			table->n_groups * table->group_records},
	};

	if (bench->flows < LEAST_FLOWS || !bench_asked(bench->options->loads, "uniform"))
		return 0;
	limit_row(bench, "limit", lines, RTE_DIM(lines), false);
	limit_row(bench, "limit_carried", lines, RTE_DIM(lines), true);
	return 0;
}
