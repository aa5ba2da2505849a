/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `millrace bench table`: the flow table against rte_hash at its best and other known ways. Keys are made
 * outside of the timed part, 1,024 at a time, so that they are as warm as after extraction; hashing them is
 * timed on both sides. Packets, bytes and last seen are updated alike. Both sides lie on 2 MB pages where
 * the kernel has them. Tables are made for N flows and hold 0.875 N. docs/benchmarks.md has the rows.
 *
 * Ours is made once for a size, the others one after the other: the largest would not fit beside one
 * another.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dpdk.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/plot.h"
#include "bench/table.h"

static const uint32_t sizes[] = {1024, 16384, 65536, 1000000, 8000000, 32000000};

static const struct table_contender *const contenders[] = {
	&table_rte_hash, &table_rte_hash_naive, &table_rte_hash_lf, &table_rte_table_hash_ext};

const char *const bench_panels[BENCH_N_PANELS] = {
	"lookup_update", "lookup_miss", "insert", "churn"};

void table_progress(const char *what, const char *against, uint32_t flows, unsigned round)
{
	char text[TEXT_NUMBER_MAX];

	if (!isatty(STDERR_FILENO))
		return;
	fputs("\r\033[K", stderr);
	if (what != NULL)
		fprintf(stderr, "%s flows, against %s: %s, round %u of %u",
			text_grouped(text, flows), against, what, round + 1, BENCH_ROUNDS);
	fflush(stderr);
}

struct bench_row table_row(const struct table_bench *bench, const char *measure, const char *load,
	const char *against, double goal)
{
	return (struct bench_row){.bench = "table",
		.measure = measure,
		.load = load,
		.flows = bench->flows,
		.unit = "cycles",
		.against = against,
		.goal = goal,
		.rounds = BENCH_ROUNDS};
}

void table_print(struct table_bench *bench, struct bench_row *row)
{
	table_progress(NULL, NULL, 0, 0);
	bench_print(row, bench->options->json);
	if (bench->plot == NULL || strcmp(row->load, "uniform") != 0)
		return;
	/* of ours, which each contender is measured against anew, the first counts */
	plot_add(bench->plot, row->measure, "ours", row->flows,
		bench_lower_quartile(row->ours, row->rounds));
	plot_add(bench->plot, row->measure, row->against, row->flows,
		bench_lower_quartile(row->theirs, row->rounds));
}

/* ---- a size ---- */

static int contest_all(struct table_bench *bench)
{
	const struct table_config config = {
		.flows = bench->flows, .held = bench->held, .secret = &bench->secret};
	const char *against = bench->options->against;
	int ret = table_side_create(&bench->ours, &table_ours, &config, &bench->error);

	if (ret == 0 && table_fill(&bench->ours, bench->held) < 0)
		ret = error_set(&bench->error, -ENOSPC, "our table holds less than it should");
	for (unsigned i = 0; ret == 0 && i < RTE_DIM(contenders); i++)
		if (bench_asked(against, contenders[i]->name))
			ret = table_contest(bench, contenders[i]);
	if (ret == 0 && bench_asked(against, "limit") && table_wants(bench, "limit"))
		ret = table_limit(bench);
	table_side_destroy(&bench->ours);
	return ret;
}

static int measure_size(struct table_bench *bench, uint32_t flows)
{
	int ret;

	bench->flows = flows;
	bench->held = (uint32_t)((uint64_t)flows * 7 / 8);
	if (table_order_create(&bench->order, bench->held) < 0)
		return error_set(&bench->error, -ENOMEM, "%u flows: %s", flows, strerror(ENOMEM));
	if (bench->options->ablate) {
		ret = table_ablate(bench);
	} else {
		ret = contest_all(bench);
		if (ret == 0 && bench_asked(bench->options->against, "rte_hash"))
			ret = table_variants(bench);
		if (ret == 0 && bench_asked(bench->options->against, "rte_hash"))
			ret = table_writers(bench);
	}
	table_order_destroy(&bench->order);
	return ret;
}

static int measure_all(struct table_bench *bench)
{
	const struct bench_options *options = bench->options;
	const uint32_t *flows = options->n_flows == 0 ? sizes : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(sizes) : options->n_flows;
	int ret = hash_secret_init(&bench->secret);

	if (ret < 0)
		return error_set(&bench->error, ret, "no secret for the hash: %s", strerror(-ret));
	ret = dpdk_start(64, &bench->error);
	if (ret < 0)
		return ret;
	CPU_ZERO(&bench->processors);
	(void)sched_getaffinity(0, sizeof(bench->processors), &bench->processors);
	bench_pin();
	bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && i < n; i++)
		ret = measure_size(bench, flows[i]);
	table_progress(NULL, NULL, 0, 0);
	dpdk_stop();
	return ret;
}

/* ---- the chart ---- */

static int begin_plot(struct table_bench *bench, const char *path)
{
	return path == NULL ? 0
			    : plot_create(&bench->plot, path, bench_panels, BENCH_N_PANELS,
				      &bench->error);
}

/* Of what was measured, also when that came to an early end. */
static int end_plot(struct table_bench *bench)
{
	char machine[512];

	if (bench->plot == NULL)
		return 0;
	bench_machine(machine, sizeof(machine));
	return plot_finish(bench->plot, "millrace bench table", machine, &bench->error);
}

int bench_table(const struct bench_options *options)
{
	struct table_bench bench = {.options = options};
	int ret = begin_plot(&bench, options->plot);

	if (ret == 0)
		ret = measure_all(&bench);
	if (ret < 0)
		fprintf(stderr, "millrace: bench table: %s\n", bench.error.text);
	int drawn = end_plot(&bench);

	if (drawn < 0)
		fprintf(stderr, "millrace: bench table: %s\n", bench.error.text);
	return ret < 0 ? ret : drawn;
}
