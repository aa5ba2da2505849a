/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/report.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "control/answer.h"
#include "control/offload_words.h"

#define MAX_REASONS 64

json_t *report_refusal(const struct provider_why *why)
{
	return offload_refusal(why->error, why->words);
}

static json_t *begin_cell(const struct form *form, const char *level)
{
	const struct form_pattern *pattern = &form->pattern;

	return json_pack("{ss ss ss* ss}", "pattern", pattern->name, "actions", form->actions->name,
		"kind", pattern->special == FORM_SHAPE ? provider_kind_name(pattern->kind) : NULL,
		"level", level);
}

static json_t *seen_of(const struct form_actions *actions, const struct observed *seen)
{
	json_t *object = json_object();

	answer_number(object, "packets", seen->packets);
	if (actions->mark) {
		answer_number(object, "marked", seen->marked);
		answer_number(object, "wrong_mark", seen->wrong);
	}
	answer_number(object, "by_queue", seen->in_place);
	if (form_is_sent_on(actions))
		answer_number(object, "sent_on", seen->elsewhere);
	return object;
}

static void add_effect(json_t *object, const struct form *form, const struct cell *cell)
{
	static const char *const effects[] = {[CELL_UNSEEN] = "not tried",
		[CELL_ONE_WAY] = "not tried",
		[CELL_BROKEN] = "missing",
		[CELL_SEEN] = "seen"};
	static const char *const counters[] = {[CELL_NOT_COUNTED] = "not tried",
		[CELL_UNREAD] = "unreadable",
		[CELL_STUCK] = "stuck",
		[CELL_LATE] = "late",
		[CELL_MOVES] = "moves",
		[CELL_INEXACT] = "inexact",
		[CELL_EXACT] = "exact"};

	json_object_set_new(object, "effect", json_string(effects[cell->effect]));
	if (cell->kind != PROVIDER_N_KINDS && cell->effect != CELL_UNSEEN)
		json_object_set_new(object, "seen", seen_of(form->actions, &cell->seen));
	if (form->actions->count && cell->counter != CELL_NOT_COUNTED) {
		json_object_set_new(object, "counter", json_string(counters[cell->counter]));
		if (cell->counter > CELL_STUCK)
			answer_number(object, "counted", cell->counted);
	}
	if (cell->stays)
		json_object_set_new(object, "stays", json_true());
	if (cell->left)
		json_object_set_new(object, "left", report_refusal(&cell->destroy));
}

json_t *report_cell(const struct form *form, const struct cell *cell)
{
	json_t *object = begin_cell(form, level_name(cell->level));
	bool created = cell->create.error == 0;
	char words[192];

	json_object_set_new(object, "validate",
		!cell->validates	    ? json_null()
		: cell->validate.error == 0 ? json_true()
					    : report_refusal(&cell->validate));
	json_object_set_new(
		object, "create", created ? json_true() : report_refusal(&cell->create));
	if (created)
		add_effect(object, form, cell);
	cell_words(words, sizeof(words), form->actions, cell);
	if (words[0] != '\0')
		json_object_set_new(object, "because", answer_string(words));
	return object;
}

json_t *report_lost(unsigned number, const char *words)
{
	struct form form;
	json_t *object;

	if (!form_get(number, &form))
		return NULL;
	/* nobody knows whether it had been refused */
	object = begin_cell(&form, "lost");
	json_object_set_new(object, "lost", json_true());
	json_object_set_new(object, "because", answer_string(words));
	return object;
}

static json_t *latency_of(const struct limits_latency *latency)
{
	return json_pack("{sI sI sI sI}", "times", (json_int_t)latency->times, "p50_ns",
		(json_int_t)latency->p50_ns, "p99_ns", (json_int_t)latency->p99_ns, "per_s",
		(json_int_t)llround(latency->per_s));
}

static json_t *kinds_of(const struct provider_abilities *abilities)
{
	json_t *kinds = json_object();

	for (unsigned i = 0; i < PROVIDER_N_KINDS; i++)
		json_object_set_new(kinds, provider_kind_name((enum provider_kind)i),
			abilities->kind[i] ? answer_string(abilities->shape[i])
					   : report_refusal(&abilities->refused[i]));
	return kinds;
}

