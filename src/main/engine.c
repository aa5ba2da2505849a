/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/engine.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "dataplane/parse.h"
#include "dataplane/pipeline.h"
#include "main/engine_blocks.h"
#include "main/engine_rules.h"
#include "main/inbox.h"
#include "packet/hash.h"
#include "policy/policy.h"
#include "traffic/frame.h"

/* What one thread's cache of a pool may keep from the others, at most. */
#define POOL_CACHE 384

struct engine {
	struct engine_config config;
	struct hash_secret secret;
	struct rte_mempool *frames;
	struct rte_mempool *notes;
	struct parser *parser;
	struct engine_blocks blocks;
	struct lone_rules rules;
	unsigned runs;
	unsigned n_started;
	struct inbox_worker workers[];
};

static void export_reports(void *context, const struct flow_report *reports, unsigned n)
{
	exporter_push(context, reports[0].worker, reports, n, true);
}

static void hand_over(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct engine *engine = context;

	inbox_worker_feed(&engine->workers[shard], packets, n);
}

static void wait_for(void *context, unsigned shard)
{
	const struct engine *engine = context;

	inbox_worker_wait(&engine->workers[shard]);
}

void engine_stamp(struct rte_mbuf *packet, uint64_t came_us, uint64_t stamp_us)
{
	packet_meta(packet)->came_us = came_us;
	packet_set_stamp_us(packet, stamp_us);
}

static int create_pools(struct engine *engine, struct error *error)
{
	/* what can be on its way at once, so that an allocation waits for nothing but walking */
	unsigned notes =
		engine->config.n_workers * (INBOX_SIZE + LCORE_BURST + PARSER_BURST + POOL_CACHE) +
		POOL_CACHE;
	unsigned frames = notes + PARSER_BURST + ENGINE_MAX_WAITING +
			  (engine->config.tie_fragments ? ENGINE_MAX_HELD : 0);

	engine->frames = frame_pool_create("frames", frames, PACKET_META_SIZE);
	engine->notes = frame_pool_create("notes", notes, PACKET_META_SIZE);
	if (engine->frames == NULL || engine->notes == NULL)
		return error_set(error, -rte_errno, "no memory for %u packets: %s", frames,
			strerror(rte_errno));
	return 0;
}

static int create_parser(struct engine *engine, struct error *error)
{
	uint32_t max_datagrams =
		engine->config.tie_fragments ? fragments_for(engine->config.flows) : 0;
	const struct parser_config config = {
		.extract = {.secret = &engine->secret,
			.zone_vlan = engine->config.zone_vlan,
			.wire_is_link = true},
		.steer = {.n_shards = engine->config.n_workers},
		.max_datagrams = max_datagrams,
		.max_held = ENGINE_MAX_HELD,
		.max_held_datagram = ENGINE_MAX_HELD,
		.max_wait_us = FRAGMENTS_LIFETIME_US,
		.tcp_strict = engine->config.tcp_strict,
		.pool = engine->notes,
		.relates = engine->config.rules != NULL,
		.hand_over = hand_over,
		.wait = wait_for,
		.context = engine,
	};
	int ret = parser_create(&engine->parser, &config);

	if (ret < 0)
		return error_set(
			error, ret, "no memory for %u fragmented datagrams", max_datagrams);
	return 0;
}

static int start_worker(struct engine *engine, unsigned number, struct error *error)
{
	struct inbox_worker *inbox_worker = &engine->workers[number];
	struct lcore *lcore = &inbox_worker->lcore;
	int ret = pipeline_init_portless(lcore, number, &engine->secret);

	if (ret < 0)
		return error_set(error, ret, "no memory for worker %u", number);
	lcore->wire_is_link = true;
	const struct policy_others others = engine_rules_policy(&engine->rules);

	/* neither list changes, so that nobody waits for their readers: one variable will do */
	policy_init(&lcore->policy, engine->blocks.list, &others, lcore->topology,
		engine->blocks.list != NULL ? engine->blocks.qsbr : engine->rules.qsbr, number);
	lcore->act.programs = engine->rules.programs;
	if (engine->rules.rules != NULL) {
		lcore->act.context.meters = rules_meters(engine->rules.rules);
		lcore->act.context.n_meters = RULES_MAX_METERS;
	}

	const struct flow_shard_config config = {
		.capacity = flow_shard_part(engine->config.flows, engine->config.n_workers),
		.secret = &engine->secret,
		.timeouts = engine->config.timeouts,
		.active_s = engine->config.active_s,
		.tcp_strict = engine->config.tcp_strict,
		.stamped = true,
		.octets = engine->config.octets,
		.measure = engine->config.measure,
		.measures = engine->config.measure_what == NULL ? NULL : policy_measures,
		.measures_context = engine->config.measure_what,
		.worker = (uint8_t)number,
		.mapping = engine->config.mapping,
		.sink = export_reports,
		.sink_context = engine->config.exporter,
		.policy = policy_of_flows(&lcore->policy),
	};

	ret = flow_shard_create(&lcore->worker.shard, &config);
	if (ret < 0) {
		pipeline_fini_portless(lcore);
		return error_set(error, ret, "no memory for %u flows", config.capacity);
	}
	/* the list does not change: what it says at the start is all that there is to decide by */
	policy_begin(&lcore->policy, lcore->worker.shard);
	if (engine->blocks.list != NULL || engine->rules.rules != NULL)
		lcore->worker.policy = &lcore->policy;
	ret = inbox_worker_start(inbox_worker);
	if (ret < 0) {
		pipeline_fini_portless(lcore);
		return error_set(
			error, ret, "worker %u does not start: %s", number, strerror(-ret));
	}
	engine->n_started++;
	return 0;
}

