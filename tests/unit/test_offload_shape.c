/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes in line, the queues that marked packets come to, counters, and ports as the engine starts them. */
#include "provider_scene.h"

#include "port/port.h"
#include "port/rss.h"
#include "rteflow/shape.h"

static unsigned marked_of(struct provider_scene *scene, struct seen_set *set, unsigned i)
{
	uint64_t packets;

	scene_look(scene, set, 4 * set->n);
	packets = set->seen[i].packets;
	assert_true(packets > 0);
	assert_true(set->seen[i].marked == 0 || set->seen[i].marked == packets);
	return set->seen[i].marked == packets;
}

/* Each of them works; then the first is in use again. */
static void shapes_stand_in_line(void **state)
{
	static const struct {
		const char *args;
		bool async;
		unsigned n;
	} cases[] = {
		{"profile=ideal", false, 4},
		{"profile=ideal", true, 4},
		{"profile=x710", false, 4},
		{"profile=cx5", false, 2},
		{"profile=cx6-hws", true, 2},
		{"profile=ideal,actions=mark+count", false, 1},
		{"profile=ideal,actions=mark+rss", false, 2},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct provider_scene scene;
		struct seen_set set = {0};
		struct offload_rule rule;
		struct provider_why why;
		char args[120];

		print_message("%s\n", cases[i].args);
		snprintf(args, sizeof(args), "%s,flows=8,load=order", cases[i].args);
		scene_open(&scene, args, cases[i].async);
		scene_look(&scene, &set, 8);
		rule = scene_rule(&set, 0);
		for (unsigned k = 0; k < 2 * cases[i].n; k++) {
			bool last = k % cases[i].n == cases[i].n - 1;

			assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
			assert_true(marked_of(&scene, &set, 0));
			assert_int_equal(scene_remove(&scene, 0), 0);
			assert_false(marked_of(&scene, &set, 0));
			assert_true(provider_next_shape(scene.provider, PROVIDER_IPV4_UDP) != last);
		}
		scene_close(&scene);
	}
}

/* A rule stays as it is when the next get other actions. */
static void rules_of_two_shapes(void **state)
{
	(void)state;
	for (unsigned async = 0; async < 2; async++) {
		struct provider_scene scene;
		struct seen_set set = {0};
		struct provider_why why;

		scene_open(&scene, "flows=8,load=order", async);
		scene_look(&scene, &set, 8);
		for (unsigned i = 0; i < 4; i++) {
			struct offload_rule rule = scene_rule(&set, i);

			assert_int_equal(scene_insert(&scene, i, &rule, &why), 0);
			provider_next_shape(scene.provider, PROVIDER_IPV4_UDP);
		}
		scene_look(&scene, &set, 80);
		for (unsigned i = 0; i < 4; i++)
			assert_true(set.seen[i].packets > 0 &&
				    set.seen[i].marked == set.seen[i].packets);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(scene_remove(&scene, i), 0);
		scene_close(&scene);
	}
}

static void no_warning(void *context, const char *line)
{
	(void)context;
	(void)line;
}

/* As the engine makes a port. */
static struct port *start_port(const char *device, uint32_t places, struct rte_mempool **pool)
{
	struct port_config config = {.name = "a",
		.n_queues = 4,
		.rss_pattern = rss_pattern(7),
		.offload_places = places};
	struct error error;
	struct port *port;

