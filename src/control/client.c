/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: its connection, its request line, and its answer. */
#include "control/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/control.h"
#include "control/staged.h"
#include "export/json.h"
#include "millrace_version.h"

#define PROTOCOL 1

size_t client_greeting(char line[CLIENT_GREETING_MAX], const struct plane *plane)
{
	char started[EXPORT_JSON_TIME_MAX];

	return (size_t)snprintf(line, CLIENT_GREETING_MAX,
		"{\"millrace\":\"%s\",\"protocol\":%d,\"started\":\"%s\"}\n", MILLRACE_VERSION,
		PROTOCOL, export_json_time(started, plane_origin_us(plane)));
}

void client_init(struct client *client, int fd, const struct control *control)
{
	uint32_t number = client->number + 1;

	/* the buffers keep what they have: nobody reads it */
	client->fd = fd;
	client->number = number;
	client->interest = 0;
	client->eof = client->closing = client->answering = client->waiting = false;
	client->turned_us = control->now_us;
	client->n_input = 0;
	client->answer = (struct answer){.wake_us = UINT64_MAX};
	client->staged = (struct control_staged){0};
	client->output.begin = 0;
	client->output.end = client_greeting(client->output.bytes, control->plane);
}

void client_fini(struct client *client)
{
	if (client->answering)
		answer_fini(&client->answer);
	staged_drop(&client->staged);
	close(client->fd);
	client->fd = -1;
}

/* Length of the request that is there: -1 for none yet. The last one may lack its newline. */
static ssize_t line_length(const struct client *client)
{
	const char *newline = memchr(client->input, '\n', client->n_input);

	if (newline)
		return newline - client->input;
	return client->eof && client->n_input > 0 ? (ssize_t)client->n_input : -1;
}

/* False when the connection is broken. */
static bool send_output(struct client *client)
{
	return output_send(&client->output, client->fd) == 0;
}

static bool read_input(struct client *client)
{
	size_t room = sizeof(client->input) - client->n_input;
	ssize_t n;

	if (client->eof || client->closing || room == 0)
		return true;
	do
		n = recv(client->fd, client->input + client->n_input, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK;
	if (n == 0) {
		client->eof = true;
		return true;
	}
	client->n_input += (size_t)n;
	return true;
}

/* Goes on with the answer. False when there is no memory to end it. */
static bool go_on(struct client *client)
{
	int ret = answer_turn(&client->answer);

	if (ret < 0)
		return false;
	client->waiting = ret == ANSWER_WAIT;
	if (ret == ANSWER_END) {
		answer_fini(&client->answer);
		client->answering = false;
	}
	return true;
}

static void prepare_answer(struct client *client, struct control *control)
{
	client->answering = true;
	client->waiting = false;
	client->answer = (struct answer){
		.control = control,
		.plane = control->plane,
		.output = &client->output,
		.staged = &client->staged,
		.wake_us = UINT64_MAX,
		.silent_us = client->answer.silent_us, /* of one that begins again */
	};
}

static bool take_request(struct client *client, struct control *control)
{
	ssize_t length = line_length(client);
	struct error error;

	if (length < 0 && client->n_input < sizeof(client->input))
		return true;
	prepare_answer(client, control);
	if (length < 0 || length > CONTROL_LINE_MAX) {
		/* where the next request begins is not known */
		error_set(&error, -EINVAL, "a request has at most %d bytes", CONTROL_LINE_MAX);
		client->closing = true;
		client->n_input = 0;
		return answer_refuse(&client->answer, &error) == 0 && go_on(client);
	}
	int ret = answer_begin(&client->answer, client->input, (size_t)length);

	if (client->answer.again) {
		client->waiting = true;
		return true;
	}
	size_t used = (size_t)length < client->n_input ? (size_t)length + 1 : client->n_input;

	client->n_input -= used;
	memmove(client->input, client->input + used, client->n_input);
	return ret == 0 && go_on(client);
}

bool client_turn(struct client *client, struct control *control, uint32_t ready)
{
	bool gone = ready & (EPOLLHUP | EPOLLERR);

	/* what it has asked before it went is done all the same, as far as it needs no reader */
	if (gone && client->answering)
		return false;
	client->turned_us = control->now_us;
	if (!send_output(client))
		return false;
	if (client->answering && client->answer.again) {
		if (!client->waiting && !take_request(client, control))
			return false;
	} else if (client->answering) {
		if (!client->waiting && !go_on(client))
			return false;
	} else if (!client->closing) {
		if ((ready & EPOLLIN || gone) && !read_input(client))
			return false;
		if (!take_request(client, control))
			return false;
	}
	if (!send_output(client))
		return false;
	if (client->answering || !output_empty(&client->output))
		return true;
	return !client->closing && !(client->eof && line_length(client) < 0);
}

uint32_t client_interest(const struct client *client)
{
	uint32_t interest = 0;
	bool asked = !client->closing && !client->answering &&
		     (line_length(client) >= 0 || client->n_input == sizeof(client->input));

	if (!client->eof && !client->closing && !client->answering && !asked)
		interest |= EPOLLIN;
	if (!output_empty(&client->output) || (client->answering && !client->waiting) || asked)
		interest |= EPOLLOUT;
	return interest;
}
