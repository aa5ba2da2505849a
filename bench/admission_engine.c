/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/admission_engine.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mapping.h"
#include "base/monotonic.h"
#include "traffic/draw.h"

#define READY_US 20000000
#define TABLE_FLOWS (1u << 20)
#define BYTES 64

static void ignore(void *context, const struct flow_report *reports, unsigned n)
{
	(void)context;
	(void)reports;
	(void)n;
}

static struct worker *worker_of(const struct admission_engine *engine)
{
	return &engine->plane->lcores[0].worker;
}

static int make_plane(struct admission_engine *engine, uint32_t slots, struct error *error)
{
	struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {engine->source.port[0], engine->source.port[1]},
		.n_workers = 1,
		.poll_always = true,
		.flows = TABLE_FLOWS + TABLE_FLOWS / 4,
		.tie_fragments = true,
		.timeouts = flow_timeouts_default(),
		/* nothing arrives by the other port, and no packet is there that the NIC could count */
		.offload = {.on = true,
			.off_port = {[1] = true},
			.threshold = ADMISSION_THRESHOLD,
			.slots = slots},
		.mapping = MAPPING_HUGE | MAPPING_POPULATE,
		.sink = ignore,
	};

	return plane_create(&engine->plane, &config, error);
}

int admission_engine_open(struct admission_engine *engine, unsigned number, uint32_t n_flows,
	uint32_t entries, struct error *error)
{
	const uint32_t slots = entries + entries / 4 + 1024;
	char words[64];
	const struct bench_source_config source = {
		.flows = 64, .words = words, .number = number, .offload_places = slots};

	snprintf(words, sizeof(words), "profile=x710,rules=%u", entries);
	engine->position = malloc(n_flows * sizeof(engine->position[0]));
	if (engine->position == NULL)
		return error_set(error, -ENOMEM, "no memory for the flows of the load");
	memset(engine->position, 0xff, n_flows * sizeof(engine->position[0]));
	int ret = bench_source_open(&engine->source, &source, error);

	if (ret == 0)
		ret = make_plane(engine, slots, error);
	if (ret < 0)
		return ret;
	for (uint64_t end_us = monotonic_us() + READY_US; !plane_tend(engine->plane);) {
		if (monotonic_us() > end_us)
			return error_set(error, -ETIMEDOUT, "the simulated NIC is not ready");
		sched_yield();
	}
	admission_engine_turn(engine);
	return 0;
}

void admission_engine_close(struct admission_engine *engine)
{
	if (engine->plane != NULL)
		plane_stop(engine->plane);
	bench_source_close(&engine->source);
	plane_destroy(engine->plane);
	free(engine->position);
	memset(engine, 0, sizeof(*engine));
}

void admission_engine_turn(struct admission_engine *engine)
{
	struct worker *worker = worker_of(engine);
	uint64_t now_us = plane_now_us(engine->plane);

	flow_shard_advance(worker->shard, now_us);
	flow_shard_flush(worker->shard);
	agent_turn(worker->agent, now_us);
}

/* Addresses tell the flows apart; the lower one sends. */
static void make_key(struct flow_key *key, uint32_t flow)
{
	const rte_be32_t number = rte_cpu_to_be_32(flow);

	*key = (struct flow_key){
		.addr = {{10}, {198, 18}},
		.port = {RTE_BE16(40000), RTE_BE16(5001)},
		.proto = IPPROTO_UDP,
		.version_wire = FLOW_KEY_VERSION_WIRE(4, 0),
	};
	/* fewer than 2^24 */
	memcpy(&key->addr[0][1], (const uint8_t *)&number + 1, 3);
	memcpy(&key->addr[1][2], (const uint8_t *)&number + 2, 2);
}

/* The packet is counted; true: its flow's rule was there already. */
static bool count(struct admission_engine *engine, uint32_t flow)
{
	struct worker *worker = worker_of(engine);
	struct packet_info info = {.bytes = BYTES};
	uint32_t *position = &engine->position[flow];

	make_key(&info.key, flow);
	if (*position == FLOW_NONE ||
		flow_table_record(&worker->shard->table, *position)->state == FLOW_FREE ||
		!flow_key_equal(
			&flow_table_record(&worker->shard->table, *position)->key, &info.key)) {
		info.hash = flow_key_hash(&engine->plane->secret, &info.key);
		*position = flow_shard_learn(worker->shard, &info);
		return false;
	}
	flow_shard_account(worker->shard, *position, &info);
	enum offload_state state =
		offload_state(flow_table_record(&worker->shard->table, *position), 0);

	if (state == OFFLOAD_ACCEPTED)
		agent_marked(worker->agent, *position, 0, 0);
	return state >= OFFLOAD_ACCEPTED;
}

unsigned admission_engine_burst(struct admission_engine *engine, const uint32_t *flows, unsigned n)
{
	struct worker *worker = worker_of(engine);
	const struct flow_table *table = &worker->shard->table;
	unsigned marked = 0;

	for (unsigned i = 0; i < n; i++)
		if (engine->position[flows[i]] != FLOW_NONE)
			rte_prefetch0(flow_table_record(table, engine->position[flows[i]]));
	for (unsigned i = 0; i < n; i++)
		marked += count(engine, flows[i]);
	/* as a worker does: one packet of the burst, another place each time */
	uint32_t which = flows[draw_below(draw_at(1, engine->drawn++), n)];

	agent_sample(worker->agent, engine->position[which], 0, 0);
	admission_engine_turn(engine);
	return marked;
}

uint64_t admission_engine_rules(const struct admission_engine *engine)
{
	const struct installer_histograms *histograms =
		installer_histograms(plane_installer(engine->plane, 0));

	return atomic_load_explicit(
		       &histograms->call[INSTALLER_INSERT].times, memory_order_relaxed) +
	       atomic_load_explicit(
		       &histograms->call[INSTALLER_REMOVE].times, memory_order_relaxed);
}
