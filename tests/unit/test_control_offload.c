/* SPDX-License-Identifier: BSD-3-Clause */

/* offload show, offload events, and what else is told of offload: filters. */

#include "unit/control_scene.h"

#define SHOW "{\"ask\":\"offload show\"}"
#define EVENTS "{\"ask\":\"offload events\"}"
#define FOLLOW "{\"ask\":\"offload events\",\"with\":{\"follow\":true}}"
#define S UINT64_C(1000000)

/* An installer with something of everything. */
static struct installer *add_installer(struct scene *scene, unsigned port)
{
	struct installer *installer = &scene->plane.installers[port];
	struct provider_abilities *abilities = &installer->abilities;

	installer->there = true;
	abilities->back_end = "rte_flow";
	strcpy(abilities->nic, "net_i40e");
	abilities->mark_bits = 32;
	abilities->mark_max = UINT32_MAX;
	abilities->counts = true;
	abilities->kind[PROVIDER_IPV4_TCP] = true;
	strcpy(abilities->shape[PROVIDER_IPV4_TCP], "eth / ipv4 / tcp, mark");
	installer->health.out[PROVIDER_IPV4_TCP] = 1;
	abilities->refused[PROVIDER_IPV6_SCTP].error = EINVAL;
	strcpy(abilities->refused[PROVIDER_IPV6_SCTP].words, "Not supported");
	installer->counters.done[INSTALLER_INSERT] = 4000;
	installer->counters.done[INSTALLER_REMOVE] = 1000;
	installer->counters.done[INSTALLER_COUNT] = 7;
	installer->counters.failed[INSTALLER_INSERT] = 3;
	for (unsigned i = 0; i < 5; i++)
		installer->counters.by_answer[i] = 10 + i;
	installer->counters.rules = 3000;
	installer->counters.under_way = 2;
	installer->counters.changes_lost = 7;
	installer->counters.oldest_us = scene->plane.now_us - 11000;
	refusal_note(&installer->refusals, ENOSPC, "table full");
	refusal_note(&installer->refusals, ENOSPC, "table full");
	refusal_note(&installer->refusals, EIO, NULL);
	for (unsigned i = 0; i < 100; i++)
		histogram_add(&installer->histograms.call[INSTALLER_INSERT], 1000);
	histogram_add(&installer->histograms.wait, 5000000);
	return installer;
}

static const json_t *object_of(const json_t *line, const char *key)
{
	const json_t *object = json_object_get(line, key);

	if (!json_is_object(object))
		fail_msg("%s is no object", key);
	return object;
}

