/* SPDX-License-Identifier: BSD-3-Clause */
/* export show: a line for each export, and below it what went wrong. */
#include "cli/field.h"
#include "cli/view.h"

static const struct table_column columns[] = {
	{"export", 40, false},
	{"up", 4, false},
	{"records", 14, true},
	{"written", 14, true},
	{"waiting", 11, true},
	{"lost", 11, true},
	{"sent", 9, true},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void export_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	if (show->lines == 0) {
		table_init(&show->table, show->out, columns);
		table_titles(&show->table, N_COLUMNS);
	}
	table_cell(&show->table, field_text(line, "to", text));
	table_cell(&show->table, json_is_true(json_object_get(line, "up")) ? "yes" : "no");
	table_cell(&show->table, field_grouped(line, "records", text));
	table_cell(&show->table, field_grouped(line, "written", text));
	table_cell(&show->table, field_grouped(line, "waiting", text));
	table_cell(&show->table, field_grouped(line, "lost", text));
	table_cell(&show->table, field_bytes(line, "bytes", text));
	table_end(&show->table);
	if (field_number(line, "refused") != 0)
		fprintf(show->out, "   %s times nobody listened\n",
			field_grouped(line, "refused", text));
	if (field_has(line, "last_failure"))
		fprintf(show->out, "   last failure: %s\n", field_text(line, "last_failure", text));
}

static void export_end(struct cli_show *show, const json_t *end)
{
	(void)end;
	if (show->lines == 0)
		fputs("there are no exports (docs/export.md says how to have some)\n", show->out);
}

const struct cli_view cli_export_show = {export_line, export_end};
