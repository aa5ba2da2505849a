/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as people read it. */
#include <string.h>

#include "base/text.h"
#include "probe/report.h"

#define SPAN_MAX 32
#define MAX_REASONS 64

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *span(char text[SPAN_MAX], double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;

	for (; ns >= 1000 && unit < 3; unit++)
		ns /= 1000;
	snprintf(text, SPAN_MAX, ns < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", ns, units[unit]);
	return text;
}

static void print_head(FILE *out, const json_t *report)
{
	char flows[TEXT_NUMBER_MAX];
	const char *packets = text_of(report, "packets");

	fprintf(out, "%s: %s, firmware %s, %s, %u queue%s\n", text_of(report, "device"),
		text_of(report, "driver"),
		json_is_string(json_object_get(report, "firmware")) ? text_of(report, "firmware")
								    : "not told",
		text_of(report, "dpdk"), (unsigned)number_of(report, "queues"),
		number_of(report, "queues") == 1 ? "" : "s");
	if (strcmp(packets, "none") == 0 && number_of(report, "heard") > 0)
		fprintf(out,
			"%s packets came, of no flow that can be looked at: effects not tried\n",
			text_grouped(flows, number_of(report, "heard")));
	else if (strcmp(packets, "none") == 0)
		fprintf(out, "no packets came: effects not tried\n");
	else
		fprintf(out, "packets of %s flows %s\n",
			text_grouped(flows, number_of(report, "flows")),
			strcmp(packets, "arriving") == 0 ? "arrive by themselves"
			: strcmp(packets, "peer") == 0	 ? "are sent by the peer"
							 : "are sent by the port to itself");
}

/* + works, o accepts, ? says yes, - no, ! the driver did not survive it. */
static char sign_of(const json_t *cell)
{
	const char *level = text_of(cell, "level");

	if (json_is_true(json_object_get(cell, "lost")))
		return '!';
	return strcmp(level, "works") == 0	? '+'
	       : strcmp(level, "accepts") == 0	? 'o'
	       : strcmp(level, "says yes") == 0 ? '?'
						: '-';
}

static void print_cells(FILE *out, const json_t *report)
{
	const json_t *cells = json_object_get(report, "cells");
	unsigned n = form_n_actions();
	size_t all = json_array_size(cells);

	if (all == 0)
		return;
	fputs("\n + works   o accepts   ? says yes   - no", out);
	fputs("   ! the driver did not survive it   . not tried\n\n", out);
	for (unsigned i = 0; i < n; i++) {
		fprintf(out, " %-30s", "");
		for (unsigned before = 0; before < i; before++)
			fputs(" |", out);
		fprintf(out, " %s\n", form_actions(i)->name);
	}
	for (size_t i = 0; i < all; i += n) {
		fprintf(out, " %-30s", text_of(json_array_get(cells, i), "pattern"));
		for (unsigned j = 0; j < n; j++) {
			const json_t *cell = json_array_get(cells, i + j);

			fprintf(out, " %c", cell != NULL ? sign_of(cell) : '.');
		}
		putc('\n', out);
	}
}

/* Why a cell is no more than it is; "" where there is nothing to be said. */
static void reason_of(char *text, size_t size, const json_t *cell)
{
	const json_t *refused = json_object_get(cell, "create");

	text[0] = '\0';
	if (json_object_get(cell, "because") != NULL)
		snprintf(text, size, "%s: %s",
			json_is_true(json_object_get(cell, "lost")) ? "lost" : "accepts",
			text_of(cell, "because"));
	else if (json_is_object(refused))
		snprintf(text, size, "%s: %s%s%s", text_of(cell, "level"),
			text_of(refused, "errno"), text_of(refused, "words")[0] ? ", " : "",
			text_of(refused, "words"));
	else if (json_is_true(json_object_get(cell, "stays")))
		snprintf(text, size, "works, and is there still when the rule is gone");
}

struct reason {
	char text[224];
	const json_t *first;
	unsigned times;
};

static void print_reasons(FILE *out, const json_t *report)
{
	static struct reason reasons[MAX_REASONS];
	char text[sizeof(reasons[0].text)];
	unsigned n = 0;
	const json_t *cell;
	size_t i;

	json_array_foreach(json_object_get(report, "cells"), i, cell)
	{
		unsigned at = 0;

		reason_of(text, sizeof(text), cell);
		while (at < n && strcmp(reasons[at].text, text) != 0)
			at++;
		if (text[0] == '\0' || at == MAX_REASONS)
			continue;
		if (at == n) {
			memcpy(reasons[n].text, text, sizeof(text));
			reasons[n].first = cell;
			reasons[n++].times = 0;
		}
		reasons[at].times++;
	}
	if (n > 0)
		fputs("\nWhy\n", out);
	for (unsigned at = 0; at < n; at++)
		fprintf(out, " %4u  %s\n       first: %s, %s\n", reasons[at].times,
			reasons[at].text, text_of(reasons[at].first, "pattern"),
			text_of(reasons[at].first, "actions"));
}

static void print_latency(FILE *out, const json_t *table, const char *key, const char *name)
{
	const json_t *latency = json_object_get(table, key);
	char p50[SPAN_MAX], p99[SPAN_MAX], rate[TEXT_NUMBER_MAX], times[TEXT_NUMBER_MAX];

	if (number_of(latency, "times") == 0)
		return;
	fprintf(out, "  %s  p50 %s  p99 %s  of %s, %s a second\n", name,
		span(p50, (double)number_of(latency, "p50_ns")),
		span(p99, (double)number_of(latency, "p99_ns")),
		text_grouped(times, number_of(latency, "times")),
		text_grouped(rate, number_of(latency, "per_s")));
}

/* " (N inserts failed)"; "" where none did. */
static const char *failed_of(char *text, size_t size, const json_t *table)
{
	char number[TEXT_NUMBER_MAX];
	uint64_t failed = number_of(table, "inserts_failed");

	text[0] = '\0';
	if (failed > 0)
		snprintf(text, size, " (%s insert%s failed)", text_grouped(number, failed),
			failed == 1 ? "" : "s");
	return text;
}

/* "ENOSPC, table full" */
static const char *answer_of(char *text, size_t size, const json_t *table)
{
	const json_t *answer = json_object_get(table, "answer");
	const char *words = text_of(answer, "words");

	snprintf(text, size, "%s%s%s", text_of(answer, "errno"), words[0] ? ", " : "", words);
	return text;
}

static void print_size(FILE *out, const json_t *table)
{
	const char *end = text_of(table, "end");
	char rules[TEXT_NUMBER_MAX], failed[TEXT_NUMBER_MAX + 32], answer[256];
	const char *whole = text_grouped(rules, number_of(table, "rules"));

	if (strcmp(end, "full") == 0)
		fprintf(out, "  room for %s rules (then %s)\n", whole,
			answer_of(answer, sizeof(answer), table));
	else if (strcmp(end, "cap") == 0)
		fprintf(out, "  room for %s rules at least: no more were tried (--max-rules)%s\n",
			whole, failed_of(failed, sizeof(failed), table));
	else if (strcmp(end, "time") == 0)
		fprintf(out, "  room for %s rules at least: the time ran out (--timeout)%s\n",
			whole, failed_of(failed, sizeof(failed), table));
	else if (strcmp(end, "interrupted") == 0)
		fprintf(out, "  room for %s rules at least: interrupted%s\n", whole,
			failed_of(failed, sizeof(failed), table));
	else if (strcmp(end, "none") == 0)
		fprintf(out, "  no rule was made%s%s\n",
			json_is_object(json_object_get(table, "answer")) ? ": " : "",
			answer_of(answer, sizeof(answer), table));
	else
		fprintf(out, "  %s rules, then calls failed: %s\n", whole,
			answer_of(answer, sizeof(answer), table));
}

static void print_tables(FILE *out, const json_t *report)
{
	const json_t *table;
	size_t i;

	json_array_foreach(json_object_get(report, "tables"), i, table)
	{
		char n[TEXT_NUMBER_MAX], time[SPAN_MAX];

		if (json_object_get(table, "unable") != NULL) {
			fprintf(out, "\nThe engine's own rules: none. %s\n",
				text_of(table, "unable"));
			if (json_object_get(table, "form") != NULL)
				fprintf(out, "\nRules of the form %s\n", text_of(table, "form"));
		} else {
			fprintf(out,
				"\nThe engine's own rules, by %s: marks of %u bits, %s counters\n",
				text_of(table, "back_end"), (unsigned)number_of(table, "mark_bits"),
				json_is_true(json_object_get(table, "counts")) ? "with" : "no");
		}
		if (json_object_get(table, "rules") == NULL)
			continue;
		print_size(out, table);
		print_latency(out, table, "insert", "insert");
		print_latency(out, table, "delete", "delete");
		if (number_of(table, "all_away") > 0)
			fprintf(out, "  %s rules were taken away by one call, in %s\n",
				text_grouped(n, number_of(table, "all_away")),
				span(time, 1e3 * (double)number_of(table, "all_away_us")));
	}
}

static void print_marks(FILE *out, const json_t *report)
{
	const json_t *marks = json_object_get(report, "marks");
	unsigned accepted = (unsigned)number_of(marks, "accepted_bits");
	unsigned seen = (unsigned)number_of(marks, "seen_bits");

	if (accepted == 0)
		return;
	fprintf(out, "marks              of %u bits are accepted", accepted);
	if (seen == 0 && json_object_get(marks, "seen_bits") != NULL)
		fputs(", and none come as asked for", out);
	if (seen > 0)
		fprintf(out, "%s%u come", seen == accepted ? ", and " : ", only ", seen);
	putc('\n', out);
}

static void print_counters(FILE *out, const json_t *report)
{
	const json_t *counters = json_object_get(report, "counters");
	char came[TEXT_NUMBER_MAX];

	if (counters == NULL)
		return;
	fprintf(out, "counters           of packets%s, ",
		json_is_true(json_object_get(counters, "bytes")) ? " and bytes" : "");
	if (json_object_get(counters, "bits") != NULL)
		fprintf(out, "%u bits", (unsigned)number_of(counters, "bits"));
	else
		fprintf(out, "at least %u bits", (unsigned)number_of(counters, "at_least_bits"));
	fprintf(out, " (%s packets came)\n", text_grouped(came, number_of(counters, "came")));
}

static void print_indirect(FILE *out, const json_t *report)
{
	const char *before = "indirect actions   ";
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(report, "indirect"), i, one)
	{
		fprintf(out, "%s%s: %s", before, text_of(one, "action"), text_of(one, "level"));
		if (json_object_get(one, "answer") != NULL)
			fprintf(out, " (%s)", text_of(json_object_get(one, "answer"), "errno"));
		before = ", ";
	}
	if (*before == ',')
		putc('\n', out);
}

