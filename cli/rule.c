/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's commands about rules. */
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"

static const struct table_column columns[] = {
	{"port", 4, true},
	{"rule", 6, true},
	{"group", 5, true},
	{"prio", 5, true},
	{"flows", 11, true},
	{"packets", 11, true},
	{"bytes", 11, true},
	{"where", 9, false},
	{"command", 40, false},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* A rule that leaves its packets to others counts nothing; one that a NIC has may not be counted there. */
static const char *counted(const json_t *line, const char *name, char text[FIELD_MAX])
{
	const char *where = json_string_value(json_object_get(line, "where"));

	if (!field_has(line, name))
		return where == NULL || strcmp(where, "software") == 0 ? "-" : "not counted";
	return strcmp(name, "bytes") == 0 ? field_bytes(line, name, text)
					  : field_grouped(line, name, text);
}

static void list_line(struct cli_show *show, const json_t *line)
{
	const char *command = json_string_value(json_object_get(line, "rule"));
	char text[FIELD_MAX];

	if (show->lines == 0) {
		table_init(&show->table, show->out, columns);
		table_titles(&show->table, N_COLUMNS);
	}
	table_cell(&show->table, field_text(line, "port", text));
	table_cell(&show->table, field_text(line, "number", text));
	table_cell(&show->table, field_text(line, "group", text));
	table_cell(&show->table, field_text(line, "priority", text));
	table_cell(&show->table, counted(line, "flows", text));
	table_cell(&show->table, counted(line, "packets", text));
	table_cell(&show->table, counted(line, "bytes", text));
	table_cell(&show->table, field_text(line, "where", text));
	table_cell(&show->table, command != NULL ? command : "");
	table_end(&show->table);
	if (field_has(line, "why"))
		fprintf(show->out, "       %s\n", json_string_value(json_object_get(line, "why")));
}

static void list_end(struct cli_show *show, const json_t *end)
{
	char shown[TEXT_NUMBER_MAX], text[FIELD_MAX], bytes[FIELD_MAX];

	fprintf(show->out, " %s of %s rules", text_grouped(shown, show->lines),
		field_grouped(end, "rules", text));
	fprintf(show->out, ", with room for %s", field_grouped(end, "max", text));
	if (field_has(end, "cursor"))
		fprintf(show->out, "; more with --cursor %s", field_text(end, "cursor", text));
	putc('\n', show->out);
	if (field_number(end, "gone_packets") > 0)
		fprintf(show->out, " removed rules matched %s packets, %s\n",
			field_grouped(end, "gone_packets", text),
			field_bytes(end, "gone_bytes", bytes));
	if (field_number(end, "sources") > 0 || field_number(end, "sources_full") > 0) {
		fprintf(show->out, " limits know %s sources", field_grouped(end, "sources", text));
		fprintf(show->out, ", with room for %s", field_grouped(end, "max_sources", text));
		fprintf(show->out, "; %s times there was none\n",
			field_grouped(end, "sources_full", text));
	}
	if (field_number(end, "leaving") > 0)
		fprintf(show->out, " NICs have still to let %s rules go\n",
			field_grouped(end, "leaving", text));
}

const struct cli_view cli_rule_list = {list_line, list_end};

static void add_line(struct cli_show *show, const json_t *line)
{
	const char *text = json_string_value(json_object_get(line, "line"));

	fprintf(show->out, "%s\n", text != NULL ? text : "");
}

const struct cli_view cli_rule_add = {add_line, NULL};

static void del_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX], bytes[FIELD_MAX];

	fprintf(show->out, "Flow rule #%s destroyed", field_text(line, "number", text));
	if (field_has(line, "packets"))
		fprintf(show->out, "; it matched %s packets, %s",
			field_grouped(line, "packets", text), field_bytes(line, "bytes", bytes));
	if (json_is_false(json_object_get(line, "final")))
		fputs(" so far: its flows are still to be decided again; what they count until "
		      "then "
		      "is among that of removed rules in rule list",
			show->out);
	putc('\n', show->out);
}

const struct cli_view cli_rule_del = {del_line, NULL};

