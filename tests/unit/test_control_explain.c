/* SPDX-License-Identifier: BSD-3-Clause */

/* flow explain and flow kill. */

#include "unit/control_explain.h"

#define KILL(with) "{\"ask\":\"flow kill\",\"with\":{" with "}}"

static void test_tcp(void **state)
{
	struct scene *scene = *state;
	struct flow_record *record = add(scene, 6, FLOW_ESTABLISHED);

	scene->plane.snapshot.lcores[1].cpu = 5;
	record->initiator = 0;
	record->window_known = 3;
	record->tcp_end[0] = 4000000001;
	record->tcp_end[1] = 12;
	record->end[0].tcp_window = 65535;
	record->end[1].tcp_window = 100;
	record->end[0].tcp_scale = 7;
	record->end[1].tcp_scale = 0;
	for (unsigned turned = 0; turned < 2; turned++) {
		json_t *lines = expect_lines(scene,
			turned ? EXPLAIN(TURNED ",\"proto\":6") : EXPLAIN(ONE ",\"proto\":\"tcp\""),
			1);
		const json_t *line = json_array_get(lines, 0);
		const json_t *tcp = json_object_get(line, "tcp");

		/* whoever is named first, the initiator is who it was */
		assert_string_equal(text_of(line, "src"), "10.0.0.7");
		assert_int_equal(number_of(line, "worker"), 1);
		assert_int_equal(number_of(line, "cpu"), 5);
		assert_string_equal(text_of(line, "learned_from"), "left");
		assert_int_equal(number_of(line, "age_us"), 40000000);
		assert_int_equal(number_of(line, "idle_us"), 3000);
		assert_string_equal(text_of(line, "state"), "open");
		assert_string_equal(text_of(line, "state_detail"), "established");
		assert_string_equal(text_of(line, "where"), "software");
		assert_string_equal(text_of(line, "where_because"), "offload is turned off");
		assert_string_equal(text_of(line, "verdict"), "forward");
		assert_string_equal(text_of(line, "reverse_verdict"), "forward");
		assert_true(json_is_true(json_object_get(tcp, "window_tracked")));
		assert_int_equal(number_of(tcp, "next_seq"), 4000000001);
		assert_int_equal(number_of(tcp, "reverse_next_seq"), 12);
		assert_int_equal(number_of(tcp, "window"), 65535 * 128);
		assert_int_equal(number_of(tcp, "reverse_window"), 100);
		assert_int_equal(number_of(tcp, "scale"), 7);
		assert_int_equal(number_of(tcp, "reverse_scale"), 0);
		assert_int_equal(number_of(line, "timeout_s"), 7440);
		assert_string_equal(text_of(line, "timeout_name"), "tcp-open");
		/* at a whole second of the run */
		assert_int_equal(number_of(line, "ends_in_us"), INT64_C(7440000000));
		assert_string_equal(text_of(line, "ends_because"),
			"no packet for 7,440 s ends it (tcp-open); the last was 3 ms ago; FIN or "
			"RST "
			"would end it sooner");
		json_decref(lines);
	}
}

/* What a handshake has not told yet is absent. */
static void test_half_known(void **state)
{
	struct scene *scene = *state;
	struct flow_record *record = add(scene, 6, FLOW_SYN_SENT);

	record->initiator = 0;
	record->side = 1;
	record->tcp_end[0] = 1001;
	record->end[0].tcp_scale = 7;
	record->end[1].tcp_scale = FLOW_SCALE_UNKNOWN;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *line = json_array_get(lines, 0);
	const json_t *tcp = json_object_get(line, "tcp");

	assert_true(json_is_false(json_object_get(tcp, "window_tracked")));
	assert_int_equal(number_of(tcp, "next_seq"), 1001);
	assert_null(json_object_get(tcp, "reverse_next_seq"));
	assert_null(json_object_get(tcp, "reverse_window"));
	assert_null(json_object_get(tcp, "reverse_scale"));
	assert_null(json_object_get(line, "cpu"));
	assert_string_equal(text_of(line, "learned_from"), "right");
	assert_string_equal(text_of(line, "ends_because"),
		"the handshake is not complete; no packet for 60 s ends it (tcp-new); the last was "
		"3 "
		"ms ago");
	json_decref(lines);
}

