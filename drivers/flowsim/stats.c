/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/flowsim/ops.h"
#include "drivers/flowsim/packets/forward.h"
#include "drivers/flowsim/packets/streams.h"

/* All that is counted, at some moment. Queues that are no longer there stay in the sums. */
struct sim_stats_base {
	struct sim_rx_counters rx[SIM_MAX_QUEUES];
	struct sim_tx_counters tx[SIM_MAX_QUEUES];
	uint64_t told[sizeof(((struct sim_port *)NULL)->told) / sizeof(uint64_t)];
	uint64_t nic_sent[2];
};

_Static_assert(sizeof(struct sim_stats_base) % sizeof(uint64_t) == 0, "nothing but counters");

int sim_stats_init(struct sim_port *port)
{
	port->stats_base = calloc(1, sizeof(*port->stats_base));
	return port->stats_base != NULL ? 0 : -ENOMEM;
}

void sim_stats_fini(struct sim_port *port)
{
	free(port->stats_base);
	port->stats_base = NULL;
}

static void copy(void *to, const void *from, size_t size)
{
	uint64_t *counters = to;

	for (size_t i = 0; i < size / sizeof(*counters); i++)
		counters[i] = sim_count_get((const uint64_t *)from + i);
}

/* What is counted since the port was made. */
static void take(struct sim_port *port, struct sim_stats_base *now)
{
	sim_nic_settle(port);
	pthread_mutex_lock(&port->lock);
	sim_streams_settle(port->resolver);
	memcpy(now->told, &port->told, sizeof(now->told));
	pthread_mutex_unlock(&port->lock);
	for (unsigned i = 0; i < SIM_MAX_QUEUES; i++) {
		copy(&now->rx[i], &port->rx[i].counters, sizeof(now->rx[i]));
		copy(&now->tx[i], &port->tx[i].counters, sizeof(now->tx[i]));
	}
	copy(now->nic_sent, &port->nic_sent, sizeof(now->nic_sent));
}

/* The same since the last reset. */
static void take_since(struct sim_port *port, struct sim_stats_base *since)
{
	const uint64_t *base = (const uint64_t *)port->stats_base;
	uint64_t *counters = (uint64_t *)since;

	take(port, since);
	for (size_t i = 0; i < sizeof(*since) / sizeof(*counters); i++)
		counters[i] -= base[i];
}

int sim_stats_reset(struct rte_eth_dev *dev)
{
	struct sim_port *port = sim_port_of(dev);

	take(port, port->stats_base);
	return 0;
}

int sim_stats_of(
	struct rte_eth_dev *dev, struct rte_eth_stats *stats, struct sim_queue_stats *queues)
{
	struct sim_stats_base since;

	take_since(sim_port_of(dev), &since);
	for (unsigned i = 0; i < SIM_MAX_QUEUES; i++) {
		const struct sim_rx_counters *rx = &since.rx[i];
		const struct sim_tx_counters *tx = &since.tx[i];

		stats->ipackets += rx->packets;
		stats->ibytes += rx->bytes;
		stats->imissed += rx->missed;
		stats->rx_nombuf += rx->no_mbuf;
		stats->opackets += tx->packets;
		stats->obytes += tx->bytes;
		stats->oerrors += tx->errors;
		if (queues == NULL || i >= RTE_ETHDEV_QUEUE_STAT_CNTRS)
			continue;
		queues->q_ipackets[i] = rx->packets;
		queues->q_ibytes[i] = rx->bytes;
		queues->q_errors[i] = rx->missed + rx->no_mbuf;
		queues->q_opackets[i] = tx->packets;
		queues->q_obytes[i] = tx->bytes;
	}
	return 0;
}

/* Where a number of the extended statistics comes from. */
enum xstat_kind {
	XSTAT_RX,   /* the sum over receive queues */
	XSTAT_TX,   /* over transmit queues */
	XSTAT_SENT, /* what the NIC sent by itself */
	XSTAT_TOLD, /* of flow calls */
	XSTAT_PORT, /* everything that came to the port, and that went out of it */
	XSTAT_GAUGE,
};

struct xstat {
	const char *name;
	enum xstat_kind kind;
	size_t at; /* of the counter in its struct */
};

#define RX(field) XSTAT_RX, offsetof(struct sim_rx_counters, field)
#define TX(field) XSTAT_TX, offsetof(struct sim_tx_counters, field)
#define TOLD(field) \
	XSTAT_TOLD, offsetof(struct sim_port, told.field) - offsetof(struct sim_port, told)

enum { WHOLE_RX, WHOLE_TX, WHOLE_TX_BYTES };