/* "rules with 24 bits of src and with exact dst_port, proto" */
static void print_tuple(FILE *out, const json_t *line)
{
	const json_t *exact = json_object_get(line, "exact"), *field;
	char text[FIELD_MAX];
	const char *before = " with exact ";
	size_t i;

	if (field_number(line, "version") == 0)
		fputs("rules of any IP version", out);
	else
		fprintf(out, "rules of IPv%s", field_text(line, "version", text));
	if (field_number(line, "src_bits") > 0)
		fprintf(out, ", %s bits of src", field_text(line, "src_bits", text));
	if (field_number(line, "dst_bits") > 0)
		fprintf(out, ", %s bits of dst", field_text(line, "dst_bits", text));
	json_array_foreach(exact, i, field)
	{
		fprintf(out, "%s%s", before, json_string_value(field));
		before = ", ";
	}
}

static void print_traced_rule(FILE *out, const json_t *line)
{
	const char *command = json_string_value(json_object_get(line, "rule"));
	char number[FIELD_MAX], port[FIELD_MAX];

	fprintf(out, "rule #%s of port %s", field_text(line, "number", number),
		field_text(line, "port", port));
	if (command != NULL)
		fprintf(out, " (%s)", command);
}

/* The rule has a limit that the source is not above. */
static bool is_below(const json_t *line)
{
	const json_t *limit = json_object_get(line, "limit");

	return limit != NULL && json_is_false(json_object_get(limit, "above"));
}

static void print_result(FILE *out, const json_t *line)
{
	const char *per = json_string_value(json_object_get(line, "per"));
	char text[FIELD_MAX], port[FIELD_MAX], limit[2 * FIELD_MAX];

	if (!field_has(line, "number")) {
		fputs(" no rule matches: forwarded\n", out);
		return;
	}
	if (field_has(line, "limit")) {
		field_limit(json_object_get(line, "limit"), limit);
		fprintf(out, " %s:", limit);
	}
	if (is_below(line))
		fputs(" goes on behind ", out);
	else
		fputs(field_has(line, "jump") ? " matched: " : " decided by ", out);
	fprintf(out, "rule #%s of port %s", field_text(line, "number", text),
		field_text(line, "port", port));
	if (field_has(line, "jump"))
		fprintf(out, ", which goes on in group %s", field_text(line, "jump", text));
	if (per != NULL && strcmp(per, "packet") == 0 && !field_has(line, "packet") &&
		!field_has(line, "limit"))
		fputs(", if a packet has what it asks for; each packet of the flow is classified",
			out);
	putc('\n', out);
}

static void print_group(FILE *out, const json_t *line)
{
	char group[FIELD_MAX], number[FIELD_MAX], port[FIELD_MAX];

	fprintf(out, "group %s", field_text(line, "group", group));
	if (field_has(line, "behind_number"))
		fprintf(out, ", for packets that rule #%s of port %s does not match",
			field_text(line, "behind_number", number),
			field_text(line, "behind_port", port));
	if (field_has(line, "jump_number"))
		fprintf(out, ", for packets that rule #%s of port %s matches",
			field_text(line, "jump_number", number),
			field_text(line, "jump_port", port));
	putc('\n', out);
}

static void print_traced(FILE *out, const json_t *line)
{
	char text[FIELD_MAX];

	fprintf(out, "%s in by port %s",
		field_has(line, "packet") ? "a packet that comes" : "packets that come",
		field_text(line, "at", text));
	if (field_has(line, "ct_state"))
		fprintf(out, ", %s", field_text(line, "ct_state", text));
	if (field_has(line, "direction"))
		fprintf(out, ", %s", field_text(line, "direction", text));
	putc('\n', out);
}

static void trace_line(struct cli_show *show, const json_t *line)
{
	const char *step = json_string_value(json_object_get(line, "step"));
	char text[FIELD_MAX];
	FILE *out = show->out;

	if (step == NULL)
		return;
	if (strcmp(step, "packet") == 0) {
		print_traced(out, line);
	} else if (strcmp(step, "follows") == 0) {
		fputs(" not searched for: they follow ", out);
		print_traced_rule(out, line);
		putc('\n', out);
	} else if (strcmp(step, "group") == 0) {
		print_group(out, line);
	} else if (strcmp(step, "not_tried") == 0) {
		fputs("   not tried: ", out);
		print_traced_rule(out, line);
		fprintf(out, ": does not match: %s\n", field_text(line, "field", text));
	} else if (strcmp(step, "more_not_tried") == 0) {
		fprintf(out, "   not tried: %s more\n", field_grouped(line, "rules", text));
	} else if (strcmp(step, "compared") == 0) {
		fputs("   ", out);
		print_traced_rule(out, line);
		if (json_is_true(json_object_get(line, "matches")))
			fputs(": matches\n", out);
		else
			fprintf(out, ": does not match: %s\n", field_text(line, "field", text));
	} else if (strcmp(step, "rest_later") == 0) {
		fputs("   the others come after the one that was found\n", out);
	} else if (strcmp(step, "result") == 0) {
		print_result(out, line);
	} else {
		fputs(" ", out);
		print_tuple(out, line);
		if (strcmp(step, "none_fits") == 0)
			fprintf(out, ": none fits: %s\n", field_text(line, "field", text));
		else if (strcmp(step, "all_later") == 0)
			fputs(": all come after the one that was found\n", out);
		else
			fputs(": looked up\n", out);
	}
}

