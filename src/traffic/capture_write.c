/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define NAME_MAX_SHOWN 160
#define US_PER_SECOND UINT64_C(1000000)

/* The format: draft-ietf-opsawg-pcap, in the byte order of the machine. */
#define MAGIC_US 0xa1b2c3d4u
#define VERSION_MAJOR 2
#define VERSION_MINOR 4
#define LONGEST 262144
#define LINK_TYPE_ETHERNET 1
#define GATHERED_BYTES (2 * LONGEST)
/* Packets are not everybody's to read. */
#define NEW_FILE_MODE 0640

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t reserved[2];
	uint32_t longest, link_type;
};

struct frame_header {
	uint32_t seconds, microseconds, captured, length;
};

struct capture_writer {
	int fd;
	int failed;	 /* a negative errno; 0: nothing has */
	bool file;	 /* and no pipe: what is cut off can be taken back */
	uint64_t size;	 /* of the file; it ends with a whole frame */
	uint64_t frames; /* in the file */
	size_t n;	 /* bytes that are gathered */
	char gathered[GATHERED_BYTES];
};

static int refuse_capture(struct error *error, int code, const char *path)
{
	char name[NAME_MAX_SHOWN];

	return error_set(
		error, code, "%s: %s", text_printable(name, sizeof(name), path), strerror(-code));
}

static void gather(struct capture_writer *writer, const void *bytes, size_t n)
{
	memcpy(writer->gathered + writer->n, bytes, n);
	writer->n += n;
}

/* Of the frames that were gathered, `n` bytes are in the file: how many bytes the whole ones have. Counts them. */
static size_t count_whole(struct capture_writer *writer, size_t n)
{
	struct frame_header header;
	size_t at = 0;

	while (at + sizeof(header) <= n) {
		memcpy(&header, writer->gathered + at, sizeof(header));
		if (at + sizeof(header) + header.captured > n)
			break;
		at += sizeof(header) + header.captured;
		writer->frames++;
	}
	return at;
}

/* How many of the bytes that were gathered are written. What stops it is noted. */
static size_t write_gathered(struct capture_writer *writer)
{
	size_t done = 0;

	while (done < writer->n && writer->failed == 0) {
		const ssize_t n = write(writer->fd, writer->gathered + done, writer->n - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			writer->failed = -errno;
	}
	return done;
}

int capture_writer_flush(struct capture_writer *writer)
{
	if (writer->failed != 0)
		return writer->failed;
	const size_t done = write_gathered(writer);

	writer->size += writer->size == 0 ? done : count_whole(writer, done);
	writer->n = 0;
	if (writer->failed != 0 && writer->file)
		(void)ftruncate(writer->fd, (off_t)writer->size);
	return writer->failed;
}

/* A file that is there is not made: where everybody may write, O_CREAT refuses another user's pipe. */
static int open_capture(const char *path)
{
	const int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | O_CREAT, NEW_FILE_MODE);
	return fd < 0 ? -errno : fd;
}

int capture_writer_open(struct capture_writer **writer, const char *path, struct error *error)
{
	const struct file_header header = {
		.magic = MAGIC_US,
		.major = VERSION_MAJOR,
		.minor = VERSION_MINOR,
		.longest = LONGEST,
		.link_type = LINK_TYPE_ETHERNET,
	};
	struct capture_writer *opened = calloc(1, sizeof(*opened));
	struct stat status;

	if (opened == NULL)
		return refuse_capture(error, -ENOMEM, path);
	opened->fd = open_capture(path);
	if (opened->fd < 0) {
		int ret = refuse_capture(error, opened->fd, path);

		free(opened);
		return ret;
	}
	opened->file = fstat(opened->fd, &status) == 0 && S_ISREG(status.st_mode);
	gather(opened, &header, sizeof(header));
	int ret = capture_writer_flush(opened);

	if (ret < 0) {
		capture_writer_close(opened);
		return refuse_capture(error, ret, path);
	}
	*writer = opened;
	return 0;
}

int capture_writer_begin(struct capture_writer *writer, uint64_t time_us, uint32_t length)
{
	const struct frame_header header = {
		.seconds = (uint32_t)(time_us / US_PER_SECOND),
		.microseconds = (uint32_t)(time_us % US_PER_SECOND),
		.captured = length,
		.length = length,
	};
	int ret = writer->failed;

	if (length > LONGEST)
		return -EMSGSIZE;
	if (ret == 0 && writer->n + sizeof(header) + length > sizeof(writer->gathered))
		ret = capture_writer_flush(writer);
	if (ret == 0)
		gather(writer, &header, sizeof(header));
	return ret;
}

int capture_writer_add(struct capture_writer *writer, const void *bytes, uint32_t n)
{
	if (writer->failed == 0)
		gather(writer, bytes, n);
	return writer->failed;
}

uint64_t capture_writer_frames(const struct capture_writer *writer)
{
	return writer->frames;
}

int capture_writer_close(struct capture_writer *writer)
{
	int ret;

	if (writer == NULL)
		return 0;
	ret = capture_writer_flush(writer);
	close(writer->fd);
	free(writer);
	return ret;
}
