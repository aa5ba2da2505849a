/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline up to account where no NIC marks packets: compiled once per SIMD level. */
#include "dataplane/account.h"
#include "dataplane/lookup.h"
#include "dataplane/parse_fast.h"
#include "dataplane/pipeline.h"

/* Asks for headers that are about to be read. */
static inline void fetch_headers(struct rte_mbuf *const *packets, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packets[i], const void *));
}

/*
 * Parses up to the first packet that is for the parser, and sets how many were. Returns a bit for each that is
 * TCP.
 */
static inline uint64_t parse_burst(const struct lcore *lcore, unsigned n, struct burst *burst)
{
	const struct parse_fast parse = parse_fast_of(lcore, &burst->from);
	uint64_t tcp = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint8_t flags = parse_one(lcore, &parse, burst->packet[i], &burst->info[i]);

		if (unlikely(flags == 0))
			break;
		tcp |= (uint64_t)((flags & PACKET_TCP) != 0) << i;
	}
	burst->up.n = i;
	burst->n = i;
	return tcp;
}

/* `far`: see fetch_record(). */
static __rte_always_inline void account_burst(
	struct lcore *lcore, struct burst *burst, struct outcome *outcome, bool far)
{
	*outcome = (struct outcome){0};
	for (unsigned i = 0; i < burst->up.n; i++)
		account_found(lcore, burst, i, i, far, false, outcome);
	flow_shard_counted(
		lcore->worker.shard, burst->up.n - outcome->n, burst->bytes - outcome->bytes);
}

/* Near and far each by itself: with what comes before it the loop has too few registers. */
static __rte_noinline void finish_near(struct lcore *lcore, struct burst *burst)
{
	struct outcome outcome;

	account_burst(lcore, burst, &outcome, false);
	if (lcore->worker.agent != NULL)
		account_sample(lcore, burst);
	pipeline_end(lcore, burst, &outcome);
}

static __rte_noinline void finish_far(struct lcore *lcore, struct burst *burst)
{
	struct outcome outcome;

	account_burst(lcore, burst, &outcome, true);
	if (lcore->worker.agent != NULL)
		account_sample(lcore, burst);
	pipeline_end(lcore, burst, &outcome);
}

static void plain_finish(struct lcore *lcore)
{
	struct pipeline *pipeline = lcore->pipeline;

	pipeline->waits = false;
	finish_far(lcore, &pipeline->burst[!pipeline->next]);
}

static unsigned plain_begin(struct lcore *lcore, const struct lcore_rx *rx, unsigned n)
{
	struct pipeline *pipeline = lcore->pipeline;
	struct burst *burst = &pipeline->burst[pipeline->next];
	struct stage_times *stages = &lcore->worker.stages;
	const struct flow_table *table = &lcore->worker.shard->table;

	fetch_headers(burst->packet, n);
	burst->from = rx->from;
	burst->unchecked = lcore->worker.steer.n_shards > 1 ? UINT64_MAX : 0;
	const uint64_t tcp = parse_burst(lcore, n, burst);

	n = burst->up.n;
	burst->bytes = 0;
	for (unsigned i = 0; i < n; i++)
		burst->bytes += burst->info[i].bytes;
	parse_count(lcore, burst, n);
	lookup_begin(table, burst);
	stage_end(stages, STAGE_PARSE, n);
	if (pipeline->waits)
		plain_finish(lcore);
	pipeline_pass_time(lcore, lcore->now_us);
	if (flow_look_up_waits(table)) {
		lookup_records(table, burst, tcp, true);
		stage_end(stages, STAGE_LOOK_UP, n);
		pipeline->next ^= n != 0;
		pipeline->waits = n != 0;
	} else {
		lookup_records(table, burst, tcp, false);
		stage_end(stages, STAGE_LOOK_UP, n);
		if (n != 0)
			finish_near(lcore, burst);
	}
	return n;
}

static void plain_resume(struct lcore *lcore, uint64_t flows, bool slow)
{
	struct burst *burst = &lcore->pipeline->resumed;
	const struct flow_table *table = &lcore->worker.shard->table;
	struct outcome outcome = {0};

	const uint64_t tcp = lookup_begin_hashed(table, burst);

	lookup_records(table, burst, tcp, false);
	stage_end(&lcore->worker.stages, STAGE_LOOK_UP, burst->n);
	account_resumed(lcore, burst, flows, slow, false, &outcome);
	pipeline_end(lcore, burst, &outcome);
}

const struct pipeline_level SIMD_SYMBOL(pipeline_plain) = {
	.begin = plain_begin,
	.finish = plain_finish,
	.resume = plain_resume,
};
