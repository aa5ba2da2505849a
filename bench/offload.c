/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * millrace bench offload: the founding experiment, anew. The same load in software and with flows given to the NIC, a
 * simulated ConnectX-5, in turns: what a packet costs at full load, how busy a worker is when packets come at half of what
 * software could carry, which share of them the NIC named, how long a flow's first packet takes, and how long it is
 * until the NIC has the flow.
 *
 * Everything is one thread's but the NIC's installers: what the simulated NIC does costs the worker's time, and rows
 * that end with _above are without it.
 */
#include <stdio.h>
#include <string.h>

#include "base/dpdk.h"
#include "bench/bars.h"
#include "bench/offload.h"

#define MEGABYTES 2048
#define BUSY_US 300000
#define WARM_US 50000
#define NEW_FLOWS_A_S 1000
/* Full load of a round. */
#define PACKETS (1u << 20)

/* Of IMIX: busy % falls by a third at least. */
#define GOAL_BUSY 1.5
/* ... and by nine tenths where the NIC forwards. */
#define GOAL_BUSY_WHOLE 10
/* The load tcp64: packets a second with marks over those of software, the share in the NIC, and UDP's cycles over its own. */
#define GOAL_MARK_TCP 1.5
#define GOAL_SHARE_TCP 0.99
#define GOAL_UDP (1 / 1.3)
#define GOAL_FIRST_US 10
#define GOAL_RULE_US 1000

static const char *const mode_names[N_MODES] = {
	[IN_SOFTWARE] = "software", [BY_MARK] = "mark", [WHOLE] = "full"};

/* What is measured of a load. */
struct experiment {
	const struct bench_options *options;
	struct offload_load load;
	struct offload_load udp; /* zeroed unless the load is tcp64 */
	struct wire_engine engine[N_MODES];
	struct wire_engine udp_engine;
	uint64_t pps; /* of each port, at the fixed rate */
	double cycles[N_MODES][BENCH_ROUNDS];
	double busy[N_MODES][BENCH_ROUNDS];  /* % */
	double floor[N_MODES][BENCH_ROUNDS]; /* %, of receiving and sending alone */
	double cycles_floor[N_MODES][BENCH_ROUNDS];
	double cycles_udp[BENCH_ROUNDS]; /* of tcp64: of as many UDP packets in software */
	double share[N_MODES];		 /* % */
	/* packets' by mode, and rules' in that of marks */
	struct offload_times times[N_MODES];
};

/* Of the rounds what a row tells, so that rows, table and chart have one figure for one thing. */
static double told(const double *rounds)
{
	double sorted[BENCH_ROUNDS];

	memcpy(sorted, rounds, sizeof(sorted));
	return bench_lower_quartile(sorted, BENCH_ROUNDS);
}

static int open_some(struct experiment *experiment, uint64_t pps, unsigned first, unsigned end)
{
	int ret = 0;

	for (unsigned mode = first; ret == 0 && mode < end; mode++) {
		const struct offload_setup setup = {
			.mode = (enum offload_mode)mode,
			.number = mode,
			.threshold = OFFLOAD_THRESHOLD,
			.pps = pps,
		};

		ret = offload_open(&experiment->engine[mode], &experiment->load, &setup);
	}
	return ret;
}

static bool is_tcp(const struct experiment *experiment)
{
	return experiment->udp.name != NULL;
}

static int open_udp(struct experiment *experiment)
{
	const struct offload_setup setup = {.mode = IN_SOFTWARE, .number = N_MODES};

	return is_tcp(experiment) ? offload_open(&experiment->udp_engine, &experiment->udp, &setup)
				  : 0;
}

static void close_all(struct experiment *experiment)
{
	offload_close(&experiment->udp_engine);
	for (unsigned mode = 0; mode < N_MODES; mode++)
		offload_close(&experiment->engine[mode]);
}

static void print_stages(const struct experiment *experiment)
{
	char what[64];

	for (unsigned mode = 0; mode < WHOLE; mode++) {
		snprintf(what, sizeof(what), ", %s, %s", experiment->load.name, mode_names[mode]);
		wire_print_stages(&experiment->engine[mode].plane->lcores[0], what);
	}
	if (is_tcp(experiment))
		wire_print_stages(&experiment->udp_engine.plane->lcores[0], ", udp64, software");
}

