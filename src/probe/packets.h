/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The observer of `millrace probe` (probe/observer.h): it looks at packets that arrive at the port by themselves, or
 * that it sends there, by a peer at the other end of the wire or by the port itself. What is sent are flows of
 * traffic/stream.h. One thread.
 */

#include "port/port.h"
#include "probe/observer.h"

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

void probe_packets_observer(struct probe_packets *packets, struct observer *observer);
