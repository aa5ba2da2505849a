/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules come and go as fast as one thread can make them while a worker receives as fast as it can: no mark
 * on a stranger's packet, and the shared counter of all of them, most of which are gone, has as many
 * packets as the worker saw marked. And every stream has had its packets in the end, dropped or received.
 */
#include "flowsim_port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/monotonic.h"

#define N_STREAMS 64
/* Sanitized programs are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PASSES 60000
#else
#define PASSES 300000
#endif
/* Without a packet for so long something stands still. */
#define MOST_US 30000000
#define N_RULES 20000
#define AT_ONCE 24

struct storm {
	struct nic nic;
	struct tuple tuples[N_STREAMS];
	struct rte_flow_action_handle *count;
	atomic_bool over;
	/* the worker's */
	uint64_t packets, marked;
};

/* The stream of a packet; N_STREAMS: none of ours. */
static unsigned stream_of(const struct storm *storm, const struct tuple *tuple)
{
	unsigned i = 0;

	while (i < N_STREAMS && !same_tuple(&storm->tuples[i], tuple))
		i++;
	return i;
}

static void *work(void *arg)
{
	struct storm *storm = arg;
	bool last = false;

	/* once more when it is over: what was received counts, wherever it waits */
	while (!last) {
		struct rte_mbuf *packets[32];

		last = atomic_load(&storm->over);
		uint16_t n = rte_eth_rx_burst(storm->nic.id, 0, packets, 32);

		for (uint16_t i = 0; i < n; i++) {
			struct tuple tuple = tuple_of(packets[i]);

			if (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) {
				storm->marked++;
				if (packets[i]->hash.fdir.hi != stream_of(storm, &tuple))
					abort();
			}
			rte_pktmbuf_free(packets[i]);
		}
		storm->packets += n;
	}
	return NULL;
}

static struct rte_flow *create(
	const struct storm *storm, unsigned stream, const struct rte_flow_action *actions)
{
	static const struct rte_flow_attr ingress = {.ingress = 1};
	struct rte_flow_error error;
	struct tuple_items items;
	struct rte_flow *flow = rte_flow_create(storm->nic.id, &ingress,
		tuple_items(&items, &storm->tuples[stream]), actions, &error);

	assert_non_null(flow);
	return flow;
}

static struct rte_flow *make(const struct storm *storm, unsigned stream)
{
	static const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action_mark mark = {.id = stream};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark},
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_INDIRECT, .conf = storm->count},
		{.type = RTE_FLOW_ACTION_TYPE_END}};

	return create(storm, stream, actions);
}

static void learn_streams(struct storm *storm)
{
	unsigned tries = 0;

	for (unsigned n = 0; n < N_STREAMS;) {
		struct tuple tuple = nic_tuple(&storm->nic);

		assert_true(tries++ < 100 * N_STREAMS);
		if (stream_of(storm, &tuple) == N_STREAMS)
			storm->tuples[n++] = tuple;
	}
}

static void marks_and_counts_agree(void **state)
{
	static const struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT};
	static const struct rte_flow_indir_action_conf conf = {.ingress = 1};
	struct storm *storm = calloc(1, sizeof(*storm));
	struct rte_flow *flows[AT_ONCE] = {NULL};
	struct rte_flow_query_count count = {0};
	struct rte_flow_error error;
	pthread_t worker;

	(void)state;
	assert_non_null(storm);
	nic_open(&storm->nic, "net_flowsim_storm", "flows=64,side=forward,hostile=0");
	learn_streams(storm);
	storm->count = rte_flow_action_handle_create(storm->nic.id, &conf, &action, &error);
	assert_non_null(storm->count);
	assert_int_equal(pthread_create(&worker, NULL, work, storm), 0);
	for (unsigned i = 0; i < N_RULES + AT_ONCE; i++) {
		struct rte_flow **flow = &flows[i % AT_ONCE];

		if (*flow != NULL)
			assert_int_equal(rte_flow_destroy(storm->nic.id, *flow, &error), 0);
		*flow = i < N_RULES ? make(storm, i * 7 % N_STREAMS) : NULL;
	}
	atomic_store(&storm->over, true);
	assert_int_equal(pthread_join(worker, NULL), 0);
	assert_int_equal(
		rte_flow_action_handle_query(storm->nic.id, storm->count, &count, &error), 0);
	print_message("%lu packets, %lu marked\n", (unsigned long)storm->packets,
		(unsigned long)storm->marked);
	assert_true(storm->marked > 0 && storm->marked < storm->packets);
	assert_int_equal(count.hits, storm->marked);
	nic_close(&storm->nic);
	free(storm);
}

static uint64_t came_or_dropped(const struct storm *storm)
{
	static const char *const names[] = {"rx_good_packets", "rx_rule_dropped_packets"};
	uint64_t sum = 0;

	for (unsigned i = 0; i < RTE_DIM(names); i++) {
		uint64_t id, value;

		assert_int_equal(rte_eth_xstats_get_id_by_name(storm->nic.id, names[i], &id), 0);
		assert_int_equal(rte_eth_xstats_get_by_id(storm->nic.id, &id, &value, 1), 1);
		sum += value;
	}
	return sum;
}

/* Streams leave the round and come back in the middle of it: each has one packet of each, and no fewer. */
static void no_packet_is_left_out(void **state)
{
	static const struct rte_flow_action drop[] = {
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct storm *storm = calloc(1, sizeof(*storm));
	uint64_t came = 0, since_us = monotonic_us();
	struct rte_flow_error error;
	pthread_t worker;

	(void)state;
	assert_non_null(storm);
	nic_open(&storm->nic, "net_flowsim_all",
		"flows=64,side=forward,hostile=0,passes=" RTE_STR(PASSES));
	learn_streams(storm);
	assert_int_equal(pthread_create(&worker, NULL, work, storm), 0);
	for (unsigned i = 0; came < PASSES * N_STREAMS; i++) {
		struct rte_flow *flow = create(storm, i * 7 % N_STREAMS, drop);

		assert_int_equal(rte_flow_destroy(storm->nic.id, flow, &error), 0);
		if (i % 256 != 0)
			continue;
		uint64_t now_us = monotonic_us(), before = came;

		came = came_or_dropped(storm);
		if (came > before)
			since_us = now_us;
		else if (now_us - since_us > MOST_US)
			break;
	}
	atomic_store(&storm->over, true);
	assert_int_equal(pthread_join(worker, NULL), 0);
	assert_int_equal(came_or_dropped(storm), PASSES * N_STREAMS);
	nic_close(&storm->nic);
	free(storm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_and_counts_agree),
		cmocka_unit_test(no_packet_is_left_out),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
