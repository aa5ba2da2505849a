/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/handoff.h"

/* What a packet is counted by; noted before it is somebody else's. */
struct parcel {
	uint8_t wire;
	bool counted;
};

static void not_taken(struct lcore *lcore, struct rte_mbuf *packet, enum drop_reason reason)
{
	if (!packet_is_note(packet)) {
		lcore_drop(lcore, packet, reason);
		return;
	}
	struct rte_mbuf *error = packet_error_of(packet);

	if (error != NULL)
		lcore_drop(lcore, error, reason);
	/* a quoted flow that will not hear of it */
	lcore->worker.counters[packet_meta(packet)->wire].icmp_untied++;
	rte_pktmbuf_free(packet);
}

void handoff_to_lcore(struct lcore *lcore, unsigned to, struct rte_mbuf **packets, unsigned n)
{
	struct parcel parcels[LCORE_BURST];
	unsigned taken;

	for (unsigned i = 0; i < n; i++) {
		parcels[i].wire = packet_meta(packets[i])->wire;
		parcels[i].counted = packet_is_counted(packets[i]);
	}
	taken = ring_push(lcore->to[to], packets, n);
	for (unsigned i = 0; i < n; i++) {
		if (i < taken)
			lcore->worker.counters[parcels[i].wire].handed_out += parcels[i].counted;
		else
			not_taken(lcore, packets[i], DROP_HAND_OVER);
	}
}
