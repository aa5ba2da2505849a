/* SPDX-License-Identifier: BSD-3-Clause */
/* Our table against one contender: rounds in turn, and the better of the contender's ways counts. */
#include <errno.h>

#include "bench/table.h"

/* Of changes a round has this many at least, so that small tables are filled many times. */
#define LEAST_CHANGES (UINT32_C(64) << 10)

/* Churn is measured with the table at 0.79 of what it takes. */
#define CHURN_PERCENT 79

/* Changes in order take long, and above this are made only where measures are named. */
#define IN_ORDER_FLOWS 1000000

/* What is asked of the ratio against rte_hash at its best. */
struct goal {
	uint32_t flows; /* up to here */
	double ratio;
};

static double goal_of(const struct goal *goals, uint32_t flows)
{
	while (flows > goals->flows)
		goals++;
	return goals->ratio;
}

double table_update_goal(uint32_t flows)
{
	static const struct goal goals[] = {
		{65536, 2.5}, {1000000, 2.3}, {8000000, 1.8}, {UINT32_MAX, 1.7}};

	return goal_of(goals, flows);
}

static double miss_goal(uint32_t flows)
{
	static const struct goal goals[] = {{1000000, 1.5}, {8000000, 1.2}, {UINT32_MAX, 0}};

	return goal_of(goals, flows);
}

static double insert_goal(uint32_t flows)
{
	static const struct goal goals[] = {{16383, 3.5}, {UINT32_MAX, 4}};

	return goal_of(goals, flows);
}

static double churn_goal(uint32_t flows)
{
	static const struct goal goals[] = {{65536, 2.6}, {1000000, 2}, {UINT32_MAX, 1.6}};

	return goal_of(goals, flows);
}

/* The two sides of a row, and whether it is the one that goals are about. */
struct contest {
	struct table_bench *bench;
	struct table_side theirs;
	bool best;
};

static double goal_for(const struct contest *contest, double (*goal)(uint32_t flows))
{
	return contest->best ? goal(contest->bench->flows) : 0;
}

/* ---- look-ups ---- */

void table_take_best(struct bench_row *row, double rounds[][BENCH_ROUNDS], unsigned ways)
{
	unsigned best = 0;

	for (unsigned way = 1; way < ways; way++)
		if (bench_lower_quartile(rounds[way], row->rounds) <
			bench_lower_quartile(rounds[best], row->rounds))
			best = way;
	for (unsigned i = 0; i < row->rounds; i++)
		row->theirs[i] = rounds[best][i];
}

void table_look_up_rows(struct table_bench *bench, struct table_side *theirs, const char *measure,
	const struct table_look_up *wanted, double (*goal)(uint32_t flows))
{
	unsigned ways = wanted->update ? theirs->is->update_ways : theirs->is->look_up_ways;

	for (unsigned load = 0; load < TABLE_N_LOADS; load++) {
		const char *name = table_load_name((enum table_load)load);
		struct bench_row row = table_row(bench, measure, name, theirs->is->name,
			goal == NULL || (load == TABLE_ZIPF && !wanted->update)
				? 0
				: goal(bench->flows));
		struct table_look_up what = *wanted;
		double rounds[TABLE_WAYS][BENCH_ROUNDS];

		if (!table_wants(bench, measure) || !bench_asked(bench->options->loads, name))
			continue;
		what.order = &bench->order;
		what.load = (enum table_load)load;
		for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
			table_progress(measure, theirs->is->name, bench->flows, i);
			what.round = i;
			what.way = wanted->way;
			row.ours[i] = table_look_ups(&bench->ours, &what);
			for (what.way = 0; what.way < ways; what.way++)
				rounds[what.way][i] = table_look_ups(theirs, &what);
		}
		table_take_best(&row, rounds, ways);
		table_print(bench, &row);
	}
}

static void look_ups(struct contest *contest)
{
	static const struct table_look_up hit = {.burst = TABLE_BURST};
	static const struct table_look_up update = {.burst = TABLE_BURST, .update = true};
	static const struct table_look_up hit_alone = {
		.burst = TABLE_BURST, .way = TABLE_OURS_ALONE};
	static const struct table_look_up update_alone = {
		.burst = TABLE_BURST, .way = TABLE_OURS_ALONE, .update = true};
	static const struct table_look_up update_engine = {
		.burst = TABLE_BURST, .way = TABLE_OURS_ENGINE, .update = true};
	static const struct table_look_up update_32 = {.burst = 32, .update = true};
	static const struct table_look_up miss = {.burst = TABLE_BURST, .miss = true};

	struct table_bench *bench = contest->bench;
	struct table_side *theirs = &contest->theirs;

	table_look_up_rows(bench, theirs, "lookup_hit", &hit, NULL);
	table_look_up_rows(
		bench, theirs, "lookup_update", &update, contest->best ? table_update_goal : NULL);
	if (!contest->best)
		return;
	table_look_up_rows(bench, theirs, "lookup_hit_alone", &hit_alone, NULL);
	table_look_up_rows(bench, theirs, "lookup_update_alone", &update_alone, table_update_goal);
	table_look_up_rows(bench, theirs, "lookup_update_engine", &update_engine, NULL);
	table_look_up_rows(bench, theirs, "lookup_update_burst32", &update_32, NULL);
	table_look_up_rows(bench, theirs, "lookup_miss", &miss, miss_goal);
}

/* ---- changes ---- */

/* A round: the table emptied and filled again, often enough; cycles a flow. False: it found no room. */
static bool change(
	struct table_side *side, const uint32_t *ending, bool known, double *remove, double *insert)
{
	uint32_t live = side->live;
	unsigned times = LEAST_CHANGES / live + 1;

