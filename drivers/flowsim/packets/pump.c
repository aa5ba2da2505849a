/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/pump.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "drivers/flowsim/packets/apply.h"
#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/packets/link.h"
#include "drivers/flowsim/packets/pump_parts.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/port/rss.h"

#define BURST SIM_PUMP_BURST

/* What the wrapped port has said of a packet and we say anew. */
#define OURS (RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID)

static bool has_rules(const struct sim_port *port)
{
	return !__atomic_load_n(&port->dead, __ATOMIC_RELAXED) &&
	       (!sim_table_is_empty(port->table, SIM_INGRESS) ||
		       !sim_table_is_empty(port->table, SIM_TRANSFER));
}

/* One packet: its hash, its rules, and into its queue. */
static void take(struct sim_port *port, struct rte_mbuf *packet, bool rules,
	struct sim_rx_counters *counters)
{
	struct sim_verdict verdict = {0};
	struct sim_view view;
	uint16_t queue;

	sim_view_packet(&view, packet);
	view.port = port->id;
	packet->port = port->id;
	packet->ol_flags &= ~OURS;
	packet->hash.rss = sim_rss_of(port, &view);
	if (__atomic_load_n(&port->rss_hf, __ATOMIC_RELAXED) != 0)
		packet->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	if (rules)
		sim_table_match(port->table, SIM_INGRESS, &view, &verdict);
	if (!sim_apply(port, &verdict, &view, &packet, &queue, counters))
		return;
	if (!sim_queue_put(port, queue, packet))
		rte_pktmbuf_free(packet);
}

static uint64_t bytes_of(struct rte_mbuf *const *packets, uint16_t n)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++)
		bytes += packets[i]->pkt_len;
	return bytes;
}

bool sim_pump_gather(struct sim_port *port, uint16_t to, struct rte_mbuf *packet)
{
	struct sim_pump *pump = port->pump;

	if (pump == NULL || !pump->gathers || pump->n_gathered == BURST ||
		(pump->n_gathered > 0 && pump->gathered_to != to))
		return false;
	pump->gathered_to = to;
	pump->gathered[pump->n_gathered++] = packet;
	return true;
}

static void send_gathered(struct sim_port *port, struct sim_rx_counters *counters)
{
	struct sim_pump *pump = port->pump;
	struct rte_mbuf **packets = pump->gathered;
	uint16_t n = pump->n_gathered, sent;
	uint64_t bytes = bytes_of(packets, n);

	if (n == 0)
		return;
	pump->n_gathered = 0;
	sent = sim_nic_send(port, pump->gathered_to, packets, n);
	bytes -= bytes_of(&packets[sent], (uint16_t)(n - sent));
	sim_count_add(&counters->forwarded, sent);
	sim_count_add(&counters->forwarded_bytes, bytes);
	if (sent == n)
		return;
	__atomic_fetch_add(&counters->missed, (uint64_t)(n - sent), __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(&packets[sent], (unsigned)(n - sent));
}

static void take_burst(struct sim_port *port, struct rte_mbuf **packets, uint16_t n,
	struct sim_rx_counters *counters)
{
	bool rules;

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
	pthread_rwlock_rdlock(&port->rules_lock);
	rules = has_rules(port);
	port->pump->gathers = true;
	for (uint16_t i = 0; i < n; i++)
		take(port, packets[i], rules, counters);
	port->pump->gathers = false;
	send_gathered(port, counters);
	pthread_rwlock_unlock(&port->rules_lock);
}

/* Under the pump's lock. Returns how many packets came. */
static unsigned turn(struct sim_pump *pump)
{
	struct sim_port *port = pump->port;
	struct rte_mbuf *packets[BURST];
	unsigned sum = 0;

	for (uint16_t i = 0; i < pump->n_rx; i++) {
		uint16_t n = rte_eth_rx_burst(pump->wrapped, i, packets, BURST);

		if (n == 0)
			continue;
		sum += n;
		if (__atomic_load_n(&port->link_down, __ATOMIC_RELAXED)) {
			rte_pktmbuf_free_bulk(packets, n);
			continue;
		}
		/* nobody tells us when the wire's link changes: packets do */
		if (!__atomic_load_n(&port->link_up, __ATOMIC_RELAXED))
			sim_link_look(port->dev);
		take_burst(port, packets, n, &port->rx[i].counters);
	}
	return sum;
}

unsigned sim_pump_turn_once(struct sim_pump *pump)
{
	unsigned n = 0;

	if (rte_spinlock_trylock(&pump->lock) == 0)
		return 0;
	if (sim_pump_is_open(pump))
		n = turn(pump);
	rte_spinlock_unlock(&pump->lock);
	return n;
}

void sim_pump_turn(struct sim_port *port)
{
	sim_pump_turn_once(port->pump);
}

uint16_t sim_pump_receive(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_rx_queue *rx = queue;
	struct sim_port *port = rx->port;

	/* no more than is asked for: what one worker turns in for others must not pile up there */
	if (!port->args.nic_thread && rte_ring_count(rx->ring) < n)
		sim_pump_turn(port);
	if (__atomic_load_n(&port->link_down, __ATOMIC_RELAXED))
		return 0;
	return sim_queue_take(rx, packets, n);
}

uint16_t sim_pump_send(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_tx_queue *tx = queue;
	struct sim_port *port = tx->port;
	bool rules = !sim_table_is_empty(port->table, SIM_EGRESS);
	uint16_t left = n, sent;
	uint64_t bytes;

	if (n == 0 || __atomic_load_n(&port->link_down, __ATOMIC_RELAXED))
		return 0;
	if (rules)
		left = sim_apply_egress(port, packets, n, &tx->counters);
	/* packets that were taken are no longer ours */
	bytes = bytes_of(packets, left);
	sent = sim_pump_send_by(port->pump, tx->number, packets, left);
	bytes -= bytes_of(&packets[sent], (uint16_t)(left - sent));
	sim_count_add(&tx->counters.packets, sent);
	sim_count_add(&tx->counters.bytes, bytes);
	if (!rules)
		return sent;
	sim_count_add(&tx->counters.errors, (uint16_t)(left - sent));
	rte_pktmbuf_free_bulk(&packets[sent], (uint16_t)(left - sent));
	return n;
}
