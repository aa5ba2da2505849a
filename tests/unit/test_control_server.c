/* SPDX-License-Identifier: BSD-3-Clause */

/* The server and its clients: those who behave, those who do not read, those who are gone. */

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>

#include "unit/control_scene.h"

#define CONFIG_SHOW "{\"ask\":\"config show\"}"
#define MANY 20000

static unsigned count_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

/* Answered, on this connection, with the configuration. */
static void expect_config(struct scene *scene, struct talker *talker)
{
	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(json_array_size(lines), 2);
	assert_int_equal(number_of(json_array_get(lines, 0), "flows"), 1000);
	json_decref(lines);
}

static void test_greeting(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);

	assert_int_equal(talker->n, 0);
	talker_ask(talker, CONFIG_SHOW);
	char *line = talker_text(scene, talker);

	assert_string_equal(line, SCENE_CONFIG);
	free(line);
	line = talker_text(scene, talker);
	assert_string_equal(line, "{\"end\":true,\"error\":null}");
	free(line);
	talker_destroy(talker);
}

/* One after another on the same connection, all sent at once, in pieces, and by a careful client. */
static void test_several_requests(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);
	static const char both[] = CONFIG_SHOW "\r\n" CONFIG_SHOW "\n" CONFIG_SHOW;

	talker_say(talker, both, sizeof(both) - 1);
	expect_config(scene, talker);
	expect_config(scene, talker);
	talker_say(talker, "\n", 1);
	expect_config(scene, talker);
	for (const char *byte = CONFIG_SHOW "\n"; *byte; byte++) {
		talker_say(talker, byte, 1);
		scene_step(scene);
	}
	expect_config(scene, talker);
	for (unsigned i = 0; i < 5000; i++) {
		talker_ask(talker, CONFIG_SHOW);
		expect_config(scene, talker);
	}
	talker_destroy(talker);
}

/* As netcat does: all that it has to say, and then its end. With and without the last newline. */
static void test_half_closed(void **state)
{
	struct scene *scene = *state;

	for (unsigned newline = 0; newline < 2; newline++) {
		struct talker *talker = talker_create(scene);

		scene->plane.made_up = MANY;
		talker_say(talker, "{\"ask\":\"flow list\"}\n", 19 + newline);
		shutdown(talker->fd, SHUT_WR);
		json_t *lines = talker_answer(scene, talker);

		assert_int_equal(json_array_size(lines), 2 * MANY + 1);
		json_decref(lines);
		assert_null(talker_line(scene, talker));
		talker_destroy(talker);
	}
}

static void test_longest_request(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);
	char request[4200];

	memset(request, ' ', sizeof(request));
	memcpy(request, CONFIG_SHOW, strlen(CONFIG_SHOW));
	request[4096] = '\n';
	talker_say(talker, request, 4097);
	expect_config(scene, talker);

	/* one byte more is too much, whether or not it ends */
	memset(request + 4096, ' ', 2);
	for (unsigned ends = 0; ends < 2; ends++) {
		request[4097] = ends ? '\n' : ' ';
		talker_say(talker, request, 4098);
		json_t *end = talker_line(scene, talker);

		assert_string_equal(text_of(end, "error"), "a request has at most 4096 bytes");
		assert_int_equal(number_of(end, "code"), 2);
		json_decref(end);
		assert_null(talker_line(scene, talker));
		talker_destroy(talker);
		talker = talker_create(scene);
	}
	talker_destroy(talker);
}

/* Fills its socket and its buffer, and then waits; nobody else notices. */
static void test_never_reads(void **state)
{
	struct scene *scene = *state;
	struct talker *lazy[3];

	scene->plane.made_up = MANY;
	for (unsigned i = 0; i < 3; i++) {
		lazy[i] = talker_create(scene);
		talker_ask(lazy[i], "{\"ask\":\"flow list\"}");
	}
	scene_settle(scene);
	unsigned n_pages = scene->plane.n_pages;

	/* it has stopped asking the plane, far from the end, and is not at it in vain */
	assert_true(n_pages > 0 && n_pages < 3 * MANY / PLANE_PAGE);
	scene_settle(scene);
	assert_int_equal(scene->plane.n_pages, n_pages);

	json_t *lines =
		expect_lines(scene, "{\"ask\":\"flow list\",\"with\":{\"limit\":1000}}", 1000);

	json_decref(lines);

	/* one of them changes its mind and gets all of it */
	lines = talker_answer(scene, lazy[1]);
	assert_int_equal(json_array_size(lines), 2 * MANY + 1);
	json_decref(lines);
	for (unsigned i = 0; i < 3; i++)
		talker_destroy(lazy[i]);
}

