/* SPDX-License-Identifier: BSD-3-Clause */
/* wire show: where every packet went, as a sum that can be checked. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/field.h"
#include "cli/view.h"
#include "cli/where.h"

static const struct table_column columns[] = {
	{"wire", 4, true},
	{"ports", 15, false},
	{"received", 17, true},
	{"= out", 17, true},
	{"+ delivered", 11, true},
	{"+ dropped", 13, true},
	{"+ held", 8, true},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const char *const parts[] = {"out", "delivered", "dropped", "held"};

static void print_ports(struct cli_show *show, const json_t *line)
{
	const json_t *names = json_object_get(line, "ports"), *name;
	char text[2 * FIELD_MAX + 2] = "";
	size_t i, length = 0;

	json_array_foreach(names, i, name)
	{
		const char *known = json_string_value(name);

		if (i > 1 || !known)
			break;
		if (i > 0)
			text[length++] = ' ';
		length += strlen(text_printable(text + length, FIELD_MAX, known));
	}
	table_cell(&show->table, length > 0 ? text : "-");
}

/* A sum that does not come out is the engine's fault, and worth a line. */
static void check_sum(FILE *out, const json_t *line)
{
	/* copies, and answers of ours, leave beside what was received */
	uint64_t received = field_number(line, "received") + field_number(line, "mirrored") +
			    field_number(line, "reject_replies") +
			    field_number(line, "from_kernel"),
		 sum = 0;
	char text[TEXT_NUMBER_MAX];

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum += field_number(line, parts[i]);
	if (sum != received)
		fprintf(out, "       THE SUM IS WRONG: %s packets too %s on the right\n",
			text_grouped(text, sum > received ? sum - received : received - sum),
			sum > received ? "many" : "few");
}

static void print_more(FILE *out, const json_t *line)
{
	char text[FIELD_MAX], more[FIELD_MAX];

	fprintf(out, "       %s in, %s out", field_bytes(line, "received_bytes", text),
		field_bytes(line, "out_bytes", more));
	fprintf(out, "; %s flows, %s packets non-IP", field_grouped(line, "flows", text),
		field_grouped(line, "non_ip", more));
	fprintf(out, "; not tied: %s fragments, %s ICMP errors\n",
		field_grouped(line, "fragments_untied", text),
		field_grouped(line, "icmp_untied", more));
	if (field_number(line, "mirrored") != 0)
		fprintf(out, "       besides those received: %s copies, made by samples of rules\n",
			field_grouped(line, "mirrored", text));
	if (field_number(line, "from_kernel") != 0)
		fprintf(out, "       besides those received: %s that the kernel sent\n",
			field_grouped(line, "from_kernel", text));
	if (field_number(line, "captured") + field_number(line, "capture_lost") != 0)
		fprintf(out, "       copies for capture files: %s, and %s lost\n",
			field_grouped(line, "captured", text),
			field_grouped(line, "capture_lost", more));
	if (field_number(line, "reject_replies") + field_number(line, "reject_limited") +
			field_number(line, "reject_unanswered") !=
		0) {
		fprintf(out, "       besides those received: %s answers to rejected packets; ",
			field_grouped(line, "reject_replies", text));
		fprintf(out, "%s were too many a second, %s are not to be answered\n",
			field_grouped(line, "reject_limited", text),
			field_grouped(line, "reject_unanswered", more));
	}
	if (field_number(line, "logged") + field_number(line, "log_lost") != 0)
		fprintf(out, "       lines that rules logged: %s, and %s lost\n",
			field_grouped(line, "logged", text), field_grouped(line, "log_lost", more));
	if (field_number(line, "one_sided") != 0)
		fprintf(out, "       one-sided: %s packets that opened no flow\n",
			field_grouped(line, "one_sided", text));
	print_sent_on(out, "       besides, sent on by the NIC alone:", line, "nic_");
}

static void wire_line(struct cli_show *show, const json_t *line)
{
	char text[FIELD_MAX];

	if (show->lines == 0) {
		table_init(&show->table, show->out, columns);
		table_titles(&show->table, N_COLUMNS);
	}
	table_cell(&show->table, field_text(line, "wire", text));
	print_ports(show, line);
	table_cell(&show->table, field_grouped(line, "received", text));
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		table_cell(&show->table, field_grouped(line, parts[i], text));
	table_end(&show->table);
	check_sum(show->out, line);
	print_more(show->out, line);
}

const struct cli_view cli_wire_show = {wire_line, NULL};
