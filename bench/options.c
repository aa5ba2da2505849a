/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asks of `millrace bench`, and what of that makes no sense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "bench/admission_load.h"
#include "bench/bench.h"
#include "bench/classify.h"
#include "bench/offload.h"
#include "bench/route.h"
#include "packet/simd.h"

#define EXIT_MISUSED 2
#define MOST_FLOWS 67108864
#define MOST_RULES 1048576
#define DEFAULT_RULES 100000

/* What --measure, --against and --load may name. */
static const char *const table_measures[] = {"insert", "delete", "delete_known", "insert_in_order",
	"delete_in_order", "lookup_hit", "lookup_update", "lookup_hit_alone", "lookup_update_alone",
	"lookup_update_engine", "lookup_update_burst32", "lookup_miss", "churn", "churn_by_key",
	"limit", "limit_carried", "lookup_hit_4k", "lookup_update_4k", "lookup_update_full",
	"bytes_per_flow", "bytes_per_flow_full", "writers", "writers_scale", NULL};
static const char *const ablate_measures[] = {"one_by_one", "carried", "burst_8", "burst_16",
	"burst_32", "fused_hash", "pages", "tags", "simd_portable", "simd_sse42", "simd_avx2",
	"simd_avx512", NULL};
static const char *const table_against[] = {
	"rte_hash", "rte_hash_naive", "rte_hash_lf", "rte_table_hash_ext", "limit", NULL};
static const char *const classify_against[] = {"rte_acl", "tuple_space", NULL};
static const char *const export_against[] = {"softflowd", "nfprobe", NULL};
static const char *const table_loads[] = {"uniform", "zipf", NULL};
static const char *const wire_measures[] = {"wire", "wire_total", "wire_unlisted", "floor", "mark",
	"mark_total", "installer", "installer_spin", "tcp_window", "tcp_window_share",
	"two_workers", "two_workers_half", "learn_rate", "json_rate", "learn_export", "act",
	"rules", "rule_adds", "redecide", "redecide_share", "syn_flood", "attack",
	"attack_portable", NULL};

static const char *const classify_measures[] = {
	"find", "bytes_per_rule", "update", "explosion", NULL};

static const char *const route_measures[] = {"lookup", "lookup_burst32", "direct", "direct_burst32",
	"memory", "load", "delete", "add", "change", "churn_failed", "churn_memory", NULL};

static const char *const export_measures[] = {"export", "programs", NULL};

static const char *const admission_measures[] = {"share", "rules", "cost", NULL};

enum option {
	MEASURE,
	MARK,
	ACT,
	RULES,
	STAGES,
	AGAINST,
	LOAD,
	ABLATE,
	PLOT,
	ENTRIES,
	SECONDS,
	CAPTURE,
	N_OPTIONS
};

static const struct {
	const char *name;
	bool has_value;
} words[N_OPTIONS] = {
	[MEASURE] = {"--measure", true},
	[MARK] = {"--mark", false},
	[ACT] = {"--act", false},
	[RULES] = {"--rules", true},
	[STAGES] = {"--stages", false},
	[AGAINST] = {"--against", true},
	[LOAD] = {"--load", true},
	[ABLATE] = {"--ablate", false},
	[PLOT] = {"--plot", true},
	[ENTRIES] = {"--entries", true},
	[SECONDS] = {"--seconds", true},
	[CAPTURE] = {"--capture", true},
};

#define TAKES(option) (1u << (option))

