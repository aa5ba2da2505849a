/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/tls.h"

/* Between two tries, and for one of them. */
#define RETRY_MS 1000
#define SET_UP_MS 10000

static void close_session(struct stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	(void)outlet_close(&stream->outlet);
	stream->state = STREAM_DOWN;
}

static int end_session(struct stream *stream, uint64_t now_ms, int code, const char *what)
{
	if (stream->tls != NULL)
		tls_end(stream->tls);
	close_session(stream);
	stream->retry_ms = now_ms + RETRY_MS;
	return error_set(&stream->why, code, "%.200s: %s", stream->target->text, what);
}

static bool is_file(const struct stream *stream)
{
	return stream->target->transport == EXPORT_FILE;
}

/* Lines go to standard output where the path is "-". */
static const char *path_of(const struct export_target *target)
{
	return target->format == EXPORT_JSON && strcmp(target->path, "-") == 0 ? NULL
									       : target->path;
}

/* Messages of IPFIX go into regular files alone; lines of JSON go everywhere. */
static int open_file(struct stream *stream)
{
	struct outlet *outlet = &stream->outlet;
	const bool lines = stream->target->format == EXPORT_JSON;
	int ret = outlet_open(outlet, path_of(stream->target), true);

	if (ret < 0)
		return ret;
	outlet->binary = !lines;
	if (!outlet->file && !lines)
		ret = -EINVAL;
	else if (stream->truncate && outlet->file && outlet->ours && ftruncate(outlet->fd, 0) < 0)
		ret = -errno;
	if (ret < 0) {
		(void)outlet_close(outlet);
		return ret;
	}
	stream->state = STREAM_UP;
	stream->sessions++;
	return 0;
}

static const char *why_no_file(int code)
{
	if (code == -ENXIO)
		return "nobody reads it";
	return code == -EINVAL ? "no regular file" : strerror(-code);
}

/* A FIFO whose reader is to come opens like a socket that nobody can open. */
static bool is_unread_fifo(const struct export_target *target, int code)
{
	struct stat status;

	return code == -ENXIO && target->format == EXPORT_JSON &&
	       stat(target->path, &status) == 0 && S_ISFIFO(status.st_mode);
}

int stream_open(struct stream *stream, const struct export_target *target, bool truncate,
	struct error *error)
{
	int ret;

	*stream = (struct stream){
		.target = target, .fd = -1, .outlet = {.fd = -1}, .truncate = truncate};
	if (is_file(stream)) {
		ret = open_file(stream);
		if (is_unread_fifo(target, ret)) {
			error_set(&stream->why, ret, "%.200s: %s", target->text, why_no_file(ret));
			return 0;
		}
		return ret < 0 ? error_set(error, ret, "%.200s: cannot write: %s", target->path,
					 why_no_file(ret))
			       : 0;
	}
	ret = resolve(&stream->to, target, SOCK_STREAM, error);
	if (ret == 0 && target->transport == EXPORT_TLS)
		ret = tls_create(&stream->tls, target, error);
	return ret;
}

void stream_close(struct stream *stream)
{
	if (stream->tls != NULL)
		tls_end(stream->tls);
	tls_destroy(stream->tls);
	stream->tls = NULL;
	close_session(stream);
}

