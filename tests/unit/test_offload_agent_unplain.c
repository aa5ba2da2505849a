/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that no rule can be expected to match prove nothing, and fail nothing; and who may be a canary. */
#include "agent_scene.h"

static uint64_t failed(const struct agent_scene *scene)
{
	return atomic_load(&installer_health(scene->installer[0])->worker[0].failed);
}

static void unplain(struct agent_scene *scene, uint32_t flow, bool marked, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		agent_packet_of(scene, flow, 0, 0, marked ? agent_mark(scene, flow) : 0,
			i % 2 == 0 ? PACKET_UNPLAIN : PACKET_FIRST_FRAGMENT);
}

/* It leaves, waits for a minute and says why; nothing is held against the NIC. */
static void expect_left(struct agent_scene *scene, uint32_t flow)
{
	struct flow_offload view;

	assert_int_equal(agent_state(scene, flow, 0), OFFLOAD_LEAVING);
	agent_until(scene, agent_state(scene, flow, 0) == OFFLOAD_SOFTWARE);
	agent_view(scene->agent, agent_record(scene, flow), &view);
	assert_int_equal(view.reason[0], OFFLOAD_UNPLAIN);
	assert_int_equal(failed(scene), 0);
	agent_sample(scene->agent, flow, 0, 0);
	assert_int_equal(agent_state(scene, flow, 0), OFFLOAD_SOFTWARE);
	agent_pass_ms(scene, 59900);
	agent_sample(scene->agent, flow, 0, 0);
	assert_int_equal(agent_state(scene, flow, 0), OFFLOAD_SOFTWARE);
	agent_pass_ms(scene, 200);
	agent_prove(scene, flow, 0, 0);
}

static void a_rule_that_was_accepted(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_ask_in(&scene, flow, 0, 0);
	/* in flight when the rule was made, for all that is known */
	unplain(&scene, flow, false, 200);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_ACCEPTED);
	agent_pass_ms(&scene, 11);
	unplain(&scene, flow, false, 1);
	expect_left(&scene, flow);
	agent_scene_end(&scene);
}

/* Of a proven one it takes more of them than come with the mark. */
static void a_rule_that_is_proven(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	agent_pass_ms(&scene, 11);
	for (unsigned i = 0; i < 1000; i++) {
		unplain(&scene, flow, false, 1);
		/* packets with its mark that nobody judges */
		agent_record(&scene, flow)->count[0].packets_low += 2;
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	}
	/* whatever is left of a row of 64 */
	unplain(&scene, flow, false, 128);
	expect_left(&scene, flow);
	agent_scene_end(&scene);
}

/* With the mark they are counted, and prove nothing. */
static void a_mark_on_one_proves_nothing(void **state)
{
	struct agent_scene scene;
	struct flow_offload view;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_ask_in(&scene, flow, 0, 0);
	unplain(&scene, flow, true, 40);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_ACCEPTED);
	agent_packet(&scene, flow, 0, 0, true);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	unplain(&scene, flow, true, 2);
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.packets, 43);
	agent_scene_end(&scene);
}

static void unmarked(struct agent_scene *scene, uint32_t flow, uint8_t flags, unsigned n)
{
	const struct packet_info info = {.flags = PACKET_TCP, .tcp.flags = flags};

	for (unsigned i = 0; i < n; i++) {
		flow_count_packet(agent_record(scene, flow), 0, 60);
		agent_unmarked(scene->agent, flow, 0, &info);
	}
}

/* Some NICs match a SYN by no rule: without the mark it is one of those, with it as good as any other. */
static void a_syn_without_the_mark_fails_nothing(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_TCP, 1);

	agent_prove(&scene, flow, 0, 0);
	agent_pass_ms(&scene, 11);
	unmarked(&scene, flow, TCP_SYN, 63);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	unmarked(&scene, flow, TCP_SYN, 1);
	expect_left(&scene, flow);
	unmarked(&scene, flow, TCP_ACK, 1);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SUSPECT);
	agent_scene_end(&scene);
}

/* Nor does another's mark fail it, or the mark of a rule that is gone. */
static void other_marks_fail_nothing(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1),
		 other = agent_flow(&scene, IPPROTO_UDP, 2);

	agent_prove(&scene, flow, 0, 0);
	agent_prove(&scene, other, 0, 0);
	for (unsigned i = 0; i < 10; i++)
		agent_packet_of(&scene, flow, 0, 0, agent_mark(&scene, other), PACKET_UNPLAIN);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	assert_int_equal(scene.agent->port[0].counters.strangers, 10);
	/* it leaves, and its mark comes on */
	const uint32_t mark = agent_mark(&scene, flow);

	agent_lose_marks(&scene, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	agent_pass_ms(&scene, 80);
	for (unsigned i = 0; i < 200; i++)
		agent_packet_of(&scene, flow, 0, 0, mark, PACKET_UNPLAIN);
	assert_int_equal(atomic_load(&installer_health(scene.installer[0])->worker[0].stale), 0);
	/* as it would with others */
	for (unsigned i = 0; i < 200; i++)
		agent_packet_of(&scene, flow, 0, 0, mark, 0);
	assert_true(atomic_load(&installer_health(scene.installer[0])->worker[0].stale) > 0);
	agent_scene_end(&scene);
}

