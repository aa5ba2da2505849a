/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/tx.h"

#include <string.h>

#include <netinet/in.h>
#include <rte_ethdev.h>

#include "dataplane/handoff.h"
#include "port/packet.h"

/* Calls in vain before what a port does not take is dropped. */
#define SEND_TRIES 4

static unsigned domain_of(const struct station *station, unsigned port)
{
	return station->topology->domain[port];
}

static void count_sent(struct station *station, unsigned port, unsigned n, uint64_t bytes)
{
	struct path_counters *wire = &station->worker.counters[domain_of(station, port)];
	struct plane_port_counters *counters = &station->ports[port];

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
static inline unsigned offer_packets(struct station *station, unsigned port,
	struct rte_mbuf **packets, unsigned n, uint64_t *bytes)
{
	const struct station_tx *tx = &station->tx[port];
	const unsigned done = rte_eth_tx_burst(tx->port_id, tx->queue, packets, (uint16_t)n);
	const uint64_t left = likely(done == n) ? 0 : bytes_of(&packets[done], n - done);

	count_sent(station, port, done, *bytes - left);
	*bytes = left;
	return done;
}

static void drop_all(struct station *station, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		worker_drop_of(&station->worker, domain_of(station, port), packets[i], DROP_OUTPUT);
}

/* What the port did not take at once. */
static __rte_noinline void send_rest(struct station *station, unsigned port,
	struct rte_mbuf **packets, unsigned n, uint64_t bytes, unsigned tries)
{
	while (n != 0 && tries-- > 0) {
		const unsigned done = offer_packets(station, port, packets, n, &bytes);

		packets += done;
		n -= done;
	}
	drop_all(station, port, packets, n);
}

/* Frames of a queue that are followed: each counts as out, or as dropped, when it is known which. */
static void settle_packets(struct station *station, unsigned port)
{
	struct path_counters *wire = &station->worker.counters[domain_of(station, port)];
	const struct packet_sent sent = packet_tx_settle(station->tx[port].packet, station->now_us);

	count_sent(station, port, sent.taken, sent.taken_bytes);
	wire->dropped[DROP_OUTPUT] += sent.discarded;
	wire->held -= sent.taken + sent.discarded;
	if (sent.refused)
		station_event_once(station, PATH_EVENT_FRAMES_REFUSED, port);
}

/* Sends by a queue whose frames are followed. The driver has the kernel send what is in its ring at each call. */
static void send_followed(
	struct station *station, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	const struct station_tx *tx = &station->tx[port];

	for (unsigned tries = 0; n != 0 && tries < SEND_TRIES; tries++) {
		const unsigned done =
			rte_eth_tx_burst(tx->port_id, tx->queue, packets, (uint16_t)n);

		station->worker.counters[domain_of(station, port)].held += done;
		packet_tx_offered(tx->packet, done, station->now_us);
		settle_packets(station, port);
		packets += done;
		n -= done;
	}
	drop_all(station, port, packets, n);
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
	struct station *station, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	const struct port *live = station->tx[port].live;
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
		worker_drop_of(&station->worker, domain_of(station, port), packet, DROP_TOO_LONG);
		station_event_once(station, PATH_EVENT_FRAMES_TOO_LONG, port);
	}
	return left;
}

/* By a port that is paused, or whose frames are looked at. */
static __rte_noinline void send_carefully(
	struct station *station, unsigned port, struct rte_mbuf **packets, unsigned n)
{
	if (station->paused >> port & 1) {
		drop_all(station, port, packets, n);
		return;
	}
	n = drop_too_long(station, port, packets, n);
	if (station->tx[port].packet != NULL)
		send_followed(station, port, packets, n);
	else
		send_rest(station, port, packets, n, bytes_of(packets, n), SEND_TRIES);
}

/* `bytes` are those of all packets. */
static inline void send_port(struct station *station, unsigned port, struct rte_mbuf **packets,
	unsigned n, uint64_t bytes)
{
	if (unlikely(n == 0))
		return;
	if (unlikely(station->careful >> port & 1)) {
		send_carefully(station, port, packets, n);
		return;
	}
	const unsigned done = offer_packets(station, port, packets, n, &bytes);

	if (unlikely(done != n))
		send_rest(station, port, packets + done, n - done, bytes, SEND_TRIES - 1);
}

static __rte_noinline void flush_some(struct station *station, unsigned port)
{
	struct station_tx *tx = &station->tx[port];

	if (tx->own)
		send_port(station, port, tx->packets, tx->n, bytes_of(tx->packets, tx->n));
	else
		handoff_to_station(station, tx->via, tx->packets, tx->n);
	tx->n = 0;
}

static inline void flush_port(struct station *station, unsigned port)
{
	if (station->tx[port].n != 0)
		flush_some(station, port);
}

void send_packets(struct station *station, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct packet_meta *meta = packet_meta(packets[i]);
		const uint32_t port = meta->out;
		struct station_tx *tx = &station->tx[port];

		meta->kind = PACKET_KIND_SEND;
		tx->packets[tx->n++] = packets[i];
		if (tx->n == STATION_BURST)
			flush_port(station, port);
	}
}

/* Without ports, as in replay, what goes out is counted. */
static void discard(struct station *station, struct burst *burst, unsigned n)
{
	struct path_counters *counters = &station->worker.counters[burst->from.domain];

	counters->out += n;
	counters->out_bytes += bytes_of(burst->packet, n);
	rte_pktmbuf_free_bulk(burst->packet, n);
}

static __rte_noinline void tx_resumed(struct station *station, struct burst *burst, unsigned n)
{
	if (station->n_ports == 0) {
		discard(station, burst, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		packet_meta(burst->packet[i])->out = burst->from.peer;
	send_packets(station, burst->packet, n);
}

void tx_burst(struct station *station, struct burst *burst, unsigned n)
{
	const unsigned port = burst->from.peer;

	if (unlikely(burst->resumed)) {
		tx_resumed(station, burst, n);
		return;
	}
	/* what was gathered before goes before */
	flush_port(station, port);
	send_port(station, port, burst->packet, n, burst->bytes);
}

void send_to_port(struct station *station, struct rte_mbuf *packet, unsigned domain, unsigned port)
{
	struct packet_meta *meta = packet_meta(packet);

	meta->wire = (uint8_t)domain;
	meta->out = port;
	send_packets(station, &packet, 1);
}

static __rte_noinline void settle_all(struct station *station)
{
	for (unsigned port = 0; port < station->n_ports; port++)
		if (station->tx[port].packet != NULL &&
			packet_tx_waiting(station->tx[port].packet) != 0)
			settle_packets(station, port);
}

void send_settle(struct station *station)
{
	if (station->parser != NULL)
		parser_flush(station->parser);
	for (unsigned port = 0; port < station->n_ports; port++)
		flush_port(station, port);
	if (unlikely(station->careful != 0))
		settle_all(station);
}
