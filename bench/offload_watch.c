/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/offload_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "base/monotonic.h"
#include "traffic/draw.h"

/* How long times are taken of flows that begin while others go on, because they were ended: one after the other, ... */
#define STEADY_US 2000000
/* ... and each so long after the last one or sooner, without a rhythm: the kernel's ticks have one. */
#define END_WITHIN_US 500
/* Of so many, at most. */
#define ENDED_MOST 65536
/* One direction in so many is watched, by a power of two: to watch all would cost as much as to carry them. */
#define WATCHED_BITS 6
#define SEEN_BITS 20
/* In a frame of IPv4 without options: addresses and ports. */
#define ENDS_AT (14 + 12)
#define READ 256

static int timestamp_field = -1;
static uint64_t timestamp_flag;

/* One engine is watched at a time; its callbacks are on this thread. */
static struct {
	struct offload_times *times;
	enum watched {
		WATCH_FIRST, /* packets that are the first of their direction */
		WATCH_ALL,   /* of an engine that does nothing */
	} packets;
	uint64_t changes;
	/*
	 * A bit for each direction of a flow that is watched, by a hash: of a million flows some in a hundred share it, and
	 * are taken for seen, or for first ones.
	 */
	uint64_t *seen;
	const struct rte_eth_rxtx_callback *callback[2];
} watch;

/* A direction of a flow, as it lies in a frame. Those that differ in their protocol alone are one. */
struct ends {
	uint32_t address[2];
	uint16_t port[2];
};

int offload_times_init(void)
{
	return rte_mbuf_dyn_rx_timestamp_register(&timestamp_field, &timestamp_flag) < 0
		       ? -rte_errno
		       : 0;
}

