/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/privilege.h"
#include "host/space.h"

/* Frames of each line before others have their turn. */
#define BURST 64
/* Neighbours that wait until the kernel is told. */
#define USES 1024
#define USES_AT_ONCE 64

enum place {
	PLACE_WAKE,
	PLACE_TAPS,
	PLACE_WATCH,
	PLACE_FPM,
};

struct host {
	struct host_config config; /* set once; without what is copied */
	struct punt_line **lines;
	pthread_t thread;
	bool running;
	int poll, wake;
	atomic_bool finish, resync;
	/* the thread's */
	struct taps *taps; /* others may set carriers and read counts */
	struct mirror *mirror;
	struct watch *watch;
	struct fpm *fpm; /* NULL: none */
	uint64_t now_us;
	struct host_status told; /* what events have told of */
	/* under the lock: of all threads but workers */
	pthread_mutex_t lock;
	pthread_cond_t begun;
	bool has_begun;
	int begin_result;
	struct error begin_error;
	struct host_status status;
	unsigned n_uses;
	struct watch_neighbour uses[USES];
};

const char *host_event_name(enum host_event_kind kind)
{
	static const char *const names[HOST_N_EVENTS] = {
		[HOST_EVENT_TAP_LOST] = "tap_lost",
		[HOST_EVENT_TAP_BACK] = "tap_back",
		[HOST_EVENT_TAP_FAILED] = "tap_failed",
		[HOST_EVENT_OVERRUN] = "overrun",
		[HOST_EVENT_FULL] = "full",
		[HOST_EVENT_RULES] = "rules",
		[HOST_EVENT_FPM_UP] = "fpm_up",
		[HOST_EVENT_FPM_DOWN] = "fpm_down",
	};

	return names[kind];
}

static void wake(const struct host *host)
{
	const uint64_t one = 1;

	/* it fails only when the counter is full: then the thread is awake */
	if (write(host->wake, &one, sizeof(one)) != sizeof(one))
		return;
}

/* ---------------------------------------------------- what is told */

static void tell_event(
	struct host *host, enum host_event_kind kind, unsigned port, const char *text)
{
	struct host_event event = {.kind = kind, .port = port};

	snprintf(event.text, sizeof(event.text), "%s", text);
	if (host->config.hooks.event != NULL)
		host->config.hooks.event(host->config.hooks.context, &event);
}

static void tap_hook(void *context, unsigned port, uint32_t ifindex, const char *why)
{
	struct host *host = context;
	struct taps_counts counts = {0};

	if (why != NULL) {
		tell_event(host, HOST_EVENT_TAP_FAILED, port, why);
		return;
	}
	if (host->config.hooks.tap != NULL)
		host->config.hooks.tap(host->config.hooks.context, port, ifindex);
	/* the first time is no news */
	if (host->taps == NULL || !taps_counts(host->taps, port, &counts))
		return;
	if (ifindex == 0)
		tell_event(host, HOST_EVENT_TAP_LOST, port,
			"the TAP is gone: somebody has deleted it, or moved it to another "
			"namespace; it is made anew");
	else
		tell_event(host, HOST_EVENT_TAP_BACK, port,
			"the TAP is there again, without its addresses and routes");
}

static void link_told(void *context, const struct kernel_link *link, bool gone)
{
	struct host *host = context;

	host->config.follower.link(host->config.follower.context, link, gone);
	if (gone)
		taps_link_gone(host->taps, link->ifindex, host->now_us);
}

static void address_told(void *context, const struct kernel_address *address, bool gone)
{
	const struct kernel_follower *follower = &((struct host *)context)->config.follower;

	follower->address(follower->context, address, gone);
}

static void neighbour_told(void *context, const struct kernel_neighbour *neighbour, bool gone)
{
	const struct kernel_follower *follower = &((struct host *)context)->config.follower;

	follower->neighbour(follower->context, neighbour, gone);
}

static void route_told(void *context, const struct kernel_route *route, bool gone)
{
	const struct kernel_follower *follower = &((struct host *)context)->config.follower;

	follower->route(follower->context, route, gone);
}

static void synced_told(void *context)
{
	struct host *host = context;

	host->told.synced = true;
	host->config.follower.synced(host->config.follower.context);
}

