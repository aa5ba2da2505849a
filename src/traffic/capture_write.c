/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NAME_MAX_SHOWN 160
#define GATHERED_BYTES 262144
#define US_PER_SECOND UINT64_C(1000000)

/* The format: draft-ietf-opsawg-pcap, in the byte order of the machine. */
#define MAGIC_US 0xa1b2c3d4u
#define VERSION_MAJOR 2
#define VERSION_MINOR 4
#define LONGEST 262144
#define LINK_TYPE_ETHERNET 1

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
	FILE *file;
	int failed; /* a negative errno; 0: nothing has */
	char gathered[GATHERED_BYTES];
};

static int write_bytes(struct capture_writer *writer, const void *bytes, size_t n)
{
	errno = 0;
	if (writer->failed == 0 && fwrite(bytes, 1, n, writer->file) != n)
		writer->failed = errno != 0 ? -errno : -EIO;
	return writer->failed;
}

static int refuse_capture(struct error *error, int code, const char *path)
{
	char name[NAME_MAX_SHOWN];

	return error_set(
		error, code, "%s: %s", text_printable(name, sizeof(name), path), strerror(-code));
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
	struct capture_writer *opened = malloc(sizeof(*opened));

	if (opened == NULL)
		return refuse_capture(error, -ENOMEM, path);
	opened->failed = 0;
	opened->file = fopen(path, "we");
	if (opened->file == NULL) {
		int ret = refuse_capture(error, -errno, path);

		free(opened);
		return ret;
	}
	setvbuf(opened->file, opened->gathered, _IOFBF, sizeof(opened->gathered));
	int ret = write_bytes(opened, &header, sizeof(header));

	if (ret == 0)
		ret = capture_writer_flush(opened);
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

	return write_bytes(writer, &header, sizeof(header));
}

int capture_writer_add(struct capture_writer *writer, const void *bytes, uint32_t n)
{
	return write_bytes(writer, bytes, n);
}

int capture_writer_flush(struct capture_writer *writer)
{
	errno = 0;
	if (writer->failed == 0 && fflush(writer->file) != 0)
		writer->failed = errno != 0 ? -errno : -EIO;
	return writer->failed;
}

int capture_writer_close(struct capture_writer *writer)
{
	int ret;

	if (writer == NULL)
		return 0;
	ret = capture_writer_flush(writer);
	fclose(writer->file);
	free(writer);
	return ret;
}
