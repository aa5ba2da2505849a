/* SPDX-License-Identifier: BSD-3-Clause */
/* offload show: some lines for each port. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

#define INDENT "          "
/* Where further lines of a sentence begin. */
#define FURTHER 12

/* Where some of a list are to be told, and maybe none. */
struct listed {
	FILE *out;
	const char *before; /* what stands before the next one */
};

static void begin_next(struct listed *list)
{
	fputs(list->before, list->out);
	list->before = ", ";
}

static void end_list(const struct listed *list)
{
	if (*list->before == ',')
		putc('\n', list->out);
}

static void print_head(FILE *out, const json_t *line)
{
	char port[FIELD_MAX], text[FIELD_MAX], end[FIELD_MAX], bits[FIELD_MAX];

	fprintf(out, " %-8s wire %s", field_text(line, "port", port),
		field_text(line, "wire", text));
	if (field_has(line, "nic"))
		fprintf(out, ", %s", field_text(line, "nic", text));
	if (field_has(line, "back_end"))
		fprintf(out, ", by %s", field_text(line, "back_end", end));
	if (field_number(line, "mark_bits") > 0)
		fprintf(out, ", marks of %s bits, %s counters", field_text(line, "mark_bits", bits),
			json_is_true(json_object_get(line, "counts")) ? "with" : "no");
	if (json_is_false(json_object_get(line, "ready")))
		fputs(", being tried", out);
	putc('\n', out);
	if (field_has(line, "unable"))
		print_wrapped(out,
			field_has(line, "trial_in_us") ? "         not known yet:"
						       : "         no offload:",
			field_text(line, "unable", text), FURTHER);
}

/* "once", "2 times". */
static const char *times_of(const json_t *object, const char *key, char text[FIELD_MAX])
{
	char number[FIELD_MAX];

	if (field_number(object, key) == 1)
		snprintf(text, FIELD_MAX, "once");
	else
		snprintf(text, FIELD_MAX, "%.20s times", field_grouped(object, key, number));
	return text;
}

static void print_health(FILE *out, const json_t *line)
{
	const json_t *health = json_object_get(line, "health");
	char text[FIELD_MAX], head[2 * FIELD_MAX], span[WHEN_MAX];
	int length;

	if (!json_is_object(health))
		return;
	length = snprintf(
		head, sizeof(head), "         breaker %s", field_text(health, "state", text));
	if (field_has(health, "for_us"))
		length += snprintf(head + length, sizeof(head) - (size_t)length, " since %s",
			when_span(span, field_number(health, "for_us")));
	if (field_number(health, "opened") > 0)
		length += snprintf(head + length, sizeof(head) - (size_t)length, ", opened %s",
			times_of(health, "opened", text));
	if (field_has(health, "retry_in_us"))
		length += snprintf(head + length, sizeof(head) - (size_t)length, ", next try in %s",
			when_span(span, field_number(health, "retry_in_us")));
	if (field_has(health, "because"))
		snprintf(head + length, sizeof(head) - (size_t)length, "; last:");
	print_wrapped(out, head,
		field_has(health, "because") ? field_text(health, "because", text) : "", FURTHER);
}

static void print_table(FILE *out, const json_t *line)
{
	char rules[FIELD_MAX], slots[FIELD_MAX], used[FIELD_MAX], draining[FIELD_MAX];
	char way[FIELD_MAX], span[WHEN_MAX];

	if (!field_has(line, "rules"))
		return;
	fprintf(out, INDENT "rules %s; slots of the wire: %s of %s, %s draining",
		field_grouped(line, "rules", rules), field_grouped(line, "slots_used", used),
		field_grouped(line, "slots", slots),
		field_grouped(line, "slots_draining", draining));
	putc('\n', out);
	if (field_number(line, "under_way") == 0)
		return;
	fprintf(out, INDENT "under way %s", field_grouped(line, "under_way", way));
	if (field_has(line, "oldest_us"))
		fprintf(out, ", the oldest since %s",
			when_span(span, field_number(line, "oldest_us")));
	putc('\n', out);
}

