/* SPDX-License-Identifier: BSD-3-Clause */
/* drop show: a line for each reason, and where there are several wires, one on which. */
#include <stdio.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"

static const struct table_column columns[] = {
	{"reason", 16, false},
	{"packets", 15, true},
	{"what", 60, false},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void print_wires(FILE *out, const json_t *wires)
{
	const char *before = "   ";
	char text[TEXT_NUMBER_MAX];
	const json_t *packets;
	size_t wire;

	if (json_array_size(wires) < 2)
		return;
	json_array_foreach(wires, wire, packets)
	{
		if (json_integer_value(packets) <= 0)
			continue;
		fprintf(out, "%swire %zu: %s", before, wire,
			text_grouped(text, (uint64_t)json_integer_value(packets)));
		before = ", ";
	}
	if (*before == ',')
		putc('\n', out);
}

static void drop_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	if (show->lines == 0) {
		table_init(&show->table, show->out, columns);
		table_titles(&show->table, N_COLUMNS);
	}
	table_cell(&show->table, field_text(line, "reason", text));
	table_cell(&show->table, field_grouped(line, "packets", text));
	table_cell(&show->table, field_text(line, "what", text));
	table_end(&show->table);
	print_wires(show->out, json_object_get(line, "wires"));
}

const struct cli_view cli_drop_show = {drop_line, NULL};
