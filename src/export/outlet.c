/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Who talks to whom is not for everybody: the owner's, and for the group to read. */
#define NEW_FILE_MODE 0640

/* A way to open once more what is open as `fd`. */
static int open_again(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC | O_NOCTTY);
}

static void learn_kind(struct outlet *outlet)
{
	struct statfs system;
	struct stat status;

	if (fstat(outlet->fd, &status) < 0)
		return;
	outlet->file = S_ISREG(status.st_mode);
	outlet->socket = S_ISSOCK(status.st_mode);
	outlet->terminal = isatty(outlet->fd);
	/* pipes without a name lie in a file system of their own */
	outlet->fifo = S_ISFIFO(status.st_mode) && fstatfs(outlet->fd, &system) == 0 &&
		       system.f_type != PIPEFS_MAGIC;
}

static int open_standard(struct outlet *outlet)
{
	outlet->fd = STDOUT_FILENO;
	learn_kind(outlet);
	outlet->fifo = false; /* its name is not known here */
	if (!outlet->impatient || outlet->file || outlet->socket)
		return 0;

	int again = open_again(STDOUT_FILENO, O_WRONLY | O_NONBLOCK);

	if (again >= 0) {
		outlet->fd = again;
		outlet->ours = true;
	} else {
		outlet->pieces = true;
	}
	return 0;
}

int outlet_open(struct outlet *outlet, const char *path, bool impatient)
{
	int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;

	flags |= impatient ? O_APPEND | O_NONBLOCK : O_TRUNC;
	*outlet = (struct outlet){.impatient = impatient};
	if (!path)
		return open_standard(outlet);
	/* made only if missing: where everybody may write, O_CREAT refuses another user's FIFO */
	outlet->fd = open(path, flags);
	if (outlet->fd < 0 && errno == ENOENT)
		outlet->fd = open(path, flags | O_CREAT, NEW_FILE_MODE);
	if (outlet->fd < 0)
		return -errno;
	outlet->ours = true;
	learn_kind(outlet);
	return 0;
}

bool outlet_reopens(const struct outlet *outlet)
{
	return outlet->fd < 0 || outlet->fifo || (outlet->file && outlet->ours);
}

/* Ends the line that somebody killed in the middle of writing left at the end of the file. */
static int end_cut_line(const struct outlet *outlet)
{
	int reading = open_again(outlet->fd, O_RDONLY);
	struct stat status;
	char last = '\n';
	int ret = 0;

	if (reading < 0)
		return 0; /* to be written only: then we do not know */
	if (fstat(reading, &status) == 0 && status.st_size > 0 &&
		pread(reading, &last, 1, status.st_size - 1) == 1 && last != '\n' &&
		write(outlet->fd, "\n", 1) < 0)
		ret = -errno;
	close(reading);
	return ret;
}

/*
 * How many bytes to write into a FIFO: as many whole lines as fit into PIPE_BUF bytes, which a pipe takes all or not at all
 * (POSIX, write()). The bytes in the pipe then end with a whole line. When a reader leaves and another one opens the FIFO
 * before this side notices, the new reader begins with a whole line, too.
 */
static size_t whole_lines(const char *bytes, size_t length)
{
	const size_t most = length < PIPE_BUF ? length : PIPE_BUF;
	const char *end = memrchr(bytes, '\n', most);

	return end != NULL ? (size_t)(end - bytes) + 1 : most;
}

static ssize_t put_once(const struct outlet *outlet, const char *bytes, size_t length)
{
	struct pollfd room = {.fd = outlet->fd, .events = POLLOUT};

	if (outlet->socket)
		return send(outlet->fd, bytes, length,
			MSG_NOSIGNAL | (outlet->impatient ? MSG_DONTWAIT : 0));
	if (outlet->pieces) {
		if (poll(&room, 1, 0) == 0) {
			errno = EAGAIN;
			return -1;
		}
		if (length > PIPE_BUF)
			length = PIPE_BUF;
	}
	if (outlet->fifo && outlet->impatient && !outlet->binary)
		length = whole_lines(bytes, length);
	return write(outlet->fd, bytes, length);
}

ssize_t outlet_put(struct outlet *outlet, const char *bytes, size_t length)
{
	ssize_t n;

	if (!outlet->begun && !outlet->binary && outlet->impatient && outlet->file &&
		outlet->ours) {
		int ret = end_cut_line(outlet);

		if (ret < 0)
			return ret;
	}
	do {
		n = put_once(outlet, bytes, length);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	outlet->begun = true;
	/* nothing taken of something is no progress: told like a full disk, not tried for ever */
	return n > 0 ? n : -ENOSPC;
}

void outlet_wait(const struct outlet *outlet, int ms)
{
	struct pollfd room = {.fd = outlet->fd, .events = POLLOUT};

	(void)poll(&room, 1, ms);
}

bool outlet_deserted(const struct outlet *outlet)
{
	struct pollfd pipe = {.fd = outlet->fd};

	return outlet->fifo && outlet->fd >= 0 && poll(&pipe, 1, 0) == 1 &&
	       (pipe.revents & POLLERR);
}

bool outlet_take_back(struct outlet *outlet, size_t length)
{
	struct stat status;

	if (!outlet->file || !outlet->ours)
		return false;

	/* where our last write ended: another writer's lines must not be cut */
	off_t end = lseek(outlet->fd, 0, SEEK_CUR);

	return end >= (off_t)length && fstat(outlet->fd, &status) == 0 && status.st_size == end &&
	       ftruncate(outlet->fd, end - (off_t)length) == 0;
}

int outlet_close(struct outlet *outlet)
{
	int ret = 0;

	if (outlet->fd >= 0 && outlet->ours && close(outlet->fd) < 0)
		ret = -errno;
	outlet->fd = -1;
	return ret;
}
