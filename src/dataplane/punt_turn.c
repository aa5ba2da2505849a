/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of punts in an iteration: frames of the kernel are sent, and host threads are woken. */
#include <unistd.h>

#include "dataplane/lcore.h"
#include "dataplane/punt.h"
#include "dataplane/tx.h"

static bool take_frames(struct lcore *lcore, struct ring *ring)
{
	ring_element elements[LCORE_BURST];
	const unsigned n = ring_pop(ring, elements, LCORE_BURST);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = ring_packet(elements[i]);
		const unsigned port = packet->port;

		/* the host thread, which reads the kernel's frames, knows the ports */
		if (port >= lcore->n_ports) {
			rte_pktmbuf_free(packet);
			continue;
		}
		const unsigned domain = lcore->topology->domain[port];

		lcore->worker.counters[domain].from_kernel++;
		lcore->ports[port].from_kernel++;
		send_to_port(lcore, packet, domain, port);
	}
	lcore->more_wait |= n == LCORE_BURST;
	return n != 0;
}

static void wake_hosts(struct punt *punt)
{
	const uint64_t one = 1;

	for (; punt->wake != 0; punt->wake &= punt->wake - 1) {
		const int event = punt->lines[__builtin_ctz(punt->wake)].event;

		/* it fails only when the counter is full: then the host thread is awake */
		if (event >= 0 && write(event, &one, sizeof(one)) != sizeof(one))
			continue;
	}
}

bool punt_turn(struct lcore *lcore)
{
	struct punt *punt = &lcore->punt;
	bool busy = false;

	if (punt->wake != 0)
		wake_hosts(punt);
	for (unsigned i = 0; i < punt->n_lines; i++)
		busy |= take_frames(lcore, &punt->lines[i].from_host);
	return busy;
}
