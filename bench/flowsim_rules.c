/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many rules a second the simulated NIC takes through templates and flow queues, of a port of as many
 * streams: created in batches, with several hundred under way, from the first call to the last completion;
 * then destroyed the same way. A ConnectX-6 takes so many a second at most; the NIC without limits says
 * whether this machine could reach that, or is the limit itself.
 */
/* flow queues are not of DPDK's stable calls */
#define ALLOW_EXPERIMENTAL_API
#include "bench/flowsim_rules.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_pause.h>

#include "bench/source.h"
#include "traffic/stream_write.h"

#define BATCH 64
#define UNDER_WAY 512
#define POOL 8191
#define PATIENCE 1024 /* looks for completions, none of which finds one */
#define CEILING 4.5e6 /* of a ConnectX-6: docs/hardware.md */
/* A round of few rules is repeated: it would be over before the NIC's thread is awake. */
#define ROUND_RULES 65536

struct rules {
	struct bench_source source;
	struct rte_mempool *pool;
	uint16_t port;
	uint32_t flows;
	struct rte_flow **made;
	struct rte_flow_template_table *table;
	bool receives; /* a burst after each batch */
	uint64_t failed;
};

/* A rule's words: all of the tuple, and what becomes of its packets. */
struct words {
	struct rte_flow_item_ipv4 ip;
	struct rte_flow_item_udp udp;
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	struct rte_flow_item pattern[4];
	struct rte_flow_action actions[3];
};

static void words_init(struct words *words)
{
	*words = (struct words){
		.pattern = {{.type = RTE_FLOW_ITEM_TYPE_ETH}, {.type = RTE_FLOW_ITEM_TYPE_IPV4},
			{.type = RTE_FLOW_ITEM_TYPE_UDP}, {.type = RTE_FLOW_ITEM_TYPE_END}},
		.actions = {{.type = RTE_FLOW_ACTION_TYPE_MARK},
			{.type = RTE_FLOW_ACTION_TYPE_QUEUE}, {.type = RTE_FLOW_ACTION_TYPE_END}},
		.udp.hdr.dst_port = RTE_BE16(STREAM_SERVER_PORT),
	};
	words->pattern[1].spec = &words->ip;
	words->pattern[2].spec = &words->udp;
	words->actions[0].conf = &words->mark;
	words->actions[1].conf = &words->queue;
}

static void words_of(struct words *words, uint32_t flow)
{
	uint32_t name = stream_name(flow);

	words->ip.hdr.src_addr = rte_cpu_to_be_32(stream_client_ipv4(name));
	words->ip.hdr.dst_addr = rte_cpu_to_be_32(stream_server_ipv4(name));
	words->udp.hdr.src_port = rte_cpu_to_be_16((uint16_t)stream_client_port(name));
	words->mark.id = flow;
}

static int make_table(struct rules *rules, struct error *error)
{
	const struct rte_flow_pattern_template_attr pattern_attr = {.ingress = 1};
	const struct rte_flow_actions_template_attr actions_attr = {.ingress = 1};
	const struct rte_flow_template_table_attr table_attr = {
		.flow_attr = {.ingress = 1}, .nb_flows = rules->flows};
	struct rte_flow_actions_template *actions = NULL;
	struct rte_flow_pattern_template *pattern;
	struct rte_flow_error said = {0};
	struct words words;

	words_init(&words);
	words.pattern[1].mask = &rte_flow_item_ipv4_mask;
	words.pattern[2].mask = &rte_flow_item_udp_mask;
	words.pattern[1].spec = NULL;
	words.pattern[2].spec = NULL;
	pattern =
		rte_flow_pattern_template_create(rules->port, &pattern_attr, words.pattern, &said);
	/* masks that are 0: each rule has its own mark */
	if (pattern != NULL)
		actions = rte_flow_actions_template_create(
			rules->port, &actions_attr, words.actions, words.actions, &said);
	if (actions != NULL)
		rules->table = rte_flow_template_table_create(
			rules->port, &table_attr, &pattern, 1, &actions, 1, &said);
	return rules->table != NULL
		       ? 0
		       : error_set(error, -EIO, "no table of rules: %s",
				 said.message == NULL ? "no reason given" : said.message);
}

/* Flow queues are for stopped ports that are configured. */
static int make_queue(const struct rules *rules, struct error *error)
{
	const struct rte_flow_port_attr port_attr = {0};
	const struct rte_flow_queue_attr queue_attr = {.size = UNDER_WAY};
	const struct rte_flow_queue_attr *queues[] = {&queue_attr};
	struct rte_flow_error said = {0};
	int ret = rte_eth_dev_stop(rules->port);

	if (ret == 0)
		ret = rte_flow_configure(rules->port, &port_attr, 1, queues, &said);
	if (ret == 0)
		ret = rte_eth_dev_start(rules->port);
	return ret == 0 ? 0
			: error_set(error, ret, "no flow queue: %s",
				  said.message == NULL ? "no reason given" : said.message);
}

