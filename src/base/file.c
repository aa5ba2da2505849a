/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe does not say how much will come. */
#define ROOM ((size_t)1 << 16)

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