int engine_create(struct engine **out, const struct engine_config *config, struct error *error)
{
	const size_t size = sizeof(struct engine) + config->n_workers * sizeof(struct inbox_worker);
	struct engine *engine = aligned_alloc(alignof(struct engine), size);

	if (engine == NULL)
		return error_set(error, -ENOMEM, "no memory for %u workers", config->n_workers);
	memset(engine, 0, size);
	engine->config = *config;
	int ret = hash_secret_init(&engine->secret);

	if (ret < 0)
		error_set(error, ret, "no randomness from the kernel: %s", strerror(-ret));
	if (ret == 0)
		ret = create_pools(engine, error);
	if (ret == 0)
		ret = create_parser(engine, error);
	if (ret == 0 && config->blocks != NULL)
		ret = engine_blocks_load(
			&engine->blocks, config->blocks, config->n_workers, &engine->secret, error);
	if (ret == 0 && config->rules != NULL)
		ret = engine_rules_load(&engine->rules, config, &engine->secret, error);
	for (unsigned i = 0; ret == 0 && i < config->n_workers; i++)
		ret = start_worker(engine, i, error);
	if (ret < 0) {
		engine_destroy(engine);
		return ret;
	}
	*out = engine;
	return 0;
}

void engine_destroy(struct engine *engine)
{
	if (engine == NULL)
		return;
	for (unsigned i = 0; i < engine->n_started; i++) {
		inbox_worker_stop(&engine->workers[i]);
		pipeline_fini_portless(&engine->workers[i].lcore);
	}
	engine_blocks_fini(&engine->blocks);
	lone_rules_fini(&engine->rules);
	parser_destroy(engine->parser);
	rte_mempool_free(engine->notes);
	rte_mempool_free(engine->frames);
	free(engine);
}

struct rte_mempool *engine_pool(const struct engine *engine)
{
	return engine->frames;
}

int engine_begin(struct engine *engine, uint64_t origin_us, uint32_t run, struct error *error)
{
	int ret = parser_begin(engine->parser, origin_us, run);

	if (ret < 0)
		return error_set(error, ret, "no packet buffers left to begin a run");
	return 0;
}

void engine_set_link(struct rte_mbuf *frame, enum link_type link)
{
	packet_meta(frame)->wire = (uint8_t)link;
}

void engine_set_missing(struct rte_mbuf *frame, uint32_t missing)
{
	packet_set_missing(frame, missing);
}

/* Link types rarely change from one packet to the next. */
void engine_packets(struct engine *engine, uint64_t now_us, struct rte_mbuf **packets, unsigned n)
{
	for (unsigned done = 0; done < n;) {
		struct arrival from = {.domain = packet_meta(packets[done])->wire, .stamped = true};
		unsigned alike = 1;

		while (done + alike < n && packet_meta(packets[done + alike])->wire == from.domain)
			alike++;
		parser_burst(engine->parser, from, now_us, packets + done, alike);
		done += alike;
	}
}

void engine_flush(struct engine *engine)
{
	parser_flush(engine->parser);
}

int engine_end(struct engine *engine, uint64_t now_us, struct error *error)
{
	int ret = parser_end(engine->parser, now_us);

	if (ret < 0)
		return error_set(error, ret, "no packet buffers left to end a run");
	engine->runs++;
	for (unsigned i = 0; i < engine->config.n_workers; i++)
		inbox_worker_wait_run(&engine->workers[i], engine->runs);
	/* the clock of the next run begins at 0, and workers do nothing until then */
	if (engine->rules.rules != NULL)
		rules_restart(engine->rules.rules);
	return 0;
}

void engine_counters(const struct engine *engine, struct engine_counters *counters)
{
	*counters = (struct engine_counters){.held = parser_held(engine->parser)};
	for (unsigned link = 0; link < LINK_N_TYPES; link++)
		path_counters_add(&counters->path, &parser_counters(engine->parser)[link]);
	for (unsigned i = 0; i < engine->n_started; i++) {
		const struct worker *worker = &engine->workers[i].lcore.worker;

		for (unsigned link = 0; link < LINK_N_TYPES; link++)
			path_counters_add(&counters->path, &worker->counters[link]);
		flow_counters_add(&counters->flow, &worker->shard->counters);
	}
}
