/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/punt.h"

#include "dataplane/lcore.h"

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

static void drop_punt(struct lcore *lcore, unsigned port, struct rte_mbuf *packet,
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
		drop_punt(lcore, port, packet, info, DROP_PUNT_LIMITED);
		return;
	}
	const unsigned number = punt->line_of[lcore->topology->domain[port]];
	struct ring *ring = &punt->lines[number].to_host;

	packet->port = (uint16_t)port;
	packet->hash.usr = (uint32_t)reason;
	if (ring_push(ring, &packet, 1) == 0) {
		drop_punt(lcore, port, packet, info, DROP_PUNT_RING);
		return;
	}
	rate_limit_take(limit);
	counters->punted[reason]++;
	counters->delivered++;
	/* it was empty: the host thread may have looked before the packet came, and sleeps (or sees it: host/host.c) */
	rte_smp_mb();
	punt->wake |= mailbox_count(ring->mailbox) <= 1;
}
