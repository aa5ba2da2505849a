/* SPDX-License-Identifier: BSD-3-Clause */
/* flow block, flow unblock, block list: a line for each block. */
#include "cli/block.h"

#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

/* Where further lines of a sentence begin. */
#define FURTHER 5

static const struct table_column columns[] = {
	{"number", 7, true},
	{"packets", 11, true},
	{"bytes", 9, true},
	{"left", 8, true},
	{"block", 36, false},
	{"reason", 12, false},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

void block_sentence(FILE *out, const char *head, const json_t *block)
{
	char text[FIELD_MAX], span[WHEN_MAX], line[4 * FIELD_MAX], begin[2 * FIELD_MAX];
	int length = snprintf(line, sizeof(line), "%s", field_text(block, "match", text));

	if (field_has(block, "expires_in_us"))
		length += snprintf(line + length, sizeof(line) - (size_t)length, ", for %s more",
			when_span(span, field_number(block, "expires_in_us")));
	if (field_has(block, "reason"))
		snprintf(line + length, sizeof(line) - (size_t)length, ": %s",
			field_text(block, "reason", text));
	snprintf(begin, sizeof(begin), "%s %s:", head, field_text(block, "number", text));
	print_wrapped(out, begin, line, FURTHER);
}

static void print_block(FILE *out, const char *verb, const json_t *line)
{
	char match[FIELD_MAX], number[FIELD_MAX];

	fprintf(out, "%s: %s, block %s", verb, field_text(line, "match", match),
		field_text(line, "number", number));
}

static void block_line(struct cli_show *show, const json_t *line)
{
	char reason[FIELD_MAX], span[WHEN_MAX];
	bool is_new = !json_is_false(json_object_get(line, "new"));

	print_block(show->out, is_new ? "blocked" : "blocked already, changed", line);
	if (field_has(line, "expires_in_us"))
		fprintf(show->out, ", for %s more",
			when_span(span, field_number(line, "expires_in_us")));
	if (field_has(line, "reason"))
		fprintf(show->out, ": %s", field_text(line, "reason", reason));
	putc('\n', show->out);
}

const struct cli_view cli_flow_block = {block_line, NULL};

static void unblock_line(struct cli_show *show, const json_t *line)
{
	char packets[FIELD_MAX], bytes[FIELD_MAX];

	print_block(show->out, "unblocked", line);
	fprintf(show->out, "; it dropped %s packets, %s\n", field_grouped(line, "packets", packets),
		field_bytes(line, "bytes", bytes));
}

const struct cli_view cli_flow_unblock = {unblock_line, NULL};

static void list_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX], left[WHEN_MAX];

	if (show->lines == 0) {
		table_init(&show->table, show->out, columns);
		table_titles(&show->table, N_COLUMNS);
	}
	table_cell(&show->table, field_text(line, "number", text));
	table_cell(&show->table, field_grouped(line, "packets", text));
	table_cell(&show->table, field_bytes(line, "bytes", text));
	table_cell(&show->table,
		field_has(line, "expires_in_us")
			? when_clock(left, (int64_t)field_number(line, "expires_in_us"))
			: "-");
	table_cell(&show->table, field_text(line, "match", text));
	table_cell(&show->table, field_has(line, "reason") ? field_text(line, "reason", text) : "");
	table_end(&show->table);
}

static void list_end(struct cli_show *show, const json_t *end)
{
	char shown[TEXT_NUMBER_MAX], text[FIELD_MAX];

	fprintf(show->out, " %s of %s blocks", text_grouped(shown, show->lines),
		field_grouped(end, "blocks", text));
	fprintf(show->out, ", with room for %s", field_grouped(end, "max", text));
	if (field_has(end, "cursor"))
		fprintf(show->out, "; more with --cursor %s", field_text(end, "cursor", text));
	putc('\n', show->out);
}

const struct cli_view cli_block_list = {list_line, list_end};
