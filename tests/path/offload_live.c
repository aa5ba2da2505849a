/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload_live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <ethdev_driver.h>

#include "base/dpdk.h"
#include "base/monotonic.h"
#include "dataplane/poll.h"
#include "lcore_sums.h"
#include "port/rss.h"

/* Records of one worker when the table is to be large. */
#define OFFLOAD_LIVE_LARGE 32768
#define TRIED_MS 20000
#define LOOK_US 500
/* So many packets may come at once when the test was held up. */
#define MOST_AT_ONCE 512
#define MILLION UINT64_C(1000000)

/* The one that there is at a time. */
static struct offload_live *current;

int offload_live_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(512, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static void say(void *context, const char *line)
{
	(void)context;
	print_message("%s\n", line);
}

static struct live_flow *find_flow(
	const struct offload_live *live, const struct flow_key *key, uint64_t hash)
{
	for (uint32_t place = (uint32_t)hash % live->n_places; live->places[place] != 0;
		place = (place + 1) % live->n_places) {
		struct live_flow *flow = &live->flows[live->places[place] - 1];

		if (flow_key_equal(&flow->key, key))
			return flow;
	}
	return NULL;
}

static struct live_flow *flow_of_key(const struct offload_live *live, const struct flow_key *key)
{
	return find_flow(live, key, flow_key_hash(&live->plane->secret, key));
}

/* The flow of a packet, and at which side it arrives; NULL: of none. */
static struct live_flow *flow_of(
	const struct offload_live *live, const struct rte_mbuf *packet, unsigned *side)
{
	const struct extract_options options = live_source_reading(live);
	const struct live_frame *frame;
	struct live_flow *flow;
	struct packet_info info;

	if (extract(&options, packet, 0, &info) != EXTRACT_IP)
		return NULL;
	flow = find_flow(live, &info.key, info.hash);
	if (flow != NULL) {
		*side = flow->from[0] == info.from ? 0 : 1;
		return flow;
	}
	frame = live_source_frame(&live->options, packet);
	if (frame == NULL)
		return NULL;
	*side = frame->side;
	return &live->flows[frame->flow];
}

static unsigned side_of_queue(const void *queue, bool receives, unsigned *number)
{
	for (unsigned side = 0; side < 2; side++) {
		const struct rte_eth_dev_data *data =
			rte_eth_devices[current->side[side].port->id].data;

		for (*number = 0; *number < current->options.n_queues; ++*number)
			if ((receives ? data->rx_queues : data->tx_queues)[*number] == queue)
				return side;
	}
	fail_msg("a queue of no port");
	return 0;
}

/* Is it one of those that do not arrive? */
static bool is_withheld(struct live_flow *flow, unsigned side)
{
	uint64_t number = flow->sent[side]++;

	return flow->muted || (flow->one_in != 0 && number % flow->one_in != 0);
}

/* Counts what arrives, and takes out what is not to. */
static uint16_t count_arrivals(struct rte_mbuf **packets, uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		unsigned side;
		struct live_flow *flow = flow_of(current, packets[i], &side);

		assert_non_null(flow);
		if (is_withheld(flow, side)) {
			rte_pktmbuf_free(packets[i]);
			continue;
		}
		flow->in[side]++;
		current->in_bytes += packets[i]->pkt_len;
		if (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) {
			flow->marked[side]++;
			flow->mark = packets[i]->hash.fdir.hi;
		}
		packets[kept++] = packets[i];
	}
	return kept;
}

static uint16_t take_put(struct live_side *side, struct rte_mbuf **packets, uint16_t n)
{
	uint16_t taken = (uint16_t)RTE_MIN((unsigned)n, side->n_put);

	for (uint16_t i = 0; i < taken; i++) {
		unsigned of;
		struct live_flow *flow = flow_of(current, side->put[i], &of);

		assert_non_null(flow);
		flow->in[of]++;
		current->in_bytes += side->put[i]->pkt_len;
		packets[i] = side->put[i];
	}
	side->n_put -= taken;
	memmove(side->put, &side->put[taken], side->n_put * sizeof(side->put[0]));
	return taken;
}

static uint16_t receive_counted(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	unsigned number;
	struct live_side *side = &current->side[side_of_queue(queue, true, &number)];
	uint64_t *budget = &side->budget[number];

	if (side->n_put != 0)
		return take_put(side, packets, n);
	if (*budget / MILLION < n)
		n = (uint16_t)(*budget / MILLION);
	if (n == 0)
		return 0;
	n = side->receive(queue, packets, n);
	*budget -= n * MILLION;
	return count_arrivals(packets, n);
}

