/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's look at each slot twice a second: what rests, what wakes it, and what it measures. */
#include "agent_scene.h"
#include "offload/agent_admit.h"

static struct slot *slot_of(struct agent_scene *scene, uint32_t flow)
{
	return slots_slot(&scene->agent->wire[0].slots, agent_record(scene, flow)->slot);
}

static struct slot_direction *first_direction(struct agent_scene *scene, uint32_t flow)
{
	return &slot_of(scene, flow)->direction[0];
}

/* How long the flow's slot is not looked at. */
static uint64_t rests_us(struct agent_scene *scene, uint32_t flow)
{
	const struct due_link *link =
		&scene->agent->wire[0].due.link[agent_record(scene, flow)->slot];

	return link->tick * DUE_TICK_US - scene->now_us;
}

/* Rules that are well are left alone until their rate is due; what is to be done wakes them. */
static void a_rule_that_is_well_rests(void **state)
{
	enum { N = 8 };
	struct agent_scene scene;
	uint32_t flows[N];

	(void)state;
	agent_scene_begin(&scene, 64, false);
	for (unsigned i = 0; i < N; i++) {
		flows[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_prove(&scene, flows[i], 0, 0);
	}
	/* all of them are looked at in half a second */
	agent_pass_ms(&scene, 510);
	for (unsigned i = 0; i < N; i++) {
		assert_in_range(rests_us(&scene, flows[i]), 400000, 1000000);
		first_direction(&scene, flows[i])->rate.us = 1;
	}
	agent_pass_ms(&scene, 390);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(first_direction(&scene, flows[i])->rate.us, 1);
	agent_pass_ms(&scene, 1110);
	for (unsigned i = 0; i < N; i++)
		assert_true(first_direction(&scene, flows[i])->rate.us > CLOCK_US_PER_S);
	agent_packet(&scene, flows[0], 0, 0, false);
	assert_int_equal(agent_state(&scene, flows[0], 0), OFFLOAD_SUSPECT);
	assert_in_range(rests_us(&scene, flows[0]), 0, 500000);

	/* whoever rests is looked at nevertheless when no rule may stay */
	struct health *health = installer_health(scene.installer[0]);

	atomic_store(&health->retry_us, UINT64_MAX);
	atomic_store(&health->state, HEALTH_OPEN);
	agent_pass_ms(&scene, 510);
	for (unsigned i = 0; i < N; i++)
		assert_true(agent_state(&scene, flows[i], 0) < OFFLOAD_SUSPECT);
	agent_scene_end(&scene);
}

/* An active report begins a record's counters anew, in the middle of a second over which its rate is measured. */
static void report_at(unsigned at_ms)
{
	struct agent_scene scene;

	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct flow_report report = {.reason = FLOW_END_ACTIVE};

	agent_prove(&scene, flow, 0, 0);
	scene.agent->config.threshold = 100;
	for (unsigned ms = 0; ms < 5000; ms += 10) {
		agent_packet(&scene, flow, 0, 0, true);
		if (ms == at_ms) {
			report.record = *agent_record(&scene, flow);
			agent_ended(scene.agent, &report);
			agent_record(&scene, flow)->count[0].packets_low = 0;
		}
		agent_pass_ms(&scene, 10);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	}
	agent_scene_end(&scene);
}

static void a_report_in_between_is_no_slowing(void **state)
{
	(void)state;
	for (unsigned ms = 2000; ms < 3500; ms += 100)
		report_at(ms);
}

/* The clock's milliseconds begin anew after 49 days; what is to be done then is done. */
static void nothing_rests_by_chance(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	scene.now_us = ((UINT64_C(1) << 32) - 700) * 1000;
	agent_prove(&scene, flow, 0, 0);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], -EIO);
	agent_lose_marks(&scene, flow, 0, 0);
	agent_until(&scene, atomic_load(&agent_nics[0].n_asked[INSTALLER_REMOVE]) == 1);
	agent_until(&scene, first_direction(&scene, flow)->remove);
	agent_pass_ms(&scene, 510);
	agent_until(&scene, atomic_load(&agent_nics[0].n_asked[INSTALLER_REMOVE]) > 1);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], 0);
	agent_scene_end(&scene);
}

