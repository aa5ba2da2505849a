/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/tx.h"

#include <string.h>

#include <netinet/in.h>
#include <rte_ethdev.h>

#include "dataplane/handoff.h"
#include "port/packet.h"

/* Calls in vain before what a port does not take is dropped. */
#define SEND_TRIES 4

static unsigned domain_of(const struct lcore *lcore, unsigned port)
{
	return lcore->topology->domain[port];
}

static void count_sent(struct lcore *lcore, unsigned port, unsigned n, uint64_t bytes)
{
	struct path_counters *wire = &lcore->worker.counters[domain_of(lcore, port)];
	struct plane_port_counters *counters = &lcore->ports[port];

	wire->out += n;
	wire->out_bytes += bytes;
	counters->tx_packets += n;
	counters->tx_bytes += bytes;
}

static uint64_t bytes_of(struct rte_mbuf *const *packets, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += packets[i]->pkt_len;
	return bytes;
}

/*
 * Offers packets to their port: says how many it took. `bytes`: those of all before, those of what is left after; what
 * has gone can no longer be asked.
 */
static inline unsigned offer_packets(
	struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n, uint64_t *bytes)
{
	const struct lcore_tx *tx = &lcore->tx[port];
	const unsigned done = rte_eth_tx_burst(tx->port_id, tx->queue, packets, (uint16_t)n);
	const uint64_t left = likely(done == n) ? 0 : bytes_of(&packets[done], n - done);

	count_sent(lcore, port, done, *bytes - left);
	*bytes = left;
	return done;
}

static void drop_all(struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lcore_drop_of(lcore, domain_of(lcore, port), packets[i], DROP_OUTPUT);
}

/* What the port did not take at once. */
static __rte_noinline void send_rest(struct lcore *lcore, unsigned port, struct rte_mbuf **packets,
	unsigned n, uint64_t bytes, unsigned tries)
{
	while (n != 0 && tries-- > 0) {
		const unsigned done = offer_packets(lcore, port, packets, n, &bytes);

		packets += done;
		n -= done;
	}
	drop_all(lcore, port, packets, n);
}

/* Frames of a queue that are followed: each counts as out, or as dropped, when it is known which. */
static void settle_packets(struct lcore *lcore, unsigned port)
{
	struct path_counters *wire = &lcore->worker.counters[domain_of(lcore, port)];
	const struct packet_sent sent = packet_tx_settle(lcore->tx[port].packet, lcore->now_us);

	count_sent(lcore, port, sent.taken, sent.taken_bytes);
	wire->dropped[DROP_OUTPUT] += sent.discarded;
	drop_watch_unseen(&lcore->drops, DROP_OUTPUT, sent.discarded);
	wire->held -= sent.taken + sent.discarded;
	if (sent.refused)
		lcore_event_once(lcore, PATH_EVENT_FRAMES_REFUSED, port);
}

/* Sends by a queue whose frames are followed. The driver has the kernel send what is in its ring at each call. */
static void send_followed(struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	const struct lcore_tx *tx = &lcore->tx[port];

	for (unsigned tries = 0; n != 0 && tries < SEND_TRIES; tries++) {
		const unsigned done =
			rte_eth_tx_burst(tx->port_id, tx->queue, packets, (uint16_t)n);

		lcore->worker.counters[domain_of(lcore, port)].held += done;
		packet_tx_offered(tx->packet, done, lcore->now_us);
		settle_packets(lcore, port);
		packets += done;
		n -= done;
	}
	drop_all(lcore, port, packets, n);
}

static bool is_tagged(const struct rte_mbuf *packet)
{
	uint16_t type;
	const void *where = rte_pktmbuf_read(
		packet, offsetof(struct rte_ether_hdr, ether_type), sizeof(type), &type);

	if (where == NULL)
		return false;
	memcpy(&type, where, sizeof(type));
	return type == htons(RTE_ETHER_TYPE_VLAN);
}

