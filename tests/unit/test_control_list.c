/* SPDX-License-Identifier: BSD-3-Clause */

/* flow list: filters, pages and cursors, and what ranks. */

#include <time.h>

#include "unit/control_scene.h"

#define LIST(with) "{\"ask\":\"flow list\",\"with\":{" with "}}"

static struct flow_record *add(struct scene *scene, unsigned worker, uint32_t position,
	const char *src, uint16_t sport, const char *dst, uint16_t dport, uint8_t proto)
{
	struct flow_record record = fake_flow(src, sport, dst, dport, proto);

	return fake_add(&scene->plane, worker, position, &record);
}

static void add_some(struct scene *scene)
{
	struct flow_record *record;

	add(scene, 0, 3, "10.0.0.1", 1000, "10.0.0.2", 80, 6);
	add(scene, 0, 70, "10.1.0.1", 1001, "192.0.2.7", 53, 17);
	record = add(scene, 0, 900, "10.1.0.2", 80, "10.128.0.1", 2000, 17);
	record->key.version_wire = FLOW_KEY_VERSION_WIRE(4, 1);
	record = add(scene, 1, 0, "2001:db8::1", 5000, "2001:db8:0:1::9", 443, 6);
	record->key.version_wire = FLOW_KEY_VERSION_WIRE(6, 1);
	record->key.zone = 7;
	add(scene, 1, 1, "198.51.100.1", 0, "10.0.0.1", 0, 1);
	record = add(scene, 1, 4095, "10.0.0.1", 1002, "10.0.0.2", 80, 6);
	record->state = FLOW_SYN_SENT;
}

/* So many flows pass. */
static void expect_count(struct scene *scene, const char *request, size_t n)
{
	json_t *lines = expect_lines(scene, request, n);
	const json_t *end = lines_end(lines);

	assert_int_equal(number_of(end, "flows"), 6);
	assert_int_equal(number_of(end, "matched"), n);
	assert_true(json_is_null(json_object_get(end, "cursor")));
	json_decref(lines);
}