static uint64_t hash_of(const struct ends *ends)
{
	uint64_t addresses;
	uint32_t ports;

	memcpy(&addresses, ends->address, sizeof(addresses));
	memcpy(&ports, ends->port, sizeof(ports));
	return (addresses ^ ports * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* By other bits than those that its place is of. */
static bool is_watched(uint64_t hash)
{
	return (hash >> (64 - SEEN_BITS - WATCHED_BITS) & ((1u << WATCHED_BITS) - 1)) == 0;
}

/* A direction's bit, in *word. */
static uint64_t bit_of(uint64_t hash, uint64_t **word)
{
	uint64_t bit = hash >> (64 - SEEN_BITS);

	*word = &watch.seen[bit / 64];
	return UINT64_C(1) << bit % 64;
}

/* The first packet of this direction that leaves? */
static bool is_first(uint64_t hash)
{
	uint64_t *word, bit = bit_of(hash, &word);
	bool first = (*word & bit) == 0;

	*word |= bit;
	return first;
}

static void see(const struct rte_mbuf *packet, uint64_t tsc)
{
	struct ends ends;

	memcpy(&ends, rte_pktmbuf_mtod_offset(packet, const uint8_t *, ENDS_AT), sizeof(ends));

	const uint64_t hash = hash_of(&ends);

	if (!is_watched(hash) || (watch.packets == WATCH_FIRST && !is_first(hash)))
		return;
	const uint64_t came = *RTE_MBUF_DYNFIELD(packet, timestamp_field, rte_mbuf_timestamp_t *);
	const double ns_a_cycle = 1e9 / (double)rte_get_tsc_hz();

	histogram_add(watch.packets == WATCH_FIRST ? &watch.times->first : &watch.times->bare,
		(uint64_t)((double)(tsc - came) * ns_a_cycle));
}

static uint16_t leave(
	uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t n, void *context)
{
	const uint64_t tsc = rte_rdtsc();

	(void)port;
	(void)queue;
	(void)context;
	for (uint16_t i = 0; i < n; i++)
		if (packets[i]->ol_flags & timestamp_flag)
			see(packets[i], tsc);
	return n;
}

int watch_begin(const struct wire_engine *engine, struct offload_times *times)
{
	watch.times = times;
	watch.seen = calloc((size_t)1 << (SEEN_BITS - 6), sizeof(watch.seen[0]));
	for (unsigned side = 0; watch.seen != NULL && side < 2; side++) {
		watch.callback[side] =
			rte_eth_add_tx_callback(engine->source.port[side]->id, 0, leave, NULL);
		if (watch.callback[side] == NULL)
			return -rte_errno;
	}
	return watch.seen != NULL ? 0 : -ENOMEM;
}

static void watch_change(const struct wire_engine *engine, const struct offload_change *change)
{
	const struct flow_table *table = &engine->plane->lcores[0].worker.shard->table;

	if (change->kind != CHANGE_FLOW || change->before != OFFLOAD_INSTALLING ||
		change->after != OFFLOAD_ACCEPTED)
		return;
	histogram_add(&watch.times->rule, UINT64_C(1000) * change->detail);
	uint32_t position = flow_table_find(
		table, &change->key, flow_key_hash(&engine->plane->secret, &change->key));

	if (position == FLOW_NONE)
		return;
	const struct flow_record *record = flow_table_record(table, position);

	/* the other direction begins later */
	if (change->from == record->initiator)
		histogram_add(
			&watch.times->in_hw, UINT64_C(1000) * (change->time_us - record->start_us));
}

void watch_changes(const struct wire_engine *engine)
{
	const struct agent *agent = engine->plane->lcores[0].worker.agent;
	struct offload_change changes[READ];
	unsigned n;

	if (watch.times == NULL || agent == NULL)
		return;
	do {
		n = change_read(&agent->changes, &watch.changes, changes, READ);
		for (unsigned i = 0; i < n; i++)
			watch_change(engine, &changes[i]);
	} while (n == READ);
}

/* The direction whose packets come from that end. */
static uint64_t hash_from(const struct flow_key *key, unsigned from)
{
	struct ends ends = {.port = {key->port[from], key->port[!from]}};

	memcpy(&ends.address[0], key->addr[from], sizeof(ends.address[0]));
	memcpy(&ends.address[1], key->addr[!from], sizeof(ends.address[1]));
	return hash_of(&ends);
}

/* Flows of which a direction is watched: says how many. */
static unsigned watched_flows(const struct flow_table *table, struct flow_key *keys)
{
	unsigned n = 0;

	for (uint32_t at = flow_table_next(table, 0); at != FLOW_NONE && n < ENDED_MOST;
		at = flow_table_next(table, at + 1)) {
		const struct flow_key *key = &flow_table_record(table, at)->key;

		if (is_watched(hash_from(key, 0)) || is_watched(hash_from(key, 1)))
			keys[n++] = *key;
	}
	return n;
}

/* The flow has no record any more: its next packet is a first one. */
static void end_flow(const struct wire_engine *engine, const struct flow_key *key)
{
	struct flow_shard *shard = engine->plane->lcores[0].worker.shard;
	const uint32_t position =
		flow_table_find(&shard->table, key, flow_key_hash(&engine->plane->secret, key));

	if (position == FLOW_NONE)
		return;
	flow_shard_kill(shard, position);
	flow_shard_flush(shard);
	for (unsigned from = 0; from < 2; from++) {
		const uint64_t hash = hash_from(key, from);
		uint64_t *word, bit = bit_of(hash, &word);

		/* that of one that is not may be another's */
		if (is_watched(hash))
			*word &= ~bit;
	}
}

/*
 * In the first instant nearly every packet is a first one, and waits for the others. So flows are ended while all go on,
 * and what is looked at is how they begin anew. Which, and when, has nothing to do with what is carried: ended by the
 * packets that leave, more ended where much had waited, and what began anew had waited, too.
 */
static int take_first_times(const struct wire_engine *engine)
{
	struct flow_key *keys = malloc(ENDED_MOST * sizeof(*keys));
	struct draw draw = {.seed = 1};
	uint64_t now_us, due_us, end_us;
	unsigned n, next = 0;

	if (keys == NULL) {
		offload_say("no memory for the flows that are ended");
		return -ENOMEM;
	}
	n = watched_flows(&engine->plane->lcores[0].worker.shard->table, keys);
	memset(&watch.times->first, 0, sizeof(watch.times->first));
	now_us = due_us = monotonic_us();
	for (end_us = now_us + STEADY_US; now_us < end_us; now_us = monotonic_us()) {
		if (n != 0 && now_us >= due_us) {
			end_flow(engine, &keys[next++ % n]);
			due_us = now_us + draw_below(draw_next(&draw), END_WITHIN_US);
		}
		offload_busy(engine, 0, false);
	}
	free(keys);
	return 0;
}

/*
 * What the machine and the simulated NIC make of the same load, where each packet takes as long: who is interrupted for
 * 40 us at every tick of the kernel's has packets that waited as long, and the more the busier he is.
 */
static void take_bare_times(const struct wire_engine *engine, double cycles)
{
	watch.packets = WATCH_ALL;
	offload_floor(engine, STEADY_US / 8, false, cycles);
	memset(&watch.times->bare, 0, sizeof(watch.times->bare));
	offload_floor(engine, STEADY_US, false, cycles);
	watch.packets = WATCH_FIRST;
}

int watch_packets(const struct wire_engine *engine, double cycles)
{
	const int ret = take_first_times(engine);

	if (ret == 0 && cycles > 0)
		take_bare_times(engine, cycles);
	return ret;
}

void watch_end(const struct wire_engine *engine)
{
	for (unsigned side = 0; watch.times != NULL && side < 2; side++)
		if (watch.callback[side] != NULL)
			rte_eth_remove_tx_callback(
				engine->source.port[side]->id, 0, watch.callback[side]);
	free(watch.seen);
	memset(&watch, 0, sizeof(watch));
}
