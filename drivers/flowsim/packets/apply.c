/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/flowsim/packets/apply.h"

#include "drivers/flowsim/match/actions.h"
#include "drivers/flowsim/packets/edit.h"
#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/packets/meter.h"
#include "drivers/flowsim/packets/pump.h"
#include "drivers/flowsim/packets/queue.h"
#include "drivers/flowsim/port/port.h"
#include "drivers/flowsim/port/rss.h"

/* What happens to one packet. */
struct applying {
	struct sim_port *port;
	const struct sim_view *view; /* as it came */
	struct rte_mbuf *packet;
	bool egress;
	uint64_t sampled, no_mbuf, forwarded, forwarded_bytes, missed, dropped, dropped_bytes;
};

static void add(uint64_t *counter, uint64_t n)
{
	if (n > 0)
		sim_count_add(counter, n);
}

static void drop(struct applying *applying, struct rte_mbuf *packet)
{
	applying->dropped++;
	applying->dropped_bytes += packet->pkt_len;
	rte_pktmbuf_free(packet);
}

/* The mark as the application shall see it; faults may strike. */
static void set_mark(
	struct sim_port *port, struct rte_mbuf *packet, bool mark, uint32_t id, bool flag)
{
	packet->ol_flags &= ~(RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID);
	if (!mark && !flag)
		return;
	if (sim_fault_on_packets(port) && !sim_fault_mark(port, mark ? &id : NULL))
		return;
	packet->ol_flags |= RTE_MBUF_F_RX_FDIR;
	if (mark) {
		packet->ol_flags |= RTE_MBUF_F_RX_FDIR_ID;
		packet->hash.fdir.hi = id;
	}
}

/* What was handed to another port, or was not taken there. */
static void count_forward(
	struct applying *applying, struct rte_mbuf *packet, uint32_t bytes, bool taken)
{
	if (taken) {
		applying->forwarded++;
		applying->forwarded_bytes += bytes;
	} else {
		applying->missed++;
		rte_pktmbuf_free(packet);
	}
}

static void send_on(struct applying *applying, struct rte_mbuf *packet, uint16_t to)
{
	uint32_t bytes = packet->pkt_len;

	if (!applying->egress && sim_pump_gather(applying->port, to, packet))
		return;
	count_forward(applying, packet, bytes, sim_nic_send(applying->port, to, &packet, 1) == 1);
}

static void give(struct applying *applying, struct rte_mbuf *packet, uint16_t to)
{
	uint32_t bytes = packet->pkt_len;

	count_forward(applying, packet, bytes, sim_nic_give(applying->port, to, packet));
}

/* Into a receive queue of its own port, which counts what it has no room for. */
static void put(struct applying *applying, struct rte_mbuf *packet, uint16_t queue)
{
	if (!sim_queue_put(applying->port, queue, packet))
		rte_pktmbuf_free(packet);
}

/* The copy's way without a fate: as if there were no rules. */
static void copy_goes_on(struct applying *applying, struct rte_mbuf *copy)
{
	if (applying->egress)
		send_on(applying, copy, applying->port->id);
	else
		put(applying, copy, sim_rss_queue(applying->port, copy->hash.rss));
}

static void finish_copy(
	struct applying *applying, const struct sim_actions *actions, struct rte_mbuf *copy)
{
	switch (actions->fate) {
	case SIM_FATE_NONE:
		copy_goes_on(applying, copy);
		break;
	case SIM_FATE_QUEUE:
		put(applying, copy, actions->queue);
		break;
	case SIM_FATE_RSS:
		put(applying, copy,
			sim_rss_rule_queue(&actions->rss, applying->view, copy->hash.rss));
		break;
	case SIM_FATE_DROP:
		drop(applying, copy);
		break;
	case SIM_FATE_SEND:
		send_on(applying, copy, actions->port);
		break;
	case SIM_FATE_GIVE:
		give(applying, copy, actions->port);
		break;
	}
}

static void sample(struct applying *applying, const struct sim_actions *actions)
{
	struct rte_mbuf *copy = sim_packet_copy(applying->packet);

	/* one packet more, whatever becomes of it */
	applying->sampled++;
	if (copy == NULL) {
		applying->no_mbuf++;
		return;
	}
	if (!sim_edit_packet(actions->edits, actions->n_edits, &copy)) {
		drop(applying, copy);
		return;
	}
	set_mark(applying->port, copy, actions->mark, actions->mark_id, actions->flag);
	finish_copy(applying, actions, copy);
}

/* Edits from `done` on, up to the next meter or sample. */
static unsigned edits_from(const struct sim_actions *actions, unsigned done, unsigned step)
{
	unsigned n = actions->n_edits - done;

	if (actions->meter && actions->meter_at > step)
		n = RTE_MIN(n, actions->meter_at - step);
	if (actions->sample && actions->sample_at > step)
		n = RTE_MIN(n, actions->sample_at - step);
	return n;
}

/* One rule's edits, meter and sample, in the order of its list. False: the packet is to be dropped. */
static bool take_steps(
	struct applying *applying, const struct sim_actions *actions, uint64_t matched)
{
	unsigned n_steps = actions->n_edits + actions->meter + actions->sample;
	unsigned edited = 0, n;

	for (unsigned step = 0; step < n_steps; step += n) {
		n = 1;
		if (actions->meter && actions->meter_at == step) {
			if (!sim_meter_packet(actions->meter_held, applying->packet->pkt_len))
				return false;
		} else if (actions->sample && actions->sample_at == step) {
			if (matched % actions->sample_ratio == 0)
				sample(applying, actions->sampled);
		} else {
			n = edits_from(actions, edited, step);
			if (!sim_edit_packet(&actions->edits[edited], n, &applying->packet))
				return false;
			edited += n;
		}
	}
	return true;
}