static const struct xstat xstats[] = {
	{"rx_port_packets", XSTAT_PORT, WHOLE_RX},
	{"rx_matched", RX(matched)},
	{"rx_marked", RX(marked)},
	{"rx_flagged", RX(flagged)},
	{"rx_rule_dropped_packets", RX(rule_dropped)},
	{"rx_rule_dropped_bytes", RX(rule_dropped_bytes)},
	{"rx_forwarded_packets", RX(forwarded)},
	{"rx_forwarded_bytes", RX(forwarded_bytes)},
	{"rx_sampled_packets", RX(sampled)},
	{"tx_port_packets", XSTAT_PORT, WHOLE_TX},
	{"tx_port_bytes", XSTAT_PORT, WHOLE_TX_BYTES},
	{"tx_rule_dropped_packets", TX(rule_dropped)},
	{"tx_forwarded_packets", TX(forwarded)},
	{"tx_sampled_packets", TX(sampled)},
	{"tx_nic_packets", XSTAT_SENT, 0},
	{"tx_nic_bytes", XSTAT_SENT, sizeof(uint64_t)},
	{"flow_rules", XSTAT_GAUGE, 0},
	{"flow_created", TOLD(created)},
	{"flow_destroyed", TOLD(destroyed)},
	{"flow_refused", TOLD(refused)},
	{"flow_queried", TOLD(queried)},
	{"flow_aged", TOLD(aged)},
	{"flow_lost", TOLD(lost)},
	{"flow_forgotten", TOLD(forgotten)},
	{"flow_late", TOLD(late)},
};

/* Of each receive queue, behind those of the port. */
static const struct xstat queue_xstats[] = {
	{"matched", RX(matched)},
	{"marked", RX(marked)},
	{"flagged", RX(flagged)},
	{"missed", RX(missed)},
	{"no_mbuf", RX(no_mbuf)},
};

static unsigned n_xstats(const struct rte_eth_dev *dev)
{
	return (unsigned)(RTE_DIM(xstats) + dev->data->nb_rx_queues * RTE_DIM(queue_xstats));
}

static uint64_t at(const void *counters, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)counters + offset, sizeof(value));
	return value;
}

static uint64_t whole(const struct sim_stats_base *since, size_t what)
{
	uint64_t sum = 0;

	if (what == WHOLE_TX)
		sum = since->nic_sent[0];
	if (what == WHOLE_TX_BYTES)
		sum = since->nic_sent[1];
	for (unsigned i = 0; i < SIM_MAX_QUEUES; i++) {
		const struct sim_rx_counters *rx = &since->rx[i];

		if (what == WHOLE_RX)
			sum += rx->packets + rx->rule_dropped + rx->forwarded + rx->no_mbuf +
			       rx->missed - rx->sampled;
		else
			sum += what == WHOLE_TX ? since->tx[i].packets : since->tx[i].bytes;
	}
	return sum;
}

static uint64_t value_of(
	struct sim_port *port, const struct sim_stats_base *since, const struct xstat *stat)
{
	uint64_t sum = 0;

	switch (stat->kind) {
	case XSTAT_RX:
		for (unsigned i = 0; i < SIM_MAX_QUEUES; i++)
			sum += at(&since->rx[i], stat->at);
		return sum;
	case XSTAT_TX:
		for (unsigned i = 0; i < SIM_MAX_QUEUES; i++)
			sum += at(&since->tx[i], stat->at);
		return sum;
	case XSTAT_SENT:
		return at(since->nic_sent, stat->at);
	case XSTAT_TOLD:
		return at(since->told, stat->at);
	case XSTAT_PORT:
		return whole(since, stat->at);
	case XSTAT_GAUGE:
		pthread_mutex_lock(&port->lock);
		sum = port->n_rules;
		pthread_mutex_unlock(&port->lock);
		break;
	}
	return sum;
}

int sim_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *stats, unsigned n)
{
	struct sim_port *port = sim_port_of(dev);
	struct sim_stats_base since;
	unsigned id = 0;

	if (stats == NULL || n < n_xstats(dev))
		return (int)n_xstats(dev);
	take_since(port, &since);
	for (; id < RTE_DIM(xstats); id++)
		stats[id].value = value_of(port, &since, &xstats[id]);
	for (unsigned queue = 0; queue < dev->data->nb_rx_queues; queue++)
		for (unsigned i = 0; i < RTE_DIM(queue_xstats); i++)
			stats[id++].value = at(&since.rx[queue], queue_xstats[i].at);
	for (unsigned i = 0; i < id; i++)
		stats[i].id = i;
	return (int)id;
}

int sim_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned n)
{
	unsigned id = 0;

	if (names == NULL || n < n_xstats(dev))
		return (int)n_xstats(dev);
	for (; id < RTE_DIM(xstats); id++)
		snprintf(names[id].name, sizeof(names[id].name), "%s", xstats[id].name);
	for (unsigned queue = 0; queue < dev->data->nb_rx_queues; queue++)
		for (unsigned i = 0; i < RTE_DIM(queue_xstats); i++)
			snprintf(names[id++].name, sizeof(names[0].name), "rx_q%u_%s", queue,
				queue_xstats[i].name);
	return (int)id;
}