static void test_filters(void **state)
{
	static const struct {
		const char *request;
		size_t n;
	} filters[] = {
		{"{\"ask\":\"flow list\"}", 6},
		{LIST(""), 6},
		{LIST("\"address\":\"10.0.0.1\""), 3},
		{LIST("\"address\":\"10.0.0.2\""), 2},
		{LIST("\"address\":\"10.0.0.0/8\""), 5},
		{LIST("\"address\":\"10.255.3.4/9\""), 1},
		{LIST("\"address\":\"10.1.0.0/16\""), 2},
		{LIST("\"address\":\"10.1.0.0/31\""), 1},
		{LIST("\"address\":\"0.0.0.0/0\""), 5},
		{LIST("\"address\":\"::/0\""), 1},
		{LIST("\"address\":\"2001:db8::/64\""), 1},
		{LIST("\"address\":\"2001:db8::2/127\""), 0},
		{LIST("\"port\":80"), 3},
		{LIST("\"port\":0"), 1},
		{LIST("\"proto\":\"tcp\""), 3},
		{LIST("\"proto\":\"6\""), 3},
		{LIST("\"proto\":17"), 2},
		{LIST("\"proto\":\"icmp\""), 1},
		{LIST("\"proto\":\"icmp6\""), 0},
		{LIST("\"state\":\"open\""), 5},
		{LIST("\"state\":\"new\""), 1},
		{LIST("\"state\":\"closing\""), 0},
		{LIST("\"state\":\"syn-sent\""), 1},
		{LIST("\"state\":\"established\""), 2},
		{LIST("\"wire\":1"), 2},
		{LIST("\"worker\":0"), 3},
		{LIST("\"worker\":1"), 3},
		{LIST("\"zone\":7"), 1},
		{LIST("\"zone\":0"), 5},
		{LIST("\"address\":\"10.0.0.1\",\"port\":80,\"proto\":\"tcp\",\"state\":\"open\","
		      "\"wire\":0,\"worker\":0,\"zone\":0"),
			1},
	};
	struct scene *scene = *state;

	add_some(scene);
	for (unsigned i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		expect_count(scene, filters[i].request, filters[i].n);
}

static void test_line(void **state)
{
	struct scene *scene = *state;

	add_some(scene);
	json_t *lines = expect_lines(scene, LIST("\"zone\":7"), 1);
	const json_t *line = json_array_get(lines, 0);

	assert_int_equal(number_of(line, "version"), 6);
	assert_string_equal(text_of(line, "src"), "2001:db8::1");
	assert_int_equal(number_of(line, "sport"), 5000);
	assert_int_equal(number_of(line, "dport"), 443);
	assert_int_equal(number_of(line, "wire"), 1);
	assert_int_equal(number_of(line, "worker"), 1);
	assert_int_equal(number_of(line, "packets"), 1);
	assert_int_equal(number_of(line, "reverse_packets"), 0);
	assert_string_equal(text_of(line, "start"), "2026-11-20T08:00:00.000000Z");
	assert_string_equal(text_of(line, "state"), "open");
	assert_null(json_object_get(line, "end"));
	assert_null(json_object_get(line, "end_reason"));
	assert_null(json_object_get(line, "rate_pps"));
	json_decref(lines);
}

/* Page by page through a large table: every flow once, whatever the limit. */
static void walk(struct scene *scene, unsigned limit, const char *more, unsigned expected)
{
	static bool seen[2][20000];
	char request[256], cursor[64] = "";
	unsigned n = 0;

	memset(seen, 0, sizeof(seen));
	do {
		snprintf(request, sizeof(request), LIST("\"limit\":%u%s%s"), limit, more, cursor);
		json_t *lines = scene_ask(scene, request);
		const json_t *end = lines_end(lines);
		const char *next = text_of(end, "cursor");

		assert_null(text_of(end, "error"));
		assert_int_equal(json_array_size(lines) - 1, number_of(end, "matched"));
		if (next)
			assert_int_equal(number_of(end, "matched"), limit);
		for (size_t i = 0; i + 1 < json_array_size(lines); i++) {
			const json_t *line = json_array_get(lines, i);
			uint32_t address;

			inet_pton(AF_INET, text_of(line, "src"), &address);
			bool *flow = &seen[number_of(line, "worker")][ntohl(address) & 0xffffff];

			assert_false(*flow);
			*flow = true;
			n++;
		}
		cursor[0] = '\0';
		if (next)
			snprintf(cursor, sizeof(cursor), ",\"cursor\":\"%s\"", next);
		json_decref(lines);
	} while (cursor[0] != '\0');
	assert_int_equal(n, expected);
}

static void test_cursor(void **state)
{
	struct scene *scene = *state;

	scene->plane.made_up = 10000;
	walk(scene, 700, "", 20000);
	walk(scene, 10000, "", 20000);
	walk(scene, 9999, "", 20000);
	walk(scene, 20000, "", 20000);
	walk(scene, 20001, "", 20000);
	walk(scene, 64, ",\"worker\":1,\"address\":\"10.0.0.0/21\"", 2048);
	walk(scene, 1, ",\"address\":\"10.0.32.0/29\"", 16);
}

/* There is no cursor when nothing more would come, however large the rest of the table. */
static void test_last_one(void **state)
{
	struct scene *scene = *state;

	scene->plane.made_up = 10000;
	json_t *lines = expect_lines(scene, LIST("\"limit\":2,\"address\":\"10.0.0.77\""), 2);

	assert_true(json_is_null(json_object_get(lines_end(lines), "cursor")));
	json_decref(lines);
	lines = expect_lines(scene, LIST("\"limit\":1,\"address\":\"10.0.0.77\""), 1);
	assert_string_equal(text_of(lines_end(lines), "cursor"), "1:77");
	json_decref(lines);
	/* a cursor beyond everything is nothing more, and no fault */
	json_decref(expect_lines(scene, LIST("\"cursor\":\"1:4294967294\""), 0));
}

/* A million flows, of which never more than a page is held: memory stays as it is. */
static void test_million(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);
	unsigned n = 0;

	scene->plane.made_up = 500000;
	talker_ask(talker, "{\"ask\":\"flow list\"}");
	/* lines are counted, not read */
	while (!memmem(talker->data, talker->n, "{\"end\":true", 11)) {
		char *newline = memrchr(talker->data, '\n', talker->n);

		for (size_t i = 0; newline && i <= (size_t)(newline - talker->data); i++)
			n += talker->data[i] == '\n';
		if (newline) {
			talker->n -= (size_t)(newline + 1 - talker->data);
			memmove(talker->data, newline + 1, talker->n);
		}
		scene_step(scene);
		talker_read(talker);
	}
	for (size_t i = 0; i < talker->n; i++)
		n += talker->data[i] == '\n';
	assert_int_equal(n, 1000001);
	assert_non_null(memmem(talker->data, talker->n, "\"matched\":1000000", 17));
	talker_destroy(talker);
}

