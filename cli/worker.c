/* SPDX-License-Identifier: BSD-3-Clause */
/* worker show: a block for each thread. */
#include <stdio.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"

static const struct table_column ports[] = {
	{"port", 14, false},
	{"rx packets", 18, true},
	{"rx bytes", 9, true},
	{"tx packets", 18, true},
	{"tx bytes", 9, true},
};

#define N_PORT_COLUMNS (sizeof(ports) / sizeof(ports[0]))

/* "worker 0 on cpu 1, avx2: 41,207 of 1,048,576 flows, busy 43.0 %, asleep 12.0 %" */
static void print_head(FILE *out, const json_t *line)
{
	char text[FIELD_MAX], more[FIELD_MAX];
	const char *before = ": ";

	fprintf(out, " %s", field_text(line, "thread", text));
	if (field_has(line, "cpu"))
		fprintf(out, " on cpu %s", field_text(line, "cpu", text));
	if (field_has(line, "simd"))
		fprintf(out, ", %s", field_text(line, "simd", text));
	if (field_has(line, "flows")) {
		fprintf(out, "%s%s of %s flows", before, field_grouped(line, "flows", text),
			field_grouped(line, "capacity", more));
		before = ", ";
	}
	/* not known before it has run */
	if (field_has(line, "busy_percent"))
		fprintf(out, "%sbusy %s %%, asleep %s %%", before,
			field_decimal(line, "busy_percent", text),
			field_decimal(line, "sleep_percent", more));
	putc('\n', out);
}

static void print_packets(FILE *out, const json_t *line)
{
	static const struct {
		const char *key, *name;
	} counters[] = {
		{"received", "   received "},
		{"out", ", out "},
		{"dropped", ", dropped "},
		{"held", ", held "},
		{"handed_out", "\n   handed to other threads "},
		{"handed_in", ", by other threads "},
	};
	char text[FIELD_MAX];

	for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		fprintf(out, "%s%s", counters[i].name, field_grouped(line, counters[i].key, text));
	putc('\n', out);
}

/* Silent as long as it was never so. */
static void print_crowded(FILE *out, const json_t *line)
{
	char flows[FIELD_MAX], packets[FIELD_MAX];

	if (field_number(line, "crowded_flows_s") == 0 &&
		field_number(line, "crowded_packets_s") == 0)
		return;
	fprintf(out, "   far more than its share of new flows for %s s, of packets for %s s\n",
		field_grouped(line, "crowded_flows_s", flows),
		field_grouped(line, "crowded_packets_s", packets));
}

static void print_time(FILE *out, const json_t *line)
{
	const json_t *stages = json_object_get(line, "stages"), *value;
	char text[FIELD_MAX], more[FIELD_MAX];
	const char *before = ": ", *key;

	fprintf(out, "   bursts %s", field_grouped(line, "bursts", text));
	if (field_has(line, "packets_per_burst"))
		fprintf(out, " of %s packets", field_decimal(line, "packets_per_burst", more));
	fprintf(out, ", idle polls %s\n", field_grouped(line, "idle_polls", text));
	/* nothing to divide by, nothing to tell */
	if (!field_has(line, "cycles_per_packet") && json_object_size(stages) == 0)
		return;
	fprintf(out, "   cycles a packet %s", field_decimal(line, "cycles_per_packet", text));
	/* C has no const iterator in jansson: the object is not changed */
	json_object_foreach((json_t *)(uintptr_t)stages, key, value)
	{
		(void)value;
		fprintf(out, "%s%s %s", before, text_printable(more, 40, key),
			field_decimal(stages, key, text));
		before = ", ";
	}
	putc('\n', out);
}

static void print_ports(struct cli_show *show, const json_t *list)
{
	const json_t *port;
	char text[FIELD_MAX];
	size_t i;

	if (json_array_size(list) == 0)
		return;
	table_init(&show->table, show->out, ports);
	fputs("  ", show->out);
	table_titles(&show->table, N_PORT_COLUMNS);
	json_array_foreach(list, i, port)
	{
		fputs("  ", show->out);
		table_cell(&show->table, field_text(port, "port", text));
		table_cell(&show->table, field_grouped(port, "rx_packets", text));
		table_cell(&show->table, field_bytes(port, "rx_bytes", text));
		table_cell(&show->table, field_grouped(port, "tx_packets", text));
		table_cell(&show->table, field_bytes(port, "tx_bytes", text));
		table_end(&show->table);
	}
}

static void worker_line(struct cli_show *show, const json_t *line)
{
	print_head(show->out, line);
	print_packets(show->out, line);
	print_crowded(show->out, line);
	print_time(show->out, line);
	print_ports(show, json_object_get(line, "ports"));
}

const struct cli_view cli_worker_show = {worker_line, NULL};
