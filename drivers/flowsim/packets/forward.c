/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/forward.h"

#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/packets/streams.h"
#include "drivers/flowsim/port/nic.h"
#include "drivers/flowsim/port/port.h"

static uint64_t bytes_of(struct rte_mbuf *const *packets, uint16_t n)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < n; i++)
		bytes += packets[i]->pkt_len;
	return bytes;
}

static uint16_t send_out(struct sim_port *to, struct rte_mbuf **packets, uint16_t n)
{
	/* packets that were taken are no longer ours */
	uint64_t bytes = bytes_of(packets, n);
	uint16_t sent = n;

	if (to->pump == NULL)
		rte_pktmbuf_free_bulk(packets, n);
	else
		sent = sim_pump_out(to, packets, n);
	bytes -= bytes_of(&packets[sent], (uint16_t)(n - sent));
	sim_nic_count_sent(to, sent, bytes);
	return sent;
}

uint16_t sim_nic_send(struct sim_port *from, uint16_t to, struct rte_mbuf **packets, uint16_t n)
{
	struct sim_port *port = sim_nic_enter(from, to);
	uint16_t sent;

	if (port == NULL)
		return 0;
	sent = send_out(port, packets, n);
	sim_nic_exit(port);
	return sent;
}

static bool give(struct sim_port *to, struct rte_mbuf *packet)
{
	struct sim_view view;
	uint32_t hash;

	sim_view_packet(&view, packet);
	hash = sim_rss_of(to, &view);
	packet->hash.rss = hash;
	if (__atomic_load_n(&to->rss_hf, __ATOMIC_RELAXED) != 0)
		packet->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	packet->port = to->id;
	return sim_queue_put(to, sim_rss_queue(to, hash), packet);
}

bool sim_nic_give(struct sim_port *from, uint16_t to, struct rte_mbuf *packet)
{
	struct sim_port *port = sim_nic_enter(from, to);
	bool given;

	if (port == NULL)
		return false;
	given = give(port, packet);
	sim_nic_exit(port);
	return given;
}

void sim_nic_settle(struct sim_port *port)
{
	for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; id++) {
		struct sim_port *other = id == port->id ? NULL : sim_nic_port(port, id);

		if (other == NULL)
			continue;
		pthread_mutex_lock(&other->lock);
		sim_streams_settle(other->resolver);
		pthread_mutex_unlock(&other->lock);
	}
}