static uint16_t send_counted(void *queue, struct rte_mbuf **packets, uint16_t n)
{
	struct live_flow *flows[LCORE_BURST * 4];
	unsigned sides[LCORE_BURST * 4], number;

	assert_true(n <= RTE_DIM(flows));
	for (uint16_t i = 0; i < n; i++) {
		flows[i] = flow_of(current, packets[i], &sides[i]);
		assert_non_null(flows[i]);
	}
	unsigned port = side_of_queue(queue, false, &number);
	uint16_t sent = current->side[port].send(queue, packets, n);

	for (uint16_t i = 0; i < sent; i++) {
		/* of a wire, what arrives at one side leaves by the other */
		if (!current->crosses)
			assert_int_not_equal(sides[i], port);
		flows[i]->out[sides[i]]++;
	}
	return sent;
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct offload_live *live = context;

	for (unsigned i = 0; i < n; i++) {
		struct live_flow *flow = flow_of_key(live, &reports[i].record.key);

		assert_non_null(flow);
		for (unsigned side = 0; side < 2; side++) {
			flow->reported[side] += flow_packets(&reports[i].record, flow->from[side]);
			flow->reported_bytes[side] +=
				flow_bytes(&reports[i].record, flow->from[side]);
		}
		flow->reported_dropped += reports[i].dropped.packets;
		flow->estimated += reports[i].offload.estimated;
		flow->ended[reports[i].reason]++;
		if (reports[i].offload.packets == FLOW_OFFLOAD_LOST)
			flow->told = UINT64_MAX;
		else if (flow->told != UINT64_MAX)
			flow->told += reports[i].offload.packets;
	}
}

static void open_side(struct offload_live *live, unsigned number)
{
	const struct offload_live_options *options = &live->options;
	struct live_side *side = &live->side[number];
	char name[PORT_NAME_MAX], device[PORT_DEVICE_MAX];
	char *capture = live_source_device(options, number, device);
	struct port_config config = {
		.name = name,
		.n_queues = options->n_queues,
		.offload_places = 2 * options->n_flows + 64,
		.rss_pattern = options->n_queues > 1 ? rss_pattern(0x6d69) : 0,
	};
	struct error error;

	snprintf(name, sizeof(name), "side%u", number);
	if (port_device_parse(&config.device, device, &error) < 0 ||
		port_open(&side->port, &config, say, NULL, &error) < 0)
		fail_msg("%s: %s", device, error.text);
	if (capture != NULL)
		unlink(capture);
	free(capture);

	struct rte_eth_dev *dev = &rte_eth_devices[side->port->id];

	side->sim = sim_port_of(dev);
	side->receive = dev->rx_pkt_burst;
	side->send = dev->tx_pkt_burst;
	dev->rx_pkt_burst = receive_counted;
	dev->tx_pkt_burst = send_counted;
}

static struct flow_timeouts timeouts(uint32_t idle_s)
{
	struct flow_timeouts timeouts = flow_timeouts_default();

	for (unsigned i = 0; idle_s != 0 && i < FLOW_N_TIMEOUTS; i++)
		timeouts.seconds[i] = idle_s;
	return timeouts;
}

static uint32_t records_of(const struct offload_live_options *options)
{
	if (options->large)
		return OFFLOAD_LIVE_LARGE * RTE_MAX(options->n_workers, 1u);
	return options->capacity == 0 ? 2 * options->n_flows : options->capacity;
}

static void make_plane(struct offload_live *live)
{
	const struct offload_live_options *options = &live->options;
	const struct plane_config config = {
		.topology = topology_of_wires(1),
		.port = {live->side[0].port, live->side[1].port},
		.n_workers = options->n_workers,
		.threads = options->threads,
		.flows = records_of(options),
		.tie_fragments = true,
		.zone_vlan = options->zone_vlan,
		.max_blocks = options->max_blocks,
		.policy = options->policy,
		.timeouts = timeouts(options->idle_s),
		.offload =
			{
				.on = true,
				.threshold = options->threshold,
				.slots = options->slots != 0 ? options->slots
							     : 2 * options->n_flows + 64,
				.counters = options->counters,
				.restart = options->restart,
				.full = options->full,
			},
		.sink = take_reports,
		.sink_context = live,
	};
	struct error error;

	if (plane_create(&live->plane, &config, &error) < 0)
		fail_msg("%s", error.text);
}

static bool is_tended(struct offload_live *live, void *unused)
{
	(void)unused;
	return plane_tend(live->plane);
}

static bool was_tried(struct offload_live *live, void *unused)
{
	(void)unused;
	return installer_ready(plane_installer(live->plane, 0)) &&
	       installer_ready(plane_installer(live->plane, 1));
}

struct offload_live *offload_live_begin(const struct offload_live_options *options)
{
	struct offload_live *live = calloc(1, sizeof(*live));

