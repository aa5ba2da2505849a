/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Messages as UDP datagrams to one collector: a connected socket, so that the kernel tells when nobody listens. It never
 * waits. Life-cycle: datagram_open(), datagram_close(). Used by one thread.
 */

#include <stddef.h>
#include <sys/uio.h>

#include "base/error.h"
#include "export/target.h"

#define DATAGRAM_BURST 64

struct datagram {
	int fd;
	bool ipv6;
	bool joins; /* several are handed over as one, which the kernel cuts */
};

/* Returns 0 or a negative errno with a line. A name is looked up here. */
int datagram_open(
	struct datagram *datagram, const struct export_target *target, struct error *error);
void datagram_close(struct datagram *datagram);

/*
 * Sends each of them, at most DATAGRAM_BURST, as a datagram. Returns how many were taken, or a negative errno if none
 * was: -EAGAIN for no room, -ECONNREFUSED where nobody listened to one that was sent before.
 */
int datagram_send(struct datagram *datagram, const struct iovec *messages, unsigned n);

/* Bytes of a message that the way to the collector is known to carry whole. */
size_t datagram_carries(const struct datagram *datagram, size_t mtu);

/* Waits until something can be taken, at most `ms`. */
void datagram_wait(const struct datagram *datagram, int ms);