/* "probed: 7,168 rules, 45,000 inserts a second, 2026-11-23" */
static void print_known(FILE *out, const json_t *line)
{
	const json_t *known = json_object_get(line, "probed");
	char rules[FIELD_MAX], inserts[FIELD_MAX], bits[FIELD_MAX], time[FIELD_MAX];

	if (!json_is_object(known))
		return;
	fputs(INDENT "probed: ", out);
	if (field_has(known, "rules"))
		fprintf(out, "%s rules%s, %s inserts a second, ",
			field_grouped(known, "rules", rules),
			json_is_false(json_object_get(known, "full")) ? " or more" : "",
			field_grouped(known, "inserts_per_s", inserts));
	if (field_number(known, "mark_bits") > 0)
		fprintf(out, "marks of %s bits, ", field_text(known, "mark_bits", bits));
	fprintf(out, "%.10s\n", field_text(known, "time", time));
}

static void print_calls(FILE *out, const json_t *line)
{
	char inserts[FIELD_MAX], removes[FIELD_MAX], reads[FIELD_MAX], text[FIELD_MAX];

	if (!field_has(line, "inserts"))
		return;
	fprintf(out, INDENT "inserts %s", field_grouped(line, "inserts", inserts));
	if (field_has(line, "inserts_per_s"))
		fprintf(out, " (%s/s)", field_decimal(line, "inserts_per_s", text));
	fprintf(out, ", removes %s", field_grouped(line, "removes", removes));
	if (field_has(line, "removes_per_s"))
		fprintf(out, " (%s/s)", field_decimal(line, "removes_per_s", text));
	fprintf(out, ", counters read %s\n", field_grouped(line, "counter_reads", reads));
}

static void print_flows(FILE *out, const json_t *line)
{
	static const char *const states[] = {
		"in_hw", "suspect", "leaving", "installing", "queued", "refused"};
	const json_t *flows = json_object_get(line, "flows");
	struct listed list = {out, INDENT "flows: "};
	char text[FIELD_MAX];

	if (!json_is_object(flows))
		return;
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (i > 0 && field_number(flows, states[i]) == 0)
			continue;
		begin_next(&list);
		fprintf(out, "%s %s", field_grouped(flows, states[i], text),
			i == 0 ? "in NIC" : states[i]);
		if (i == 0 && field_has(flows, "proven"))
			fprintf(out, " (%s proven)", field_grouped(flows, "proven", text));
	}
	end_list(&list);
}

/* Counters of what went wrong; those that are 0 are left out. */
static void print_wrong(FILE *out, const json_t *line)
{
	static const struct {
		const char *key, *name;
	} rows[] = {
		{"strangers", "marked strangers"},
		{"ghosts", "ghosts"},
		{"stalled", "late answers"},
		{"no_slot", "without a slot"},
		{"displaced", "displaced"},
		{"inserts_failed", "inserts failed"},
		{"removes_failed", "removes failed"},
		{"counter_reads_failed", "counter reads failed"},
	};
	struct listed list = {out, INDENT};
	char text[FIELD_MAX];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (field_number(line, rows[i].key) == 0)
			continue;
		begin_next(&list);
		fprintf(out, "%s %s", rows[i].name, field_grouped(line, rows[i].key, text));
	}
	end_list(&list);
}

/* "failed: 14 ENOSPC, 2 EIO", of an object of numbers. */
static void print_numbers(FILE *out, const json_t *line, const char *key, const char *head)
{
	const json_t *numbers = json_object_get(line, key);
	struct listed list = {out, head};
	char name[40], text[FIELD_MAX];
	const char *word;
	json_t *value;

	if (!json_is_object(numbers))
		return;
	json_object_foreach((json_t *)(uintptr_t)numbers, word, value)
	{
		if (field_number(numbers, word) == 0)
			continue;
		begin_next(&list);
		fprintf(out, "%s %s", field_grouped(numbers, word, text),
			text_printable(name, sizeof(name), word));
	}
	end_list(&list);
}

static void print_refusals(FILE *out, const json_t *line)
{
	const json_t *refusals = json_object_get(line, "refusals"), *refusal;
	char times[FIELD_MAX], error[FIELD_MAX], words[FIELD_MAX], head[3 * FIELD_MAX];
	size_t i;

	json_array_foreach(refusals, i, refusal)
	{
		snprintf(head, sizeof(head), "         refused %s: %s",
			times_of(refusal, "times", times), field_text(refusal, "errno", error));
		print_wrapped(out, head,
			field_has(refusal, "words") ? field_text(refusal, "words", words) : "",
			FURTHER);
	}
}

