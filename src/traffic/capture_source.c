/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic/capture_source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traffic/capture.h"
#include "traffic/capture_pcapng.h"

#define BUFFER_SIZE ((size_t)256 * 1024)

/* The header of a pcap file, and where in it the snapshot length lies. */
#define PCAP_HEADER_SIZE 24
#define PCAP_SNAPLEN 16

struct capture_source {
	int fd;
	enum capture_format format;
	uint64_t size;
	uint64_t position; /* bytes of the file handed on */
	uint64_t body;	   /* bytes to hand on unchanged before looking again */
	struct pcapng_walk walk;
	uint8_t *buffer; /* read ahead: buffer[start..end) */
	size_t start, end;
};

/* As read(2), but an interruption is none. */
static ssize_t read_some(int fd, void *bytes, size_t size)
{
	ssize_t n;

	do
		n = read(fd, bytes, size);
	while (n < 0 && errno == EINTR);
	return n;
}

/*
 * Sees to it that `wanted` bytes are in the buffer, fewer only at the end of the file. Returns how
 * many there are, or -1 with errno.
 */
static ssize_t look_ahead(struct capture_source *source, size_t wanted)
{
	size_t have = source->end - source->start;

	if (have >= wanted)
		return (ssize_t)have;
	memmove(source->buffer, source->buffer + source->start, have);
	source->start = 0;
	source->end = have;
	while (source->end < wanted) {
		ssize_t n = read_some(
			source->fd, source->buffer + source->end, BUFFER_SIZE - source->end);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		source->end += (size_t)n;
	}
	return (ssize_t)source->end;
}

/* Hands on up to `size` bytes of the file as they are. */
static ssize_t hand_on(struct capture_source *source, char *out, size_t size)
{
	ssize_t have = look_ahead(source, 1);

	if (have <= 0)
		return have;
	if (size > (size_t)have)
		size = (size_t)have;
	memcpy(out, source->buffer + source->start, size);
	source->start += size;
	source->position += size;
	return (ssize_t)size;
}

/* The next bytes of a pcapng file: a piece of block as it is, or one rewritten by the walk. */
static ssize_t read_block_piece(struct capture_source *source, char *out, size_t size)
{
	struct pcapng_walk *walk = &source->walk;

	if (source->body == 0 && walk->rewritten_length == 0) {
		ssize_t have = look_ahead(source, PCAPNG_LOOK_AHEAD);

		if (have < 0)
			return -1;
		size_t taken = pcapng_walk_next(
			walk, source->buffer + source->start, (size_t)have, &source->body);

		source->start += taken;
		source->position += taken;
	}
	if (walk->rewritten_length > 0)
		return (ssize_t)pcapng_walk_take(walk, out, size);
	if (size > source->body)
		size = (size_t)source->body;
	if (size == 0)
		return 0;
	ssize_t n = hand_on(source, out, size);

	if (n > 0 && source->body != PCAPNG_TO_THE_END)
		source->body -= (uint64_t)n;
	return n;
}

