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

/* The header of a pcap file, and where in it the snapshot length and the link type lie. */
#define PCAP_HEADER_SIZE 24
#define PCAP_SNAPLEN 16
#define PCAP_LINK_TYPE 20

/* Beside the link type: whether the file knows the length of the check sequence, and the length. */
#define PCAP_FCS_KNOWN (UINT32_C(1) << 26)
#define PCAP_FCS_SHIFT 28

struct capture_source {
	int fd;
	enum capture_format format;
	uint64_t size;
	struct capture_pcap_header pcap;
	const struct compression *compression; /* of a file that is none of ours */
	uint64_t position;		       /* bytes of the file handed on */
	bool failed;
	uint8_t *buffer; /* read ahead: buffer[start..end) */
	size_t capacity;
	size_t start, end;
};

/* What captures are compressed by, how such a file begins, and what unpacks it. */
struct compression {
	const char *name;
	const char *unpack;
	char magic[7];
	uint8_t length;
};

static const struct compression compressions[] = {
	{"gzip", "zcat", "\x1f\x8b", 2},
	{"zstd", "zstdcat", "\x28\xb5\x2f\xfd", 4},
	{"xz", "xzcat", "\xfd\x37zXZ", 6},
	{"bzip2", "bzcat", "BZh", 3},
	{"lz4", "lz4cat", "\x04\x22\x4d\x18", 4},
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

/* Makes the buffer big enough for `wanted` bytes, which then lie at its front. */
static bool make_room(struct capture_source *source, size_t wanted)
{
	size_t have = source->end - source->start;

	memmove(source->buffer, source->buffer + source->start, have);
	source->start = 0;
	source->end = have;
	if (wanted <= source->capacity)
		return true;

	uint8_t *grown = realloc(source->buffer, wanted);

	if (!grown) {
		errno = ENOMEM;
		return false;
	}
	source->buffer = grown;
	source->capacity = wanted;
	return true;
}

/* Reads as much as is there, waiting only for the bytes that are wanted. */
static ssize_t look_ahead(struct capture_source *source, size_t wanted)
{
	size_t have = source->end - source->start;

	if (have >= wanted)
		return (ssize_t)have;
	if (!make_room(source, wanted))
		return -1;
	while (source->end < wanted) {
		ssize_t n = read_some(
			source->fd, source->buffer + source->end, source->capacity - source->end);

		if (n < 0) {
			source->failed = true;
			return -1;
		}
		if (n == 0)
			break;
		source->end += (size_t)n;
	}
	return (ssize_t)source->end;
}

ssize_t capture_source_look(struct capture_source *source, size_t wanted, const uint8_t **bytes)
{
	ssize_t have = look_ahead(source, wanted);

	*bytes = source->buffer + source->start;
	return have;
}

uint64_t capture_source_skip(struct capture_source *source, uint64_t n)
{
	uint64_t left = n;

	while (left > 0) {
		size_t have = source->end - source->start;
		size_t piece = left < have ? (size_t)left : have;

		source->start += piece;
		source->position += piece;
		left -= piece;
		if (left > 0 && look_ahead(source, 1) <= 0)
			break;
	}
	return n - left;
}

bool capture_source_failed(const struct capture_source *source)
{
	return source->failed;
}

uint64_t capture_source_position(const struct capture_source *source)
{
	return source->position;
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

/* What stdio calls when libpcap wants more; may return less than asked, 0 only at the end. */
static ssize_t stream_read(void *cookie, char *out, size_t size)
{
	struct capture_source *source = cookie;
	size_t done = 0;

	while (done < size) {
		/* who watches a pipe wants the packets that are there, not a full buffer */
		if (done > 0 && source->end == source->start)
			break;
		ssize_t n = hand_on(source, out + done, size - done);

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

static uint32_t header_word(const uint8_t *header, size_t at, bool swapped)
{
	uint32_t value;

	memcpy(&value, header + at, sizeof(value));
	return swapped ? __builtin_bswap32(value) : value;
}

/*
 * The length of the check sequence stands in four bits, which libpcap counts in units of 16 bits;
 * descriptions of the format have it in bytes. More than two units make no check sequence that there
 * is, so that they are bytes.
 */
static uint8_t source_fcs_bytes(uint32_t link_type)
{
	uint32_t length = link_type >> PCAP_FCS_SHIFT;

	if (!(link_type & PCAP_FCS_KNOWN))
		return 0;
	return (uint8_t)(length <= 2 ? 2 * length : length);
}

/* Notes what the header says, and shows libpcap one that it does not stumble over. */
static void take_pcap_header(struct capture_source *source, uint8_t *header, bool swapped)
{
	source->pcap.snaplen = header_word(header, PCAP_SNAPLEN, swapped);
	source->pcap.fcs = source_fcs_bytes(header_word(header, PCAP_LINK_TYPE, swapped));
	lower_version(header, swapped);
	memset(header + PCAP_SNAPLEN, 0, 4);
}

static const struct compression *recognise_compression(const uint8_t *header, size_t length)
{
	for (size_t i = 0; i < sizeof(compressions) / sizeof(compressions[0]); i++) {
		const struct compression *compression = &compressions[i];

		if (length >= compression->length &&
			memcmp(header, compression->magic, compression->length) == 0)
			return compression;
	}
	return NULL;
}

/* Tells the format by the first bytes. */
static enum capture_format recognise(struct capture_source *source, uint8_t *header, size_t length)
{
	/* microseconds, nanoseconds, and a dialect of the 1990s that libpcap reads as well */
	static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34};
	uint32_t magic;

	source->compression = recognise_compression(header, length);
	if (source->compression || length < sizeof(magic))
		return CAPTURE_UNKNOWN;
	memcpy(&magic, header, sizeof(magic));
	if (magic == PCAPNG_SECTION_HEADER)
		return CAPTURE_PCAPNG;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		bool swapped = magic == __builtin_bswap32(magics[i]);

		if (magic != magics[i] && !swapped)
			continue;
		if (length == PCAP_HEADER_SIZE)
			take_pcap_header(source, header, swapped);
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
	source->capacity = BUFFER_SIZE;
	source->buffer = malloc(source->capacity);
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
		source, source->buffer, have < PCAP_HEADER_SIZE ? (size_t)have : PCAP_HEADER_SIZE);
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

const struct capture_pcap_header *capture_source_pcap(const struct capture_source *source)
{
	return &source->pcap;
}

const char *capture_source_unpack(const struct capture_source *source, const char **name)
{
	if (!source->compression)
		return NULL;
	*name = source->compression->name;
	return source->compression->unpack;
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
	free(source->buffer);
	free(source);
}