/* Ten thousand packets a second, all marked, a millisecond long; the NIC's counter may have them. */
static void flow_on(struct agent_scene *scene, uint32_t flow, bool counts)
{
	for (unsigned i = 0; i < 10; i++)
		agent_packet(scene, flow, 0, 0, true);
	if (counts)
		atomic_fetch_add(&agent_nics[0].counter, 10);
	agent_pass_ms(scene, 1);
	/* an answer is there in the same millisecond */
	agent_until(scene, agent_state(scene, flow, 0) != OFFLOAD_PROVEN ||
				   !scene->agent->wire[0]
					   .slots.slots[agent_record(scene, flow)->slot]
					   .direction[0]
					   .count_awaited);
}

/* Half a second shows that the counter is fresh; then it stands, and is found within a second: by some answers. */
static void a_counter_that_stands_is_found_within_a_second(void **state)
{
	struct agent_scene scene;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		unsigned asked, ms = 0;

		agent_scene_begin(&scene, 64, true);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		agent_prove(&scene, flow, 0, 0);
		atomic_store(&agent_nics[0].counter, 1);
		for (unsigned k = 0; k < 500 + 41 * i; k++)
			flow_on(&scene, flow, true);
		assert_true(scene.agent->port[0].fresh);
		asked = atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]);
		while (agent_state(&scene, flow, 0) == OFFLOAD_PROVEN && ms++ < 2000)
			flow_on(&scene, flow, false);
		assert_in_range(ms, 200, 950);
		assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_COUNTER);
		asked = atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]) - asked;
		assert_in_range(asked, 3, 12);
		agent_scene_end(&scene);
	}
}

/* A driver that answers with what it read up to a second ago. */
static void a_counter_that_is_read_now_and_then_is_not_stuck(void **state)
{
	struct agent_scene scene;
	uint64_t sent = 1;

	(void)state;
	agent_scene_begin(&scene, 64, true);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	for (unsigned ms = 0; ms < 20000; ms++) {
		flow_on(&scene, flow, false);
		sent += 10;
		if (ms % 1000 == 777)
			atomic_store(&agent_nics[0].counter, sent);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	}
	assert_true(scene.agent->port[0].caches && !scene.agent->port[0].fresh);
	agent_scene_end(&scene);
}

/* Where there are many they are looked at in handfuls, and still each of them twice a second: once when it is due. */
static void each_of_many_is_looked_at(void **state)
{
	enum { N = 2560 };
	static uint32_t flows[N];
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 2 * N, false);
	for (unsigned i = 0; i < N; i++) {
		flows[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_prove(&scene, flows[i], 0, 0);
	}
	for (unsigned ms = 0; ms < 4000; ms++) {
		agent_pass_ms(&scene, 1);
		if (ms % 100 != 0 || ms < 2000)
			continue;
		for (unsigned i = 0; i < N; i++)
			assert_in_range(scene.now_us - first_direction(&scene, flows[i])->rate.us,
				0, 1510000);
	}
	agent_scene_end(&scene);
}

/* Of very many rules no more than so many a second are looked at; whom the NIC forgot is not kept waiting. */
static void of_very_many_each_waits_its_turn(void **state)
{
	const struct {
		uint32_t slots, threshold;
		enum offload_state state;
		uint64_t us;
	} cases[] = {
		{1, 1000, OFFLOAD_PROVEN, 250000},
		{16384, 1000, OFFLOAD_PROVEN, 250000},
		{16384, 0, OFFLOAD_PROVEN, 1000000},
		{16385, 1000, OFFLOAD_PROVEN, 1000000},
		{65536, 1000, OFFLOAD_PROVEN, 1000000},
		{131072, 1000, OFFLOAD_PROVEN, 2000000},
		{131072, 0, OFFLOAD_ACCEPTED, 2000000},
		{1000000, 1000, OFFLOAD_PROVEN, 15258789},
		{1000000, 1000, OFFLOAD_SUSPECT, 1000000},
		{UINT32_MAX, 1000, OFFLOAD_PROVEN, 60000000},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cases); i++)
		assert_int_equal(agent_look_us(cases[i].slots, cases[i].threshold, cases[i].state),
			cases[i].us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_that_is_well_rests),
		cmocka_unit_test(nothing_rests_by_chance),
		cmocka_unit_test(a_report_in_between_is_no_slowing),
		cmocka_unit_test(a_counter_that_stands_is_found_within_a_second),
		cmocka_unit_test(a_counter_that_is_read_now_and_then_is_not_stuck),
		cmocka_unit_test(each_of_many_is_looked_at),
		cmocka_unit_test(of_very_many_each_waits_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
