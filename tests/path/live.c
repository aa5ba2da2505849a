/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <rte_eth_ring.h>

#include "base/dpdk.h"
#include "lcore_sums.h"
#include "port/port.h"

int live_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(256, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct live *live = context;

	pthread_mutex_lock(&live->lock);
	for (unsigned i = 0; live->options.counts_reports && i < n; i++)
		live->reported_packets +=
			flow_packets(&reports[i].record, 0) + flow_packets(&reports[i].record, 1);
	if (live->options.counts_reports)
		n = 0;
	assert_true(live->n_reports + n <= LIVE_MAX_REPORTS);
	memcpy(&live->reports[live->n_reports], reports, n * sizeof(*reports));
	live->n_reports += n;
	pthread_mutex_unlock(&live->lock);
}

static struct rte_ring *make_ring(unsigned places)
{
	static unsigned number;
	char name[32];

	snprintf(name, sizeof(name), "live%u", number++);
	struct rte_ring *ring = rte_ring_create(
		name, places, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);

	assert_non_null(ring);
	return ring;
}

static struct port *make_port(struct live *live, unsigned side)
{
	static unsigned number;
	unsigned n_queues = live->options.n_queues;
	struct port *port = calloc(1, sizeof(*port));
	char name[32];

	assert_non_null(port);
	for (unsigned i = 0; i < n_queues; i++) {
		live->in[side][i] = make_ring(4095);
		live->out[side][i] = make_ring(live->options.out_places);
	}
	snprintf(name, sizeof(name), "live%u", number++);
	int id = rte_eth_from_rings(
		name, live->in[side], n_queues, live->out[side], n_queues, SOCKET_ID_ANY);

	assert_true(id >= 0);
	pthread_mutex_init(&port->asked, NULL);
	snprintf(port->name, sizeof(port->name), "side%u", side);
	snprintf(port->ethdev, sizeof(port->ethdev), "net_ring_%s", name);
	port->id = (uint16_t)id;
	port->socket = SOCKET_ID_ANY;
	port->mtu = 1500;
	port->n_rx = port->n_tx = (uint16_t)n_queues;
	port->rx_descriptors = port->tx_descriptors = 64;
	port->data_room = RTE_MBUF_DEFAULT_BUF_SIZE;
	port->software = true;
	port->promiscuous = -1;
	port->claim = -1;
	port->tap = -1;
	port->asks = -1;
	port->any_length = side == 1 && live->options.longest != 0;
	port->rx_room = side == 0 ? live->options.rx_room : 0;
	atomic_store(&port->longest, side == 1 ? live->options.longest : UINT16_MAX);
	atomic_store(&port->longest_tagged, side == 1 ? live->options.longest_tagged : UINT16_MAX);
	atomic_store(&port->link_up, true);
	return port;
}

/*
 * The same bursts as net_ring's, but compiled here: the thread sanitizer does not see what a library
 * of the distribution does, and would take every packet for a race.
 */
/* The one that there is at a time. */
static struct live *current;

static uint16_t receive_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	/* a queue has one worker, so each count has one writer */
	for (unsigned side = 0; side < 2; side++)
		if (queue == current->in[side][0])
			current->n_polls[side]++;
	return (uint16_t)rte_ring_sc_dequeue_burst(queue, (void **)packets, n, NULL);
}

static uint16_t send_burst(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	return (uint16_t)rte_ring_sp_enqueue_burst(queue, (void *const *)packets, n, NULL);
}

static void use_own_bursts(struct live *live, unsigned side)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[live->port[side]->id];

	ops->rx_pkt_burst = receive_burst;
	ops->tx_pkt_burst = send_burst;
	for (unsigned i = 0; i < live->options.n_queues; i++) {
		ops->rxq.data[i] = live->in[side][i];
		ops->txq.data[i] = live->out[side][i];
	}
}

struct live *live_begin(const struct live_options *options)
{
	struct live *live = calloc(1, sizeof(*live));
	struct error error;

