/* SPDX-License-Identifier: BSD-3-Clause */

/* port show, worker show, wire show, drop show, config show. */

#include "unit/control_scene.h"

/* All whole numbers of this line, by name and value. */
struct expected {
	const char *name;
	json_int_t number;
};

static void expect_numbers(const json_t *line, const struct expected *expected, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		json_int_t number = number_of(line, expected[i].name);

		if (number != expected[i].number)
			fail_msg("%s is %lld, not %lld", expected[i].name, (long long)number,
				(long long)expected[i].number);
	}
}

#define EXPECT_NUMBERS(line, ...)                                    \
	expect_numbers(line, (const struct expected[]){__VA_ARGS__}, \
		sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

static void test_config(void **state)
{
	json_t *lines = expect_lines(*state, "{\"ask\":\"config show\",\"with\":{}}", 1);

	assert_int_equal(number_of(json_array_get(lines, 0), "flows"), 1000);
	json_decref(lines);
}

/* A configuration longer than the output's buffer comes whole, also to who reads late. */
static void test_long_config(void **state)
{
	struct scene *scene = *state;
	enum { LENGTH = 150000 };
	char *json = malloc(LENGTH + 16);
	struct control_config config = {
		.socket_path = scene->path, .plane = &scene->plane, .config_json = json};
	struct error error;

	memcpy(json, "{\"x\":\"", 6);
	memset(json + 6, 'x', LENGTH);
	memcpy(json + 6 + LENGTH, "\"}", 3);
	control_destroy(scene->control);
	assert_int_equal(control_create(&scene->control, &config, &error), 0);
	struct talker *talker = talker_create(scene);

	talker_ask(talker, "{\"ask\":\"config show\"}");
	scene_settle(scene);
	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(strlen(text_of(json_array_get(lines, 0), "x")), LENGTH);
	json_decref(lines);
	talker_destroy(talker);
	free(json);
}

static void test_wires(void **state)
{
	struct scene *scene = *state;

	scene->plane.snapshot.wires[1] = (struct path_counters){
		.received = 1000,
		.received_bytes = UINT64_C(1) << 40,
		.non_ip = 3,
		.out = 900,
		.out_bytes = 90000,
		.delivered = 10,
		.dropped = {[DROP_MALFORMED] = 40, [DROP_OUTPUT] = 30},
		.held = 20,
		.fragments_untied = 4,
		.icmp_untied = 5,
		.one_sided = 6,
		.nic_forwarded = 6,
		.nic_forwarded_bytes = 7,
		.nic_dropped = 8,
		.nic_dropped_bytes = 9,
		.nic_unaccounted = 1,
		.mirrored = 2,
		.from_kernel = 14,
		.captured = 11,
		.capture_lost = 12,
		.reject_replies = 13,
		.reject_limited = 14,
		.reject_unanswered = 15,
		.logged = 16,
		.log_lost = 17,
	};
	scene->plane.snapshot.wire_flows[1] = 77;
	json_t *lines = expect_lines(scene, "{\"ask\":\"wire show\"}", 2);
	const json_t *line = json_array_get(lines, 1);
	const json_t *ports = json_object_get(line, "ports");

	EXPECT_NUMBERS(line, {"wire", 1}, {"received", 1000}, {"received_bytes", INT64_C(1) << 40},
		{"non_ip", 3}, {"out", 900}, {"out_bytes", 90000}, {"delivered", 10},
		{"dropped", 70}, {"held", 20}, {"fragments_untied", 4}, {"icmp_untied", 5},
		{"one_sided", 6}, {"flows", 77}, {"nic_forwarded", 6}, {"nic_forwarded_bytes", 7},
		{"nic_dropped", 8}, {"nic_dropped_bytes", 9}, {"nic_unaccounted", 1},
		{"mirrored", 2}, {"from_kernel", 14}, {"captured", 11}, {"capture_lost", 12},
		{"reject_replies", 13}, {"reject_limited", 14}, {"reject_unanswered", 15},
		{"logged", 16}, {"log_lost", 17});
	assert_int_equal(json_object_size(line), 28);
	assert_string_equal(json_string_value(json_array_get(ports, 0)), "up");
	assert_string_equal(json_string_value(json_array_get(ports, 1)), "down");
	EXPECT_NUMBERS(json_array_get(lines, 0), {"wire", 0}, {"received", 0}, {"flows", 0});
	json_decref(lines);
}

static void test_drops(void **state)
{
	struct scene *scene = *state;

	scene->plane.snapshot.wires[0].dropped[DROP_TCP_WINDOW] = 11;
	scene->plane.snapshot.wires[1].dropped[DROP_TCP_WINDOW] = 22;
	json_t *lines = expect_lines(scene, "{\"ask\":\"drop show\"}", DROP_N_REASONS);

	for (unsigned i = 0; i < DROP_N_REASONS; i++) {
		const json_t *line = json_array_get(lines, i);
		const json_t *wires = json_object_get(line, "wires");

		assert_string_equal(text_of(line, "reason"), drop_name((enum drop_reason)i));
		assert_string_equal(text_of(line, "what"), drop_what((enum drop_reason)i));
		assert_int_equal(json_array_size(wires), 2);
		assert_int_equal(number_of(line, "packets"), i == DROP_TCP_WINDOW ? 33 : 0);
		assert_int_equal(json_integer_value(json_array_get(wires, 1)),
			i == DROP_TCP_WINDOW ? 22 : 0);
	}
	json_decref(lines);
}

static void fill_ports(struct plane *plane)
{
	struct port *port = &plane->ports[0];

	snprintf(port->device.text, sizeof(port->device.text), "eth1");
	/* what it was opened by is no longer its name */
	snprintf(port->device.interface, sizeof(port->device.interface), "old1");
	snprintf(port->interface, sizeof(port->interface), "eth1");
	snprintf(port->driver, sizeof(port->driver), "net_af_xdp");
	port->mac = (struct rte_ether_addr){{0x02, 0, 0, 0xab, 0xcd, 0xef}};
	port->speed_mbps = 10000;
	port->socket = 1;
	port->mtu = 1500;
	port->n_rx = 2;
	port->n_tx = 3;
	port->rss = 1;
	plane->ports[1].link = PORT_LINK_DOWN;
	plane->ports[1].id = UINT16_MAX; /* counts nothing */
	plane->ports[1].n_rx = 2;
	plane->ports[1].rss = 1;
	plane->snapshot.rss_fallen_back[1] = true;
	plane->ports[2].link = PORT_LINK_REMOVED;
	plane->ports[2].n_rx = 1;
	plane->ports[2].rss = 1;
	/* a name from outside that is no UTF-8 */
	snprintf(plane->ports[3].name, sizeof(plane->ports[3].name), "a\xff\"b");
	for (unsigned i = 0; i < FAKE_WORKERS; i++)
		plane->snapshot.lcores[i].ports[0] = (struct plane_port_counters){
			10 + i, 100 + i, 1000 + i, 10000 + i, 0, 5 + i};
}

static void test_ports(void **state)
{
	struct scene *scene = *state;

	fill_ports(&scene->plane);
	scene->plane.snapshot.rss_fallbacks[1] = 7;
	json_t *lines = expect_lines(scene, "{\"ask\":\"port show\"}", 4);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "port"), "left");
	assert_string_equal(text_of(line, "device"), "eth1");
	assert_string_equal(text_of(line, "driver"), "net_af_xdp");
	assert_string_equal(text_of(line, "interface"), "eth1");
	assert_string_equal(text_of(line, "mac"), "02:00:00:ab:cd:ef");
	assert_string_equal(text_of(line, "link"), "up");
	assert_string_equal(text_of(line, "sharding"), "rss");
	EXPECT_NUMBERS(line, {"wire", 0}, {"speed_mbps", 10000}, {"numa", 1}, {"mtu", 1500},
		{"rx_queues", 2}, {"tx_queues", 3}, {"rx_packets", 21}, {"rx_bytes", 201},
		{"tx_packets", 2001}, {"tx_bytes", 20001}, {"reject_replies", 11});
	EXPECT_NUMBERS(json_object_get(line, "nic"), {"rx_packets", 1}, {"tx_packets", 2},
		{"rx_missed", 3}, {"rx_errors", 4}, {"tx_errors", 5}, {"rx_no_buffer", 6});

	line = json_array_get(lines, 1);
	assert_string_equal(text_of(line, "link"), "down");
	assert_string_equal(text_of(line, "sharding"), "rss, fallen back");
	assert_null(json_object_get(line, "speed_mbps"));
	assert_null(json_object_get(line, "numa"));
	assert_null(json_object_get(line, "interface"));
	assert_null(json_object_get(line, "nic"));
	line = json_array_get(lines, 2);
	EXPECT_NUMBERS(line, {"wire", 1});
	assert_string_equal(text_of(line, "link"), "removed");
	assert_string_equal(text_of(line, "sharding"), "hand-over");
	assert_string_equal(text_of(json_array_get(lines, 3), "port"), "a\xef\xbf\xbd\"b");
	json_decref(lines);

	scene->plane.config.n_workers = 1;
	lines = expect_lines(scene, "{\"ask\":\"port show\"}", 4);
	assert_string_equal(text_of(json_array_get(lines, 1), "sharding"), "one worker");
	json_decref(lines);

	scene->plane.config.n_workers = 2;
	scene->plane.config.sharding = PLANE_SHARDING_SOFTWARE;
	lines = expect_lines(scene, "{\"ask\":\"port show\"}", 4);
	assert_string_equal(text_of(json_array_get(lines, 0), "sharding"), "software");
	EXPECT_NUMBERS(json_array_get(lines, 1), {"sharding_fallbacks", 7});
	json_decref(lines);
}