static const struct {
	const char *name;
	int (*run)(const struct bench_options *options);
	uint32_t least; /* flows */
	unsigned most;	/* sizes */
	unsigned takes; /* options */
	const char *what;
	const char *const *measures; /* that --measure may name, */
	const char *const *loads;    /* and --load, */
	const char *const *against;  /* and --against */
} benches[] = {
	{"admission", bench_admission, 64, 0,
		TAKES(MEASURE) | TAKES(LOAD) | TAKES(ENTRIES) | TAKES(SECONDS) | TAKES(CAPTURE),
		"which flows a NIC's small table should have: we, who comes first, who knows the "
		"future",
		admission_measures, admission_loads, NULL},
	{"classify", bench_classify, 64, 16, TAKES(MEASURE) | TAKES(AGAINST) | TAKES(LOAD),
		"the classifier of rules against rte_acl at its best and tuple space search",
		classify_measures, classify_sets, classify_against},
	{"export", bench_export, 64, 16, TAKES(MEASURE) | TAKES(AGAINST),
		"records that one processor sends to a collector, and what other exporters cost",
		export_measures, NULL, export_against},
	{"flowsim", bench_flowsim, 64, 16, 0,
		"what marks of the simulated NIC cost, and how many rules it takes a second", NULL,
		NULL, NULL},
	{"offload", bench_offload, 64, 0, TAKES(LOAD) | TAKES(PLOT) | TAKES(STAGES),
		"the same load in software and given to the NIC: cycles, busy %, times", NULL,
		offload_loads, NULL},
	{"table", bench_table, 64, 16,
		TAKES(MEASURE) | TAKES(AGAINST) | TAKES(LOAD) | TAKES(ABLATE) | TAKES(PLOT),
		"the flow table against rte_hash at its best, and others", table_measures,
		table_loads, table_against},
	{"list", bench_list, 64, 1, 0, "a worker whose flows are listed against one left alone",
		NULL, NULL, NULL},
	{"route", bench_route, 64, 16, TAKES(MEASURE) | TAKES(LOAD),
		"the routing table against rte_fib and rte_fib6", route_measures, route_loads,
		NULL},
	{"wire", bench_wire, 1, 16,
		TAKES(MEASURE) | TAKES(MARK) | TAKES(ACT) | TAKES(RULES) | TAKES(STAGES),
		"the whole path against the founding algorithm and rte_hash at its best",
		wire_measures, NULL, NULL},
};

#define N_BENCHES (sizeof(benches) / sizeof(benches[0]))

/* The command line, as it was given. */
struct asked {
	const char *name;
	const char *flows;
	bool json;
	bool is_given[N_OPTIONS];
	const char *value[N_OPTIONS];
};

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
	      "               8000000,32000000; wire 1,2048,65536,1000000; flowsim\n"
	      "               16384,1000000; list, which takes one, 1000000; classify, of\n"
	      "               rules, 1000,10000,100000; route, of routes, 1069950 and 220103, or\n"
	      "               what a file has)\n"
	      "  --json       one JSON object a line\n"
	      "  --simd LEVEL  portable, sse42, avx2 or avx512: our side runs at this level\n"
	      "               (default: the highest that the processor has)\n"
	      "  --measure NAME,NAME  admission, classify, export, route, table, wire: only these\n"
	      "  --mark       wire: only what marks of the NIC are worth\n"
	      "  --act        wire: only what is done with packets: routed, translated, blocked\n"
	      "  --rules N    wire: only what so many rules cost flows that are known\n"
	      "  --stages     wire, offload: also what each stage of our path costs\n"
	      "\n"
	      "Of admission only:\n"
	      "  --entries N,N        sizes of the NIC's table (default 512,7168,16384)\n"
	      "  --seconds N          that are measured of each load, after as many to warm up, "
	      "20\n"
	      "                       at most (default: as the load says)\n"
	      "  --load NAME          zipf-1.0, zipf-1.1, churn-1.05, churn-1.2, websearch\n"
	      "  --capture FILE       instead, the packets of a capture, in real time\n"
	      "\n"
	      "Of classify only:\n"
	      "  --against NAME,NAME  rte_acl, tuple_space\n"
	      "  --load NAME,NAME     acl1 to acl5, fw1 to fw5, ipc1, ipc2, l20, l50\n"
	      "\n"
	      "Of export only:\n"
	      "  --against NAME,NAME  softflowd, nfprobe (of pmacct): which programs `programs`\n"
	      "                       starts\n"
	      "\n"
	      "Of offload only:\n"
	      "  --load NAME          imix, tcp64, zipf\n"
	      "  --plot FILE          also a chart of it, as SVG\n"
	      "\n"
	      "Of route only:\n"
	      "  --load NAME          ipv4 or ipv6\n"
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