static int create(struct rules *rules, const char *profile, struct error *error)
{
	const struct bench_source_config source = {
		.flows = rules->flows, .load = SEQUENCE_UNIFORM, .alone = true, .words = profile};
	int ret = bench_source_open(&rules->source, &source, error);

	if (ret < 0)
		return ret;
	rules->port = rules->source.port[0]->id;
	rules->made = calloc(rules->flows, sizeof(struct rte_flow *));
	rules->pool = port_pool_create(
		"rules", POOL, 0, port_data_room(rules->source.port[0]), SOCKET_ID_ANY, true);
	if (rules->made == NULL || rules->pool == NULL)
		return error_set(error, -ENOMEM, "no memory for rules");
	ret = port_start(rules->source.port[0], rules->pool, error);
	if (ret == 0)
		ret = make_queue(rules, error);
	return ret == 0 ? make_table(rules, error) : ret;
}

static void destroy(struct rules *rules)
{
	bench_source_close(&rules->source);
	rte_mempool_free(rules->pool);
	free(rules->made);
	rules->pool = NULL;
	rules->made = NULL;
	rules->table = NULL;
}

/* Up to a batch of rules from that one on; returns how many. What fails is counted, and not tried again. */
static unsigned enqueue(struct rules *rules, struct words *words, uint32_t from, bool creates)
{
	const struct rte_flow_op_attr postponed = {.postpone = 1};
	unsigned n = RTE_MIN((unsigned)BATCH, rules->flows - from);
	struct rte_flow_error said;

	for (unsigned i = 0; i < n; i++) {
		struct rte_flow **rule = &rules->made[from + i];

		if (creates) {
			words_of(words, from + i);
			*rule = rte_flow_async_create(rules->port, 0, &postponed, rules->table,
				words->pattern, 0, words->actions, 0, NULL, &said);
			if (*rule == NULL)
				return i;
		} else if (rte_flow_async_destroy(rules->port, 0, &postponed, *rule, NULL, &said) <
			   0) {
			return i;
		}
	}
	return n;
}

static unsigned pull(struct rules *rules)
{
	struct rte_flow_op_result results[BATCH];
	struct rte_flow_error said;
	int n = rte_flow_pull(rules->port, 0, results, BATCH, &said);

	for (int i = 0; i < n; i++)
		rules->failed += results[i].status != RTE_FLOW_OP_SUCCESS;
	if (n < 0)
		rules->failed++;
	return n < 0 ? 0 : (unsigned)n;
}

static void receive(const struct rules *rules)
{
	struct rte_mbuf *burst[BENCH_BURST];
	uint16_t n = rte_eth_rx_burst(rules->port, 0, burst, BENCH_BURST);

	rte_pktmbuf_free_bulk(burst, n);
}

/* All rules come, or go; the cycles that it took. */
static uint64_t all(struct rules *rules, bool creates)
{
	uint64_t begin = rte_rdtsc_precise();
	unsigned under_way = 0, idle = 0;
	struct rte_flow_error said;
	struct words words;

	words_init(&words);
	for (uint32_t at = 0; rules->failed == 0 && (at < rules->flows || under_way > 0);) {
		if (at < rules->flows && under_way + BATCH <= UNDER_WAY) {
			unsigned n = enqueue(rules, &words, at, creates);

			rules->failed += n == 0;
			rte_flow_push(rules->port, 0, &said);
			at += n;
			under_way += n;
			if (rules->receives)
				receive(rules);
		}
		unsigned done = pull(rules);

		under_way -= done;
		idle = done == 0 ? idle + 1 : 0;
		/* with real-time priority (chrt) the NIC's thread may wait for this very processor */
		if (idle % PATIENCE == PATIENCE - 1)
			sched_yield();
		else if (done == 0)
			rte_pause();
	}
	return rte_rdtsc_precise() - begin;
}

static int measure(struct rules *rules, const struct bench_options *options, const char *created,
	const char *destroyed, double goal, struct error *error)
{
	struct bench_row rows[2] = {{.bench = "flowsim",
		.measure = created,
		.load = "order",
		.flows = rules->flows,
		.unit = "rules/s",
		.against = "goal",
		.goal = goal,
		.rate = true,
		.rounds = BENCH_ROUNDS}};
	unsigned repeat = (ROUND_RULES + rules->flows - 1) / rules->flows;

	rows[1] = rows[0];
	rows[1].measure = destroyed;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		uint64_t took[2] = {0, 0};

		for (unsigned j = 0; j < repeat; j++) {
			took[0] += all(rules, true);
			took[1] += all(rules, false);
		}
		if (rules->failed > 0)
			return error_set(error, -EIO, "rules were refused that there is room for");
		for (unsigned j = 0; j < 2; j++) {
			rows[j].ours[i] = (double)rules->flows * repeat * (double)rte_get_tsc_hz() /
					  (double)took[j];
			rows[j].theirs[i] = CEILING;
		}
	}
	for (unsigned j = 0; j < 2; j++) {
		if (rows[j].measure != NULL)
			bench_print(&rows[j], options->json);
	}
	return 0;
}

int bench_flowsim_rules(const struct bench_options *options, uint32_t flows, struct error *error)
{
	struct rules rules = {.flows = flows};
	int ret = create(&rules, "profile=cx6-hws", error);

	if (ret == 0)
		ret = measure(&rules, options, "async_rules", NULL, 0, error);
	rules.receives = true;
	if (ret == 0)
		ret = measure(&rules, options, "async_rules_polled", NULL, 0, error);
	rules.receives = false;
	destroy(&rules);
	if (ret == 0)
		ret = create(&rules, "profile=ideal,answer_ns=0", error);
	if (ret == 0)
		ret = measure(
			&rules, options, "async_rules_ideal", "async_destroys_ideal", 1, error);
	destroy(&rules);
	return ret;
}
