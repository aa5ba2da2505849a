/* SPDX-License-Identifier: BSD-3-Clause */

/* event follow: what happens, to those who want to know, and what is missing. */

#include "unit/control_scene.h"

#define FOLLOW "{\"ask\":\"event follow\"}"
#define FOLLOW_PORTS "{\"ask\":\"event follow\",\"with\":{\"flows\":false}}"

/* Follows from now on. */
static struct talker *follow(struct scene *scene, const char *request)
{
	struct talker *talker = talker_create(scene);

	talker_ask(talker, request);
	scene_settle(scene);
	return talker;
}

static struct path_event flow_event(enum path_event_kind kind, uint16_t sport)
{
	struct path_event event = {.kind = kind & 0xff, .time_us = 1500000, .worker = 1};
	struct flow_record record = fake_flow("10.0.0.9", sport, "10.0.0.1", 80, 6);

	event.key = record.key;
	event.initiator = record.initiator;
	return event;
}

static void raise_flow(struct scene *scene, enum path_event_kind kind, uint16_t sport)
{
	struct path_event event = flow_event(kind, sport);

	event.reason = FLOW_END_KILLED;
	fake_event(&scene->plane, &event);
}

static void raise_port(struct scene *scene, enum path_event_kind kind, uint8_t port)
{
	struct path_event event = {.kind = kind & 0xff, .time_us = 2000000, .port = port};

	fake_event(&scene->plane, &event);
}

/* Time passes, until events are looked for again. */
static void pass(struct scene *scene)
{
	scene_now_us += 250000;
	scene_settle(scene);
}

static void expect_nothing(struct scene *scene, struct talker *talker)
{
	pass(scene);
	talker_read(talker);
	assert_int_equal(talker->n, 0);
	assert_false(talker->eof);
}

static json_t *expect_event(struct scene *scene, struct talker *talker, const char *name)
{
	json_t *line = talker_line(scene, talker);

	assert_non_null(line);
	assert_string_equal(text_of(line, "event"), name);
	assert_non_null(text_of(line, "time"));
	return line;
}

static void test_flows(void **state)
{
	static const char *const names[] = {"flow_new", "flow_open", "flow_closing", "flow_blocked",
		"flow_unblocked", "flow_end"};
	const unsigned n = sizeof(names) / sizeof(names[0]);
	struct scene *scene = *state;
	struct talker *talker;

	/* what nobody followed is not told later */
	raise_flow(scene, PATH_EVENT_FLOW_NEW, 999);
	pass(scene);
	talker = follow(scene, FOLLOW);
	assert_true(scene->plane.following);
	for (unsigned i = 0; i < n; i++)
		raise_flow(scene, (enum path_event_kind)(PATH_EVENT_FLOW_NEW + i), 1234);
	scene_now_us += 10000;
	for (unsigned i = 0; i < n; i++) {
		json_t *line = expect_event(scene, talker, names[i]);

		assert_string_equal(text_of(line, "time"), "2026-11-20T08:00:01.500000Z");
		assert_string_equal(text_of(line, "src"), "10.0.0.9");
		assert_string_equal(text_of(line, "dst"), "10.0.0.1");
		assert_int_equal(number_of(line, "proto"), 6);
		assert_int_equal(number_of(line, "sport"), 1234);
		assert_int_equal(number_of(line, "dport"), 80);
		assert_int_equal(number_of(line, "wire"), 0);
		assert_int_equal(number_of(line, "zone"), 0);
		assert_int_equal(number_of(line, "worker"), 1);
		if (i == n - 1)
			assert_string_equal(text_of(line, "end_reason"), "killed");
		else
			assert_null(json_object_get(line, "end_reason"));
		json_decref(line);
	}
	expect_nothing(scene, talker);

	/* the last one to go lets the lcores rest */
	struct talker *other = follow(scene, FOLLOW);

	talker_destroy(talker);
	scene_settle(scene);
	assert_true(scene->plane.following);
	talker_destroy(other);
	scene_settle(scene);
	assert_false(scene->plane.following);
}

static void test_longest_addresses(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW);
	struct flow_record record = fake_flow("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", 65535,
		"2001:db8:aaaa:bbbb:cccc:dddd:eeee:fffe", 65534, 132);
	struct path_event event = {
		.kind = PATH_EVENT_FLOW_END,
		.time_us = (UINT64_C(1) << 48) - 1,
		.reason = FLOW_END_SHUTDOWN,
		.worker = 255,
		.key = record.key,
		.initiator = record.initiator,
	};

	event.key.version_wire = FLOW_KEY_VERSION_WIRE(6, 15);
	event.key.zone = 65535;
	fake_event(&scene->plane, &event);
	pass(scene);
	json_t *line = expect_event(scene, talker, "flow_end");

	assert_string_equal(text_of(line, "src"), "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff");
	assert_int_equal(number_of(line, "zone"), 65535);
	json_decref(line);
	talker_destroy(talker);
}

