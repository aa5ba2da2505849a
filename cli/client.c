/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

#define PROTOCOL 1
#define REQUEST_MAX 4096 /* with its newline */
#define FIRST_SIZE 65536
/* An engine greets at once, unless it has come to a stand. */
#define GREETING_S 10

#define WORD_MAX 160

static const char default_system[] = "/run/millrace.sock";

/* The default path, in memory that stays. */
static const char *default_path(void)
{
	static char path[4096];
	const char *directory = getenv("XDG_RUNTIME_DIR");

	if (!directory || *directory == '\0')
		return default_system;
	snprintf(path, sizeof(path), "%s/millrace.sock", directory);
	return path;
}

/* One line: `before`, the path, `after`. */
static int bad_path(const struct cli_client *client, int code, struct error *error,
	const char *before, const char *after)
{
	char word[WORD_MAX];

	return error_set(error, code, "%s%s%s", before,
		text_printable(word, sizeof(word), client->path), after);
}

/* Nobody is there. Is there somebody where the system's own engine would be? */
static int nobody(const struct cli_client *client, int code, struct error *error, const char *why)
{
	char after[WORD_MAX];

	if (strcmp(client->path, default_system) != 0 && access(default_system, F_OK) == 0)
		snprintf(after, sizeof(after), " %s; try --socket %s", why, default_system);
	else
		snprintf(after, sizeof(after), " %s; --socket PATH names another", why);
	return bad_path(client, code, error, "no millrace runs here: ", after);
}

static int cannot_connect(const struct cli_client *client, int code, struct error *error)
{
	struct stat there;
	char why[80];

	switch (code) {
	case ENOENT:
	case ENOTDIR:
		return nobody(client, -code, error, "does not exist");
	case ECONNREFUSED:
		if (stat(client->path, &there) == 0 && !S_ISSOCK(there.st_mode))
			return nobody(client, -code, error, "is no socket");
		return nobody(
			client, -code, error, "is the socket of an engine that is no longer there");
	case EACCES:
	case EPERM:
		return bad_path(client, -code, error, "",
			": permission denied; an engine answers its own user, and root");
	case EPROTOTYPE:
		return bad_path(client, -code, error, "", " is not a socket of millrace's kind");
	case EAGAIN:
		return bad_path(client, -ETIMEDOUT, error, "",
			": the engine is there, but takes nobody in");
	default:
		snprintf(why, sizeof(why), ": %s", strerror(code));
		return bad_path(client, -code, error, "", why);
	}
}

static int set_timeout(const struct cli_client *client, long seconds)
{
	struct timeval time = {.tv_sec = seconds};

	return setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) |
	       setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

