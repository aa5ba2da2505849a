/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending without a wire: packets are counted and given back. A real NIC's driver fills descriptors and
 * frees what was sent before; here the second half is what is left.
 */
#include "drivers/flowsim/packets/queue.h"

#include <string.h>

#include <rte_mempool.h>

#include "drivers/flowsim/packets/apply.h"
#include "drivers/flowsim/port/port.h"

/* Of rearm_data: packets that nobody else has, of one segment. */
static uint64_t sole_mask(void)
{
	struct rte_mbuf like = {.refcnt = UINT16_MAX, .nb_segs = UINT16_MAX};
	uint64_t mask;

	memcpy(&mask, &like.rearm_data, sizeof(mask));
	return mask;
}

static uint64_t sole_value(void)
{
	struct rte_mbuf like = {.refcnt = 1, .nb_segs = 1};
	uint64_t value;

	memcpy(&value, &like.rearm_data, sizeof(value));
	return value;
}

/*
 * Counts the bytes, and frees. Packets that are all of one pool, with a buffer of their own that nobody
 * shares, as nearly all are, go back at once: the bits in which one of them differs are gathered without
 * a branch.
 */
static uint64_t count_and_free(struct rte_mbuf **packets, uint16_t n)
{
	const uint64_t mask = sole_mask(), value = sole_value();
	struct rte_mempool *pool = packets[0]->pool;
	uint64_t odd = 0, bytes = 0;

	for (uint16_t i = 0; i < n; i++) {
		const struct rte_mbuf *packet = packets[i];
		uint64_t rearm;

		memcpy(&rearm, &packet->rearm_data, sizeof(rearm));
		odd |= (rearm & mask) ^ value;
		odd |= packet->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
		odd |= (uintptr_t)packet->pool ^ (uintptr_t)pool;
		bytes += packet->pkt_len;
	}
	if (likely(odd == 0))
		rte_mempool_put_bulk(pool, (void **)packets, n);
	else
		rte_pktmbuf_free_bulk(packets, n);
	return bytes;
}

/* Where there are egress rules. */
static uint16_t meet_rules(struct sim_tx_queue *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_port *port = queue->port;

	if (likely(sim_table_is_empty(port->table, SIM_EGRESS)))
		return n;
	return sim_apply_egress(port, packets, n, &queue->counters);
}

uint16_t sim_send(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_tx_queue *tx = queue;
	uint16_t left;

	if (unlikely(n == 0 || !__atomic_load_n(&tx->port->link_up, __ATOMIC_RELAXED)))
		return 0;
	left = meet_rules(tx, packets, n);
	if (likely(left > 0)) {
		sim_count_add(&tx->counters.bytes, count_and_free(packets, left));
		sim_count_add(&tx->counters.packets, left);
	}
	return n;
}
