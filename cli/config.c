/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's commands about the configuration. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/yaml.h"

/* A line shows so many characters of a value; longer ones, lists, are cut. */
#define VALUE_MAX 60

/* config show: as a configuration file would have it. */
static void config_line(struct cli_show *show, const json_t *line)
{
	yaml_write(show->out, line);
}

const struct cli_view cli_config_show = {config_line, NULL};

static const char *value_text(const json_t *line, const char *name, char text[VALUE_MAX])
{
	const json_t *value = json_object_get(line, name);
	char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = json_is_string(value) ? json_string_value(value) : dumped;

	text_printable(text, VALUE_MAX, shown != NULL ? shown : "");
	free(dumped);
	return text;
}

/* "~ timeouts.udp-open: 180 -> 30" */
static void print_key(FILE *out, const json_t *line, const char *change)
{
	const char *key = json_string_value(json_object_get(line, "key"));
	const char *why = json_string_value(json_object_get(line, "why"));
	const bool overridden = strcmp(change, "overridden") == 0;
	char before[VALUE_MAX], after[VALUE_MAX], number[FIELD_MAX];

	if (overridden)
		fprintf(out,
			"  %s: the file says %s, but the engine's command line says %s, which "
			"stays",
			key, value_text(line, "file", before), value_text(line, "stays", after));
	else
		fprintf(out, "%c %s: %s -> %s", strcmp(change, "now") == 0 ? '~' : '!', key,
			value_text(line, "before", before), value_text(line, "after", after));
	if (field_has(line, "line"))
		fprintf(out, " (line %s)", field_text(line, "line", number));
	if (strcmp(change, "restart") == 0)
		fprintf(out, ": restart to change it%s%s", why != NULL ? "; " : "",
			why != NULL ? why : "");
	putc('\n', out);
}

/* A key, a rule or a warning. */
static void print_difference(FILE *out, const json_t *line)
{
	const char *change = json_string_value(json_object_get(line, "change"));
	const char *rule = json_string_value(json_object_get(line, "rule"));
	const char *warning = json_string_value(json_object_get(line, "warning"));

	if (warning != NULL)
		fprintf(out, "%s\n", warning);
	else if (rule != NULL && change != NULL)
		fprintf(out, "%c rule %s\n",
			strcmp(change, "added") == 0	 ? '+'
			: strcmp(change, "removed") == 0 ? '-'
							 : '~',
			rule);
	else if (change != NULL && field_has(line, "key"))
		print_key(out, line, change);
}

/* "2 keys; rules 1 added, 0 removed, 0 moved, 3 unchanged; blocks 1 added, 0 removed; exports 1 opened, 0 closed" */
static void print_sums(FILE *out, const json_t *line)
{
	const json_t *rules = json_object_get(line, "rules");
	char text[FIELD_MAX], other[FIELD_MAX];

	fprintf(out, "%s key%s", field_grouped(line, "keys", text),
		field_number(line, "keys") == 1 ? "" : "s");
	if (rules != NULL) {
		fprintf(out, "; rules %s added, ", field_grouped(rules, "added", text));
		fprintf(out, "%s removed, ", field_grouped(rules, "removed", text));
		fprintf(out, "%s moved, ", field_grouped(rules, "moved", text));
		fprintf(out, "%s unchanged", field_grouped(rules, "unchanged", text));
	}
	if (field_number(line, "blocks_added") + field_number(line, "blocks_removed") > 0)
		fprintf(out, "; blocks %s added, %s removed",
			field_grouped(line, "blocks_added", text),
			field_grouped(line, "blocks_removed", other));
	if (field_number(line, "exports_opened") + field_number(line, "exports_closed") > 0)
		fprintf(out, "; exports %s opened, %s closed",
			field_grouped(line, "exports_opened", text),
			field_grouped(line, "exports_closed", other));
	putc('\n', out);
}

static void diff_line(struct cli_show *show, const json_t *line)
{
	print_difference(show->out, line);
}

static void diff_end(struct cli_show *show, const json_t *end)
{
	char text[FIELD_MAX];

	print_sums(show->out, end);
	if (field_number(end, "restart") > 0)
		fprintf(show->out,
			"config apply would refuse it: %s key%s can only be changed by a restart\n",
			field_grouped(end, "restart", text),
			field_number(end, "restart") == 1 ? "" : "s");
}

const struct cli_view cli_config_diff = {diff_line, diff_end};

static void print_saved(FILE *out, const json_t *line)
{
	const char *saved = json_string_value(json_object_get(line, "saved"));

	if (saved != NULL)
		fprintf(out, "%s was replaced by it\n", saved);
}

static void apply_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	if (!field_has(line, "number")) {
		print_difference(show->out, line);
		return;
	}
	fprintf(show->out, "configuration %s is in effect: ", field_text(line, "number", text));
	print_sums(show->out, line);
	if (field_has(line, "took_us")) {
		fprintf(show->out, "all live flows were decided by its rules after %.1f ms",
			(double)field_number(line, "flows_us") / 1000);
		fprintf(show->out, ", and NICs had let go the old ones after %.1f ms\n",
			(double)field_number(line, "took_us") / 1000);
	}
	if (field_has(line, "confirm"))
		fprintf(show->out,
			"unless millrace config confirm comes within %s s the configuration before "
			"is in effect again\n",
			field_text(line, "confirm", text));
	print_saved(show->out, line);
}

const struct cli_view cli_config_apply = {apply_line, NULL};

static void confirm_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	fprintf(show->out, "configuration %s stays in effect\n", field_text(line, "number", text));
	print_saved(show->out, line);
}

const struct cli_view cli_config_confirm = {confirm_line, NULL};

static void status_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	fprintf(show->out, "configuration %s", field_text(line, "number", text));
	if (field_has(line, "applied"))
		fprintf(show->out, ", of %s", field_text(line, "applied", text));
	if (field_has(line, "since"))
		fprintf(show->out, ", since %s", field_text(line, "since", text));
	if (field_has(line, "file"))
		fprintf(show->out, "; the engine starts with %s", field_text(line, "file", text));
	if (json_is_false(json_object_get(line, "saved")))
		fputs(", which it is not saved to", show->out);
	if (json_is_true(json_object_get(line, "before")))
		fputs("; config rollback goes back to the one before", show->out);
	if (field_has(line, "confirm"))
		fprintf(show->out, ", and does so by itself in %s s",
			field_text(line, "confirm", text));
	putc('\n', show->out);
}

const struct cli_view cli_config_status = {status_line, NULL};
