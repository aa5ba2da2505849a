/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines of the founding experiment, and what is read off them. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf_dyn.h>

#include "base/monotonic.h"
#include "bench/offload.h"
#include "path/turn.h"

#define SLOTS 65536
/* Until no rule was made for so long, or for so long in all. */
#define QUIET_US 1000000
#define SETTLE_US 10000000
#define BUSY_STEP 64
/* How long times are taken of flows that begin while others go on, ... */
#define STEADY_US 2000000
/* ... because they were ended: that of each so-many-th packet that is watched, and so many at a time. */
#define END_EACH 32
#define END_MOST 8
/* One direction in so many is watched, by a power of two: to watch all would cost as much as to carry them. */
#define WATCHED_BITS 6

/* Bytes of a packet that the card writes: more is what a real one costs nobody. */
#define WRITTEN 64
#define SEEN_BITS 20
/* In a frame of IPv4 without options: its protocol; addresses and ports. */
#define PROTO_AT (14 + 9)
#define ENDS_AT (14 + 12)
#define READ 256

static int timestamp_field = -1;
static uint64_t timestamp_flag;

/* One engine is watched at a time; its callbacks are on this thread. */
static struct {
	struct offload_times *times;
	bool bare; /* the engine does nothing */
	uint64_t changes;
	/* a bit for each direction of a flow that is watched, by a hash: some in a hundred are taken for seen */
	uint64_t *seen;
	const struct rte_eth_rxtx_callback *callback[2];
	/* flows that are to end, by a packet's addresses and ports */
	uint64_t left;
	struct ends {
		uint32_t address[2];
		uint16_t port[2];
		uint32_t proto;
	} end[END_MOST];
	unsigned n_end;
} watch;

void offload_say(const char *line)
{
	fprintf(stderr, "millrace: bench offload: %s\n", line);
}

static struct station *station_of(const struct wire_engine *engine)
{
	return &engine->plane->stations[0];
}

static uint64_t rules_of(const struct wire_engine *engine)
{
	uint64_t rules = 0;

	for (unsigned port = 0; port < 2; port++)
		if (plane_installer(engine->plane, port) != NULL)
			rules += atomic_load_explicit(
				&installer_counters(plane_installer(engine->plane, port))
					->done[INSTALLER_INSERT],
				memory_order_relaxed);
	return rules;
}

/* Of both ports. */
static uint64_t sum_of(const struct wire_engine *engine, const char *name)
{
	uint64_t sum = 0;

	for (unsigned side = 0; side < 2; side++) {
		uint64_t id, value;

		if (rte_eth_xstats_get_id_by_name(engine->source.port[side]->id, name, &id) == 0 &&
			rte_eth_xstats_get_by_id(engine->source.port[side]->id, &id, &value, 1) ==
				1)
			sum += value;
	}
	return sum;
}

double offload_share(const struct wire_engine *engine, struct offload_share *last)
{
	const uint64_t forwarded = sum_of(engine, "rx_forwarded_packets");
	const struct offload_share now = {
		.all = sum_of(engine, "rx_good_packets") + forwarded,
		.named = sum_of(engine, "rx_marked") + forwarded,
	};
	const uint64_t all = now.all - last->all, named = now.named - last->named;

	*last = now;
	return all == 0 ? 0 : (double)named / (double)all;
}

double offload_busy(const struct wire_engine *engine, uint64_t us, bool gathers)
{
	struct station *station = station_of(engine);
	const uint64_t busy = station->busy_cycles, idle = station->idle_cycles;
	const uint64_t end_us = monotonic_us() + us;
	uint64_t tsc = rte_rdtsc();

	do {
		for (unsigned i = 0; i < BUSY_STEP; i++)
			if (turn_timed(station, &tsc) && gathers)
				turn_gather(station, &tsc);
	} while (monotonic_us() < end_us);
	const double worked = (double)(station->busy_cycles - busy);

	return worked / (worked + (double)(station->idle_cycles - idle));
}

/* Nothing is done for so long. */
static void spend(uint64_t cycles)
{
	const uint64_t end = rte_rdtsc() + cycles;

	while (rte_rdtsc() < end)
		;
}