	assert_non_null(live);
	live->options = *options;
	current = live;
	live->options.n_workers = RTE_MAX(options->n_workers, 1u);
	live->options.n_queues = RTE_MAX(options->n_queues, 1u);
	live->n_places = 4 * options->n_flows;
	live->flows = calloc(options->n_flows, sizeof(live->flows[0]));
	live->places = calloc(live->n_places, sizeof(live->places[0]));
	live->events = calloc(OFFLOAD_LIVE_CHANGES, sizeof(live->events[0]));
	assert_true(live->flows != NULL && live->places != NULL && live->events != NULL);
	for (unsigned side = 0; side < 2; side++)
		open_side(live, side);
	make_plane(live);
	live_source_learn(live);
	live->now_us = plane_now_us(live->plane);
	/* no packet comes before that, so that all begins at one moment */
	live->options.rate = 0;
	assert_true(
		offload_live_until(live, options->untried ? was_tried : is_tended, NULL, TRIED_MS));
	live->options.rate = options->rate;
	return live;
}

static void look(struct offload_live *live)
{
	struct offload_change changes[256];
	unsigned n;

	live->looked_us = live->now_us;
	plane_tend(live->plane);
	do {
		assert_int_equal(
			plane_changes(live->plane, &live->where, changes, RTE_DIM(changes), &n), 0);
		for (unsigned i = 0; i < n && live->n_events < OFFLOAD_LIVE_CHANGES; i++)
			live->events[live->n_events++] = changes[i];
	} while (n != 0);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MILLION + (uint64_t)time.tv_nsec;
}

static bool turn_one(struct offload_live *live, struct lcore *lcore)
{
	const struct plane_port_counters *ports = lcore->ports;
	uint64_t packets = ports[0].rx_packets + ports[1].rx_packets;
	uint64_t begin_ns = live->times == NULL ? 0 : cpu_ns();
	bool busy = lcore_poll(lcore, plane_now_us(live->plane));

	if (live->times != NULL && ports[0].rx_packets + ports[1].rx_packets != packets)
		histogram_add(live->times, cpu_ns() - begin_ns);
	return busy;
}

static bool turn_all(struct offload_live *live)
{
	bool busy = false;

	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		busy |= turn_one(live, &live->plane->lcores[i]);
	return busy;
}

/* What may arrive at a queue in this turn. */
static void add_budget(const struct offload_live *live, uint64_t passed_us, uint64_t *budget)
{
	if (live->options.rate == OFFLOAD_LIVE_FULL)
		*budget = MOST_AT_ONCE * MILLION;
	else
		*budget += passed_us * live->options.rate / live->options.n_queues;
	*budget = RTE_MIN(*budget, MOST_AT_ONCE * MILLION);
}

void offload_live_turn(struct offload_live *live)
{
	const struct timespec pause = {.tv_nsec = 20000};
	uint64_t now_us = plane_now_us(live->plane);

	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < live->options.n_queues; i++)
			add_budget(live, now_us - live->now_us, &live->side[side].budget[i]);
	live->now_us = now_us;
	/* the processor is not ours alone */
	if (!turn_all(live))
		nanosleep(&pause, NULL);
	if (now_us - live->looked_us >= LOOK_US)
		look(live);
}

bool offload_live_until(struct offload_live *live,
	bool (*is_so)(struct offload_live *live, void *context), void *context, unsigned ms)
{
	uint64_t end_us = monotonic_us() + UINT64_C(1000) * ms;

	do {
		if (is_so(live, context))
			return true;
		offload_live_turn(live);
	} while (monotonic_us() < end_us);
	return is_so(live, context);
}

void offload_live_run(struct offload_live *live, unsigned ms)
{
	uint64_t end_us = monotonic_us() + UINT64_C(1000) * ms;

	while (monotonic_us() < end_us)
		offload_live_turn(live);
}

void offload_live_fault(struct offload_live *live, unsigned side, const char *text)
{
	struct sim_port *sim = live->side[side].sim;
	struct error error;

	pthread_mutex_lock(&sim->lock);
	int ret = sim_fault_parse(sim, text, &error);

	pthread_mutex_unlock(&sim->lock);
	if (ret < 0)
		fail_msg("%s: %s", text, error.text);
}

/* Packets under way go out, and no more come. */
static void settle(struct offload_live *live)
{
	for (unsigned side = 0; side < 2; side++)
		memset(live->side[side].budget, 0, sizeof(live->side[side].budget));
	for (unsigned idle = 0; idle < 2; idle++)
		if (turn_all(live))
			idle = 0;
	live->now_us = plane_now_us(live->plane);
}

