/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Abstract names begin with a zero byte and are as long as is said. */
static socklen_t name_of(struct sockaddr_un *address, unsigned index)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	int length = snprintf(
		&address->sun_path[1], sizeof(address->sun_path) - 1, "millrace/port/%u", index);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* -EBUSY when the name is held by somebody whose engine it may be, else -EPERM. */
static int ask_holder(const struct sockaddr_un *address, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred holder;
	socklen_t size = sizeof(holder);
	int ret = -EPERM;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, length) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 &&
		(holder.uid == 0 || holder.uid == geteuid()))
		ret = -EBUSY;
	close(fd);
	return ret;
}

int claim_interface(unsigned index)
{
	struct sockaddr_un address;
	socklen_t length = name_of(&address, index);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, length) < 0)
		ret = errno == EADDRINUSE ? ask_holder(&address, length) : -errno;
	else if (listen(fd, 8) < 0)
		ret = -errno;
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}
