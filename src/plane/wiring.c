/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lcores there are, what they receive and send, and the rings between them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

#include "dataplane/handoff_take.h"
#include "dataplane/pipeline.h"
#include "dataplane/poll.h"
#include "plane/ask.h"
#include "plane/plane_private.h"

/* Changes of next hops that may wait for the workers, beside one of each. */
#define NEXT_HOP_CHANGES 4096
/* Packets in all rings that feed one lcore, and in one of them. */
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

struct lcore *plane_shard_lcore(const struct plane *plane, unsigned shard)
{
	return &plane->lcores[shard_place(plane, shard)];
}

static struct lcore *sender(const struct plane *plane)
{
	return &plane->lcores[plane->n_lcores - 1];
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

static void make_lcores(struct plane *plane)
{
	unsigned place = 0;

	if (split(plane))
		lcore_init(&plane->lcores[place++], LCORE_RX, 0, 0);
	for (unsigned i = 0; i < plane->config.n_workers; i++, place++)
		lcore_init(&plane->lcores[place], LCORE_WORKER, i, place);
	if (split(plane))
		lcore_init(&plane->lcores[place], LCORE_TX, 0, place);
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];

		lcore->poll_always = plane->config.poll_always;
		lcore->pause = &plane->paused;
		lcore->settings = &plane->settings;
		lcore->ask = &plane->asks[i];
		lcore->ask->patience = &plane->patience;
		lcore->answer = ask_answer;
		lcore->clock = &plane->clock;
		lcore->secret = &plane->secret;
		lcore->zone_vlan = plane->config.zone_vlan;
		lcore->any_length = lcore->careful = ports_of_any_length(plane);
		lcore->topology = &plane->config.topology;
		lcore->n_ports = plane_n_ports(plane);
		lcore->n_lcores = plane->n_lcores;
		lcore->worker.steer = plane->steer;
		if (lcore->kind == LCORE_WORKER && plane->config.n_workers > 1)
			lcore->board = &plane->board;
		lcore->sink = plane->config.sink;
		lcore->room = plane->config.room;
		lcore->sink_context = plane->config.sink_context;
		for (unsigned shard = 0; shard < plane->config.n_workers; shard++)
			lcore->shard_lcore[shard] = (uint8_t)shard_place(plane, shard);
	}
}

/* Has the port a queue for each worker, to which it brings what belongs there? */
static bool brings(const struct plane *plane, const struct port *port)
{
	return port->rss != 0 && !split(plane) && port->n_rx == plane->config.n_workers;
}

static void add_rx(struct plane *plane, struct lcore *lcore, unsigned number, unsigned queue)
{
	const struct port *port = plane->config.port[number];

	lcore->rx[lcore->n_rx++] = (struct lcore_rx){
		.live = port,
		.port_id = port->id,
		.queue = (uint16_t)queue,
		.from.port = (uint8_t)number,
		.from.domain = plane->config.topology.domain[number],
		.from.place = plane->config.topology.place[number],
		.from.peer = plane->config.topology.peer[number],
		.from.router = plane->config.topology.router[plane->config.topology.domain[number]],
		.from.trusted = brings(plane, port) && port->rss_pattern == plane->steer.rss_pattern
					? (uint8_t)port->rss
					: 0,
		.careful = true,
		.checksums_to_look_at = LCORE_CHECKSUMS,
	};
}

