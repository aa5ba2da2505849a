/* SPDX-License-Identifier: BSD-3-Clause */

/* flow explain: why a flow is handled where it is. */

#include "unit/control_explain.h"

#include "control/offload_words.h"
#include "offload/rate.h"

/* What is said of its rate does not contradict what was measured of it. */
static void test_busy_and_not_asked_for(void **state)
{
	struct scene *scene = *state;
	char sentence[OFFLOAD_SENTENCE_MAX];
	struct agent_rank rank = {.rate = rate_of_pps(1000) - 1, .rank = 7};
	struct offload_case of = {.plane = &scene->plane, .reason = OFFLOAD_QUIET, .rank = &rank};

	scene->plane.config.offload = (struct plane_offload){.on = true, .threshold = 1000};
	offload_because(sentence, &of);
	assert_string_equal(sentence, "its rate is below the threshold of 1,000 packets a second");
	/* of a port that no flow is asked in at nothing is measured */
	rank.rank = 0;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "its rate is below the threshold of 1,000 packets a second, "
				      "or was not measured yet");
	rank.rank = 7;
	rank.rate++;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "it is busy enough, and is asked for when one of its packets "
				      "that a rule could mark "
				      "is looked at: few are");
	/* no rate is below none */
	scene->plane.config.offload.threshold = 0;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "it is asked for when one of its packets that a rule could "
				      "mark is looked at: few are");
	of.reason = OFFLOAD_DISPLACED;
	rank.crowded = true;
	offload_because(sentence, &of);
	assert_string_equal(
		sentence, "the queue for the NIC is full of flows that are more than half as busy");
	rank.crowded = false;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "busier flows took its place in the queue");
}

/* It is not said that all who have rules are busier where some are not. */
static void test_outranked(void **state)
{
	static const char outranked[] = "busier flows have all rules that the port has room for";
	struct scene *scene = *state;
	char sentence[OFFLOAD_SENTENCE_MAX];
	struct agent_rank rank = {.rate = 1200, .bar = 1201, .rank = 65, .held = 64};
	struct offload_case of = {.plane = &scene->plane,
		.state = OFFLOAD_SOFTWARE,
		.reason = OFFLOAD_OUTRANKED,
		.rank = &rank};

	offload_because(sentence, &of);
	assert_string_equal(sentence, outranked);
	rank.rank = 64;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "it ranks high enough, and waits for hysteresis: a flow in "
				      "the NIC gives way only to one that is busier by a fourth "
				      "to a half");
	/* by a place of another worker's, or its own */
	rank.bar = 1200;
	rank.rank = 65;
	offload_because(sentence, &of);
	assert_string_equal(sentence, "it is busy enough by now for another to give way, and is "
				      "asked for when one of its packets that a rule could mark is "
				      "looked at: few are");
	rank.rank = 64;
	rank.bar = UINT32_MAX;
	offload_because(sentence, &of);
	assert_string_equal(
		sentence, "it ranks high enough, and waits: no flow in the NIC gives way now");
	/* of a port where no flow is asked in no rank is known, and who leaves was outranked then */
	rank.rank = 0;
	offload_because(sentence, &of);
	assert_string_equal(sentence, outranked);
	rank.rank = 64;
	of.state = OFFLOAD_LEAVING;
	offload_because(sentence, &of);
	assert_string_equal(sentence, outranked);
	of.state = OFFLOAD_SOFTWARE;
	of.rank = NULL;
	offload_because(sentence, &of);
	assert_string_equal(sentence, outranked);
	/* and of a flow itself */
	scene->plane.flow.rank[0] = rank;
	add_offloaded(scene, OFFLOAD_SOFTWARE, OFFLOAD_SOFTWARE);
	scene->plane.offload[1][17].reason[0] = OFFLOAD_OUTRANKED;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);

	assert_string_equal(text_of(direction(json_array_get(lines, 0), 0), "because"),
		"it ranks high enough, and waits: no flow in the NIC gives way now");
	json_decref(lines);
}

