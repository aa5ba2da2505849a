/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/where.h"

#include <string.h>

static int last_column = 99;

/* Is that the state of which `how` tells more? */
static bool is_in_hw(const json_t *line, const char *key)
{
	char text[FIELD_MAX];

	return strcmp(field_text(line, key, text), "in_hw") == 0;
}

static bool is_full(const json_t *line)
{
	char text[FIELD_MAX];

	return strcmp(field_text(line, "how", text), "full") == 0;
}

const char *where_text(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	field_text(line, key, buffer);
	if (is_in_hw(line, key))
		snprintf(buffer, FIELD_MAX, "%s", is_full(line) ? "NIC only" : "in NIC");
	return buffer;
}

const char *where_change(const json_t *change, char *buffer, size_t size)
{
	const json_t *proven = json_object_get(change, "proven");
	char before[FIELD_MAX], after[FIELD_MAX], text[FIELD_MAX];
	int length = snprintf(buffer, size, "%s -> %s", where_text(change, "before", before),
		where_text(change, "after", after));

	if (is_in_hw(change, "before") && is_in_hw(change, "after") && json_is_true(proven))
		length = snprintf(buffer, size, "%s, proven by %s", after,
			is_full(change) ? "its counter" : "a mark");
	if (length > 0 && (size_t)length < size && field_has(change, "rate_pps"))
		snprintf(buffer + length, size - (size_t)length, " at %s pps",
			field_grouped(change, "rate_pps", text));
	else if (length > 0 && (size_t)length < size && field_has(change, "took_us"))
		snprintf(buffer + length, size - (size_t)length, " after %s us",
			field_grouped(change, "took_us", text));
	return buffer;
}

void print_sent_on(FILE *out, const char *head, const json_t *line, const char *prefix)
{
	char packets[40], bytes[40], lost[40], text[FIELD_MAX], more[FIELD_MAX];

	snprintf(packets, sizeof(packets), "%sforwarded", prefix);
	snprintf(bytes, sizeof(bytes), "%sforwarded_bytes", prefix);
	snprintf(lost, sizeof(lost), "%sunaccounted", prefix);
	if (field_number(line, packets) == 0)
		return;
	fprintf(out, "%s %s packets, %s", head, field_grouped(line, packets, text),
		field_bytes(line, bytes, more));
	if (field_number(line, lost) > 0)
		fprintf(out, "; %s of these are in no record", field_grouped(line, lost, text));
	putc('\n', out);
}

void print_wrap_at(unsigned columns)
{
	last_column = (int)columns;
}

void print_wrapped(FILE *out, const char *head, const char *text, int indent)
{
	int at = fprintf(out, " %s", head);

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (at + 1 + (int)length > last_column)
			at = fprintf(out, "\n%*s", indent - 1, "") - 1;
		at += fprintf(out, " %.*s", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', out);
}