static int misused(const char *word, const char *why)
{
	fprintf(stderr, "millrace: bench: %s: %s; millrace bench --help lists what there is\n",
		word, why);
	return EXIT_MISUSED;
}

/* Numbers with commas between, none below `least` and not more than `most` of them. */
static bool parse_numbers(
	const char *text, uint32_t least, unsigned most, uint32_t *numbers, unsigned *n)
{
	for (*n = 0; *n < most;) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (end == text || *text == '-' || number < least || number > MOST_FLOWS)
			return false;
		numbers[(*n)++] = (uint32_t)number;
		if (*end == '\0')
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
	return false;
}

/* The next word of a list with commas between; NULL: there is none. */
static const char *next_word(const char *list, char *word, size_t size)
{
	size_t length;

	if (list == NULL)
		return NULL;
	length = strcspn(list, ",");
	snprintf(word, size, "%.*s", (int)length, list);
	return list + length;
}

static const char *after_comma(const char *at)
{
	return *at == ',' ? at + 1 : NULL;
}

/* A line: that there is no such word, which one may be meant, and which ones there are. */
static void tell_words(const char *where, const char *word, const char *const *there, unsigned n)
{
	const char *near = suggest(word, there, n);

	fprintf(stderr, "millrace: %s: no '%s'%s%s; there are", where, word,
		near ? "; did you mean " : "", near ? near : "");
	for (unsigned i = 0; i < n; i++)
		fprintf(stderr, "%s %s", i == 0 ? "" : ",", there[i]);
	fprintf(stderr, "\n");
}

/* Are all words that an option lists among those that there are? Else a line has them. */
static bool known(const char *name, const char *option, const char *const *there, const char *list)
{
	char word[64], where[64];
	unsigned n = 0;

	while (there != NULL && there[n] != NULL)
		n++;
	for (const char *at = next_word(list, word, sizeof(word)); at != NULL;
		at = next_word(after_comma(at), word, sizeof(word))) {
		unsigned i = 0;

		while (i < n && strcmp(word, there[i]) != 0)
			i++;
		if (i < n)
			continue;
		snprintf(where, sizeof(where), "bench %s: %s", name, option);
		tell_words(where, word, there, n);
		return false;
	}
	return true;
}

/* Does the bench take this option? Else a line says which ones do. */
static bool taken(unsigned bench, enum option option)
{
	const char *takers[N_BENCHES];
	unsigned n = 0;

	if (benches[bench].takes & TAKES(option))
		return true;
	for (unsigned i = 0; i < N_BENCHES; i++)
		if (benches[i].takes & TAKES(option))
			takers[n++] = benches[i].name;
	fprintf(stderr, "millrace: bench %s: %s is for", benches[bench].name, words[option].name);
	for (unsigned i = 0; i < n; i++)
		fprintf(stderr, "%s %s", i == 0 ? "" : (i + 1 < n ? "," : " and"), takers[i]);
	fprintf(stderr, " only\n");
	return false;
}

/* Of a chart something has to be measured that is drawn. */
static bool draws(const struct asked *asked)
{
	for (unsigned i = 0; i < BENCH_N_PANELS; i++)
		if (bench_asked(asked->value[MEASURE], bench_panels[i]))
			return true;
	return false;
}

