/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/http_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "control/control.h"
#include "control/http.h"
#include "control/verbs.h"

#define PREFIX "/api/"

struct http_query {
	struct control *control;
	const struct answer_verb *verb;
	char *line; /* the request, as it would come by the socket */
	bool begun, waiting, done;
	unsigned status;
	char *body;
	size_t length, room;
	struct answer answer;
	struct output output;
};

/* Those that change nothing, and come to an end. */
static const struct answer_verb *const readers[] = {
	&flow_list,
	&flow_explain,
	&block_list,
	&rule_list,
	&rule_trace,
	&port_show,
	&worker_show,
	&wire_show,
	&drop_show,
	&offload_show,
	&offload_check,
	&config_show,
};

const struct answer_verb *http_query_verb(const char *path)
{
	const size_t n = strlen(PREFIX);

	if (strncmp(path, PREFIX, n) != 0)
		return NULL;
	path += n;
	for (unsigned i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		const char *ask = readers[i]->ask;
		const size_t noun = strcspn(ask, " ");

		if (strncmp(path, ask, noun) == 0 && path[noun] == '/' &&
			strcmp(path + noun + 1, ask + noun + 1) == 0)
			return readers[i];
	}
	return NULL;
}

static const struct request_key *key_of(const struct answer_verb *verb, const char *name)
{
	for (unsigned i = 0; i < verb->n_keys; i++)
		if (strcmp(verb->keys[i].name, name) == 0)
			return &verb->keys[i];
	return NULL;
}

/* A value as the socket's requests have it. What is none of its type stays a text, about which the verb complains. */
static json_t *query_value(const struct request_key *key, const char *value)
{
	char *end;

	if (key && key->type == REQUEST_FLAG && strcmp(value, "true") == 0)
		return json_true();
	if (key && key->type == REQUEST_FLAG && strcmp(value, "false") == 0)
		return json_false();
	if (key && (key->type == REQUEST_NUMBER || key->type == REQUEST_LARGE) && *value >= '0' &&
		*value <= '9') {
		errno = 0;
		const long long number = strtoll(value, &end, 10);

		if (*end == '\0' && errno == 0)
			return json_integer(number);
	}
	return json_string(value);
}

int http_query_add(
	json_t *with, const struct answer_verb *verb, const char *name, const char *value)
{
	json_t *json = query_value(key_of(verb, name), value ? value : "");

	/* neither a name nor a value that is no UTF-8 can be said in JSON */
	return json_object_set_new(with, name, json) < 0 ? -EINVAL : 0;
}

struct http_query *http_query_create(
	struct control *control, const struct answer_verb *verb, json_t *with)
{
	struct http_query *query = malloc(sizeof(*query));
	json_t *request = json_pack("{s:s, s:o}", "ask", verb->ask, "with", with);

	if (query) {
		/* all but the output's buffer, which is filled before it is read */
		memset(query, 0, offsetof(struct http_query, output));
		query->output.begin = query->output.end = 0;
		query->control = control;
		query->verb = verb;
		query->line = request ? json_dumps(request, JSON_COMPACT) : NULL;
		query->answer.wake_us = UINT64_MAX;
	}
	json_decref(request);
	if (query && !query->line) {
		http_query_destroy(query);
		return NULL;
	}
	return query;
}

void http_query_destroy(struct http_query *query)
{
	if (!query)
		return;
	if (query->begun)
		answer_fini(&query->answer);
	free(query->line);
	free(query->body);
	free(query);
}

bool http_query_has_begun(const struct http_query *query)
{
	return query->begun;
}

bool http_query_is_list(const struct http_query *query)
{
	return query->verb == &flow_list;
}

bool http_query_is_listing(const struct http_query *query)
{
	return http_query_is_list(query) && query->begun && !query->done;
}

uint64_t http_query_wake_us(const struct http_query *query, bool may_begin)
{
	if (query->done || (!query->begun && !may_begin))
		return UINT64_MAX;
	return query->waiting ? query->answer.wake_us : 0;
}

/* The answer is this, whatever was gathered before. */
static void end_with(struct http_query *query, unsigned status, const char *text)
{
	free(query->body);
	query->body = strdup(text);
	query->length = query->body ? strlen(text) : 0;
	query->status = status;
	query->done = true;
}

static void end_without_memory(struct http_query *query)
{
	end_with(query, MHD_HTTP_INTERNAL_SERVER_ERROR,
		"[{\"end\":true,\"error\":\"out of memory\",\"code\":1}]\n");
}

/* Room for so many bytes more. False without memory, or where the answer would be too long. */
static bool make_room(struct http_query *query, size_t more)
{
	size_t room = query->room > 0 ? query->room : 4096;

	while (room < query->length + more)
		room *= 2;
	if (room == query->room)
		return true;
	char *grown = realloc(query->body, room);

	if (!grown)
		return false;
	query->body = grown;
	query->room = room;
	return true;
}

/* What came last is put behind what is there: lines become the items of a list. */
static bool gather(struct http_query *query)
{
	struct output *output = &query->output;
	const size_t n = output->end - output->begin;

	/* each newline becomes two bytes, and brackets come to it */
	if (!make_room(query, 2 * n + 4))
		return false;
	if (query->length == 0)
		query->body[query->length++] = '[';
	for (size_t i = output->begin; i < output->end; i++) {
		const char byte = output->bytes[i];

		if (byte == '\n')
			query->body[query->length++] = ',';
		query->body[query->length++] = byte;
	}
	output->begin = output->end = 0;
	return true;
}

/* The last comma becomes the bracket that ends the list. */
static void close_body(struct http_query *query)
{
	if (query->length < 2) {
		end_without_memory(query);
		return;
	}
	memcpy(query->body + query->length - 2, "]\n", 2);
	query->status = query->answer.misused ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_OK;
	query->done = true;
}

static void query_begin(struct http_query *query)
{
	query->begun = true;
	query->answer = (struct answer){
		.control = query->control,
		.plane = query->control->plane,
		.output = &query->output,
		.wake_us = UINT64_MAX,
		.silent_us = query->answer.silent_us,
	};
	if (answer_begin(&query->answer, query->line, strlen(query->line)) < 0)
		end_without_memory(query);
	else if (query->answer.again)
		query->waiting = true;
}

bool http_query_turn(struct http_query *query, bool may_begin)
{
	if (query->done)
		return true;
	if (!query->begun && !may_begin)
		return false;
	if (query->waiting && query->answer.wake_us > query->control->now_us)
		return false;
	query->waiting = false;
	if (!query->begun || query->answer.again)
		query_begin(query);
	if (query->done || query->waiting)
		return query->done;
	const int ret = answer_turn(&query->answer);

	query->waiting = ret == ANSWER_WAIT;
	if (ret < 0 || !gather(query))
		end_without_memory(query);
	else if (query->length > HTTP_MAX_ANSWER)
		end_with(query, MHD_HTTP_BAD_REQUEST,
			"[{\"end\":true,\"error\":\"the answer is longer than 1 MiB; ask for less "
			"(limit, top)\",\"code\":2}]\n");
	else if (ret == ANSWER_END)
		close_body(query);
	return query->done;
}

const char *http_query_body(const struct http_query *query, size_t *length, unsigned *status)
{
	*length = query->length;
	*status = query->status;
	return query->body;
}
