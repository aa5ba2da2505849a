/* SPDX-License-Identifier: BSD-3-Clause */
/* Which stations there are, what they receive and send, and the rings between them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

#include "dataplane/ask.h"
#include "dataplane/handoff.h"
#include "dataplane/pipeline.h"
#include "dataplane/turn.h"
#include "plane/plane_private.h"

/* Packets in all rings that feed one station, and in one of them. */
#define RINGS_PACKETS 4096
#define RING_MIN 256
#define RING_MAX 2048

static bool split(const struct plane *plane)
{
	return plane->config.threads == PLANE_SPLIT;
}

static unsigned shard_place(const struct plane *plane, unsigned shard)
{
	return split(plane) ? shard + 1 : shard;
}

struct station *plane_shard_station(const struct plane *plane, unsigned shard)
{
	return &plane->stations[shard_place(plane, shard)];
}

static struct station *sender(const struct plane *plane)
{
	return &plane->stations[plane->n_stations - 1];
}

/* Frames of any length may have to go out by a port or its peer, or what it takes may change. */
static uint32_t ports_of_any_length(const struct plane *plane)
{
	uint32_t ports = 0;

	for (unsigned i = 0; i < plane_n_ports(plane); i++)
		if (plane->config.port[i]->any_length)
			ports |= UINT32_C(1) << i | UINT32_C(1) << plane->config.topology.peer[i];
	return ports;
}

static void make_stations(struct plane *plane)
{
	unsigned place = 0;

	if (split(plane))
		station_init(&plane->stations[place++], STATION_RX, 0, 0);
	for (unsigned i = 0; i < plane->config.n_workers; i++, place++)
		station_init(&plane->stations[place], STATION_WORKER, i, place);
	if (split(plane))
		station_init(&plane->stations[place], STATION_TX, 0, place);
	for (unsigned i = 0; i < plane->n_stations; i++) {
		struct station *station = &plane->stations[i];

		station->poll_always = plane->config.poll_always;
		station->pause = &plane->paused;
		station->ask.patience = &plane->patience;
		station->clock = &plane->clock;
		station->secret = &plane->secret;
		station->zone_vlan = plane->config.zone_vlan;
		station->any_length = station->careful = ports_of_any_length(plane);
		station->topology = &plane->config.topology;
		station->n_ports = plane_n_ports(plane);
		station->n_stations = plane->n_stations;
		station->worker.steer = plane->steer;
		if (station->kind == STATION_WORKER && plane->config.n_workers > 1)
			station->board = &plane->board;
		station->sink = plane->config.sink;
		station->room = plane->config.room;
		station->sink_context = plane->config.sink_context;
		for (unsigned shard = 0; shard < plane->config.n_workers; shard++)
			station->shard_station[shard] = (uint8_t)shard_place(plane, shard);
	}
}

/* Has the port a queue for each worker, to which it brings what belongs there? */
static bool brings(const struct plane *plane, const struct port *port)
{
	return port->rss != 0 && !split(plane) && port->n_rx == plane->config.n_workers;
}

static void add_rx(struct plane *plane, struct station *station, unsigned number, unsigned queue)
{
	const struct port *port = plane->config.port[number];

	station->rx[station->n_rx++] = (struct station_rx){
		.live = port,
		.port_id = port->id,
		.queue = (uint16_t)queue,
		.from.port = (uint8_t)number,
		.from.domain = plane->config.topology.domain[number],
		.from.place = plane->config.topology.place[number],
		.from.peer = plane->config.topology.peer[number],
		.from.trusted = brings(plane, port) && port->rss_pattern == plane->steer.rss_pattern
					? (uint8_t)port->rss
					: 0,
		.careful = true,
		.checksums_to_look_at = STATION_CHECKSUMS,
	};
}

/* Queues of a port go to workers in turn; with one queue each, different ports begin with different ones. */
static void deal_rx(struct plane *plane, unsigned number)
{
	const struct port *port = plane->config.port[number];
	unsigned first = port->n_rx == plane->config.n_workers ? 0 : number;

	for (unsigned queue = 0; queue < port->n_rx; queue++) {
		unsigned worker = (first + queue) % plane->config.n_workers;
		struct station *station =
			split(plane) ? &plane->stations[0] : plane_shard_station(plane, worker);

		add_rx(plane, station, number, queue);
	}
}