const struct cli_view cli_rule_trace = {trace_line, NULL};

static void diff_line(struct cli_show *show, const json_t *line)
{
	const char *change = json_string_value(json_object_get(line, "change"));
	const char *rule = json_string_value(json_object_get(line, "rule"));
	char sign = '~';

	if (change != NULL && strcmp(change, "added") == 0)
		sign = '+';
	else if (change != NULL && strcmp(change, "removed") == 0)
		sign = '-';
	fprintf(show->out, "%c %s\n", sign, rule != NULL ? rule : "");
}

/* "1 added, 2 removed, 0 moved, 9,997 unchanged" */
static void print_change(FILE *out, const json_t *line)
{
	static const char *const names[] = {"added", "removed", "moved", "unchanged"};
	char text[FIELD_MAX];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fprintf(out, "%s%s %s", i > 0 ? ", " : "", field_grouped(line, names[i], text),
			names[i]);
}

static void diff_end(struct cli_show *show, const json_t *end)
{
	print_change(show->out, end);
	putc('\n', show->out);
}

const struct cli_view cli_rule_diff = {diff_line, diff_end};

static void print_ms(FILE *out, const json_t *line, const char *name)
{
	fprintf(out, "%.1f ms", (double)field_number(line, name) / 1000);
}

static void load_line(struct cli_show *show, const json_t *line)
{
	const char *warning = json_string_value(json_object_get(line, "warning"));
	char text[FIELD_MAX];

	if (warning != NULL) {
		fprintf(show->out, "%s\n", warning);
		return;
	}
	fprintf(show->out, "epoch %s is in force: rules ", field_text(line, "epoch", text));
	print_change(show->out, line);
	putc('\n', show->out);
	if (field_has(line, "took_us")) {
		fputs("all live flows were decided by them after ", show->out);
		print_ms(show->out, line, "flows_us");
		fputs(", and NICs had let go the old ones after ", show->out);
		print_ms(show->out, line, "took_us");
		putc('\n', show->out);
	}
	if (field_has(line, "confirm"))
		fprintf(show->out,
			"unless millrace rule confirm comes within %s s the rules before are in "
			"force again\n",
			field_text(line, "confirm", text));
}

const struct cli_view cli_rule_load = {load_line, NULL};

static void confirm_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	fprintf(show->out, "epoch %s stays in force\n", field_text(line, "epoch", text));
}

const struct cli_view cli_rule_confirm = {confirm_line, NULL};

static void status_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX], other[FIELD_MAX];

	fprintf(show->out, "epoch %s, %s", field_text(line, "epoch", text),
		field_text(line, "state", other));
	if (field_has(line, "workers"))
		fprintf(show->out, ": %s of %s workers have decided all their flows",
			field_text(line, "workers", text), field_text(line, "of", other));
	if (field_number(line, "nic_rules_leaving") > 0)
		fprintf(show->out, "; %s rules are to leave NICs",
			field_grouped(line, "nic_rules_leaving", text));
	fprintf(show->out, "; %s rules", field_grouped(line, "rules", text));
	if (field_has(line, "file"))
		fprintf(show->out, " of %s", field_text(line, "file", text));
	if (field_has(line, "before"))
		fprintf(show->out, "; rule rollback goes back to %s rules",
			field_grouped(line, "before", text));
	if (field_has(line, "confirm"))
		fprintf(show->out, ", and does so by itself in %s s",
			field_text(line, "confirm", text));
	putc('\n', show->out);
}

const struct cli_view cli_rule_status = {status_line, NULL};
