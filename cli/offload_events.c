/* SPDX-License-Identifier: BSD-3-Clause */
/* offload events: a line for each change, and why. */
#include <stdio.h>
#include <string.h>

#include "cli/field.h"
#include "cli/view.h"
#include "cli/when.h"
#include "cli/where.h"

/* Below the flow. */
#define INDENT 29

static void event_line(struct cli_show *show, const json_t *line)
{
	const char *time = json_string_value(json_object_get(line, "time"));
	char port[FIELD_MAX], text[FIELD_MAX], from[FIELD_MAX], to[FIELD_MAX];
	char proto[FIELD_MAX], local[WHEN_MAX], change[3 * FIELD_MAX], head[8 * FIELD_MAX];
	bool flow = field_has(line, "src") && field_has(line, "dst");
	int64_t us;
	int length;

	if (time && when_parse(time, &us))
		when_short(local, us);
	length = snprintf(head, sizeof(head), "%-18.*s  %-6s  ", FIELD_MAX,
		time && when_parse(time, &us) ? local : field_text(line, "time", text),
		field_text(line, "port", port));
	if (flow)
		snprintf(head + length, sizeof(head) - (size_t)length,
			"%s %s -> %s  %s:", field_proto(line, proto),
			field_endpoint(line, "src", "sport", from),
			field_endpoint(line, "dst", "dport", to),
			where_change(line, change, sizeof(change)));
	else
		snprintf(head + length, sizeof(head) - (size_t)length,
			"%s:", field_text(line, "event", from));
	print_wrapped(show->out, head, field_text(line, "because", text), INDENT);
}

static void events_end(struct cli_show *show, const json_t *end)
{
	(void)end;
	if (show->lines == 0)
		fputs(" no such change is remembered\n", show->out);
}

const struct cli_view cli_offload_events = {event_line, events_end};