/* A port's tx queue has one user; workers without one hand over to one that has. */
static void deal_tx(struct plane *plane, unsigned number)
{
	const struct port *port = plane->config.port[number];
	unsigned n_workers = plane->config.n_workers;
	unsigned first = port->n_tx == n_workers ? 0 : number;

	assert(port->n_tx != 0);

	for (unsigned i = 0; i < n_workers; i++) {
		struct station_tx *tx = &plane_shard_station(plane, i)->tx[number];
		unsigned turn = (i + n_workers - first % n_workers) % n_workers;

		*tx = (struct station_tx){.port_id = port->id, .live = port};
		if (split(plane)) {
			tx->via = (uint8_t)sender(plane)->place;
		} else if (turn < port->n_tx) {
			tx->own = true;
			tx->queue = (uint16_t)turn;
			tx->packet = port->packet_tx;
		} else {
			unsigned owner = (first + turn % port->n_tx) % n_workers;

			tx->via = (uint8_t)shard_place(plane, owner);
		}
	}
	if (split(plane))
		sender(plane)->tx[number] = (struct station_tx){
			.own = true,
			.port_id = port->id,
			.live = port,
			.packet = port->packet_tx,
		};
}

static unsigned n_stations(const struct plane *plane)
{
	return plane->config.n_workers + (split(plane) ? 2 : 0);
}

static unsigned ring_size(const struct plane *plane)
{
	unsigned size = RINGS_PACKETS / n_stations(plane);

	return RTE_MIN(RTE_MAX(size, (unsigned)RING_MIN), (unsigned)RING_MAX);
}

static bool connected(
	const struct plane *plane, const struct station *from, const struct station *to)
{
	if (from == to)
		return false;
	if (!split(plane))
		return true;
	return (from->kind == STATION_RX && to->kind == STATION_WORKER) ||
	       (from->kind == STATION_WORKER && to->kind == STATION_TX);
}

static int make_rings(struct plane *plane)
{
	plane->rings = calloc(STATION_MAX * STATION_MAX, sizeof(plane->rings[0]));
	if (plane->rings == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plane->n_stations; i++) {
		for (unsigned j = 0; j < plane->n_stations; j++) {
			struct station *from = &plane->stations[i], *to = &plane->stations[j];

			if (!connected(plane, from, to))
				continue;
			struct ring *ring = &plane->rings[plane->n_rings++];

			ring->mailbox =
				mailbox_create("ring", sizeof(ring_element), ring_size(plane));
			if (ring->mailbox == NULL)
				return -ENOMEM;
			from->to[j] = ring;
			to->from[i] = ring;
		}
	}
	return 0;
}

static int make_parser(struct plane *plane, struct station *station, unsigned n_parsers)
{
	const struct parser_config config = {
		.extract = {.secret = &plane->secret, .zone_vlan = plane->config.zone_vlan},
		.steer = plane->steer,
		.self = station->kind == STATION_WORKER ? station->number : 0,
		.shared = n_parsers > 1,
		.max_datagrams = plane->config.tie_fragments
					 ? fragments_for(plane->config.flows) / n_parsers
					 : 0,
		.max_held = PLANE_MAX_HELD / n_parsers,
		.max_held_datagram = PLANE_MAX_HELD_DATAGRAM,
		.max_wait_us = PLANE_MAX_WAIT_US,
		.pace = PLANE_PACE,
		.tcp_strict = plane->config.tcp_strict,
		.pool = plane->pools[0],
		.hand_over = handoff_to_shard,
		.context = station,
	};

	return parser_create(&station->parser, &config);
}