static void test_because(void **state)
{
	static const struct {
		uint8_t proto;
		enum flow_state state;
		uint32_t idle_us;
		const char *name;
		const char *because;
	} cases[] = {
		{17, FLOW_REPLIED, 0, "udp-open",
			"no packet for 180 s ends it (udp-open); the last was 0 us ago"},
		{17, FLOW_REQUEST, 1234567, "udp-new",
			"only one side has spoken; no packet for 30 s ends it (udp-new); the last "
			"was "
			"1.2 s ago"},
		{1, FLOW_REPLIED, 999, "icmp",
			"no packet for 60 s ends it (icmp); the last was 999 us ago"},
		{132, FLOW_REPLIED, 65000000, "sctp-open",
			"no packet for 900 s ends it (sctp-open); the last was 65 s ago"},
		{47, FLOW_REPLIED, 1000, "other-open",
			"no packet for 600 s ends it (other-open); the last was 1 ms ago"},
		{6, FLOW_PICKED_UP, 0, "tcp-new",
			"only one side has spoken; no packet for 60 s ends it (tcp-new); the last "
			"was "
			"0 us ago"},
		{6, FLOW_FIN_1, 0, "tcp-closing",
			"one side has closed; no packet for 240 s ends it (tcp-closing); the last "
			"was "
			"0 us ago"},
		{6, FLOW_FIN_ACK_0, 0, "tcp-closing",
			"both sides have closed, but have not both heard of it; no packet for 240 "
			"s "
			"ends it (tcp-closing); the last was 0 us ago"},
		{6, FLOW_TIME_WAIT, 0, "tcp-time-wait",
			"both sides have closed; it waits 120 s (tcp-time-wait) for stragglers, "
			"and the "
			"last packet was 0 us ago"},
		{6, FLOW_RESET, 0, "tcp-reset",
			"it was reset; it waits 10 s (tcp-reset) for stragglers, and the last "
			"packet was "
			"0 us ago"},
	};
	struct scene *scene = *state;
	char request[256];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flow_record *record = add(scene, cases[i].proto, cases[i].state);

		record->last_seen_us = (CLOCK - cases[i].idle_us) & ((UINT64_C(1) << 48) - 1);
		snprintf(request, sizeof(request), EXPLAIN(ONE ",\"proto\":%u"), cases[i].proto);
		json_t *lines = expect_lines(scene, request, 1);
		const json_t *line = json_array_get(lines, 0);

		assert_string_equal(text_of(line, "timeout_name"), cases[i].name);
		assert_string_equal(text_of(line, "ends_because"), cases[i].because);
		assert_int_equal(json_is_object(json_object_get(line, "tcp")), cases[i].proto == 6);
		json_decref(lines);
	}
}

/* A packet that comes between the look at the record and the look at the clock is not in the future. */
static void test_clock(void **state)
{
	struct scene *scene = *state;
	struct flow_record *record = add(scene, 17, FLOW_REPLIED);

	record->last_seen_us = CLOCK + 10;
	record->start_us = CLOCK + 10;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":17"), 1);

	assert_int_equal(number_of(json_array_get(lines, 0), "idle_us"), 0);
	assert_int_equal(number_of(json_array_get(lines, 0), "age_us"), 0);
	json_decref(lines);
	/* and one whose time is over, but which ageing has not looked at yet, ends now */
	record->last_seen_us = 5;
	scene->plane.now_us = 1000 * UINT64_C(1000000);
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":17"), 1);
	assert_int_equal(number_of(json_array_get(lines, 0), "ends_in_us"), 0);
	json_decref(lines);
}

