/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `millrace bench flowsim`: what marking costs whoever receives from the simulated NIC. Two ports bring
 * the same streams in the same random order; one has a rule for each stream, that marks it, the other has
 * none. Receiving and sending from the one less that from the other, in turns, is what marks cost: with
 * much more than that, ratios between marked and unmarked packets would be the NIC's doing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "base/dpdk.h"
#include "bench/bench.h"
#include "bench/flowsim_rules.h"
#include "bench/source.h"
#include "traffic/stream_write.h"

#define ROUND_PACKETS (1u << 20)
#define GOAL_NS 2.0
#define POOL 8191

struct marking {
	struct bench_options options;
	struct bench_source source; /* the first port has the rules */
	struct rte_mempool *pool;
	struct stream_set *set;
	uint32_t flows;
};

static void say(const char *line)
{
	fprintf(stderr, "millrace: bench flowsim: %s\n", line);
}

/* The rule of a flow's forward stream: all of its tuple; the flow's number is the mark. */
static int create_rule(struct marking *marking, uint32_t flow, struct error *error)
{
	const struct rte_flow_attr attributes = {.ingress = 1};
	uint32_t name = stream_name(flow);
	const struct rte_flow_item_ipv4 ip = {
		.hdr.src_addr = rte_cpu_to_be_32(stream_client_ipv4(name)),
		.hdr.dst_addr = rte_cpu_to_be_32(stream_server_ipv4(name))};
	const struct rte_flow_item_udp udp = {
		.hdr.src_port = rte_cpu_to_be_16((uint16_t)stream_client_port(name)),
		.hdr.dst_port = rte_cpu_to_be_16(STREAM_SERVER_PORT)};
	const struct rte_flow_action_mark mark = {.id = flow};
	const struct rte_flow_item pattern[] = {
		{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ip, .mask = &rte_flow_item_ipv4_mask},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &rte_flow_item_udp_mask},
		{.type = RTE_FLOW_ITEM_TYPE_END},
	};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error flow_error = {0};

	if (rte_flow_create(marking->source.port[0]->id, &attributes, pattern, actions,
		    &flow_error) != NULL)
		return 0;
	return error_set(error, -EIO, "rule %u is refused: %s", flow,
		flow_error.message == NULL ? "no reason given" : flow_error.message);
}

/* Passes packets of a port; the cycles a packet. */
static double pass(const struct marking *marking, unsigned side, uint64_t packets)
{
	uint16_t port = marking->source.port[side]->id;
	struct rte_mbuf *burst[BENCH_BURST];
	uint64_t begin = rte_rdtsc_precise(), done = 0;

	while (done < packets) {
		uint16_t n = rte_eth_rx_burst(port, 0, burst, BENCH_BURST);
		uint16_t sent = rte_eth_tx_burst(port, 0, burst, n);

		if (sent < n)
			rte_pktmbuf_free_bulk(&burst[sent], n - sent);
		done += n;
	}
	return (double)(rte_rdtsc_precise() - begin) / (double)done;
}

/* Is every packet marked as its stream, or none? */
static int check(const struct marking *marking, unsigned side, struct error *error)
{
	struct rte_mbuf *burst[BENCH_BURST];
	uint64_t wrong = 0;

	for (uint32_t done = 0; done < marking->flows;) {
		uint16_t n =
			rte_eth_rx_burst(marking->source.port[side]->id, 0, burst, BENCH_BURST);

		for (uint16_t i = 0; i < n; i++) {
			const uint8_t *ip = rte_pktmbuf_mtod_offset(burst[i], uint8_t *, 14);
			uint32_t stream = stream_find(marking->set, 4, ip + 12, ip + 16);
			bool marked = burst[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID;

			wrong += marked != (side == 0);
			wrong += marked && burst[i]->hash.fdir.hi != stream / 2;
		}
		rte_pktmbuf_free_bulk(burst, n);
		done += n;
	}
	return wrong == 0 ? 0
			  : error_set(error, -EIO, "%lu packets are not marked as they should be",
				    (unsigned long)wrong);
}

static int create(struct marking *marking, struct error *error)
{
	const struct bench_source_config source = {
		.flows = marking->flows, .load = SEQUENCE_UNIFORM, .same = true};
	const struct stream_config streams = {.flows = marking->flows};
	int ret = bench_source_open(&marking->source, &source, error);

	if (ret == 0)
		ret = stream_set_create(&marking->set, &streams, error);
	if (ret < 0)
		return ret;
	marking->pool = port_pool_create(
		"marking", POOL, 0, port_data_room(marking->source.port[0]), SOCKET_ID_ANY, true);
	if (marking->pool == NULL)
		return error_set(error, -ENOMEM, "no memory for packets");
	for (unsigned i = 0; ret == 0 && i < 2; i++)
		ret = port_start(marking->source.port[i], marking->pool, error);
	uint64_t begin = rte_rdtsc();

	for (uint32_t flow = 0; ret == 0 && flow < marking->flows; flow++)
		ret = create_rule(marking, flow, error);
	if (ret == 0)
		fprintf(stderr, "%u rules, %.2f us each\n", marking->flows,
			(double)(rte_rdtsc() - begin) * 1e6 / (double)rte_get_tsc_hz() /
				marking->flows);
	for (unsigned i = 0; ret == 0 && i < 2; i++)
		ret = check(marking, i, error);
	return ret;
}

static void destroy(struct marking *marking)
{
	bench_source_close(&marking->source);
	rte_mempool_free(marking->pool);
	stream_set_destroy(marking->set);
	marking->pool = NULL;
	marking->set = NULL;
}

static void measure(const struct marking *marking)
{
	const uint64_t packets = RTE_MAX(ROUND_PACKETS, 2 * marking->flows);
	struct bench_row marked = {.bench = "flowsim",
		.measure = "marked_floor",
		.load = "uniform",
		.flows = marking->flows,
		.unit = "cycles",
		.against = "no_rules",
		.rounds = BENCH_ROUNDS};
	struct bench_row cost = marked;
	double ns = 1e9 / (double)rte_get_tsc_hz();

	cost.measure = "marking";
	cost.unit = "ns";
	cost.against = "goal";
	cost.goal = 1;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		for (unsigned side = 0; side < 2; side++) {
			pass(marking, side, packets / 8);
			double cycles = pass(marking, side, packets);

			*(side == 0 ? &marked.ours[i] : &marked.theirs[i]) = cycles;
		}
		cost.ours[i] = (marked.ours[i] - marked.theirs[i]) * ns;
		cost.theirs[i] = GOAL_NS;
	}
	bench_print(&cost, marking->options.json);
	bench_print(&marked, marking->options.json);
}

int bench_flowsim(const struct bench_options *options)
{
	static const uint32_t sizes[] = {16384, 1000000};
	struct marking marking = {.options = *options};
	const uint32_t *flows = options->n_flows == 0 ? sizes : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(sizes) : options->n_flows;
	struct error error;
	int ret = dpdk_start(128, &error);

	if (ret < 0) {
		say(error.text);
		return ret;
	}
	bench_pin();
	bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && i < n; i++) {
		marking.flows = flows[i];
		ret = create(&marking, &error);
		if (ret < 0)
			say(error.text);
		else
			measure(&marking);
		destroy(&marking);
		if (ret == 0) {
			ret = bench_flowsim_rules(options, flows[i], &error);
			if (ret < 0)
				say(error.text);
		}
	}
	dpdk_stop();
	return ret;
}