static void check_port(const json_t *line)
{
	const json_t *refusals = json_object_get(line, "refusals");
	const json_t *kinds = object_of(line, "kinds"), *failures = object_of(line, "failures");
	const json_t *refused = object_of(object_of(kinds, "ipv6/sctp"), "refusal");
	const json_t *insert = object_of(object_of(line, "latency"), "insert");

	assert_string_equal(text_of(line, "nic"), "net_i40e");
	assert_string_equal(text_of(line, "back_end"), "rte_flow");
	assert_null(json_object_get(line, "unable"));
	assert_int_equal(number_of(line, "mark_bits"), 32);
	assert_int_equal(number_of(line, "mark_max"), UINT32_MAX);
	assert_true(json_is_true(json_object_get(line, "counts")));
	assert_int_equal(number_of(line, "rules"), 3000);
	assert_int_equal(number_of(line, "under_way"), 2);
	assert_int_equal(number_of(line, "changes_lost"), 7);
	assert_int_equal(number_of(line, "oldest_us"), 11000);
	assert_int_equal(number_of(line, "inserts"), 4000);
	assert_int_equal(number_of(line, "removes"), 1000);
	assert_int_equal(number_of(line, "counter_reads"), 7);
	assert_int_equal(number_of(line, "inserts_failed"), 3);
	assert_int_equal(number_of(failures, "ENOSPC"), 10);
	assert_int_equal(number_of(failures, "EOPNOTSUPP"), 11);
	assert_int_equal(number_of(failures, "EAGAIN"), 12);
	assert_int_equal(number_of(failures, "EIO"), 13);
	assert_int_equal(number_of(failures, "not_answered"), 14);
	assert_int_equal(json_array_size(refusals), 2);
	assert_string_equal(text_of(json_array_get(refusals, 0), "errno"), "ENOSPC");
	assert_string_equal(text_of(json_array_get(refusals, 0), "words"), "table full");
	assert_int_equal(number_of(json_array_get(refusals, 0), "times"), 2);
	assert_string_equal(text_of(json_array_get(refusals, 1), "errno"), "EIO");
	assert_null(json_object_get(json_array_get(refusals, 1), "words"));
	assert_int_equal(json_object_size(kinds), PROVIDER_N_KINDS);
	assert_string_equal(
		text_of(object_of(kinds, "ipv4/tcp"), "shape"), "eth / ipv4 / tcp, mark");
	assert_true(json_is_true(json_object_get(object_of(kinds, "ipv4/tcp"), "granted")));
	assert_true(json_is_false(json_object_get(object_of(kinds, "ipv6/sctp"), "granted")));
	assert_string_equal(text_of(refused, "errno"), "EINVAL");
	assert_string_equal(text_of(refused, "words"), "Not supported");
	assert_true(json_is_true(json_object_get(object_of(kinds, "ipv4/tcp"), "markless")));
	assert_null(json_object_get(object_of(kinds, "ipv6/sctp"), "markless"));
	assert_int_equal(number_of(insert, "times"), 100);
	assert_in_range(number_of(insert, "p50_ns"), 900, 1100);
	assert_in_range(number_of(insert, "p999_ns"), 900, 1100);
	assert_int_equal(number_of(insert, "max_ns"), 1000);
}

static void test_show(void **state)
{
	struct scene *scene = *state;
	struct agent_counters *counters = &scene->plane.offload_counters[1];

	add_installer(scene, 1);
	scene->plane.config.offload.on = true;
	scene->plane.slots[0] = (struct plane_slots){65536, 3005, 12};
	for (unsigned i = 0; i < OFFLOAD_N_STATES; i++)
		counters->flows[i] = 100 + i;
	counters->strangers = 4;
	counters->ghosts = 1;
	counters->no_slot = 2;
	counters->stalled = 6;
	counters->displaced = 9;
	counters->refused = 8;
	counters->fell_out[OFFLOAD_UNMARKED] = 5;
	json_t *lines = expect_lines(scene, SHOW, 4);
	const json_t *line = json_array_get(lines, 1), *flows = object_of(line, "flows");
	const json_t *none = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "port"), "right");
	assert_int_equal(number_of(line, "wire"), 0);
	check_port(line);
	assert_int_equal(number_of(line, "slots"), 65536);
	assert_int_equal(number_of(line, "slots_used"), 3005);
	assert_int_equal(number_of(line, "slots_draining"), 12);
	assert_int_equal(number_of(flows, "in_hw"), 200 + OFFLOAD_ACCEPTED + OFFLOAD_PROVEN);
	assert_int_equal(number_of(flows, "proven"), 100 + OFFLOAD_PROVEN);
	assert_int_equal(number_of(flows, "queued"), 100 + OFFLOAD_QUEUED);
	assert_int_equal(number_of(flows, "suspect"), 100 + OFFLOAD_SUSPECT);
	assert_int_equal(number_of(line, "strangers"), 4);
	assert_int_equal(number_of(line, "ghosts"), 1);
	assert_int_equal(number_of(line, "no_slot"), 2);
	assert_int_equal(number_of(line, "stalled"), 6);
	assert_int_equal(number_of(line, "displaced"), 9);
	assert_int_equal(number_of(line, "refused"), 8);
	assert_int_equal(json_object_size(object_of(line, "fell_out")), 1);
	assert_int_equal(number_of(object_of(line, "fell_out"), "unmarked"), 5);
	/* a port that nobody has rules on */
	assert_string_equal(text_of(none, "port"), "left");
	assert_true(json_is_false(json_object_get(none, "offload")));
	assert_string_equal(text_of(none, "reason"), "no_nic");
	assert_null(json_object_get(none, "rules"));
	json_decref(lines);
}

