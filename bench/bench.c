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

double bench_lower_quartile(double *rounds, unsigned n)
{
	qsort(rounds, n, sizeof(*rounds), compare);
	return rounds[n / 4];
}

/* How far apart the middle half lies, as a share of the quartile told. */
static double spread(const double *sorted, unsigned n)
{
	return sorted[n / 4] > 0 ? (sorted[3 * n / 4] - sorted[n / 4]) / sorted[n / 4] : 0;
}

void bench_print(struct bench_row *row, bool json)
{
	double ours = bench_lower_quartile(row->ours, row->rounds);
	double theirs = bench_lower_quartile(row->theirs, row->rounds);
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
		printf("%-20s %-8s %11s  %10.*f  %-18s %10.*f  %-7s  %5.2f  %5.2f %-4s %4.0f %%\n",
			row->measure, row->load, text_grouped(flows, row->flows), digits, ours,
			row->against, digits, theirs, row->unit, ratio, row->goal,
			holds ? "" : "low", 100 * far);
	}
	fflush(stdout);
}

void bench_machine(char *text, size_t size)
{
	struct utsname machine;
	char model[128] = "unknown processor";
	char line[256];
	FILE *info = fopen("/proc/cpuinfo", "r");

	while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
		if (sscanf(line, "model name : %127[^\n]", model) == 1)
			break;
	}
	if (info != NULL)
		fclose(info);
	uname(&machine);
	snprintf(text, size, "%s, %s %s, %s, TSC %.2f GHz, %s", model, machine.sysname,
		machine.release, machine.machine, (double)rte_get_tsc_hz() / 1e9, rte_version());
}

void bench_print_head(bool json)
{
	char machine[512];

	bench_machine(machine, sizeof(machine));
	fprintf(json ? stderr : stdout, "%s\n", machine);
	if (!json)
		printf("%-20s %-8s %11s  %10s  %-18s %10s  %-7s  %5s  %5s %-4s %6s\n", "measure",
			"load", "flows", "ours", "against", "theirs", "unit", "ratio", "goal", "",
			"spread");
}

