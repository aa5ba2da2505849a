/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `--ablate`: what each trick of our look-up is worth, with record and all: a look-up against the same
 * without that trick, and with all others that do not need it. A ratio is how much slower it is without.
 */
#include <errno.h>
#include <string.h>

#include "bench/table.h"

#define WITHOUT "without"

/* A look-up of each side, on tables that may be the same. */
static void ablate_row(struct table_bench *bench, const char *measure, struct table_side *full,
	const struct table_look_up *full_way, struct table_side *less,
	const struct table_look_up *less_way)
{
	for (unsigned load = 0; load < TABLE_N_LOADS; load++) {
		const char *name = table_load_name((enum table_load)load);
		struct bench_row row = table_row(bench, measure, name, WITHOUT, 0);
		struct table_look_up ours = *full_way, theirs = *less_way;

		if (!table_wants(bench, measure) || !bench_asked(bench->options->loads, name))
			continue;
		ours.load = theirs.load = (enum table_load)load;
		for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
			table_progress(measure, WITHOUT, bench->flows, i);
			ours.round = theirs.round = i;
			row.ours[i] = table_look_ups(full, &ours);
			row.theirs[i] = table_look_ups(less, &theirs);
		}
		table_print(bench, &row);
	}
}

/* Tricks that another way of asking the same table is without. */
static void ways(struct table_bench *bench, const struct table_look_up *full)
{
	static const struct {
		const char *measure;
		unsigned way; /* with it */
		unsigned burst, without;
	} less[] = {
		{"one_by_one", TABLE_OURS_CARRIED, TABLE_BURST, TABLE_OURS_SINGLE},
		{"carried", TABLE_OURS_CARRIED, TABLE_BURST, TABLE_OURS_ALONE},
		{"burst_8", TABLE_OURS_CARRIED, 8, TABLE_OURS_CARRIED},
		{"burst_16", TABLE_OURS_CARRIED, 16, TABLE_OURS_CARRIED},
		{"burst_32", TABLE_OURS_CARRIED, 32, TABLE_OURS_CARRIED},
		/* hashes are fused with what a carried burst does, too; here nothing but them differs */
		{"fused_hash", TABLE_OURS_ALONE, TABLE_BURST, TABLE_OURS_APART},
	};

	for (unsigned i = 0; i < RTE_DIM(less); i++) {
		struct table_look_up with = *full, what = *full;

		with.way = less[i].way;
		what.burst = less[i].burst;
		what.way = less[i].without;
		ablate_row(bench, less[i].measure, &bench->ours, &with, &bench->ours, &what);
	}
}

/* A table of ours of another kind, filled with the same flows. */
static int create_filled(
	struct table_bench *bench, struct table_side *side, const struct table_config *config)
{
	int ret = table_side_create(side, &table_ours, config, &bench->error);

	if (ret == 0 && table_fill(side, bench->held) < 0)
		ret = error_set(&bench->error, -ENOSPC, "our table holds less than it should");
	return ret;
}

static int pages(struct table_bench *bench, const struct table_look_up *full)
{
	const struct table_config config = {.flows = bench->flows,
		.held = bench->held,
		.small_pages = true,
		.secret = &bench->secret};
	struct table_side side = {0};
	int ret = 0;

	if (!table_wants(bench, "pages"))
		return 0;
	ret = create_filled(bench, &side, &config);
	if (ret == 0)
		ablate_row(bench, "pages", &bench->ours, full, &side, full);
	table_side_destroy(&side);
	return ret;
}

/* A filled table by a level, whose secret is the caller's. False where the CPU lacks it. */
static bool create_level(struct table_bench *bench, enum simd_level level,
	struct hash_secret *secret, struct table_side *side, int *ret)
{
	const struct table_config config = {
		.flows = bench->flows, .held = bench->held, .secret = secret};

	*side = (struct table_side){0};
	*secret = bench->secret;
	secret->simd = level;
	*ret = simd_has(level) ? create_filled(bench, side, &config) : 0;
	return *ret == 0 && simd_has(level);
}

/* Each level against the one that is in use: other tags, another hash, another code. */
static int levels(struct table_bench *bench, const struct table_look_up *full)
{
	static const char *const measures[SIMD_N_LEVELS] = {
		"simd_portable", "simd_sse42", "simd_avx2", "simd_avx512"};
	int ret = 0;

	for (unsigned level = 0; ret == 0 && level < SIMD_N_LEVELS; level++) {
		struct hash_secret secret;
		struct table_side side;

		if (!table_wants(bench, measures[level]))
			continue;
		if (create_level(bench, (enum simd_level)level, &secret, &side, &ret))
			ablate_row(bench, measures[level], &bench->ours, full, &side, full);
		table_side_destroy(&side);
	}
	return ret;
}

/* Tags compared at once against one after the other: two levels whose hash is the same. */
static int tags(struct table_bench *bench, const struct table_look_up *full)
{
	struct hash_secret secrets[2];
	struct table_side at_once = {0}, single = {0};
	int ret = 0;

	if (!table_wants(bench, "tags"))
		return 0;
	if (create_level(bench, SIMD_SSE42, &secrets[0], &at_once, &ret) &&
		create_level(bench, SIMD_PORTABLE, &secrets[1], &single, &ret))
		ablate_row(bench, "tags", &at_once, full, &single, full);
	table_side_destroy(&single);
	table_side_destroy(&at_once);
	return ret;
}

int table_ablate(struct table_bench *bench)
{
	const struct table_config config = {
		.flows = bench->flows, .held = bench->held, .secret = &bench->secret};
	const struct table_look_up full = {
		.order = &bench->order, .burst = TABLE_BURST, .update = true};
	int ret = create_filled(bench, &bench->ours, &config);

	if (ret == 0)
		ways(bench, &full);
	if (ret == 0)
		ret = pages(bench, &full);
	if (ret == 0)
		ret = tags(bench, &full);
	if (ret == 0)
		ret = levels(bench, &full);
	table_side_destroy(&bench->ours);
	return ret;
}