static void begin_connection(struct stream *stream, uint64_t now_ms)
{
	const int yes = 1;

	stream->give_up_ms = now_ms + SET_UP_MS;
	stream->fd =
		socket(stream->to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (stream->fd < 0) {
		end_session(stream, now_ms, -errno, strerror(errno));
		return;
	}
	(void)setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(stream->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	stream->state = STREAM_CONNECTING;
	if (connect(stream->fd, (const struct sockaddr *)&stream->to.address, stream->to.length) <
			0 &&
		errno != EINPROGRESS)
		end_session(stream, now_ms, -errno, strerror(errno));
}

static bool is_writable(const struct stream *stream)
{
	struct pollfd ready = {.fd = stream->fd, .events = POLLOUT};

	return poll(&ready, 1, 0) > 0;
}

static void go_on_connecting(struct stream *stream, uint64_t now_ms)
{
	socklen_t length = sizeof(int);
	int code = 0;

	if (!is_writable(stream))
		return;
	(void)getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &code, &length);
	if (code != 0) {
		end_session(stream, now_ms, -code, strerror(code));
		return;
	}
	if (stream->tls != NULL && tls_begin(stream->tls, stream->fd) < 0) {
		end_session(stream, now_ms, -ENOMEM, "no memory for TLS");
		return;
	}
	stream->state = stream->tls != NULL ? STREAM_SHAKING : STREAM_UP;
	stream->sessions += stream->state == STREAM_UP;
}

static void go_on_shaking(struct stream *stream, uint64_t now_ms)
{
	char why[256];
	int ret = tls_shake(stream->tls, why, sizeof(why));

	if (ret == 0) {
		stream->state = STREAM_UP;
		stream->sessions++;
	} else if (ret != -EAGAIN) {
		end_session(stream, now_ms, ret, why);
	}
}

bool stream_ready(struct stream *stream, uint64_t now_ms)
{
	if (stream->state == STREAM_UP)
		return true;
	if (stream->state == STREAM_DOWN && now_ms < stream->retry_ms)
		return false;
	if (is_file(stream)) {
		stream->truncate = false;
		const int ret = open_file(stream);

		if (ret < 0)
			end_session(stream, now_ms, ret, why_no_file(ret));
		return ret == 0;
	}
	if (stream->state == STREAM_DOWN)
		begin_connection(stream, now_ms);
	if (stream->state == STREAM_CONNECTING)
		go_on_connecting(stream, now_ms);
	if (stream->state == STREAM_SHAKING)
		go_on_shaking(stream, now_ms);
	if (stream->state != STREAM_UP && stream->state != STREAM_DOWN &&
		now_ms > stream->give_up_ms)
		end_session(stream, now_ms, -ETIMEDOUT, strerror(ETIMEDOUT));
	return stream->state == STREAM_UP;
}

void stream_take_back(struct stream *stream, size_t begun)
{
	/* where that fails a reader finds a cut message at the end; the next ones begin anew behind it */
	if (is_file(stream) && begun > 0 && stream->outlet.fd >= 0)
		(void)outlet_take_back(&stream->outlet, begun);
}

ssize_t stream_put(
	struct stream *stream, const void *bytes, size_t length, size_t begun, uint64_t now_ms)
{
	ssize_t n;

	do {
		if (stream->tls != NULL)
			n = tls_put(stream->tls, bytes, length);
		else if (is_file(stream))
			n = outlet_put(&stream->outlet, bytes, length);
		else
			n = send(stream->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (stream->tls == NULL && !is_file(stream) && n < 0)
			n = -errno;
	} while (n == -EINTR);
	if (n == -EAGAIN || n > 0)
		return n;
	stream_take_back(stream, begun);
	return end_session(
		stream, now_ms, n == 0 ? -EIO : (int)n, strerror(n == 0 ? EIO : (int)-n));
}

bool stream_ended(struct stream *stream, uint64_t now_ms)
{
	char byte;
	ssize_t n;

	if (stream->state != STREAM_UP)
		return false;
	if (is_file(stream)) {
		if (!outlet_deserted(&stream->outlet))
			return false;
		end_session(stream, now_ms, -EPIPE, "the reader has gone");
		return true;
	}
	n = recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return false;
	end_session(stream, now_ms, -EPIPE,
		n == 0 ? "the collector has closed the connection" : strerror(errno));
	return true;
}

void stream_reopen(struct stream *stream, size_t begun, uint64_t now_ms)
{
	if (stream->state == STREAM_UP && !outlet_reopens(&stream->outlet))
		return;
	stream_take_back(stream, begun);
	end_session(stream, now_ms, 0, "");
	stream->why.text[0] = '\0';
	stream->retry_ms = now_ms;
}

void stream_wait(const struct stream *stream, int ms)
{
	struct pollfd ready = {.fd = stream->fd, .events = POLLOUT};
	const struct timespec pause = {.tv_nsec = ms * 1000000L};

	if (stream->state == STREAM_UP && is_file(stream))
		outlet_wait(&stream->outlet, ms);
	else if (stream->fd >= 0 && stream->state == STREAM_UP)
		(void)poll(&ready, 1, ms);
	else
		(void)nanosleep(&pause, NULL);
}