static void test_fair(void **state)
{
	struct scene *scene = *state;
	struct talker *large = talker_create(scene), *small = talker_create(scene);

	/* one walks for long without a line to show; another is answered within a few steps */
	scene->plane.made_up = 500000;
	talker_ask(large, LIST("\"proto\":\"tcp\""));
	for (unsigned i = 0; i < 10; i++)
		scene_step(scene);
	talker_ask(small, "{\"ask\":\"config show\"}");
	for (unsigned i = 0; i < 3; i++)
		scene_step(scene);
	talker_read(small);
	assert_non_null(memmem(small->data, small->n, "{\"end\":true", 11));
	json_t *lines = talker_answer(scene, large);

	assert_int_equal(json_array_size(lines), 1);
	json_decref(lines);
	talker_destroy(large);
	talker_destroy(small);
}

static void test_top_packets(void **state)
{
	struct scene *scene = *state;

	/* flow i of each worker has i packets */
	scene->plane.made_up = 5000;
	json_t *lines = expect_lines(scene, LIST("\"top\":1000,\"by\":\"packets\""), 1000);

	for (unsigned i = 0; i < 1000; i++) {
		const json_t *line = json_array_get(lines, i);

		assert_int_equal(number_of(line, "packets"), 4999 - i / 2);
		assert_null(json_object_get(line, "rate_pps"));
	}
	assert_int_equal(number_of(lines_end(lines), "matched"), 1000);
	assert_true(json_is_null(json_object_get(lines_end(lines), "cursor")));
	json_decref(lines);

	lines = expect_lines(scene,
		LIST("\"top\":3,\"by\":\"packets\",\"address\":\"10.0.0.0/24\",\"worker\":1"), 3);
	assert_string_equal(text_of(json_array_get(lines, 0), "src"), "10.0.0.255");
	json_decref(lines);

	/* there may be fewer than asked for */
	scene->plane.made_up = 2;
	json_decref(expect_lines(scene, LIST("\"top\":1000,\"by\":\"packets\""), 4));
	scene->plane.made_up = 0;
	json_decref(expect_lines(scene, LIST("\"top\":1000,\"by\":\"packets\""), 0));
}

static void test_top_bytes(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < 50; i++) {
		struct flow_record *record =
			add(scene, i % 2, i, "10.0.0.1", (uint16_t)(1000 + i), "10.0.0.2", 80, 17);

		/* both directions count, past 2^32 */
		record->count[0].bytes_low = 100 * (i * 7 % 50);
		record->count[1].bytes_low = 5;
		record->end[1].bytes_high = 1;
	}
	json_t *lines = expect_lines(scene, LIST("\"top\":5,\"by\":\"bytes\""), 5);

	for (unsigned i = 0; i < 5; i++) {
		const json_t *line = json_array_get(lines, i);

		assert_int_equal(number_of(line, "bytes") + number_of(line, "reverse_bytes"),
			(INT64_C(1) << 32) + 5 + 100 * (49 - i));
	}
	json_decref(lines);
}