/* Clients that go away at every stage of an answer. */
static void test_killed(void **state)
{
	struct scene *scene = *state;

	scene->plane.made_up = MANY;
	scene_settle(scene);
	unsigned before = count_files();

	for (unsigned i = 0; i < 60; i++) {
		struct talker *talker = talker_create(scene);

		talker_ask(talker, i % 3 == 0	? "{\"ask\":\"event follow\"}"
				   : i % 3 == 1 ? "{\"ask\":\"flow list\"}"
						: "{\"ask\":\"flow list\",\"with\":{\"top\":10}}");
		for (unsigned step = 0; step < i; step++)
			scene_step(scene);
		talker_destroy(talker);
	}
	scene_settle(scene);
	assert_int_equal(count_files(), before);
	assert_false(scene->plane.following);
	json_decref(expect_lines(scene, CONFIG_SHOW, 1));

	/* what was asked before it went is done */
	struct flow_record record = fake_flow("10.9.0.1", 1, "10.9.0.2", 2, 17);
	struct talker *talker = talker_create(scene);

	fake_add(&scene->plane, 1, 100, &record);
	scene->plane.made_up = 0;
	talker_ask(talker, "{\"ask\":\"flow kill\",\"with\":{\"src\":\"10.9.0.1\",\"sport\":1,"
			   "\"dst\":\"10.9.0.2\",\"dport\":2,\"proto\":\"udp\"}}");
	talker_destroy(talker);
	scene_settle(scene);
	assert_int_equal(scene->plane.n_kills, 1);
}

static void test_thousand(void **state)
{
	struct scene *scene = *state;
	unsigned before = count_files();

	for (unsigned i = 0; i < 1000; i++)
		json_decref(expect_lines(scene, CONFIG_SHOW, 1));
	scene_settle(scene);
	assert_int_equal(count_files(), before);
}

static void test_seventy(void **state)
{
	struct scene *scene = *state;
	struct talker *talkers[70];
	unsigned before = count_files();

	for (unsigned i = 0; i < 70; i++)
		talkers[i] = talker_create(scene);
	for (unsigned i = 64; i < 70; i++) {
		json_t *end = talker_line(scene, talkers[i]);

		assert_string_equal(
			text_of(end, "error"), "too many clients: 64 are served at a time");
		assert_int_equal(number_of(end, "code"), 1);
		json_decref(end);
		assert_null(talker_line(scene, talkers[i]));
	}
	/* all the others are served at the same time */
	for (unsigned i = 0; i < 64; i++)
		talker_ask(talkers[i], CONFIG_SHOW);
	for (unsigned i = 0; i < 64; i++)
		expect_config(scene, talkers[63 - i]);

	/* a place that becomes free is taken */
	talker_destroy(talkers[10]);
	scene_settle(scene);
	talkers[10] = talker_create(scene);
	talker_ask(talkers[10], CONFIG_SHOW);
	expect_config(scene, talkers[10]);
	for (unsigned i = 0; i < 70; i++)
		talker_destroy(talkers[i]);
	scene_settle(scene);
	assert_int_equal(count_files(), before);
}

/* Who has long been silent makes room, oldest first; who follows or has just asked does not. */
static void test_idle_make_room(void **state)
{
	struct scene *scene = *state;
	struct talker *talkers[64];

	for (unsigned i = 0; i < 64; i++) {
		talkers[i] = talker_create(scene);
		scene_now_us += 1000;
	}
	talker_ask(talkers[0], "{\"ask\":\"event follow\"}");
	scene_step(scene);
	/* a client that has asked for much and reads nothing counts as silent, too */
	scene->plane.made_up = MANY;
	talker_ask(talkers[1], "{\"ask\":\"flow list\"}");
	scene_settle(scene);
	scene_now_us += 59 * 1000000;
	for (unsigned i = 2; i < 64; i++) {
		if (i == 40)
			continue;
		talker_ask(talkers[i], CONFIG_SHOW);
		expect_config(scene, talkers[i]);
	}
	struct talker *refused = talker_create(scene);
	json_t *end = talker_line(scene, refused);

	assert_int_equal(number_of(end, "code"), 1);
	json_decref(end);
	talker_destroy(refused);

	scene_now_us += 2 * 1000000;
	struct talker *late[2] = {talker_create(scene), talker_create(scene)};

	for (unsigned i = 0; i < 2; i++) {
		talker_ask(late[i], CONFIG_SHOW);
		expect_config(scene, late[i]);
	}
	assert_null(talker_line(scene, talkers[40]));
	scene->plane.made_up = 0;
	while (!talkers[1]->eof) {
		talkers[1]->n = 0;
		talker_read(talkers[1]);
		scene_step(scene);
	}
	refused = talker_create(scene);
	end = talker_line(scene, refused);
	assert_int_equal(number_of(end, "code"), 1);
	json_decref(end);
	talker_destroy(refused);
	assert_false(talkers[0]->eof);
	assert_true(scene->plane.following);
	for (unsigned i = 0; i < 64; i++)
		talker_destroy(talkers[i]);
	talker_destroy(late[0]);
	talker_destroy(late[1]);
}

/* Without a descriptor to spare a client is told so, and the server does not spin at its door. */
static void test_no_files_left(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = calloc(1, sizeof(*talker));
	struct rlimit before, low;

	talker->fd = scene_connect(scene);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = (rlim_t)talker->fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	scene_step(scene);
	scene_step(scene);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	json_decref(talker_line(scene, talker));
	json_t *end = talker_line(scene, talker);

	assert_int_equal(number_of(end, "code"), 1);
	json_decref(end);
	assert_null(talker_line(scene, talker));
	talker_destroy(talker);
	json_decref(expect_lines(scene, CONFIG_SHOW, 1));
}