static void fill_lcores(struct plane_snapshot *snapshot)
{
	snapshot->n_lcores = 3;
	snapshot->lcores[1] = (struct plane_lcore){
		.kind = LCORE_WORKER,
		.number = 1,
		.cpu = 3,
		.flows = 12,
		.capacity = 1000,
		.sum =
			{
				.received = 300,
				.out = 280,
				.dropped = {1, 2},
				.handed_out = 20,
				.handed_in = 30,
				.held = 27,
			},
		.bursts = 100,
		.idle_polls = 5000,
		.busy_cycles = 33000,
		.idle_cycles = 33000,
		.sleep_cycles = 66000,
		.flow = {.learned = 70},
		.crowded_s = {[BALANCE_FLOWS] = 8, [BALANCE_PACKETS] = 9},
	};
	snapshot->lcores[1].stages.cycles[STAGE_LOOK_UP] = 555;
	snapshot->lcores[1].stages.packets[STAGE_LOOK_UP] = 10;
	snapshot->lcores[1].ports[2] = (struct plane_port_counters){1, 2, 3, 4, 0, 5};
	snapshot->lcores[2].kind = LCORE_TX;
	snapshot->lcores[2].cpu = 0;
}

static void test_workers(void **state)
{
	struct scene *scene = *state;

	fill_lcores(&scene->plane.snapshot);
	scene->plane.snapshot.now_us = 123456;
	json_t *lines = expect_lines(scene, "{\"ask\":\"worker show\"}", 3);

	EXPECT_NUMBERS(lines_end(lines), {"clock_us", 123456});
	const json_t *line = json_array_get(lines, 1);
	const json_t *ports = json_object_get(line, "ports");

	assert_string_equal(text_of(line, "thread"), "worker 1");
	assert_string_equal(text_of(line, "kind"), "worker");
	EXPECT_NUMBERS(line, {"worker", 1}, {"cpu", 3}, {"flows", 12}, {"capacity", 1000},
		{"new_flows", 70}, {"crowded_flows_s", 8}, {"crowded_packets_s", 9},
		{"received", 300}, {"out", 280}, {"dropped", 3}, {"handed_out", 20},
		{"handed_in", 30}, {"held", 27}, {"bursts", 100}, {"idle_polls", 5000},
		{"busy_cycles", 33000}, {"idle_cycles", 33000}, {"sleep_cycles", 66000});
	assert_true(json_real_value(json_object_get(line, "packets_per_burst")) == 3.3);
	assert_true(json_real_value(json_object_get(line, "busy_percent")) == 25.0);
	assert_true(json_real_value(json_object_get(line, "sleep_percent")) == 50.0);
	assert_true(json_real_value(json_object_get(line, "cycles_per_packet")) == 100.0);
	assert_int_equal(json_object_size(json_object_get(line, "stages")), 1);
	assert_true(json_real_value(json_object_get(json_object_get(line, "stages"), "look_up")) ==
		    55.5);
	assert_int_equal(json_array_size(ports), 4);
	assert_string_equal(text_of(json_array_get(ports, 2), "port"), "up");
	EXPECT_NUMBERS(json_array_get(ports, 2), {"rx_packets", 1}, {"rx_bytes", 2},
		{"tx_packets", 3}, {"tx_bytes", 4});

	assert_string_equal(text_of(line, "simd"), "sse42");

	/* nothing is divided by nothing */
	line = json_array_get(lines, 0);
	assert_string_equal(text_of(line, "thread"), "worker 0");
	assert_null(json_object_get(line, "cpu"));
	assert_null(json_object_get(line, "packets_per_burst"));
	assert_null(json_object_get(line, "busy_percent"));
	assert_null(json_object_get(line, "cycles_per_packet"));
	assert_int_equal(json_object_size(json_object_get(line, "stages")), 0);

	line = json_array_get(lines, 2);
	assert_string_equal(text_of(line, "thread"), "tx 0");
	assert_string_equal(text_of(line, "kind"), "tx");
	EXPECT_NUMBERS(line, {"cpu", 0});
	assert_null(json_object_get(line, "worker"));
	assert_null(json_object_get(line, "flows"));
	assert_null(json_object_get(line, "simd"));
	json_decref(lines);
}

