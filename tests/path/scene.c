/* SPDX-License-Identifier: BSD-3-Clause */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <rte_rcu_qsbr.h>

#include "base/dpdk.h"
#include "dataplane/pipeline.h"
#include "dataplane/tx.h"
#include "traffic/frame.h"

int scene_environment(void **state)
{
	struct error error;

	(void)state;
	if (dpdk_start(32, &error) == 0)
		return 0;
	print_error("%s\n", error.text);
	return -1;
}

static void take_reports(void *context, const struct flow_report *reports, unsigned n)
{
	struct scene *scene = context;

	assert_true(scene->n_reports + n <= SCENE_MAX_REPORTS);
	memcpy(&scene->reports[scene->n_reports], reports, n * sizeof(*reports));
	scene->n_reports += n;
}

/* What the lcores have sent. */
static void take_packets(struct scene *scene)
{
	ring_element elements[LCORE_BURST];
	unsigned n;

	for (unsigned i = 0; i < scene->options.n_shards; i++) {
		send_settle(&scene->lcore[i]);
		while ((n = ring_pop(&scene->out, elements, LCORE_BURST)) != 0) {
			for (unsigned j = 0; j < n; j++) {
				struct rte_mbuf *packet = ring_packet(elements[j]);

				assert_true(scene->n_out < SCENE_MAX_REPORTS);
				scene->sent++;
				scene->sent_bytes += packet->pkt_len;
				scene->out_us[scene->n_out] = scene->now_us;
				scene->out_lengths[scene->n_out++] = packet->pkt_len;
				rte_pktmbuf_free(packet);
			}
		}
	}
}

static void hand_over(void *context, unsigned shard, struct rte_mbuf **packets, unsigned n)
{
	struct scene *scene = context;

	pipeline_resume(&scene->lcore[shard], packets, n);
}

static void create_worker(struct scene *scene, unsigned number)
{
	struct lcore *lcore = &scene->lcore[number];

	assert_int_equal(pipeline_init_portless(lcore, number, &scene->secret), 0);
	if (scene->options.policy != NULL) {
		policy_init(&lcore->policy, NULL, scene->options.policy, &scene->topology,
			scene->qsbr, number);
		lcore->worker.policy = &lcore->policy;
	}
	const struct flow_shard_config config = {
		.capacity = scene->options.capacity,
		.secret = &scene->secret,
		.timeouts = flow_timeouts_default(),
		.active_s = scene->options.active_s,
		.tcp_strict = scene->options.tcp_strict,
		.worker = (uint8_t)number,
		.sink = take_reports,
		.sink_context = scene,
		.stamped = scene->options.policy != NULL,
		.policy = policy_of_flows(&lcore->policy),
	};

	assert_int_equal(flow_shard_create(&lcore->worker.shard, &config), 0);
	lcore->topology = &scene->topology;
	lcore->n_ports = 1;
	lcore->to[0] = &scene->out;
}

struct scene *scene_begin(const struct scene_options *options)
{
	struct scene *scene = aligned_alloc(64, sizeof(*scene));

	assert_non_null(scene);
	memset(scene, 0, sizeof(*scene));
	scene->options = *options;
	if (options->n_shards == 0)
		scene->options.n_shards = 1;
	if (options->capacity == 0)
		scene->options.capacity = 1000;
	if (options->max_datagrams == 0)
		scene->options.max_datagrams = 100;
	if (options->max_held == 0)
		scene->options.max_held = 100;
	if (options->max_segment == 0)
		scene->options.max_segment = UINT16_MAX;
	assert_int_equal(hash_secret_init(&scene->secret), 0);
	scene->out.mailbox = mailbox_create("out", sizeof(ring_element), SCENE_MAX_REPORTS);
	assert_non_null(scene->out.mailbox);
	scene->pool = frame_pool_create("scene", 8191, PACKET_META_SIZE);
	assert_non_null(scene->pool);

	const struct parser_config config = {
		.extract = {.secret = &scene->secret, .zone_vlan = options->zone_vlan},
		.steer = {.n_shards = scene->options.n_shards},
		.max_datagrams = options->separate ? 0 : scene->options.max_datagrams,
		.max_held = scene->options.max_held,
		.max_held_datagram = options->max_held_datagram != 0 ? options->max_held_datagram
								     : scene->options.max_held,
		.max_wait_us =
			options->max_wait_us != 0 ? options->max_wait_us : 60 * CLOCK_US_PER_S,
		.pace = options->pace,
		.tcp_strict = options->tcp_strict,
		.pool = scene->pool,
		.hand_over = hand_over,
		.context = scene,
	};

	assert_int_equal(parser_create(&scene->parser, &config), 0);
	if (options->policy != NULL) {
		scene->qsbr = aligned_alloc(
			64, RTE_ALIGN_CEIL(rte_rcu_qsbr_get_memsize(SCENE_MAX_SHARDS), (size_t)64));
		assert_non_null(scene->qsbr);
		assert_int_equal(rte_rcu_qsbr_init(scene->qsbr, SCENE_MAX_SHARDS), 0);
	}
	for (unsigned i = 0; i < scene->options.n_shards; i++)
		create_worker(scene, i);
	assert_int_equal(parser_begin(scene->parser, UINT64_C(1700000000000000), 3), 0);
	return scene;
}

