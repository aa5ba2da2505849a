/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * `millrace bench table`: the flow table against rte_hash at its best, which is a key padded to 48 bytes
 * (then a slot is one cache line and the comparison is SIMD), bulk look-ups of 64, and the user's record
 * prefetched. Keys are made outside of the timed part, 512 at a time, so that they are as warm as after
 * extraction; hashing them is timed on both sides. Packets, bytes and last seen are updated alike. Both
 * sides lie on 2 MB pages where the kernel has them. Tables are made for N flows and hold 0.875 N, but
 * for bytes_per_flow_full, which holds N.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>

#include "base/mapping.h"
#include "bench/bench.h"
#include "bench/memory.h"
#include "flow/fragments.h"
#include "flow/shard.h"
#include "main/dpdk.h"
#include "packet/hash.h"

#define BURST 64
#define CHUNK 512
#define HEAP_BYTES_A_FLOW 160
#define PROBES (512 * 1024) /* look-ups timed in a round */

/* rte_hash's view of a flow. */
struct padded_key {
	struct flow_key key;
	uint8_t padding[8];
};

struct their_record {
	uint32_t packets[2];
	uint32_t bytes[2];
	uint64_t last_seen_us;
	uint8_t rest[40];
};

struct bench {
	struct bench_options options;
	struct hash_secret secret;
	int heap;	 /* of theirs */
	uint32_t n;	 /* flows that are held */
	uint32_t *order; /* PROBES flow numbers at random */
	struct flow_table table;
	struct rte_hash *hash;
	struct their_record *records;
};

static struct padded_key key_of(uint32_t number)
{
	struct padded_key key = {
		.key = {.proto = 17, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)},
	};

	memcpy(key.key.addr[0], &number, sizeof(number));
	key.key.addr[1][0] = 255;
	return key;
}

/* One round of one contender: `first` is the number of the first flow beyond those held. */
typedef double (*round_fn)(struct bench *bench, bool update, uint32_t offset);

static double our_look_ups(struct bench *bench, bool update, uint32_t offset)
{
	static struct padded_key keys[CHUNK];
	const struct flow_key *pointers[BURST];
	uint64_t cycles = 0;

	for (uint32_t done = 0; done < PROBES; done += CHUNK) {
		for (unsigned i = 0; i < CHUNK; i++)
			keys[i] = key_of(bench->order[done + i] + offset);
		uint64_t begin = rte_rdtsc_precise();

		for (unsigned i = 0; i < CHUNK; i += BURST) {
			uint64_t hashes[BURST];
			uint32_t positions[BURST];

			for (unsigned j = 0; j < BURST; j++) {
				pointers[j] = &keys[i + j].key;
				hashes[j] = flow_key_hash(&bench->secret, pointers[j]);
			}
			flow_table_find_burst(&bench->table, pointers, hashes, positions, BURST);
			for (unsigned j = 0; update && j < BURST; j++) {
				struct flow_record *record =
					flow_table_record(&bench->table, positions[j]);

				record->packets_low[0]++;
				record->bytes_low[0] += 64;
				record->last_seen_us = done & 0xffff;
			}
		}
		cycles += rte_rdtsc_precise() - begin;
	}
	return (double)cycles / PROBES;
}

static double their_look_ups(struct bench *bench, bool update, uint32_t offset)
{
	static struct padded_key keys[CHUNK];
	const void *pointers[BURST];
	uint64_t cycles = 0;

	for (uint32_t done = 0; done < PROBES; done += CHUNK) {
		for (unsigned i = 0; i < CHUNK; i++)
			keys[i] = key_of(bench->order[done + i] + offset);
		uint64_t begin = rte_rdtsc_precise();

		for (unsigned i = 0; i < CHUNK; i += BURST) {
			void *data[BURST];
			uint64_t hits = 0;

			for (unsigned j = 0; j < BURST; j++)
				pointers[j] = &keys[i + j];
			rte_hash_lookup_bulk_data(bench->hash, pointers, BURST, &hits, data);
			for (unsigned j = 0; update && j < BURST; j++)
				rte_prefetch0(data[j]);
			for (unsigned j = 0; update && j < BURST; j++) {
				struct their_record *record = data[j];

				record->packets[0]++;
				record->bytes[0] += 64;
				record->last_seen_us = done;
			}
		}
		cycles += rte_rdtsc_precise() - begin;
	}
	return (double)cycles / PROBES;
}