static int connect_to(struct cli_client *client, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(client->path);

	if (length >= sizeof(address.sun_path))
		return bad_path(client, -EINVAL, error, "",
			": too long, a socket's path has at most 107 bytes");
	memcpy(address.sun_path, client->path, length + 1);
	client->fd = socket(
		AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (client->instant ? SOCK_NONBLOCK : 0), 0);
	if (client->fd < 0) {
		error_set(error, -ENOBUFS, "no socket to be had: %s", strerror(errno));
		return -ENOBUFS;
	}
	if (!client->instant)
		set_timeout(client, GREETING_S);
	if (connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cannot_connect(client, errno, error);
	return 0;
}

int cli_client_greeted(const struct cli_client *client, const json_t *line, struct error *error)
{
	const char *version = json_string_value(json_object_get(line, "millrace"));
	const json_t *protocol = json_object_get(line, "protocol");
	char word[WORD_MAX];

	if (!version || !json_is_integer(protocol))
		return bad_path(
			client, -EPROTO, error, "", ": whoever listens there is not millrace");
	if (json_integer_value(protocol) == PROTOCOL)
		return 0;
	return error_set(error, -EPROTO,
		"millrace %s runs there and speaks protocol %lld, this program %d: ask it with the "
		"program it was started from",
		text_printable(word, sizeof(word), version),
		(long long)json_integer_value(protocol), PROTOCOL);
}

static int start(struct cli_client *client, const char *path, bool instant, struct error *error)
{
	*client = (struct cli_client){.fd = -1,
		.reader = -1,
		.instant = instant,
		.path = path ? path : default_path(),
		.size = FIRST_SIZE};
	client->buffer = malloc(client->size);
	if (!client->buffer)
		return error_set(error, -ENOMEM, "no memory for an answer");
	return connect_to(client, error);
}

int cli_client_start(struct cli_client *client, const char *path, struct error *error)
{
	return start(client, path, true, error);
}

int cli_client_open(struct cli_client *client, const char *path, struct error *error)
{
	struct cli_line line;
	int ret = start(client, path, false, error);

	if (ret < 0)
		return ret;
	ret = cli_client_next(client, &line, error);
	if (ret == -ETIMEDOUT)
		return bad_path(
			client, ret, error, "", ": somebody listens there, but does not answer");
	if (ret == -EPROTO || ret == -ECONNRESET)
		return bad_path(client, ret, error, "",
			ret == -EPROTO ? ": whoever listens there is not millrace"
				       : ": somebody listens there, but hung up");
	if (ret < 0)
		return ret;
	set_timeout(client, 0); /* an answer may take its time: a rate is measured first */
	return cli_client_greeted(client, line.json, error);
}

/*
 * All of it, unless the engine has gone: what it said before it went is still to be read. False when it takes no more
 * now, and nothing is waited for.
 */
static bool send_all(const struct cli_client *client, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(client->fd, text, length, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return errno != EAGAIN && errno != EWOULDBLOCK;
		if (sent > 0) {
			text += sent;
			length -= (size_t)sent;
		}
	}
	return true;
}

int cli_client_ask(
	struct cli_client *client, const char *ask, const json_t *with, struct error *error)
{
	json_t *request = json_pack("{s:s, s:O}", "ask", ask, "with", with);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int ret = 0;

	json_decref(request);
	if (!text)
		return error_set(error, -ENOMEM, "no memory for the request");
	size_t length = strlen(text);

	if (length + 1 > REQUEST_MAX) {
		ret = error_set(error, -E2BIG, "%s: longer than an engine takes: %zu bytes of %d",
			ask, length + 1, REQUEST_MAX);
	} else {
		text[length] = '\n';
		if (!send_all(client, text, length + 1) && client->instant)
			ret = bad_path(client, -ETIMEDOUT, error, "",
				": the engine takes no more requests");
	}
	free(text);
	return ret;
}

/* Room for more, behind what is there. */
static int make_room(struct cli_client *client, struct error *error)
{
	if (client->start > 0) {
		client->end -= client->start;
		memmove(client->buffer, client->buffer + client->start, client->end);
		client->start = 0;
	}
	if (client->end < client->size)
		return 0;
	if (client->size > CLI_LINE_MAX)
		return bad_path(client, -EPROTO, error, "",
			": a line of the answer is longer than 1,048,576 bytes");
	char *larger = realloc(client->buffer, 2 * client->size);

	if (!larger)
		return error_set(error, -ENOMEM, "no memory for an answer");
	client->buffer = larger;
	client->size *= 2;
	return 0;
}

/* Waits until there is something to read: 0, or -EPIPE when nobody would see it any more. */
static int wait_readable(const struct cli_client *client)
{
	struct pollfd fds[] = {
		{.fd = client->fd, .events = POLLIN}, {.fd = client->reader}, /* only errors */
	};

	if (client->reader < 0)
		return 0;
	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return 0;
	return fds[1].revents & (POLLERR | POLLHUP) ? -EPIPE : 0;
}

static int read_more(struct cli_client *client, struct error *error)
{
	ssize_t got;
	int ret = make_room(client, error);

	if (ret == 0)
		ret = wait_readable(client);
	if (ret < 0)
		return ret;
	do
		got = recv(client->fd, client->buffer + client->end, client->size - client->end, 0);
	while (got < 0 && errno == EINTR);
	if (got > 0) {
		client->end += (size_t)got;
		return 0;
	}
	if (got < 0 && client->instant && (errno == EAGAIN || errno == EWOULDBLOCK))
		return -EAGAIN;
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return error_set(error, -ETIMEDOUT, "no answer");
	if (got < 0 && errno != ECONNRESET)
		return bad_path(client, -EIO, error, "", ": cannot be read from");
	return bad_path(client, -ECONNRESET, error, "the engine at ",
		" has gone in the middle of its answer");
}

/* Finds the newline that ends the line at `start`, reading as much as it takes. */
static int find_line(struct cli_client *client, struct cli_line *line, struct error *error)
{
	size_t searched = 0;

	for (;;) {
		const char *text = client->buffer + client->start;
		size_t there = client->end - client->start;
		const char *newline = memchr(text + searched, '\n', there - searched);

		if (newline) {
			line->text = text;
			line->length = (size_t)(newline - text);
			client->start += line->length + 1;
			return 0;
		}
		searched = there;
		int ret = read_more(client, error);

		if (ret < 0)
			return ret;
	}
}

int cli_client_next(struct cli_client *client, struct cli_line *line, struct error *error)
{
	json_error_t where;
	int ret = find_line(client, line, error);

	if (ret < 0)
		return ret;
	json_decref(client->json);
	client->json = json_loadb(line->text, line->length, 0, &where);
	if (!json_is_object(client->json)) {
		char word[60];

		/* up to its end, or a control character that printable() shows as '?' */
		snprintf(word, sizeof(word), "%.*s",
			(int)(line->length < sizeof(word) ? line->length : sizeof(word) - 1),
			line->text);
		return error_set(error, -EPROTO, "the engine's answer is no JSON object: %s",
			text_printable(word, sizeof(word), word));
	}
	line->json = client->json;
	return json_is_true(json_object_get(client->json, "end")) ? 0 : 1;
}

void cli_client_close(struct cli_client *client)
{
	json_decref(client->json);
	free(client->buffer);
	if (client->fd >= 0)
		close(client->fd);
	*client = (struct cli_client){.fd = -1};
}
