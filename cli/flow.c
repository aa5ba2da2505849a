/* SPDX-License-Identifier: BSD-3-Clause */
/* flow list and flow kill: a line for each flow. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

/* "255.255.255.255:65535" */
#define IPV4_END 21

/* Without --top: room for the state, and no first column. Each fits 100 columns with IPv4 and an open flow. */
static const struct table_column plain[] = {
	{"where", 8, false},
	{"wire", 4, true},
	{"proto", 5, false},
	{"initiator", IPV4_END, false},
	{"responder", IPV4_END, false},
	{"state", 5, false},
	{"pkts ->", 9, true},
	{"<-", 9, true},
	{"age", 8, true},
};

/*
 * There is no room for state and wire: they stand behind the protocol, the state where it is not open,
 * the wire where it is not 0.
 */
#define TOP_COLUMNS(title)                      \
	{                                       \
		{title, 9, true},               \
		{"where", 8, false},            \
		{"proto", 5, false},            \
		{"initiator", IPV4_END, false}, \
		{"responder", IPV4_END, false}, \
		{"pkts ->", 10, true},          \
		{"<-", 10, true},               \
		{"age", 8, true},               \
	}

static const struct table_column top_rate[] = TOP_COLUMNS("rate pps");
static const struct table_column top_packets[] = TOP_COLUMNS("packets");
static const struct table_column top_bytes[] = TOP_COLUMNS("bytes");

#define N_PLAIN (sizeof(plain) / sizeof(plain[0]))
#define N_TOP (sizeof(top_rate) / sizeof(top_rate[0]))

enum order {
	ORDER_NONE,
	ORDER_RATE,
	ORDER_PACKETS,
	ORDER_BYTES,
};

static enum order order_of(const struct cli_args *args)
{
	const char *by = json_string_value(json_object_get(args->with, "by"));

	if (!cli_args_given(args, CLI_TOP))
		return ORDER_NONE;
	/* the age stands in the last column in any case */
	if (by && (strcmp(by, "packets") == 0 || strcmp(by, "age") == 0))
		return ORDER_PACKETS;
	return by && strcmp(by, "bytes") == 0 ? ORDER_BYTES : ORDER_RATE;
}

static void begin(struct cli_show *show, enum order order)
{
	static const struct table_column *const columns[] = {
		[ORDER_NONE] = plain,
		[ORDER_RATE] = top_rate,
		[ORDER_PACKETS] = top_packets,
		[ORDER_BYTES] = top_bytes,
	};

	table_init(&show->table, show->out, columns[order]);
	table_narrow(&show->table);
	table_titles(&show->table, order == ORDER_NONE ? N_PLAIN : N_TOP);
}

/* What the list is ordered by. */
static void order_cell(struct cli_show *show, enum order order, const json_t *line)
{
	uint64_t packets = field_number(line, "packets") + field_number(line, "reverse_packets");
	uint64_t bytes = field_number(line, "bytes") + field_number(line, "reverse_bytes");
	char text[FIELD_MAX];

	if (order == ORDER_RATE)
		table_cell(&show->table, field_grouped(line, "rate_pps", text));
	else if (order == ORDER_PACKETS)
		table_cell(&show->table, text_grouped(text, packets));
	else if (order == ORDER_BYTES)
		table_cell(&show->table, text_bytes(text, bytes));
}

/* "0", and "0/7" in zone 7: equal addresses of two zones are two flows. Returns `text`. */
static const char *wire_text(const json_t *line, char text[FIELD_MAX])
{
	uint64_t zone = field_number(line, "zone");
	size_t length = strlen(field_text(line, "wire", text));

	if (zone > 0)
		snprintf(text + length, FIELD_MAX - length, "/%llu", (unsigned long long)zone);
	return text;
}

/* With --top: "tcp", "tcp w1", "tcp w0/7", "udp new", "udp new w1". */
static void proto_cell(struct cli_show *show, const json_t *line)
{
	char proto[FIELD_MAX], state[FIELD_MAX], number[FIELD_MAX], text[3 * FIELD_MAX + 4];
	bool wire = field_number(line, "wire") > 0 || field_number(line, "zone") > 0;
	bool open = strcmp(field_text(line, "state", state), "open") == 0;

	snprintf(text, sizeof(text), "%s%s%s%s%s", field_proto(line, proto), open ? "" : " ",
		open ? "" : state, wire ? " w" : "", wire ? wire_text(line, number) : "");
	table_cell(&show->table, text);
}

static void where_cell(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	if (json_is_true(json_object_get(line, "blocked")))
		table_cell(&show->table, "blocked");
	else
		table_cell(
			&show->table, where_text(json_object_get(line, "offload"), "state", text));
}

static void age_cell(struct cli_show *show, const json_t *line)
{
	char text[WHEN_MAX];
	const char *start = json_string_value(json_object_get(line, "start"));
	int64_t start_us;

	if (start && when_parse(start, &start_us))
		table_cell(&show->table, when_clock(text, show->now_us - start_us));
	else
		table_cell(&show->table, "-");
}

static void list_line(struct cli_show *show, const json_t *line)
{
	enum order order = order_of(show->args);
	char text[FIELD_MAX];

	if (show->lines == 0)
		begin(show, order);
	order_cell(show, order, line);
	where_cell(show, line);
	if (order == ORDER_NONE) {
		table_cell(&show->table, wire_text(line, text));
		table_cell(&show->table, field_proto(line, text));
	} else {
		proto_cell(show, line);
	}
	table_cell(&show->table, field_endpoint(line, "src", "sport", text));
	table_cell(&show->table, field_endpoint(line, "dst", "dport", text));
	if (order == ORDER_NONE)
		table_cell(&show->table, field_text(line, "state", text));
	table_cell(&show->table, field_grouped(line, "packets", text));
	table_cell(&show->table, field_grouped(line, "reverse_packets", text));
	age_cell(show, line);
	table_end(&show->table);
}

static void list_end(struct cli_show *show, const json_t *end)
{
	char shown[TEXT_NUMBER_MAX], all[FIELD_MAX], cursor[FIELD_MAX];

	fprintf(show->out, " %s of %s flows", text_grouped(shown, show->lines),
		field_grouped(end, "flows", all));
	if (field_has(end, "cursor"))
		fprintf(show->out, "; more with --cursor %s", field_text(end, "cursor", cursor));
	putc('\n', show->out);
}

const struct cli_view cli_flow_list = {list_line, list_end};

static void kill_line(struct cli_show *show, const json_t *line)
{
	char proto[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX], there[FIELD_MAX], back[FIELD_MAX];

	fprintf(show->out, "killed: %s %s -> %s, %s packets -> and %s <-\n",
		field_proto(line, proto), field_endpoint(line, "src", "sport", from),
		field_endpoint(line, "dst", "dport", to), field_grouped(line, "packets", there),
		field_grouped(line, "reverse_packets", back));
}

const struct cli_view cli_flow_kill = {kill_line, NULL};
