/* SPDX-License-Identifier: BSD-3-Clause */

/* drop follow: a sample of dropped packets, to those who want it, by reason and rule. */

#include "unit/control_scene.h"

#define FOLLOW "{\"ask\":\"drop follow\"}"
#define FOLLOW_RULES "{\"ask\":\"drop follow\",\"with\":{\"reason\":\"rule\",\"rate\":7}}"
#define FOLLOW_ONE "{\"ask\":\"drop follow\",\"with\":{\"at\":3,\"rule\":5}}"
#define FOLLOW_PORT "{\"ask\":\"drop follow\",\"with\":{\"at\":3}}"
#define ALL_REASONS (UINT32_MAX >> (32 - DROP_N_REASONS))

static struct talker *follow(struct scene *scene, const char *request)
{
	struct talker *talker = talker_create(scene);

	talker_ask(talker, request);
	scene_settle(scene);
	return talker;
}

static void leave(struct scene *scene, struct talker *talker)
{
	talker_destroy(talker);
	scene_settle(scene);
}

static void drop(struct scene *scene, enum drop_reason reason, uint8_t rule_port, uint32_t rule)
{
	const struct flow_record record = fake_flow("10.0.0.9", 1234, "10.0.0.1", 80, 6);

	scene->plane.drops[scene->plane.n_drops++] = (struct drop_sample){
		.time_us = 1500000,
		.length = 1514,
		.rule = rule,
		.rule_port = rule_port,
		.reason = (uint8_t)reason,
		.port = 1,
		.from = record.initiator,
		.flags = PACKET_TCP,
		.tcp_flags = TCP_SYN,
		.has_key = true,
		.n_bytes = 3,
		.key = record.key,
		.bytes = {0x02, 0xab, 0xff},
	};
}

static void pass(struct scene *scene)
{
	scene_now_us += 250000;
	scene_settle(scene);
}

/* The next line is of a packet that was dropped by this rule, or of none. */
static void expect_drop(
	struct scene *scene, struct talker *talker, enum drop_reason reason, int64_t rule)
{
	json_t *line = talker_line(scene, talker);

	assert_non_null(line);
	assert_string_equal(text_of(line, "reason"), drop_name(reason));
	if (rule < 0)
		assert_null(json_object_get(line, "rule"));
	else
		assert_int_equal(number_of(line, "rule"), rule);
	json_decref(line);
}

static void expect_nothing(struct scene *scene, struct talker *talker)
{
	pass(scene);
	talker_read(talker);
	assert_int_equal(talker->n, 0);
	assert_false(talker->eof);
}

static void test_line(void **state)
{
	struct scene *scene = *state;

	/* what nobody followed is not told later */
	drop(scene, DROP_OUTPUT, DROP_ANY_RULE, 0);
	scene->plane.left_out[DROP_OUTPUT] = 9;
	pass(scene);
	struct talker *talker = follow(scene, FOLLOW);

	assert_int_equal(scene->plane.wanted_drops.reasons, ALL_REASONS);
	assert_int_equal(scene->plane.wanted_drops.rule_port, DROP_ANY_RULE);
	assert_int_equal(scene->plane.wanted_drops.rate, 100);
	drop(scene, DROP_RULE, 3, 5);
	scene_now_us += 10000;
	json_t *line = talker_line(scene, talker);

	assert_string_equal(text_of(line, "time"), "2026-11-20T08:00:01.500000Z");
	assert_string_equal(text_of(line, "reason"), "rule");
	assert_string_equal(text_of(line, "port"), "right");
	assert_string_equal(text_of(line, "src"), "10.0.0.9");
	assert_string_equal(text_of(line, "dst"), "10.0.0.1");
	assert_string_equal(text_of(line, "bytes"), "02abff");
	assert_int_equal(number_of(line, "wire"), 0);
	assert_int_equal(number_of(line, "length"), 1514);
	assert_int_equal(number_of(line, "proto"), 6);
	assert_int_equal(number_of(line, "sport"), 1234);
	assert_int_equal(number_of(line, "dport"), 80);
	assert_int_equal(number_of(line, "zone"), 0);
	assert_int_equal(number_of(line, "tcp_flags"), TCP_SYN);
	assert_int_equal(number_of(line, "rule_port"), 3);
	assert_int_equal(number_of(line, "rule"), 5);
	json_decref(line);
	expect_nothing(scene, talker);
	leave(scene, talker);
	pass(scene);
	assert_int_equal(scene->plane.wanted_drops.reasons, 0);
}

