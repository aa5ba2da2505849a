/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes as a capture, through the whole engine: reader, parser, workers. Besides what sanitizers
 * see:
 *
 * - received = out + dropped, nothing held at the end, every buffer back in its pool;
 * - packets and bytes over all reports equal those of known flows;
 * - one shard and three make the same sums; frames come in small segments.
 *
 * Small tables, short timeouts and little room for fragments, so that eviction, ageing and overflow
 * happen; with three shards other flows are evicted, so those sums are compared only when none is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dpdk.h"
#include "dataplane/parse.h"
#include "dataplane/pipeline.h"
#include "traffic/capture.h"
#include "traffic/frame.h"

#define MAX_SHARDS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct hash_secret secret;
static struct rte_mempool *pool;

struct engine {
	unsigned n_shards;
	struct parser *parser;
	struct lcore lcore[MAX_SHARDS];
	uint64_t reported_packets;
	uint64_t reported_bytes;
	struct path_counters path;
	struct flow_counters flow;
};

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct error error;

	(void)argc;
	(void)argv;
	check(dpdk_start(32, &error) == 0, "start");
	pool = frame_pool_create("fuzz", 16383, PACKET_META_SIZE);
	check(pool != NULL && hash_secret_init(&secret) == 0, "pool");
	return 0;
}

static void sink(void *context, const struct flow_report *reports, unsigned n)
{
	struct engine *engine = context;

	for (unsigned i = 0; i < n; i++) {
		check(reports[i].end_us >= reports[i].record.start_us, "end before start");
		for (unsigned end = 0; end < 2; end++) {
			engine->reported_packets += flow_packets(&reports[i].record, end);
			engine->reported_bytes += flow_bytes(&reports[i].record, end);
		}
	}
}

static void hand_over(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct engine *engine = context;

	pipeline_resume(&engine->lcore[shard], packets, n);
}

static void engine_start(struct engine *engine, unsigned n_shards, bool strict)
{
	const struct parser_config parser = {
		.extract = {.secret = &secret, .zone_vlan = strict, .wire_is_link = true},
		.steer = {.n_shards = n_shards},
		.max_datagrams = 12,
		.max_held = 20,
		.pool = pool,
		.hand_over = hand_over,
		.context = engine,
	};

	memset(engine, 0, sizeof(*engine));
	engine->n_shards = n_shards;
	check(parser_create(&engine->parser, &parser) == 0, "parser");
	for (unsigned i = 0; i < n_shards; i++) {
		struct flow_shard_config shard = {
			.capacity = 24,
			.secret = &secret,
			.timeouts = flow_timeouts_default(),
			.active_s = strict ? 7 : 0,
			.tcp_strict = strict,
			.sink = sink,
			.sink_context = engine,
		};

		check(pipeline_init_portless(&engine->lcore[i], i, &secret) == 0, "lcore");
		check(flow_shard_create(&engine->lcore[i].worker.shard, &shard) == 0, "shard");
	}
}

static void engine_check(struct engine *engine)
{
	for (unsigned link = 0; link < LINK_N_TYPES; link++)
		path_counters_add(&engine->path, &parser_counters(engine->parser)[link]);
	for (unsigned i = 0; i < engine->n_shards; i++) {
		struct worker *worker = &engine->lcore[i].worker;

		for (unsigned link = 0; link < LINK_N_TYPES; link++)
			path_counters_add(&engine->path, &worker->counters[link]);
		flow_counters_add(&engine->flow, &worker->shard->counters);
		check(worker->shard->table.count == 0, "every flow ended");
		pipeline_fini_portless(&engine->lcore[i]);
	}
	check(parser_held(engine->parser) == 0, "nothing held");
	parser_destroy(engine->parser);

	const struct path_counters *path = &engine->path;

	check(path->received == path->out + path_counters_dropped(path),
		"received = out + dropped");
	check(engine->flow.packets ==
			path->received - path->non_ip - path->dropped[DROP_MALFORMED] -
				path->dropped[DROP_TCP_WINDOW] - path->dropped[DROP_TCP_HEADER],
		"packets of flows");
	check(engine->reported_packets == engine->flow.packets, "reported packets");
	check(engine->reported_bytes == engine->flow.bytes, "reported bytes");
	check(rte_mempool_avail_count(pool) == pool->size, "every buffer came back");
}

static void replay(struct engine *engine, const char *path, uint16_t max_segment)
{
	struct capture *capture = NULL;
	struct capture_packet packet;
	struct error error;
	uint64_t origin_us = 0;
	uint64_t now_us = 0;
	bool begun = false;

	if (capture_open(&capture, path, &error) == 0) {
		while (capture_next(capture, &packet, &error) == 1) {
			if (!begun) {
				begun = true;
				origin_us = packet.time_us;
				check(parser_begin(engine->parser, origin_us, 0) == 0, "begin");
			}
			if (packet.time_us > origin_us + now_us)
				now_us = packet.time_us - origin_us;
			/* the clock has to stand still within its 48 bits, as the program sees to */
			struct rte_mbuf *frame =
				frame_make(pool, packet.bytes, packet.length, max_segment);

			if (frame != NULL)
				parser_burst(engine->parser,
					(struct arrival){.domain = (uint8_t)packet.link}, now_us,
					&frame, 1);
		}
		check(parser_end(engine->parser, now_us) == 0, "end");
	}
	capture_close(capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("capture", MFD_CLOEXEC);
	static struct engine one, three;
	char path[32];

	if (size == 0 || size > 100000) {
		close(fd);
		return 0;
	}
	bool strict = data[size - 1] & 1;

	check(write(fd, data, size) == (ssize_t)size, "write");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	engine_start(&one, 1, strict);
	/* in the same pieces: as many of them may wait for a first fragment */
	replay(&one, path, (uint16_t)(64 + data[size - 1]));
	engine_check(&one);
	engine_start(&three, MAX_SHARDS, strict);
	replay(&three, path, (uint16_t)(64 + data[size - 1]));
	engine_check(&three);
	close(fd);
	check(one.path.received == three.path.received && one.path.out <= one.path.received,
		"received by one and three");
	check(one.path.non_ip == three.path.non_ip, "not IP in one and three");
	if (one.flow.ended[FLOW_END_EVICTED] == 0 && three.flow.ended[FLOW_END_EVICTED] == 0) {
		check(memcmp(&one.path, &three.path, sizeof(one.path)) == 0,
			"paths of one and three");
		check(memcmp(&one.flow, &three.flow, sizeof(one.flow)) == 0,
			"flows of one and three");
	}
	return 0;
}