/* The worker's own policers. */
static int make_policers(const struct plane *plane, struct act *act)
{
	const uint32_t n = plane->config.n_policers;
	struct error error;

	if (n == 0)
		return 0;
	act->context.policers = calloc(n, sizeof(*act->context.policers));
	if (act->context.policers == NULL)
		return -ENOMEM;
	act->context.n_policers = n;
	for (uint32_t i = 0; i < n; i++) {
		int ret =
			policer_init(&act->context.policers[i], &plane->config.policers[i], &error);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int make_policy(struct plane *plane, struct station *station)
{
	struct policy_others others = plane->config.policy;

	if (plane->rules != NULL)
		others = (struct policy_others){
			.context = plane->rules,
			.decide = rules_decide,
			.classify = rules_classify,
			.count = rules_count_packets,
			.generation = rules_generation(plane->rules),
		};
	if (others.generation == NULL)
		others.generation = &plane->policy_generation;
	policy_init(&station->policy, plane->blocks, &others, &plane->config.topology, plane->qsbr,
		station->number);
	if (station->policy.qsbr != NULL)
		station->worker.policy = &station->policy;
	station->act.programs = plane->programs;
	station->act.context.next_hops = plane->next_hops;
	station->act.context.random = station->number;
	return make_policers(plane, &station->act);
}

/* A bit for each domain whose packets show that both ends take part: of two ports, and not of a wire with one arm. */
static uint16_t two_sided(const struct plane *plane)
{
	const struct topology *topology = &plane->config.topology;
	uint16_t domains = 0;

	for (unsigned i = 0; i < topology->n_domains && !plane->config.one_armed; i++)
		if (topology_is_wire(topology, i))
			domains |= (uint16_t)(1u << i);
	return domains;
}

static int make_shard(struct plane *plane, struct station *station)
{

	const struct flow_shard_config config = {
		.capacity = flow_shard_part(plane->config.flows, plane->config.n_workers),
		.secret = &plane->secret,
		.timeouts = plane->config.timeouts,
		.active_s = plane->config.active_s,
		.tcp_strict = plane->config.tcp_strict,
		.two_sided = two_sided(plane),
		.paced = true,
		.worker = (uint8_t)station->number,
		.mapping = plane->config.mapping,
		.sink = station_take_reports,
		.sink_context = station,
		.room = station_room,
		.policy = policy_of_flows(&station->policy),
	};
	int ret = flow_shard_create(&station->worker.shard, &config);

	if (ret == 0)
		flow_shard_begin(station->worker.shard, tsc_clock_origin_us(&plane->clock), 0);
	return ret;
}

static int equip(struct plane *plane, struct station *station)
{
	int ret = 0;

	station->events = mailbox_create("events", sizeof(struct path_event), PLANE_EVENTS);
	if (station->events == NULL)
		return -ENOMEM;
	if (station->kind == STATION_RX)
		ret = make_parser(plane, station, 1);
	else if (station->kind == STATION_WORKER && !split(plane))
		ret = make_parser(plane, station, plane->config.n_workers);
	if (ret == 0 && station->kind == STATION_WORKER)
		ret = make_policy(plane, station);
	if (ret == 0 && station->kind == STATION_WORKER)
		ret = make_shard(plane, station);
	if (station->kind == STATION_WORKER && !split(plane) && plane->config.offload.on)
		station->burst = STATION_MARKED_BURST;
	if (ret == 0 && station->kind == STATION_WORKER)
		ret = pipeline_create(&station->pipeline, &plane->secret, plane->config.offload.on);
	return ret;
}

/* The shard function is the NIC's where any port spreads by it. */
static void choose_steering(struct plane *plane)
{
	plane->steer.n_shards = plane->config.n_workers;
	if (plane->config.sharding == PLANE_SHARDING_SOFTWARE)
		return;
	for (unsigned i = 0; plane->config.n_workers > 1 && i < plane_n_ports(plane); i++)
		if (brings(plane, plane->config.port[i]))
			plane->steer.rss_pattern = plane->config.port[i]->rss_pattern;
}

unsigned plane_buffers(const struct plane *plane)
{
	unsigned n_workers = plane->config.n_workers;
	unsigned n_rings = split(plane) ? 2 * n_workers : n_workers * (n_workers - 1);
	unsigned station =
		STATION_BURST * (plane_n_ports(plane) + 5) + 2 * RTE_MEMPOOL_CACHE_MAX_SIZE;

	return n_rings * ring_size(plane) + n_stations(plane) * station +
	       (plane->config.tie_fragments ? PLANE_MAX_HELD : 0);
}

/*
 * Chooses processors: one each, control's own left alone, as far as there are enough. Installers have those that are
 * left: a worker turns all the time, and who shares its processor waits, or takes its time.
 */
static void choose_processors(struct plane *plane)
{
	cpu_set_t allowed;
	int cpus[CPU_SETSIZE];
	unsigned n = 0;

	if (!plane->config.pin || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
	if (n < plane->n_stations)
		return;
	for (unsigned i = 0; i < plane->n_stations; i++)
		plane->stations[i].cpu = cpus[n - plane->n_stations + i];
	for (unsigned i = 0; i < n - plane->n_stations; i++)
		CPU_SET(cpus[i], &plane->others);
}

/* Action programs, and next hops for them. */
static int make_programs(struct plane *plane)
{
	const uint32_t hops = plane->config.max_next_hops;
	/* each rule may have one of its own */
	const uint32_t n = RTE_MIN(plane->config.max_programs, (uint32_t)PROGRAMS_MAX) +
			   RTE_MIN(plane->config.max_rules, (uint32_t)PROGRAMS_MAX);

	if (hops != 0) {
		plane->next_hops = next_hops_create(hops, hops, plane->qsbr);
		if (plane->next_hops == NULL)
			return -ENOMEM;
	}
	if (n == 0)
		return 0;
	static_assert(PROGRAMS_DROP == FLOW_VERDICT_DROP, "records name it by that number");
	/* and the one that drops */
	plane->programs = programs_create(RTE_MIN(n + 1, (uint32_t)PROGRAMS_MAX), plane->qsbr);
	return plane->programs == NULL ? -ENOMEM : programs_make_drop(plane->programs);
}

static int make_rules(struct plane *plane)
{
	const struct rules_config config = {
		.max_rules = plane->config.max_rules,
		.n_workers = plane->config.n_workers,
		.topology = &plane->config.topology,
		.zone_vlan = plane->config.zone_vlan,
		.programs = plane->programs,
		.secret = &plane->secret,
		.qsbr = plane->qsbr,
	};

	return config.max_rules == 0 ? 0 : rules_create(&plane->rules, &config);
}

/* What flows are decided by, and the variable that tells when its readers have gone on. */
static int make_decisions(struct plane *plane)
{
	const unsigned n = plane->config.n_workers;
	struct blocks_config config = {
		.max_entries = plane->config.max_blocks,
		.max_reasons = plane->config.max_block_reasons,
		.n_workers = n,
		.secret = &plane->secret,
	};
	int ret;

	if (config.max_entries == 0 && plane->config.policy.decide == NULL &&
		plane->config.max_rules == 0)
		return 0;
	plane->qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(n), (size_t)64));
	if (plane->qsbr == NULL || rte_rcu_qsbr_init(plane->qsbr, n) != 0)
		return -ENOMEM;
	ret = make_programs(plane);
	if (ret == 0)
		ret = make_rules(plane);
	if (ret < 0 || config.max_entries == 0)
		return ret;
	config.qsbr = plane->qsbr;
	return blocks_create(&plane->blocks, &config);
}

int plane_wire_up(struct plane *plane, struct error *error)
{
	int ret;

	choose_steering(plane);
	if (plane->config.sharding == PLANE_SHARDING_RSS && plane->config.n_workers > 1 &&
		plane->steer.rss_pattern == 0)
		return error_set(error, -ENOTSUP,
			"sharding: no port can spread flows over %u workers by RSS%s; software or "
			"auto "
			"works with any",
			plane->config.n_workers,
			split(plane) ? " while one thread receives for all" : "");
	plane->stations = aligned_alloc(
		_Alignof(struct station), n_stations(plane) * sizeof(plane->stations[0]));
	if (plane->stations == NULL)
		return error_set(error, -ENOMEM, "no memory for %u worker%s",
			plane->config.n_workers, plane->config.n_workers == 1 ? "" : "s");
	plane->n_stations = n_stations(plane);
	ask_be_patient(&plane->patience);
	make_stations(plane);
	choose_processors(plane);
	for (unsigned i = 0; i < plane_n_ports(plane); i++) {
		deal_rx(plane, i);
		deal_tx(plane, i);
	}
	ret = make_decisions(plane);
	if (ret < 0)
		return error_set(error, ret,
			"no memory for %u block%s, %u rule%s and %u action program%s",
			plane->config.max_blocks, plane->config.max_blocks == 1 ? "" : "s",
			plane->config.max_rules, plane->config.max_rules == 1 ? "" : "s",
			plane->config.max_programs, plane->config.max_programs == 1 ? "" : "s");
	ret = make_rings(plane);
	for (unsigned i = 0; ret == 0 && i < plane->n_stations; i++)
		ret = equip(plane, &plane->stations[i]);
	if (ret < 0)
		return error_set(error, ret, "no memory for %u flow%s and %u worker%s",
			plane->config.flows, plane->config.flows == 1 ? "" : "s",
			plane->config.n_workers, plane->config.n_workers == 1 ? "" : "s");
	return plane_offload_make(plane, error);
}

void plane_take_down(struct plane *plane)
{
	plane_offload_take_down(plane);
	for (unsigned i = 0; i < plane->n_stations; i++) {
		struct station *station = &plane->stations[i];

		flow_shard_destroy(station->worker.shard);
		free(station->act.context.policers);
		parser_destroy(station->parser);
		pipeline_destroy(station->pipeline);
		mailbox_destroy(station->events);
	}
	blocks_destroy(plane->blocks);
	rules_destroy(plane->rules);
	programs_destroy(plane->programs);
	next_hops_destroy(plane->next_hops);
	free(plane->qsbr);
	for (unsigned i = 0; i < plane->n_rings; i++)
		mailbox_destroy(plane->rings[i].mailbox);
	free(plane->rings);
	free(plane->stations);
}