/* Does all that was asked for make sense together? Else a line says what does not. */
static bool sensible(unsigned bench, const struct asked *asked)
{
	/* the first says already what is measured, against whom, or that nothing is drawn */
	static const enum option apart[][2] = {{ABLATE, AGAINST}, {ABLATE, PLOT}, {MARK, MEASURE},
		{ACT, MEASURE}, {ACT, MARK}, {RULES, MARK}, {RULES, ACT}, {RULES, MEASURE},
		{CAPTURE, LOAD}, {CAPTURE, MEASURE}};
	const char *name = benches[bench].name;

	for (enum option option = 0; option < N_OPTIONS; option++)
		if (asked->is_given[option] && !taken(bench, option))
			return false;
	for (unsigned i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
		if (!asked->is_given[apart[i][0]] || !asked->is_given[apart[i][1]])
			continue;
		fprintf(stderr, "millrace: bench %s: %s takes no %s\n", name,
			words[apart[i][0]].name, words[apart[i][1]].name);
		return false;
	}
	if (!known(name, "--measure",
		    asked->is_given[ABLATE] ? ablate_measures : benches[bench].measures,
		    asked->value[MEASURE]) ||
		!known(name, "--against", benches[bench].against, asked->value[AGAINST]) ||
		!known(name, "--load", benches[bench].loads, asked->value[LOAD]))
		return false;
	if (asked->is_given[PLOT] && !draws(asked)) {
		fprintf(stderr,
			"millrace: bench %s: --plot draws nothing of what --measure names\n", name);
		return false;
	}
	return true;
}

#define NO_ROW ": no row at these sizes, loads and contenders, or on this machine\n"

/* Says which measures that were asked for have no row. Returns the exit code. */
static int tell_missing(const char *name, const char *measures)
{
	char word[64];

	for (const char *at = next_word(measures, word, sizeof(word)); at != NULL;
		at = next_word(after_comma(at), word, sizeof(word)))
		if (!bench_has_printed(word))
			fprintf(stderr, "millrace: bench %s: %s" NO_ROW, name, word);
	if (bench_has_printed(NULL))
		return EXIT_SUCCESS;
	if (measures == NULL)
		fprintf(stderr, "millrace: bench %s" NO_ROW, name);
	return EXIT_FAILURE;
}

static bool parse_rules(const char *name, const struct asked *asked, struct bench_options *options)
{
	unsigned n;

	if (asked->is_given[RULES] &&
		(!parse_numbers(asked->value[RULES], 1, 1, &options->rules, &n) ||
			options->rules > MOST_RULES)) {
		fprintf(stderr, "millrace: bench %s: --rules %s: not a number of 1 to %u\n", name,
			asked->value[RULES], MOST_RULES);
		return false;
	}
	return true;
}

/* What is given as numbers; else a line says what is wrong with it. */
static bool parse_all(unsigned bench, const struct asked *asked, struct bench_options *options)
{
	const char *name = benches[bench].name;
	uint32_t seconds = 0;
	unsigned n;

	if (asked->flows != NULL && benches[bench].most == 0) {
		fprintf(stderr, "millrace: bench %s: its loads have their own flows: no --flows\n",
			name);
		return false;
	}
	if (asked->flows != NULL &&
		!parse_numbers(asked->flows, benches[bench].least, benches[bench].most,
			options->flows, &options->n_flows)) {
		fprintf(stderr, "millrace: bench %s: --flows %s: not %s of %u to %u\n", name,
			asked->flows, benches[bench].most == 1 ? "a size" : "sizes",
			benches[bench].least, MOST_FLOWS);
		return false;
	}
	if (asked->is_given[ENTRIES] && !parse_numbers(asked->value[ENTRIES], 1, 16,
						options->entries, &options->n_entries)) {
		fprintf(stderr, "millrace: bench %s: --entries %s: not sizes of 1 to %u\n", name,
			asked->value[ENTRIES], MOST_FLOWS);
		return false;
	}
	if (asked->is_given[SECONDS] && !parse_numbers(asked->value[SECONDS], 1, 1, &seconds, &n)) {
		fprintf(stderr, "millrace: bench %s: --seconds %s: not a number of seconds\n", name,
			asked->value[SECONDS]);
		return false;
	}
	options->seconds = seconds;
	return parse_rules(name, asked, options);
}