static void measure(struct bench *bench, const char *name, bool update, uint32_t offset,
	uint32_t flows, double goal)
{
	struct bench_row row = {.bench = "table",
		.measure = name,
		.load = "uniform",
		.flows = flows,
		.unit = "cycles",
		.against = "rte_hash",
		.goal = goal,
		.rounds = BENCH_ROUNDS};

	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		row.ours[i] = our_look_ups(bench, update, offset);
		row.theirs[i] = their_look_ups(bench, update, offset);
	}
	bench_print(&row, bench->options.json);
}

/* Fills both, or empties both; the cycles an operation. */
static void fill(struct bench *bench, double *ours, double *theirs)
{
	uint64_t begin = rte_rdtsc_precise();

	for (uint32_t i = 0; i < bench->n; i++) {
		struct padded_key key = key_of(i);
		uint32_t position = flow_table_insert(
			&bench->table, &key.key, flow_key_hash(&bench->secret, &key.key));

		flow_table_record(&bench->table, position)->state = FLOW_REQUEST;
	}
	*ours = (double)(rte_rdtsc_precise() - begin) / bench->n;
	begin = rte_rdtsc_precise();
	for (uint32_t i = 0; i < bench->n; i++) {
		struct padded_key key = key_of(i);

		rte_hash_add_key_data(bench->hash, &key, &bench->records[i]);
	}
	*theirs = (double)(rte_rdtsc_precise() - begin) / bench->n;
}

static void empty(struct bench *bench, double *ours, double *theirs)
{
	uint64_t begin = rte_rdtsc_precise();

	for (uint32_t i = 0; i < bench->n; i++) {
		struct padded_key key = key_of(i);

		flow_table_remove(&bench->table, flow_table_find(&bench->table, &key.key,
							 flow_key_hash(&bench->secret, &key.key)));
	}
	*ours = (double)(rte_rdtsc_precise() - begin) / bench->n;
	begin = rte_rdtsc_precise();
	for (uint32_t i = 0; i < bench->n; i++) {
		struct padded_key key = key_of(i);

		rte_hash_del_key(bench->hash, &key);
	}
	*theirs = (double)(rte_rdtsc_precise() - begin) / bench->n;
}

static void measure_changes(struct bench *bench, uint32_t flows)
{
	struct bench_row insert = {.bench = "table",
		.measure = "insert",
		.load = "uniform",
		.flows = flows,
		.unit = "cycles",
		.against = "rte_hash",
		.goal = flows < 16384 ? 3.5 : 4,
		.rounds = BENCH_ROUNDS};
	struct bench_row delete = insert;

	delete.measure = "delete";
	delete.goal = 0;
	for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
		fill(bench, &insert.ours[i], &insert.theirs[i]);
		empty(bench, &delete.ours[i], &delete.theirs[i]);
	}
	bench_print(&insert, bench->options.json);
	bench_print(&delete, bench->options.json);
}