/* Why there is no offload on a port. */
static void test_unable(void **state)
{
	struct scene *scene = *state;
	struct installer *installer;

	scene->plane.config.offload.on = true;
	scene->plane.config.offload.off_port[1] = true;
	installer = add_installer(scene, 2);
	strcpy(installer->abilities.unable, "it delivers no marks");
	installer = add_installer(scene, 3);
	installer->not_ready = true;
	json_t *lines = expect_lines(scene, SHOW, 4);

	assert_string_equal(text_of(json_array_get(lines, 0), "reason"), "no_nic");
	assert_string_equal(text_of(json_array_get(lines, 1), "reason"), "off");
	assert_string_equal(text_of(json_array_get(lines, 1), "unable"),
		"port right is one of those that are left out of offload");
	assert_string_equal(text_of(json_array_get(lines, 2), "unable"), "it delivers no marks");
	assert_true(json_is_false(json_object_get(json_array_get(lines, 3), "ready")));
	assert_null(json_object_get(json_array_get(lines, 3), "nic"));
	json_decref(lines);
	scene->plane.config.offload.on = false;
	lines = expect_lines(scene, SHOW, 4);
	assert_string_equal(text_of(json_array_get(lines, 0), "reason"), "off");
	assert_string_equal(text_of(json_array_get(lines, 0), "unable"), "offload is turned off");
	json_decref(lines);
	/* what needs no worker is not said without one either: an answer is whole or none */
	scene->plane.silent = true;
	expect_error(scene, SHOW, "offload show: a thread of the packet path does not answer", 1);
}

static double rate_of(const json_t *lines, const char *key)
{
	return json_real_value(json_object_get(json_array_get(lines, 0), key));
}

static void test_rates(void **state)
{
	struct scene *scene = *state;
	struct installer *installer = add_installer(scene, 0);
	static const struct {
		uint64_t after_us, inserts;
		double per_s, over_s;
	} asks[] = {
		/* since the start */
		{0, 4000, 40.0, 100},
		/* since the ask before */
		{10 * S, 4000 + 123, 12.3, 10},
		/* too near: since the one before that */
		{S / 2, 4000 + 123 + 21, 13.7, 10.5},
		{4 * S, 4000 + 123 + 21 + 69, 20.0, 4.5},
	};

	scene->plane.now_us = 100 * S;
	for (unsigned i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		scene->plane.now_us += asks[i].after_us;
		installer->counters.done[INSTALLER_INSERT] = asks[i].inserts;
		json_t *lines = expect_lines(scene, SHOW, 4);

		assert_int_equal(
			(int)(10 * rate_of(lines, "inserts_per_s") + 0.5), 10 * asks[i].per_s);
		assert_int_equal(
			number_of(json_array_get(lines, 0), "rates_over_us"), 1e6 * asks[i].over_s);
		json_decref(lines);
	}
}

/* While flows come no flow is told to be in the NIC without a rule, or without a slot. */
static void test_flows_that_come(void **state)
{
	struct scene *scene = *state;
	struct installer *installer = add_installer(scene, 0);

	scene->plane.offload_counters[0].flows[OFFLOAD_PROVEN] = 3000;
	scene->plane.slots[0] = (struct plane_slots){.n = 65536, .used = 3000};
	installer->counters.rules = 3000;
	scene->plane.n_come = 5;
	json_t *lines = expect_lines(scene, SHOW, 4);
	const json_t *line = json_array_get(lines, 0);

	assert_int_equal(number_of(object_of(line, "flows"), "in_hw"), 3000);
	assert_int_equal(number_of(line, "slots_used"), 3005);
	assert_int_equal(number_of(line, "rules"), 3005);
	json_decref(lines);
}