/* A flow that has nothing else says so, and is not asked in; with others it is as all are. */
static void samples_say_why(void **state)
{
	struct agent_scene scene;
	struct flow_offload view;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	for (unsigned i = 0; i < 100; i++)
		agent_sample_unplain(scene.agent, flow, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SOFTWARE);
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.reason[0], OFFLOAD_UNPLAIN);
	assert_int_equal(view.reason[1], OFFLOAD_SHORT);
	agent_prove(&scene, flow, 0, 0);
	agent_scene_end(&scene);
}

/* While a port is tried flows that were proven before are asked in; others a second later. */
static void canaries_were_proven_before(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	struct health *health = installer_health(scene.installer[0]);
	uint32_t proven = agent_flow(&scene, IPPROTO_UDP, 1),
		 other = agent_flow(&scene, IPPROTO_UDP, 2);

	agent_prove(&scene, proven, 0, 0);
	atomic_store(&health->since_us, scene.now_us);
	/* or else the installer, whose clock goes on, tries the port at once */
	atomic_store(&health->retry_us, UINT64_MAX);
	atomic_store(&health->state, HEALTH_OPEN);
	agent_pass_ms(&scene, 510);
	agent_until(&scene, agent_state(&scene, proven, 0) == OFFLOAD_SOFTWARE);
	atomic_store(&health->since_us, scene.now_us);
	atomic_store(&health->state, HEALTH_TRYING);
	agent_sample(scene.agent, other, 0, 0);
	assert_int_equal(agent_state(&scene, other, 0), OFFLOAD_SOFTWARE);
	agent_prove(&scene, proven, 0, 0);
	assert_int_equal(agent_record(&scene, proven)->reason[0], OFFLOAD_CANARY);
	agent_pass_ms(&scene, 999);
	agent_sample(scene.agent, other, 0, 0);
	assert_int_equal(agent_state(&scene, other, 0), OFFLOAD_SOFTWARE);
	agent_pass_ms(&scene, 1);
	agent_prove(&scene, other, 0, 0);
	assert_int_equal(agent_record(&scene, other)->reason[0], OFFLOAD_CANARY);
	agent_scene_end(&scene);
}

/* A record without a slot has one time for both sides: the later one. */
static void the_later_of_both_waits(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 1, false);
	uint32_t holder = agent_flow(&scene, IPPROTO_UDP, 1),
		 flow = agent_flow(&scene, IPPROTO_UDP, 2);

	agent_prove(&scene, holder, 0, 0);
	/* 0.1, 0.2 and 0.4 s for direction 0, */
	for (unsigned i = 0; i < 3; i++) {
		agent_sample(scene.agent, flow, 0, 0);
		agent_turn(scene.agent, scene.now_us);
		assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_NO_SLOT);
		assert_int_equal(offload_back_off(agent_record(&scene, flow), 0), i + 1);
		if (i < 2)
			agent_pass_ms(&scene, 100u << i);
	}
	const uint32_t now_ms = (uint32_t)(scene.now_us / 1000);
	const uint32_t until_ms = offload_retry_ms(agent_record(&scene, flow), now_ms);

	assert_int_equal(until_ms, now_ms + 400);
	/* then 0.1 s for direction 1 */
	agent_sample(scene.agent, flow, 1, 1);
	agent_turn(scene.agent, scene.now_us);
	assert_int_equal(agent_record(&scene, flow)->reason[1], OFFLOAD_NO_SLOT);
	assert_int_equal(offload_back_off(agent_record(&scene, flow), 1), 1);
	assert_int_equal(offload_retry_ms(agent_record(&scene, flow), now_ms), until_ms);
	agent_scene_end(&scene);
}

/* The reason and the time since when it is so change together, also where the state stays. */
static void another_reason_is_of_another_time(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	scene.agent->config.threshold = 1000;
	agent_pass_ms(&scene, 5000);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	const struct slot_direction *direction =
		&slots_slot(&scene.agent->wire[0].slots, agent_record(&scene, flow)->slot)
			 ->direction[0];
	const uint64_t left_us = direction->since_us;

	assert_int_equal(direction->reason, OFFLOAD_QUIET);
	agent_pass_ms(&scene, 100);
	assert_int_equal(direction->since_us, left_us);
	agent_sample_unplain(scene.agent, flow, 0);
	assert_int_equal(direction->reason, OFFLOAD_UNPLAIN);
	assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_UNPLAIN);
	assert_int_equal(direction->since_us, scene.now_us);
	agent_pass_ms(&scene, 100);
	agent_sample_unplain(scene.agent, flow, 0);
	assert_int_equal(direction->since_us, scene.now_us - 100000);
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_that_was_accepted),
		cmocka_unit_test(a_rule_that_is_proven),
		cmocka_unit_test(a_mark_on_one_proves_nothing),
		cmocka_unit_test(a_syn_without_the_mark_fails_nothing),
		cmocka_unit_test(other_marks_fail_nothing),
		cmocka_unit_test(samples_say_why),
		cmocka_unit_test(canaries_were_proven_before),
		cmocka_unit_test(another_reason_is_of_another_time),
		cmocka_unit_test(the_later_of_both_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