static void add_rules(json_t *object, const struct limits *limits, const struct form *form)
{
	static const char *const ends[] = {[LIMITS_NONE] = "none",
		[LIMITS_FULL] = "full",
		[LIMITS_CAP] = "cap",
		[LIMITS_TIME] = "time",
		[LIMITS_FAILED] = "failed",
		[LIMITS_STOPPED] = "interrupted"};

	if (limits->by_form)
		json_object_set_new(object, "form",
			json_sprintf("%s, %s", form->pattern.name, form->actions->name));
	json_object_set_new(object, "kind", json_string(provider_kind_name(limits->kind)));
	answer_number(object, "rules", limits->rules);
	json_object_set_new(object, "end", json_string(ends[limits->end]));
	if (limits->why.error != 0 && limits->end != LIMITS_CAP && limits->end != LIMITS_TIME &&
		limits->end != LIMITS_STOPPED)
		json_object_set_new(object, "answer", report_refusal(&limits->why));
	answer_number(object, "inserts_failed", limits->failed);
	answer_number(object, "deletes_failed", limits->refused_removes);
	json_object_set_new(object, "insert", latency_of(&limits->insert));
	json_object_set_new(object, "delete", latency_of(&limits->remove));
	if (limits->all_away > 0) {
		answer_number(object, "all_away", limits->all_away);
		answer_number(object, "all_away_us", limits->all_away_us);
	}
	answer_number(object, "left", limits->left);
}

json_t *report_limits(const struct limits *limits, const struct form *form)
{
	const struct provider_abilities *abilities = &limits->abilities;
	json_t *object = json_object();

	json_object_set_new(object, "back_end", json_string(abilities->back_end));
	if (abilities->unable[0] != '\0')
		json_object_set_new(object, "unable", answer_string(abilities->unable));
	answer_number(object, "mark_bits", abilities->mark_bits);
	answer_number(object, "mark_max", abilities->mark_max);
	json_object_set_new(object, "counts", json_boolean(abilities->counts));
	json_object_set_new(object, "kinds", kinds_of(abilities));
	if (limits->kind != PROVIDER_N_KINDS)
		add_rules(object, limits, form);
	return object;
}

/*
 * The report as text. In these lines "{key}" is the object's member of that name; "{key?text}" is the text if that is
 * there and not false, 0 or null, "{key!text}" if it is not, "{key=value?text}" if it is that word or number.
 */
static const char head_lines[] =
	"{device}: {driver}, firmware {firmware?{firmware}}{firmware!not told}, {dpdk}, "
	"{queues} queue{queues=1!s}\n"
	"{packets=none?{heard?{heard} packets came, of no flow that can be looked at}"
	"{heard!no packets came}: effects not tried\n}"
	"{packets=arriving?packets of {flows} flows arrive by themselves\n}"
	"{packets=peer?packets of {flows} flows are sent by the peer\n}"
	"{packets=loopback?packets of {flows} flows are sent by the port to itself\n}";

static const char counters_lines[] =
	"counters           of packets{bytes? and bytes}, "
	"{bits?{bits}}{bits!at least {at_least_bits}} bits ({came} packets came)\n";

static const char async_lines[] =
	"flow queues        {queues} of {queue_size?{queue_size}}{queue_size!any number} "
	"operations, "
	"{counters=4294967295?no limit of}{counters=4294967295!{counters}} counters\n";

static const char table_lines[] =
	"\n{unable?The engine's own rules: none. {unable}\n{form?\nRules of the form {form}\n}}"
	"{unable!The engine's own rules, by {back_end}: marks of {mark_bits} bits, "
	"{counts?with}{counts!no} counters\n}";

static const char size_lines[] =
	"  {end=full?room for {rules} rules (then {answer})}"
	"{end=cap?room for {rules} rules at least: no more were tried (--max-rules)}"
	"{end=time?room for {rules} rules at least: the time ran out (--timeout)}"
	"{end=interrupted?room for {rules} rules at least: interrupted}"
	"{answer!{inserts_failed? ({inserts_failed} insert{inserts_failed=1!s} failed)}}"
	"{end=none?no rule was made{answer?: {answer}}}"
	"{end=failed?{rules} rules, then calls failed: {answer}}\n";