static void test_ports(void **state)
{
	struct scene *scene = *state;
	struct talker *all, *ports;

	/* whoever runs the engine hears of it though nobody follows, once for each port */
	raise_port(scene, PATH_EVENT_CHECKSUM_OFFLOAD, 1);
	raise_port(scene, PATH_EVENT_CHECKSUM_OFFLOAD, 1);
	pass(scene);
	assert_int_equal(scene->n_notes, 1);
	assert_string_equal(scene->note,
		"right: frames with unfinished checksums come in, which other machines will drop; "
		"switch checksum offload off where they are sent: ethtool -K INTERFACE tx off");
	raise_port(scene, PATH_EVENT_CHECKSUM_OFFLOAD, 0);
	raise_port(scene, PATH_EVENT_SHARDING_FALLBACK, 1);
	pass(scene);
	assert_int_equal(scene->n_notes, 3);

	/* followers each time; those who want no flows as well, who cost the lcores nothing */
	ports = follow(scene, FOLLOW_PORTS);
	assert_false(scene->plane.following);
	all = follow(scene, FOLLOW);
	raise_flow(scene, PATH_EVENT_FLOW_NEW, 1);
	raise_port(scene, PATH_EVENT_SHARDING_FALLBACK, 1);
	pass(scene);
	assert_int_equal(scene->n_notes, 3);
	json_decref(expect_event(scene, all, "flow_new"));
	for (unsigned i = 0; i < 2; i++) {
		json_t *line = expect_event(scene, i == 0 ? all : ports, "sharding_fallback");

		assert_string_equal(text_of(line, "port"), "right");
		assert_non_null(text_of(line, "what"));
		json_decref(line);
	}
	expect_nothing(scene, ports);
	talker_destroy(all);
	talker_destroy(ports);
}

/* Frames that do not fit: by the names of the interfaces on either side of the wire. */
static void test_frames(void **state)
{
	struct scene *scene = *state;

	snprintf(scene->plane.ports[0].device.interface,
		sizeof(scene->plane.ports[0].device.interface), "eth8");
	snprintf(scene->plane.ports[1].device.interface,
		sizeof(scene->plane.ports[1].device.interface), "eth9");
	raise_port(scene, PATH_EVENT_FRAMES_CUT, 0);
	pass(scene);
	assert_non_null(strstr(scene->note, "(cut); if they were joined: ethtool -K eth8 gro off"));
	raise_port(scene, PATH_EVENT_FRAMES_TOO_LONG, 1);
	pass(scene);
	assert_non_null(
		strstr(scene->note, "(too_long); if they were joined: ethtool -K eth8 gro"));
	assert_non_null(strstr(scene->note, "ip link set eth9 mtu N"));
	raise_port(scene, PATH_EVENT_FRAMES_REFUSED, 1);
	raise_port(scene, PATH_EVENT_FRAMES_REFUSED, 1);
	pass(scene);
	assert_non_null(strstr(scene->note, "(output)"));
	assert_int_equal(scene->n_notes, 3);
}

static void test_mtu(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW_PORTS);
	struct port *port = &scene->plane.ports[2];

	port->mtu = 9000;
	control_event_mtu(scene->control, port);
	port->far_mtu = 1400;
	control_event_mtu(scene->control, port);
	json_t *line = expect_event(scene, talker, "mtu");

	assert_int_equal(number_of(line, "mtu"), 9000);
	assert_null(json_object_get(line, "far_mtu"));
	json_decref(line);
	line = expect_event(scene, talker, "mtu");
	assert_int_equal(number_of(line, "far_mtu"), 1400);
	json_decref(line);
	talker_destroy(talker);
}

