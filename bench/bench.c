/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "base/suggest.h"
#include "base/text.h"

#define EXIT_MISUSED 2
#define LEAST 0.05

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double lower_quartile(double *samples, unsigned n)
{
	qsort(samples, n, sizeof(*samples), compare);
	return samples[n / 4];
}

/* How far apart the middle half lies, as a share of the quartile told. */
static double spread(const double *sorted, unsigned n)
{
	return sorted[n / 4] > 0 ? (sorted[3 * n / 4] - sorted[n / 4]) / sorted[n / 4] : 0;
}

void bench_print(struct bench_row *row, bool json)
{
	double ours = lower_quartile(row->ours, row->rounds);
	double theirs = lower_quartile(row->theirs, row->rounds);
	double far = spread(row->ours, row->rounds);
	/* what costs nothing, or less by chance, costs a part of what is shown at most */
	double ratio = row->rate ? ours / theirs : theirs / (ours < LEAST ? LEAST : ours);
	/* rates are large numbers */
	int digits = row->rate && !json ? 0 : 1;
	bool holds = row->goal == 0 || ratio >= row->goal;
	char flows[TEXT_NUMBER_MAX];

	if (spread(row->theirs, row->rounds) > far)
		far = spread(row->theirs, row->rounds);
	if (json) {
		printf("{\"bench\":\"%s\",\"measure\":\"%s\",\"load\":\"%s\",\"flows\":%u,"
		       "\"unit\":\"%s\",\"ours\":%.1f,\"against\":\"%s\",\"theirs\":%.1f,"
		       "\"ratio\":%.2f,\"goal\":%.2f,\"holds\":%s,\"rounds\":%u,\"spread\":%.2f}\n",
			row->bench, row->measure, row->load, row->flows, row->unit, ours,
			row->against, theirs, ratio, row->goal, holds ? "true" : "false",
			row->rounds, far);
	} else {
		printf("%-20s %-8s %11s  %8.*f  %-9s %8.*f  %-7s  %5.2f  %5.2f %-4s %4.0f %%\n",
			row->measure, row->load, text_grouped(flows, row->flows), digits, ours,
			row->against, digits, theirs, row->unit, ratio, row->goal,
			holds ? "" : "low", 100 * far);
	}
	fflush(stdout);
}

static void print_machine(FILE *stream)
{
	struct utsname machine;
	char model[256] = "unknown processor";
	char line[256];
	FILE *info = fopen("/proc/cpuinfo", "r");

	while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
		if (sscanf(line, "model name : %255[^\n]", model) == 1)
			break;
	}
	if (info != NULL)
		fclose(info);
	uname(&machine);
	fprintf(stream, "%s, %s %s, %s, TSC %.2f GHz, %s\n", model, machine.sysname,
		machine.release, machine.machine, (double)rte_get_tsc_hz() / 1e9, rte_version());
}

void bench_print_head(bool json)
{
	print_machine(json ? stderr : stdout);
	if (!json)
		printf("%-20s %-8s %11s  %8s  %-9s %8s  %-7s  %5s  %5s %-4s %6s\n", "measure",
			"load", "flows", "ours", "against", "theirs", "unit", "ratio", "goal", "",
			"spread");
}

void bench_pin(void)
{
	cpu_set_t allowed, last;

	CPU_ZERO(&last);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_SET(cpu, &last);
		sched_setaffinity(0, sizeof(last), &last);
		return;
	}
}

static const struct {
	const char *name;
	int (*run)(const struct bench_options *options);
	uint32_t least; /* flows */
	const char *what;
} benches[] = {
	{"flowsim", bench_flowsim, 64,
		"what marks of the simulated NIC cost, and how many rules it takes a second"},
	{"table", bench_table, 64, "the flow table against rte_hash at its best"},
	{"list", bench_list, 64, "a worker whose flows are listed against one left alone"},
	{"wire", bench_wire, 1,
		"the whole path against the founding algorithm and rte_hash at its best"},
};

#define N_BENCHES (sizeof(benches) / sizeof(benches[0]))

static void print_help(FILE *stream)
{
	fputs("Measures this machine, side by side with the best known way, in turns.\n"
	      "\n"
	      "Usage: millrace bench NAME [--flows N,N...] [--stages] [--json]\n"
	      "\n",
		stream);
	for (unsigned i = 0; i < N_BENCHES; i++)
		fprintf(stream, "  %-12s %s\n", benches[i].name, benches[i].what);
	fputs("\n"
	      "  --flows N,N  sizes to measure at (default: table 1024,65536,1000000; list\n"
	      "               1000000; wire 1,2048,65536,1000000; flowsim 16384,1000000)\n"
	      "  --stages     wire: also what each stage of our path costs\n"
	      "  --json       one JSON object a line\n"
	      "\n"
	      "A ratio above 1 is better for us. Costs are TSC cycles; of nine rounds the lower\n"
	      "quartile counts; spread is the wider middle half of the two, as a share of it.\n",
		stream);
}

static int misused(const char *format, const char *word)
{
	fprintf(stderr, "millrace: ");
	fprintf(stderr, format, word);
	fprintf(stderr, "; millrace bench --help lists what there is\n");
	return EXIT_MISUSED;
}

static bool parse_flows(const char *text, struct bench_options *options)
{
	options->n_flows = 0;
	while (options->n_flows < sizeof(options->flows) / sizeof(options->flows[0])) {
		char *end;
		unsigned long flows = strtoul(text, &end, 10);

		if (end == text || *text == '-' || flows < 1 || flows > 33554432)
			return false;
		options->flows[options->n_flows++] = (uint32_t)flows;
		if (*end == '\0')
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
	return false;
}

static bool enough(const char *name, const struct bench_options *options, uint32_t least)
{
	for (unsigned i = 0; i < options->n_flows; i++) {
		if (options->flows[i] >= least)
			continue;
		fprintf(stderr, "millrace: bench %s: --flows: %u is too few, %u is not\n", name,
			options->flows[i], least);
		return false;
	}
	return true;
}

static int run(const char *name, const struct bench_options *options)
{
	const char *names[N_BENCHES];

	for (unsigned i = 0; i < N_BENCHES; i++) {
		names[i] = benches[i].name;
		if (strcmp(name, names[i]) != 0)
			continue;
		if (!enough(name, options, benches[i].least))
			return EXIT_MISUSED;
		return benches[i].run(options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	const char *near = suggest(name, names, N_BENCHES);

	fprintf(stderr, "millrace: bench: no '%s'%s%s\n", name, near ? "; did you mean " : "",
		near ? near : "");
	return EXIT_MISUSED;
}

int bench_main(int argc, char **argv)
{
	struct bench_options options = {0};
	const char *name = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(stdout);
			return EXIT_SUCCESS;
		} else if (strcmp(argv[i], "--json") == 0) {
			options.json = true;
		} else if (strcmp(argv[i], "--stages") == 0) {
			options.stages = true;
		} else if (strcmp(argv[i], "--flows") == 0 && i + 1 < argc) {
			if (!parse_flows(argv[++i], &options))
				return misused("--flows %s: not sizes of 1 to 33554432", argv[i]);
		} else if (argv[i][0] == '-' || name != NULL) {
			return misused("bench: %s: not understood", argv[i]);
		} else {
			name = argv[i];
		}
	}
	if (name == NULL) {
		print_help(stderr);
		return EXIT_MISUSED;
	}
	return run(name, &options);
}