void offload_live_records(const struct offload_live *live, struct live_sums *sums)
{
	memset(sums, 0, live->options.n_flows * sizeof(*sums));
	for (unsigned i = 0; i < live->plane->n_lcores; i++) {
		const struct flow_shard *shard = live->plane->lcores[i].worker.shard;

		if (shard == NULL)
			continue;
		for (uint32_t at = flow_table_next(&shard->table, 0); at != FLOW_NONE;
			at = flow_table_next(&shard->table, at + 1)) {
			const struct flow_record *record = flow_table_record(&shard->table, at);
			const struct live_flow *flow = flow_of_key(live, &record->key);

			assert_non_null(flow);
			for (unsigned side = 0; side < 2; side++) {
				struct live_sums *sum = &sums[flow - live->flows];

				sum->packets[side] += flow_packets(record, flow->from[side]);
				sum->bytes[side] += flow_bytes(record, flow->from[side]);
			}
		}
	}
}

/* By blocks and by rules. */
static uint64_t verdict_dropped(const struct path_counters *wire)
{
	return wire->dropped[DROP_BLOCKED] + wire->dropped[DROP_RULE];
}

static void check_sums(struct offload_live *live)
{
	static struct plane_snapshot snapshot;
	uint64_t in = offload_live_received(live, 0) + offload_live_received(live, 1);
	uint64_t of_flows = 0, dropped = 0, out = 0;
	const struct path_counters *wire = &snapshot.wires[0];

	assert_int_equal(plane_snapshot(live->plane, &snapshot), 0);
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		out += live->flows[i].out[0] + live->flows[i].out[1];
	for (unsigned i = 0; i < snapshot.n_lcores; i++) {
		of_flows += snapshot.lcores[i].flow.packets;
		dropped += snapshot.lcores[i].flow.dropped_packets;
		check_lcore_sums(&snapshot.lcores[i]);
	}
	assert_int_equal(wire->received, in);
	assert_int_equal(wire->received_bytes, live->in_bytes);
	assert_int_equal(wire->out, out);
	assert_int_equal(
		of_flows + verdict_dropped(wire), in + wire->nic_forwarded - wire->nic_unaccounted);
	assert_int_equal(dropped, verdict_dropped(wire) + wire->nic_dropped);
	assert_int_equal(wire->held, 0);
	/* only a port that is being restarted takes nothing */
	assert_int_equal(wire->received, wire->out + wire->dropped[DROP_OUTPUT] +
						 wire->dropped[DROP_TOO_LONG] +
						 verdict_dropped(wire));
	if (!live->options.restart)
		assert_int_equal(wire->dropped[DROP_OUTPUT], 0);
}

void offload_live_check(struct offload_live *live)
{
	struct live_sums *sums = calloc(live->options.n_flows, sizeof(*sums));

	assert_non_null(sums);
	settle(live);
	check_sums(live);
	offload_live_records(live, sums);
	for (uint32_t i = 0; i < live->options.n_flows; i++) {
		const struct live_flow *flow = &live->flows[i];

		for (unsigned side = 0; side < 2; side++) {
			uint64_t counted = sums[i].packets[side] + flow->reported[side];

			if (counted != flow->in[side] && !live->options.full)
				fail_msg("flow %u, side %u: %lu packets came, records have %lu", i,
					side, flow->in[side], counted);
			/* which of them were dropped is seen of the wire */
			if (!live->options.restart && live->options.max_blocks == 0 &&
				live->options.policy.decide == NULL)
				assert_int_equal(flow->out[side], flow->in[side]);
		}
	}
	free(sums);
}

void offload_live_leave(struct offload_live *live)
{
	if (live->plane != NULL)
		plane_stop(live->plane);
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned i = 0; i < live->side[side].n_put; i++)
			rte_pktmbuf_free(live->side[side].put[i]);
		port_close(live->side[side].port);
	}
	plane_destroy(live->plane);
	free(live->flows);
	free(live->places);
	free(live->events);
	free(live);
	current = NULL;
}

int offload_live_tidy(void **state)
{
	(void)state;
	if (current != NULL)
		offload_live_leave(current);
	return 0;
}

void offload_live_finish(struct offload_live *live)
{
	offload_live_check(live);
	for (unsigned i = 0; i < live->plane->n_lcores; i++)
		if (live->plane->lcores[i].worker.shard != NULL)
			flow_shard_end_all(live->plane->lcores[i].worker.shard);
	offload_live_check(live);
	/* reports alone have all of it now */
	for (uint32_t i = 0; i < live->options.n_flows; i++)
		for (unsigned side = 0; side < 2; side++)
			assert_int_equal(live->flows[i].reported[side], live->flows[i].in[side]);
}

void offload_live_end(struct offload_live *live)
{
	offload_live_finish(live);
	offload_live_leave(live);
}
