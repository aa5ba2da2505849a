/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The TAPs of a router's ports: frames go to the kernel by them and come from it. A TAP has its port's name, MAC and MTU, and
 * its carrier is that of the port's link.
 *
 * Somebody may delete a TAP, or move it to another namespace: then it is made anew, at once and then with pauses that
 * double up to TAPS_RETRY_MAX_US, until that works. What addresses and routes it had is gone.
 *
 * Nothing ever waits. A frame that the kernel or an lcore has no room for is dropped, and counted by a name.
 *
 * One thread's, which is in the namespace of the TAPs, but for taps_set_carrier() and taps_counts(), which are any
 * thread's.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/topology.h"
#include "dataplane/punt.h"
#include "host/tap.h"

#define TAPS_RETRY_MAX_US 10000000

/* Why a frame did not arrive. */
enum host_drop {
	/* to the kernel */
	HOST_DROP_NO_TAP,   /* it is not there: somebody deleted it */
	HOST_DROP_TAP_DOWN, /* nobody has set it up */
	HOST_DROP_TAP_FULL, /* the kernel has no room */
	HOST_DROP_REFUSED,  /* the kernel does not take this frame */
	/* from the kernel */
	HOST_DROP_RING_FULL, /* the lcore does not keep up */
	HOST_DROP_NO_BUFFER, /* the pool is empty */
	HOST_DROP_TOO_LONG,
	HOST_N_DROPS,
};

struct taps_port {
	unsigned port; /* its number in the topology */
	struct tap_config tap;
	bool carrier;		  /* at first */
	struct punt_line *line;	  /* frames that the kernel sends go by it; outlives it */
	struct rte_mempool *pool; /* and come from this pool; outlives it */
};

struct taps_counts {
	bool there; /* the TAP is there */
	uint32_t ifindex;
	uint64_t to_kernel, from_kernel; /* frames that arrived */
	uint64_t dropped[HOST_N_DROPS];
	uint64_t lost; /* times that somebody deleted the TAP */
};

struct taps;

/* A TAP came (`ifindex`) or went (0); or it could not be made anew: then `why` says so. */
struct taps_hooks {
	void *context;
	void (*tap)(void *context, unsigned port, uint32_t ifindex, const char *why);
};

/* 0, or a negative errno with a line; then no TAP is left. */
int taps_open(struct taps **taps, const struct taps_port *config, unsigned n,
	const struct taps_hooks *hooks, struct error *error);
/* Accepts NULL. */
void taps_close(struct taps *taps);

/* Readable when the kernel has sent frames, or a TAP went. */
int taps_fd(const struct taps *taps);
/* Takes at most some dozen frames of each TAP. */
void taps_read(struct taps *taps, uint64_t now_us);
/* Gives the frame to the kernel, by the TAP of the port that it came in by, or drops it; it is freed. */
void taps_write(struct taps *taps, struct rte_mbuf *frame, uint64_t now_us);
/* A link is gone from the namespace. */
void taps_link_gone(struct taps *taps, uint32_t ifindex, uint64_t now_us);
/* Makes TAPs anew, and sets carriers. */
void taps_tend(struct taps *taps, uint64_t now_us);
/* -1: nothing is to be done. */
int taps_wait_ms(const struct taps *taps, uint64_t now_us);

/* The link of a port is up, or down; taps_tend() tells the kernel. */
void taps_set_carrier(struct taps *taps, unsigned port, bool up);
/* False: the port has no TAP. */
bool taps_counts(const struct taps *taps, unsigned port, struct taps_counts *counts);

/* "no_tap", "tap_down", "tap_full", "refused", "ring_full", "no_buffer", "too_long". */
const char *host_drop_name(enum host_drop drop);