/* A worker with far more than its share: whoever runs the engine hears of new flows, and once. */
static void test_crowded(void **state)
{
	struct scene *scene = *state;
	struct path_event event = {
		.kind = PATH_EVENT_CROWDED, .worker = 1, .reason = BALANCE_PACKETS};
	struct talker *talker = follow(scene, FOLLOW_PORTS);

	fake_event(&scene->plane, &event);
	pass(scene);
	assert_int_equal(scene->n_notes, 0);
	event.reason = BALANCE_FLOWS;
	for (unsigned i = 0; i < 2; i++) {
		fake_event(&scene->plane, &event);
		pass(scene);
		assert_int_equal(scene->n_notes, 1);
	}
	assert_non_null(strstr(scene->note, "worker 1: it has far more than its share of the new"));
	for (unsigned i = 0; i < 3; i++) {
		json_t *line = expect_event(scene, talker, "worker_crowded");

		assert_int_equal(number_of(line, "worker"), 1);
		assert_int_equal(strstr(text_of(line, "what"), "new flows") != NULL, i > 0);
		json_decref(line);
	}
	raise_port(scene, PATH_EVENT_SHARDING_RETRY, 1);
	pass(scene);
	json_t *line = expect_event(scene, talker, "sharding_retry");

	assert_string_equal(text_of(line, "port"), "right");
	json_decref(line);
	talker_destroy(talker);
}

/* What main raises; and numbers that cannot be do no harm. */
static void test_main(void **state)
{
	struct scene *scene = *state;
	struct talker *talker;

	control_event_records_lost(scene->control, 5);
	talker = follow(scene, FOLLOW_PORTS);
	scene->plane.ports[2].link = PORT_LINK_DOWN;
	control_event_link(scene->control, &scene->plane.ports[2]);
	control_event_records_lost(scene->control, 0);
	control_event_records_lost(scene->control, 17);
	json_t *line = expect_event(scene, talker, "link");

	assert_string_equal(text_of(line, "time"), "2026-11-20T08:01:40.000000Z");
	assert_string_equal(text_of(line, "port"), "up");
	assert_string_equal(text_of(line, "link"), "down");
	json_decref(line);
	line = expect_event(scene, talker, "records_lost");
	assert_int_equal(number_of(line, "records"), 17);
	json_decref(line);
	strcpy(scene->plane.ports[2].interface, "new\"\\");
	strcpy(scene->plane.ports[2].interface_before, "old");
	control_event_renamed(scene->control, &scene->plane.ports[2]);
	line = expect_event(scene, talker, "renamed");
	assert_string_equal(text_of(line, "port"), "up");
	assert_string_equal(text_of(line, "interface"), "new\"\\");
	assert_string_equal(text_of(line, "before"), "old");
	json_decref(line);

	struct path_event event = {.kind = 255};

	fake_event(&scene->plane, &event);
	raise_port(scene, PATH_EVENT_SHARDING_FALLBACK, 255);
	pass(scene);
	json_decref(expect_event(scene, talker, "sharding_fallback"));
	talker_destroy(talker);
}

/* Every event is either told or counted, in order, with the gaps where they are. */
static unsigned add_up(struct scene *scene, struct talker *talker, unsigned n_events,
	unsigned *n_lost, unsigned *n_gaps)
{
	unsigned n = 0;

	*n_lost = *n_gaps = 0;
	while (n + *n_lost < n_events) {
		json_t *line = talker_line(scene, talker);

		if (strcmp(text_of(line, "event"), "lost") == 0) {
			*n_lost += (unsigned)number_of(line, "events");
			(*n_gaps)++;
		} else {
			/* this one has the number that its place in the order says */
			assert_int_equal(number_of(line, "sport"), (n + *n_lost) & 0xffff);
			n++;
		}
		json_decref(line);
	}
	return n;
}

static void test_slow_reader(void **state)
{
	struct scene *scene = *state;
	struct talker *slow = follow(scene, FOLLOW), *quick = follow(scene, FOLLOW);
	unsigned n_events = 0, n_lost, n_gaps, n;

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 600; i++)
			raise_flow(scene, PATH_EVENT_FLOW_NEW, (uint16_t)n_events++);
		scene_now_us += 10000;
		for (unsigned i = 0; i < 600; i++)
			json_decref(expect_event(scene, quick, "flow_new"));
	}
	assert_int_equal(quick->n, 0);
	/* the slow one begins to read: behind what is lost new events go on */
	talker_read(slow);
	pass(scene);
	raise_flow(scene, PATH_EVENT_FLOW_NEW, (uint16_t)n_events++);
	pass(scene);
	n = add_up(scene, slow, n_events, &n_lost, &n_gaps);
	assert_int_equal(n + n_lost, n_events);
	assert_true(n_lost > 0 && n > 200);
	assert_true(n_gaps >= 1 && n_gaps <= 3);
	talker_destroy(slow);
	talker_destroy(quick);
}

