/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/monotonic.h"
#include "base/text.h"
#include "control/block.h"
#include "control/client.h"
#include "control/control.h"
#include "control/event.h"
#include "control/flow_rate.h"
#include "control/http.h"
#include "control/offload_events.h"
#include "control/policy.h"
#include "control/rule.h"
#include "control/verbs.h"

/* Handled in one step: every client, every watch, and the door. */
#define MAX_READY (CONTROL_MAX_CLIENTS + CONTROL_MAX_WATCHES + 1)
/* Clients let in by one step, so that a crowd at the door does not keep the others waiting. */
#define ACCEPTS 16

/* What epoll brings back with a descriptor: what it is, which one, and of clients the number. */
enum tag {
	TAG_DOOR,
	TAG_WATCH,
	TAG_CLIENT,
};

static uint64_t make_tag(enum tag tag, unsigned index, uint32_t number)
{
	return (uint64_t)tag << 56 | (uint64_t)index << 32 | number;
}

static int add_to_epoll(struct control *control, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events, .data.u64 = tag};

	return epoll_ctl(control->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_parts(
	struct control *control, const struct control_config *config, struct error *error)
{
	const char *json = config->config_json ? config->config_json : "{}";

	control->config_json = strndup(json, strcspn(json, "\n"));
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	control->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!control->config_json)
		return error_set(error, -ENOMEM, "the control socket: %s", strerror(ENOMEM));
	if (control->epoll < 0 || control->reserve < 0)
		return error_set(error, -errno, "the control socket: %s", strerror(errno));
	int ret = control_place_claim(&control->place, config->socket_path, error);

	if (ret < 0)
		return ret;
	ret = add_to_epoll(control, control->place.fd, EPOLLIN, make_tag(TAG_DOOR, 0, 0));
	if (ret < 0)
		return error_set(error, ret, "the control socket: %s", strerror(-ret));
	return 0;
}

int control_create(struct control **out, const struct control_config *config, struct error *error)
{
	struct control *control = calloc(1, sizeof(*control));
	char word[128], line[256];

	if (!control)
		return error_set(error, -ENOMEM, "the control socket: %s", strerror(ENOMEM));
	control->note = config->note;
	control->note_context = config->note_context;
	control->clock_us = config->clock_us ? config->clock_us : monotonic_us;
	control->epoll = control->reserve = control->place.fd = -1;
	control->now_us = control->clock_us();
	control->events_us = control->blocks_us = control->now_us;
	control->rules_us = UINT64_MAX;
	policy_begin_control(control);
	control->configured = (struct control_configured){.number = 1, .saved = true};
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++)
		control->clients[i].fd = -1;
	for (unsigned i = 0; i < CONTROL_MAX_WATCHES; i++)
		control->watches[i].fd = -1;
	int ret = open_parts(control, config, error);

	if (ret == 0 && config->plane)
		ret = control_serve(control, config->plane, error);
	if (ret < 0) {
		control_destroy(control);
		return ret;
	}
	if (control->place.taken_over && control->note) {
		snprintf(line, sizeof(line), "%s was left by an engine that is dead: taken over",
			text_printable(word, sizeof(word), control->place.path));
		control->note(control->note_context, line);
	}
	*out = control;
	return 0;
}

int control_serve(struct control *control, struct plane *plane, struct error *error)
{
	control->verbs = control_verbs;
	control->n_verbs = control_n_verbs;
	control->plane = plane;
	control->flow_rates = flow_rates_create(plane);
	control->events_room = events_room_create(plane);
	if (!control->flow_rates || !control->events_room)
		return error_set(error, -ENOMEM, "no memory for what control is asked");
	return 0;
}

void control_show_hosts(struct control *control, struct host *const *hosts)
{
	control->hosts = hosts;
}

void control_show_exports(struct control *control, struct exporter *exporter)
{
	control->exporter = exporter;
}

int control_http(
	struct control *control, const struct control_http_config *config, struct error *error)
{
	return http_create(&control->http, control, config, error);
}

const char *control_path(const struct control *control)
{
	return control->place.path;
}

int control_watch(struct control *control, int fd, control_ready_fn ready, void *context)
{
	for (unsigned i = 0; i < CONTROL_MAX_WATCHES; i++) {
		if (control->watches[i].fd >= 0)
			continue;
		int ret = add_to_epoll(control, fd, EPOLLIN, make_tag(TAG_WATCH, i, 0));

		if (ret == 0)
			control->watches[i] = (struct watch){fd, ready, context};
		return ret;
	}
	return -ENOSPC;
}

static void drop_client(struct client *client)
{
	/* closing takes it out of epoll, too: no other descriptor shares the connection */
	client_fini(client);
}

/* Since when a client has been of no use to anybody; UINT64_MAX: it is. */
static uint64_t useless_since(const struct client *client)
{
	bool follows = client->answering && client->waiting && output_empty(&client->output);

	return follows ? UINT64_MAX : client->turned_us;
}

/* A free place, if need be one whose client has been idle for long. */
static struct client *find_place(struct control *control)
{
	struct client *oldest = &control->clients[0];

	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (client->fd < 0)
			return client;
		if (useless_since(client) < useless_since(oldest))
			oldest = client;
	}
	uint64_t since = useless_since(oldest);

	if (since > control->now_us || control->now_us - since < CONTROL_IDLE_US)
		return NULL;
	drop_client(oldest);
	return oldest;
}