/* Events of what has changed since the last look. */
static void tell_changes(struct host *host, const struct host_status *now)
{
	const struct host_status *before = &host->told;
	char text[200];

	if (now->watch.overruns != before->watch.overruns)
		tell_event(host, HOST_EVENT_OVERRUN, 0,
			"the kernel threw netlink messages away: all routes are read again");
	if (now->mirror.refused != 0 && before->mirror.refused == 0)
		tell_event(host, HOST_EVENT_FULL, 0,
			"there is no room for more routes: the kernel's others are not followed");
	if (now->mirror.foreign_rules != before->mirror.foreign_rules) {
		if (now->mirror.foreign_rules == 0)
			snprintf(text, sizeof(text), "all policy rules are followed");
		else
			snprintf(text, sizeof(text), "%u policy rules are not followed, as the %s",
				now->mirror.foreign_rules, now->foreign_rule);
		tell_event(host, HOST_EVENT_RULES, 0, text);
	}
	if (now->fpm.connections != before->fpm.connections)
		tell_event(host, HOST_EVENT_FPM_UP, 0, "a routing daemon has connected by FPM");
	if (!now->fpm.connected && before->fpm.connected)
		tell_event(host, HOST_EVENT_FPM_DOWN, 0,
			"the routing daemon's FPM connection has ended: its routes stay for now");
}

/* Shows how it stands to those who ask. */
static void publish(struct host *host)
{
	struct host_status *now = &host->status;

	pthread_mutex_lock(&host->lock);
	now->synced = host->told.synced;
	mirror_counts(host->mirror, &now->mirror);
	watch_counts(host->watch, &now->watch);
	if (host->fpm != NULL)
		fpm_counts(host->fpm, &now->fpm);
	if (now->mirror.foreign_rules != host->told.mirror.foreign_rules &&
		!mirror_foreign_rule(host->mirror, now->foreign_rule, sizeof(now->foreign_rule)))
		now->foreign_rule[0] = '\0';
	const struct host_status copy = *now;

	pthread_mutex_unlock(&host->lock);
	tell_changes(host, &copy);
	host->told = copy;
}

/* ---------------------------------------------------- the thread's work */

/* Some frames of each line. Returns whether there may be more. */
static bool take_punts(struct host *host)
{
	ring_element elements[BURST];
	bool more = false;

	for (unsigned i = 0; i < host->config.n_lines; i++) {
		const unsigned n = ring_pop(&host->lines[i]->to_host, elements, BURST);

		for (unsigned j = 0; j < n; j++)
			taps_write(host->taps, ring_packet(elements[j]), host->now_us);
		more |= n == BURST;
	}
	return more;
}

/* Whether nothing came meanwhile: an lcore that finds the ring empty after it has put in a packet wakes the thread. */
static bool lines_are_empty(const struct host *host)
{
	rte_smp_mb();
	for (unsigned i = 0; i < host->config.n_lines; i++)
		if (mailbox_count(host->lines[i]->to_host.mailbox) != 0)
			return false;
	return true;
}

static void use_neighbours(struct host *host)
{
	struct watch_neighbour uses[USES_AT_ONCE];
	unsigned n;

	pthread_mutex_lock(&host->lock);
	n = RTE_MIN(host->n_uses, (unsigned)USES_AT_ONCE);
	host->n_uses -= n;
	memcpy(uses, host->uses + host->n_uses, n * sizeof(uses[0]));
	pthread_mutex_unlock(&host->lock);
	if (n == 0)
		return;
	const unsigned done = watch_use(host->watch, uses, n);

	pthread_mutex_lock(&host->lock);
	host->status.asked += done;
	host->status.unasked += n - done;
	pthread_mutex_unlock(&host->lock);
}

static bool has_uses(struct host *host)
{
	pthread_mutex_lock(&host->lock);
	const bool has = host->n_uses != 0;

	pthread_mutex_unlock(&host->lock);
	return has;
}

static int sooner(int one, int other)
{
	return one < 0 ? other : other < 0 ? one : RTE_MIN(one, other);
}

static int wait_ms(struct host *host)
{
	int ms = watch_wait_ms(host->watch, host->now_us);

	ms = sooner(ms, taps_wait_ms(host->taps, host->now_us));
	if (host->fpm != NULL)
		ms = sooner(ms, fpm_wait_ms(host->fpm, host->now_us));
	return has_uses(host) || !lines_are_empty(host) ? 0 : ms;
}

