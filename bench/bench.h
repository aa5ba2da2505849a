/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Measuring side by side: two ways of doing the same work, in turns, in one process, and what is told
 * is the ratio of their lower quartiles. Absolute figures move with the machine and its neighbours;
 * the ratio within one run does so much less, and the spread says how far it may be trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_ROUNDS 9

/* What the user asks of `millrace bench NAME`. */
struct bench_options {
	bool json;
	bool stages;	    /* what each stage of our path costs, on stderr */
	uint32_t flows[16]; /* sizes to measure at */
	unsigned n_flows;
	/* lists of words with commas between, NULL: all; from here on table only, but for measures */
	const char *measures;
	const char *against;
	const char *loads;
	bool ablate;	      /* what each trick is worth, and nothing else */
	const char *plot;     /* file for a chart; NULL: none */
	uint32_t entries[16]; /* admission: sizes of the NIC's table */
	unsigned n_entries;
	const char *capture; /* admission: this one instead of its loads; NULL: its loads */
	uint32_t rules;	     /* wire: that there are in its measure of that name */
	unsigned seconds;    /* admission: that are measured; 0: as many as the load asks for */
};

/*
 * One measure of two contenders. Of a goal that is a number `against` is "goal", `theirs` that number in
 * every round, and `goal` 1.
 */
struct bench_row {
	const char *bench;
	const char *measure;
	const char *load;
	uint32_t flows;
	uint32_t entries; /* of the NIC's table; 0: none is meant */
	const char *unit;
	const char *against;
	double goal; /* the ratio that is wanted; 0 = none */
	bool rate;   /* more is better */
	unsigned rounds;
	double ours[BENCH_ROUNDS];
	double theirs[BENCH_ROUNDS];
};

/*
 * Prints a row on stdout: as a line of a table, or as one JSON object. The ratio is theirs / ours for
 * costs, ours / theirs for rates: above 1 is better for us. Leaves the rounds of both sorted.
 */
void bench_print(struct bench_row *row, bool json);

/* Whether there has been a row of this measure; NULL: any row. */
bool bench_has_printed(const char *measure);

/*
 * The head of the table, and what machine this is; nothing with --json but the machine on stderr. There,
 * too, that the kernel gives no pages of 2 MB, if so.
 */
void bench_print_head(bool json);

/* The lower quartile of so many rounds, which it sorts. */
double bench_lower_quartile(double *rounds, unsigned n);
/* The median of so many values, which it sorts. */
double bench_median(double *values, unsigned n);

/* Processor, kernel, clock and DPDK in one line. */
void bench_machine(char *text, size_t size);

/* Whether a word is in a list with commas between; every word is in NULL. */
bool bench_asked(const char *list, const char *word);

/* The widest vectors that contenders may use: those of the SIMD level that our side runs at, and on other machines any. */
uint16_t bench_vector_bits(void);

/* The calling thread to the last processor that it may use, whose cache is then its own. */
void bench_pin(void);

/* What --plot draws, of the measures of `table`. */
#define BENCH_N_PANELS 4
extern const char *const bench_panels[BENCH_N_PANELS];

/* `millrace bench`: argv[0] is "bench". Returns the exit code. */
int bench_main(int argc, char **argv);

/* `millrace bench NAME`. Without sizes each has its own. Return 0 or a negative errno. */
int bench_admission(const struct bench_options *options);
int bench_classify(const struct bench_options *options);
int bench_export(const struct bench_options *options);
int bench_flowsim(const struct bench_options *options);
int bench_offload(const struct bench_options *options);
int bench_list(const struct bench_options *options);
int bench_route(const struct bench_options *options);
int bench_table(const struct bench_options *options);
int bench_wire(const struct bench_options *options);