/* `cycles` are spent on each packet. */
static double floor_of(const struct wire_engine *engine, uint64_t us, bool gathers, double cycles)
{
	struct rte_mbuf *burst[BENCH_BURST];
	const struct bench_source *source = &engine->source;
	const uint64_t end_us = monotonic_us() + us;
	uint64_t tsc = rte_rdtsc(), idle = 0;
	const uint64_t begin = tsc;

	do {
		unsigned brought = 0;
		bool more_wait = false;

		for (unsigned side = 0; side < 2; side++) {
			uint16_t n =
				rte_eth_rx_burst(source->port[side]->id, 0, burst, BENCH_BURST);

			if (cycles > 0 && n > 0)
				spend((uint64_t)(cycles * n));
			uint16_t sent = rte_eth_tx_burst(source->port[!side]->id, 0, burst, n);

			rte_pktmbuf_free_bulk(&burst[sent], n - sent);
			brought += n;
			more_wait |= n == BENCH_BURST;
		}
		uint64_t now = rte_rdtsc();

		if (brought == 0)
			idle += now - tsc;
		tsc = now;
		/* as turn_gather() does */
		if (gathers && brought > 0)
			idle += turn_wait(more_wait, &tsc);
	} while (monotonic_us() < end_us);
	return 1 - (double)idle / (double)(tsc - begin);
}

double offload_floor(const struct wire_engine *engine, uint64_t us, bool gathers)
{
	return floor_of(engine, us, gathers, 0);
}

int offload_times_init(void)
{
	return rte_mbuf_dyn_rx_timestamp_register(&timestamp_field, &timestamp_flag) < 0
		       ? -rte_errno
		       : 0;
}

/* Of IPv4 without options. */
static struct ends ends_of(const struct rte_mbuf *packet)
{
	const uint8_t *frame = rte_pktmbuf_mtod(packet, const uint8_t *);
	struct ends ends;

	memcpy(&ends, &frame[ENDS_AT], offsetof(struct ends, proto));
	ends.proto = frame[PROTO_AT];
	return ends;
}