static unsigned n_ready;

static void ready(void *context, int fd)
{
	char byte;

	(void)context;
	n_ready += read(fd, &byte, 1) == 1;
}

static void test_watch(void **state)
{
	struct scene *scene = *state;
	int ends[2];

	n_ready = 0;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(control_watch(scene->control, ends[0], ready, NULL), 0);
	assert_int_equal(control_watch(scene->control, ends[0], ready, NULL), -EEXIST);
	scene_step(scene);
	assert_int_equal(n_ready, 0);
	assert_int_equal(write(ends[1], "ab", 2), 2);
	assert_int_equal(control_step(scene->control, -1), 0);
	scene_step(scene);
	assert_int_equal(n_ready, 2);
	int files[CONTROL_MAX_WATCHES + 1];

	for (unsigned i = 0; i <= CONTROL_MAX_WATCHES; i++) {
		files[i] = dup(ends[0]);
		assert_int_equal(control_watch(scene->control, files[i], ready, NULL),
			i + 1 < CONTROL_MAX_WATCHES ? 0 : -ENOSPC);
	}
	for (unsigned i = 0; i <= CONTROL_MAX_WATCHES; i++)
		close(files[i]);
	close(ends[0]);
	close(ends[1]);
}

/* A step waits no longer than allowed, by the real clock. */
static void test_wait(void **state)
{
	struct scene *scene = *state;
	struct timespec begin, end;

	scene_step(scene);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(control_step(scene->control, 20), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;

	assert_in_range(ms, 15, 5000);
}

/* Whoever is in the middle of an answer when the engine ends is told. */
static void test_farewell(void **state)
{
	struct scene *scene = *state;
	struct talker *list = talker_create(scene), *follower = talker_create(scene);
	struct talker *silent = talker_create(scene);
	struct flow_record record = fake_flow("10.0.0.1", 1, "10.0.0.2", 2, 17);
	struct path_event event = {.key = record.key, .kind = PATH_EVENT_FLOW_END};

	talker_ask(list, "{\"ask\":\"flow list\",\"with\":{\"top\":5}}");
	talker_ask(follower, "{\"ask\":\"event follow\"}");
	scene_settle(scene);
	event.reason = FLOW_END_SHUTDOWN;
	fake_event(&scene->plane, &event);
	control_destroy(scene->control);
	scene->control = NULL;

	talker_read(list);
	json_t *end = talker_line(scene, list);

	assert_string_equal(text_of(end, "error"), "this engine ends");
	assert_int_equal(number_of(end, "code"), 1);
	json_decref(end);
	talker_read(follower);
	json_t *ended = talker_line(scene, follower);

	assert_string_equal(text_of(ended, "end_reason"), "shutdown");
	json_decref(ended);
	end = talker_line(scene, follower);
	assert_true(json_is_null(json_object_get(end, "error")));
	json_decref(end);
	talker_read(silent);
	assert_true(silent->eof && silent->n == 0);
	assert_false(scene->plane.following);
	talker_destroy(list);
	talker_destroy(follower);
	talker_destroy(silent);
}

/* A thread of the packet path does not answer: who asked it waits, others are served meanwhile. */
static void test_deaf(void **state)
{
	struct scene *scene = *state;
	struct talker *first = talker_create(scene), *other = talker_create(scene);

	scene->plane.silent = true;
	talker_ask(first, "{\"ask\":\"wire show\"}");
	scene_step(scene);
	talker_ask(other, "{\"ask\":\"config show\"}");
	json_decref(talker_answer(scene, other));
	talker_read(first);
	assert_int_equal(first->n, 0);
	scene->plane.silent = false;
	scene_now_us += 10000;
	json_t *lines = talker_answer(scene, first);

	assert_int_equal(json_array_size(lines), 3);
	json_decref(lines);
	/* one that has begun goes on where it was */
	scene->plane.made_up = 1000;
	talker_ask(first, "{\"ask\":\"flow list\"}");
	for (unsigned i = 0; i < 5; i++)
		scene_step(scene);
	scene->plane.silent = true;
	scene_step(scene);
	talker_ask(other, "{\"ask\":\"config show\"}");
	json_decref(talker_answer(scene, other));
	scene->plane.silent = false;
	scene_now_us += 10000;
	lines = talker_answer(scene, first);
	assert_int_equal(json_array_size(lines), 2 * 1000 + 1);
	json_decref(lines);
	talker_destroy(first);
	talker_destroy(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_greeting),
		SCENE_TEST(test_several_requests),
		SCENE_TEST(test_half_closed),
		SCENE_TEST(test_longest_request),
		SCENE_TEST(test_never_reads),
		SCENE_TEST(test_killed),
		SCENE_TEST(test_thousand),
		SCENE_TEST(test_seventy),
		SCENE_TEST(test_idle_make_room),
		SCENE_TEST(test_no_files_left),
		SCENE_TEST(test_watch),
		SCENE_TEST(test_wait),
		SCENE_TEST(test_deaf),
		SCENE_TEST(test_farewell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