/* All rules count the packet as it came; then each does what it does. */
static bool walk_chain(struct applying *applying, const struct sim_verdict *verdict)
{
	uint64_t matched[SIM_MAX_CHAIN];
	uint32_t bytes = applying->packet->pkt_len;

	for (unsigned i = 0; i < verdict->n; i++) {
		struct sim_count *count = &verdict->chain[i]->count;

		/* several queues, and other ports of the NIC, may meet the same rule */
		matched[i] = 1 + __atomic_fetch_add(&count->hits, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&count->bytes, bytes, __ATOMIC_RELAXED);
	}
	if (!verdict->edits && !verdict->meter && !verdict->sample)
		return true;
	for (unsigned i = 0; i < verdict->n; i++)
		if (!take_steps(applying, verdict->chain[i]->actions, matched[i]))
			return false;
	return true;
}

/* Where a received packet goes that is neither dropped nor sent on. */
static uint16_t queue_of(const struct applying *applying, const struct sim_verdict *verdict)
{
	uint32_t hash = applying->packet->hash.rss;

	if (verdict->fate == SIM_FATE_QUEUE)
		return verdict->queue;
	if (verdict->fate == SIM_FATE_RSS)
		return sim_rss_rule_queue(verdict->rss, applying->view, hash);
	return sim_rss_queue(applying->port, hash);
}

/* The fate of a received packet; true: to its own port's queues. */
static bool meet_fate(struct applying *applying, const struct sim_verdict *verdict)
{
	struct sim_port *port = applying->port;
	struct rte_mbuf *packet = applying->packet;

	if (verdict->fate == SIM_FATE_DROP || (verdict->fate == SIM_FATE_NONE && port->isolated)) {
		drop(applying, packet);
		return false;
	}
	if (verdict->fate == SIM_FATE_SEND) {
		send_on(applying, packet, verdict->port);
		return false;
	}
	set_mark(port, packet, verdict->mark, verdict->mark_id, verdict->flag);
	if (verdict->fate == SIM_FATE_GIVE && verdict->port != port->id) {
		give(applying, packet, verdict->port);
		return false;
	}
	return true;
}

bool sim_apply(struct sim_port *port, const struct sim_verdict *verdict,
	const struct sim_view *view, struct rte_mbuf **packet, uint16_t *queue,
	struct sim_rx_counters *counters)
{
	struct applying applying = {.port = port, .view = view, .packet = *packet};
	bool kept = false;

	if (walk_chain(&applying, verdict))
		kept = meet_fate(&applying, verdict);
	else
		drop(&applying, applying.packet);
	if (kept) {
		*packet = applying.packet;
		*queue = queue_of(&applying, verdict);
	}
	add(&counters->matched, verdict->n > 0);
	add(&counters->rule_dropped, applying.dropped);
	add(&counters->rule_dropped_bytes, applying.dropped_bytes);
	add(&counters->forwarded, applying.forwarded);
	add(&counters->forwarded_bytes, applying.forwarded_bytes);
	add(&counters->sampled, applying.sampled);
	add(&counters->no_mbuf, applying.no_mbuf);
	if (applying.missed > 0)
		__atomic_fetch_add(&counters->missed, applying.missed, __ATOMIC_RELAXED);
	return kept;
}

/* The fate of a packet that is being sent; true: it still is. */
static bool meet_egress_fate(struct applying *applying, const struct sim_verdict *verdict)
{
	if (verdict->fate == SIM_FATE_DROP)
		drop(applying, applying->packet);
	else if (verdict->fate == SIM_FATE_SEND && verdict->port != applying->port->id)
		send_on(applying, applying->packet, verdict->port);
	else if (verdict->fate == SIM_FATE_GIVE)
		give(applying, applying->packet, verdict->port);
	else
		return true;
	return false;
}

static bool send_one(
	struct sim_port *port, struct rte_mbuf **packet, struct sim_tx_counters *counters)
{
	struct sim_verdict verdict = {0};
	struct sim_view view;
	struct applying applying = {.port = port, .view = &view, .packet = *packet, .egress = true};
	bool kept = false;

	sim_view_packet(&view, *packet);
	view.port = SIM_NO_PORT;
	sim_table_match(port->table, SIM_EGRESS, &view, &verdict);
	if (verdict.n == 0)
		return true;
	if (walk_chain(&applying, &verdict))
		kept = meet_egress_fate(&applying, &verdict);
	else
		drop(&applying, applying.packet);
	*packet = applying.packet;
	add(&counters->rule_dropped, applying.dropped);
	add(&counters->forwarded, applying.forwarded);
	add(&counters->sampled, applying.sampled);
	/* the NIC had taken it, and lost it */
	add(&counters->errors, applying.missed + applying.no_mbuf);
	return kept;
}

uint16_t sim_apply_egress(struct sim_port *port, struct rte_mbuf **packets, uint16_t n,
	struct sim_tx_counters *counters)
{
	uint16_t kept = 0;

	if (__atomic_load_n(&port->dead, __ATOMIC_RELAXED))
		return n;
	pthread_rwlock_rdlock(&port->rules_lock);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *packet = packets[i];

		if (send_one(port, &packet, counters))
			packets[kept++] = packet;
	}
	pthread_rwlock_unlock(&port->rules_lock);
	return kept;
}