/* Those that the lcores themselves could not keep are missing behind those that they could. */
static void test_lost_in_lcore(void **state)
{
	struct scene *scene = *state;
	struct talker *all = follow(scene, FOLLOW), *ports = follow(scene, FOLLOW_PORTS);

	raise_flow(scene, PATH_EVENT_FLOW_NEW, 7);
	scene->plane.lost = 123;
	pass(scene);
	json_decref(expect_event(scene, all, "flow_new"));
	json_t *line = expect_event(scene, all, "lost");

	assert_int_equal(number_of(line, "events"), 123);
	json_decref(line);
	expect_nothing(scene, all);
	expect_nothing(scene, ports);
	talker_destroy(all);
	talker_destroy(ports);
}

/* socat and its like say that they have nothing more to ask, and go on reading. */
static void test_half_closed(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW);

	shutdown(talker->fd, SHUT_WR);
	expect_nothing(scene, talker);
	raise_flow(scene, PATH_EVENT_FLOW_NEW, 7);
	pass(scene);
	json_decref(expect_event(scene, talker, "flow_new"));
	talker_destroy(talker);
}

/* Lcores that do not answer: an error now, and a follower's end is told to them later. */
static void test_silent(void **state)
{
	struct scene *scene = *state;
	struct talker *talker;

	scene->plane.silent = true;
	expect_error(scene, FOLLOW, "event follow: a thread of the packet path does not answer", 1);
	scene->plane.silent = false;
	pass(scene);
	assert_false(scene->plane.following);
	talker = follow(scene, FOLLOW);
	scene->plane.silent = true;
	talker_destroy(talker);
	pass(scene);
	assert_true(scene->plane.following);
	scene->plane.silent = false;
	pass(scene);
	assert_false(scene->plane.following);
}

/* From the end that the rule is for, and only to those who want the events of flows. */
static void test_offload(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW), *other = follow(scene, FOLLOW_PORTS);
	struct path_event event = flow_event(PATH_EVENT_OFFLOAD, 1234);

	event.port = 1;
	event.from = event.initiator;
	event.before = OFFLOAD_INSTALLING;
	event.after = OFFLOAD_ACCEPTED;
	event.reason = OFFLOAD_BUSY;
	fake_event(&scene->plane, &event);
	event.from ^= 1;
	event.before = OFFLOAD_PROVEN;
	event.after = OFFLOAD_LEAVING;
	event.reason = OFFLOAD_REFUSALS + 3;
	fake_event(&scene->plane, &event);
	scene_now_us += 10000;
	json_t *line = expect_event(scene, talker, "offload");

	assert_string_equal(text_of(line, "src"), "10.0.0.9");
	assert_int_equal(number_of(line, "sport"), 1234);
	assert_string_equal(text_of(line, "port"), "right");
	assert_string_equal(text_of(line, "before"), "installing");
	assert_string_equal(text_of(line, "after"), "in_hw");
	assert_true(json_is_false(json_object_get(line, "proven")));
	assert_string_equal(text_of(line, "reason"), "busy");
	assert_int_equal(number_of(line, "worker"), 1);
	json_decref(line);
	line = expect_event(scene, talker, "offload");
	assert_string_equal(text_of(line, "src"), "10.0.0.1");
	assert_string_equal(text_of(line, "before"), "in_hw");
	assert_string_equal(text_of(line, "after"), "leaving");
	assert_null(json_object_get(line, "proven"));
	assert_string_equal(text_of(line, "reason"), "refused");
	json_decref(line);
	expect_nothing(scene, other);
	talker_destroy(other);
	talker_destroy(talker);
}

/* All who follow are told of flows and packets that came to rules that log; a packet without a flow has no addresses. */
static void test_log(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = follow(scene, FOLLOW_PORTS);
	struct path_event event = flow_event(PATH_EVENT_LOG, 1234);

	event.port = 1;
	event.from = event.initiator;
	event.rule_port = 3;
	event.rule = 77;
	event.verdict = FLOW_VERDICT_REJECT + 2;
	fake_event(&scene->plane, &event);
	memset(&event.key, 0, sizeof(event.key));
	event.port = UINT8_MAX;
	event.by_packet = 1;
	event.verdict = FLOW_VERDICT_DROP;
	event.lost = 9;
	fake_event(&scene->plane, &event);
	scene_now_us += 10000;
	json_t *line = expect_event(scene, talker, "log");

	assert_string_equal(text_of(line, "src"), "10.0.0.9");
	assert_string_equal(text_of(line, "port"), "right");
	assert_string_equal(text_of(line, "verdict"), "reject");
	assert_string_equal(text_of(line, "per"), "flow");
	assert_int_equal(number_of(line, "sport"), 1234);
	assert_int_equal(number_of(line, "rule"), 77);
	assert_int_equal(number_of(line, "rule_port"), 3);
	assert_int_equal(number_of(line, "worker"), 1);
	assert_null(json_object_get(line, "lost"));
	json_decref(line);
	line = expect_event(scene, talker, "log");
	assert_null(json_object_get(line, "src"));
	assert_null(json_object_get(line, "port"));
	assert_string_equal(text_of(line, "per"), "packet");
	assert_string_equal(text_of(line, "verdict"), "drop");
	assert_int_equal(number_of(line, "lost"), 9);
	json_decref(line);
	talker_destroy(talker);
}