/* Reals come with one decimal, not with all that a double has. */
static void test_tenths(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);

	scene->plane.snapshot.lcores[0].bursts = 3;
	scene->plane.snapshot.lcores[0].sum.received = 100;
	talker_ask(talker, "{\"ask\":\"worker show\"}");
	char *line = talker_text(scene, talker);

	assert_non_null(strstr(line, "\"packets_per_burst\":33.3,"));
	free(line);
	talker_destroy(talker);
}

/* Sixteen wires and eighteen threads: more than the output's buffer holds. */
static void test_largest(void **state)
{
	struct scene *scene = *state;
	struct plane *plane = &scene->plane;

	plane->config.topology = topology_of_wires(FLOW_MAX_WIRES);
	for (unsigned i = 0; i < PLANE_MAX_PORTS; i++)
		plane->config.port[i] = &plane->ports[i % FAKE_PORTS];
	plane->snapshot.n_lcores = PLANE_MAX_WORKERS + 2;
	struct talker *talker = talker_create(scene);

	talker_ask(talker, "{\"ask\":\"worker show\"}");
	scene_settle(scene);
	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(json_array_size(lines), PLANE_MAX_WORKERS + 3);
	assert_int_equal(json_array_size(json_object_get(json_array_get(lines, 17), "ports")), 32);
	json_decref(lines);
	talker_destroy(talker);
	json_decref(expect_lines(scene, "{\"ask\":\"port show\"}", 32));
	json_decref(expect_lines(scene, "{\"ask\":\"wire show\"}", 16));
}

static void test_silent(void **state)
{
	static const char *const nouns[] = {"port", "worker", "wire", "drop"};
	struct scene *scene = *state;
	char request[64], error[128];

	scene->plane.silent = true;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(request, sizeof(request), "{\"ask\":\"%s show\"}", nouns[i]);
		snprintf(error, sizeof(error),
			"%s show: a thread of the packet path does not answer", nouns[i]);
		expect_error(scene, request, error, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_config),
		SCENE_TEST(test_long_config),
		SCENE_TEST(test_wires),
		SCENE_TEST(test_drops),
		SCENE_TEST(test_ports),
		SCENE_TEST(test_workers),
		SCENE_TEST(test_tenths),
		SCENE_TEST(test_largest),
		SCENE_TEST(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
