/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/fpm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "host/frames.h"

/* Bytes are read so often before others have their turn. */
#define READS 4
#define SWEEP_ROUTES 20000
/* A removal waits so long for the route that takes its place. */
#define HOLD_US 10000
#define US 1000000

struct fpm {
	struct frames frames;
	uint64_t settle_us, keep_us;
	int poll, listener, peer; /* -1: there is none */
	bool sweeps;		  /* goes on with removing what was not named again */
	bool settles;		  /* what an earlier connection has named is there yet */
	uint64_t heard_us;	  /* the peer said something, or went */
	struct fpm_counts counts;
};

static int watch_for(const struct fpm *fpm, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(fpm->poll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int listen_at(struct fpm *fpm, uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;

	fpm->poll = epoll_create1(EPOLL_CLOEXEC);
	if (fpm->poll < 0)
		return -errno;
	fpm->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fpm->listener < 0 ||
		setsockopt(fpm->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fpm->listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fpm->listener, 4) < 0)
		return -errno;
	return watch_for(fpm, fpm->listener);
}

int fpm_open(struct fpm **out, const struct fpm_config *config, struct error *error)
{
	const uint16_t port = config->port != 0 ? config->port : FPM_PORT;
	struct fpm *fpm = calloc(1, sizeof(*fpm));
	int ret;

	if (fpm == NULL)
		return error_set(error, -ENOMEM, "no memory for FPM");
	frames_begin(&fpm->frames, config->mirror);
	fpm->settle_us = (uint64_t)(config->settle_s != 0 ? config->settle_s : FPM_SETTLE_S) * US;
	fpm->keep_us = (uint64_t)(config->keep_s != 0 ? config->keep_s : FPM_KEEP_S) * US;
	fpm->poll = fpm->listener = fpm->peer = -1;
	ret = listen_at(fpm, port);
	if (ret < 0) {
		fpm_close(fpm);
		return error_set(error, ret, "cannot listen for FPM at 127.0.0.1:%u: %s", port,
			strerror(-ret));
	}
	*out = fpm;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void fpm_close(struct fpm *fpm)
{
	if (fpm == NULL)
		return;
	close_fd(&fpm->peer);
	close_fd(&fpm->listener);
	close_fd(&fpm->poll);
	free(fpm);
}

int fpm_fd(const struct fpm *fpm)
{
	return fpm->poll;
}

/* Ends the connection. The routes of the peer stay for a while. */
static void hang_up(struct fpm *fpm, uint64_t now_us)
{
	frames_flush(&fpm->frames);
	close_fd(&fpm->peer);
	fpm->heard_us = now_us;
	fpm->settles = true;
	fpm->sweeps = false;
}

static void take_peer(struct fpm *fpm, uint64_t now_us)
{
	const int fd = accept4(fpm->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (fpm->peer >= 0)
		hang_up(fpm, now_us);
	fpm->peer = fd;
	if (watch_for(fpm, fd) < 0) {
		close_fd(&fpm->peer);
		return;
	}
	frames_begin(&fpm->frames, fpm->frames.mirror);
	mirror_begin(fpm->frames.mirror, SOURCE_FPM);
	fpm->counts.connections++;
	fpm->heard_us = now_us;
	fpm->settles = true;
	fpm->sweeps = false;
}

static void read_peer(struct fpm *fpm, uint64_t now_us)
{
	for (unsigned i = 0; i < READS && fpm->peer >= 0; i++) {
		size_t room;
		char *at = frames_room(&fpm->frames, &room);
		const ssize_t n = read(fpm->peer, at, room);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			hang_up(fpm, now_us);
			return;
		}
		fpm->heard_us = now_us;
		if (frames_take(&fpm->frames, (size_t)n) < 0) {
			fpm->counts.malformed++;
			hang_up(fpm, now_us);
		}
	}
}

void fpm_read(struct fpm *fpm, uint64_t now_us)
{
	struct epoll_event events[2];
	const int n = epoll_wait(fpm->poll, events, 2, 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == fpm->listener)
			take_peer(fpm, now_us);
		else if (events[i].data.fd == fpm->peer)
			read_peer(fpm, now_us);
	}
}

void fpm_tend(struct fpm *fpm, uint64_t now_us)
{
	const uint64_t silent_us = now_us - fpm->heard_us;

	if (silent_us >= HOLD_US)
		frames_flush(&fpm->frames);
	if (fpm->settles && silent_us >= (fpm->peer >= 0 ? fpm->settle_us : fpm->keep_us)) {
		/* without a peer all it has said is old */
		if (fpm->peer < 0)
			mirror_begin(fpm->frames.mirror, SOURCE_FPM);
		fpm->settles = false;
		fpm->sweeps = true;
	}
	if (fpm->sweeps && mirror_sweep(fpm->frames.mirror, SOURCE_FPM, SWEEP_ROUTES))
		fpm->sweeps = false;
}

int fpm_wait_ms(const struct fpm *fpm, uint64_t now_us)
{
	uint64_t due_us = UINT64_MAX;

	if (fpm->sweeps)
		return 0;
	if (fpm->settles)
		due_us = fpm->heard_us + (fpm->peer >= 0 ? fpm->settle_us : fpm->keep_us);
	if (fpm->frames.holds)
		due_us = RTE_MIN(due_us, fpm->heard_us + HOLD_US);
	if (due_us == UINT64_MAX)
		return -1;
	return due_us <= now_us ? 0 : (int)RTE_MIN((due_us - now_us) / 1000 + 1, UINT64_C(60000));
}

void fpm_counts(const struct fpm *fpm, struct fpm_counts *counts)
{
	*counts = fpm->counts;
	counts->connected = fpm->peer >= 0;
	counts->messages = fpm->frames.messages;
	counts->skipped = fpm->frames.skipped;
}
