/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/taps.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Frames of each TAP before the next one has its turn. */
#define FRAMES 32
/* The longest frame: an MTU of 65,535 with an Ethernet header and two tags. */
#define FRAME_BYTES (65535 + 22)
#define RETRY_MIN_US 100000

struct tap_port {
	struct taps_port config;
	struct tap tap;
	bool carrier;	   /* that the kernel was told */
	uint64_t retry_us; /* the TAP is made anew; 0: it is there */
	uint64_t pause_us; /* before the next attempt, if that fails */
	/* any thread's */
	atomic_bool link_up;
	/* the thread writes, anyone reads */
	_Atomic uint32_t ifindex;
	_Atomic uint64_t to_kernel, from_kernel, lost;
	_Atomic uint64_t dropped[HOST_N_DROPS];
};

struct taps {
	unsigned n;
	struct tap_port *port;
	int8_t of
		[TOPOLOGY_MAX_PORTS]; /* place in `port` of each of the topology's; -1: it has none */
	int poll;
	struct taps_hooks hooks;
	char frame[FRAME_BYTES];
};

const char *host_drop_name(enum host_drop drop)
{
	static const char *const names[HOST_N_DROPS] = {
		[HOST_DROP_NO_TAP] = "no_tap",
		[HOST_DROP_TAP_DOWN] = "tap_down",
		[HOST_DROP_TAP_FULL] = "tap_full",
		[HOST_DROP_REFUSED] = "refused",
		[HOST_DROP_RING_FULL] = "ring_full",
		[HOST_DROP_NO_BUFFER] = "no_buffer",
		[HOST_DROP_TOO_LONG] = "too_long",
	};

	return names[drop];
}

/* One thread writes them: nobody comes between the two. */
static void bump(_Atomic uint64_t *counter)
{
	const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, before + 1, memory_order_relaxed);
}

static void drop(struct tap_port *port, enum host_drop why)
{
	bump(&port->dropped[why]);
}

/* ---------------------------------------------------- TAPs come and go */

static void set_carrier(struct tap_port *port)
{
	const bool up = atomic_load_explicit(&port->link_up, memory_order_relaxed);

	if (port->tap.fd < 0 || up == port->carrier)
		return;
	if (tap_set_carrier(&port->tap, up) == 0)
		port->carrier = up;
}

static int open_port(struct taps *taps, struct tap_port *port, struct error *error)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = port};
	int ret = tap_open(&port->tap, &port->config.tap, error);

	if (ret < 0)
		return ret;
	if (epoll_ctl(taps->poll, EPOLL_CTL_ADD, port->tap.fd, &event) < 0) {
		ret = error_set(error, -errno, "cannot wait for the TAP '%s': %s",
			port->config.tap.name, strerror(errno));
		tap_close(&port->tap);
		return ret;
	}
	port->carrier = false;
	port->retry_us = 0;
	port->pause_us = RETRY_MIN_US;
	set_carrier(port);
	atomic_store_explicit(&port->ifindex, port->tap.ifindex, memory_order_relaxed);
	taps->hooks.tap(taps->hooks.context, port->config.port, port->tap.ifindex, NULL);
	return 0;
}

/* Somebody has taken the TAP away. */
static void lose(struct taps *taps, struct tap_port *port, uint64_t now_us)
{
	if (port->tap.fd < 0)
		return;
	tap_close(&port->tap);
	bump(&port->lost);
	port->retry_us = now_us;
	atomic_store_explicit(&port->ifindex, 0, memory_order_relaxed);
	taps->hooks.tap(taps->hooks.context, port->config.port, 0, NULL);
}

void taps_link_gone(struct taps *taps, uint32_t ifindex, uint64_t now_us)
{
	for (unsigned i = 0; i < taps->n; i++)
		if (taps->port[i].tap.fd >= 0 && taps->port[i].tap.ifindex == ifindex)
			lose(taps, &taps->port[i], now_us);
}

static void make_anew(struct taps *taps, struct tap_port *port, uint64_t now_us)
{
	struct error error;

	if (open_port(taps, port, &error) == 0)
		return;
	port->retry_us = now_us + port->pause_us;
	port->pause_us = RTE_MIN(2 * port->pause_us, UINT64_C(0) + TAPS_RETRY_MAX_US);
	taps->hooks.tap(taps->hooks.context, port->config.port, 0, error.text);
}

void taps_tend(struct taps *taps, uint64_t now_us)
{
	for (unsigned i = 0; i < taps->n; i++) {
		struct tap_port *port = &taps->port[i];

		if (port->retry_us != 0 && now_us >= port->retry_us)
			make_anew(taps, port, now_us);
		set_carrier(port);
	}
}

int taps_wait_ms(const struct taps *taps, uint64_t now_us)
{
	uint64_t due_us = UINT64_MAX;

	for (unsigned i = 0; i < taps->n; i++)
		if (taps->port[i].retry_us != 0)
			due_us = RTE_MIN(due_us, taps->port[i].retry_us);
	if (due_us == UINT64_MAX)
		return -1;
	return due_us <= now_us ? 0 : (int)((due_us - now_us) / 1000 + 1);
}

static struct tap_port *port_of(const struct taps *taps, unsigned number)
{
	if (number >= TOPOLOGY_MAX_PORTS || taps->of[number] < 0)
		return NULL;
	return &taps->port[taps->of[number]];
}

void taps_set_carrier(struct taps *taps, unsigned number, bool up)
{
	struct tap_port *port = port_of(taps, number);

	if (port != NULL)
		atomic_store_explicit(&port->link_up, up, memory_order_relaxed);
}

