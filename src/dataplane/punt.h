/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Punts: packets that a router leaves to the kernel, and frames that the kernel sends by a router's port.
 *
 * Each worker has a line to the host thread (host/): a ring each way. A punted packet has its port in mbuf->port, by the
 * topology's number, and its reason in mbuf->hash.usr; it is as it came in. A frame from the kernel has in mbuf->port the port that
 * it leaves by; it comes from a pool of the plane's (packet_meta() has room), and any worker may be given it, though those of one
 * port are to take one line, so that they keep their order.
 *
 * Each reason has a rate. What is above it, and what finds the ring full, is dropped by a name of its own; what was put in the
 * ring counts as delivered. So a kernel that is slow costs no packet that is forwarded.
 *
 * The rings hold rte_mbufs and no markers. The lcore's own thread, but for the two rings, of which the host thread pops `to_host`
 * and pushes `from_host`, and reads `event`, an eventfd that is written when packets were put in an empty ring.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "action/punt.h"
#include "base/rate_limit.h"
#include "dataplane/ring.h"

struct lcore;
struct packet_info;

/* Packets that may wait in each ring. */
#define PUNT_RING 1024

/* The two rings of one worker; the plane makes them where it has a router. */
struct punt_line {
	struct ring to_host, from_host;
	int event; /* -1: nobody waits */
};

/* Packets of a reason in a second, of all workers; 0: none. */
struct punt_rates {
	uint32_t rate[PUNT_N_REASONS];
};
struct punt_rates punt_usual_rates(void);

struct punt {
	/* an lcore has a line to each router's host thread */
	struct punt_line *lines; /* of its routers; NULL: the plane has none */
	unsigned n_lines;
	const uint8_t *line_of; /* by domain */
	struct rate_limit limit[PUNT_N_REASONS];
	uint32_t
		wake; /* a bit for each line whose ring was empty when packets were put in, in this iteration */
};

/*
 * A packet of a router, which came in by `port`, goes to the kernel, unless its rate or the ring does not allow it. It is as it
 * came, and the lcore's no longer. `info`: what was read of it, or NULL.
 */
void punt_packet(struct lcore *lcore, unsigned port, struct rte_mbuf *packet,
	const struct packet_info *info, enum punt_reason reason);

/* Once an iteration: takes what the kernel sends, and wakes the host thread where it has to. True: there was something. */
bool punt_turn(struct lcore *lcore);