bool bench_asked(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; at != NULL; at = *at == ',' ? at + 1 : NULL) {
		size_t n = strcspn(at, ",");

		if (n == length && strncmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return list == NULL;
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

/* What --measure, --against and --load may name. */
static const char *const table_measures[] = {"insert", "delete", "delete_known", "insert_in_order",
	"delete_in_order", "lookup_hit", "lookup_update", "lookup_hit_alone", "lookup_update_alone",
	"lookup_update_burst32", "lookup_miss", "churn", "limit", "limit_carried", "lookup_hit_4k",
	"lookup_update_4k", "lookup_update_full", "bytes_per_flow", "bytes_per_flow_full",
	"writers", "writers_scale", NULL};
static const char *const ablate_measures[] = {"prefetch", "carried", "burst_8", "burst_16",
	"burst_32", "fused_hash", "pages", "tags", "simd_portable", "simd_sse42", "simd_avx2",
	"simd_avx512", NULL};
static const char *const table_against[] = {
	"rte_hash", "rte_hash_naive", "rte_hash_lf", "rte_table_hash_ext", "limit", NULL};
static const char *const table_loads[] = {"uniform", "zipf", NULL};
static const char *const wire_measures[] = {"wire", "mark", "mark_total", "tcp_window",
	"two_workers", "learn_rate", "json_rate", "attack", NULL};

static const struct {
	const char *name;
	int (*run)(const struct bench_options *options);
	uint32_t least; /* flows */
	const char *what;
	const char *const *measures; /* that --measure may name; NULL: the bench looks itself */
} benches[] = {
	{"flowsim", bench_flowsim, 64,
		"what marks of the simulated NIC cost, and how many rules it takes a second", NULL},
	{"table", bench_table, 64, "the flow table against rte_hash at its best, and others",
		table_measures},
	{"list", bench_list, 64, "a worker whose flows are listed against one left alone", NULL},
	{"wire", bench_wire, 1,
		"the whole path against the founding algorithm and rte_hash at its best",
		wire_measures},
};

#define N_BENCHES (sizeof(benches) / sizeof(benches[0]))

static void print_help(FILE *stream)
{
	fputs("Measures this machine, side by side with the best known way, in turns.\n"
	      "\n"
	      "Usage: millrace bench NAME [--flows N,N...] [--json] [option...]\n"
	      "\n",
		stream);
	for (unsigned i = 0; i < N_BENCHES; i++)
		fprintf(stream, "  %-12s %s\n", benches[i].name, benches[i].what);
	fputs("\n"
	      "  --flows N,N  sizes to measure at (default: table 1024,16384,65536,1000000,\n"
	      "               8000000,32000000; list 1000000; wire 1,2048,65536,1000000;\n"
	      "               flowsim 16384,1000000)\n"
	      "  --json       one JSON object a line\n"
	      "  --measure NAME,NAME  table, wire: only these\n"
	      "  --mark       wire: only what marks of the NIC are worth\n"
	      "  --stages     wire: also what each stage of our path costs\n"
	      "\n"
	      "Of table only:\n"
	      "  --against NAME,NAME  these contenders\n"
	      "  --load NAME          uniform or zipf, where rows have a load\n"
	      "  --ablate             instead, what each trick is worth by itself\n"
	      "  --plot FILE          also a chart of it, as SVG\n"
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

		if (end == text || *text == '-' || flows < 1 || flows > 67108864)
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

/* Are all words that an option lists among those that there are? */
static bool known(const char *name, const char *option, const char *const *words, const char *asked)
{
	unsigned n = 0;

	while (words != NULL && words[n] != NULL)
		n++;
	for (const char *at = n == 0 ? NULL : asked; at != NULL; at = *at == ',' ? at + 1 : NULL) {
		size_t length = strcspn(at, ",");
		char word[64];
		unsigned i = 0;

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		at += length;
		while (i < n && strcmp(word, words[i]) != 0)
			i++;
		if (i < n)
			continue;
		const char *near = suggest(word, words, n);

		fprintf(stderr, "millrace: bench %s: %s: no '%s'%s%s\n", name, option, word,
			near ? "; did you mean " : "", near ? near : "");
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
		if (!enough(name, options, benches[i].least) ||
			!known(name, "--measure",
				options->ablate ? ablate_measures : benches[i].measures,
				options->measures) ||
			!known(name, "--against", table_against, options->against) ||
			!known(name, "--load", table_loads, options->loads))
			return EXIT_MISUSED;
		return benches[i].run(options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	const char *near = suggest(name, names, N_BENCHES);

	fprintf(stderr, "millrace: bench: no '%s'%s%s\n", name, near ? "; did you mean " : "",
		near ? near : "");
	return EXIT_MISUSED;
}

/* An option that has a value, or only the table has: how many words it took; 0: it is none of these. */
static int parse_more(char **argv, int left, struct bench_options *options)
{
	const struct {
		const char *name;
		const char **value;
	} words[] = {
		{"--measure", &options->measures},
		{"--against", &options->against},
		{"--load", &options->loads},
		{"--plot", &options->plot},
	};

	if (strcmp(argv[0], "--ablate") == 0) {
		options->ablate = true;
		return 1;
	}
	for (unsigned i = 0; left > 1 && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(argv[0], words[i].name) != 0)
			continue;
		*words[i].value = argv[1];
		return 2;
	}
	return 0;
}

int bench_main(int argc, char **argv)
{
	struct bench_options options = {0};
	const char *name = NULL;
	const char *of_table = NULL, *of_wire = NULL;

	for (int i = 1; i < argc; i++) {
		int taken;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(stdout);
			return EXIT_SUCCESS;
		} else if (strcmp(argv[i], "--json") == 0) {
			options.json = true;
		} else if (strcmp(argv[i], "--mark") == 0) {
			options.measures = "mark";
			of_wire = argv[i];
		} else if (strcmp(argv[i], "--stages") == 0) {
			options.stages = true;
		} else if (strcmp(argv[i], "--flows") == 0 && i + 1 < argc) {
			if (!parse_flows(argv[++i], &options))
				return misused("--flows %s: not sizes of 1 to 67108864", argv[i]);
		} else if ((taken = parse_more(&argv[i], argc - i, &options)) > 0) {
			if (strcmp(argv[i], "--measure") != 0)
				of_table = argv[i];
			i += taken - 1;
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
	if (of_table != NULL && strcmp(name, "table") != 0)
		return misused("bench: %s is for the table only", of_table);
	if (of_wire != NULL && strcmp(name, "wire") != 0)
		return misused("bench: %s is for the wire only", of_wire);
	return run(name, &options);
}
