/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The host: a thread that stands between a router and the Linux kernel. It has a TAP for each of the router's ports, hands punted
 * packets to the kernel and what the kernel sends to lcores, and follows the kernel's links, addresses, neighbours and routes
 * (netlink), and those of a routing daemon (FPM). TAPs, netlink and FPM are in one network namespace. docs/host.md says how
 * it is used.
 *
 * Life-cycle: the plane makes the punt lines; host_create() starts the thread, and returns when the TAPs are there; then lcores run.
 * host_destroy() comes after they have ended, since the TAPs are gone then; it frees what is left in the lines.
 *
 * The follower and the hooks are called on the host's thread, and must not wait. All other functions are any thread's.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "dataplane/punt.h"
#include "host/fpm.h"
#include "host/mirror.h"
#include "host/taps.h"
#include "host/watch.h"
#include "route/kernel.h"

enum host_event_kind {
	HOST_EVENT_TAP_LOST,   /* somebody has deleted the TAP of `port` */
	HOST_EVENT_TAP_BACK,   /* it was made anew */
	HOST_EVENT_TAP_FAILED, /* it could not be made anew */
	HOST_EVENT_OVERRUN,    /* the kernel threw messages away: everything is asked for again */
	HOST_EVENT_FULL,   /* there is no room for more routes, or other things of the kernel's */
	HOST_EVENT_RULES,  /* there are policy rules, which are not followed; or no more */
	HOST_EVENT_FPM_UP, /* a routing daemon has connected */
	HOST_EVENT_FPM_DOWN,
	HOST_N_EVENTS,
};

struct host_event {
	enum host_event_kind kind;
	unsigned port; /* of TAPs */
	char text[256];
};

/* Either may be NULL. */
struct host_hooks {
	void *context;
	/* the interface of a port's TAP; 0: it is gone. Told before its link is. May be NULL */
	void (*tap)(void *context, unsigned port, uint32_t ifindex);
	void (*event)(void *context, const struct host_event *event);
};

struct host_config {
	const char *space; /* network namespace: a name or a path; NULL: that of the process */
	const struct taps_port *taps; /* copied */
	unsigned n_taps;
	struct punt_line *const
		*lines; /* of all lcores; they outlive the host, which sets their `event` */
	unsigned n_lines;
	struct kernel_follower follower;
	struct host_hooks hooks;
	uint32_t max_routes;   /* 0: MIRROR_MAX_ROUTES */
	uint32_t buffer_bytes; /* of the netlink socket; 0: WATCH_BUFFER_BYTES */
	uint32_t scan_s;       /* 0: WATCH_SCAN_S */
	bool fpm;
	uint16_t fpm_port;		   /* 0: FPM_PORT */
	uint32_t fpm_settle_s, fpm_keep_s; /* 0: FPM_SETTLE_S, FPM_KEEP_S */
	const cpu_set_t *cpus; /* where the thread may run; NULL: where its creator may */
};

/* How it stands. */
struct host_status {
	bool synced; /* all that the kernel knows was told once */
	struct mirror_counts mirror;
	struct watch_counts watch;
	struct fpm_counts fpm; /* zeros without FPM */
	uint64_t asked;	       /* neighbours that the kernel was told to be in use */
	uint64_t unasked;      /* there was no room for the request */
	char foreign_rule
		[96]; /* one of the policy rules that are not followed; "": there is none */
};

struct host;

/* 0, or a negative errno with a line, and nothing is left. */
int host_create(struct host **host, const struct host_config *config, struct error *error);
/* Accepts NULL. */
void host_destroy(struct host *host);

void host_set_carrier(struct host *host, unsigned port, bool up);
/*
 * The neighbour is in use, or is wanted: the kernel is to find out its MAC, and to keep it fresh. Once in some seconds for each is
 * enough. What has no room is left out, and counted.
 */
void host_neighbour_use(
	struct host *host, uint32_t ifindex, uint8_t version, const uint8_t address[16]);
/* Has everything read from the kernel again soon. */
void host_resync(struct host *host);

void host_status(struct host *host, struct host_status *status);
/* False: the port has no TAP. */
bool host_port_counts(const struct host *host, unsigned port, struct taps_counts *counts);
/* "tap_lost", "tap_back", "tap_failed", "overrun", "full", "rules", "fpm_up", "fpm_down". */
const char *host_event_name(enum host_event_kind kind);
