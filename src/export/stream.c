/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/stream.h"

#include <errno.h>
#include <fcntl.h>
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

static int end_session(struct stream *stream, uint64_t now_ms, int code, const char *what)
{
	if (stream->tls != NULL)
		tls_end(stream->tls);
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	stream->state = STREAM_DOWN;
	stream->retry_ms = now_ms + RETRY_MS;
	return error_set(&stream->why, code, "%.200s: %s", stream->target->text, what);
}

static int open_file(struct stream *stream)
{
	const int flags =
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (stream->truncate ? O_TRUNC : 0);
	struct stat status;

	stream->fd = open(stream->target->path, flags, 0666);
	if (stream->fd < 0)
		return -errno;
	if (fstat(stream->fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		close(stream->fd);
		stream->fd = -1;
		return -EINVAL;
	}
	stream->whole = (uint64_t)status.st_size;
	stream->state = STREAM_UP;
	stream->sessions++;
	return 0;
}

static const char *why_no_file(int code)
{
	return code == -EINVAL ? "no regular file" : strerror(-code);
}

int stream_open(struct stream *stream, const struct export_target *target, bool truncate,
	struct error *error)
{
	int ret;

	*stream = (struct stream){.target = target, .fd = -1, .truncate = truncate};
	if (target->transport == EXPORT_FILE) {
		ret = open_file(stream);
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
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	stream->state = STREAM_DOWN;
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
	if (stream->target->transport == EXPORT_FILE) {
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

/* A file has whole messages: what is behind them is taken back. */
static void take_back(const struct stream *stream)
{
	if (ftruncate(stream->fd, (off_t)stream->whole) < 0)
		return; /* a reader finds a cut message at the end; the next ones begin anew behind it */
}

ssize_t stream_put(struct stream *stream, const void *bytes, size_t length, uint64_t now_ms)
{
	ssize_t n;

	do {
		if (stream->tls != NULL)
			n = tls_put(stream->tls, bytes, length);
		else if (stream->target->transport == EXPORT_FILE)
			n = write(stream->fd, bytes, length);
		else
			n = send(stream->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (stream->tls == NULL && n < 0)
			n = -errno;
	} while (n == -EINTR);
	if (n == -EAGAIN || n > 0)
		return n;
	if (stream->target->transport == EXPORT_FILE)
		take_back(stream);
	return end_session(
		stream, now_ms, n == 0 ? -EIO : (int)n, strerror(n == 0 ? EIO : (int)-n));
}

void stream_whole(struct stream *stream)
{
	struct stat status;

	if (stream->target->transport == EXPORT_FILE && fstat(stream->fd, &status) == 0)
		stream->whole = (uint64_t)status.st_size;
}

bool stream_ended(struct stream *stream, uint64_t now_ms)
{
	char byte;
	ssize_t n;

	if (stream->state != STREAM_UP || stream->target->transport == EXPORT_FILE)
		return false;
	n = recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return false;
	end_session(stream, now_ms, -EPIPE,
		n == 0 ? "the collector has closed the connection" : strerror(errno));
	return true;
}

void stream_reopen(struct stream *stream, uint64_t now_ms)
{
	end_session(stream, now_ms, 0, "");
	stream->why.text[0] = '\0';
	stream->retry_ms = now_ms;
}

void stream_wait(const struct stream *stream, int ms)
{
	struct pollfd ready = {.fd = stream->fd, .events = POLLOUT};
	const struct timespec pause = {.tv_nsec = ms * 1000000L};

	if (stream->fd >= 0 && stream->state == STREAM_UP)
		(void)poll(&ready, 1, ms);
	else
		(void)nanosleep(&pause, NULL);
}