/* Cycles a packet at full load. */
static double cycles_of(const struct wire_engine *engine)
{
	struct lcore *lcore = &engine->plane->lcores[0];
	uint64_t done;

	wire_turns(lcore, PACKETS / WIRE_WARM_SHARE, &done);
	const uint64_t cycles = wire_turns(lcore, PACKETS, &done);

	return (double)cycles / (double)done;
}

static double floor_of(const struct wire_engine *engine)
{
	uint64_t done;

	wire_pass(engine, PACKETS / WIRE_WARM_SHARE, &done);
	const uint64_t cycles = wire_pass(engine, PACKETS, &done);

	return (double)cycles / (double)done;
}

static int measure_full_load(struct experiment *experiment)
{
	/* of what the NIC carries alone a worker has no packets */
	const unsigned n_modes = WHOLE;
	int ret = open_some(experiment, 0, 0, n_modes);

	if (ret == 0)
		ret = open_udp(experiment);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		for (unsigned mode = 0; mode < n_modes; mode++) {
			experiment->cycles_floor[mode][i] = floor_of(&experiment->engine[mode]);
			experiment->cycles[mode][i] = cycles_of(&experiment->engine[mode]);
		}
		if (is_tcp(experiment))
			experiment->cycles_udp[i] = cycles_of(&experiment->udp_engine);
	}
	if (ret == 0 && experiment->options->stages)
		print_stages(experiment);
	close_all(experiment);
	return ret;
}

/* The modes from `first` to before `end`, in turns. */
static int measure_busy(struct experiment *experiment, unsigned first, unsigned end)
{
	struct offload_share before[N_MODES] = {{0}};
	int ret = open_some(experiment, experiment->pps, first, end);

	for (unsigned mode = first; ret == 0 && mode < end; mode++)
		offload_share(&experiment->engine[mode], &before[mode]);
	for (unsigned i = 0; ret == 0 && i < BENCH_ROUNDS; i++) {
		for (unsigned mode = first; mode < end; mode++) {
			const struct wire_engine *engine = &experiment->engine[mode];

			offload_busy(engine, WARM_US, true);
			experiment->busy[mode][i] = 100 * offload_busy(engine, BUSY_US, true);
			if (mode == WHOLE)
				continue;
			offload_floor(engine, WARM_US, true, 0);
			experiment->floor[mode][i] = 100 * offload_floor(engine, BUSY_US, true, 0);
		}
	}
	for (unsigned mode = first; ret == 0 && mode < end; mode++)
		experiment->share[mode] =
			100 * offload_share(&experiment->engine[mode], &before[mode]);
	close_all(experiment);
	return ret;
}

/* Who is not turned for a second does not read its counters, and loses the flows that the NIC has alone: it has no turns. */
static int measure_fixed_rate(struct experiment *experiment)
{
	int ret = measure_busy(experiment, IN_SOFTWARE, WHOLE);

	return ret < 0 ? ret : measure_busy(experiment, WHOLE, N_MODES);
}

/* By an engine of its own, from its first packet on. */
static int watch(struct experiment *experiment, const struct offload_setup *setup)
{
	struct wire_engine *engine = &experiment->engine[setup->mode];
	int ret = offload_open(engine, &experiment->load, setup);

	offload_close(engine);
	return ret;
}

static int measure_times(struct experiment *experiment)
{
	struct offload_times *times = experiment->times;
	struct offload_times rules = {0};
	int ret = 0;

	for (unsigned mode = 0; ret == 0 && mode < N_MODES; mode++) {
		const struct offload_setup setup = {
			.mode = (enum offload_mode)mode,
			.threshold = OFFLOAD_THRESHOLD,
			.pps = experiment->pps,
			.times = &times[mode],
			.packets = true,
			/* who is not turned for a second loses what the NIC has alone */
			.cycles = mode == WHOLE ? 0
						: told(experiment->cycles[mode]) -
							  told(experiment->cycles_floor[mode]),
		};

		ret = watch(experiment, &setup);
	}
	/* flows come one after the other, and all are wanted */
	const struct offload_setup new_flows = {
		.mode = BY_MARK, .pps = NEW_FLOWS_A_S, .times = &rules};

	if (ret == 0)
		ret = watch(experiment, &new_flows);
	times[BY_MARK].rule = rules.rule;
	times[BY_MARK].in_hw = rules.in_hw;
	return ret;
}