static void serve(struct host *host, enum place place)
{
	uint64_t woken;

	switch (place) {
	case PLACE_WAKE:
		if (read(host->wake, &woken, sizeof(woken)) < 0)
			return;
		break;
	case PLACE_TAPS:
		taps_read(host->taps, host->now_us);
		break;
	case PLACE_WATCH:
		watch_read(host->watch, host->now_us);
		break;
	case PLACE_FPM:
		fpm_read(host->fpm, host->now_us);
		break;
	}
}

static void tend(struct host *host)
{
	if (atomic_exchange_explicit(&host->resync, false, memory_order_relaxed))
		watch_want_dump(host->watch, host->now_us);
	use_neighbours(host);
	taps_tend(host->taps, host->now_us);
	watch_tend(host->watch, host->now_us);
	if (host->fpm != NULL)
		fpm_tend(host->fpm, host->now_us);
	publish(host);
}

static void work(struct host *host)
{
	struct epoll_event events[4];
	bool more = false;

	while (!atomic_load_explicit(&host->finish, memory_order_acquire)) {
		const int n = epoll_wait(host->poll, events, 4, more ? 0 : wait_ms(host));

		host->now_us = monotonic_us();
		for (int i = 0; i < n; i++)
			serve(host, (enum place)events[i].data.u32);
		more = take_punts(host);
		tend(host);
	}
}

/* ---------------------------------------------------- life */