/* A flow in software, at a port that has all that reasons speak of. */
static void add_unlucky(struct scene *scene)
{
	struct installer *installer = &scene->plane.installers[0];

	add_offloaded(scene, OFFLOAD_SOFTWARE, OFFLOAD_SOFTWARE);
	scene->plane.config.offload.slots = 512;
	scene->plane.flow.retry_us[0] = CLOCK + 1500000;
	strcpy(installer->abilities.unable, "no marks come");
	installer->abilities.refused[PROVIDER_IPV4_TCP].error = EINVAL;
	strcpy(installer->abilities.refused[PROVIDER_IPV4_TCP].words, "no tcp");
	installer->trial_us = CLOCK + 2000000;
	installer->health.state = HEALTH_OPEN;
	installer->health.why = OFFLOAD_UNMARKED;
	installer->health.since_us = CLOCK - 3000000;
	installer->health.retry_us = CLOCK + 250000;
}

/* Every reason has its sentence, with the numbers and words that belong to it. */
static void test_reasons(void **state)
{
	struct scene *scene = *state;
	struct installer *installer = &scene->plane.installers[0];
	const struct {
		uint8_t reason;
		const char *because;
	} cases[] = {
		{OFFLOAD_BUSY, "its rate reached the threshold of 1,000 packets a second"},
		{OFFLOAD_SLOWED,
			"its rate fell below half of the threshold of 1,000 packets a second"},
		{OFFLOAD_SHORT, "it has had too few packets"},
		{OFFLOAD_OTHER_WAY,
			"its other direction comes by the same port, and has the rule there"},
		{OFFLOAD_NO_NIC, "no NIC is there that takes rules and marks: no marks come; "
				 "next try in 2.0 s"},
		{OFFLOAD_TRIAL, "port left could not be tried yet with rules for ipv4/tcp flows: "
				"EINVAL, \"no tcp\"; next try in 2.0 s"},
		{OFFLOAD_KIND, "port left takes no rules for ipv4/tcp flows: EINVAL, \"no tcp\""},
		{OFFLOAD_MARKLESS, "port left accepts rules for ipv4/tcp flows, and none has ever "
				   "marked a packet"},
		{OFFLOAD_BREAKER, "port left was put to software 3.0 s ago: packets came without "
				  "the mark; next try in 1.5 s"},
		{OFFLOAD_STALLED,
			"the NIC did not answer in time; port left was put to software 3.0 s ago: "
			"packets came without the mark; next try in 1.5 s"},
		{refusal_note(&installer->refusals, EINVAL, "Not supported pattern"),
			"the NIC's driver refused it: EINVAL, \"Not supported pattern\"; port left "
			"was put to software 3.0 s ago: packets came without the mark; next try in "
			"1.5 s"},
		{refusal_note(&installer->refusals, ENOSPC, NULL),
			"the NIC's driver refused it: ENOSPC; port left was put to software 3.0 s "
			"ago: packets came without the mark; next try in 1.5 s"},
		{OFFLOAD_COUNTER, "the NIC's counter does not move with its packets"},
	};

	add_unlucky(scene);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scene->plane.offload[1][17].reason[0] = cases[i].reason;
		json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
		const json_t *line = json_array_get(lines, 0);
		const json_t *refusal = json_object_get(direction(line, 0), "refusal");

		assert_string_equal(text_of(line, "where_because"), cases[i].because);
		assert_string_equal(text_of(direction(line, 0), "because"), cases[i].because);
		assert_string_equal(text_of(direction(line, 0), "reason"),
			offload_reason_name(cases[i].reason));
		assert_int_equal(number_of(line, "retry_in_us"),
			cases[i].reason == OFFLOAD_TRIAL || cases[i].reason == OFFLOAD_NO_NIC
				? 2000000
				: 1500000);
		assert_int_equal(refusal != NULL, cases[i].reason >= OFFLOAD_REFUSALS ||
							  cases[i].reason == OFFLOAD_KIND ||
							  cases[i].reason == OFFLOAD_TRIAL);
		if (cases[i].reason == OFFLOAD_KIND || cases[i].reason == OFFLOAD_TRIAL)
			assert_string_equal(text_of(refusal, "words"), "no tcp");
		json_decref(lines);
	}
}

