/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/field.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/words.h"

static const char *absent(char buffer[FIELD_MAX])
{
	memcpy(buffer, "-", 2);
	return buffer;
}

/* A number as a double: what an engine calls a percentage or a rate may have decimals. */
static bool read_real(const json_t *line, const char *key, double *number)
{
	const json_t *value = json_object_get(line, key);

	if (!json_is_number(value))
		return false;
	*number = json_number_value(value);
	return true;
}

bool field_has(const json_t *line, const char *key)
{
	const json_t *value = json_object_get(line, key);

	return value && !json_is_null(value);
}

uint64_t field_number(const json_t *line, const char *key)
{
	const json_t *value = json_object_get(line, key);
	double number;

	if (json_is_integer(value))
		return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	/* below 2^53, where doubles are still whole */
	if (read_real(line, key, &number) && number > 0 && number < 9e15)
		return (uint64_t)(number + 0.5);
	return 0;
}

const char *field_text(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	const json_t *value = json_object_get(line, key);

	if (json_is_string(value))
		return text_printable(buffer, FIELD_MAX, json_string_value(value));
	if (json_is_integer(value))
		snprintf(buffer, FIELD_MAX, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buffer, FIELD_MAX, "%g", json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(buffer, FIELD_MAX, json_is_true(value) ? "yes" : "no");
	else
		return absent(buffer);
	return buffer;
}

const char *field_grouped(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	if (!json_is_number(json_object_get(line, key)))
		return absent(buffer);
	return text_grouped(buffer, field_number(line, key));
}

const char *field_bytes(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	if (!json_is_number(json_object_get(line, key)))
		return absent(buffer);
	return text_bytes(buffer, field_number(line, key));
}

const char *field_decimal(const json_t *line, const char *key, char buffer[FIELD_MAX])
{
	double number;

	if (!read_real(line, key, &number))
		return absent(buffer);
	if (number >= 999.95)
		return text_grouped(buffer, field_number(line, key));
	snprintf(buffer, FIELD_MAX, "%.1f", number > 0 ? number : 0);
	return buffer;
}

const char *field_proto(const json_t *line, char buffer[FIELD_MAX])
{
	const char *name = NULL;

	if (json_is_integer(json_object_get(line, "proto")))
		name = cli_proto_name(field_number(line, "proto"));
	if (!name)
		return field_text(line, "proto", buffer);
	snprintf(buffer, FIELD_MAX, "%s", name);
	return buffer;
}

/* Does the line's protocol have ports? One that nobody knows has when the line says so. */
static bool has_ports(const json_t *line, uint64_t port)
{
	char text[FIELD_MAX];
	struct cli_proto proto;

	return port != 0 || (cli_proto_parse(&proto, field_proto(line, text)) && proto.ports);
}

const char *field_endpoint(
	const json_t *line, const char *address, const char *port, char buffer[FIELD_MAX])
{
	char text[FIELD_MAX];
	uint64_t number = field_number(line, port);

	field_text(line, address, text);
	if (!has_ports(line, number))
		memcpy(buffer, text, sizeof(text));
	else
		snprintf(buffer, FIELD_MAX, strchr(text, ':') ? "[%.300s]:%llu" : "%.300s:%llu",
			text, (unsigned long long)number);
	return buffer;
}

const char *field_limit(const json_t *limit, char buffer[2 * FIELD_MAX])
{
	const bool above = json_is_true(json_object_get(limit, "above"));
	char source[FIELD_MAX], flows[FIELD_MAX], most[FIELD_MAX];

	field_text(limit, "source", source);
	field_grouped(limit, "limit", most);
	if (field_has(limit, "live_flows"))
		snprintf(buffer, 2 * FIELD_MAX, "source %.64s has %.32s live flows, limit %.32s",
			source, field_grouped(limit, "live_flows", flows), most);
	else
		snprintf(buffer, 2 * FIELD_MAX, "source %.64s %s new flows, limit %.32s", source,
			above ? "has used up its" : "may begin", most);
	return buffer;
}