static int wait_for(const struct host *host, int fd, enum place place)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = place};

	return epoll_ctl(host->poll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_watch(struct host *host, struct error *error)
{
	const struct host_config *config = &host->config;
	const struct kernel_follower follower = {.context = host,
		.link = link_told,
		.address = address_told,
		.neighbour = neighbour_told,
		.route = route_told,
		.synced = synced_told};
	int ret = mirror_create(&host->mirror,
		config->max_routes != 0 ? config->max_routes : MIRROR_MAX_ROUTES, &follower, error);

	if (ret < 0)
		return ret;
	ret = watch_open(&host->watch,
		&(struct watch_config){.mirror = host->mirror,
			.buffer_bytes = config->buffer_bytes,
			.scan_s = config->scan_s},
		error);
	if (ret < 0 || !config->fpm)
		return ret;
	return fpm_open(&host->fpm,
		&(struct fpm_config){.mirror = host->mirror,
			.port = config->fpm_port,
			.settle_s = config->fpm_settle_s,
			.keep_s = config->fpm_keep_s},
		error);
}

/* All that has to be in the namespace is opened on the thread, which stays there. */
static int begin(struct host *host, struct error *error)
{
	const struct host_config *config = &host->config;
	const struct taps_hooks hooks = {.context = host, .tap = tap_hook};
	int ret = config->space != NULL ? space_enter(config->space, error) : 0;

	privilege_drop_admin();
	host->now_us = monotonic_us();
	if (ret == 0)
		ret = open_watch(host, error);
	if (ret == 0)
		ret = taps_open(&host->taps, config->taps, config->n_taps, &hooks, error);
	if (ret < 0)
		return ret;
	ret = wait_for(host, host->wake, PLACE_WAKE);
	if (ret == 0)
		ret = wait_for(host, taps_fd(host->taps), PLACE_TAPS);
	if (ret == 0)
		ret = wait_for(host, watch_fd(host->watch), PLACE_WATCH);
	if (ret == 0 && host->fpm != NULL)
		ret = wait_for(host, fpm_fd(host->fpm), PLACE_FPM);
	return ret < 0 ? error_set(error, ret, "cannot wait for the kernel: %s", strerror(-ret))
		       : 0;
}

static void *run(void *arg)
{
	struct host *host = arg;
	struct error error = {""};
	const int ret = begin(host, &error);

	pthread_mutex_lock(&host->lock);
	host->begin_result = ret;
	host->begin_error = error;
	host->has_begun = true;
	pthread_cond_signal(&host->begun);
	pthread_mutex_unlock(&host->lock);
	if (ret == 0)
		work(host);
	return NULL;
}

/* Signals are the main thread's: this one starts with all of them blocked. */
static int start_thread(struct host *host)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -ret;
	if (host->config.cpus != NULL)
		ret = pthread_attr_setaffinity_np(
			&attr, sizeof(*host->config.cpus), host->config.cpus);
	if (ret == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		ret = pthread_create(&host->thread, &attr, run, host);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	if (ret != 0)
		return -ret;
	pthread_setname_np(host->thread, "host");
	host->running = true;
	return 0;
}

static int create_parts(struct host *host, const struct host_config *config)
{
	host->poll = epoll_create1(EPOLL_CLOEXEC);
	host->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (host->poll < 0 || host->wake < 0)
		return -errno;
	host->lines = calloc(config->n_lines + 1, sizeof(host->lines[0]));
	if (host->lines == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < config->n_lines; i++) {
		host->lines[i] = config->lines[i];
		host->lines[i]->event = host->wake;
	}
	return 0;
}

int host_create(struct host **out, const struct host_config *config, struct error *error)
{
	struct host *host = calloc(1, sizeof(*host));
	int ret;

	if (host == NULL)
		return error_set(error, -ENOMEM, "no memory for the host thread");
	host->config = *config;
	host->poll = host->wake = -1;
	pthread_mutex_init(&host->lock, NULL);
	pthread_cond_init(&host->begun, NULL);
	ret = create_parts(host, config);
	if (ret == 0)
		ret = start_thread(host);
	if (ret < 0) {
		error_set(error, ret, "cannot start the host thread: %s", strerror(-ret));
	} else {
		pthread_mutex_lock(&host->lock);
		while (!host->has_begun)
			pthread_cond_wait(&host->begun, &host->lock);
		ret = host->begin_result;
		pthread_mutex_unlock(&host->lock);
		if (ret < 0)
			*error = host->begin_error;
	}
	if (ret < 0)
		host_destroy(host);
	else
		*out = host;
	return ret;
}

static void free_line(struct punt_line *line)
{
	ring_element elements[BURST];
	unsigned n;

	line->event = -1;
	while ((n = ring_pop(&line->to_host, elements, BURST)) > 0)
		for (unsigned i = 0; i < n; i++)
			rte_pktmbuf_free(ring_packet(elements[i]));
}

void host_destroy(struct host *host)
{
	if (host == NULL)
		return;
	if (host->running) {
		atomic_store_explicit(&host->finish, true, memory_order_release);
		wake(host);
		pthread_join(host->thread, NULL);
	}
	for (unsigned i = 0; host->lines != NULL && i < host->config.n_lines; i++)
		free_line(host->lines[i]);
	fpm_close(host->fpm);
	watch_close(host->watch);
	taps_close(host->taps);
	mirror_destroy(host->mirror);
	if (host->wake >= 0)
		close(host->wake);
	if (host->poll >= 0)
		close(host->poll);
	pthread_cond_destroy(&host->begun);
	pthread_mutex_destroy(&host->lock);
	free(host->lines);
	free(host);
}

/* ---------------------------------------------------- other threads */

void host_set_carrier(struct host *host, unsigned port, bool up)
{
	taps_set_carrier(host->taps, port, up);
	wake(host);
}

void host_neighbour_use(
	struct host *host, uint32_t ifindex, uint8_t version, const uint8_t address[16])
{
	struct watch_neighbour use = {.ifindex = ifindex, .version = version};
	bool first = false;

	memcpy(use.address, address, sizeof(use.address));
	pthread_mutex_lock(&host->lock);
	if (host->n_uses < USES) {
		first = host->n_uses == 0;
		host->uses[host->n_uses++] = use;
	} else {
		host->status.unasked++;
	}
	pthread_mutex_unlock(&host->lock);
	if (first)
		wake(host);
}

void host_resync(struct host *host)
{
	atomic_store_explicit(&host->resync, true, memory_order_relaxed);
	wake(host);
}

void host_status(struct host *host, struct host_status *status)
{
	pthread_mutex_lock(&host->lock);
	*status = host->status;
	pthread_mutex_unlock(&host->lock);
}

bool host_port_counts(const struct host *host, unsigned port, struct taps_counts *counts)
{
	return taps_counts(host->taps, port, counts);
}