#define LATENCY_LINE "  p50 {p50_ns}  p99 {p99_ns}  of {times}, {per_s} a second\n"

static const json_t *get(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(get(object, key));

	return text != NULL ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(get(object, key));
}

/* A number in groups of three, or a time if its key says so; a refusal as "ENOSPC, table full". */
static void print_member(FILE *out, const json_t *object, const char *key)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	const json_t *value = get(object, key);
	const char *ending = strrchr(key, '_');
	double number = (double)json_integer_value(value);
	char grouped[TEXT_NUMBER_MAX];
	unsigned unit = ending != NULL && strcmp(ending, "_us") == 0;

	if (json_is_object(value)) {
		fputs(text_of(value, "errno"), out);
		fprintf(out, text_of(value, "words")[0] ? ", %s" : "%s", text_of(value, "words"));
	} else if (json_is_string(value)) {
		fputs(json_string_value(value), out);
	} else if (unit == 1 || (ending != NULL && strcmp(ending, "_ns") == 0)) {
		for (; number >= 1000 && unit < 3; unit++)
			number /= 1000;
		fprintf(out, number < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", number, units[unit]);
	} else {
		fputs(text_grouped(grouped, number_of(object, key)), out);
	}
}

/* Is "key" there, or "key=value" so? */
static bool holds(const json_t *object, const char *condition)
{
	size_t length = strcspn(condition, "=");
	const json_t *value = json_object_getn(object, condition, length);
	char number[24];

	if (condition[length] == '\0')
		return value != NULL && !json_is_false(value) && !json_is_null(value) &&
		       !(json_is_integer(value) && json_integer_value(value) == 0);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)json_integer_value(value));
	return value != NULL && strcmp(json_is_string(value) ? json_string_value(value) : number,
					&condition[length + 1]) == 0;
}

/* Up to the end, or the brace that closes it; returns where that is. */
static const char *print_part(FILE *out, const json_t *object, const char *at, bool shown)
{
	while (*at != '\0' && *at != '}') {
		char key[32];

		if (*at != '{') {
			if (shown)
				putc(*at, out);
			at++;
			continue;
		}
		size_t length = strcspn(++at, "?!}");

		snprintf(key, sizeof(key), "%.*s", (int)length, at);
		at += length;
		if (*at != '}')
			at = print_part(
				out, object, at + 1, shown && holds(object, key) == (*at == '?'));
		else if (shown)
			print_member(out, object, key);
		if (*at == '}')
			at++;
	}
	return at;
}

static void print(FILE *out, const json_t *object, const char *lines)
{
	(void)print_part(out, object, lines, true);
}

/* + works, o accepts, ? says yes, - no, ! the driver did not survive it. */
static char sign_of(const json_t *cell)
{
	static const char *const signs[][2] = {
		{"works", "+"}, {"accepts", "o"}, {"says yes", "?"}, {"no", "-"}, {"lost", "!"}};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strcmp(text_of(cell, "level"), signs[i][0]) == 0)
			return signs[i][1][0];
	return '.';
}

static void print_cells(FILE *out, const json_t *cells)
{
	unsigned n = form_n_actions();

	if (json_array_size(cells) == 0)
		return;
	fputs("\n + works   o accepts   ? says yes   - no", out);
	fputs("   ! the driver did not survive it   . not tried\n\n", out);
	for (unsigned i = 0; i < n; i++) {
		fprintf(out, " %-30s", "");
		for (unsigned before = 0; before < i; before++)
			fputs(" |", out);
		fprintf(out, " %s\n", form_actions(i)->name);
	}
	for (size_t i = 0; i < json_array_size(cells); i += n) {
		fprintf(out, " %-30s", text_of(json_array_get(cells, i), "pattern"));
		for (unsigned j = 0; j < n; j++)
			fprintf(out, " %c", sign_of(json_array_get(cells, i + j)));
		putc('\n', out);
	}
}