/* The oldest first, whichever way round they were learned. */
static void test_top_age(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < 50; i++) {
		struct flow_record *record =
			add(scene, i % 2, i, "10.0.0.1", (uint16_t)(1000 + i), "10.0.0.2", 80, 17);

		record->start_us = 1000000 + i * 7 % 50;
	}
	json_t *lines = expect_lines(scene, LIST("\"top\":3,\"by\":\"age\""), 3);

	for (unsigned i = 0; i < 3; i++) {
		const json_t *line = json_array_get(lines, i);

		assert_int_equal((number_of(line, "sport") - 1000) * 7 % 50, i);
		assert_null(json_object_get(line, "rate_pps"));
	}
	json_decref(lines);
	expect_error(scene, LIST("\"top\":1,\"by\":\"age\",\"over_ms\":500"),
		"flow list: over_ms is of use by rate only", 2);
}

/* The line of the flow from this port: its rate. */
static json_int_t rate_of(const json_t *lines, unsigned sport)
{
	for (size_t i = 0; i + 1 < json_array_size(lines); i++)
		if (number_of(json_array_get(lines, i), "sport") == sport)
			return number_of(json_array_get(lines, i), "rate_pps");
	fail_msg("no flow from %u", sport);
	return 0;
}

static void test_rate(void **state)
{
	struct scene *scene = *state;
	struct plane *plane = &scene->plane;
	struct talker *talker = talker_create(scene);
	struct flow_record *busy, *wrapped, *again, *reported;

	/* many packets, but long ago */
	add(scene, 0, 1, "10.0.0.1", 1, "10.0.0.2", 80, 17)->count[0].packets_low = 2000000000;
	busy = add(scene, 0, 2, "10.0.0.1", 2, "10.0.0.2", 80, 17);
	wrapped = add(scene, 1, 4000, "10.0.0.1", 3, "10.0.0.2", 80, 17);
	flow_set_counts(wrapped, 1, UINT32_MAX - 10, 0);
	/* this one ends, and another takes its place */
	again = add(scene, 1, 5, "10.0.0.1", 4, "10.0.0.2", 80, 17);
	again->count[0].packets_low = 7000;
	reported = add(scene, 1, 6, "10.0.0.1", 5, "10.0.0.2", 80, 17);
	reported->count[0].packets_low = 9000;

	talker_ask(talker, LIST("\"top\":10,\"over_ms\":500"));
	scene_settle(scene);
	scene_now_us += 499999;
	scene_settle(scene);
	unsigned n_pages = plane->n_pages;

	/* not yet; the loop has not been busy meanwhile either */
	scene_settle(scene);
	assert_int_equal(plane->n_pages, n_pages);
	talker_read(talker);
	assert_int_equal(talker->n, 0);

	/* half a second has passed on the plane's clock, too */
	plane->now_us += 500000;
	scene_now_us += 1;
	busy->count[0].packets_low += 1000;
	busy->count[1].packets_low += 500;
	flow_set_counts(wrapped, 1, flow_packets(wrapped, 1) + 111, 0); /* past 2^32 */
	*again = fake_flow("10.0.0.1", 44, "10.0.0.2", 80, 17);
	again->start_us = (plane->now_us - 1000) & ((UINT64_C(1) << 48) - 1);
	again->count[again->initiator].packets_low = 20;
	reported->start_us = (plane->now_us - 400000) & ((UINT64_C(1) << 48) - 1);
	reported->count[0].packets_low = 300;
	add(scene, 0, 0, "10.0.0.1", 6, "10.0.0.2", 80, 17)->count[0].packets_low = 35;

	json_t *lines = talker_answer(scene, talker);

	assert_int_equal(json_array_size(lines), 7);
	assert_int_equal(rate_of(lines, 1), 0);
	assert_int_equal(rate_of(lines, 2), 3000);
	assert_int_equal(rate_of(lines, 3), 222);
	assert_int_equal(rate_of(lines, 44), 40);
	assert_int_equal(rate_of(lines, 5), 600);
	assert_int_equal(rate_of(lines, 6), 70);
	for (unsigned i = 1; i < 6; i++)
		assert_true(number_of(json_array_get(lines, i - 1), "rate_pps") >=
			    number_of(json_array_get(lines, i), "rate_pps"));
	json_decref(lines);
	talker_destroy(talker);
}