static void print_one(const struct experiment *experiment, const char *measure, const char *unit,
	double ours, const char *against, double theirs, double goal, bool rate)
{
	struct bench_row row = {.bench = "offload",
		.measure = measure,
		.load = experiment->load.name,
		.flows = experiment->load.flows,
		.unit = unit,
		.against = against,
		.goal = goal,
		.rate = rate,
		.rounds = 1,
		.ours = {ours},
		.theirs = {theirs}};

	bench_print(&row, experiment->options->json);
}

static struct bench_row row_of(const struct experiment *experiment, const char *measure,
	const char *unit, const double *ours, const double *theirs)
{
	struct bench_row row = {.bench = "offload",
		.measure = measure,
		.load = experiment->load.name,
		.flows = experiment->load.flows,
		.unit = unit,
		.against = mode_names[IN_SOFTWARE],
		.rounds = BENCH_ROUNDS};

	memcpy(row.ours, ours, sizeof(row.ours));
	memcpy(row.theirs, theirs, sizeof(row.theirs));
	return row;
}

static void print_rounds(const struct experiment *experiment, const char *measure, const char *unit,
	const double *ours, const double *theirs, double goal)
{
	struct bench_row row = row_of(experiment, measure, unit, ours, theirs);

	row.goal = goal;
	bench_print(&row, experiment->options->json);
}

static double mpps_of(double cycles)
{
	return (double)rte_get_tsc_hz() / 1e6 / cycles;
}

/* What a worker carries at full load. */
static void print_mpps(const struct experiment *experiment)
{
	double mpps[WHOLE][BENCH_ROUNDS];
	struct bench_row row;

	for (unsigned mode = 0; mode < WHOLE; mode++)
		for (unsigned i = 0; i < BENCH_ROUNDS; i++)
			mpps[mode][i] = mpps_of(experiment->cycles[mode][i]);
	row = row_of(experiment, "mpps_mark", "Mpps", mpps[BY_MARK], mpps[IN_SOFTWARE]);
	row.rate = true;
	row.goal = is_tcp(experiment) ? GOAL_MARK_TCP : 0;
	bench_print(&row, experiment->options->json);
}

static double us_at(const struct histogram *histogram, double share)
{
	return (double)histogram_at(histogram, share) / 1000;
}

static const struct {
	const char *name;
	double share;
} percentiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};

/* `held`: its p99 is held to the goal, which the others are only shown beside. */
static void print_time(const struct experiment *experiment, const char *measure,
	const struct histogram *histogram, double goal_us, bool held)
{
	char name[32];

	for (unsigned i = 0; histogram->times > 0 && i < RTE_DIM(percentiles); i++) {
		snprintf(name, sizeof(name), "%s_%s", measure, percentiles[i].name);
		print_one(experiment, name, "us", us_at(histogram, percentiles[i].share), "goal",
			goal_us, held && percentiles[i].share == 0.99, false);
	}
}

static void print_times(const struct experiment *experiment)
{
	static const char *const names[N_MODES][2] = {
		[IN_SOFTWARE] = {"first_packet", "bare_packet"},
		[BY_MARK] = {"first_mark", "bare_mark"},
		[WHOLE] = {"first_full", NULL},
	};
	const struct offload_times *times = experiment->times;

	for (unsigned mode = 0; mode < N_MODES; mode++) {
		print_time(experiment, names[mode][0], &times[mode].first, GOAL_FIRST_US, true);
		print_time(experiment, names[mode][1], &times[mode].bare, GOAL_FIRST_US, false);
	}
	print_time(experiment, "rule", &times[BY_MARK].rule, GOAL_RULE_US, true);
	print_time(experiment, "in_hw", &times[BY_MARK].in_hw, GOAL_RULE_US, false);
}