bool taps_counts(const struct taps *taps, unsigned number, struct taps_counts *counts)
{
	struct tap_port *port = port_of(taps, number);

	if (port == NULL)
		return false;
	counts->ifindex = atomic_load_explicit(&port->ifindex, memory_order_relaxed);
	counts->there = counts->ifindex != 0;
	counts->to_kernel = atomic_load_explicit(&port->to_kernel, memory_order_relaxed);
	counts->from_kernel = atomic_load_explicit(&port->from_kernel, memory_order_relaxed);
	counts->lost = atomic_load_explicit(&port->lost, memory_order_relaxed);
	for (unsigned i = 0; i < HOST_N_DROPS; i++)
		counts->dropped[i] = atomic_load_explicit(&port->dropped[i], memory_order_relaxed);
	return true;
}

/* ---------------------------------------------------- frames */

void taps_write(struct taps *taps, struct rte_mbuf *frame, uint64_t now_us)
{
	struct tap_port *port = port_of(taps, frame->port);
	int ret;

	if (port == NULL) {
		rte_pktmbuf_free(frame);
		return;
	}
	ret = port->tap.fd < 0 ? -EBADFD : tap_write(&port->tap, frame);
	rte_pktmbuf_free(frame);
	switch (ret) {
	case 0:
		bump(&port->to_kernel);
		break;
	case -EBADFD:
		drop(port, HOST_DROP_NO_TAP);
		lose(taps, port, now_us);
		break;
	case -EIO:
		drop(port, HOST_DROP_TAP_DOWN);
		break;
	case -EAGAIN:
		drop(port, HOST_DROP_TAP_FULL);
		break;
	default:
		drop(port, HOST_DROP_REFUSED);
		break;
	}
}

/* The frame as a chain of buffers; NULL: the pool is empty. */
static struct rte_mbuf *make_frame(const struct tap_port *port, const char *bytes, size_t size)
{
	struct rte_mbuf *frame = rte_pktmbuf_alloc(port->config.pool), *last = frame;

	while (last != NULL) {
		const size_t n = RTE_MIN(size, (size_t)rte_pktmbuf_tailroom(last));

		memcpy(rte_pktmbuf_mtod(last, char *), bytes, n);
		last->data_len = (uint16_t)n;
		frame->pkt_len += (uint32_t)n;
		bytes += n;
		size -= n;
		if (size == 0) {
			frame->port = (uint16_t)port->config.port;
			return frame;
		}
		last->next = rte_pktmbuf_alloc(port->config.pool);
		last = last->next;
		frame->nb_segs++;
	}
	rte_pktmbuf_free(frame);
	return NULL;
}

static void push_frames(struct tap_port *port, struct rte_mbuf **frames, unsigned n)
{
	const unsigned pushed = ring_push(&port->config.line->from_host, frames, n);

	for (unsigned i = 0; i < pushed; i++)
		bump(&port->from_kernel);
	for (unsigned i = pushed; i < n; i++) {
		drop(port, HOST_DROP_RING_FULL);
		rte_pktmbuf_free(frames[i]);
	}
}

static void read_port(struct taps *taps, struct tap_port *port, uint64_t now_us)
{
	struct rte_mbuf *frames[FRAMES];
	unsigned n = 0;

	for (unsigned i = 0; i < FRAMES && port->tap.fd >= 0; i++) {
		const ssize_t size = tap_read(&port->tap, taps->frame, sizeof(taps->frame));

		if (size == 0)
			break;
		if (size == -EMSGSIZE) {
			drop(port, HOST_DROP_TOO_LONG);
			continue;
		}
		if (size < 0) {
			lose(taps, port, now_us);
			break;
		}
		frames[n] = make_frame(port, taps->frame, (size_t)size);
		if (frames[n] == NULL)
			drop(port, HOST_DROP_NO_BUFFER);
		else
			n++;
	}
	push_frames(port, frames, n);
}

int taps_fd(const struct taps *taps)
{
	return taps->poll;
}

void taps_read(struct taps *taps, uint64_t now_us)
{
	struct epoll_event events[TOPOLOGY_MAX_PORTS];
	const int n = epoll_wait(taps->poll, events, TOPOLOGY_MAX_PORTS, 0);

	for (int i = 0; i < n; i++)
		read_port(taps, events[i].data.ptr, now_us);
}

/* ---------------------------------------------------- life */

int taps_open(struct taps **out, const struct taps_port *config, unsigned n,
	const struct taps_hooks *hooks, struct error *error)
{
	struct taps *taps = calloc(1, sizeof(*taps));
	int ret = 0;

	if (taps == NULL)
		return error_set(error, -ENOMEM, "no memory for TAPs");
	memset(taps->of, -1, sizeof(taps->of));
	taps->hooks = *hooks;
	taps->port = calloc(n + 1, sizeof(taps->port[0]));
	taps->poll = epoll_create1(EPOLL_CLOEXEC);
	if (taps->port == NULL || taps->poll < 0) {
		taps_close(taps);
		return error_set(error, -ENOMEM, "no memory for TAPs");
	}
	for (; ret == 0 && taps->n < n; taps->n++) {
		struct tap_port *port = &taps->port[taps->n];

		port->config = config[taps->n];
		port->tap.fd = -1;
		atomic_init(&port->link_up, port->config.carrier);
		taps->of[port->config.port] = (int8_t)taps->n;
		ret = open_port(taps, port, error);
	}
	if (ret < 0)
		taps_close(taps);
	else
		*out = taps;
	return ret;
}

void taps_close(struct taps *taps)
{
	if (taps == NULL)
		return;
	for (unsigned i = 0; i < taps->n; i++)
		tap_close(&taps->port[i].tap);
	if (taps->poll >= 0)
		close(taps->poll);
	free(taps->port);
	free(taps);
}