/* A frame that is not IP, and what has been left out meanwhile. */
static void test_others(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW);

	drop(scene, DROP_MALFORMED, DROP_ANY_RULE, 0);
	scene->plane.drops[0].has_key = false;
	scene->plane.drops[0].port = PLANE_MAX_PORTS;
	scene->plane.left_out[DROP_MALFORMED] = 3;
	scene->plane.left_out[DROP_RULE] = 4;
	scene_now_us += 10000;
	json_t *line = talker_line(scene, talker);

	assert_string_equal(text_of(line, "reason"), "malformed");
	assert_null(json_object_get(line, "src"));
	assert_null(json_object_get(line, "port"));
	assert_null(json_object_get(line, "rule"));
	json_decref(line);
	line = talker_line(scene, talker);
	assert_int_equal(number_of(line, "left_out"), 7);
	json_decref(line);
	expect_nothing(scene, talker);
	leave(scene, talker);
}

/* Each follower gets what it asked for; lcores are asked for what all want together. */
static void test_filters(void **state)
{
	struct scene *scene = *state;
	const struct drop_wanted *wanted = &scene->plane.wanted_drops;
	struct talker *one = follow(scene, FOLLOW_ONE), *port, *rules;

	assert_int_equal(wanted->rule_port, 3);
	assert_int_equal(wanted->rule, 5);
	port = follow(scene, FOLLOW_PORT);
	assert_int_equal(wanted->rule_port, DROP_ANY_RULE);
	rules = follow(scene, FOLLOW_RULES);
	assert_int_equal(wanted->reasons, ALL_REASONS);
	drop(scene, DROP_REJECTED, 3, 5);
	drop(scene, DROP_RULE, 3, 6);
	drop(scene, DROP_RULE, 2, 5);
	drop(scene, DROP_OUTPUT, DROP_ANY_RULE, 0);
	scene->plane.left_out[DROP_OUTPUT] = 4;
	scene_now_us += 10000;
	expect_drop(scene, one, DROP_REJECTED, 5);
	expect_drop(scene, port, DROP_REJECTED, 5);
	expect_drop(scene, port, DROP_RULE, 6);
	expect_drop(scene, rules, DROP_RULE, 6);
	expect_drop(scene, rules, DROP_RULE, 5);
	expect_nothing(scene, rules);
	leave(scene, one);
	leave(scene, port);
	pass(scene);
	assert_int_equal(wanted->reasons, 1u << DROP_RULE);
	assert_int_equal(wanted->rate, 7);
	leave(scene, rules);
}

/* Events and drops are told to different people. */
static void test_not_events(void **state)
{
	struct scene *scene = *state;
	struct talker *drops = follow(scene, FOLLOW);
	struct talker *events = follow(scene, "{\"ask\":\"event follow\"}");
	struct path_event event = {.kind = PATH_EVENT_FRAMES_CUT, .port = 1};

	drop(scene, DROP_BLOCKED, DROP_ANY_RULE, 0);
	fake_event(&scene->plane, &event);
	scene_now_us += 10000;
	expect_drop(scene, drops, DROP_BLOCKED, -1);
	json_t *line = talker_line(scene, events);

	assert_string_equal(text_of(line, "event"), "frames_cut");
	json_decref(line);
	expect_nothing(scene, drops);
	expect_nothing(scene, events);
	leave(scene, drops);
	leave(scene, events);
}

static void test_refused(void **state)
{
	struct scene *scene = *state;

	expect_error(scene, "{\"ask\":\"drop follow\",\"with\":{\"reason\":\"rejectet\"}}",
		"drop follow: reason \"rejectet\": no such reason; did you mean rejected?", 2);
	expect_error(scene, "{\"ask\":\"drop follow\",\"with\":{\"rule\":5}}",
		"drop follow: rule 5: the port that it was made for is needed, too (at)", 2);
	assert_int_equal(scene->plane.n_watches, 0);
}

/* Lcores that do not answer are asked again. */
static void test_silent(void **state)
{
	struct scene *scene = *state;

	scene->plane.silent = true;
	struct talker *talker = follow(scene, FOLLOW);

	assert_int_equal(scene->plane.n_watches, 0);
	scene->plane.silent = false;
	pass(scene);
	assert_int_equal(scene->plane.wanted_drops.reasons, ALL_REASONS);
	drop(scene, DROP_OUTPUT, DROP_ANY_RULE, 0);
	scene_now_us += 10000;
	expect_drop(scene, talker, DROP_OUTPUT, -1);
	leave(scene, talker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_line),
		SCENE_TEST(test_others),
		SCENE_TEST(test_filters),
		SCENE_TEST(test_not_events),
		SCENE_TEST(test_refused),
		SCENE_TEST(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
