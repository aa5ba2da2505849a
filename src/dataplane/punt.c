/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/punt.h"

#include <unistd.h>

#include "dataplane/lcore.h"
#include "dataplane/tx.h"

struct punt_rates punt_usual_rates(void)
{
	/* what conversations of the router itself need comes first; errors that it sends are the kernel's to limit, too */
	return (struct punt_rates){.rate = {
					   [PUNT_LOCAL] = 20000,
					   [PUNT_ARP_ND] = 5000,
					   [PUNT_NO_NEIGHBOUR] = 5000,
					   [PUNT_TTL] = 1000,
					   [PUNT_TOO_BIG] = 10000,
					   [PUNT_OPTIONS] = 1000,
					   [PUNT_MULTICAST] = 5000,
					   [PUNT_NO_ROUTE] = 1000,
					   [PUNT_OTHER] = 1000,
				   }};
}

static void drop(struct lcore *lcore, unsigned port, struct rte_mbuf *packet,
	const struct packet_info *info, enum drop_reason reason)
{
	const unsigned domain = lcore->topology->domain[port];

	if (drop_watch_is_on(&lcore->drops))
		drop_watch_packet(&lcore->drops, domain, port, packet, info, reason);
	lcore->worker.counters[domain].dropped[reason]++;
	rte_pktmbuf_free(packet);
}

void punt_packet(struct lcore *lcore, unsigned port, struct rte_mbuf *packet,
	const struct packet_info *info, enum punt_reason reason)
{
	struct punt *punt = &lcore->punt;
	struct path_counters *counters = &lcore->worker.counters[lcore->topology->domain[port]];
	struct rate_limit *limit = &punt->limit[reason];

	if (!rate_limit_has(limit, lcore->now_us)) {
		counters->punt_limited[reason]++;
		drop(lcore, port, packet, info, DROP_PUNT_LIMITED);
		return;
	}
	const unsigned number = punt->line_of[lcore->topology->domain[port]];
	struct ring *ring = &punt->lines[number].to_host;

	packet->port = (uint16_t)port;
	packet->hash.usr = (uint32_t)reason;
	if (ring_push(ring, &packet, 1) == 0) {
		drop(lcore, port, packet, info, DROP_PUNT_RING);
		return;
	}
	rate_limit_take(limit);
	counters->punted[reason]++;
	counters->delivered++;
	/* it was empty: the host thread may have looked before the packet came, and sleeps (or sees it: host/host.c) */
	rte_smp_mb();
	punt->wake |= mailbox_count(ring->mailbox) <= 1;
}

static bool take_frames(struct lcore *lcore, struct ring *ring)
{
	ring_element elements[LCORE_BURST];
	const unsigned n = ring_pop(ring, elements, LCORE_BURST);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = ring_packet(elements[i]);
		const unsigned port = packet->port;

		/* whoever reads the kernel's frames knows the ports */
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
