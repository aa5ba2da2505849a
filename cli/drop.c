/* SPDX-License-Identifier: BSD-3-Clause */
/* drop show: a line for each reason, and where there are several wires, one on which. drop follow: one for each packet. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"

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

/* FIN to CWR, as a letter each; "-" for none. */
static const char *tcp_flags(uint64_t flags, char text[9])
{
	static const char letters[] = "FSRPAUEC";
	size_t n = 0;

	for (unsigned i = 0; i < 8; i++)
		if (flags >> i & 1)
			text[n++] = letters[i];
	if (n == 0)
		text[n++] = '-';
	text[n] = '\0';
	return text;
}

static void print_headers(FILE *out, const json_t *line)
{
	char proto[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX], flags[9];

	if (!field_has(line, "src")) {
		fputs("not IP, or cut", out);
		return;
	}
	fprintf(out, "%-5s %s -> %s", field_proto(line, proto),
		field_endpoint(line, "src", "sport", from),
		field_endpoint(line, "dst", "dport", to));
	if (field_has(line, "tcp_flags"))
		fprintf(out, " %s", tcp_flags(field_number(line, "tcp_flags"), flags));
	if (field_has(line, "fragment"))
		fprintf(out, " %s fragment", field_text(line, "fragment", from));
}

static void follow_line(struct cli_show *show, const json_t *line)
{
	const char *time = json_string_value(json_object_get(line, "time"));
	char text[FIELD_MAX], more[FIELD_MAX], local[WHEN_MAX];
	int64_t us;

	if (time != NULL && when_parse(time, &us))
		fprintf(show->out, " %s", when_short(local, us));
	else
		fprintf(show->out, " %-18s", field_text(line, "time", text));
	if (field_has(line, "left_out")) {
		fprintf(show->out, "  %s more, left out\n", field_grouped(line, "left_out", text));
		return;
	}
	fprintf(show->out, "  %-12s  %-8s  ", field_text(line, "reason", text),
		field_text(line, "port", more));
	print_headers(show->out, line);
	fprintf(show->out, ", %s bytes", field_grouped(line, "length", text));
	if (field_has(line, "rule"))
		fprintf(show->out, ", rule %s of port %s", field_text(line, "rule", text),
			field_text(line, "rule_port", more));
	if (field_number(line, "wire") > 0)
		fprintf(show->out, "  wire %s", field_text(line, "wire", text));
	if (field_number(line, "zone") > 0)
		fprintf(show->out, "  zone %s", field_text(line, "zone", text));
	putc('\n', show->out);
}

const struct cli_view cli_drop_follow = {follow_line, NULL};
