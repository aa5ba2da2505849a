/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/pipeline.h"

#include <errno.h>
#include <stdlib.h>

#include "dataplane/account.h"
#include "dataplane/act.h"
#include "dataplane/handoff.h"
#include "dataplane/learn.h"
#include "dataplane/tx.h"

static const struct pipeline_level *const plain[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = &pipeline_plain_portable,
#ifdef __x86_64__
	[SIMD_SSE42] = &pipeline_plain_sse42,
	[SIMD_AVX2] = &pipeline_plain_avx2,
	[SIMD_AVX512] = &pipeline_plain_avx512,
#endif
};

static const struct pipeline_level *const marked[SIMD_N_LEVELS] = {
	[SIMD_PORTABLE] = &pipeline_marked_portable,
#ifdef __x86_64__
	[SIMD_SSE42] = &pipeline_marked_sse42,
	[SIMD_AVX2] = &pipeline_marked_avx2,
	[SIMD_AVX512] = &pipeline_marked_avx512,
#endif
};

static void init_burst(struct burst *burst)
{
	burst->resumed = false;
	burst->unchecked = 0;
	burst->others = 0;
	burst->marked = 0;
	burst->excess_done = 0;
	for (unsigned i = 0; i < LCORE_BURST; i++) {
		burst->up.key[i] = &burst->info[i].key;
		burst->info_of[i] = (uint8_t)i;
	}
}

int pipeline_create(struct pipeline **out, const struct hash_secret *secret, bool marks)
{
	struct pipeline *pipeline =
		aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*pipeline), (size_t)64));

	if (pipeline == NULL)
		return -ENOMEM;
	pipeline->level = (marks ? marked : plain)[secret->simd];
	pipeline->next = 0;
	pipeline->waits = false;
	pipeline->unmarked = false;
	pipeline->last_tcp = false;
	pipeline->mixed = false;
	init_burst(&pipeline->burst[0]);
	init_burst(&pipeline->burst[1]);
	init_burst(&pipeline->resumed);
	pipeline->resumed.resumed = true;
	*out = pipeline;
	return 0;
}

void pipeline_destroy(struct pipeline *pipeline)
{
	free(pipeline);
}

struct rte_mbuf **pipeline_room(struct lcore *lcore)
{
	struct pipeline *pipeline = lcore->pipeline;

	return pipeline->burst[pipeline->next].packet;
}

unsigned pipeline_begin(struct lcore *lcore, const struct lcore_rx *rx, unsigned n)
{
	return lcore->pipeline->level->begin(lcore, rx, n);
}

void pipeline_finish(struct lcore *lcore)
{
	if (lcore->pipeline != NULL && lcore->pipeline->waits)
		lcore->pipeline->level->finish(lcore);
}

void pipeline_end(struct lcore *lcore, struct burst *burst, struct outcome *outcome)
{
	struct stage_times *stages = &lcore->worker.stages;
	unsigned n = burst->n;

	if (unlikely(outcome->waiting != 0))
		account_waiting(lcore, burst, outcome);
	if (unlikely(burst->others != 0))
		account_others(lcore, burst, outcome);
	if (unlikely(lcore->worker.shard->excess != NULL))
		account_octets_counted(lcore, burst, outcome);
	stage_end(stages, STAGE_ACCOUNT, n);
	if (unlikely(outcome->unknown != 0)) {
		learn_burst(lcore, burst, outcome);
		stage_end(stages, STAGE_LEARN, n);
	}
	/* all packets of a router are acted on */
	if (unlikely((outcome->dropped | outcome->acts | outcome->gone | burst->from.router) != 0))
		n = act_burst(lcore, burst, outcome);
	burst->excess_done = 0;
	tx_burst(lcore, burst, n);
	stage_end(stages, STAGE_OUT, burst->n);
}

/* ---------------------------------------------------- packets that were parsed before */

/* An ICMP error, of which the quoted flow's shard has said what it is to it: it goes to the shard of its own flow. */
static void emit_error(struct lcore *lcore, struct rte_mbuf *error)
{
	struct worker *worker = &lcore->worker;
	struct packet_meta *meta = packet_meta(error);
	const unsigned shard = steer_shard(&worker->steer, &meta->info);

	meta->kind = PACKET_KIND_FLOW;
	meta->unchecked = 0;
	if (shard != worker->number) {
		handoff_to_lcore(lcore, lcore->shard_lcore[shard], &error, 1);
		return;
	}
	pipeline_resume(lcore, &error, 1);
}

/* `note` tells of a packet that an ICMP error quotes, which may travel with it. */
static void take_quote(struct lcore *lcore, const struct rte_mbuf *note)
{
	struct worker *worker = &lcore->worker;
	const struct packet_meta *meta = packet_meta(note);

	flow_shard_advance(worker->shard, meta->time_us);
	const struct flow_quoted told = flow_shard_quoted(worker->shard, &meta->info);

	worker->counters[meta->wire].icmp_untied += !told.known;
	if (meta->error == NULL)
		return;
	if (told.related)
		segment_set_related(&packet_meta(meta->error)->info.tcp, told.answers);
	/* without lcores beside it, the parser waits for that, and has the error */
	if (lcore->n_lcores == 0)
		return;
	packet_meta(meta->error)->time_us = meta->time_us;
	emit_error(lcore, meta->error);
}

