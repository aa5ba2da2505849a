/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * FPM, the forwarding plane manager's protocol: FRR's zebra with `-M dplane_fpm_nl` connects by TCP and sends each route that it
 * selects as a netlink message behind a header of four bytes. Since TCP waits for its reader nothing is lost, however long a
 * storm is. The mirror has its routes as a second source (host/kernel_routes.h).
 *
 * zebra sends all it has when it connects, and does not say where that ends: when it was silent for `settle_s`, routes of an
 * earlier connection that it has not named again are removed. While there is no connection its routes stay, for
 * `keep_s`. There is one connection: a new one takes the place of the old one. A peer that does not keep to the
 * protocol is disconnected.
 *
 * zebra changes a route by removing and adding it: a removal waits for the next message, or for some milliseconds, so that
 * such a change is one.
 *
 * One thread's, which waits for fpm_fd() and calls fpm_read(), and fpm_tend() after fpm_wait_ms().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/mirror.h"

#define FPM_PORT 2620
#define FPM_SETTLE_S 5
#define FPM_KEEP_S 120

struct fpm_config {
	struct mirror *mirror;	   /* outlives it */
	uint16_t port;		   /* of 127.0.0.1; 0: FPM_PORT */
	uint32_t settle_s, keep_s; /* 0: FPM_SETTLE_S, FPM_KEEP_S */
};

struct fpm_counts {
	bool connected;
	uint64_t connections;
	uint64_t messages;
	uint64_t skipped;   /* of another format than netlink */
	uint64_t malformed; /* connections that did not keep to the protocol */
};

struct fpm;

/* 0, or a negative errno with a line. */
int fpm_open(struct fpm **fpm, const struct fpm_config *config, struct error *error);
/* Accepts NULL. The routes stay in the mirror. */
void fpm_close(struct fpm *fpm);

/* Readable when there is something for fpm_read(). */
int fpm_fd(const struct fpm *fpm);
void fpm_read(struct fpm *fpm, uint64_t now_us);
void fpm_tend(struct fpm *fpm, uint64_t now_us);
/* -1: nothing is to be done until it is readable. */
int fpm_wait_ms(const struct fpm *fpm, uint64_t now_us);

void fpm_counts(const struct fpm *fpm, struct fpm_counts *counts);
