/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/output.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

char *output_room(struct output *output, size_t n)
{
	if (output_free(output) < n)
		return NULL;
	if (OUTPUT_BYTES - output->end < n) {
		memmove(output->bytes, output->bytes + output->begin, output->end - output->begin);
		output->end -= output->begin;
		output->begin = 0;
	}
	return output->bytes + output->end;
}

int output_send(struct output *output, int fd)
{
	while (!output_empty(output)) {
		ssize_t n = send(fd, output->bytes + output->begin, output->end - output->begin,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		output->begin += (size_t)n;
	}
	output->begin = 0;
	output->end = 0;
	return 0;
}
