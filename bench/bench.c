/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <rte_cycles.h>
#include <rte_vect.h>
#include <rte_version.h>

#include "base/text.h"
#include "bench/memory.h"
#include "packet/simd.h"

#define LEAST 0.05

/* Measures of which there was a row. */
#define PRINTED_MAX 64
#define MEASURE_BYTES 64
static char printed[PRINTED_MAX][MEASURE_BYTES];
static unsigned n_printed;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
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

/* The level that our side runs at. */
static enum simd_level simd_in_use(void)
{
	enum simd_level level = SIMD_PORTABLE;

	simd_choose(&level);
	return level;
}

uint16_t bench_vector_bits(void)
{
	return simd_in_use() == SIMD_AVX2 ? RTE_VECT_SIMD_256 : RTE_VECT_SIMD_512;
}

void bench_print(struct bench_row *row, bool json)
{
	double ours = bench_lower_quartile(row->ours, row->rounds);
	double theirs = bench_lower_quartile(row->theirs, row->rounds);
	double far = spread(row->ours, row->rounds);
	/* of nothing on both sides none is better; else what costs nothing, or less by chance, costs a part of what is shown */
	double ratio = ours == 0 && theirs == 0 ? 1
		       : row->rate		? ours / (theirs < LEAST ? LEAST : theirs)
						: theirs / (ours < LEAST ? LEAST : ours);
	/* rates are large numbers */
	int digits = row->rate && !json && strcmp(row->unit, "%") != 0 ? 0 : 1;
	bool holds = row->goal == 0 || ratio >= row->goal;
	char flows[TEXT_NUMBER_MAX];

	if (n_printed < PRINTED_MAX && !bench_has_printed(row->measure))
		snprintf(printed[n_printed++], MEASURE_BYTES, "%s", row->measure);
	if (spread(row->theirs, row->rounds) > far)
		far = spread(row->theirs, row->rounds);
	char entries[32] = "";

	if (row->entries != 0)
		snprintf(entries, sizeof(entries), json ? "\"entries\":%u," : "/%u", row->entries);
	if (json) {
		printf("{\"bench\":\"%s\",\"measure\":\"%s\",\"load\":\"%s\",\"flows\":%u,%s"
		       "\"unit\":\"%s\",\"ours\":%.1f,\"against\":\"%s\",\"theirs\":%.1f,"
		       "\"ratio\":%.2f,\"goal\":%.2f,\"holds\":%s,\"rounds\":%u,\"spread\":%.2f,"
		       "\"simd\":\"%s\"}\n",
			row->bench, row->measure, row->load, row->flows, entries, row->unit, ours,
			row->against, theirs, ratio, row->goal, holds ? "true" : "false",
			row->rounds, far, simd_name(simd_in_use()));
	} else {
		char name[64];

		snprintf(name, sizeof(name), "%s%s", row->measure, entries);
		printf("%-20s %-8s %11s  %10.*f  %-18s %10.*f  %-7s  %5.2f  %5.2f %-4s %4.0f %%\n",
			name, row->load, text_grouped(flows, row->flows), digits, ours,
			row->against, digits, theirs, row->unit, ratio, row->goal,
			holds ? "" : "low", 100 * far);
	}
	fflush(stdout);
}

bool bench_has_printed(const char *measure)
{
	for (unsigned i = 0; i < n_printed; i++)
		if (measure == NULL || strcmp(printed[i], measure) == 0)
			return true;
	return false;
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
	snprintf(text, size, "%s, SIMD level %s, %s %s, %s, TSC %.2f GHz, %s", model,
		simd_name(simd_in_use()), machine.sysname, machine.release, machine.machine,
		(double)rte_get_tsc_hz() / 1e9, rte_version());
}

void bench_print_head(bool json)
{
	char machine[512];

	bench_machine(machine, sizeof(machine));
	fprintf(json ? stderr : stdout, "%s\n", machine);
	if (bench_huge_pages() == 0)
		fputs("no pages of 2 MB are had: what is to lie on them lies on pages of 4 KB\n",
			stderr);
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