/* Where nobody offloads each port says why that is so. */
static void test_nobody_offloads(void **state)
{
	struct scene *scene = *state;

	scene->plane.config.offload.on = true;
	scene->plane.config.offload.off_port[0] = true;
	add(scene, 17, FLOW_REPLIED);
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":17"), 1);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "where"), "software");
	assert_string_equal(text_of(line, "where_because"),
		"port left is one of those that are left out of offload");
	assert_string_equal(text_of(direction(line, 0), "reason"), "off");
	assert_string_equal(text_of(direction(line, 1), "reason"), "no_nic");
	assert_int_equal(number_of(line, "marked_packets"), 0);
	assert_null(json_object_get(line, "mark"));
	assert_null(json_object_get(direction(line, 0), "since"));
	assert_int_equal(json_array_size(json_object_get(line, "changes")), 0);
	assert_true(json_is_false(json_object_get(line, "changes_lost")));
	json_decref(lines);
}

static struct offload_change change_of(const struct flow_record *record, unsigned side,
	uint8_t before, uint8_t after, uint8_t reason, uint64_t ago_us)
{
	return (struct offload_change){
		.key = record->key,
		.time_us = (CLOCK - ago_us) & ((UINT64_C(1) << 48) - 1),
		.kind = CHANGE_FLOW,
		.reason = reason,
		.port = side & 1,
		.from = (side == 0) == record->initiator,
		.before = before & 7u,
		.after = after & 7u,
	};
}

static void check_forward(const json_t *forward)
{
	assert_string_equal(text_of(forward, "direction"), "forward");
	assert_string_equal(text_of(forward, "port"), "left");
	assert_string_equal(text_of(forward, "state"), "in_hw");
	assert_true(json_is_true(json_object_get(forward, "proven")));
	assert_string_equal(text_of(forward, "since"), "2026-11-20T08:01:28.000000Z");
	assert_int_equal(number_of(forward, "for_us"), 12000000);
	assert_int_equal(number_of(forward, "packets"), 7000);
	assert_int_equal(number_of(forward, "nic_packets"), 5900);
}

static void check_reverse(const json_t *reverse)
{
	assert_string_equal(text_of(reverse, "direction"), "reverse");
	assert_string_equal(text_of(reverse, "port"), "right");
	assert_string_equal(text_of(reverse, "reason"), "quiet");
	assert_string_equal(text_of(reverse, "because"),
		"its rate is below the threshold of 1,000 packets a second, or was not measured "
		"yet");
	assert_int_equal(number_of(reverse, "for_us"), 20000000);
	assert_int_equal(number_of(reverse, "packets"), 5000);
	assert_null(json_object_get(reverse, "nic_packets"));
	assert_null(json_object_get(reverse, "proven"));
}

static void check_changes(const json_t *changes)
{
	const json_t *oldest = json_array_get(changes, 2);

	assert_int_equal(json_array_size(changes), 3);
	assert_string_equal(text_of(json_array_get(changes, 0), "direction"), "forward");
	assert_string_equal(text_of(json_array_get(changes, 1), "direction"), "reverse");
	assert_string_equal(text_of(oldest, "before"), "in_hw");
	assert_string_equal(text_of(oldest, "after"), "leaving");
	assert_string_equal(
		text_of(oldest, "because"), "its rate fell below half of the threshold");
	assert_int_equal(number_of(oldest, "ago_us"), 21000000);
}