static void no_reports(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

/* Table, records, wheels and fragments, as the engine takes them, over the flows that they hold. */
static int measure_memory(const struct bench *bench, uint32_t flows, const char *name, double share)
{
	const struct flow_shard_config config = {.capacity = flows,
		.secret = &bench->secret,
		.timeouts = flow_timeouts_default(),
		.sink = no_reports};
	struct bench_row row = {.bench = "table",
		.measure = name,
		.load = "uniform",
		.flows = flows,
		.unit = "bytes",
		.against = "goal",
		.goal = 1,
		.rounds = 1,
		.theirs = {144 / share}};
	struct fragments *fragments;
	struct flow_shard *shard;
	int ret = fragments_create(&fragments, 65536, NULL, NULL);

	if (ret < 0)
		return ret;
	ret = flow_shard_create(&shard, &config);
	if (ret == 0) {
		row.ours[0] = (double)(flow_shard_memory(shard) + fragments_memory(fragments)) /
			      (flows * share);
		bench_print(&row, bench->options.json);
		flow_shard_destroy(shard);
	}
	fragments_destroy(fragments);
	return ret;
}

static int create(struct bench *bench, uint32_t flows)
{
	const struct rte_hash_parameters parameters = {.name = "bench",
		.entries = flows,
		.key_len = sizeof(struct padded_key),
		.hash_func = rte_hash_crc,
		.socket_id = bench->heap};

	bench->n = (uint32_t)(flows * 0.875);
	bench->hash = rte_hash_create(&parameters);
	bench->records = mapping_create(bench->n * sizeof(*bench->records), MAPPING_HUGE);
	if (bench->hash == NULL || bench->records == NULL ||
		flow_table_init(&bench->table, flows, &bench->secret, MAPPING_HUGE) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < PROBES; i++)
		bench->order[i] = (uint32_t)(((uint64_t)random() * bench->n) >> 31);
	return 0;
}

static void destroy(struct bench *bench)
{
	rte_hash_free(bench->hash);
	mapping_destroy(bench->records, bench->n * sizeof(*bench->records));
	flow_table_fini(&bench->table);
	bench->hash = NULL;
	bench->records = NULL;
}

static double update_goal(uint32_t flows)
{
	return flows <= 65536 ? 2.5 : flows <= 1000000 ? 2.3 : flows <= 8000000 ? 1.8 : 1.7;
}

static int measure_size(struct bench *bench, uint32_t flows)
{
	int ret = create(bench, flows);
	double ours, theirs;

	if (ret == 0) {
		measure_changes(bench, flows);
		fill(bench, &ours, &theirs);
		measure(bench, "lookup_hit", false, 0, flows, 0);
		measure(bench, "lookup_update", true, 0, flows, update_goal(flows));
		measure(bench, "lookup_miss", false, bench->n, flows, flows <= 1000000 ? 1.5 : 1.2);
		if (flows >= 65536)
			ret = measure_memory(bench, flows, "bytes_per_flow", 0.875);
		if (ret == 0 && flows >= 65536)
			ret = measure_memory(bench, flows, "bytes_per_flow_full", 1);
	}
	destroy(bench);
	return ret;
}

int bench_table(const struct bench_options *options)
{
	static const uint32_t sizes[] = {1024, 65536, 1000000};
	struct bench bench = {.options = *options};
	const uint32_t *flows = options->n_flows == 0 ? sizes : options->flows;
	unsigned n = options->n_flows == 0 ? RTE_DIM(sizes) : options->n_flows;
	uint32_t most = 0;
	struct error error;

	for (unsigned i = 0; i < n; i++)
		most = RTE_MAX(most, flows[i]);
	int ret = dpdk_start(64, &error);

	if (ret < 0) {
		fprintf(stderr, "millrace: %s\n", error.text);
		return ret;
	}
	bench.heap = bench_heap_create(((size_t)16 << 20) + (size_t)most * HEAP_BYTES_A_FLOW);
	bench.order = malloc(PROBES * sizeof(*bench.order));
	ret = bench.order == NULL || bench.heap < 0 ? -ENOMEM : hash_secret_init(&bench.secret);
	if (ret == 0)
		bench_print_head(options->json);
	for (unsigned i = 0; ret == 0 && i < n; i++)
		ret = measure_size(&bench, flows[i]);
	if (ret < 0)
		fprintf(stderr, "millrace: bench table: %s\n", strerror(-ret));
	free(bench.order);
	dpdk_stop();
	return ret;
}