static void test_health(void **state)
{
	struct scene *scene = *state;
	struct health *health = &add_installer(scene, 0)->health;
	json_t *lines = expect_lines(scene, SHOW, 4);
	const json_t *told = object_of(json_array_get(lines, 0), "health");

	assert_string_equal(text_of(told, "state"), "closed");
	assert_int_equal(number_of(told, "opened"), 0);
	assert_int_equal(json_object_size(told), 2);
	json_decref(lines);
	health->state = HEALTH_OPEN;
	health->why = OFFLOAD_UNMARKED;
	health->since_us = scene->plane.now_us - 3 * S;
	health->retry_us = scene->plane.now_us + S / 4;
	health->opened = 2;
	lines = expect_lines(scene, SHOW, 4);
	told = object_of(json_array_get(lines, 0), "health");
	assert_string_equal(text_of(told, "state"), "open");
	assert_string_equal(text_of(told, "reason"), "unmarked");
	assert_string_equal(text_of(told, "because"), "packets came without the mark");
	assert_string_equal(text_of(told, "since"), "2026-11-20T08:01:37.000000Z");
	assert_int_equal(number_of(told, "for_us"), 3 * S);
	assert_int_equal(number_of(told, "retry_in_us"), S / 4);
	assert_int_equal(number_of(told, "opened"), 2);
	json_decref(lines);
	/* a refusal of the driver's may be the reason */
	health->why = refusal_note(&scene->plane.installers[0].refusals, EIO, "queue stuck");
	lines = expect_lines(scene, SHOW, 4);
	told = object_of(json_array_get(lines, 0), "health");
	assert_string_equal(text_of(told, "reason"), "refused");
	assert_string_equal(text_of(told, "because"),
		"the NIC's driver refused it: EIO, \"queue stuck\"; a restart of the port may help "
		"(--offload-restart yes)");
	json_decref(lines);
	/* that is the way out where it is not taken anyway, and as long as it is needed */
	for (unsigned i = 0; i < 2; i++) {
		scene->plane.config.offload.restart = i == 0;
		health->state = i == 0 ? HEALTH_OPEN : HEALTH_CLOSED;
		lines = expect_lines(scene, SHOW, 4);
		told = object_of(json_array_get(lines, 0), "health");
		assert_string_equal(text_of(told, "because"),
			"the NIC's driver refused it: EIO, \"queue stuck\"");
		json_decref(lines);
	}
}

static struct offload_change change_at(uint64_t time_us, enum change_kind kind, uint16_t sport)
{
	struct offload_change change = {
		.time_us = time_us & ((UINT64_C(1) << 48) - 1),
		.kind = kind & 0xff,
		.port = 1,
	};
	struct flow_record record = fake_flow("10.0.0.9", sport, "10.0.0.1", 80, 6);

	if (kind != CHANGE_FLOW)
		return change;
	change.key = record.key;
	change.from = record.initiator;
	change.before = OFFLOAD_SOFTWARE;
	change.after = OFFLOAD_QUEUED;
	change.reason = OFFLOAD_BUSY;
	change.detail = 1410;
	return change;
}

static void add_change(
	struct fake_changes *changes, uint64_t time_us, enum change_kind kind, uint16_t sport)
{
	struct offload_change change = change_at(time_us, kind, sport);

	fake_change(changes, &change);
}

/* By time, of all workers and ports; those of ports also for who asks later. */
static void test_events(void **state)
{
	static const int sports[] = {1, 2, 3, 0, 4, 5};
	struct scene *scene = *state;

	scene_settle(scene);
	add_change(&scene->plane.changes[0], 10, CHANGE_FLOW, 1);
	add_change(&scene->plane.changes[0], 30, CHANGE_FLOW, 3);
	add_change(&scene->plane.changes[0], 40, CHANGE_FLOW, 4);
	add_change(&scene->plane.changes[0], 40, CHANGE_FLOW, 5);
	add_change(&scene->plane.changes[1], 20, CHANGE_FLOW, 2);
	add_change(&scene->plane.port_changes, 35, CHANGE_RESET, 0);
	for (unsigned again = 0; again < 2; again++) {
		json_t *lines = expect_lines(scene, EVENTS, 6);

		for (unsigned i = 0; i < 6; i++) {
			const json_t *line = json_array_get(lines, i);

			if (sports[i] > 0)
				assert_int_equal(number_of(line, "sport"), sports[i]);
			else
				assert_string_equal(text_of(line, "event"), "reset");
		}
		json_decref(lines);
	}
	/* whoever takes it: it is for the log, too */
	assert_string_equal(
		scene->note, "right: the port was stopped and started; its rules are gone");
	/* what is told once is not lost to who asks while a worker does not answer */
	add_change(&scene->plane.port_changes, 90, CHANGE_GHOST, 0);
	scene->plane.silent = true;
	expect_error(
		scene, EVENTS, "offload events: a thread of the packet path does not answer", 1);
	scene->plane.silent = false;
	json_t *lines = expect_lines(scene, EVENTS, 7);

	assert_string_equal(text_of(json_array_get(lines, 6), "event"), "ghost");
	json_decref(lines);
}