	assert_int_equal(port_device_parse(&config.device, device, &error), 0);
	assert_int_equal(port_open(&port, &config, no_warning, NULL, &error), 0);
	assert_int_equal(port->n_rx, 4);
	*pool = rte_pktmbuf_pool_create(
		"port", 8191, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	assert_non_null(*pool);
	if (port_start(port, *pool, &error) != 0)
		fail_msg("%s", error.text);
	return port;
}

static void end_port(struct port *port, struct rte_mempool *pool)
{
	port_close(port);
	rte_mempool_free(pool);
}

static void ports_are_made_ready(void **state)
{
	static const struct {
		const char *device;
		uint32_t places;
		bool marks, queues;
	} cases[] = {
		{"net_flowsim1,flows=1", 0, false, false},
		{"net_flowsim1,flows=1", 100, true, true},
		{"net_flowsim1,flows=1,profile=cx6-hws", 100, true, true},
		{"net_flowsim1,flows=1,profile=x710", 100, true, false},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mempool *pool;
		struct port *port = start_port(cases[i].device, cases[i].places, &pool);

		assert_true(port->marks == cases[i].marks);
		assert_true(port->flow_queues == cases[i].queues);
		end_port(port, pool);
	}
}

/* The queue that each flow comes to, and that all its packets come to that. */
static void look_at_queues(const struct port *port, struct seen_set *set, unsigned queues[])
{
	static const struct hash_secret secret = {.word = {1, 2}};
	static const struct extract_options options = {.secret = &secret};
	unsigned marked = 0, n = 0;

	for (unsigned turn = 0; n < 4000; turn++) {
		struct rte_mbuf *packets[32];
		uint16_t queue = (uint16_t)(turn % 4);
		uint16_t got = rte_eth_rx_burst(port->id, queue, packets, 32);

		for (uint16_t i = 0; i < got; i++) {
			struct packet_info info;

			assert_int_equal(extract(&options, packets[i], 0, &info), EXTRACT_IP);
			unsigned k = (unsigned)(seen_of(set, &info) - set->seen);

			if (set->seen[k].packets++ == 0)
				queues[k] = queue;
			assert_int_equal(queues[k], queue);
			marked += (packets[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
		}
		n += got;
		rte_pktmbuf_free_bulk(packets, got);
	}
	assert_true(marked == 0 || marked == n);
}

/* RSS in a rule is the port's own: key, types, all queues. */
static void rss_is_as_the_port_does_it(void **state)
{
	const struct shape shape = {.eth = true, .fate = SHAPE_RSS};
	const struct offload_rule rule = {.mark = 5};
	struct rte_eth_rss_conf conf = {0};
	struct shape_actions actions;
	struct shape_port read;
	struct rte_mempool *pool;
	uint8_t key[64] = {0}, wanted[RSS_KEY_BYTES];
	struct port *port = start_port("net_flowsim3,flows=1", 1, &pool);
	const struct provider_config config = {.port_id = port->id, .n_queues = port->n_rx};

	(void)state;
	conf.rss_key = key;
	conf.rss_key_len = RSS_KEY_BYTES;
	assert_int_equal(rte_eth_dev_rss_hash_conf_get(port->id, &conf), 0);
	assert_true(conf.rss_hf != 0);
	rss_key(rss_pattern(7), wanted);
	shape_port_read(&read, &config);
	shape_actions(&actions, &shape, &read, &rule);
	assert_int_equal(actions.rss.types, conf.rss_hf);
	assert_int_equal(actions.rss.key_len, RSS_KEY_BYTES);
	assert_memory_equal(actions.rss.key, wanted, RSS_KEY_BYTES);
	assert_int_equal(actions.rss.queue_num, 4);
	for (uint16_t i = 0; i < 4; i++)
		assert_int_equal(actions.rss.queue[i], i);
	assert_int_equal(actions.list[0].type, RTE_FLOW_ACTION_TYPE_MARK);
	assert_int_equal(actions.list[1].type, RTE_FLOW_ACTION_TYPE_RSS);
	assert_ptr_equal(actions.list[1].conf, &actions.rss);
	assert_int_equal(actions.mark.id, 5);
	end_port(port, pool);
}

/* Where no queue is a worker's own, marked packets come to where they came without: as RSS has it. */
static void marked_packets_stay_with_their_queue(void **state)
{
	static const char *const devices[] = {
		"net_flowsim2,profile=cx5,load=order,flows=64,proto=udp,ipv6=50,side=both",
		"net_flowsim2,profile=cx6-hws,load=order,flows=64,proto=tcp,ipv6=50,side=both",
		"net_flowsim2,profile=x710,actions=mark+rss,load=order,flows=64,side=both"};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(devices); i++) {
		struct provider_scene scene = {0};
		unsigned before[128], after[128], used = 0;
		struct seen_set set = {0};
		struct provider_why why;
		struct rte_mempool *pool;
		struct port *port = start_port(devices[i], SCENE_PLACES, &pool);

		scene.config = (struct provider_config){.port_id = port->id,
			.n_places = SCENE_PLACES,
			.n_queues = port->n_rx,
			.metadata = port->marks,
			.async = port->flow_queues};
		assert_int_equal(provider_open(&scene.provider, &scene.config), 0);
		look_at_queues(port, &set, before);
		assert_int_equal(set.n, 128);
		for (unsigned k = 0; k < set.n; k++) {
			struct offload_rule rule = scene_rule(&set, k);

			assert_int_equal(scene_insert(&scene, k, &rule, &why), 0);
			set.seen[k].packets = 0;
		}
		assert_non_null(strstr(
			provider_abilities(scene.provider)->shape[provider_kind(&set.seen[0].key)],
			i < 2 ? "rss + count" : "mark"));
		/* what was on its way is without marks */
		for (unsigned k = 0; k < 4; k++) {
			struct rte_mbuf *packets[32];

			rte_pktmbuf_free_bulk(
				packets, rte_eth_rx_burst(port->id, (uint16_t)k, packets, 32));
		}
		look_at_queues(port, &set, after);
		for (unsigned k = 0; k < set.n; k++) {
			assert_int_equal(before[k], after[k]);
			used |= 1u << after[k];
		}
		assert_int_equal(used, 0xf);
		provider_close(scene.provider);
		end_port(port, pool);
	}
}

/* A counter is told as the NIC has it; of what was lost too. */
static void counters_as_the_nic_tells_them(void **state)
{
	(void)state;
	for (unsigned async = 0; async < 2; async++) {
		struct provider_count count;
		struct provider_scene scene;
		struct seen_set set = {0};
		struct provider_why why;

		scene_open(&scene, "flows=1,counter_bits=8", async);
		scene_look(&scene, &set, 1);
		struct offload_rule rule = scene_rule(&set, 0);

		assert_int_equal(provider_query(scene.provider, 0, &count, &why), -EOPNOTSUPP);
		assert_int_equal(why.error, 0);
		assert_int_equal(scene_insert(&scene, 0, &rule, &why), 0);
		scene_look(&scene, &set, 300);
		assert_int_equal(provider_query(scene.provider, 0, &count, &why), 0);
		assert_int_equal(count.packets, 300 % 256);
		assert_int_equal(count.bytes, 300 * 64 % 256);
		scene_fault(&scene, "fail:op=query:errno=ENODEV");
		assert_int_equal(provider_query(scene.provider, 0, &count, &why), -EIO);
		assert_int_equal(why.error, ENODEV);
		scene_fault(&scene, "fail:off");
		assert_int_equal(scene_remove(&scene, 0), 0);
		assert_int_equal(provider_query(scene.provider, 0, &count, &why), -EOPNOTSUPP);
		assert_int_equal(why.error, 0);
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_stand_in_line),
		cmocka_unit_test(rules_of_two_shapes),
		cmocka_unit_test(ports_are_made_ready),
		cmocka_unit_test(rss_is_as_the_port_does_it),
		cmocka_unit_test(marked_packets_stay_with_their_queue),
		cmocka_unit_test(counters_as_the_nic_tells_them),
	};

	return cmocka_run_group_tests(tests, nic_begin, NULL);
}
