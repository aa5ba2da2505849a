/* SPDX-License-Identifier: BSD-3-Clause */
/* route show, neighbour show: a line for each, in the words of ip. */
#include <stdio.h>
#include <string.h>

#include "cli/field.h"
#include "cli/view.h"

static void print_hop(FILE *out, const json_t *hop)
{
	char text[FIELD_MAX];

	if (json_is_string(json_object_get(hop, "gateway")))
		fprintf(out, " via %s", field_text(hop, "gateway", text));
	if (json_is_string(json_object_get(hop, "link")))
		fprintf(out, " dev %s", field_text(hop, "link", text));
	else
		fprintf(out, " dev %s (not the router's)", field_text(hop, "ifindex", text));
	if (json_is_string(json_object_get(hop, "mac")))
		fprintf(out, " mac %s", field_text(hop, "mac", text));
	else if (strcmp(field_text(hop, "state", text), "unknown") == 0)
		fprintf(out, " not resolved");
}

static void route_line(struct cli_show *show, const json_t *line)
{
	const json_t *hops = json_object_get(line, "hops"), *hop;
	char text[FIELD_MAX], source[FIELD_MAX];
	FILE *out = show->out;
	size_t i;

	field_text(line, "kind", text);
	fprintf(out, "%s%s%s", strcmp(text, "unicast") == 0 ? "" : text,
		strcmp(text, "unicast") == 0 ? "" : " ", field_text(line, "prefix", source));
	json_array_foreach(hops, i, hop)
	{
		if (json_array_size(hops) > 1)
			fprintf(out, "\n    weight %s", field_text(hop, "weight", text));
		print_hop(out, hop);
	}
	if (json_array_size(hops) > 1)
		fprintf(out, "\n   ");
	if (strcmp(field_text(line, "source", source), "kernel") == 0)
		fprintf(out, " proto %s metric %s", field_text(line, "protocol", text),
			field_text(line, "metric", source));
	else
		fprintf(out, " (%s)", source);
	if (!json_is_true(json_object_get(line, "best")))
		fprintf(out, " not the best");
	fprintf(out, "\n");
}

const struct cli_view cli_route_show = {route_line, NULL};

static void neighbour_line(struct cli_show *show, const json_t *line)
{
	char address[FIELD_MAX], link[FIELD_MAX], mac[FIELD_MAX], state[FIELD_MAX];

	fprintf(show->out, "%s dev %s mac %s %s\n", field_text(line, "address", address),
		field_text(line, "link", link), field_text(line, "mac", mac),
		field_text(line, "state", state));
}

const struct cli_view cli_neighbour_show = {neighbour_line, NULL};
