/* SPDX-License-Identifier: BSD-3-Clause */
/* offload check: two or three lines for each port. */
#include <stdio.h>

#include "cli/field.h"
#include "cli/view.h"
#include "cli/where.h"

/* Where further lines of a sentence begin. */
#define FURTHER 12

static void show_line(struct cli_show *show, const json_t *line)
{
	const json_t *now = json_object_get(line, "now");
	char port[FIELD_MAX], text[FIELD_MAX], where[FIELD_MAX], head[4 * FIELD_MAX];
	bool would = json_is_true(json_object_get(line, "would"));

	if (show->lines == 0)
		fprintf(show->out, " a flow of the kind %s\n", field_text(line, "kind", text));
	snprintf(head, sizeof(head), "%-8s %s", field_text(line, "port", port),
		would ? "would go into the card," : "stays in software:");
	print_wrapped(show->out, head, field_text(line, "because", text), FURTHER);
	if (would)
		fprintf(show->out, "          by a rule of the form %s\n",
			field_text(line, "shape", text));
	if (!json_is_object(now))
		return;
	snprintf(head, sizeof(head), "         now %s%s:", where_text(now, "state", where),
		json_is_false(json_object_get(now, "proven")) ? ", by its word alone" : "");
	print_wrapped(show->out, head,
		field_has(now, "because") ? field_text(now, "because", text) : "", FURTHER);
}

const struct cli_view cli_offload_check = {show_line, NULL};
