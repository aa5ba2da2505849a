/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define BACKLOG 128
/* Others hold the lock for some system calls; who holds it this long is no millrace. */
#define LOCK_TRIES 200
#define LOCK_PAUSE_NS 5000000

/* What is wrong with a path, fit for a line of text. */
static int bad_path(struct error *error, int code, const char *path, const char *what)
{
	char word[160];

	return error_set(error, code, "control socket %s: %s",
		text_printable(word, sizeof(word), path), what);
}

static int take_path(struct control_place *place, const char *path, struct error *error)
{
	const char *directory = getenv("XDG_RUNTIME_DIR");
	int length;

	if (path)
		length = snprintf(place->path, sizeof(place->path), "%s", path);
	else
		length = snprintf(place->path, sizeof(place->path), "%s/millrace.sock",
			directory && *directory ? directory : "/run");
	if (length == 0)
		return error_set(error, -EINVAL, "the control socket needs a path");
	if ((size_t)length >= sizeof(place->path)) {
		char what[80];

		snprintf(what, sizeof(what), "too long: the path of a socket has at most %zu bytes",
			sizeof(place->path) - 1);
		return bad_path(error, -ENAMETOOLONG, path ? path : place->path, what);
	}
	return 0;
}

static struct sockaddr_un address_of(const struct control_place *place)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, place->path, sizeof(address.sun_path));
	return address;
}

/*
 * The lock, or -1 where the directory cannot be read or locked: then two that start in the same
 * instant may quarrel, and nothing else is lost. Whoever may read the directory can hold its lock for
 * ever, so that nobody may be kept out by it.
 */
static int lock_directory(const struct control_place *place, int *lock, struct error *error)
{
	char directory[sizeof(place->path)];
	struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	memcpy(directory, place->path, sizeof(directory));
	char *slash = strrchr(directory, '/');

	if (slash)
		slash[slash == directory] = '\0';
	*lock = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock < 0 && errno == ENOENT)
		return bad_path(error, -ENOENT, place->path, "its directory does not exist");
	if (*lock < 0 && errno == ENOTDIR)
		return bad_path(
			error, -ENOTDIR, place->path, "what should be its directory is none");
	for (unsigned i = 0; *lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES) {
			close(*lock);
			*lock = -1;
			break;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Does anybody listen? 0 when nobody does any more, else a negative errno with a line. */
static int knock(const struct control_place *place, struct error *error)
{
	struct sockaddr_un address = address_of(place);
	char word[160];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return bad_path(error, -errno, place->path, strerror(errno));
	int code = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;

	close(fd);
	switch (code) {
	case ECONNREFUSED:
	case ENOENT:
		return 0;
	case 0:
	case EAGAIN: /* alive, and so busy that its queue is full */
	case EINPROGRESS:
		return error_set(error, -EADDRINUSE, "another millrace answers at %s",
			text_printable(word, sizeof(word), place->path));
	case EPROTOTYPE:
		return bad_path(error, -EADDRINUSE, place->path,
			"a socket of another kind is there already");
	default:
		return bad_path(error, -code, place->path, strerror(code));
	}
}

/* Removes what a dead engine left. */
static int make_way(struct control_place *place, struct error *error)
{
	struct stat there;

	if (lstat(place->path, &there) < 0) {
		if (errno == ENOENT)
			return 0;
		return bad_path(error, -errno, place->path, strerror(errno));
	}
	if (!S_ISSOCK(there.st_mode))
		return bad_path(error, -EEXIST, place->path,
			"something that is no socket lies there already");
	int ret = knock(place, error);

	if (ret < 0)
		return ret;
	if (unlink(place->path) < 0 && errno != ENOENT)
		return bad_path(error, -errno, place->path, strerror(errno));
	place->taken_over = true;
	return 0;
}

static int bind_and_listen(struct control_place *place, struct error *error)
{
	struct sockaddr_un address = address_of(place);
	struct stat ours;

	/* nobody else may ever connect: not even between bind() and a chmod() */
	mode_t mask = umask(0177);
	int ret = bind(place->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno
											  : 0;

	umask(mask);
	if (ret == -EACCES || ret == -EROFS)
		return bad_path(error, ret, place->path,
			"this user may not make files in its directory; --socket PATH puts it "
			"elsewhere");
	if (ret < 0)
		return bad_path(error, ret, place->path, strerror(-ret));
	if (listen(place->fd, BACKLOG) < 0 || lstat(place->path, &ours) < 0) {
		ret = -errno;
		unlink(place->path);
		return bad_path(error, ret, place->path, strerror(-ret));
	}
	place->device = ours.st_dev;
	place->inode = ours.st_ino;
	return 0;
}

static int claim_locked(struct control_place *place, struct error *error)
{
	int ret = make_way(place, error);

	if (ret < 0)
		return ret;
	place->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (place->fd < 0)
		return bad_path(error, -errno, place->path, strerror(errno));
	ret = bind_and_listen(place, error);
	if (ret < 0) {
		close(place->fd);
		place->fd = -1;
	}
	return ret;
}

int control_place_claim(struct control_place *place, const char *path, struct error *error)
{
	int lock = -1;

	*place = (struct control_place){.fd = -1};
	int ret = take_path(place, path, error);

	if (ret == 0)
		ret = lock_directory(place, &lock, error);
	if (ret < 0)
		return ret;
	ret = claim_locked(place, error);
	if (lock >= 0)
		close(lock);
	return ret;
}

void control_place_release(struct control_place *place)
{
	struct stat there;

	if (place->fd < 0)
		return;
	/* while the socket is still open nobody can take it for dead and put another in its place */
	if (lstat(place->path, &there) == 0 && there.st_dev == place->device &&
		there.st_ino == place->inode)
		unlink(place->path);
	close(place->fd);
	place->fd = -1;
}
