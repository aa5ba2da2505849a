/* SPDX-License-Identifier: BSD-3-Clause */

/* Whom the control socket is taken from, and whom not; and what is left behind. */

#include <sys/file.h>
#include <sys/wait.h>

#include "unit/control_scene.h"

static int directory_setup(void **state)
{
	struct scene *scene = aligned_alloc(64, (sizeof(*scene) + 63) / 64 * 64);

	assert_non_null(scene);
	scene_directory(scene);
	*state = scene;
	return 0;
}

/* Creation fails like this, and what lies at the path stays as it is. */
static void expect_refused(struct scene *scene, int code, const char *line)
{
	struct control *control = NULL;
	struct stat before, after;
	struct error error = {{0}};
	int there = lstat(scene->path, &before);

	assert_int_equal(scene_create(scene, &control, &error), code);
	assert_null(control);
	assert_string_equal(error.text, line);
	assert_int_equal(lstat(scene->path, &after), there);
	if (there == 0)
		assert_true(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
}

static void create(struct scene *scene)
{
	struct error error = {{0}};

	if (scene_create(scene, &scene->control, &error) < 0)
		fail_msg("%s", error.text);
}

/* A socket that somebody was bound to once. */
static void leave_dead_socket(struct scene *scene)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, scene->path, sizeof(scene->path));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void test_mode(void **state)
{
	struct scene *scene = *state;
	struct stat there;
	mode_t mask = umask(0);

	create(scene);
	assert_int_equal(umask(mask), 0);
	assert_int_equal(stat(scene->path, &there), 0);
	assert_true(S_ISSOCK(there.st_mode));
	assert_int_equal(there.st_mode & 07777, 0600);
	assert_string_equal(control_path(scene->control), scene->path);
	assert_int_equal(scene->n_notes, 0);
	control_destroy(scene->control);
	scene->control = NULL;
	assert_int_equal(stat(scene->path, &there), -1);
}

static void test_alive(void **state)
{
	struct scene *scene = *state;
	char line[256];

	create(scene);
	snprintf(line, sizeof(line), "another millrace answers at %s", scene->path);
	expect_refused(scene, -EADDRINUSE, line);

	/* also when so many knock that no more are let wait at its door */
	int crowd[400];
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, scene->path, sizeof(scene->path));
	for (unsigned i = 0; i < 400; i++) {
		crowd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(crowd[i], (struct sockaddr *)&address, sizeof(address));
	}
	expect_refused(scene, -EADDRINUSE, line);
	for (unsigned i = 0; i < 400; i++)
		close(crowd[i]);

	/* and the one that lives goes on as before */
	scene_settle(scene);
	json_decref(expect_lines(scene, "{\"ask\":\"config show\"}", 1));
}

static void test_dead(void **state)
{
	struct scene *scene = *state;
	char line[256];

	leave_dead_socket(scene);
	create(scene);
	snprintf(line, sizeof(line), "%s was left by an engine that is dead: taken over",
		scene->path);
	assert_int_equal(scene->n_notes, 1);
	assert_string_equal(scene->note, line);
	json_decref(expect_lines(scene, "{\"ask\":\"config show\"}", 1));
}