static void print_cycles(const struct experiment *experiment)
{
	double above[WHOLE][BENCH_ROUNDS];

	for (unsigned mode = 0; mode < WHOLE; mode++)
		for (unsigned i = 0; i < BENCH_ROUNDS; i++)
			above[mode][i] =
				experiment->cycles[mode][i] - experiment->cycles_floor[mode][i];
	print_rounds(experiment, "cycles_mark", "cycles", experiment->cycles[BY_MARK],
		experiment->cycles[IN_SOFTWARE], 0);
	print_rounds(
		experiment, "cycles_mark_above", "cycles", above[BY_MARK], above[IN_SOFTWARE], 0);
	print_mpps(experiment);
	if (!is_tcp(experiment))
		return;
	struct bench_row row = row_of(experiment, "cycles_software", "cycles",
		experiment->cycles[IN_SOFTWARE], experiment->cycles_udp);

	row.against = experiment->udp.name;
	row.goal = GOAL_UDP;
	bench_print(&row, experiment->options->json);
}

static void print_busy(const struct experiment *experiment)
{
	const bool imix = strcmp(experiment->load.name, "imix") == 0;
	const double goals[N_MODES] = {[BY_MARK] = GOAL_BUSY, [WHOLE] = GOAL_BUSY_WHOLE};
	double above[N_MODES][BENCH_ROUNDS];
	char name[32];

	for (unsigned mode = 0; mode < N_MODES; mode++)
		for (unsigned i = 0; i < BENCH_ROUNDS; i++)
			above[mode][i] = experiment->busy[mode][i] - experiment->floor[mode][i];
	for (unsigned mode = BY_MARK; mode < N_MODES; mode++) {
		snprintf(name, sizeof(name), "busy_%s", mode_names[mode]);
		print_rounds(experiment, name, "%", experiment->busy[mode],
			experiment->busy[IN_SOFTWARE], imix ? goals[mode] : 0);
		if (mode != WHOLE)
			print_rounds(experiment, "busy_mark_above", "%", above[mode],
				above[IN_SOFTWARE], imix ? goals[mode] : 0);
		snprintf(name, sizeof(name), "share_%s", mode_names[mode]);
		print_one(experiment, name, "%", experiment->share[mode], "all", 100,
			mode == BY_MARK && is_tcp(experiment) ? GOAL_SHARE_TCP : 0, true);
	}
}

static void print_mode(const struct experiment *experiment, enum offload_mode mode)
{
	const struct histogram *first = &experiment->times[mode].first;
	const double cycles = told(experiment->cycles[mode]);
	char full_load[32] = "     -       -", times[32] = "      -       -";

	/* what the NIC carries alone is not limited by a worker */
	if (mode != WHOLE)
		snprintf(full_load, sizeof(full_load), "%6.2f %7.1f", mpps_of(cycles), cycles);
	if (first->times > 0)
		snprintf(
			times, sizeof(times), "%7.1f %7.1f", us_at(first, 0.5), us_at(first, 0.99));
	printf("  %-9s %s   %5.1f %% %7.2f  %6.1f %%   %s\n", mode_names[mode], full_load,
		told(experiment->busy[mode]), 2 * (double)experiment->pps / 1e6,
		experiment->share[mode], times);
}

/* What the founding experiment's page had, of this machine. */
static void print_table(const struct experiment *experiment, unsigned n)
{
	printf("\n%-11s %6s %7s   %15s  %8s   %s\n", "load", "Mpps", "cycles", "busy at Mpps",
		"in NIC", "first packet p50, p99 us");
	for (unsigned i = 0; i < n; i++) {
		printf("%s\n", experiment[i].load.what);
		for (unsigned mode = 0; mode < N_MODES; mode++)
			print_mode(&experiment[i], (enum offload_mode)mode);
	}
	puts("\nfull is not measured at full load: what the NIC carries alone (the last column)\n"
	     "never comes to a worker, and what comes to one costs about what it costs in "
	     "software.");
}

/* ---- the chart ---- */

enum panel { PANEL_MPPS, PANEL_CYCLES, PANEL_BUSY, PANEL_SHARE, N_PANELS };

static const char *const panels[N_PANELS] = {
	[PANEL_MPPS] = "millions of packets a second, at full load",
	[PANEL_CYCLES] = "TSC cycles a packet, at full load",
	[PANEL_BUSY] = "% that a worker is busy, at half of software's load",
	[PANEL_SHARE] = "% of packets that the NIC named or carried alone",
};