/* Why a cell is no more than it is; "" where there is nothing to be said. */
static void reason_of(char *text, size_t size, const json_t *cell)
{
	const json_t *refused = get(cell, "create");

	text[0] = '\0';
	if (get(cell, "because") != NULL)
		snprintf(text, size, "%s: %s", text_of(cell, "level"), text_of(cell, "because"));
	else if (json_is_object(refused))
		snprintf(text, size, "%s: %s%s%s", text_of(cell, "level"),
			text_of(refused, "errno"), text_of(refused, "words")[0] ? ", " : "",
			text_of(refused, "words"));
	else if (get(cell, "stays") != NULL)
		snprintf(text, size, "works, and is there still when the rule is gone");
}

struct reason {
	char text[224];
	const json_t *first;
	unsigned times;
};

static void print_reasons(FILE *out, const json_t *cells)
{
	static struct reason reasons[MAX_REASONS];
	char text[sizeof(reasons[0].text)];
	unsigned n = 0;
	const json_t *cell;
	size_t i;

	json_array_foreach(cells, i, cell)
	{
		unsigned at = 0;

		reason_of(text, sizeof(text), cell);
		while (at < n && strcmp(reasons[at].text, text) != 0)
			at++;
		if (text[0] == '\0' || at == MAX_REASONS)
			continue;
		if (at == n) {
			reasons[n] = (struct reason){.first = cell};
			memcpy(reasons[n++].text, text, sizeof(text));
		}
		reasons[at].times++;
	}
	if (n > 0)
		fputs("\nWhy\n", out);
	for (unsigned at = 0; at < n; at++) {
		fprintf(out, " %4u  %s\n", reasons[at].times, reasons[at].text);
		print(out, reasons[at].first, "       first: {pattern}, {actions}\n");
	}
}

static void print_marks(FILE *out, const json_t *marks)
{
	uint64_t accepted = number_of(marks, "accepted_bits"), seen = number_of(marks, "seen_bits");

	if (accepted == 0)
		return;
	print(out, marks, "marks              of {accepted_bits} bits are accepted");
	if (seen > 0)
		fputs(seen == accepted ? ", and" : ", only", out);
	print(out, marks,
		"{seen_bits? {seen_bits} come}{seen_bits=0?, and none come as asked for}\n");
}

static void print_indirect(FILE *out, const json_t *indirect)
{
	const json_t *one;
	size_t i;

	json_array_foreach(indirect, i, one)
	{
		print(out, one,
			i == 0 ? "indirect actions   {action}: {level}" : ", {action}: {level}");
		print(out, get(one, "answer"), "{errno? ({errno})}");
	}
	if (json_array_size(indirect) > 0)
		putc('\n', out);
}

static void print_tables(FILE *out, const json_t *tables)
{
	const json_t *table;
	size_t i;

	json_array_foreach(tables, i, table)
	{
		print(out, table, table_lines);
		if (get(table, "rules") == NULL)
			continue;
		print(out, table, size_lines);
		print(out, get(table, "insert"), "{times?  insert" LATENCY_LINE "}");
		print(out, get(table, "delete"), "{times?  delete" LATENCY_LINE "}");
		print(out, table,
			"{all_away?  {all_away} rules were taken away by one call, in "
			"{all_away_us}\n}");
	}
}

void report_print(FILE *out, const json_t *report)
{
	const json_t *marks = get(report, "marks"), *indirect = get(report, "indirect");
	char cells[TEXT_NUMBER_MAX];

	print(out, report, head_lines);
	print_cells(out, get(report, "cells"));
	print_reasons(out, get(report, "cells"));
	if (marks != NULL || indirect != NULL)
		putc('\n', out);
	print_marks(out, marks);
	if (get(report, "counters") != NULL)
		print(out, get(report, "counters"), counters_lines);
	print_indirect(out, indirect);
	if (get(report, "async") != NULL)
		print(out, get(report, "async"), async_lines);
	print_tables(out, get(report, "tables"));
	print(out, report,
		"{stopped?\nNo more was tried: {stopped}\n}{ended?\nNot complete: {ended}\n}");
	fprintf(out, "\n%s forms of rules tried in %.0f s",
		text_grouped(cells, json_array_size(get(report, "cells"))),
		(double)number_of(report, "took_ms") / 1000);
	print(out, report,
		"{rules_left!, and no rule is left}\n{kept_in?kept in {kept_in}\n}"
		"{rules_left?\nrules that may be in the card still: {rules_left}\n}");
}