void scene_send_burst(struct scene *scene, const struct frame *const *frames, unsigned n)
{
	struct rte_mbuf *packets[PARSER_BURST];

	for (unsigned i = 0; i < n; i++) {
		packets[i] = frame_make(scene->pool, frames[i]->bytes, (uint32_t)frames[i]->length,
			scene->options.max_segment);
		assert_non_null(packets[i]);
	}
	parser_burst(scene->parser, (struct arrival){0}, scene->now_us, packets, n);
	parser_flush(scene->parser);
	take_packets(scene);
}

void scene_send(struct scene *scene, const struct frame *frame)
{
	scene_send_burst(scene, &frame, 1);
}

void scene_tcp(
	struct scene *scene, bool back, unsigned flags, uint32_t seq, uint32_t ack, size_t data)
{
	const struct frame_tcp header = {
		.src_port = back ? 80 : 1025,
		.dst_port = back ? 1025 : 80,
		.seq = seq,
		.ack = ack,
		.flags = flags,
		.window = 1000,
	};
	struct frame frame;

	frame_start(&frame);
	frame_ipv4(&frame, back ? "10.0.0.2" : "10.0.0.1", back ? "10.0.0.1" : "10.0.0.2",
		IPPROTO_TCP);
	frame_tcp(&frame, &header);
	frame_fill(&frame, data);
	frame_finish(&frame);
	scene_send(scene, &frame);
}

void scene_handshake(struct scene *scene)
{
	scene_tcp(scene, false, TCP_SYN, 99, 0, 0);
	scene_tcp(scene, true, TCP_SYN | TCP_ACK, 499, 100, 0);
	scene_tcp(scene, false, TCP_ACK, 100, 500, 0);
}

void scene_wait(struct scene *scene, double seconds)
{
	scene->now_us += (uint64_t)(seconds * 1e6);
}

void scene_turn(struct scene *scene)
{
	parser_advance(scene->parser, scene->now_us);
	parser_flush(scene->parser);
	take_packets(scene);
}

struct path_counters scene_counters(const struct scene *scene)
{
	struct path_counters sum = *parser_counters(scene->parser);

	for (unsigned i = 0; i < scene->options.n_shards; i++)
		path_counters_add(&sum, &scene->lcore[i].worker.counters[0]);
	/* to the port */
	assert_int_equal(sum.handed_out, scene->sent);
	sum.handed_out = 0;
	sum.out += scene->sent;
	sum.out_bytes += scene->sent_bytes;
	return sum;
}

struct flow_counters scene_flow_counters(const struct scene *scene)
{
	struct flow_counters sum = {0};

	for (unsigned i = 0; i < scene->options.n_shards; i++)
		flow_counters_add(&sum, &scene->lcore[i].worker.shard->counters);
	return sum;
}

static void check_sums(const struct scene *scene)
{
	struct path_counters path = scene_counters(scene);
	struct flow_counters flow = scene_flow_counters(scene);
	uint64_t packets = 0;
	uint64_t bytes = 0;

	assert_int_equal(path.received,
		path.out + path_counters_dropped(&path) + parser_held(scene->parser));
	assert_int_equal(parser_held(scene->parser), 0);
	assert_int_equal(flow.packets, path.received - path.non_ip - path.dropped[DROP_MALFORMED] -
					       path.dropped[DROP_RULE] -
					       path.dropped[DROP_TCP_WINDOW] -
					       path.dropped[DROP_TCP_HEADER]);
	for (unsigned i = 0; i < scene->n_reports; i++) {
		for (unsigned end = 0; end < 2; end++) {
			packets += flow_packets(&scene->reports[i].record, end);
			bytes += flow_bytes(&scene->reports[i].record, end);
		}
	}
	assert_int_equal(packets, flow.packets);
	assert_int_equal(bytes, flow.bytes);
	assert_int_equal(packets, flow.reported_packets);
	assert_int_equal(bytes, flow.reported_bytes);
	assert_int_equal(flow.learned, scene->n_reports - flow.ended[FLOW_END_ACTIVE]);
}

void scene_end(struct scene *scene)
{
	assert_int_equal(parser_end(scene->parser, scene->now_us), 0);
	take_packets(scene);
	check_sums(scene);
	for (unsigned i = 0; i < scene->options.n_shards; i++) {
		assert_int_equal(scene->lcore[i].worker.runs_ended, 1);
		assert_int_equal(scene->lcore[i].worker.shard->table.count, 0);
	}
	/* every buffer came back */
	assert_int_equal(rte_mempool_avail_count(scene->pool), scene->pool->size);
}

void scene_destroy(struct scene *scene)
{
	for (unsigned i = 0; i < scene->options.n_shards; i++)
		pipeline_fini_portless(&scene->lcore[i]);
	parser_destroy(scene->parser);
	mailbox_destroy(scene->out.mailbox);
	rte_mempool_free(scene->pool);
	free(scene->qsbr);
	free(scene);
}

const struct flow_report *scene_report(
	const struct scene *scene, uint8_t proto, uint16_t port_a, uint16_t port_b)
{
	const struct flow_report *found = NULL;

	for (unsigned i = 0; i < scene->n_reports; i++) {
		const struct flow_key *key = &scene->reports[i].record.key;
		uint16_t first = rte_be_to_cpu_16(key->port[0]);
		uint16_t second = rte_be_to_cpu_16(key->port[1]);

		if (key->proto == proto && ((first == port_a && second == port_b) ||
						   (first == port_b && second == port_a))) {
			assert_null(found);
			found = &scene->reports[i];
		}
	}
	assert_non_null(found);
	return found;
}