/* As if it had asked. It gets these lines or it does not: nobody waits for it. */
static void refuse(const struct control *control, int fd)
{
	char lines[2 * CLIENT_GREETING_MAX];
	size_t length = client_greeting(lines, control->plane);

	length += answer_refusal(lines + length, sizeof(lines) - length,
		"too many clients: 64 are served at a time");
	(void)!send(fd, lines, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* No descriptor is left for who waits at the door: the reserve is, for as long as it takes to say no. */
static void refuse_with_reserve(struct control *control)
{
	if (control->reserve < 0)
		return;
	close(control->reserve);
	int fd = accept4(control->place.fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0)
		refuse(control, fd);
	control->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void admit(struct control *control, int fd)
{
	struct client *client = find_place(control);

	if (!client) {
		refuse(control, fd);
		return;
	}
	unsigned index = (unsigned)(client - control->clients);

	client_init(client, fd, control);
	client->interest = client_interest(client);
	if (add_to_epoll(
		    control, fd, client->interest, make_tag(TAG_CLIENT, index, client->number)) < 0)
		drop_client(client);
}

static void open_door(struct control *control)
{
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(control->place.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			admit(control, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EMFILE || errno == ENFILE)
			refuse_with_reserve(control);
		return;
	}
}

static void set_interest(struct control *control, struct client *client)
{
	uint32_t interest = client_interest(client);
	unsigned index = (unsigned)(client - control->clients);
	struct epoll_event event = {
		.events = interest,
		.data.u64 = make_tag(TAG_CLIENT, index, client->number),
	};

	if (interest == client->interest)
		return;
	client->interest = interest;
	if (epoll_ctl(control->epoll, EPOLL_CTL_MOD, client->fd, &event) < 0)
		drop_client(client);
}

static void dispatch(struct control *control, const struct epoll_event *event)
{
	unsigned index = event->data.u64 >> 32 & 0xffffff;
	enum tag tag = (enum tag)(event->data.u64 >> 56);

	if (tag == TAG_DOOR) {
		open_door(control);
	} else if (tag == TAG_WATCH) {
		struct watch *watch = &control->watches[index];

		if (watch->fd >= 0)
			watch->ready(watch->context, watch->fd);
	} else {
		struct client *client = &control->clients[index];

		/* it may have had to make room for another one just now */
		if (client->fd < 0 || client->number != (uint32_t)event->data.u64)
			return;
		if (!client_turn(client, control, event->events))
			drop_client(client);
	}
}

/* Those whose time has come go on; whatever happened, epoll shall wait for the right things. */
static void look_after_clients(struct control *control)
{
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (client->fd < 0)
			continue;
		if (client->waiting && client->answer.wake_us <= control->now_us)
			client->waiting = false;
		set_interest(control, client);
	}
}

/* How long to wait, in milliseconds, when the caller allows `timeout_ms`. */
static int time_to_wait(const struct control *control, int timeout_ms)
{
	uint64_t wake_us = RTE_MIN(control->events_us, control->blocks_us);

	wake_us = RTE_MIN(wake_us, control->rules_us);
	wake_us = RTE_MIN(wake_us, control->policy.look_us);
	wake_us = RTE_MIN(wake_us, control->policy.confirm_us);
	wake_us = RTE_MIN(wake_us, http_wake_us(control->http));

	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		const struct client *client = &control->clients[i];

		if (client->fd >= 0 && client->waiting && client->answer.wake_us < wake_us)
			wake_us = client->answer.wake_us;
	}
	if (wake_us <= control->now_us)
		return 0;
	/* rounded up: woken too early it would find nothing to do */
	uint64_t ms = (wake_us - control->now_us + 999) / 1000;

	return timeout_ms < 0 || ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

int control_step(struct control *control, int timeout_ms)
{
	struct epoll_event ready[MAX_READY];

	control->now_us = control->clock_us();
	int n = epoll_wait(control->epoll, ready, MAX_READY, time_to_wait(control, timeout_ms));

	if (n < 0 && errno != EINTR)
		return -errno;
	control->now_us = control->clock_us();
	/* first: what is due by now is not there any more for who asks */
	blocks_tend(control);
	rules_tend(control);
	policy_tend(control);
	for (int i = 0; i < n; i++)
		dispatch(control, &ready[i]);
	http_tend(control->http);
	events_poll(control);
	look_after_clients(control);
	return 0;
}

/* A last word to each, as far as it takes one without being waited for. */
static void say_farewell(struct control *control)
{
	events_drain(control);
	for (unsigned i = 0; i < CONTROL_MAX_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (client->fd < 0)
			continue;
		if (client->answering) {
			(void)answer_stop(&client->answer,
				client->answer.endless ? NULL : "this engine ends");
			(void)answer_turn(&client->answer);
			(void)output_send(&client->output, client->fd);
		}
		client_fini(client);
	}
}

void control_destroy(struct control *control)
{
	if (!control)
		return;
	say_farewell(control);
	http_destroy(control->http);
	control_place_release(&control->place);
	if (control->epoll >= 0)
		close(control->epoll);
	if (control->reserve >= 0)
		close(control->reserve);
	flow_rates_destroy(control->flow_rates);
	events_room_destroy(control->events_room);
	free(control->config_json);
	free(control->policy.save.text);
	free(control);
}