static int run(const struct asked *asked)
{
	struct bench_options options = {
		.json = asked->json,
		.stages = asked->is_given[STAGES],
		.rules = DEFAULT_RULES,
		.measures = asked->is_given[MARK]    ? "mark"
			    : asked->is_given[ACT]   ? "act"
			    : asked->is_given[RULES] ? "rules"
						     : asked->value[MEASURE],
		.against = asked->value[AGAINST],
		.loads = asked->value[LOAD],
		.ablate = asked->is_given[ABLATE],
		.plot = asked->value[PLOT],
		.capture = asked->value[CAPTURE],
	};
	const char *names[N_BENCHES];

	for (unsigned i = 0; i < N_BENCHES; i++) {
		names[i] = benches[i].name;
		if (strcmp(asked->name, names[i]) != 0)
			continue;
		if (!sensible(i, asked))
			return EXIT_MISUSED;
		if (!parse_all(i, asked, &options))
			return EXIT_MISUSED;
		if (benches[i].run(&options) < 0)
			return EXIT_FAILURE;
		return tell_missing(names[i], options.measures);
	}
	tell_words("bench", asked->name, names, N_BENCHES);
	return EXIT_MISUSED;
}

/* An option of some benches: how many words it took; 0: it is none of these. */
static int parse_option(char **argv, int left, struct asked *asked)
{
	for (enum option option = 0; option < N_OPTIONS; option++) {
		if (strcmp(argv[0], words[option].name) != 0)
			continue;
		if (words[option].has_value && left < 2)
			return 0;
		asked->is_given[option] = true;
		if (words[option].has_value)
			asked->value[option] = argv[1];
		return words[option].has_value ? 2 : 1;
	}
	return 0;
}

/* Makes our side run at this SIMD level; else a line says which ones there are. */
static bool force_simd(const char *word)
{
	const char *names[SIMD_N_LEVELS];
	unsigned n = 0;

	for (unsigned level = 0; level < SIMD_N_LEVELS; level++)
		if (simd_has((enum simd_level)level))
			names[n++] = simd_name((enum simd_level)level);
	for (unsigned i = 0; i < n; i++)
		if (strcmp(word, names[i]) == 0)
			return setenv(SIMD_VARIABLE, word, 1) == 0;
	tell_words("bench: --simd", word, names, n);
	return false;
}

/* Of one that no value follows. */
static bool wants_value(const char *word)
{
	for (enum option option = 0; option < N_OPTIONS; option++)
		if (words[option].has_value && strcmp(word, words[option].name) == 0)
			return true;
	return strcmp(word, "--flows") == 0 || strcmp(word, "--simd") == 0;
}

int bench_main(int argc, char **argv)
{
	struct asked asked = {0};

	for (int i = 1; i < argc; i++) {
		int taken;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(stdout);
			return EXIT_SUCCESS;
		} else if (strcmp(argv[i], "--json") == 0) {
			asked.json = true;
		} else if (strcmp(argv[i], "--flows") == 0 && i + 1 < argc) {
			asked.flows = argv[++i];
		} else if (strcmp(argv[i], "--simd") == 0 && i + 1 < argc) {
			if (!force_simd(argv[++i]))
				return EXIT_MISUSED;
		} else if ((taken = parse_option(&argv[i], argc - i, &asked)) > 0) {
			i += taken - 1;
		} else if (argv[i][0] == '-' || asked.name != NULL) {
			return misused(
				argv[i], wants_value(argv[i]) ? "needs a value" : "not understood");
		} else {
			asked.name = argv[i];
		}
	}
	if (asked.name == NULL) {
		print_help(stderr);
		return EXIT_MISUSED;
	}
	return run(&asked);
}
