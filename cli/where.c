/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/where.h"

#include <string.h>

#define LAST_COLUMN 99

const char *where_text(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	if (strcmp(field_text(line, key, buffer), "in_hw") == 0)
		memcpy(buffer, "in NIC", sizeof("in NIC"));
	return buffer;
}

const char *where_change(const json_t *change, char *buffer, size_t size)
{
	const json_t *proven = json_object_get(change, "proven");
	char before[FIELD_MAX], after[FIELD_MAX], text[FIELD_MAX];
	int length = snprintf(buffer, size, "%s -> %s", where_text(change, "before", before),
		where_text(change, "after", after));

	if (strcmp(before, "in NIC") == 0 && strcmp(after, "in NIC") == 0 && json_is_true(proven))
		length = snprintf(buffer, size, "in NIC, proven by a mark");
	if (length > 0 && (size_t)length < size && field_has(change, "rate_pps"))
		snprintf(buffer + length, size - (size_t)length, " at %s pps",
			field_grouped(change, "rate_pps", text));
	else if (length > 0 && (size_t)length < size && field_has(change, "took_us"))
		snprintf(buffer + length, size - (size_t)length, " after %s us",
			field_grouped(change, "took_us", text));
	return buffer;
}

void print_wrapped(FILE *out, const char *head, const char *text, int indent)
{
	int at = fprintf(out, " %s", head);

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (at + 1 + (int)length > LAST_COLUMN)
			at = fprintf(out, "\n%*s", indent - 1, "") - 1;
		at += fprintf(out, " %.*s", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', out);
}