/* 812 ns, 11.1 us, 11.4 ms */
static const char *span_of(const json_t *line, const char *key, char text[WHEN_MAX])
{
	uint64_t ns = field_number(line, key);

	if (ns < 1000)
		snprintf(text, WHEN_MAX, "%u ns", (unsigned)ns);
	else if (ns < 1000000)
		snprintf(text, WHEN_MAX, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, WHEN_MAX, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(text, WHEN_MAX, "%.1f s", (double)ns / 1e9);
	return text;
}

static void print_latency(FILE *out, const json_t *line)
{
	static const char *const names[] = {"wait", "insert", "remove", "counter"};
	const json_t *latency = json_object_get(line, "latency");
	char p50[WHEN_MAX], p99[WHEN_MAX], p999[WHEN_MAX], max[WHEN_MAX], times[FIELD_MAX];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *one = json_object_get(latency, names[i]);

		if (field_number(one, "times") == 0)
			continue;
		fprintf(out, INDENT "%-7s  p50 %9s  p99 %9s  p99.9 %9s  max %9s  of %s\n", names[i],
			span_of(one, "p50_ns", p50), span_of(one, "p99_ns", p99),
			span_of(one, "p999_ns", p999), span_of(one, "max_ns", max),
			field_grouped(one, "times", times));
	}
}

/* "not taken: EINVAL no such port", of an object that was not granted, behind `before`. */
static void print_not_taken(
	FILE *out, const char *before, const json_t *object, bool trying, int indent)
{
	const json_t *refusal = json_object_get(object, "refusal");
	char head[64 + FIELD_MAX], text[FIELD_MAX], words[FIELD_MAX];

	snprintf(head, sizeof(head), "%.40s%s%s%s", before, trying ? "not known yet" : "not taken",
		refusal ? ": " : "", refusal ? field_text(refusal, "errno", text) : "");
	print_wrapped(out, head,
		refusal && field_has(refusal, "words") ? field_text(refusal, "words", words) : "",
		indent);
}

/* Whether such flows are left to the NIC alone, where that was asked for. */
static void print_full(FILE *out, const json_t *kind, bool trying)
{
	const json_t *full = json_object_get(kind, "full");
	char text[FIELD_MAX];

	if (!json_is_object(full))
		return;
	if (json_is_true(json_object_get(full, "granted")))
		print_wrapped(
			out, "           NIC only:", field_text(full, "shape", text), FURTHER + 2);
	else
		print_not_taken(out, "           NIC only: ", full, trying, FURTHER + 2);
}

static void print_kinds(FILE *out, const json_t *line)
{
	const json_t *kinds = json_object_get(line, "kinds");
	char name[40], head[64], text[FIELD_MAX], span[WHEN_MAX];
	const char *word;
	json_t *kind;

	if (!json_is_object(kinds))
		return;
	json_object_foreach((json_t *)(uintptr_t)kinds, word, kind)
	{
		const bool trying = json_is_true(json_object_get(kind, "trying"));

		text_printable(name, sizeof(name), word);
		if (!json_is_true(json_object_get(kind, "granted"))) {
			snprintf(head, sizeof(head), "         %-10s  ", name);
			print_not_taken(out, head, kind, trying, FURTHER);
			continue;
		}
		snprintf(head, sizeof(head), "         %-10s %s", name,
			json_is_true(json_object_get(kind, "markless")) ? " never marks:" : "");
		print_wrapped(out, head, field_text(kind, "shape", text), FURTHER);
		print_full(out, kind, trying);
	}
	if (!field_has(line, "trial_in_us"))
		return;
	if (field_number(line, "trial_in_us") == 0)
		fprintf(out, INDENT "being tried again\n");
	else
		fprintf(out, INDENT "tried again in %s\n",
			when_span(span, field_number(line, "trial_in_us")));
}

/* What the NIC does alone, and how soon it is known. */
static void print_alone(FILE *out, const json_t *line)
{
	char span[WHEN_MAX];

	print_sent_on(out, INDENT "sent on by the NIC alone:", line, "");
	if (field_number(line, "forwarded") > 0 && field_has(line, "read_every_us"))
		fprintf(out, INDENT "counters of such flows are read every %s\n",
			when_span(span, field_number(line, "read_every_us")));
}

static void show_line(struct cli_show *show, const json_t *line)
{
	FILE *out = show->out;

	print_head(out, line);
	print_health(out, line);
	print_table(out, line);
	print_known(out, line);
	print_calls(out, line);
	print_flows(out, line);
	print_alone(out, line);
	print_wrong(out, line);
	print_numbers(out, line, "fell_out", INDENT "fell out: ");
	print_numbers(out, line, "failures", INDENT "failures: ");
	print_refusals(out, line);
	print_latency(out, line);
	print_kinds(out, line);
}

const struct cli_view cli_offload_show = {show_line, NULL};