/* Ports keep the oldest ones only: control takes them, though nobody asks. */
static void test_ports_are_listened_to(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 1; i <= 40; i++) {
		add_change(&scene->plane.port_changes, 10 * i, CHANGE_RESET, 0);
		scene_now_us += S;
		scene_step(scene);
		assert_int_equal(scene->plane.port_changes.n, 0);
		assert_string_equal(
			scene->note, "right: the port was stopped and started; its rules are gone");
		scene->note[0] = '\0';
	}
	json_decref(expect_lines(scene, EVENTS, 40));
}

/* Of a kind of flows at a port: the sentence names it. */
static void test_kind_events(void **state)
{
	struct offload_change change = change_at(10, CHANGE_KIND_OUT, 0);
	struct scene *scene = *state;

	change.detail = PROVIDER_IPV6_UDP;
	fake_change(&scene->plane.port_changes, &change);
	change.time_us++;
	change.kind = CHANGE_KIND_IN;
	fake_change(&scene->plane.port_changes, &change);
	change.time_us++;
	change.kind = CHANGE_TRIED;
	change.detail = 1u << PROVIDER_IPV4_TCP | 1u << PROVIDER_IPV6_UDP;
	fake_change(&scene->plane.port_changes, &change);
	change.time_us++;
	change.kind = CHANGE_UNTRIED;
	change.reason = OFFLOAD_REFUSALS;
	fake_change(&scene->plane.port_changes, &change);
	json_t *lines = expect_lines(scene, EVENTS, 4);

	assert_string_equal(text_of(json_array_get(lines, 2), "event"), "tried");
	assert_string_equal(text_of(json_array_get(lines, 2), "because"),
		"a later trial was granted rules for flows of ipv4/tcp, ipv6/udp");
	assert_string_equal(text_of(json_array_get(lines, 3), "event"), "untried");
	assert_string_equal(text_of(json_array_get(lines, 3), "because"),
		"what the port does with rules cannot be tried now, and will be again: "
		"the NIC's driver refused it");

	assert_string_equal(text_of(json_array_get(lines, 0), "event"), "kind_out");
	assert_string_equal(text_of(json_array_get(lines, 0), "because"),
		"no rule ever marked a packet, with whatever actions; hardly any is asked for of "
		"flows of ipv6/udp");
	assert_string_equal(text_of(json_array_get(lines, 1), "event"), "kind_in");
	assert_string_equal(text_of(json_array_get(lines, 1), "because"),
		"rules mark now; they are asked for as before of flows of ipv6/udp");
	json_decref(lines);
}