	assert_non_null(live);
	live->options = *options;
	current = live;
	pthread_mutex_init(&live->lock, NULL);
	if (options->n_queues == 0)
		live->options.n_queues = 1;
	if (options->out_places == 0)
		live->options.out_places = 4095;
	for (unsigned side = 0; side < 2; side++)
		live->port[side] = make_port(live, side);

	struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {live->port[0], live->port[1]},
		.n_workers = options->n_workers,
		.threads = options->threads,
		.sharding = options->sharding,
		.flows = options->capacity == 0 ? 1000 : options->capacity,
		.tie_fragments = true,
		.max_blocks = options->max_blocks,
		.max_rules = options->max_rules,
		.max_programs = options->max_programs,
		.policers = options->policers,
		.n_policers = options->n_policers,
		.policy = options->policy,
		.zone_vlan = options->zone_vlan,
		.one_armed = options->one_armed,
		.timeouts = flow_timeouts_default(),
		.sink = take_reports,
		.sink_context = live,
		.room = options->room,
	};

	for (unsigned i = 0; options->max_rules != 0 && i < FLOW_N_TIMEOUTS; i++)
		config.timeouts.seconds[i] = 3600;
	if (options->router != NULL) {
		config.topology = (struct topology){0};
		assert_int_equal(topology_add_router(&config.topology, 2), 0);
		config.routers[0] = *options->router;
		config.punt_rates = punt_usual_rates();
	}
	assert_int_equal(plane_prepare(&live->plane, &config, &error), 0);
	assert_int_equal(plane_start_ports(live->plane, &error), 0);
	for (unsigned side = 0; side < 2; side++) {
		live->port[side]->rss = options->rss;
		live->port[side]->rss_pattern = 0x6d5a;
		use_own_bursts(live, side);
	}
	assert_int_equal(plane_wire_up(live->plane, &error), 0);
	live->now_us = 1000;
	return live;
}

static void put(struct live *live, unsigned side, unsigned queue, const struct frame *frame,
	const uint32_t *mark)
{
	struct rte_mbuf *packet = rte_pktmbuf_alloc(live->plane->pools[0]);

	assert_non_null(packet);
	memcpy(rte_pktmbuf_append(packet, (uint16_t)frame->length), frame->bytes, frame->length);
	if (mark != NULL) {
		packet->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
		packet->hash.fdir.hi = *mark;
	}
	assert_int_equal(rte_ring_enqueue(live->in[side][queue], packet), 0);
}

void live_send(struct live *live, unsigned side, unsigned queue, const struct frame *frame)
{
	put(live, side, queue, frame, NULL);
}

void live_send_marked(
	struct live *live, unsigned side, unsigned queue, const struct frame *frame, uint32_t mark)
{
	put(live, side, queue, frame, &mark);
}

bool live_turn(struct live *live, unsigned place)
{
	return lcore_poll(&live->plane->lcores[place], live->now_us);
}

void live_settle(struct live *live)
{
	/* once more when nothing moved: what came by time alone may lie in a ring */
	for (unsigned idle = 0; idle < 2; idle++)
		for (unsigned i = 0; i < live->plane->n_lcores; i++)
			if (live_turn(live, i))
				idle = 0;
}

struct rte_mbuf *live_take_one(struct live *live, unsigned side)
{
	struct rte_mbuf *packet;

	for (unsigned queue = 0; queue < live->options.n_queues; queue++)
		if (rte_ring_dequeue(live->out[side][queue], (void **)&packet) == 0)
			return packet;
	return NULL;
}

unsigned live_take(struct live *live, unsigned side)
{
	struct rte_mbuf *packet;
	unsigned n = 0;

	for (unsigned queue = 0; queue < live->options.n_queues; queue++) {
		while (rte_ring_dequeue(live->out[side][queue], (void **)&packet) == 0) {
			rte_pktmbuf_free(packet);
			n++;
		}
	}
	return n;
}