static void test_no_socket(void **state)
{
	struct scene *scene = *state;
	char line[256];
	int fd = open(scene->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	snprintf(line, sizeof(line),
		"control socket %s: something that is no socket lies there already", scene->path);
	expect_refused(scene, -EEXIST, line);
	assert_int_equal(unlink(scene->path), 0);

	assert_int_equal(mkdir(scene->path, 0700), 0);
	expect_refused(scene, -EEXIST, line);
	assert_int_equal(rmdir(scene->path), 0);

	/* a link is not followed, wherever it leads */
	assert_int_equal(symlink("nowhere", scene->path), 0);
	expect_refused(scene, -EEXIST, line);
	assert_int_equal(unlink(scene->path), 0);
}

static void test_other_kind(void **state)
{
	struct scene *scene = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char line[256];

	memcpy(address.sun_path, scene->path, sizeof(scene->path));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(line, sizeof(line), "control socket %s: a socket of another kind is there already",
		scene->path);
	expect_refused(scene, -EADDRINUSE, line);
	close(fd);
}

static void test_bad_paths(void **state)
{
	struct scene *scene = *state;
	char line[256];
	int fd;

	snprintf(scene->path, sizeof(scene->path), "%s/none/sock", scene->directory);
	snprintf(
		line, sizeof(line), "control socket %s: its directory does not exist", scene->path);
	expect_refused(scene, -ENOENT, line);

	snprintf(scene->path, sizeof(scene->path), "%s/file", scene->directory);
	fd = open(scene->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	strcat(scene->path, "/sock");
	snprintf(line, sizeof(line), "control socket %s: what should be its directory is none",
		scene->path);
	expect_refused(scene, -ENOTDIR, line);
	scene->path[strlen(scene->path) - 5] = '\0';
	assert_int_equal(unlink(scene->path), 0);

	scene->path[0] = '\0';
	expect_refused(scene, -EINVAL, "the control socket needs a path");
	snprintf(scene->path, sizeof(scene->path), "%s/sock", scene->directory);
}

static void test_length(void **state)
{
	struct scene *scene = *state;
	struct control_config config = {.plane = &scene->plane};
	struct control *control = NULL;
	struct error error;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	char *end = path + snprintf(path, sizeof(path), "%s/", scene->directory);

	/* the longest that can be: 107 bytes and a zero */
	memset(end, 'x', (size_t)(path + sizeof(path) - end));
	path[sizeof(path) - 2] = '\0';
	config.socket_path = path;
	assert_int_equal(control_create(&control, &config, &error), 0);
	assert_string_equal(control_path(control), path);
	control_destroy(control);

	path[sizeof(path) - 2] = 'x';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(control_create(&control, &config, &error), -ENAMETOOLONG);
	assert_non_null(
		strstr(error.text, ": too long: the path of a socket has at most 107 bytes"));
}

static void test_default(void **state)
{
	struct scene *scene = *state;
	struct control_config config = {.plane = &scene->plane};
	struct control *control = NULL;
	const char *before = getenv("XDG_RUNTIME_DIR");
	char *kept = before ? strdup(before) : NULL;
	struct error error;
	char path[128];

	setenv("XDG_RUNTIME_DIR", scene->directory, 1);
	snprintf(path, sizeof(path), "%s/millrace.sock", scene->directory);
	assert_int_equal(control_create(&control, &config, &error), 0);
	assert_string_equal(control_path(control), path);
	control_destroy(control);
	if (kept)
		setenv("XDG_RUNTIME_DIR", kept, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	free(kept);
}

/* What somebody put in our place meanwhile is not ours to remove. */
static void test_replaced(void **state)
{
	struct scene *scene = *state;
	struct stat there;

	create(scene);
	assert_int_equal(unlink(scene->path), 0);
	leave_dead_socket(scene);
	control_destroy(scene->control);
	scene->control = NULL;
	assert_int_equal(lstat(scene->path, &there), 0);
}

/* Anybody who may read the directory can lock it: that keeps nobody out, and its refusals go on. */
static void test_lock_of_another_program(void **state)
{
	struct scene *scene = *state;
	int lock = open(scene->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char line[256];

	assert_int_equal(flock(lock, LOCK_EX), 0);
	leave_dead_socket(scene);
	create(scene);
	snprintf(line, sizeof(line), "another millrace answers at %s", scene->path);
	expect_refused(scene, -EADDRINUSE, line);
	close(lock);
}

enum { RUNNERS = 4 };

/* Starts when `go` ends, tells whether it got the place, and holds it until `hold` ends. */
static void run_one(struct scene *scene, int go, int told, int hold)
{
	struct control *control = NULL;
	struct error error;
	char outcome;

	(void)!read(go, &outcome, 1);
	outcome = scene_create(scene, &control, &error) == 0 ? 'y' : 'n';
	(void)!write(told, &outcome, 1);
	(void)!read(hold, &outcome, 1);
	control_destroy(control);
	_exit(0);
}

/* Of several that start at once on a dead engine's socket, one gets it and answers. */
static void race(struct scene *scene)
{
	pid_t pids[RUNNERS];
	int go[2], told[2], hold[2];
	unsigned n_won = 0;
	char outcome;

	leave_dead_socket(scene);
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(hold), 0);
	for (unsigned i = 0; i < RUNNERS; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		close(go[1]);
		close(hold[1]);
		run_one(scene, go[0], told[1], hold[0]);
	}
	close(go[0]);
	close(go[1]);
	close(hold[0]);
	for (unsigned i = 0; i < RUNNERS; i++) {
		assert_int_equal(read(told[0], &outcome, 1), 1);
		n_won += outcome == 'y';
	}
	assert_int_equal(n_won, 1);
	close(scene_connect(scene));
	close(hold[1]);
	for (unsigned i = 0; i < RUNNERS; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	close(told[0]);
	close(told[1]);
}

static void test_race(void **state)
{
	for (unsigned i = 0; i < 25; i++)
		race(*state);
}

#define PLACE_TEST(function) \
	cmocka_unit_test_setup_teardown(function, directory_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(test_mode),
		PLACE_TEST(test_alive),
		PLACE_TEST(test_dead),
		PLACE_TEST(test_no_socket),
		PLACE_TEST(test_other_kind),
		PLACE_TEST(test_bad_paths),
		PLACE_TEST(test_length),
		PLACE_TEST(test_default),
		PLACE_TEST(test_replaced),
		PLACE_TEST(test_lock_of_another_program),
		PLACE_TEST(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