/* Drops what the port cannot carry; says how many packets are left. */
static unsigned drop_too_long(
	struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	const struct port *live = lcore->tx[port].live;
	const uint32_t longest = atomic_load_explicit(&live->longest, memory_order_relaxed);
	const uint32_t tagged = atomic_load_explicit(&live->longest_tagged, memory_order_relaxed);
	unsigned left = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		if (likely(packet->pkt_len <= longest) ||
			(packet->pkt_len <= tagged && is_tagged(packet))) {
			packets[left++] = packet;
			continue;
		}
		lcore_drop_of(lcore, domain_of(lcore, port), packet, DROP_TOO_LONG);
		lcore_event_once(lcore, PATH_EVENT_FRAMES_TOO_LONG, port);
	}
	return left;
}

/* By a port that is paused, or whose frames are looked at. */
static __rte_noinline void send_carefully(
	struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	if (lcore->paused >> port & 1) {
		drop_all(lcore, port, packets, n);
		return;
	}
	n = drop_too_long(lcore, port, packets, n);
	if (lcore->tx[port].packet != NULL)
		send_followed(lcore, port, packets, n);
	else
		send_rest(lcore, port, packets, n, bytes_of(packets, n), SEND_TRIES);
}

/* `bytes` are those of all packets. */
static inline void send_port(
	struct lcore *lcore, unsigned port, struct rte_mbuf **packets, unsigned n, uint64_t bytes)
{
	if (unlikely(n == 0))
		return;
	if (unlikely(lcore->careful >> port & 1)) {
		send_carefully(lcore, port, packets, n);
		return;
	}
	const unsigned done = offer_packets(lcore, port, packets, n, &bytes);

	if (unlikely(done != n))
		send_rest(lcore, port, packets + done, n - done, bytes, SEND_TRIES - 1);
}

static __rte_noinline void flush_some(struct lcore *lcore, unsigned port)
{
	struct lcore_tx *tx = &lcore->tx[port];

	if (tx->own)
		send_port(lcore, port, tx->packets, tx->n, bytes_of(tx->packets, tx->n));
	else
		handoff_to_lcore(lcore, tx->via, tx->packets, tx->n);
	tx->n = 0;
}

static inline void flush_port(struct lcore *lcore, unsigned port)
{
	if (lcore->tx[port].n != 0)
		flush_some(lcore, port);
}

void send_packets(struct lcore *lcore, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct packet_meta *meta = packet_meta(packets[i]);
		const uint32_t port = meta->out;
		struct lcore_tx *tx = &lcore->tx[port];

		meta->kind = PACKET_KIND_SEND;
		tx->packets[tx->n++] = packets[i];
		if (tx->n == LCORE_BURST)
			flush_port(lcore, port);
	}
}

/* Without ports, as in replay, what goes out is counted. */
static void discard(struct lcore *lcore, struct burst *burst, unsigned n)
{
	struct path_counters *counters = &lcore->worker.counters[burst->from.domain];

	counters->out += n;
	counters->out_bytes += bytes_of(burst->packet, n);
	rte_pktmbuf_free_bulk(burst->packet, n);
}

static __rte_noinline void tx_resumed(struct lcore *lcore, struct burst *burst, unsigned n)
{
	if (lcore->n_ports == 0) {
		discard(lcore, burst, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		packet_meta(burst->packet[i])->out = burst->from.peer;
	send_packets(lcore, burst->packet, n);
}

void tx_burst(struct lcore *lcore, struct burst *burst, unsigned n)
{
	const unsigned port = burst->from.peer;

	if (unlikely(burst->resumed)) {
		tx_resumed(lcore, burst, n);
		return;
	}
	/* what was gathered before goes before */
	flush_port(lcore, port);
	send_port(lcore, port, burst->packet, n, burst->bytes);
}

void send_to_port(struct lcore *lcore, struct rte_mbuf *packet, unsigned domain, unsigned port)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->wire = (uint8_t)domain;
	meta->out = port;
	send_packets(lcore, &packet, 1);
}

static __rte_noinline void settle_all(struct lcore *lcore)
{
	for (unsigned port = 0; port < lcore->n_ports; port++)
		if (lcore->tx[port].packet != NULL &&
			packet_tx_waiting(lcore->tx[port].packet) != 0)
			settle_packets(lcore, port);
}

void send_settle(struct lcore *lcore)
{
	if (lcore->parser != NULL)
		parser_flush(lcore->parser);
	for (unsigned port = 0; port < lcore->n_ports; port++)
		flush_port(lcore, port);
	if (unlikely(lcore->careful != 0))
		settle_all(lcore);
}