void live_check_sums(const struct plane_snapshot *snapshot)
{
	const struct path_counters *wire = &snapshot->wires[0];
	uint64_t flow_packets = 0, handed_in = 0, handed_out = 0;

	assert_int_equal(wire->received + wire->from_kernel,
		wire->out + wire->delivered + path_counters_dropped(wire) + wire->held);
	for (unsigned i = 0; i < snapshot->n_lcores; i++) {
		const struct plane_lcore *lcore = &snapshot->lcores[i];

		flow_packets += lcore->flow.packets;
		handed_in += lcore->sum.handed_in;
		handed_out += lcore->sum.handed_out;
		assert_int_equal(
			lcore->sum.received + lcore->sum.from_kernel + lcore->sum.handed_in,
			lcore->sum.out + lcore->sum.delivered + path_counters_dropped(&lcore->sum) +
				lcore->sum.handed_out + lcore->sum.held);
		check_lcore_sums(lcore);
	}
	assert_true(handed_in <= handed_out);
	assert_true(handed_out - handed_in <= wire->held);
	assert_true(flow_packets <= wire->received);
}

void live_snapshot(struct live *live, unsigned seed, struct plane_snapshot *snapshot)
{
	struct plane *plane = live->plane;
	uint32_t number = ++plane->n_snapshots;
	unsigned asked = 0, done;

	/* lcores are asked at any time between turns, and turned in any order */
	for (unsigned steps = 0; steps < 100000; steps++) {
		seed = seed * 1103515245 + 12345;
		unsigned place = (seed >> 16) % plane->n_lcores;
		struct lcore *lcore = &plane->lcores[place];

		if (seed >> 30 & 1 && !(asked >> place & 1)) {
			snapshot_asked(lcore, number);
			asked |= 1u << place;
		} else {
			live_turn(live, place);
		}
		done = 0;
		for (unsigned i = 0; i < plane->n_lcores; i++)
			done += atomic_load(&plane->lcores[i].snapshot.done) == number;
		if (done == plane->n_lcores)
			break;
	}
	assert_int_equal(done, plane->n_lcores);
	plane_gather(plane, snapshot);
	live_check_sums(snapshot);
}

void live_end(struct live *live)
{
	struct plane *plane = live->plane;
	struct plane_snapshot snapshot;
	uint64_t packets = 0;

	packets -= live->reported_packets;
	live_settle(live);
	for (unsigned i = 0; i < plane->n_lcores; i++)
		if (plane->lcores[i].parser != NULL)
			parser_release(plane->lcores[i].parser);
	live_settle(live);
	assert_int_equal(plane_snapshot(plane, &snapshot), 0);
	live_check_sums(&snapshot);
	assert_int_equal(snapshot.wires[0].held, 0);
	for (unsigned i = 0; i < plane->n_lcores; i++) {
		struct lcore *lcore = &plane->lcores[i];

		packets += snapshot.lcores[i].flow.packets;
		if (lcore->worker.shard == NULL)
			continue;
		flow_shard_end_all(lcore->worker.shard);
		assert_int_equal(lcore->worker.shard->wire_flows[0], 0);
	}
	for (unsigned i = 0; i < live->n_reports; i++)
		for (unsigned end = 0; end < 2; end++)
			packets -= flow_packets(&live->reports[i].record, end);
	assert_int_equal(packets, 0);
	for (unsigned side = 0; side < 2; side++)
		live_take(live, side);
	/* every buffer came back */
	assert_int_equal(rte_mempool_avail_count(plane->pools[0]), plane->pools[0]->size);
	for (unsigned side = 0; side < 2; side++) {
		port_close(live->port[side]);
		for (unsigned i = 0; i < live->options.n_queues; i++) {
			rte_ring_free(live->in[side][i]);
			rte_ring_free(live->out[side][i]);
		}
	}
	plane_destroy(plane);
	free(live);
}
