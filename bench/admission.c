/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * millrace bench admission: which share of the packets comes from flows that the NIC has, beside one who knows the future
 * and one who takes whoever comes first. The load runs in real time, on one thread; the NIC's installer is another. All
 * sizes of tables see the same packets, if the machine is fast enough for that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dpdk.h"
#include "base/monotonic.h"
#include "bench/admission_cost.h"
#include "bench/admission_engine.h"
#include "bench/admission_load.h"
#include "bench/admission_rivals.h"

#define MOST_TABLES 16
#define RULE_US 22
/* Rules a second that the NIC can do. */
#define RULES_A_S (1e6 / RULE_US)
#define SECOND_US UINT64_C(1000000)
/* The load goes on until it was late for so long in all; the figures of a machine that is too slow are none. */
#define MOST_LATE_US (SECOND_US / 2)
#define SEED 7
#define MEGABYTES 1024

static const uint32_t usual_entries[] = {512, 7168, 16384};

/* The goals of first come, by the usual sizes. */
static const double first_come_goals[] = {20, 5, 3};

/* One size of the NIC's table. */
struct table {
	uint32_t entries;
	struct admission_engine engine;
	struct first_come first_come;
	uint64_t rules_then, most_rules; /* of one second */
	uint64_t ours, first, clairvoyant;
};

struct contest {
	const struct bench_options *options;
	const char *name;
	const char *capture; /* NULL: a load of ours */
	struct admission_load *load;
	struct clairvoyant clairvoyant;
	unsigned n_tables;
	struct table table[MOST_TABLES];
	bool *known; /* by flow: it has had a packet */
	uint32_t n_flows;
	unsigned warm_s, measured_s;
	uint64_t begin_us;
	uint64_t packets; /* that are measured */
	uint64_t late_us; /* the longest that a millisecond of the load came late */
};

static void say(const char *line)
{
	fprintf(stderr, "millrace: bench admission: %s\n", line);
}

static bool is_measured(const struct contest *contest, uint64_t us)
{
	return us >= contest->warm_s * SECOND_US;
}

/* A burst, as a worker would find it: what has come since the last one, at most 32 packets. */
static void burst(struct contest *contest, const struct admission_packet *packets,
	const bool *first, unsigned n)
{
	bool measured = is_measured(contest, packets[0].us);
	uint32_t flows[ADMISSION_BURST];

	for (unsigned i = 0; i < n; i++) {
		flows[i] = packets[i].flow;
		clairvoyant_packet(&contest->clairvoyant, flows[i]);
	}
	for (unsigned t = 0; t < contest->n_tables; t++) {
		struct table *table = &contest->table[t];
		unsigned ours = admission_engine_burst(&table->engine, flows, n), theirs = 0;

		for (unsigned i = 0; i < n; i++)
			theirs += first_come_packet(
				&table->first_come, flows[i], first[i], packets[i].us);
		if (measured) {
			table->ours += ours;
			table->first += theirs;
		}
	}
	contest->packets += measured ? n : 0;
}

/* The packets of a millisecond, each burst when it is due; engines turn meanwhile. */
static void play(struct contest *contest, const struct admission_packet *packets, uint32_t n)
{
	bool first[ADMISSION_BURST];

	for (uint32_t at = 0; at < n;) {
		uint64_t now_us = monotonic_us() - contest->begin_us;
		unsigned m = 0;

		while (at + m < n && m < ADMISSION_BURST && packets[at + m].us <= now_us) {
			uint32_t flow = packets[at + m].flow;

			first[m++] = !contest->known[flow];
			contest->known[flow] = true;
		}
		if (m > 0)
			burst(contest, &packets[at], first, m);
		for (unsigned t = 0; m == 0 && t < contest->n_tables; t++)
			admission_engine_turn(&contest->table[t].engine);
		at += m;
		if (m > 0 && now_us > packets[at - 1].us)
			contest->late_us = RTE_MAX(contest->late_us, now_us - packets[at - 1].us);
	}
}