static int begin_plot(struct bars **bars, const char *path, struct error *error)
{
	const struct bars_names names = {
		.panels = panels, .n_panels = N_PANELS, .series = mode_names, .n_series = N_MODES};

	*bars = NULL;
	return path == NULL ? 0 : bars_create(bars, path, &names, error);
}

static void draw(struct bars *bars, const struct experiment *experiment)
{
	bars_group(bars, experiment->load.name);
	for (unsigned mode = 0; mode < N_MODES; mode++) {
		double cycles = told(experiment->cycles[mode]);

		/* what the NIC carries alone is not limited by a worker */
		if (mode != WHOLE) {
			bars_add(bars, PANEL_MPPS, mode, mpps_of(cycles));
			bars_add(bars, PANEL_CYCLES, mode, cycles);
		}
		bars_add(bars, PANEL_BUSY, mode, told(experiment->busy[mode]));
		if (mode != IN_SOFTWARE)
			bars_add(bars, PANEL_SHARE, mode, experiment->share[mode]);
	}
}

/* Of what was measured, also when that came to an early end. */
static int end_plot(
	struct bars *bars, const struct experiment *experiments, unsigned n, struct error *error)
{
	char machine[512];

	if (bars == NULL)
		return 0;
	for (unsigned i = 0; i < n; i++)
		draw(bars, &experiments[i]);
	bench_machine(machine, sizeof(machine));
	return bars_finish(bars, "millrace bench offload", machine, error);
}

/* What a load costs. */
static int run(struct experiment *experiment, const char *name)
{
	struct error error;
	int ret = offload_load_init(&experiment->load, name, &error);

	if (ret == 0 && strcmp(name, "tcp64") == 0)
		ret = offload_load_init(&experiment->udp, OFFLOAD_UDP64, &error);
	if (ret < 0)
		offload_say(error.text);
	if (ret == 0)
		ret = measure_full_load(experiment);
	if (ret == 0) {
		print_cycles(experiment);
		/* half of what software can carry, by both ports */
		experiment->pps = (uint64_t)((double)rte_get_tsc_hz() /
					     told(experiment->cycles[IN_SOFTWARE]) / 4);
		ret = measure_fixed_rate(experiment);
	}
	if (ret == 0)
		print_busy(experiment);
	return ret;
}

/* How long its packets take: last, as from then on the simulated NICs write into each packet when it came. */
static int run_times(struct experiment *experiments, unsigned n)
{
	int ret = offload_times_init();

	for (unsigned i = 0; ret == 0 && i < n; i++) {
		ret = measure_times(&experiments[i]);
		if (ret == 0)
			print_times(&experiments[i]);
	}
	return ret;
}

static int measure_all(
	struct experiment *experiments, unsigned *n, const struct bench_options *options)
{
	unsigned begun = 0;
	int ret = 0;

	bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && i < OFFLOAD_N_LOADS; i++) {
		if (!bench_asked(options->loads, offload_loads[i]))
			continue;
		experiments[begun].options = options;
		ret = run(&experiments[begun++], offload_loads[i]);
		*n += ret == 0;
	}
	if (ret == 0)
		ret = run_times(experiments, *n);
	while (begun > 0) {
		offload_load_fini(&experiments[--begun].load);
		offload_load_fini(&experiments[begun].udp);
	}
	if (!options->json && *n > 0)
		print_table(experiments, *n);
	return ret;
}

int bench_offload(const struct bench_options *options)
{
	struct experiment experiments[OFFLOAD_N_LOADS];
	struct error error;
	struct bars *bars;
	unsigned n = 0;
	int ret = begin_plot(&bars, options->plot, &error), drawn;

	memset(experiments, 0, sizeof(experiments));
	if (ret == 0)
		ret = dpdk_start(MEGABYTES, &error);
	offload_pin();
	if (ret == 0) {
		ret = measure_all(experiments, &n, options);
		dpdk_stop();
	} else {
		offload_say(error.text);
	}
	drawn = end_plot(bars, experiments, n, &error);
	if (drawn < 0)
		offload_say(error.text);
	return ret < 0 ? ret : drawn;
}
