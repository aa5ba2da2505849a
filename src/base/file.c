/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe does not say how much will come. */
#define ROOM ((size_t)1 << 16)
/* A new file is written in pieces of so many bytes. */
#define PIECE ((size_t)1 << 16)

static int read_all(int fd, size_t most, char **text, size_t *size)
{
	size_t room = ROOM;
	struct stat status;

	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
		(uint64_t)status.st_size <= most)
		room = (size_t)status.st_size + 2;
	*text = malloc(room);
	if (*text == NULL)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, *text + *size, room - 1 - *size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		*size += (size_t)n;
		if (*size > most)
			return -EFBIG;
		if (*size < room - 1)
			continue;
		char *larger = realloc(*text, room * 2);

		if (larger == NULL)
			return -ENOMEM;
		*text = larger;
		room *= 2;
	}
}

int file_read_all(const char *path, size_t most, char **text, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*text = NULL;
	*size = 0;
	if (fd < 0)
		return -errno;
	int ret = read_all(fd, most, text, size);

	close(fd);
	return ret;
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size < PIECE ? size : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The new file is as the old one but for its bytes. Another owner may be refused: then it is the process's. */
static int take_after(int fd, const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if (fchown(fd, status.st_uid, status.st_gid) < 0 && errno != EPERM)
		return -errno;
	return fchmod(fd, status.st_mode & 07777) < 0 ? -errno : 0;
}

/* The name is in the directory for good once that is written out. */
static int sync_directory(const char *beside)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(beside, '/');
	int ret = 0;

	if (slash == NULL)
		snprintf(directory, sizeof(directory), ".");
	else
		snprintf(directory, sizeof(directory), "%.*s", (int)(slash - beside) + 1, beside);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Writes the file beside the old one, and gives it its name. */
static int replace_by(const char *beside, const char *path, const char *bytes, size_t size)
{
	int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	int ret = take_after(fd, path);

	if (ret == 0)
		ret = write_all(fd, bytes, size);
	if (ret == 0 && fsync(fd) < 0)
		ret = -errno;
	if (close(fd) < 0 && ret == 0)
		ret = -errno;
	if (ret == 0 && rename(beside, path) < 0)
		ret = -errno;
	if (ret < 0)
		(void)unlink(beside);
	return ret;
}

int file_replace(const char *path, const char *bytes, size_t size)
{
	static const char ending[] = ".new";
	char *real = realpath(path, NULL);
	char beside[PATH_MAX + sizeof(ending)];

	if (real == NULL && errno != ENOENT)
		return -errno;
	const char *target = real != NULL ? real : path;
	int n = snprintf(beside, sizeof(beside), "%s%s", target, ending);
	int ret = n >= PATH_MAX ? -ENAMETOOLONG : 0;

	/* one that was left by a process that was killed meanwhile */
	if (ret == 0 && unlink(beside) < 0 && errno != ENOENT)
		ret = -errno;
	if (ret == 0)
		ret = replace_by(beside, target, bytes, size);
	if (ret == 0)
		ret = sync_directory(beside);
	free(real);
	return ret;
}
