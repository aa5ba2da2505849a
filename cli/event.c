/* SPDX-License-Identifier: BSD-3-Clause */
/* event follow: a line for each event, also of kinds that this program does not know. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

static void print_time(FILE *out, const json_t *line)
{
	const char *time = json_string_value(json_object_get(line, "time"));
	char text[FIELD_MAX], local[WHEN_MAX];
	int64_t us;

	if (time && when_parse(time, &us))
		fprintf(out, " %s", when_short(local, us));
	else
		fprintf(out, " %-18s", field_text(line, "time", text));
}

static void print_flow(FILE *out, const json_t *line)
{
	char proto[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX], text[FIELD_MAX];

	fprintf(out, "%-5s %s -> %s", field_proto(line, proto),
		field_endpoint(line, "src", "sport", from),
		field_endpoint(line, "dst", "dport", to));
	if (field_has(line, "rule"))
		fprintf(out, "  rule %s of port %s, %s", field_text(line, "rule", text),
			field_text(line, "rule_port", from), field_text(line, "verdict", to));
	if (field_number(line, "lost") > 0)
		fprintf(out, ", %s lines lost before", field_text(line, "lost", text));
	if (field_has(line, "end_reason"))
		fprintf(out, "  %s", field_text(line, "end_reason", text));
	if (field_has(line, "before") && field_has(line, "after"))
		fprintf(out, "  %s %s (%s)", field_text(line, "port", from),
			where_text(line, "after", to), field_text(line, "reason", text));
	if (field_number(line, "wire") > 0)
		fprintf(out, "  wire %s", field_text(line, "wire", text));
	if (field_number(line, "zone") > 0)
		fprintf(out, "  zone %s", field_text(line, "zone", text));
}

/* Whatever the event says, by its own keys. */
static void print_rest(FILE *out, const json_t *line)
{
	const char *before = "", *key;
	char name[40], text[FIELD_MAX];
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)line, key, value)
	{
		if (strcmp(key, "time") == 0 || strcmp(key, "event") == 0 ||
			json_is_object(value) || json_is_array(value))
			continue;
		/* a sentence stands for itself */
		fprintf(out, "%s%s%s", before,
			strcmp(key, "what") == 0 ? "" : text_printable(name, sizeof(name), key),
			strcmp(key, "what") == 0 ? "" : " ");
		fputs(field_text(line, key, text), out);
		before = ", ";
	}
}

static void event_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	print_time(show->out, line);
	fprintf(show->out, "  %-17s  ", field_text(line, "event", text));
	if (field_has(line, "src") && field_has(line, "dst"))
		print_flow(show->out, line);
	else
		print_rest(show->out, line);
	putc('\n', show->out);
}

const struct cli_view cli_event_follow = {event_line, NULL};