/* Queues of a port go to workers in turn; with one queue each, different ports begin with different ones. */
static void deal_rx(struct plane *plane, unsigned number)
{
	const struct port *port = plane->config.port[number];
	unsigned first = port->n_rx == plane->config.n_workers ? 0 : number;

	for (unsigned queue = 0; queue < port->n_rx; queue++) {
		unsigned worker = (first + queue) % plane->config.n_workers;
		struct lcore *lcore =
			split(plane) ? &plane->lcores[0] : plane_shard_lcore(plane, worker);

		add_rx(plane, lcore, number, queue);
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
		struct lcore_tx *tx = &plane_shard_lcore(plane, i)->tx[number];
		unsigned turn = (i + n_workers - first % n_workers) % n_workers;

		*tx = (struct lcore_tx){.port_id = port->id, .live = port};
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
		sender(plane)->tx[number] = (struct lcore_tx){
			.own = true,
			.port_id = port->id,
			.live = port,
			.packet = port->packet_tx,
		};
}

static unsigned n_lcores(const struct plane *plane)
{
	return plane->config.n_workers + (split(plane) ? 2 : 0);
}

static unsigned ring_size(const struct plane *plane)
{
	unsigned size = RINGS_PACKETS / n_lcores(plane);

	return RTE_MIN(RTE_MAX(size, (unsigned)RING_MIN), (unsigned)RING_MAX);
}

static bool connected(const struct plane *plane, const struct lcore *from, const struct lcore *to)
{
	if (from == to)
		return false;
	if (!split(plane))
		return true;
	/* a worker hands ICMP errors to others, after it has been asked about the flow that they quote */
	return (from->kind == LCORE_RX && to->kind == LCORE_WORKER) ||
	       (from->kind == LCORE_WORKER && to->kind == LCORE_TX) ||
	       (from->kind == LCORE_WORKER && to->kind == LCORE_WORKER &&
		       plane->config.max_rules != 0);
}

static int make_rings(struct plane *plane)
{
	plane->rings = calloc(LCORE_MAX * LCORE_MAX, sizeof(plane->rings[0]));
	if (plane->rings == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		for (unsigned j = 0; j < plane->n_lcores; j++) {
			struct lcore *from = &plane->lcores[i], *to = &plane->lcores[j];

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

static int make_parser(struct plane *plane, struct lcore *lcore, unsigned n_parsers)
{
	const struct parser_config config = {
		.extract = {.secret = &plane->secret, .zone_vlan = plane->config.zone_vlan},
		.steer = plane->steer,
		.self = lcore->kind == LCORE_WORKER ? lcore->number : 0,
		.shared = n_parsers > 1,
		.max_datagrams = plane->config.tie_fragments
					 ? fragments_for(plane->config.flows) / n_parsers
					 : 0,
		.max_held = PLANE_MAX_HELD / n_parsers,
		.max_held_datagram = PLANE_MAX_HELD_DATAGRAM,
		.max_wait_us = PLANE_MAX_WAIT_US,
		.pace = PLANE_PACE,
		.tcp_strict = plane->config.tcp_strict,
		.relates = plane->config.max_rules != 0,
		.pool = plane->pools[0],
		.drops = &lcore->drops,
		.hand_over = handoff_to_shard,
		.context = lcore,
	};

	return parser_create(&lcore->parser, &config);
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

static int make_policy(struct plane *plane, struct lcore *lcore)
{
	struct policy_others others = plane->config.policy;

	if (plane->rules != NULL)
		others = (struct policy_others){
			.context = plane->rules,
			.decide = rules_decide,
			.decide_burst = rules_decide_burst,
			.classify = rules_classify,
			.count = rules_count_packets,
			.leave = rules_leave,
			.seen = rules_see,
			.logs = rules_logs,
			.tell = rules_tell_flow,
			.generation = rules_generation(plane->rules),
		};
	if (others.generation == NULL)
		others.generation = &plane->policy_generation;
	if (plane_has_routers(plane)) {
		others.routes = plane->routes;
		others.routes_generation = &plane->routes_generation;
		lcore->act.routes = plane->routes;
	}
	policy_init(&lcore->policy, plane->blocks, &others, &plane->config.topology, plane->qsbr,
		lcore->number);
	lcore->policy.log = lcore_log;
	lcore->policy.log_context = lcore;
	rate_limit_init(&lcore->reject_limit, plane->config.reject_rate, plane->config.n_workers);
	rate_limit_init(&lcore->log_limit, plane->config.log_rate, plane->config.n_workers);
	if (lcore->policy.qsbr != NULL)
		lcore->worker.policy = &lcore->policy;
	lcore->act.programs = plane->programs;
	lcore->act.context.next_hops = plane->next_hops;
	lcore->act.context.random = lcore->number;
	lcore->copies = plane->copies[lcore->number];
	if (plane->rules != NULL) {
		lcore->act.context.meters = rules_meters(plane->rules);
		lcore->act.context.n_meters = RULES_MAX_METERS;
	}
	return make_policers(plane, &lcore->act);
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

static int make_shard(struct plane *plane, struct lcore *lcore)
{

	const struct flow_shard_config config = {
		.capacity = flow_shard_part(plane->config.flows, plane->config.n_workers),
		.secret = &plane->secret,
		.timeouts = plane->config.timeouts,
		.active_s = plane->config.active_s,
		.tcp_strict = plane->config.tcp_strict,
		.two_sided = two_sided(plane),
		.octets = plane->config.octets,
		.measure = plane->config.measure,
		.measures = plane->config.measure_what == NULL ? NULL : policy_measures,
		.measures_context = plane->config.measure_what,
		.paced = true,
		.worker = (uint8_t)lcore->number,
		.mapping = plane->config.mapping,
		.sink = lcore_take_reports,
		.sink_context = lcore,
		.room = lcore_room,
		.policy = policy_of_flows(&lcore->policy),
	};
	int ret = flow_shard_create(&lcore->worker.shard, &config);

	if (ret == 0)
		flow_shard_begin(lcore->worker.shard, tsc_clock_origin_us(&plane->clock), 0);
	return ret;
}

static int equip(struct plane *plane, struct lcore *lcore)
{
	int ret = 0;

	lcore->events = mailbox_create("events", sizeof(struct path_event), PLANE_EVENTS);
	lcore->drops.samples = mailbox_create("drops", sizeof(struct drop_sample), DROP_SAMPLES);
	if (lcore->events == NULL || lcore->drops.samples == NULL)
		return -ENOMEM;
	if (lcore->kind == LCORE_RX)
		ret = make_parser(plane, lcore, 1);
	else if (lcore->kind == LCORE_WORKER && !split(plane))
		ret = make_parser(plane, lcore, plane->config.n_workers);
	if (ret == 0 && lcore->kind == LCORE_WORKER)
		ret = make_policy(plane, lcore);
	if (ret == 0 && lcore->kind == LCORE_WORKER)
		ret = make_shard(plane, lcore);
	if (lcore->kind == LCORE_WORKER && !split(plane) && plane->config.offload.on)
		lcore->burst = LCORE_MARKED_BURST;
	if (ret == 0 && lcore->kind == LCORE_WORKER)
		ret = pipeline_create(&lcore->pipeline, &plane->secret, plane->config.offload.on);
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
	unsigned n_rings = split(plane) ? 2 * n_workers : 0;

	if (!split(plane) || plane->config.max_rules != 0)
		n_rings += n_workers * (n_workers - 1);
	unsigned lcore = LCORE_BURST * (plane_n_ports(plane) + 5) + 2 * RTE_MEMPOOL_CACHE_MAX_SIZE;

	return n_rings * ring_size(plane) + n_lcores(plane) * lcore +
	       (plane->config.tie_fragments ? PLANE_MAX_HELD : 0) +
	       (plane->config.n_captures > 0 ? n_workers * PLANE_COPIES : 0) +
	       (plane_has_routers(plane) ? n_lcores(plane) * 2 * PUNT_RING : 0);
}

/*
 * Chooses processors: one each, control's own left alone, as far as there are enough. Installers have those that are
 * left: a worker polls all the time, and who shares its processor waits, or takes its time.
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
	if (n < plane->n_lcores)
		return;
	for (unsigned i = 0; i < plane->n_lcores; i++)
		plane->lcores[i].cpu = cpus[n - plane->n_lcores + i];
	for (unsigned i = 0; i < n - plane->n_lcores; i++)
		CPU_SET(cpus[i], &plane->others);
}

/* Action programs, and next hops for them. */
static int make_programs(struct plane *plane)
{
	const uint32_t routed = plane_router_hops(plane);
	const uint32_t hops = plane->config.max_next_hops + routed;
	/* each rule may have one of its own */
	const uint32_t n = RTE_MIN(plane->config.max_programs, (uint32_t)PROGRAMS_MAX) +
			   RTE_MIN(plane->config.max_rules, (uint32_t)PROGRAMS_MAX) +
			   (routed == 0 ? 0 : ROUTES_VERDICTS(routed));

	if (hops != 0) {
		plane->next_hops = next_hops_create(
			hops, RTE_MIN(hops + NEXT_HOP_CHANGES, UINT32_C(65536)), plane->qsbr);
		if (plane->next_hops == NULL)
			return -ENOMEM;
	}
	if (n == 0)
		return 0;
	static_assert(PROGRAMS_DROP == FLOW_VERDICT_DROP, "records name it by that number");
	static_assert(PROGRAMS_REJECT == FLOW_VERDICT_REJECT, "and those that reject by theirs");
	static_assert(PROGRAMS_REJECT + REJECT_N_WITH == FLOW_VERDICT_BY_PACKET,
		"up to what is decided by packet");
	/* and the one that drops */
	plane->programs = programs_create(RTE_MIN(n + 1, (uint32_t)PROGRAMS_MAX), plane->qsbr);
	return plane->programs == NULL ? -ENOMEM : programs_make_drop(plane->programs);
}

static int make_copies(struct plane *plane)
{
	for (unsigned i = 0; plane->config.n_captures > 0 && i < plane->config.n_workers; i++) {
		plane->copies[i] =
			mailbox_create("copies", sizeof(struct rte_mbuf *), PLANE_COPIES);
		if (plane->copies[i] == NULL)
			return -errno;
	}
	return 0;
}

struct mailbox *plane_copies(const struct plane *plane, unsigned worker)
{
	return plane->copies[worker];
}

static int make_rules(struct plane *plane)
{
	const struct rules_config config = {
		.max_rules = plane->config.max_rules,
		.max_beside = plane->config.max_rules,
		.max_sets = plane->config.max_rule_sets,
		.max_prefixes = plane->config.max_rule_prefixes,
		.n_captures = plane->config.n_captures,
		.n_workers = plane->config.n_workers,
		.topology = &plane->config.topology,
		.zone_vlan = plane->config.zone_vlan,
		.replies_follow = plane->config.replies_follow,
		.no_pickup = plane->config.no_pickup,
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
		plane->config.max_rules == 0 && !plane_has_routers(plane))
		return 0;
	plane->qsbr = aligned_alloc(64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(n), (size_t)64));
	if (plane->qsbr == NULL || rte_rcu_qsbr_init(plane->qsbr, n) != 0)
		return -ENOMEM;
	ret = make_programs(plane);
	/* the first programs of the set, so that their numbers are in a row */
	if (ret == 0)
		ret = plane_routers_make(plane);
	if (ret == 0)
		ret = make_copies(plane);
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
	plane->lcores =
		aligned_alloc(_Alignof(struct lcore), n_lcores(plane) * sizeof(plane->lcores[0]));
	plane->asks = malloc(n_lcores(plane) * sizeof(plane->asks[0]));
	if (plane->lcores == NULL || plane->asks == NULL)
		return error_set(error, -ENOMEM, "no memory for %u worker%s",
			plane->config.n_workers, plane->config.n_workers == 1 ? "" : "s");
	plane->n_lcores = n_lcores(plane);
	/* every page is touched now: questions take no memory */
	memset(plane->asks, 0, n_lcores(plane) * sizeof(plane->asks[0]));
	ask_be_patient(&plane->patience);
	make_lcores(plane);
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
	if (ret == 0)
		ret = plane_punt_lines_make(plane);
	for (unsigned i = 0; ret == 0 && i < plane->n_lcores; i++)
		ret = equip(plane, &plane->lcores[i]);
	if (ret < 0)
		return error_set(error, ret, "no memory for %u flow%s and %u worker%s",
			plane->config.flows, plane->config.flows == 1 ? "" : "s",
			plane->config.n_workers, plane->config.n_workers == 1 ? "" : "s");
	return plane_offload_make(plane, error);
}

void plane_take_down(struct plane *plane)
{
	plane_offload_take_down(plane);
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];

		flow_shard_destroy(lcore->worker.shard);
		free(lcore->act.context.policers);
		parser_destroy(lcore->parser);
		pipeline_destroy(lcore->pipeline);
		mailbox_destroy(lcore->events);
		mailbox_destroy(lcore->drops.samples);
	}
	blocks_destroy(plane->blocks);
	for (unsigned i = 0; i < PLANE_MAX_WORKERS; i++)
		mailbox_destroy(plane->copies[i]);
	rules_destroy(plane->rules);
	plane_routers_take_down(plane);
	programs_destroy(plane->programs);
	next_hops_destroy(plane->next_hops);
	free(plane->qsbr);
	for (unsigned i = 0; i < plane->n_rings; i++)
		mailbox_destroy(plane->rings[i].mailbox);
	free(plane->rings);
	free(plane->asks);
	free(plane->lcores);
}
