/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a capture, read to its end. Besides what sanitizers see:
 *
 * - every byte of a packet can be read, none is longer than is promised, every time is in range;
 * - positions only grow, and end within the file;
 * - the end is the end: asked again it says the same;
 * - each refusal is one line that names the file.
 *
 * The input lies in a file without a name, since that is what a user gives.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traffic/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void check_error(int code, const struct error *error, const char *path)
{
	check(code == -ENODATA || code == -EINVAL || code == -EBADMSG || code == -EPROTONOSUPPORT,
		"code");
	check(strncmp(error->text, path, strlen(path)) == 0, "a name in front");
	check(strchr(error->text, '\n') == NULL, "one line");
}

static void check_packet(const struct capture_packet *packet)
{
	static volatile uint8_t sink;
	uint8_t sum = 0;

	check(packet->length <= CAPTURE_LENGTH_MAX, "length");
	check(packet->time_us <= CAPTURE_TIME_MAX_US, "time");
	for (uint32_t i = 0; i < packet->length; i++)
		sum ^= packet->bytes[i];
	sink = sum;
	(void)sink;
}

static void read_to_the_end(struct capture *capture, const char *path, size_t size)
{
	struct capture_packet packet;
	struct error error = {""}, again = {""};
	uint64_t position = capture_position(capture);
	int ret;

	check(capture_size(capture) == size, "size");
	while ((ret = capture_next(capture, &packet, &error)) == 1) {
		check_packet(&packet);
		check(capture_position(capture) >= position, "position");
		position = capture_position(capture);
	}
	check(position <= size, "position at the end");
	if (ret < 0)
		check_error(ret, &error, path);
	check(capture_next(capture, &packet, &again) == ret, "the same end");
	check(strcmp(error.text, again.text) == 0, "the same text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("capture", MFD_CLOEXEC);
	struct capture *capture;
	struct error error = {""};
	char path[32];
	int ret;

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size, "file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = capture_open(&capture, path, &error);
	if (ret < 0) {
		check_error(ret, &error, path);
	} else {
		read_to_the_end(capture, path, size);
		capture_close(capture);
	}
	close(fd);
	return 0;
}
