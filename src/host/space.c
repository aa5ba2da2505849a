/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Here `ip netns` keeps them. */
#define SPACES "/run/netns"

static int refuse(const char *space, const char *path, int code, struct error *error)
{
	if (code == -ENOENT && space != path)
		return error_set(error, code,
			"no network namespace '%s' (%s): `ip netns add %s` makes it", space, path,
			space);
	if (code == -EPERM || code == -EACCES)
		return error_set(error, code,
			"no permission to enter the network namespace '%s': it takes CAP_SYS_ADMIN",
			space);
	if (code == -EINVAL)
		return error_set(error, code, "'%s' is not a network namespace", path);
	return error_set(
		error, code, "cannot enter the network namespace '%s': %s", path, strerror(-code));
}

int space_enter(const char *space, struct error *error)
{
	char text[PATH_MAX];
	const char *path = space;
	int ret = 0;

	if (strchr(space, '/') == NULL) {
		if (snprintf(text, sizeof(text), SPACES "/%s", space) >= (int)sizeof(text))
			return error_set(
				error, -ENAMETOOLONG, "too long for a name of a network namespace");
		path = text;
	}
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return refuse(space, path, -errno, error);
	if (setns(fd, CLONE_NEWNET) < 0)
		ret = -errno;
	close(fd);
	return ret < 0 ? refuse(space, path, ret, error) : 0;
}
