/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A control server with a fake plane behind it and a socket in a directory of its own, and clients. All
 * in one thread: whoever waits for a line lets the server take step after step until it is there. The
 * server's clock is the scene's.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/server.h"
#include "unit/fake_plane.h"

#define SCENE_STEPS 200000
#define SCENE_CONFIG "{\"wires\":[\"left,right\",\"up,down\"],\"flows\":1000}"

struct scene {
	char directory[64];
	char path[96];
	struct plane plane;
	struct control *control;
	unsigned n_notes;
	char note[512]; /* the last one */
};

/* The server's clock. */
static uint64_t scene_now_us;

static inline uint64_t scene_clock(void)
{
	return scene_now_us;
}

static inline void scene_note(void *context, const char *line)
{
	struct scene *scene = context;

	scene->n_notes++;
	snprintf(scene->note, sizeof(scene->note), "%s", line);
}

static inline int scene_create(struct scene *scene, struct control **control, struct error *error)
{
	struct control_config config = {
		.socket_path = scene->path,
		.plane = &scene->plane,
		.config_json = SCENE_CONFIG "\n",
		.note = scene_note,
		.note_context = scene,
		.clock_us = scene_clock,
	};

	return control_create(control, &config, error);
}

static inline void scene_directory(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	snprintf(scene->directory, sizeof(scene->directory), "/tmp/millrace-control-XXXXXX");
	assert_non_null(mkdtemp(scene->directory));
	snprintf(scene->path, sizeof(scene->path), "%s/sock", scene->directory);
	fake_init(&scene->plane);
	scene_now_us = 1000000;
}

static inline int scene_setup(void **state)
{
	struct scene *scene = aligned_alloc(64, (sizeof(*scene) + 63) / 64 * 64);
	struct error error = {{0}};

	assert_non_null(scene);
	scene_directory(scene);
	if (scene_create(scene, &scene->control, &error) < 0)
		fail_msg("%s", error.text);
	*state = scene;
	return 0;
}

static inline int scene_teardown(void **state)
{
	struct scene *scene = *state;

	control_destroy(scene->control);
	fake_fini(&scene->plane);
	unlink(scene->path);
	/* nothing else lies there */
	assert_int_equal(rmdir(scene->directory), 0);
	free(scene);
	return 0;
}

static inline void scene_step(struct scene *scene)
{
	/* who waits for a thread that does not answer does so by the clock */
	if (scene->plane.silent)
		scene_now_us += 10000;
	assert_int_equal(control_step(scene->control, 0), 0);
}

/* Long enough for whatever is possible without anybody reading. */
static inline void scene_settle(struct scene *scene)
{
	for (unsigned i = 0; i < 400; i++)
		scene_step(scene);
}

struct talker {
	int fd;
	size_t n;
	bool eof;
	char data[200000];
};

/* Without a word, and without the greeting read. */
static inline int scene_connect(struct scene *scene)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, scene->path, sizeof(scene->path));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* What has come so far, and maybe the end. */
static inline void talker_read(struct talker *talker)
{
	ssize_t n;

	while ((n = recv(talker->fd, talker->data + talker->n, sizeof(talker->data) - talker->n,
			0)) > 0)
		talker->n += (size_t)n;
	if (n == 0 && talker->n < sizeof(talker->data))
		talker->eof = true;
	else if (n < 0 && errno == ECONNRESET)
		talker->eof = true;
}

/* The next line as text, to be freed; NULL when the connection ends without one. */
static inline char *talker_text(struct scene *scene, struct talker *talker)
{
	for (unsigned i = 0; i < SCENE_STEPS; i++) {
		char *newline = memchr(talker->data, '\n', talker->n);

		if (newline) {
			size_t length = (size_t)(newline - talker->data);
			char *line = strndup(talker->data, length);

			talker->n -= length + 1;
			memmove(talker->data, newline + 1, talker->n);
			return line;
		}
		if (talker->eof)
			return NULL;
		scene_step(scene);
		talker_read(talker);
	}
	fail_msg("no line came");
	return NULL;
}

static inline json_t *talker_line(struct scene *scene, struct talker *talker)
{
	char *text = talker_text(scene, talker);
	json_error_t why;

	if (!text)
		return NULL;
	json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	if (!line)
		fail_msg("%s: %s", why.text, text);
	free(text);
	return line;
}

static inline void talker_say(struct talker *talker, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t n = send(talker->fd, bytes, length, MSG_NOSIGNAL);

		if (n <= 0)
			fail_msg("sending: %s", strerror(errno));
		bytes += n;
		length -= (size_t)n;
	}
}

static inline void talker_ask(struct talker *talker, const char *request)
{
	talker_say(talker, request, strlen(request));
	talker_say(talker, "\n", 1);
}

/* Connected, and greeted. */
static inline struct talker *talker_create(struct scene *scene)
{
	struct talker *talker = calloc(1, sizeof(*talker));

	assert_non_null(talker);
	talker->fd = scene_connect(scene);
	json_t *greeting = talker_line(scene, talker);

	assert_non_null(greeting);
	assert_true(json_is_string(json_object_get(greeting, "millrace")));
	assert_int_equal(json_integer_value(json_object_get(greeting, "protocol")), 1);
	assert_true(json_is_string(json_object_get(greeting, "started")));
	json_decref(greeting);
	return talker;
}

static inline void talker_destroy(struct talker *talker)
{
	close(talker->fd);
	free(talker);
}

/* All lines up to the one that ends the answer, which is the last of the array. */
static inline json_t *talker_answer(struct scene *scene, struct talker *talker)
{
	json_t *lines = json_array();

	for (;;) {
		json_t *line = talker_line(scene, talker);

		if (!line)
			fail_msg("the connection ends within an answer");
		json_array_append_new(lines, line);
		if (json_object_get(line, "end") && !json_object_get(line, "src"))
			return lines;
	}
}

/* One request on a connection of its own. */
static inline json_t *scene_ask(struct scene *scene, const char *request)
{
	struct talker *talker = talker_create(scene);

	talker_ask(talker, request);
	json_t *lines = talker_answer(scene, talker);

	talker_destroy(talker);
	return lines;
}

static inline json_t *lines_end(json_t *lines)
{
	return json_array_get(lines, json_array_size(lines) - 1);
}

static inline const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static inline json_int_t number_of(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	if (!json_is_integer(number))
		fail_msg("%s is no whole number", key);
	return json_integer_value(number);
}

/* The request fails with this error and this code, and has no other line. */
static inline void expect_error(
	struct scene *scene, const char *request, const char *error, int code)
{
	json_t *lines = scene_ask(scene, request);
	json_t *end = lines_end(lines);

	if (!text_of(end, "error"))
		fail_msg("no error: %s", request);
	assert_string_equal(text_of(end, "error"), error);
	assert_int_equal(number_of(end, "code"), code);
	assert_int_equal(json_array_size(lines), 1);
	json_decref(lines);
}

/* The request is answered well, by `n` lines and the end. */
static inline json_t *expect_lines(struct scene *scene, const char *request, size_t n)
{
	json_t *lines = scene_ask(scene, request);
	json_t *end = lines_end(lines);

	if (text_of(end, "error"))
		fail_msg("%s: %s", request, text_of(end, "error"));
	assert_true(json_is_null(json_object_get(end, "error")));
	assert_true(json_is_true(json_object_get(end, "end")));
	assert_int_equal(json_array_size(lines), n + 1);
	return lines;
}

#define SCENE_TEST(function) cmocka_unit_test_setup_teardown(function, scene_setup, scene_teardown)
