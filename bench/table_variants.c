/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows for which tables are made anew: on pages of 4 KB; filled to the last flow; and what ours takes. */
#include <errno.h>
#include <string.h>

#include "bench/table.h"
#include "flow/fragments.h"
#include "flow/shard.h"

/* Of a flow, with the table full: everything that belongs to a shard. Promised from here on. */
#define GOAL_BYTES 144
#define GOAL_FLOWS 65536

static int fill_both(struct table_bench *bench, struct table_side *theirs, uint32_t flows)
{
	table_progress("filling", theirs->is->name, bench->flows, 0);
	if (table_fill(&bench->ours, flows) < 0)
		return error_set(&bench->error, -ENOSPC, "our table holds less than it should");
	if (table_fill(theirs, flows) < 0)
		return error_set(&bench->error, -ENOSPC, "%s takes fewer than %u of %u flows",
			theirs->is->name, flows, bench->flows);
	return table_side_right(&bench->ours) && table_side_right(theirs)
		       ? 0
		       : error_set(&bench->error, -EFAULT, "a table does not hold what it should");
}

/* Both sides of that kind, filled; then `rows`. */
static int with_both(struct table_bench *bench, const struct table_config *config,
	void (*rows)(struct table_bench *bench, struct table_side *theirs))
{
	struct table_side theirs = {0};
	int ret = table_side_create(&bench->ours, &table_ours, config, &bench->error);

	if (ret == 0)
		ret = table_side_create(&theirs, &table_rte_hash, config, &bench->error);
	if (ret == 0)
		ret = fill_both(bench, &theirs, config->held);
	if (ret == 0)
		rows(bench, &theirs);
	table_side_destroy(&theirs);
	table_side_destroy(&bench->ours);
	return ret;
}

static void small_page_rows(struct table_bench *bench, struct table_side *theirs)
{
	static const struct table_look_up hit = {.burst = TABLE_BURST};
	static const struct table_look_up update = {.burst = TABLE_BURST, .update = true};

	table_look_up_rows(bench, theirs, "lookup_hit_4k", &hit, NULL);
	table_look_up_rows(bench, theirs, "lookup_update_4k", &update, NULL);
}

static void full_rows(struct table_bench *bench, struct table_side *theirs)
{
	static const struct table_look_up update = {.burst = TABLE_BURST, .update = true};

	table_look_up_rows(bench, theirs, "lookup_update_full", &update, NULL);
}

static void no_reports(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

/* Table, records, wheels and fragments, as the engine takes them, over the flows that they hold. */
static void memory_row(struct table_bench *bench, const char *measure, double share,
	const struct flow_shard *shard, const struct fragments *fragments)
{
	struct bench_row row = table_row(bench, measure, "uniform", "goal", 1);

	if (!table_wants(bench, measure))
		return;
	row.unit = "bytes";
	row.rounds = 1;
	row.theirs[0] = GOAL_BYTES / share;
	row.ours[0] = (double)(flow_shard_memory(shard) + fragments_memory(fragments)) /
		      (bench->flows * share);
	table_print(bench, &row);
}

static int memory_rows(struct table_bench *bench)
{
	const struct flow_shard_config config = {.capacity = bench->flows,
		.secret = &bench->secret,
		.timeouts = flow_timeouts_default(),
		.sink = no_reports};
	struct fragments *fragments;
	struct flow_shard *shard;
	int ret = fragments_create(&fragments, fragments_for(bench->flows), NULL, NULL);

	if (ret == 0) {
		ret = flow_shard_create(&shard, &config);
		if (ret == 0) {
			memory_row(bench, "bytes_per_flow", 0.875, shard, fragments);
			memory_row(bench, "bytes_per_flow_full", 1, shard, fragments);
			flow_shard_destroy(shard);
		}
		fragments_destroy(fragments);
	}
	return ret < 0 ? error_set(&bench->error, ret, "a shard of %u flows: %s", bench->flows,
				 strerror(-ret))
		       : 0;
}

/* All of N flows, and all of them are asked for. */
static int full(struct table_bench *bench)
{
	const struct table_config config = {.flows = bench->flows,
		.held = bench->flows,
		.brim = true,
		.secret = &bench->secret};
	struct table_order order = bench->order;
	int ret = table_order_create(&bench->order, bench->flows);

	if (ret < 0)
		ret = error_set(&bench->error, ret, "%u flows: %s", bench->flows, strerror(-ret));
	else
		ret = with_both(bench, &config, full_rows);
	table_order_destroy(&bench->order);
	bench->order = order;
	return ret;
}

int table_variants(struct table_bench *bench)
{
	const struct table_config config = {.flows = bench->flows,
		.held = bench->held,
		.small_pages = true,
		.secret = &bench->secret};
	int ret = 0;

	if (table_wants(bench, "lookup_hit_4k") || table_wants(bench, "lookup_update_4k"))
		ret = with_both(bench, &config, small_page_rows);
	if (ret == 0 && table_wants(bench, "lookup_update_full"))
		ret = full(bench);
	if (ret == 0 && bench->flows >= GOAL_FLOWS &&
		(table_wants(bench, "bytes_per_flow") || table_wants(bench, "bytes_per_flow_full")))
		ret = memory_rows(bench);
	return ret;
}
