/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The eyes of `millrace probe` (struct eyes of probe/cell.h): packets that arrive at the port by themselves, or
 * that are sent to it, by a peer at the other end of its wire or by itself.
 *
 * One thread. Where packets are sent, flows are those of traffic/stream.h.
 */

#include "port/port.h"
#include "probe/cell.h"

struct probe_packets;

struct probe_packets_config {
	struct port *port; /* started */
	struct port *peer; /* that sends; may be the port itself. NULL: they come by themselves */
	struct port *to;   /* that packets are sent on by; may be the port itself */
	struct rte_mempool *pool;
	uint32_t listen_ms;
};

/* Listens, where packets come by themselves. 0 or a negative errno with a line. */
int probe_packets_create(struct probe_packets **packets, const struct probe_packets_config *config,
	struct error *error);
/* Accepts NULL. */
void probe_packets_destroy(struct probe_packets *packets);

/* Flows that may be looked at; 0: there is nothing to see by. */
unsigned probe_packets_flows(const struct probe_packets *packets);
/* Packets that came while it listened. */
uint64_t probe_packets_heard(const struct probe_packets *packets);

void probe_packets_eyes(struct probe_packets *packets, struct eyes *eyes);
