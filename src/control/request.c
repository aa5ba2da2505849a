/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/request.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"

static const char *const protocol_names[] = {"tcp", "udp", "sctp", "icmp", "icmp6"};
static const uint8_t protocol_numbers[] = {
	IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP, IPPROTO_ICMPV6};

#define N_PROTOCOLS (sizeof(protocol_numbers) / sizeof(protocol_numbers[0]))

int request_bad(
	struct error *error, const char *ask, const char *key, const char *text, const char *what)
{
	char word[REQUEST_WORD];

	if (!text)
		return error_set(error, -EINVAL, "%s: %s: %s", ask, key, what);
	return error_set(error, -EINVAL, "%s: %s \"%s\": %s", ask, key,
		text_printable(word, sizeof(word), text), what);
}

int request_unknown(struct error *error, const char *ask, const char *key, const char *text,
	const char *what, const char *const *known, unsigned n)
{
	const char *near = suggest(text, known, n);
	char sentence[128];

	if (!near)
		return request_bad(error, ask, key, text, what);
	snprintf(sentence, sizeof(sentence), "%s; did you mean %s?", what, near);
	return request_bad(error, ask, key, text, sentence);
}

static int check_keys(const struct request *request, struct error *error)
{
	static const char *const known[] = {"ask", "with"};
	char word[REQUEST_WORD];
	const char *key;
	json_t *value;

	json_object_foreach(request->root, key, value)
	{
		if (strcmp(key, "ask") == 0 || strcmp(key, "with") == 0)
			continue;
		const char *near = suggest(key, known, 2);

		return error_set(error, -EINVAL,
			"the request has a key \"%s\"; only \"ask\" and \"with\" are known%s%s%s",
			text_printable(word, sizeof(word), key), near ? "; did you mean " : "",
			near ? near : "", near ? "?" : "");
	}
	return 0;
}

int request_parse(struct request *request, const char *line, size_t length, struct error *error)
{
	json_error_t why;
	int ret;

	*request = (struct request){.root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why)};
	if (!request->root)
		return error_set(error, -EINVAL, "the request is not JSON: %s (byte %d)", why.text,
			why.position);
	if (!json_is_object(request->root))
		return error_set(error, -EINVAL,
			"the request is not an object like {\"ask\":\"flow list\"}");
	ret = check_keys(request, error);
	if (ret < 0)
		return ret;

	const json_t *ask = json_object_get(request->root, "ask");

	if (!ask)
		return error_set(error, -EINVAL, "the request asks nothing: it has no \"ask\"");
	if (!json_is_string(ask))
		return error_set(error, -EINVAL, "\"ask\" of the request is not a string");
	request->ask = json_string_value(ask);
	request->with = json_object_get(request->root, "with");
	if (request->with && !json_is_object(request->with))
		return error_set(error, -EINVAL, "\"with\" of the request is not an object");
	return 0;
}

void request_fini(struct request *request)
{
	json_decref(request->root);
	*request = (struct request){0};
}

static int take_number(const char *ask, const struct request_key *key, const json_t *json,
	struct request_value *value, struct error *error)
{
	char what[96], min[TEXT_NUMBER_MAX], max[TEXT_NUMBER_MAX];
	json_int_t number = json_integer_value(json);

	if (json_is_integer(json) && number >= key->min && number <= key->max) {
		value->number = (uint32_t)number;
		return 0;
	}
	snprintf(what, sizeof(what), "a whole number from %s to %s is needed",
		text_grouped(min, key->min), text_grouped(max, key->max));
	if (!json_is_integer(json))
		return request_bad(error, ask, key->name, NULL, what);
	return error_set(
		error, -EINVAL, "%s: %s %lld: %s", ask, key->name, (long long)number, what);
}

static int take_large(const char *ask, const struct request_key *key, const json_t *json,
	struct request_value *value, struct error *error)
{
	json_int_t number = json_integer_value(json);

