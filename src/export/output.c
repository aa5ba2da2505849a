/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define BUFFER_SIZE ((size_t)256 * 1024)

struct export_output {
	int fd;
	bool ours;	    /* opened here, hence closed here */
	bool terminal;	    /* somebody watches: every line at once */
	int failure;	    /* negative errno of the first failure */
	struct error error; /* with `failure` */
	uint64_t written;
	uint64_t lost;
	size_t length;	     /* bytes in the buffer */
	uint64_t n_buffered; /* records in it */
	char name[256];
	char *buffer;
};

int export_output_open(struct export_output **out, const char *path, struct error *error)
{
	struct export_output *output = calloc(1, sizeof(*output));
	bool standard = !path || strcmp(path, "-") == 0;
	int ret;

	if (!output || !(output->buffer = malloc(BUFFER_SIZE))) {
		ret = error_set(error, -ENOMEM, "out of memory");
		goto err_free;
	}
	text_printable(output->name, sizeof(output->name), standard ? "standard output" : path);
	output->ours = !standard;
	output->fd = STDOUT_FILENO;
	if (!standard)
		output->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (output->fd < 0) {
		ret = error_set(
			error, -errno, "%s: cannot write: %s", output->name, strerror(errno));
		goto err_free;
	}
	output->terminal = isatty(output->fd);
	*out = output;
	return 0;

err_free:
	if (output)
		free(output->buffer);
	free(output);
	return ret;
}

static void fail(struct export_output *output, int code)
{
	if (output->failure < 0)
		return;
	output->failure = -code;
	if (code == EPIPE)
		error_set(&output->error, -code, "%s: the reader of the records is gone",
			output->name);
	else
		error_set(&output->error, -code, "%s: writing the records failed: %s", output->name,
			strerror(code));
}

/* Writes all of it, whatever pieces the other side takes; returns how much went. */
static size_t write_all(struct export_output *output, const char *bytes, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = write(output->fd, bytes + done, length - done);

		if (n >= 0) {
			done += (size_t)n;
		} else if (errno == EAGAIN) {
			/* somebody else made our standard output non-blocking */
			struct pollfd ready = {.fd = output->fd, .events = POLLOUT};

			(void)poll(&ready, 1, -1);
		} else if (errno != EINTR) {
			fail(output, errno);
			break;
		}
	}
	return done;
}

/* Of a failed write: the records that are whole in what went. */
static uint64_t count_lines(const char *bytes, size_t length)
{
	uint64_t n = 0;

	for (size_t i = 0; i < length; i++)
		n += bytes[i] == '\n';
	return n;
}

void export_output_flush(struct export_output *output)
{
	uint64_t n = output->n_buffered;

	if (output->length == 0)
		return;
	size_t done = write_all(output, output->buffer, output->length);

	if (done < output->length)
		n = count_lines(output->buffer, done);
	output->written += n;
	output->lost += output->n_buffered - n;
	output->length = 0;
	output->n_buffered = 0;
}

void export_output_write(struct export_output *output, const char *bytes, size_t length)
{
	if (output->length + length > BUFFER_SIZE)
		export_output_flush(output);
	if (output->failure < 0) {
		output->lost++;
		return;
	}
	if (length > BUFFER_SIZE) {
		bool whole = write_all(output, bytes, length) == length;

		output->written += whole;
		output->lost += !whole;
		return;
	}
	memcpy(output->buffer + output->length, bytes, length);
	output->length += length;
	output->n_buffered++;
	if (output->terminal)
		export_output_flush(output);
}

uint64_t export_output_written(const struct export_output *output)
{
	return output->written;
}

uint64_t export_output_lost(const struct export_output *output)
{
	return output->lost;
}

int export_output_close(struct export_output *output, struct error *error)
{
	int ret;

	if (!output)
		return 0;
	export_output_flush(output);
	/* some file systems tell only now that there was no room */
	if (output->ours && close(output->fd) < 0)
		fail(output, errno);
	ret = output->failure;
	if (ret < 0)
		*error = output->error;
	free(output->buffer);
	free(output);
	return ret;
}