static void test_event_line(void **state)
{
	struct scene *scene = *state;
	struct installer *installer = add_installer(scene, 1);
	struct offload_change change = change_at(1500000, CHANGE_FLOW, 1234);

	fake_change(&scene->plane.changes[0], &change);
	change.before = OFFLOAD_INSTALLING;
	change.after = OFFLOAD_ACCEPTED;
	change.detail = 88;
	change.from ^= 1;
	fake_change(&scene->plane.changes[0], &change);
	change.after = OFFLOAD_REFUSED;
	change.detail = 0;
	change.reason = refusal_note(&installer->refusals, ENOSPC, "table full");
	fake_change(&scene->plane.changes[0], &change);
	json_t *lines = expect_lines(scene, EVENTS, 3);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "time"), "2026-11-20T08:00:01.500000Z");
	assert_string_equal(text_of(line, "event"), "flow");
	assert_string_equal(text_of(line, "port"), "right");
	assert_string_equal(text_of(line, "src"), "10.0.0.9");
	assert_int_equal(number_of(line, "dport"), 80);
	assert_string_equal(text_of(line, "before"), "software");
	assert_string_equal(text_of(line, "after"), "queued");
	assert_string_equal(text_of(line, "reason"), "busy");
	assert_int_equal(number_of(line, "rate_pps"), 1410);
	assert_null(json_object_get(line, "proven"));
	line = json_array_get(lines, 1);
	assert_string_equal(text_of(line, "src"), "10.0.0.1");
	assert_string_equal(text_of(line, "after"), "in_hw");
	assert_true(json_is_false(json_object_get(line, "proven")));
	assert_int_equal(number_of(line, "took_us"), 88);
	line = json_array_get(lines, 2);
	assert_string_equal(text_of(line, "reason"), "refused");
	assert_string_equal(
		text_of(line, "because"), "the NIC's driver refused it: ENOSPC, \"table full\"");
	assert_null(json_object_get(line, "took_us"));
	json_decref(lines);
}

/* A change of a port that lies in a worker's ring as well is told once, to each. */
static void test_told_once(void **state)
{
	struct scene *scene = *state;

	add_change(&scene->plane.changes[0], 10, CHANGE_GHOST, 0);
	add_change(&scene->plane.changes[1], 10, CHANGE_GHOST, 0);
	for (unsigned i = 0; i < 2; i++)
		json_decref(expect_lines(scene, EVENTS, 1));
	/* and more than are kept: the last ones */
	for (unsigned i = 0; i < 300; i++)
		add_change(&scene->plane.port_changes, 1000 + i, CHANGE_STALLED, 0);
	json_decref(expect_lines(scene, EVENTS, 256));
}

/* All changes of all clients are in memory that was taken at the start: who does not read gives way. */
static void test_room(void **state)
{
	struct scene *scene = *state;
	struct talker *talkers[5];

	for (unsigned i = 0; i < 4000; i++)
		for (unsigned worker = 0; worker < 2; worker++)
			add_change(&scene->plane.changes[worker], i, CHANGE_FLOW, 1000);
	for (unsigned i = 0; i < 5; i++)
		talkers[i] = talker_create(scene);
	for (unsigned i = 0; i < 4; i++) {
		talker_ask(talkers[i], EVENTS);
		scene_settle(scene);
		scene_now_us += 1000;
	}
	/* there are four: it waits while these are young */
	talker_ask(talkers[4], EVENTS);
	scene_settle(scene);
	talker_read(talkers[4]);
	assert_int_equal(talkers[4]->n, 0);
	scene_now_us += 1000000;
	json_t *lines = talker_answer(scene, talkers[4]);

	assert_int_equal(json_array_size(lines), 2 * 4000 + 1);
	json_decref(lines);
	/* the first one has what it was told so far, and hears why that is all */
	lines = talker_answer(scene, talkers[0]);
	assert_true(json_array_size(lines) < 2 * 4000);
	assert_string_equal(text_of(json_array_get(lines, json_array_size(lines) - 1), "error"),
		"offload events: others wait, and this client reads too slowly");
	json_decref(lines);
	for (unsigned i = 1; i < 4; i++) {
		lines = talker_answer(scene, talkers[i]);
		assert_int_equal(json_array_size(lines), 2 * 4000 + 1);
		json_decref(lines);
	}
	for (unsigned i = 0; i < 5; i++)
		talker_destroy(talkers[i]);
}

/* More than the output holds at a time. */
static void test_many(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 0; i < 4000; i++)
		for (unsigned worker = 0; worker < FAKE_WORKERS; worker++)
			add_change(&scene->plane.changes[worker], 2 * i + worker, CHANGE_FLOW,
				(uint16_t)(2 * i + worker));
	json_t *lines = expect_lines(scene, EVENTS, 8000);

	for (unsigned i = 0; i < 8000; i++)
		assert_int_equal(number_of(json_array_get(lines, i), "sport"), i);
	json_decref(lines);
}

