/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A TAP: an interface of the kernel's by which frames go to it and come from it. It lies in the network namespace that the thread
 * is in that opens it, and is gone when it is closed, unless somebody had made it before to last (`ip tuntap add mode tap`):
 * then its addresses and routes last, too. It is down at first, and has no carrier.
 *
 * Reading and writing never wait. One thread's.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rte_mbuf.h>

#include "base/error.h"

struct tap_config {
	char name[16];
	uint8_t mac[6];
	uint32_t mtu;
};

struct tap {
	int fd;		  /* -1: it is not open */
	uint32_t ifindex; /* it keeps it when it is renamed */
};

/* 0, or a negative errno with a line, and `tap` is not open. */
int tap_open(struct tap *tap, const struct tap_config *config, struct error *error);
/* Also of one that is not open. */
void tap_close(struct tap *tap);

/* 0 or a negative errno. */
int tap_set_carrier(const struct tap *tap, bool up);

/*
 * The next frame that the kernel sends. Returns its length, 0 where there is none, or a negative errno: -EBADFD: somebody has deleted
 * the TAP; -EMSGSIZE: a frame was longer than `size`, and is lost.
 */
ssize_t tap_read(const struct tap *tap, void *frame, size_t size);
/*
 * Gives the kernel a frame. 0, or a negative errno: -EBADFD as above, -EIO: the interface is down, -EAGAIN: the kernel has no
 * room for it; others: it does not take this frame.
 */
int tap_write(const struct tap *tap, const struct rte_mbuf *frame);