/* The operator and those who follow hear of a breaker. */
static void test_breaker(void **state)
{
	static const struct {
		enum health_state state;
		const char *name, *note;
	} steps[] = {
		{HEALTH_OPEN, "open",
			"left: its NIC is given no flows for now, and software carries on (packets "
			"came without the mark)"},
		{HEALTH_TRYING, "trying", "left: its NIC is tried with a few flows"},
		{HEALTH_CLOSED, "closed",
			"left: its NIC keeps its word again, and is given flows as before"},
	};
	struct scene *scene = *state;
	struct health *health = &scene->plane.installers[0].health;
	struct talker *talker = follow(scene, FOLLOW_PORTS);

	scene->plane.installers[0].there = true;
	health->why = OFFLOAD_UNMARKED;
	for (unsigned i = 0; i < 3; i++) {
		unsigned notes = scene->n_notes;

		health->opened += steps[i].state == HEALTH_OPEN;
		health->state = (uint8_t)steps[i].state;
		scene_now_us += 250000;
		json_t *line = talker_line(scene, talker);

		assert_string_equal(text_of(line, "event"), "breaker");
		assert_string_equal(text_of(line, "port"), "left");
		assert_string_equal(text_of(line, "breaker"), steps[i].name);
		assert_string_equal(text_of(line, "reason"), "unmarked");
		json_decref(line);
		assert_int_equal(scene->n_notes - notes, 1);
		assert_string_equal(scene->note, steps[i].note);
	}
	talker_destroy(talker);
}

/* Nobody looks all the time: what came and went in between is told, in its order. */
static void test_breaker_between_looks(void **state)
{
	static const struct {
		enum health_state state;
		unsigned opened;
		const char *names[4];
	} looks[] = {
		{HEALTH_TRYING, 1, {"open", "trying"}},
		{HEALTH_OPEN, 2, {"open"}},
		{HEALTH_OPEN, 3, {"trying", "open"}},
		{HEALTH_OPEN, 3, {NULL}},
		/* the state is seen before it is counted */
		{HEALTH_TRYING, 3, {"trying"}},
		{HEALTH_OPEN, 3, {"open"}},
		{HEALTH_OPEN, 4, {NULL}},
		{HEALTH_CLOSED, 4, {"trying", "closed"}},
		{HEALTH_CLOSED, 1000, {"open", "trying", "closed"}},
		{HEALTH_CLOSED, 1000, {NULL}},
	};
	struct scene *scene = *state;
	struct health *health = &scene->plane.installers[0].health;
	struct talker *talker = follow(scene, FOLLOW_PORTS);
	unsigned notes = 0;

	scene->plane.installers[0].there = true;
	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		health->opened = looks[i].opened;
		health->state = (uint8_t)looks[i].state;
		scene_now_us += 250000;
		scene_settle(scene);
		for (unsigned j = 0; looks[i].names[j]; j++, notes++) {
			json_t *line = talker_line(scene, talker);

			assert_string_equal(text_of(line, "breaker"), looks[i].names[j]);
			json_decref(line);
		}
		assert_int_equal(scene->n_notes, notes);
	}
	talker_destroy(talker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_offload),
		SCENE_TEST(test_log),
		SCENE_TEST(test_breaker),
		SCENE_TEST(test_breaker_between_looks),
		SCENE_TEST(test_flows),
		SCENE_TEST(test_longest_addresses),
		SCENE_TEST(test_ports),
		SCENE_TEST(test_frames),
		SCENE_TEST(test_mtu),
		SCENE_TEST(test_crowded),
		SCENE_TEST(test_main),
		SCENE_TEST(test_slow_reader),
		SCENE_TEST(test_lost_in_lcore),
		SCENE_TEST(test_half_closed),
		SCENE_TEST(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