/* Changes that are not wanted, however many come meanwhile, keep nobody waiting. */
static void test_flood(void **state)
{
	struct scene *scene = *state;

	add_change(&scene->plane.port_changes, 35, CHANGE_RESET, 0);
	scene->plane.flood = true;
	json_decref(
		expect_lines(scene, "{\"ask\":\"offload events\",\"with\":{\"flows\":false}}", 1));
}

static void expect_sport(struct scene *scene, struct talker *talker, int sport)
{
	json_t *line = talker_line(scene, talker);

	assert_non_null(line);
	assert_int_equal(number_of(line, "sport"), sport);
	json_decref(line);
}

static void test_follow(void **state)
{
	struct scene *scene = *state;
	struct talker *talker = talker_create(scene);

	add_change(&scene->plane.changes[0], 10, CHANGE_FLOW, 1);
	talker_ask(talker, FOLLOW);
	expect_sport(scene, talker, 1);
	scene_settle(scene);
	add_change(&scene->plane.changes[1], 20, CHANGE_FLOW, 2);
	scene_settle(scene);
	talker_read(talker);
	assert_int_equal(talker->n, 0);
	scene_now_us += 100000;
	expect_sport(scene, talker, 2);
	/* the engine's end is the end, and no error */
	control_destroy(scene->control);
	scene->control = NULL;
	talker_read(talker);
	assert_memory_equal(talker->data, "{\"end\":true,\"error\":null}\n", talker->n);
	assert_true(talker->n > 0);
	talker_destroy(talker);
}

/* By the direction that is further on; nobody offloads: software. */
static void test_filter(void **state)
{
	static const struct {
		const char *name;
		unsigned n;
	} filters[] = {
		{"software", 2}, {"queued", 1}, {"refused", 0}, {"in_hw", 2}, {"leaving", 0}};
	static const uint8_t states[][2] = {{OFFLOAD_SOFTWARE, OFFLOAD_SOFTWARE},
		{OFFLOAD_REFUSED, OFFLOAD_QUEUED}, {OFFLOAD_SOFTWARE, OFFLOAD_ACCEPTED},
		{OFFLOAD_PROVEN, OFFLOAD_LEAVING}};
	struct scene *scene = *state;
	char request[128];

	for (unsigned i = 0; i < 5; i++) {
		struct flow_record record = fake_flow("10.0.0.1", (uint16_t)i, "10.0.0.2", 1, 17);

		fake_add(&scene->plane, 0, i, &record);
		if (i == 4)
			continue;
		scene->plane.offload[0][i].told = true;
		memcpy(scene->plane.offload[0][i].state, states[i], 2);
	}
	for (unsigned top = 0; top < 2; top++) {
		for (unsigned i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
			snprintf(request, sizeof(request),
				"{\"ask\":\"flow list\",\"with\":{\"offload\":\"%s\"%s}}",
				filters[i].name, top ? ",\"top\":9,\"by\":\"bytes\"" : "");
			json_t *lines = expect_lines(scene, request, filters[i].n);

			for (unsigned n = 0; n < filters[i].n; n++)
				assert_string_equal(
					text_of(object_of(json_array_get(lines, n), "offload"),
						"state"),
					filters[i].name);
			json_decref(lines);
		}
	}
	expect_error(scene, "{\"ask\":\"flow list\",\"with\":{\"offload\":\"in-hw\"}}",
		"flow list: offload \"in-hw\": no such state; did you mean in_hw?", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_show),
		SCENE_TEST(test_unable),
		SCENE_TEST(test_ports_are_listened_to),
		SCENE_TEST(test_rates),
		SCENE_TEST(test_flows_that_come),
		SCENE_TEST(test_health),
		SCENE_TEST(test_events),
		SCENE_TEST(test_kind_events),
		SCENE_TEST(test_event_line),
		SCENE_TEST(test_told_once),
		SCENE_TEST(test_room),
		SCENE_TEST(test_many),
		SCENE_TEST(test_flood),
		SCENE_TEST(test_follow),
		SCENE_TEST(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
