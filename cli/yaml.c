/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/yaml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define INDENT 2

/* YAML 1.1 and 1.2 read these as something that is no string. */
static const char *const not_strings[] = {
	"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"};

/*
 * Plain where no reader of YAML can take it for anything else: letters, digits and a few harmless
 * characters, begun by a letter or a slash.
 */
static bool is_plain(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '/')
		return false;
	for (unsigned i = 0; i < sizeof(not_strings) / sizeof(not_strings[0]); i++)
		if (strcasecmp(text, not_strings[i]) == 0)
			return false;
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_-./", *text))
			return false;
	return true;
}

static void write_string(FILE *out, const char *text)
{
	if (is_plain(text)) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (const unsigned char *byte = (const unsigned char *)text; *byte != '\0'; byte++) {
		/* U+0080 to U+009F are control characters too: \xc2 and one byte in UTF-8 */
		if (*byte == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f)
			fprintf(out, "\\x%02x", *++byte);
		else if (*byte < 0x20 || *byte == 0x7f)
			fprintf(out, "\\x%02x", *byte);
		else
			fprintf(out, *byte == '"' || *byte == '\\' ? "\\%c" : "%c", *byte);
	}
	putc('"', out);
}

static bool is_empty(const json_t *value)
{
	return json_is_object(value) ? json_object_size(value) == 0 : json_array_size(value) == 0;
}

static bool is_block(const json_t *value)
{
	return (json_is_object(value) || json_is_array(value)) && !is_empty(value);
}

static void write_scalar(FILE *out, const json_t *value)
{
	if (json_is_string(value))
		write_string(out, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(out, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		fprintf(out, "%.15g", json_real_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", out);
	else if (json_is_object(value))
		fputs("{}", out);
	else if (json_is_array(value))
		fputs("[]", out);
	else
		fputs("null", out);
	putc('\n', out);
}

static void write_block(FILE *out, const json_t *value, int indent, bool indented);

/* What follows "key:" or "-". A block in a list begins on the same line. */
static void write_value(FILE *out, const json_t *value, int indent, bool in_list)
{
	if (!is_block(value)) {
		putc(' ', out);
		write_scalar(out, value);
	} else if (in_list) {
		putc(' ', out);
		write_block(out, value, indent, true);
	} else {
		putc('\n', out);
		write_block(out, value, indent, false);
	}
}

/* `indented`: the first line is already where it should begin. Depth is bounded by jansson's. */
static void write_block(FILE *out, const json_t *value, int indent, bool indented)
{
	const json_t *item;
	const char *key;
	size_t i;

	if (json_is_object(value)) {
		json_object_foreach((json_t *)(uintptr_t)value, key, item)
		{
			fprintf(out, "%*s", indented ? 0 : indent, "");
			indented = false;
			write_string(out, key);
			putc(':', out);
			write_value(out, item, indent + INDENT, false);
		}
		return;
	}
	json_array_foreach(value, i, item)
	{
		fprintf(out, "%*s-", indented ? 0 : indent, "");
		indented = false;
		write_value(out, item, indent + INDENT, true);
	}
}

void yaml_write(FILE *out, const json_t *value)
{
	if (is_block(value))
		write_block(out, value, 0, false);
	else
		write_scalar(out, value);
}
