/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "control/control.h"
#include "export/json.h"

#define MAX_VERBS 64
/* How often a thread that does not answer is asked. */
#define AGAIN_US UINT64_C(10000)
#define CODE_FAILED 1
#define CODE_MISUSED 2

int answer_add_text(struct answer *answer, const char *text, size_t length)
{
	char *grown = realloc(answer->text, answer->text_length + length);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + answer->text_length, text, length);
	answer->text = grown;
	answer->text_length += length;
	return 0;
}

int answer_add(struct answer *answer, json_t *object)
{
	char *line = object ? json_dumps(object, ANSWER_JSON) : NULL;
	int ret = -ENOMEM;

	if (line)
		ret = answer_add_text(answer, line, strlen(line));
	if (ret == 0)
		ret = answer_add_text(answer, "\n", 1);
	free(line);
	json_decref(object);
	return ret;
}

json_t *answer_string(const char *bytes)
{
	char *quoted = export_json_string(bytes);
	json_t *string = quoted ? json_loads(quoted, JSON_DECODE_ANY, NULL) : NULL;

	free(quoted);
	return string;
}

json_t *answer_tenths(double number)
{
	char text[TEXT_NUMBER_MAX];

	snprintf(text, sizeof(text), "%.1f", number);
	return json_real(strtod(text, NULL));
}

size_t answer_refusal(char *line, size_t size, const char *error)
{
	return (size_t)snprintf(
		line, size, "{\"end\":true,\"error\":\"%s\",\"code\":%d}\n", error, CODE_FAILED);
}

/* Makes the last line. `ret` is 0 or the errno that the error has come with. */
static int make_end(struct answer *answer, int ret, const char *error)
{
	json_t *end = json_object();

	answer->ended = true;
	if (!end)
		return -ENOMEM;
	json_object_set_new(end, "end", json_true());
	if (error) {
		answer->misused = ret == -EINVAL;
		json_object_set_new(end, "error", answer_string(error));
		json_object_set_new(
			end, "code", json_integer(ret == -EINVAL ? CODE_MISUSED : CODE_FAILED));
	} else {
		json_object_set_new(end, "error", json_null());
		if (answer->clock_us > 0)
			answer_number(end, "clock_us", answer->clock_us);
		if (answer->verb && answer->verb->finish)
			answer->verb->finish(answer, end);
	}
	return answer_add(answer, end);
}

static int no_such_verb(const struct control *control, const char *ask, struct error *error)
{
	const char *names[MAX_VERBS];
	char word[REQUEST_WORD];

	for (unsigned i = 0; i < control->n_verbs && i < MAX_VERBS; i++)
		names[i] = control->verbs[i]->ask;
	const char *near = suggest(ask, names, control->n_verbs);

	text_printable(word, sizeof(word), ask);
	if (near)
		return error_set(
			error, -EINVAL, "\"%s\": no such request; did you mean %s?", word, near);
	/* by their nouns: all verbs would be more than one line has room for */
	error_set(error, -EINVAL, "\"%s\": no such request; there are requests about", word);
	for (unsigned i = 0; i < control->n_verbs; i++) {
		const size_t length = strlen(error->text), noun = strcspn(names[i], " ") + 1;

		if (i > 0 && strncmp(names[i], names[i - 1], noun) == 0)
			continue;
		snprintf(error->text + length, sizeof(error->text) - length, "%s %.*s",
			i > 0 ? "," : "", (int)noun - 1, names[i]);
	}
	return -EINVAL;
}

static int begin_verb(struct answer *answer, const struct request *request, struct error *error)
{
	struct request_value values[REQUEST_MAX_KEYS];
	const struct control *control = answer->control;
	const struct answer_verb *verb = NULL;

	for (unsigned i = 0; i < control->n_verbs; i++)
		if (strcmp(request->ask, control->verbs[i]->ask) == 0)
			verb = control->verbs[i];
	if (!verb)
		return no_such_verb(control, request->ask, error);
	int ret = request_values(request, verb->keys, verb->n_keys, values, error);

	if (ret < 0)
		return ret;
	answer->verb = verb;
	return verb->begin(answer, values, error);
}

/* The packet path did not answer: is it to be asked again, at wake_us? */
static bool waits_for_path(struct answer *answer, int ret)
{
	const uint64_t now_us = answer->control->now_us;

	if (ret != -ETIMEDOUT) {
		/* the time to wake at was for this */
		if (answer->silent_us != 0)
			answer->wake_us = UINT64_MAX;
		answer->silent_us = 0;
		return false;
	}
	if (answer->silent_us == 0)
		answer->silent_us = now_us != 0 ? now_us : 1;
	answer->wake_us = now_us + AGAIN_US;
	return now_us - answer->silent_us < ANSWER_PATIENCE_US;
}

/* As if it had not begun. */
static void begin_again(struct answer *answer)
{
	if (answer->verb && answer->verb->end)
		answer->verb->end(answer);
	free(answer->text);
	*answer = (struct answer){
		.control = answer->control,
		.plane = answer->plane,
		.output = answer->output,
		.staged = answer->staged,
		.wake_us = answer->wake_us,
		.silent_us = answer->silent_us,
		.again = true,
	};
}

int answer_begin(struct answer *answer, const char *line, size_t length)
{
	struct request request;
	struct error error;
	int ret = request_parse(&request, line, length, &error);

	if (ret == 0)
		ret = begin_verb(answer, &request, &error);
	request_fini(&request);
	if (waits_for_path(answer, ret)) {
		begin_again(answer);
		return 0;
	}
	return ret < 0 ? make_end(answer, ret, error.text) : 0;
}

int answer_refuse(struct answer *answer, const struct error *error)
{
	return make_end(answer, -EINVAL, error->text);
}

int answer_stop(struct answer *answer, const char *error)
{
	return answer->ended ? 0 : make_end(answer, 0, error);
}

/* Lines that are made move into the output as far as there is room: true when they all have. */
static bool move_text(struct answer *answer)
{
	size_t left = answer->text_length - answer->text_sent;
	size_t room = output_free(answer->output);
	size_t n = left < room ? left : room;

	if (n > 0) {
		memcpy(output_room(answer->output, n), answer->text + answer->text_sent, n);
		output_add(answer->output, n);
		answer->text_sent += n;
	}
	if (n < left)
		return false;
	free(answer->text);
	answer->text = NULL;
	answer->text_length = 0;
	answer->text_sent = 0;
	return true;
}

int answer_turn(struct answer *answer)
{
	struct error error;
	int ret = ANSWER_END;

	if (!move_text(answer))
		return ANSWER_GO;
	if (answer->ended)
		return ANSWER_END;
	if (answer->verb->turn)
		ret = answer->verb->turn(answer, &error);
	if (ret == -ETIMEDOUT) {
		if (waits_for_path(answer, ret))
			return ANSWER_WAIT;
	} else {
		answer->silent_us = 0;
	}
	if (ret == ANSWER_GO || ret == ANSWER_WAIT)
		return ret;
	if (make_end(answer, ret, ret < 0 ? error.text : NULL) < 0)
		return -ENOMEM;
	return move_text(answer) ? ANSWER_END : ANSWER_GO;
}

void answer_fini(struct answer *answer)
{
	if (answer->verb && answer->verb->end)
		answer->verb->end(answer);
	free(answer->text);
	*answer = (struct answer){.wake_us = UINT64_MAX};
}