static void expect_wait(
	struct scene *scene, uint8_t reason, const char *because, uint64_t retry_in_us)
{
	scene->plane.offload[1][17].reason[0] = reason;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *line = json_array_get(lines, 0);

	assert_string_equal(text_of(line, "where_because"), because);
	assert_int_equal(number_of(line, "retry_in_us"), retry_in_us);
	json_decref(lines);
}

/* A flow is not asked in before its own wait is over, nor while its port is not. */
static void test_waits(void **state)
{
	struct scene *scene = *state;
	struct health *health = &scene->plane.installers[0].health;

	add_unlucky(scene);
	health->retry_us = CLOCK + 3000000;
	expect_wait(scene, OFFLOAD_QUARANTINE,
		"it fell out of the NIC, and waits before the next try; port left was put to "
		"software 3.0 s ago: packets came without the mark; next try in 3.0 s",
		3000000);
	expect_wait(scene, OFFLOAD_BREAKER,
		"port left was put to software 3.0 s ago: packets came without the mark; next try "
		"in 3.0 s",
		3000000);
	health->state = HEALTH_CLOSED;
	expect_wait(scene, OFFLOAD_QUARANTINE,
		"it fell out of the NIC, and waits before the next try; next try in 1.5 s",
		1500000);
	expect_wait(scene, OFFLOAD_UNPLAIN,
		"most of its packets are none that a rule can be expected to match: fragments, or "
		"with IPv4 options, IPv6 extension headers, more than two VLAN tags, or cut; next "
		"try in 1.5 s",
		1500000);
	expect_wait(scene, OFFLOAD_DISPLACED,
		"busier flows took its place in the queue; next try in 1.5 s", 1500000);
	scene->plane.slots[0].n = 512;
	expect_wait(scene, OFFLOAD_NO_SLOT,
		"no mark is free for it; a wire may have 512 flows in its NICs; next try in 1.5 s",
		1500000);
}

/* Of two directions that come by one port the port has the rule of one. */
static void test_both_by_one_port(void **state)
{
	struct scene *scene = *state;
	const struct flow_record *record = add_offloaded(scene, OFFLOAD_SOFTWARE, OFFLOAD_PROVEN);

	assert_int_equal(record->side, 0);
	scene->plane.flow.port[1] = 0;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *forward = direction(json_array_get(lines, 0), 0);
	const json_t *reverse = direction(json_array_get(lines, 0), 1);

	assert_string_equal(text_of(forward, "direction"), "forward");
	assert_string_equal(text_of(forward, "port"), "left");
	assert_string_equal(text_of(forward, "state"), "software");
	assert_string_equal(text_of(forward, "reason"), "other_way");
	assert_int_equal(number_of(forward, "packets"), flow_packets(record, record->initiator));
	assert_string_equal(text_of(reverse, "direction"), "reverse");
	assert_string_equal(text_of(reverse, "port"), "left");
	assert_string_equal(text_of(reverse, "state"), "in_hw");
	assert_int_equal(number_of(reverse, "packets"), flow_packets(record, !record->initiator));
	json_decref(lines);
	/* and where each comes by the other's port, its rule is there */
	scene->plane.offload[1][17].state[0] = OFFLOAD_PROVEN;
	scene->plane.flow.port[0] = 1;
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	assert_string_equal(text_of(direction(json_array_get(lines, 0), 0), "port"), "right");
	assert_string_equal(text_of(direction(json_array_get(lines, 0), 1), "port"), "left");
	json_decref(lines);
}

/* Since when the rule is to go that it waits behind, where that is known. */
static void test_behind_an_older_rule(void **state)
{
	struct scene *scene = *state;

	add_offloaded(scene, OFFLOAD_INSTALLING, OFFLOAD_ACCEPTED);
	for (unsigned side = 0; side < 2; side++)
		scene->plane.offload[1][17].reason[side] = OFFLOAD_OLDER_RULE;
	scene->plane.flow.older_us[0] = CLOCK - 1500000;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *forward = direction(json_array_get(lines, 0), 0);
	const json_t *reverse = direction(json_array_get(lines, 0), 1);

	assert_string_equal(text_of(forward, "reason"), "older_rule");
	assert_string_equal(text_of(forward, "because"),
		"it waits behind an older rule of the same addresses and ports, which was to go "
		"1.5 s ago and is not confirmed to be gone");
	assert_string_equal(text_of(forward, "older_since"), "2026-11-20T08:01:38.500000Z");
	assert_int_equal(number_of(forward, "older_for_us"), 1500000);
	assert_string_equal(text_of(reverse, "because"),
		"it waits behind an older rule of the same addresses and ports, which is not "
		"confirmed to be gone");
	assert_null(json_object_get(reverse, "older_since"));
	assert_null(json_object_get(reverse, "older_for_us"));
	json_decref(lines);
}