static void test_offloaded(void **state)
{
	struct scene *scene = *state;
	struct flow_record *record = add_offloaded(scene, OFFLOAD_PROVEN, OFFLOAD_SOFTWARE);
	struct plane_flow *flow = &scene->plane.flow;

	flow->mark = 65538;
	flow->nic[0] = 5900;
	flow->n_changes = 3;
	flow->lost = true;
	flow->changes[0] =
		change_of(record, 0, OFFLOAD_ACCEPTED, OFFLOAD_PROVEN, OFFLOAD_BUSY, 12000000);
	flow->changes[1] =
		change_of(record, 1, OFFLOAD_LEAVING, OFFLOAD_SOFTWARE, OFFLOAD_QUIET, 20000000);
	flow->changes[2] =
		change_of(record, 1, OFFLOAD_PROVEN, OFFLOAD_LEAVING, OFFLOAD_SLOWED, 21000000);
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "where"), "in_hw");
	assert_string_equal(text_of(line, "where_because"),
		"its rate reached the threshold of 1,000 packets a second");
	assert_string_equal(text_of(json_object_get(line, "offload"), "state"), "in_hw");
	assert_int_equal(number_of(line, "marked_packets"), 6000);
	assert_int_equal(number_of(line, "mark"), 65538);
	assert_null(json_object_get(line, "retry_in_us"));
	check_forward(direction(line, 0));
	check_reverse(direction(line, 1));
	check_changes(json_object_get(line, "changes"));
	assert_true(json_is_true(json_object_get(line, "changes_lost")));
	json_decref(lines);
	/* without a change that is known, since when is as the slot has it */
	flow->n_changes = 0;
	flow->since_us[0] = CLOCK - 12000000;
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	line = json_array_get(lines, 0);
	assert_int_equal(number_of(direction(line, 0), "for_us"), 12000000);
	assert_null(json_object_get(direction(line, 1), "for_us"));
	json_decref(lines);
	/* nor is a time told of a change whose reason is over: another reason holds since some time after it */
	flow->n_changes = 1;
	flow->changes[0] = change_of(
		record, 1, OFFLOAD_LEAVING, OFFLOAD_SOFTWARE, OFFLOAD_QUARANTINE, 20000000);
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	line = json_array_get(lines, 0);
	assert_string_equal(text_of(direction(line, 1), "reason"), "quiet");
	assert_null(json_object_get(direction(line, 1), "for_us"));
	json_decref(lines);
}

static void test_not_there(void **state)
{
	struct scene *scene = *state;

	add(scene, 17, FLOW_REPLIED);
	expect_error(scene, EXPLAIN(ONE ",\"proto\":6"), "no such flow", 1);
	expect_error(scene, EXPLAIN(ONE ",\"proto\":17,\"wire\":1"), "no such flow", 1);
	expect_error(scene, EXPLAIN(ONE ",\"proto\":17,\"zone\":1"), "no such flow", 1);
	expect_error(scene, KILL(ONE ",\"proto\":6"), "no such flow", 1);
	/* ports that are not given are 0 */
	expect_error(scene, EXPLAIN("\"src\":\"10.0.0.7\",\"dst\":\"10.0.0.10\",\"proto\":17"),
		"no such flow", 1);
	scene->plane.silent = true;
	expect_error(scene, EXPLAIN(ONE ",\"proto\":17"),
		"flow explain: a thread of the packet path does not answer", 1);
	expect_error(scene, KILL(ONE ",\"proto\":17"),
		"flow kill: a thread of the packet path does not answer", 1);
	assert_int_equal(scene->plane.n_kills, 0);
}

static void test_kill(void **state)
{
	struct scene *scene = *state;

	add(scene, 17, FLOW_REPLIED);
	json_t *lines = expect_lines(scene, KILL(TURNED ",\"proto\":\"udp\""), 1);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "src"), "10.0.0.7");
	assert_string_equal(text_of(line, "state"), "open");
	assert_int_equal(number_of(line, "worker"), 1);
	assert_null(json_object_get(line, "idle_us"));
	json_decref(lines);
	assert_int_equal(scene->plane.n_kills, 1);
	expect_error(scene, KILL(TURNED ",\"proto\":\"udp\""), "no such flow", 1);
}

static void test_ipv6(void **state)
{
	struct scene *scene = *state;
	struct flow_record record = fake_flow("2001:db8::2", 0, "2001:db8::1", 0, 58);

	record.key.version_wire = FLOW_KEY_VERSION_WIRE(6, 1);
	record.key.zone = 4094;
	record.side = 1;
	fake_add(&scene->plane, 0, 0, &record);
	json_t *lines = expect_lines(scene,
		EXPLAIN("\"src\":\"2001:DB8:0::1\",\"dst\":\"2001:db8::2\",\"proto\":\"icmp6\","
			"\"wire\":1,\"zone\":4094"),
		1);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "src"), "2001:db8::2");
	assert_string_equal(text_of(line, "learned_from"), "down");
	json_decref(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_tcp),
		SCENE_TEST(test_half_known),
		SCENE_TEST(test_because),
		SCENE_TEST(test_clock),
		SCENE_TEST(test_nobody_offloads),
		SCENE_TEST(test_offloaded),
		SCENE_TEST(test_not_there),
		SCENE_TEST(test_kill),
		SCENE_TEST(test_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
