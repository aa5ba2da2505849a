/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_ask.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* Lines taken in one turn: some milliseconds at most. */
#define TURN_LINES 200

void top_ask_init(struct top_ask *ask, const char *path)
{
	*ask = (struct top_ask){.path = path};
}

static void forget_answers(struct top_ask *ask)
{
	for (unsigned i = 0; i < TOP_ASK_MAX; i++) {
		json_decref(ask->lines[i]);
		json_decref(ask->end[i]);
		ask->lines[i] = ask->end[i] = NULL;
	}
	ask->n = ask->at = 0;
}

void top_ask_close(struct top_ask *ask)
{
	if (ask->open)
		cli_client_close(&ask->client);
	ask->open = ask->greeted = false;
	ask->state = TOP_ASK_IDLE;
}

void top_ask_fini(struct top_ask *ask)
{
	top_ask_close(ask);
	forget_answers(ask);
	json_decref(ask->greeting);
	ask->greeting = NULL;
}

static enum top_ask_state lost(struct top_ask *ask)
{
	top_ask_close(ask);
	ask->state = TOP_ASK_LOST;
	return ask->state;
}

enum top_ask_state top_ask_begin(
	struct top_ask *ask, const struct top_request *requests, unsigned n, struct error *error)
{
	int ret = 0;

	/* lines of an answer that is no longer wanted may be on their way */
	if (ask->state == TOP_ASK_WAITS)
		top_ask_close(ask);
	forget_answers(ask);
	if (!ask->open) {
		ret = cli_client_start(&ask->client, ask->path, error);
		ask->open = true;
	}
	ask->refusal.text[0] = '\0';
	ask->n = n;
	for (unsigned i = 0; i < n && ret == 0; i++) {
		ask->lines[i] = json_array();
		ret = cli_client_ask(&ask->client, requests[i].ask, requests[i].with, error);
	}
	if (ret < 0)
		return lost(ask);
	ask->state = TOP_ASK_WAITS;
	return ask->state;
}

/* The line that ends an answer: what of it was refused is remembered once, the first time. */
static void take_end(struct top_ask *ask, const json_t *line)
{
	const json_t *message = json_object_get(line, "error");
	const char *text = json_string_value(message);

	ask->end[ask->at++] = json_incref((json_t *)(uintptr_t)line);
	if (message && !json_is_null(message) && ask->refusal.text[0] == '\0')
		text_printable(
			ask->refusal.text, sizeof(ask->refusal.text), text ? text : "failed");
}

static int take_greeting(struct top_ask *ask, const json_t *line, struct error *error)
{
	json_decref(ask->greeting);
	ask->greeting = json_incref((json_t *)(uintptr_t)line);
	ask->greeted = true;
	return cli_client_greeted(&ask->client, line, error);
}

/* One line, if a whole one is there: 0, -EAGAIN where there is none, or another negative errno with a line of text. */
static int take_line(struct top_ask *ask, struct error *error)
{
	struct cli_line line;
	int ret = cli_client_next(&ask->client, &line, error);

	if (ret < 0)
		return ret;
	if (!ask->greeted)
		return take_greeting(ask, line.json, error);
	if (ret == 0)
		take_end(ask, line.json);
	else if (json_array_size(ask->lines[ask->at]) == TOP_ASK_LINES)
		return error_set(error, -EPROTO, "the engine's answer has more than %d lines",
			TOP_ASK_LINES);
	else
		json_array_append(ask->lines[ask->at], (json_t *)(uintptr_t)line.json);
	return 0;
}

enum top_ask_state top_ask_turn(struct top_ask *ask, struct error *error)
{
	int ret = 0;

	if (ask->state != TOP_ASK_WAITS)
		return ask->state;
	for (unsigned i = 0; i < TURN_LINES && ask->at < ask->n && ret == 0; i++)
		ret = take_line(ask, error);
	if (ret < 0 && ret != -EAGAIN)
		return lost(ask);
	if (ask->at < ask->n)
		return TOP_ASK_WAITS;
	ask->state = TOP_ASK_DONE;
	if (ask->refusal.text[0] != '\0') {
		*error = ask->refusal;
		ask->state = TOP_ASK_REFUSED;
	}
	return ask->state;
}

int top_ask_fd(const struct top_ask *ask)
{
	return ask->state == TOP_ASK_WAITS ? ask->client.fd : -1;
}

bool top_ask_has_more(const struct top_ask *ask)
{
	const struct cli_client *client = &ask->client;

	return ask->state == TOP_ASK_WAITS &&
	       memchr(client->buffer + client->start, '\n', client->end - client->start) != NULL;
}