/* Threshold 0 is no rate; kinds that no NIC is asked for; a breaker that is being tried. */
static void test_other_reasons(void **state)
{
	struct scene *scene = *state;
	struct flow_record *record = add_offloaded(scene, OFFLOAD_PROVEN, OFFLOAD_SOFTWARE);
	struct health *health = &scene->plane.installers[0].health;

	scene->plane.config.offload.threshold = 0;
	scene->plane.offload[1][17].packets = FLOW_OFFLOAD_LOST;
	json_t *lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);

	assert_string_equal(text_of(json_array_get(lines, 0), "where_because"),
		"every flow is given to the NIC, since the threshold is 0");
	assert_true(json_is_null(json_object_get(json_array_get(lines, 0), "marked_packets")));
	assert_null(json_object_get(direction(json_array_get(lines, 0), 0), "since"));
	json_decref(lines);
	/* nor was it when it was queued */
	struct offload_change *change = scene->plane.flow.changes;

	scene->plane.flow.n_changes = 1;
	*change = (struct offload_change){.key = record->key,
		.kind = CHANGE_FLOW,
		.after = OFFLOAD_QUEUED,
		.reason = OFFLOAD_BUSY};
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	const json_t *told =
		json_array_get(json_object_get(json_array_get(lines, 0), "changes"), 0);

	assert_string_equal(text_of(told, "because"),
		"every flow is given to the NIC, since the threshold is 0");
	assert_null(json_object_get(told, "rate_pps"));
	json_decref(lines);
	scene->plane.flow.n_changes = 0;
	scene->plane.offload[1][17].reason[0] = OFFLOAD_BREAKER;
	health->state = HEALTH_TRYING;
	health->why = OFFLOAD_COUNTER;
	health->since_us = CLOCK - 900000;
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	assert_string_equal(text_of(json_array_get(lines, 0), "where_because"),
		"port left was put to software (the NIC's counter does not move with its packets), "
		"and is tried with a few flows since 900 ms");
	json_decref(lines);
	/* learned from the other port: that one's direction is the initiator's */
	record->side = 1;
	scene->plane.flow.port[0] = 1;
	scene->plane.flow.port[1] = 0;
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":6"), 1);
	assert_string_equal(text_of(direction(json_array_get(lines, 0), 0), "port"), "right");
	assert_string_equal(
		text_of(direction(json_array_get(lines, 0), 0), "direction"), "forward");
	assert_int_equal(number_of(direction(json_array_get(lines, 0), 0), "packets"), 7000);
	assert_string_equal(text_of(direction(json_array_get(lines, 0), 1), "port"), "left");
	json_decref(lines);
	record->side = 0;
	scene->plane.flow.port[0] = 0;
	scene->plane.flow.port[1] = 1;
	record->key.proto = 47;
	scene->plane.offload[1][17].reason[0] = OFFLOAD_KIND;
	lines = expect_lines(scene, EXPLAIN(ONE ",\"proto\":47"), 1);
	assert_string_equal(text_of(json_array_get(lines, 0), "where_because"),
		"NICs are given flows of TCP, UDP and SCTP only, of ICMP over IPv4 and of "
		"ICMPv6 over IPv6");
	json_decref(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_busy_and_not_asked_for),
		SCENE_TEST(test_outranked),
		SCENE_TEST(test_reasons),
		SCENE_TEST(test_waits),
		SCENE_TEST(test_both_by_one_port),
		SCENE_TEST(test_behind_an_older_rule),
		SCENE_TEST(test_other_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