static void end_second(struct contest *contest, unsigned second)
{
	uint32_t entries[MOST_TABLES];
	uint64_t held[MOST_TABLES];

	for (unsigned t = 0; t < contest->n_tables; t++)
		entries[t] = contest->table[t].entries;
	clairvoyant_end(&contest->clairvoyant, entries, contest->n_tables, held);
	for (unsigned t = 0; t < contest->n_tables; t++) {
		struct table *table = &contest->table[t];
		uint64_t rules = admission_engine_rules(&table->engine);

		table->most_rules = RTE_MAX(table->most_rules, rules - table->rules_then);
		table->rules_then = rules;
		if (second >= contest->warm_s)
			table->clairvoyant += held[t];
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s: %u of %u s ", contest->name, second + 1,
			contest->warm_s + contest->measured_s);
}

static int play_all(struct contest *contest)
{
	const unsigned seconds = contest->warm_s + contest->measured_s;
	const struct admission_packet *packets;
	uint32_t n;

	contest->begin_us = monotonic_us();
	for (unsigned ms = 0; ms < seconds * 1000; ms++) {
		packets = admission_load_next(contest->load, &n);
		if (packets == NULL)
			return -ENOMEM;
		play(contest, packets, n);
		if (ms % 1000 == 999)
			end_second(contest, ms / 1000);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r                              \r", stderr);
	return 0;
}

static void print_share(const struct contest *contest, const struct table *table,
	const char *against, uint64_t theirs, double goal)
{
	const double all = (double)contest->packets / 100;
	struct bench_row row = {.bench = "admission",
		.measure = "share",
		.load = contest->name,
		.flows = admission_load_begun(contest->load),
		.entries = table->entries,
		.unit = "%",
		.against = against,
		.goal = goal,
		.rate = true,
		.rounds = 1,
		.ours = {(double)table->ours / all},
		.theirs = {(double)theirs / all}};

	bench_print(&row, contest->options->json);
}

static double goal_of(const struct table *table)
{
	for (unsigned i = 0; i < RTE_DIM(usual_entries); i++)
		if (usual_entries[i] == table->entries)
			return first_come_goals[i];
	return 0;
}

static void print_rows(const struct contest *contest, const struct table *table)
{
	const bool ours = contest->capture == NULL;
	const bool churns = ours && strncmp(contest->name, "churn", 5) == 0;
	const bool zipf = ours && strncmp(contest->name, "zipf", 4) == 0;
	struct bench_row rules = {.bench = "admission",
		.measure = "rules",
		.load = contest->name,
		.flows = admission_load_begun(contest->load),
		.entries = table->entries,
		.unit = "rules/s",
		.against = "nic",
		.goal = ours ? 1 : 0,
		.rounds = 1,
		.ours = {(double)table->most_rules},
		.theirs = {RULES_A_S}};

	print_share(contest, table, "clairvoyant", table->clairvoyant,
		churns ? 0.8 : (zipf ? 0.95 : 0));
	print_share(contest, table, "first_come", table->first, churns ? goal_of(table) : 0);
	bench_print(&rules, contest->options->json);
}

static int open_tables(struct contest *contest)
{
	struct error error;
	int ret = 0;

	for (unsigned t = 0; ret == 0 && t < contest->n_tables; t++) {
		struct table *table = &contest->table[t];

		ret = admission_engine_open(
			&table->engine, t, contest->n_flows, table->entries, &error);
		if (ret < 0)
			say(error.text);
		else
			ret = first_come_init(
				&table->first_come, contest->n_flows, table->entries, RULE_US);
		table->rules_then = ret < 0 ? 0 : admission_engine_rules(&table->engine);
	}
	return ret;
}

static void close_tables(struct contest *contest)
{
	for (unsigned t = 0; t < contest->n_tables; t++) {
		admission_engine_close(&contest->table[t].engine);
		first_come_fini(&contest->table[t].first_come);
	}
}

/* Of a capture all that it has is measured, or so many seconds. */
static int open_load(struct contest *contest)
{
	const unsigned asked = contest->options->seconds;
	struct error error;
	int ret;

	if (contest->capture == NULL)
		return admission_load_create(&contest->load, contest->name, SEED);
	ret = admission_load_open(&contest->load, contest->capture, &error);
	if (ret < 0) {
		say(error.text);
		return ret == -ENOMEM ? -EIO : ret;
	}
	contest->warm_s = 0;
	contest->measured_s = admission_load_seconds(contest->load);
	if (asked > 0)
		contest->measured_s = RTE_MIN(contest->measured_s, asked);
	return 0;
}

static int run(struct contest *contest)
{
	int ret = open_load(contest);
	char line[128];

	if (ret < 0)
		return ret;
	contest->n_flows =
		admission_load_flows(contest->load, contest->warm_s + contest->measured_s);
	contest->known = calloc(contest->n_flows, sizeof(contest->known[0]));
	ret = contest->known == NULL ? -ENOMEM
				     : clairvoyant_init(&contest->clairvoyant, contest->n_flows);
	if (ret == 0)
		ret = open_tables(contest);
	if (ret == 0)
		ret = play_all(contest);
	if (ret == 0 && contest->packets == 0) {
		snprintf(line, sizeof(line), "%.100s: no packet of a flow came", contest->name);
		say(line);
		ret = -EIO;
	}
	for (unsigned t = 0; ret == 0 && t < contest->n_tables; t++)
		print_rows(contest, &contest->table[t]);
	if (ret == 0 && contest->late_us > MOST_LATE_US) {
		snprintf(line, sizeof(line),
			"%s: packets came up to %u ms late: this machine is too slow, or too busy",
			contest->name, (unsigned)(contest->late_us / 1000));
		say(line);
	}
	close_tables(contest);
	clairvoyant_fini(&contest->clairvoyant);
	free(contest->known);
	admission_load_destroy(contest->load);
	return ret;
}

/* Tables together as far as one thread is fast enough for all of them: five million packets a second are for one. */
static int run_load(const struct bench_options *options, const char *name, const char *capture)
{
	const bool usual = options->n_entries == 0;
	const bool zipf = capture == NULL && strncmp(name, "zipf", 4) == 0;
	const uint32_t *entries = usual ? usual_entries : options->entries;
	const unsigned n = usual ? RTE_DIM(usual_entries) : options->n_entries;
	const unsigned each = zipf ? 1 : n;
	int ret = 0;

	for (unsigned at = 0; ret == 0 && at < n; at += each) {
		struct contest contest = {
			.options = options,
			.name = name,
			.capture = capture,
			.warm_s = 20,
			.measured_s = zipf ? 20 : 60,
			.n_tables = each,
		};

		if (options->seconds > 0) {
			contest.measured_s = options->seconds;
			contest.warm_s = RTE_MIN(contest.warm_s, options->seconds);
		}
		for (unsigned t = 0; t < each; t++)
			contest.table[t].entries = entries[at + t];
		ret = run(&contest);
	}
	return ret;
}

int bench_admission(const struct bench_options *options)
{
	struct error error;
	int ret;

	ret = dpdk_start(MEGABYTES, &error);
	if (ret < 0) {
		say(error.text);
		return ret;
	}
	bench_print_head(options->json);
	if (options->capture != NULL) {
		const char *slash = strrchr(options->capture, '/');

		ret = run_load(
			options, slash == NULL ? options->capture : slash + 1, options->capture);
	} else if (bench_asked(options->measures, "share") ||
		   bench_asked(options->measures, "rules"))
		for (unsigned i = 0; ret == 0 && admission_loads[i] != NULL; i++)
			if (bench_asked(options->loads, admission_loads[i]))
				ret = run_load(options, admission_loads[i], NULL);
	if (ret == 0 && options->capture == NULL && bench_asked(options->measures, "cost")) {
		ret = admission_cost(options, &error);
		if (ret < 0)
			say(error.text);
	}
	if (ret == -ENOMEM)
		say("no memory");
	dpdk_stop();
	return ret;
}
