/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/table.h"

/* Before the first column, and between two when all is well. */
#define MARGIN 1
#define GAP 2

/* Characters, of text in UTF-8: bytes that do not go on with one. */
static unsigned width_of(const char *text)
{
	unsigned width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void begin_row(struct table *table)
{
	table->next = 0;
	table->at = 0;
	table->place = MARGIN;
}

void table_init(struct table *table, FILE *out, const struct table_column *columns)
{
	*table = (struct table){.out = out, .columns = columns, .gap = GAP};
	begin_row(table);
}

void table_narrow(struct table *table)
{
	table->gap = 1;
}

void table_cell(struct table *table, const char *text)
{
	const struct table_column *column = &table->columns[table->next++];
	unsigned width = width_of(text), begin = table->place;

	if (column->right && width < column->width)
		begin += column->width - width;
	/* pressed, one blank has to do; no blanks at all behind the last cell with something in it */
	if (width > 0) {
		if (begin < table->at + 1)
			begin = table->at + 1;
		fprintf(table->out, "%*s%s", (int)(begin - table->at), "", text);
		table->at = begin + width;
	}
	table->place += column->width + table->gap;
}

void table_end(struct table *table)
{
	putc('\n', table->out);
	begin_row(table);
}

void table_titles(struct table *table, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		table_cell(table, table->columns[i].title);
	table_end(table);
}