/* Only so many at a time, and each that ends makes room, also when its client has gone. */
static void test_rate_limit(void **state)
{
	struct scene *scene = *state;
	struct talker *talkers[4];

	scene->plane.made_up = 40000;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++) {
			talkers[i] = talker_create(scene);
			talker_ask(talkers[i], LIST("\"top\":1"));
		}
		scene_settle(scene);
		expect_error(scene, LIST("\"top\":1"),
			"flow list: 4 lists by rate are being measured already; try again later",
			1);
		json_decref(expect_lines(scene, LIST("\"top\":1,\"by\":\"bytes\""), 1));
		if (round == 1) {
			scene_settle(scene);
			scene_settle(scene);
			scene_settle(scene);
			/* one after the other */
			for (unsigned i = 0; i < 4; i++) {
				scene_now_us += 1000000;
				json_decref(talker_answer(scene, talkers[i]));
				scene_now_us += 1000000;
				for (unsigned j = 0; j < 3; j++)
					scene_settle(scene);
			}
		}
		for (unsigned i = 0; i < 4; i++)
			talker_destroy(talkers[i]);
		scene_settle(scene);
	}
}

/* By the system's own clock: nothing but the steps themselves moves time. */
static void test_real_time(void **state)
{
	struct scene *scene = *state;
	struct control_config config = {.plane = &scene->plane, .socket_path = scene->path};
	struct timespec begin, end;
	struct error error;

	control_destroy(scene->control);
	assert_int_equal(control_create(&scene->control, &config, &error), 0);
	struct talker *talker = talker_create(scene);

	add_some(scene);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	talker_ask(talker, LIST("\"top\":10,\"over_ms\":100"));
	unsigned n_steps = 0;

	while (!memmem(talker->data, talker->n, "{\"end\":true", 11)) {
		assert_int_equal(control_step(scene->control, -1), 0);
		talker_read(talker);
		n_steps++;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 99);
	/* a walk over two tables, twice, takes some steps; a loop that does not sleep many thousands */
	assert_true(n_steps < 300);
	talker_destroy(talker);
}

static void test_silent(void **state)
{
	struct scene *scene = *state;

	scene->plane.made_up = 1000;
	scene->plane.silent = true;
	expect_error(scene, LIST(""), "flow list: a thread of the packet path does not answer", 1);
	expect_error(scene, LIST("\"top\":1"),
		"flow list: a thread of the packet path does not answer", 1);

	/* in the middle of an answer that is under way */
	scene->plane.silent = false;
	struct talker *talker = talker_create(scene);

	talker_ask(talker, LIST(""));
	for (unsigned i = 0; i < 5; i++)
		scene_step(scene);
	scene->plane.silent = true;
	json_t *lines = talker_answer(scene, talker);

	assert_true(json_array_size(lines) > 1 && json_array_size(lines) < 2000);
	assert_int_equal(number_of(lines_end(lines), "code"), 1);
	assert_null(json_object_get(lines_end(lines), "matched"));
	json_decref(lines);
	talker_destroy(talker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_filters),
		SCENE_TEST(test_line),
		SCENE_TEST(test_cursor),
		SCENE_TEST(test_last_one),
		SCENE_TEST(test_million),
		SCENE_TEST(test_fair),
		SCENE_TEST(test_top_packets),
		SCENE_TEST(test_top_bytes),
		SCENE_TEST(test_top_age),
		SCENE_TEST(test_rate),
		SCENE_TEST(test_rate_limit),
		SCENE_TEST(test_real_time),
		SCENE_TEST(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