static void take_note(struct lcore *lcore, struct rte_mbuf *note)
{
	struct worker *worker = &lcore->worker;
	const struct packet_meta *meta = packet_meta(note);

	switch ((enum packet_kind)meta->kind) {
	case PACKET_KIND_QUOTE:
		take_quote(lcore, note);
		break;
	case PACKET_KIND_BEGIN:
		flow_shard_begin(worker->shard, meta->time_us, meta->run);
		break;
	case PACKET_KIND_END:
		flow_shard_advance(worker->shard, meta->time_us);
		flow_shard_end_all(worker->shard);
		worker->runs_ended++;
		break;
	case PACKET_KIND_FLOW:
	case PACKET_KIND_OTHER:
	case PACKET_KIND_FRAGMENT:
	case PACKET_KIND_SEND:
	case PACKET_KIND_QUOTE_FRAGMENT:
		break; /* never handed to a worker */
	}
	rte_pktmbuf_free(note);
}

static bool has_flow(const struct rte_mbuf *packet)
{
	return packet_meta(packet)->kind == PACKET_KIND_FLOW;
}

/*
 * Packets of different times are bursts of their own, in captures mostly of one packet: what they will need is fetched
 * for all of them at once. What the parser wrote comes from another core.
 */
static void fetch_parsed(const struct lcore *lcore, struct rte_mbuf **packets, unsigned n)
{
	uint64_t hashes[LCORE_BURST];
	unsigned n_hashes = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(packet_meta(packets[i]));
	for (unsigned i = 0; i < n; i++) {
		if (has_flow(packets[i]))
			hashes[n_hashes++] = packet_meta(packets[i])->info.hash;
	}
	flow_table_prefetch(&lcore->worker.shard->table, hashes, n_hashes);
}

/* Are two packets of one burst, by all that tells when and where they came? */
static bool of_one_burst(
	const struct worker *worker, const struct rte_mbuf *packet, const struct rte_mbuf *other)
{
	const struct packet_meta *meta = packet_meta(packet), *others = packet_meta(other);

	return !packet_is_note(packet) && meta->time_us == others->time_us &&
	       meta->port == others->port && meta->wire == others->wire && !meta->waited &&
	       !others->waited &&
	       (worker->shard->stamps == NULL || packet_stamp_us(packet) == packet_stamp_us(other));
}

/* Fills the burst that is resumed; returns a bit for each packet of a flow. */
static uint64_t fill_burst(struct lcore *lcore, struct rte_mbuf **packets, unsigned n)
{
	struct burst *burst = &lcore->pipeline->resumed;
	const struct packet_meta *first = packet_meta(packets[0]);
	uint64_t flows = 0;

	burst->from = (struct arrival){.port = first->port,
		.domain = first->wire,
		.place = lcore->topology->place[first->port],
		.peer = lcore->topology->peer[first->port],
		.router = lcore->topology->router[first->wire]};
	burst->n = n;
	burst->up.n = 0;
	burst->bytes = 0;
	burst->unchecked = 0;
	burst->marked = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct packet_meta *meta = packet_meta(packets[i]);

		burst->packet[i] = packets[i];
		burst->info_of[i] = LCORE_BURST; /* it has none */
		if (!has_flow(packets[i]))
			continue;
		flows |= UINT64_C(1) << i;
		burst->unchecked |= (uint64_t)meta->unchecked << i;
		burst->info_of[i] = (uint8_t)burst->up.n;
		burst->info[burst->up.n++] = meta->info;
		burst->bytes += meta->info.bytes;
	}
	burst->others = UINT64_MAX >> (64 - n) & ~flows;
	return flows;
}

int pipeline_init_portless(struct lcore *lcore, unsigned number, const struct hash_secret *secret)
{
	static const struct topology nowhere;

	lcore_init(lcore, LCORE_WORKER, number, number);
	lcore->secret = secret;
	lcore->topology = &nowhere;
	lcore->worker.steer.n_shards = 1;
	return pipeline_create(&lcore->pipeline, secret, false);
}

void pipeline_fini_portless(struct lcore *lcore)
{
	pipeline_destroy(lcore->pipeline);
	flow_shard_destroy(lcore->worker.shard);
}

/* A burst without notes, all of one time. */
static void resume_burst(struct lcore *lcore, struct rte_mbuf **packets, unsigned n)
{
	struct worker *worker = &lcore->worker;
	const struct packet_meta *first = packet_meta(packets[0]);
	const uint64_t flows = fill_burst(lcore, packets, n);

	pipeline_pass_time(lcore, first->time_us);
	flow_shard_came(worker->shard, first->waited ? first->came_us : first->time_us,
		packet_stamp_us(packets[0]));
	lcore->pipeline->level->resume(lcore, flows,
		worker->follow || worker->shard->stamps != NULL || worker->shard->waited_us != 0);
	worker->shard->waited_us = 0;
}

void pipeline_resume(struct lcore *lcore, struct rte_mbuf **packets, unsigned n)
{
	const struct worker *worker = &lcore->worker;
	unsigned begin = 0, end;

	for (unsigned i = 1; i < n; i++) {
		if (of_one_burst(worker, packets[i], packets[0]))
			continue;
		fetch_parsed(lcore, packets, n);
		break;
	}
	for (; begin < n; begin = end) {
		end = begin + 1;
		if (packet_is_note(packets[begin])) {
			take_note(lcore, packets[begin]);
			continue;
		}
		while (end < n && of_one_burst(worker, packets[end], packets[begin]))
			end++;
		resume_burst(lcore, &packets[begin], end - begin);
	}
	flow_shard_flush(lcore->worker.shard);
}