	if (!json_is_integer(json) || number < 1)
		return request_bad(
			error, ask, key->name, NULL, "a whole number from 1 on is needed");
	value->large = (uint64_t)number;
	return 0;
}

static int take_protocol(const char *ask, const struct request_key *key, const json_t *json,
	struct request_value *value, struct error *error)
{
	static const struct request_key range = {.name = "proto", .max = 255};
	const char *text = json_string_value(json);
	unsigned number = 0, n;

	if (json_is_integer(json))
		return take_number(ask, &range, json, value, error);
	if (!text)
		return request_bad(error, ask, key->name, NULL,
			"a protocol is needed: tcp, udp, sctp, icmp, icmp6 or a number");
	for (unsigned i = 0; i < N_PROTOCOLS; i++) {
		if (strcmp(text, protocol_names[i]) == 0) {
			value->number = protocol_numbers[i];
			return 0;
		}
	}
	for (n = 0; n < 3 && text[n] >= '0' && text[n] <= '9'; n++)
		number = number * 10 + (unsigned)(text[n] - '0');
	if (n > 0 && text[n] == '\0' && number <= 255) {
		value->number = number;
		return 0;
	}
	return request_unknown(
		error, ask, key->name, text, "no such protocol", protocol_names, N_PROTOCOLS);
}

static int take_value(const char *ask, const struct request_key *key, const json_t *json,
	struct request_value *value, struct error *error)
{
	value->given = true;
	switch (key->type) {
	case REQUEST_NUMBER:
		return take_number(ask, key, json, value, error);
	case REQUEST_LARGE:
		return take_large(ask, key, json, value, error);
	case REQUEST_PROTOCOL:
		return take_protocol(ask, key, json, value, error);
	case REQUEST_TEXT:
		value->text = json_string_value(json);
		return value->text ? 0
				   : request_bad(error, ask, key->name, NULL, "a string is needed");
	case REQUEST_FLAG:
		value->flag = json_is_true(json);
		return json_is_boolean(json) ? 0
					     : request_bad(error, ask, key->name, NULL,
						       "true or false is needed");
	}
	return -EINVAL;
}

static int unknown_key(const struct request *request, const struct request_key *keys, unsigned n,
	const char *key, struct error *error)
{
	const char *names[REQUEST_MAX_KEYS];
	char word[REQUEST_WORD];

	text_printable(word, sizeof(word), key);
	if (n == 0)
		return error_set(error, -EINVAL, "%s: \"%s\": no such key; it takes none",
			request->ask, word);
	for (unsigned i = 0; i < n; i++)
		names[i] = keys[i].name;
	const char *near = suggest(key, names, n);

	if (near)
		return error_set(error, -EINVAL, "%s: \"%s\": no such key; did you mean %s?",
			request->ask, word, near);
	error_set(error, -EINVAL, "%s: \"%s\": no such key; known are", request->ask, word);
	for (unsigned i = 0; i < n; i++) {
		size_t length = strlen(error->text);

		snprintf(error->text + length, sizeof(error->text) - length, "%s %s",
			i > 0 ? "," : "", names[i]);
	}
	return -EINVAL;
}

int request_values(const struct request *request, const struct request_key *keys, unsigned n,
	struct request_value *values, struct error *error)
{
	const char *name;
	json_t *json;

	memset(values, 0, n * sizeof(values[0]));
	json_object_foreach(request->with, name, json)
	{
		unsigned i = 0;

		while (i < n && strcmp(name, keys[i].name) != 0)
			i++;
		if (i == n)
			return unknown_key(request, keys, n, name, error);
		if (take_value(request->ask, &keys[i], json, &values[i], error) < 0)
			return -EINVAL;
	}
	for (unsigned i = 0; i < n; i++)
		if (keys[i].needed && !values[i].given)
			return request_bad(
				error, request->ask, keys[i].name, NULL, "is needed, but missing");
	return 0;
}