/* What stdio calls when libpcap wants more; may return less than asked, 0 only at the end. */
static ssize_t stream_read(void *cookie, char *out, size_t size)
{
	struct capture_source *source = cookie;
	size_t done = 0;

	while (done < size) {
		bool buffered = source->end > source->start || source->walk.rewritten_length > 0;

		/* who watches a pipe wants the packets that are there, not a full buffer */
		if (done > 0 && !buffered)
			break;
		ssize_t n = source->format == CAPTURE_PCAPNG
				    ? read_block_piece(source, out + done, size - done)
				    : hand_on(source, out + done, size - done);

		if (n < 0 && done == 0)
			return -1;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Only asks where the stream stands: that is all ftello() needs. */
static int stream_seek(void *cookie, off64_t *offset, int whence)
{
	const struct capture_source *source = cookie;

	if (whence != SEEK_CUR || *offset != 0) {
		errno = ESPIPE;
		return -1;
	}
	*offset = (off64_t)source->position;
	return 0;
}

FILE *capture_source_stream(struct capture_source *source)
{
	FILE *stream = fopencookie(
		source, "r", (cookie_io_functions_t){.read = stream_read, .seek = stream_seek});

	/* a buffer of stdio's own making: one that is not had is a slower reading, no more */
	if (stream)
		(void)setvbuf(stream, NULL, _IOFBF, BUFFER_SIZE);
	return stream;
}

/*
 * Shows a version above 2.4 as 2.4. 543.0 is one that libpcap knows. `swapped` as in the file's own
 * magic number.
 */
static void lower_version(uint8_t *header, bool swapped)
{
	uint16_t version[2];

	memcpy(version, header + 4, sizeof(version));
	if (swapped) {
		version[0] = __builtin_bswap16(version[0]);
		version[1] = __builtin_bswap16(version[1]);
	}
	if ((version[0] == 2 && version[1] <= 4) || (version[0] == 543 && version[1] == 0))
		return;
	version[0] = swapped ? __builtin_bswap16(2) : 2;
	version[1] = swapped ? __builtin_bswap16(4) : 4;
	memcpy(header + 4, version, sizeof(version));
}

/* Tells the format by the first bytes. */
static enum capture_format recognise(uint8_t *header, size_t length)
{
	/* microseconds, nanoseconds, and a dialect of the 1990s that libpcap reads as well */
	static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34};
	uint32_t magic;

	if (length >= 2 && header[0] == 0x1f && header[1] == 0x8b)
		return CAPTURE_GZIP;
	if (length < sizeof(magic))
		return CAPTURE_UNKNOWN;
	memcpy(&magic, header, sizeof(magic));
	if (magic == PCAPNG_SECTION_HEADER)
		return CAPTURE_PCAPNG;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		bool swapped = magic == __builtin_bswap32(magics[i]);

		if (magic != magics[i] && !swapped)
			continue;
		if (length == PCAP_HEADER_SIZE) {
			lower_version(header, swapped);
			memset(header + PCAP_SNAPLEN, 0, 4);
		}
		return CAPTURE_PCAP;
	}
	return CAPTURE_UNKNOWN;
}

static int open_failed(const char *name, int code, struct error *error)
{
	if (code == ENOENT)
		return error_set(error, -code, "%s: no such file", name);
	return error_set(error, -code, "%s: %s", name, strerror(code));
}

/* Opens the file and learns what it is; nothing is read yet. */
static int open_file(
	struct capture_source *source, const char *path, const char *name, struct error *error)
{
	struct stat st;

	source->fd = STDIN_FILENO;
	if (strcmp(path, "-") != 0)
		source->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0 || fstat(source->fd, &st) < 0)
		return open_failed(name, errno, error);
	if (S_ISDIR(st.st_mode))
		return error_set(error, -EISDIR, "%s: a directory, not a capture", name);
	source->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	return 0;
}

int capture_source_open(
	struct capture_source **out, const char *path, const char *name, struct error *error)
{
	struct capture_source *source = calloc(1, sizeof(*source));
	int ret;

	if (!source)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	source->fd = -1;
	source->buffer = malloc(BUFFER_SIZE);
	if (!source->buffer) {
		ret = error_set(error, -ENOMEM, "%s: out of memory", name);
		goto err_close;
	}
	ret = open_file(source, path, name, error);
	if (ret < 0)
		goto err_close;
	ssize_t have = look_ahead(source, PCAP_HEADER_SIZE);

	if (have < 0) {
		ret = open_failed(name, errno, error);
		goto err_close;
	}
	if (have == 0) {
		ret = error_set(error, -ENODATA, "%s: an empty file, not a capture", name);
		goto err_close;
	}
	source->format = recognise(
		source->buffer, have < PCAP_HEADER_SIZE ? (size_t)have : PCAP_HEADER_SIZE);
	*out = source;
	return 0;

err_close:
	capture_source_close(source);
	return ret;
}

enum capture_format capture_source_format(const struct capture_source *source)
{
	return source->format;
}

const struct capture_blocks *capture_source_blocks(const struct capture_source *source)
{
	return &source->walk.blocks;
}

uint64_t capture_source_size(const struct capture_source *source)
{
	return source->size;
}

void capture_source_close(struct capture_source *source)
{
	if (!source)
		return;
	if (source->fd > STDIN_FILENO)
		close(source->fd);
	pcapng_walk_fini(&source->walk);
	free(source->buffer);
	free(source);
}
