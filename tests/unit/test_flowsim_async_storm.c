/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules come and go at full rate while another thread receives: for sanitizers, and for the rate that is
 * printed. No packet is lost, none has a mark that no rule gave it.
 */
#include "flowsim_async.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/monotonic.h"

#define FLOWS 4096
#define BATCH 64
#define DEPTH 512

struct storm {
	struct async async;
	struct tuple tuples[FLOWS];
	struct rte_flow *flows[FLOWS];
	bool stop;
	uint64_t received, marked;
};

/* The mark of a stream is its tuple's place in the list, which the source port of order tells. */
static void *receive(void *arg)
{
	struct storm *storm = arg;

	while (!__atomic_load_n(&storm->stop, __ATOMIC_RELAXED)) {
		struct rte_mbuf *packets[32];
		uint16_t n = rte_eth_rx_burst(storm->async.nic.id, 0, packets, 32);

		for (uint16_t i = 0; i < n; i++) {
			struct tuple tuple = tuple_of(packets[i]);

			if (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) {
				uint32_t mark = packets[i]->hash.fdir.hi;

				if (mark >= FLOWS || !same_tuple(&storm->tuples[mark], &tuple))
					abort();
				storm->marked++;
			}
		}
		rte_pktmbuf_free_bulk(packets, n);
		storm->received += n;
	}
	return NULL;
}

/* A batch more, when there is room for it; and whatever has been done. */
static unsigned batch(struct storm *storm, unsigned from, unsigned *under_way, bool create)
{
	struct async *async = &storm->async;
	struct rte_flow_op_result results[BATCH];
	unsigned n = 0;

	if (*under_way + BATCH <= DEPTH) {
		for (; n < BATCH && from + n < FLOWS; n++) {
			unsigned i = from + n;

			if (create) {
				storm->flows[i] =
					async_create(async, 0, &postponed, &storm->tuples[i], i, i);
				assert_non_null(storm->flows[i]);
			} else {
				assert_int_equal(
					async_destroy(async, 0, &postponed, storm->flows[i], i), 0);
			}
		}
		async_push(async, 0);
		*under_way += n;
	}
	unsigned done = async_pull(async, 0, results, BATCH);

	for (unsigned i = 0; i < done; i++)
		assert_int_equal(results[i].status, RTE_FLOW_OP_SUCCESS);
	*under_way -= done;
	return n;
}

static uint64_t all(struct storm *storm, bool create)
{
	uint64_t from = monotonic_us();
	unsigned at = 0, under_way = 0;

	while (at < FLOWS || under_way > 0)
		at += batch(storm, at, &under_way, create);
	return monotonic_us() - from;
}

static void rules_come_and_go_while_packets_come(void **state)
{
	struct storm *storm = calloc(1, sizeof(*storm));
	uint64_t creating = 0, destroying = 0;
	const unsigned rounds = 10;
	pthread_t thread;

	(void)state;
	assert_non_null(storm);
	async_begin(
		&storm->async, "flows=4096,load=order,profile=cx6-hws,hostile=0", 1, DEPTH, FLOWS);
	async_tuples(&storm->async, storm->tuples, FLOWS);
	assert_int_equal(pthread_create(&thread, NULL, receive, storm), 0);
	for (unsigned i = 0; i < rounds; i++) {
		creating += all(storm, true);
		destroying += all(storm, false);
	}
	__atomic_store_n(&storm->stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("%u rules: %.2f M/s created, %.2f M/s destroyed; %" PRIu64
		      " packets, %" PRIu64 " marked\n",
		FLOWS * rounds, FLOWS * rounds / (double)creating,
		FLOWS * rounds / (double)destroying, storm->received, storm->marked);
	assert_true(storm->received > 0);
	async_end(&storm->async);
	free(storm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_come_and_go_while_packets_come),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
