/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/block_name.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/span.h"
#include "export/address.h"
#include "export/json.h"

struct blocks *block_list_of(const struct answer *answer, struct error *error)
{
	struct blocks *blocks = plane_blocks(answer->plane);

	if (!blocks)
		error_set(error, -ENOTSUP,
			"%s: this engine keeps no list of blocks; it was started with blocks.max 0",
			answer->verb->ask);
	return blocks;
}

bool block_name_given(const struct request_value *values)
{
	for (unsigned i = 0; i < BLOCK_NAME_KEYS; i++)
		if (values[i].given)
			return true;
	return false;
}

static int bad(struct error *error, const struct answer *answer, const char *what)
{
	return error_set(error, -EINVAL, "%s: %s", answer->verb->ask, what);
}

/* Puts the request before what a reader of texts has said. */
static int of_request(struct error *error, const struct answer *answer, const struct error *said)
{
	return error_set(error, -EINVAL, "%s: %s", answer->verb->ask, said->text);
}

static int prefix_match(struct block_match *match, const struct answer *answer,
	const struct request_value *values, struct error *error)
{
	const struct request_value *port = &values[BLOCK_NAME_PORT];
	const struct request_value *proto = &values[FLOW_NAME_PROTO];
	struct error said;

	for (unsigned i = 0; i < FLOW_NAME_KEYS; i++)
		if (i != FLOW_NAME_PROTO && values[i].given)
			return error_set(error, -EINVAL,
				"%s: %s is of one flow, prefix of all with an end in it; they do "
				"not go together",
				answer->verb->ask, answer->verb->keys[i].name);
	if (block_parse_prefix(match, values[BLOCK_NAME_PREFIX].text,
		    port->given ? (int)port->number : BLOCK_ANY,
		    proto->given ? (int)proto->number : BLOCK_ANY, &said) < 0)
		return of_request(error, answer, &said);
	return 0;
}

int block_name_match(struct block_match *match, const struct answer *answer,
	const struct request_value *values, struct error *error)
{
	if (values[BLOCK_NAME_PREFIX].given)
		return prefix_match(match, answer, values, error);
	if (!values[FLOW_NAME_SRC].given || !values[FLOW_NAME_DST].given ||
		!values[FLOW_NAME_PROTO].given)
		return bad(error, answer, "prefix is needed, or src, dst and proto of a flow");
	if (values[BLOCK_NAME_PORT].given)
		return bad(error, answer, "port goes with prefix; a flow has sport and dport");
	*match = (struct block_match){.is_flow = true};
	if (flow_name_key(&match->flow, answer, values, error) < 0)
		return -EINVAL;
	/* nothing else can be wrong with a key that was made of a request */
	return block_match_check(match) < 0 ? bad(error, answer, "this protocol has no ports") : 0;
}

/* A text that grows, in a buffer that is large enough. */
struct text {
	char *bytes;
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text->length += (size_t)vsnprintf(
		text->bytes + text->length, BLOCK_JSON_MAX - text->length, format, args);
	va_end(args);
}

static void add_flow(struct text *text, const struct flow_key *key)
{
	const unsigned version = flow_key_version(key);
	char src[EXPORT_ADDRESS_MAX], dst[EXPORT_ADDRESS_MAX];

	src[export_address(src, version, key->addr[0])] = '\0';
	dst[export_address(dst, version, key->addr[1])] = '\0';
	add(text,
		",\"proto\":%u,\"src\":\"%s\",\"sport\":%u,\"dst\":\"%s\",\"dport\":%u,"
		"\"wire\":%u,\"zone\":%u",
		key->proto, src, rte_be_to_cpu_16(key->port[0]), dst,
		rte_be_to_cpu_16(key->port[1]), flow_key_wire(key), key->zone);
}

static void add_prefix(struct text *text, const struct block_prefix *prefix)
{
	char address[EXPORT_ADDRESS_MAX];

	address[export_address(address, prefix->version, prefix->addr)] = '\0';
	add(text, ",\"prefix\":\"%s/%u\"", address, prefix->length);
	if (prefix->port != BLOCK_ANY)
		add(text, ",\"port\":%d", prefix->port);
	if (prefix->proto != BLOCK_ANY)
		add(text, ",\"proto\":%d", prefix->proto);
}

size_t block_json(char line[BLOCK_JSON_MAX], const struct block_view *view, uint64_t origin_us,
	uint64_t now_us)
{
	const struct block block = {.match = view->match};
	struct text text = {.bytes = line};
	char match[BLOCK_LINE_MAX], time[EXPORT_JSON_TIME_MAX];

	block_format(&block, match);
	add(&text, "{\"number\":%llu,\"match\":\"%s\"", (unsigned long long)view->number, match);
	if (view->match.is_flow)
		add_flow(&text, &view->match.flow);
	else
		add_prefix(&text, &view->match.prefix);
	add(&text, ",\"added\":\"%s\"", export_json_time(time, origin_us + view->added_us));
	if (view->expires_us != 0)
		add(&text, ",\"expires\":\"%s\",\"expires_in_us\":%llu",
			export_json_time(time, origin_us + view->expires_us),
			(unsigned long long)span_since(view->expires_us, now_us));
	if (view->reason) {
		char *reason = export_json_string(view->reason);

		add(&text, ",\"reason\":%s", reason ? reason : "null");
		free(reason);
	}
	add(&text, ",\"packets\":%llu,\"bytes\":%llu", (unsigned long long)view->packets,
		(unsigned long long)view->bytes);
	return text.length;
}

json_t *block_object(const struct block_view *view, uint64_t origin_us, uint64_t now_us)
{
	char line[BLOCK_JSON_MAX + 1];
	size_t length = block_json(line, view, origin_us, now_us);

	memcpy(line + length, "}", 2);
	return json_loads(line, 0, NULL);
}