	*insert = *remove = 0;
	for (unsigned i = 0; i < times; i++) {
		*remove += table_empty(side, ending, known) / times;
		double cycles = table_fill(side, live);

		if (cycles < 0)
			return false;
		*insert += cycles / times;
	}
	return true;
}

/* Rows by the same rounds: flows that begin, that end by key, and, if there is a name, by position. */
static int change_rows(struct contest *contest, const uint32_t *ending, double goal,
	const char *insert, const char *remove, const char *known)
{
	struct table_bench *bench = contest->bench;
	const char *against = contest->theirs.is->name;
	struct bench_row inserts = table_row(bench, insert, "uniform", against, goal);
	struct bench_row removes = table_row(bench, remove, "uniform", against, 0);
	struct bench_row knowns = table_row(bench, known, "uniform", against, 0);
	bool wants_known = known != NULL && table_wants(bench, known);

	if (!table_wants(bench, insert) && !table_wants(bench, remove) && !wants_known)
		return 0;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		double again;

		table_progress(remove, against, bench->flows, i);
		if (!change(&bench->ours, ending, false, &removes.ours[i], &inserts.ours[i]) ||
			(wants_known &&
				!change(&bench->ours, ending, true, &knowns.ours[i], &again)) ||
			!change(&contest->theirs, ending, false, &removes.theirs[i],
				&inserts.theirs[i]))
			return error_set(&bench->error, -ENOSPC,
				"a table that had room has none when it is filled again");
		knowns.theirs[i] = removes.theirs[i];
	}
	if (table_wants(bench, insert))
		table_print(bench, &inserts);
	if (table_wants(bench, remove))
		table_print(bench, &removes);
	if (wants_known)
		table_print(bench, &knowns);
	return 0;
}

static int changes(struct contest *contest)
{
	const struct table_bench *bench = contest->bench;
	bool in_order = bench->flows <= IN_ORDER_FLOWS || bench->options->measures != NULL;
	int ret = 0;

	/* first, since free places once scattered remain so */
	if (contest->best && in_order)
		ret = change_rows(contest, NULL, 0, "insert_in_order", "delete_in_order", NULL);
	if (ret == 0)
		ret = change_rows(contest, bench->order.ending, goal_for(contest, insert_goal),
			"insert", "delete", contest->best ? "delete_known" : NULL);
	return ret;
}

static int churn(struct contest *contest)
{
	struct table_bench *bench = contest->bench;
	const char *against = contest->theirs.is->name;
	uint32_t live = (uint32_t)((uint64_t)bench->flows * CHURN_PERCENT / 100);
	struct bench_row row =
		table_row(bench, "churn", "uniform", against, goal_for(contest, churn_goal));
	struct bench_row by_key = table_row(bench, "churn_by_key", "uniform", against, 0);
	unsigned ways = contest->theirs.is->churn_ways;
	double rounds[TABLE_WAYS][BENCH_ROUNDS];

	if (!contest->best || !(table_wants(bench, "churn") || table_wants(bench, "churn_by_key")))
		return 0;
	table_shrink(&bench->ours, live);
	table_shrink(&contest->theirs, live);
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		table_progress("churn", against, bench->flows, i);
		row.ours[i] = table_churns(&bench->ours, TABLE_OURS_BY_POSITION, i);
		by_key.ours[i] = table_churns(&bench->ours, TABLE_OURS_BY_KEY, i);
		for (unsigned way = 0; way < ways; way++)
			rounds[way][i] = table_churns(&contest->theirs, way, i);
	}
	if (!table_side_right(&bench->ours) || !table_side_right(&contest->theirs))
		return error_set(&bench->error, -EFAULT, "a table does not hold what it should");
	table_take_best(&row, rounds, ways);
	table_take_best(&by_key, rounds, ways);
	if (table_wants(bench, row.measure))
		table_print(bench, &row);
	if (table_wants(bench, by_key.measure))
		table_print(bench, &by_key);
	return table_fill(&bench->ours, bench->held) < 0
		       ? error_set(&bench->error, -ENOSPC, "our table holds less than it should")
		       : 0;
}

/* Index and records of both, over the flows that they hold. */
static void memory(struct contest *contest)
{
	struct table_bench *bench = contest->bench;
	struct bench_row row =
		table_row(bench, "bytes_per_flow", "uniform", contest->theirs.is->name, 0);

	if (!table_wants(bench, row.measure))
		return;
	row.unit = "bytes";
	row.rounds = 1;
	row.ours[0] = (double)bench->ours.is->memory(bench->ours.side) / bench->held;
	row.theirs[0] = (double)contest->theirs.is->memory(contest->theirs.side) / bench->held;
	table_print(bench, &row);
}

int table_contest(struct table_bench *bench, const struct table_contender *contender)
{
	const struct table_config config = {
		.flows = bench->flows, .held = bench->held, .secret = &bench->secret};
	struct contest contest = {.bench = bench, .best = contender == &table_rte_hash};
	int ret = table_side_create(&contest.theirs, contender, &config, &bench->error);

	if (ret < 0)
		return ret;
	table_progress("filling", contender->name, bench->flows, 0);
	contest.theirs.first = bench->ours.first;
	if (table_fill(&contest.theirs, bench->held) < 0)
		ret = error_set(&bench->error, -ENOSPC, "%s takes fewer than %u of %u flows",
			contender->name, bench->held, bench->flows);
	else if (!table_side_right(&bench->ours) || !table_side_right(&contest.theirs))
		ret = error_set(&bench->error, -EFAULT, "a table does not hold what it should");
	if (ret == 0) {
		look_ups(&contest);
		ret = changes(&contest);
	}
	if (ret == 0)
		ret = churn(&contest);
	if (ret == 0)
		memory(&contest);
	table_side_destroy(&contest.theirs);
	return ret;
}