/* Of addresses and ports, as a frame and struct ends have them: flows that differ in their protocol alone are one. */
static uint64_t hash_of(const void *begin)
{
	uint64_t addresses;
	uint32_t ports;

	memcpy(&addresses, begin, sizeof(addresses));
	memcpy(&ports, (const uint8_t *)begin + sizeof(addresses), sizeof(ports));
	return (addresses ^ ports * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* By other bits than those that its place is of. */
/* Processors, before the bench took one for itself. */
static cpu_set_t allowed;

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

static uint16_t leave(
	uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t n, void *context)
{
	const uint64_t tsc = rte_rdtsc();
	const double ns_a_cycle = 1e9 / (double)rte_get_tsc_hz();

	(void)port;
	(void)queue;
	(void)context;
	for (uint16_t i = 0; i < n; i++) {
		if ((packets[i]->ol_flags & timestamp_flag) == 0)
			continue;
		const uint64_t hash =
			hash_of(rte_pktmbuf_mtod_offset(packets[i], const uint8_t *, ENDS_AT));

		if (!is_watched(hash))
			continue;
		uint64_t came =
			*RTE_MBUF_DYNFIELD(packets[i], timestamp_field, rte_mbuf_timestamp_t *);
		uint64_t ns = (uint64_t)((double)(tsc - came) * ns_a_cycle);

		if (watch.bare) {
			histogram_add(&watch.times->bare, ns);
			continue;
		}
		if (is_first(hash))
			histogram_add(&watch.times->first, ns);
		if (++watch.left % END_EACH == 0 && watch.n_end < END_MOST)
			watch.end[watch.n_end++] = ends_of(packets[i]);
	}
	return n;
}

static int watch_begin(const struct wire_engine *engine, struct offload_times *times)
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
	const struct flow_table *table = &station_of(engine)->worker.shard->table;

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

static void watch_changes(const struct wire_engine *engine)
{
	const struct agent *agent = station_of(engine)->worker.agent;
	struct offload_change changes[READ];
	unsigned n;

	if (agent == NULL)
		return;
	do {
		n = change_read(&agent->changes, &watch.changes, changes, READ);
		for (unsigned i = 0; i < n; i++)
			watch_change(engine, &changes[i]);
	} while (n == READ);
}

/* The flow has no record any more: its next packet is a first one. */
static void end_flow(const struct wire_engine *engine, const struct ends *ends)
{
	struct flow_shard *shard = station_of(engine)->worker.shard;
	const struct ends back = {
		{ends->address[1], ends->address[0]}, {ends->port[1], ends->port[0]}, ends->proto};
	uint8_t address[2][16] = {{0}};
	struct flow_key key = {
		.proto = (uint8_t)ends->proto, .version_wire = FLOW_KEY_VERSION_WIRE(4, 0)};
	uint64_t *word, bit;

	for (unsigned i = 0; i < 2; i++)
		memcpy(address[i], &ends->address[i], sizeof(ends->address[i]));
	flow_key_make(&key, address[0], address[1], ends->port[0], ends->port[1]);
	uint32_t position =
		flow_table_find(&shard->table, &key, flow_key_hash(&engine->plane->secret, &key));

	if (position == FLOW_NONE)
		return;
	flow_shard_kill(shard, position);
	bit = bit_of(hash_of(ends), &word);
	*word &= ~bit;
	/* it may be another's that is watched */
	if (is_watched(hash_of(&back))) {
		bit = bit_of(hash_of(&back), &word);
		*word &= ~bit;
	}
}

/*
 * In the first instant nearly every packet is a first one, and waits for the others. So flows are ended while all go on,
 * and what is looked at is how they begin anew.
 */
static void take_first_times(const struct wire_engine *engine)
{
	const uint64_t end_us = monotonic_us() + STEADY_US;

	memset(&watch.times->first, 0, sizeof(watch.times->first));
	while (monotonic_us() < end_us) {
		for (unsigned i = 0; i < watch.n_end; i++)
			end_flow(engine, &watch.end[i]);
		flow_shard_flush(station_of(engine)->worker.shard);
		watch.n_end = 0;
		offload_busy(engine, 0, false);
	}
}

/*
 * What the machine and the simulated NIC make of the same load, where each packet takes as long: who is interrupted for
 * 40 us at every tick of the kernel's has packets that waited as long, and the more the busier he is.
 */
static void take_bare_times(const struct wire_engine *engine, double cycles)
{
	watch.bare = true;
	floor_of(engine, STEADY_US / 8, false, cycles);
	memset(&watch.times->bare, 0, sizeof(watch.times->bare));
	floor_of(engine, STEADY_US, false, cycles);
	watch.bare = false;
}

/* Rules are being made, be it that one alone takes long. */
static bool is_making(const struct wire_engine *engine)
{
	const struct agent *agent = station_of(engine)->worker.agent;

	return agent != NULL && (agent->port[0].counters.flows[OFFLOAD_INSTALLING] != 0 ||
					agent->port[1].counters.flows[OFFLOAD_INSTALLING] != 0);
}

/* Until the NIC has the flows that it is to have. */
static void settle(const struct wire_engine *engine)
{
	const uint64_t begin_us = monotonic_us();
	uint64_t quiet_us = begin_us, rules = 0, now_us;

	while (!plane_tend(engine->plane) && monotonic_us() < begin_us + SETTLE_US)
		sched_yield();
	do {
		offload_busy(engine, 10000, false);
		now_us = monotonic_us();
		if (rules_of(engine) != rules || is_making(engine))
			quiet_us = now_us;
		rules = rules_of(engine);
		if (watch.times != NULL)
			watch_changes(engine);
	} while (now_us - quiet_us < QUIET_US && now_us - begin_us < SETTLE_US);
}

void offload_pin(void)
{
	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	bench_pin();
}

/* Installers and simulated NICs run elsewhere, as `millrace run` has it. */
static int open_elsewhere(struct wire_engine *engine, const struct bench_source_config *source,
	const struct plane_offload *offload, struct error *error)
{
	struct wire_schedule mine;

	wire_leave_schedule(&allowed, &mine);
	int ret = wire_engine_open_as(engine, source, offload, error);

	wire_resume_schedule(&mine);
	return ret;
}

int offload_open(struct wire_engine *engine, const struct offload_load *load,
	const struct offload_setup *setup)
{
	const bool on = setup->mode != IN_SOFTWARE;
	char words[96];
	const struct bench_source_config source = {
		.flows = load->flows,
		.load = load->load,
		.capture = {load->streams ? NULL : load->capture[0],
			load->streams ? NULL : load->capture[1]},
		.words = words,
		.number = setup->number,
		.offload_places = on ? SLOTS : 0,
	};
	const struct plane_offload offload = {
		.on = on,
		.threshold = setup->threshold,
		.slots = SLOTS,
		.verify_one_in = 1,
		.counters = true,
		.full = setup->mode == WHOLE,
	};
	struct error error;

	snprintf(words, sizeof(words), "profile=cx5,nic=nic%u,pace=%" PRIu64 "%s", setup->number,
		setup->pps, load->streams ? "" : ",written=" RTE_STR(WRITTEN));
	int ret = open_elsewhere(engine, &source, &offload, &error);

	if (ret < 0) {
		offload_say(error.text);
		return ret;
	}
	ret = setup->times == NULL ? 0 : watch_begin(engine, setup->times);
	if (ret < 0)
		offload_say("packets cannot be watched where they leave");
	else
		settle(engine);
	if (ret == 0 && setup->packets) {
		take_first_times(engine);
		take_bare_times(engine, setup->cycles);
	}
	return ret;
}

void offload_close(struct wire_engine *engine)
{
	for (unsigned side = 0; watch.times != NULL && side < 2; side++)
		if (watch.callback[side] != NULL)
			rte_eth_remove_tx_callback(
				engine->source.port[side]->id, 0, watch.callback[side]);
	free(watch.seen);
	memset(&watch, 0, sizeof(watch));
	wire_engine_close(engine);
}
