/* SPDX-License-Identifier: BSD-3-Clause */
/* domain show: wires and routers. */
#include <stdio.h>
#include <string.h>

#include "cli/field.h"
#include "cli/view.h"

static void print_ports(FILE *out, const json_t *names)
{
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name)
		fprintf(out, "%s%s", i > 0 ? " " : "", json_string_value(name));
}

static void print_punts(FILE *out, const json_t *punts)
{
	char text[FIELD_MAX], more[FIELD_MAX], what[FIELD_MAX], reason[FIELD_MAX];
	const json_t *punt;
	size_t i;

	json_array_foreach(punts, i, punt)
	{
		if (field_number(punt, "packets") + field_number(punt, "limited") == 0)
			continue;
		fprintf(out, "       %-12s %12s", field_text(punt, "reason", reason),
			field_grouped(punt, "packets", text));
		if (field_number(punt, "limited") != 0)
			fprintf(out, ", %s above the rate", field_grouped(punt, "limited", more));
		fprintf(out, "  %s\n", field_text(punt, "what", what));
	}
}

/* Prints faults of the kernel's side of a router, and the number of routes that the kernel forwards by itself. */
static void print_kernel(FILE *out, const json_t *kernel)
{
	char text[FIELD_MAX], more[FIELD_MAX];
	json_t *tap, *number;
	const char *name;
	size_t i;

	if (kernel == NULL)
		return;
	if (field_number(kernel, "foreign_rules") != 0)
		fprintf(out, "       NOT FOLLOWED: %s policy rules, as the %s\n",
			field_grouped(kernel, "foreign_rules", text),
			field_text(kernel, "foreign_rule", more));
	if (field_number(kernel, "only_kernel") != 0)
		fprintf(out, "       %s routes that only the kernel can forward by\n",
			field_grouped(kernel, "only_kernel", text));
	json_array_foreach(json_object_get(kernel, "taps"), i, tap)
	{
		if (!json_is_true(json_object_get(tap, "there")))
			fprintf(out, "       NO TAP: somebody deleted that of port %s\n",
				field_text(tap, "port", text));
		json_object_foreach(json_object_get(tap, "dropped"), name, number) fprintf(out,
			"       port %s: %s frames dropped, %s\n", field_text(tap, "port", text),
			field_grouped(json_object_get(tap, "dropped"), name, more), name);
	}
}

static void domain_line(struct cli_show *show, const json_t *line)
{
	FILE *out = show->out;
	char text[FIELD_MAX], more[FIELD_MAX], third[FIELD_MAX];

	fprintf(out, " %s: %s", field_text(line, "domain", text), field_text(line, "kind", more));
	if (strcmp(more, "router") == 0)
		fprintf(out, " %s", field_text(line, "router", text));
	fprintf(out, ", ports ");
	print_ports(out, json_object_get(line, "ports"));
	fprintf(out, "; %s flows\n", field_grouped(line, "flows", text));
	if (strcmp(more, "router") != 0)
		return;
	fprintf(out, "       table %s: %s routes", field_text(line, "table", text),
		field_grouped(line, "routes", more));
	fprintf(out, ", %s IPv4 and %s IPv6 prefixes", field_grouped(line, "prefixes", text),
		field_grouped(line, "prefixes6", more));
	fprintf(out, "; %s links, %s neighbours, %s next hops\n",
		field_grouped(line, "links", text), field_grouped(line, "neighbours", more),
		field_grouped(line, "next_hops", third));
	if (field_number(line, "refused") + field_number(line, "left_to_kernel") != 0)
		fprintf(out,
			"       NO ROOM: %s prefixes, and %s times next hops; the kernel forwards "
			"their packets\n",
			field_grouped(line, "refused", text),
			field_grouped(line, "left_to_kernel", more));
	fprintf(out, "       to the kernel %s packets, from it %s\n",
		field_grouped(line, "delivered", text), field_grouped(line, "from_kernel", more));
	print_punts(out, json_object_get(line, "punts"));
	print_kernel(out, json_object_get(line, "kernel"));
}

const struct cli_view cli_domain_show = {domain_line, NULL};