static void print_async(FILE *out, const json_t *report)
{
	const json_t *async = json_object_get(report, "async");
	char queues[TEXT_NUMBER_MAX], size[TEXT_NUMBER_MAX], counters[TEXT_NUMBER_MAX];
	uint64_t most = number_of(async, "counters");

	if (async == NULL)
		return;
	fprintf(out, "flow queues        %s of %s operations, %s counters\n",
		text_grouped(queues, number_of(async, "queues")),
		number_of(async, "queue_size") == 0
			? "any number"
			: text_grouped(size, number_of(async, "queue_size")),
		most == UINT32_MAX ? "no limit of" : text_grouped(counters, most));
}

/* "1,400 forms of rules tried in 14 s, no rule is left; kept in /var/lib/millrace/..." */
static void print_end(FILE *out, const json_t *report)
{
	char cells[TEXT_NUMBER_MAX];
	size_t n = json_array_size(json_object_get(report, "cells"));

	fprintf(out, "\n%s forms of rules tried in %.0f s%s\n", text_grouped(cells, n),
		(double)number_of(report, "took_ms") / 1000,
		number_of(report, "rules_left") == 0 ? ", and no rule is left" : "");
	if (json_object_get(report, "kept_in") != NULL)
		fprintf(out, "kept in %s\n", text_of(report, "kept_in"));
}

void probe_text(FILE *out, const json_t *report)
{
	print_head(out, report);
	print_cells(out, report);
	print_reasons(out, report);
	if (json_object_get(report, "marks") != NULL || json_object_get(report, "indirect") != NULL)
		putc('\n', out);
	print_marks(out, report);
	print_counters(out, report);
	print_indirect(out, report);
	print_async(out, report);
	print_tables(out, report);
	if (json_object_get(report, "stopped") != NULL)
		fprintf(out, "\nNo more was tried: %s\n", text_of(report, "stopped"));
	if (json_object_get(report, "ended") != NULL)
		fprintf(out, "\nNot complete: %s\n", text_of(report, "ended"));
	print_end(out, report);
	if (number_of(report, "rules_left") > 0)
		fprintf(out, "\nrules that may be in the card still: %u\n",
			(unsigned)number_of(report, "rules_left"));
}
