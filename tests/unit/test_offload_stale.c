/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that work on though the NIC said that they are gone: by what they are known, and what comes of it. */
#include "agent_scene.h"

#define FIRST_US UINT64_C(1000000)

/* Packets come with the mark, and others of the direction without: so many each time, as far apart in time and turns. */
struct come {
	unsigned n, without;
	uint64_t us, turns;
};

/* How often the rule was found to work on; `wait_us` and `turns` after it was to be gone. */
static unsigned found(uint64_t wait_us, uint64_t turns, const struct come *come)
{
	struct stale stale = {0};
	struct stale_packet packet = {.now_us = FIRST_US + wait_us, .turn = 7 + turns};
	unsigned times = 0;

	stale_gone(&stale, FIRST_US, 7);
	for (unsigned i = 0; i < come->n; i++) {
		packet.packets += 1 + come->without;
		times += stale_marked(&stale, &packet);
		packet.now_us += come->us;
		packet.turn += come->turns;
	}
	return times;
}

static void enough_of_its_marks_tell(void **state)
{
	const struct come all = {.n = STALE_MARKED, .us = 10, .turns = 1};
	const struct come fewer = {.n = STALE_MARKED - 1, .us = 10, .turns = 1};
	const struct come again = {.n = 3 * STALE_MARKED, .us = 10, .turns = 1};
	const struct come half = {.n = 10 * STALE_MARKED, .without = 1, .us = 10, .turns = 1};
	const struct come slow = {.n = STALE_MARKED, .us = 1000000, .turns = 1000};
	const struct come seldom = {.n = 10 * STALE_MARKED, .us = 2000000, .turns = 2000};

	(void)state;
	assert_int_equal(found(STALE_US, STALE_TURNS, &all), 1);
	assert_int_equal(found(STALE_US, STALE_TURNS, &fewer), 0);
	assert_in_range(found(STALE_US, STALE_TURNS, &again), 2, 3);
	assert_int_equal(found(STALE_US, STALE_TURNS, &half), 0);
	assert_int_equal(found(STALE_US, STALE_TURNS, &slow), 1);
	assert_int_equal(found(STALE_US, STALE_TURNS, &seldom), 0);
}

/* What was in a queue when the rule went is no proof, however late its worker comes to it. */
static void what_was_on_its_way_tells_nothing(void **state)
{
	const struct come at_once = {.n = 10 * STALE_MARKED};
	const struct come slowly = {.n = STALE_MARKED, .us = 10, .turns = 1};

	(void)state;
	assert_int_equal(found(STALE_US - 1, 1000, &at_once), 0);
	assert_int_equal(found(10 * STALE_US, STALE_TURNS - 1, &at_once), 0);
	assert_int_equal(found(STALE_US - 1, 1000, &slowly), 0);
}

static void counters_may_begin_anew(void **state)
{
	struct stale stale = {0};
	struct stale_packet packet = {.now_us = FIRST_US, .turn = 100, .packets = 1000};

	(void)state;
	/* nothing was said of a rule */
	for (unsigned i = 0; i < 100; i++, packet.packets++)
		assert_false(stale_marked(&stale, &packet));
	stale_gone(&stale, FIRST_US - STALE_US, 0);
	for (unsigned i = 1; i < STALE_MARKED; i++, packet.packets++)
		assert_false(stale_marked(&stale, &packet));
	packet.packets = 1;
	for (unsigned i = 1; i < STALE_MARKED; i++, packet.packets++)
		assert_false(stale_marked(&stale, &packet));
	assert_true(stale_marked(&stale, &packet));
	stale_forget(&stale);
	for (unsigned i = 0; i < 100; i++, packet.packets++)
		assert_false(stale_marked(&stale, &packet));
}

static enum health_decision turn_at(struct health *health, uint64_t ms)
{
	return health_turn(health, 1000 * ms);
}

static void one_opens_the_breaker(void **state)
{
	const struct health_config config = {0};
	struct health health;

	(void)state;
	health_init(&health, &config);
	assert_int_equal(turn_at(&health, 100), HEALTH_STAYS);
	health_stale(&health.worker[3]);
	assert_int_equal(turn_at(&health, 110), HEALTH_OPENS);
	assert_int_equal(atomic_load(&health.why), OFFLOAD_STALE);
	assert_int_equal(turn_at(&health, 1110), HEALTH_TRIES);
	assert_true(health_has_stale(&health));
	health_flushed(&health, 1200 * 1000);
	assert_false(health_has_stale(&health));
	/* what was on its way when they went */
	health_stale(&health.worker[3]);
	assert_int_equal(turn_at(&health, 1290), HEALTH_STAYS);
	health_stale(&health.worker[0]);
	assert_int_equal(turn_at(&health, 1301), HEALTH_OPENS);
	assert_int_equal(atomic_load(&health.why), OFFLOAD_STALE);
	assert_int_equal(turn_at(&health, 3301), HEALTH_TRIES);
	assert_true(health_has_stale(&health));
	/* also where it was opened by something else, and that was seen meanwhile */
	health_init(&health, &config);
	for (unsigned i = 0; i < 16; i++)
		health_call(&health, false, OFFLOAD_STALLED);
	assert_int_equal(turn_at(&health, 100), HEALTH_OPENS);
	health_stale(&health.worker[1]);
	assert_int_equal(turn_at(&health, 200), HEALTH_STAYS);
	assert_int_equal(turn_at(&health, 1100), HEALTH_TRIES);
	assert_true(health_has_stale(&health));
}

static uint64_t n_stale(struct agent_scene *scene, unsigned port)
{
	return atomic_load(&installer_health(scene->installer[port])->worker[0].stale);
}

static uint32_t opened(struct agent_scene *scene, unsigned port)
{
	return atomic_load(&installer_health(scene->installer[port])->opened);
}

/* A flow with rules for both directions, whose second falls out: its slot stays, and its mark names it. */
static uint32_t flow_that_fell_out(struct agent_scene *scene)
{
	uint32_t flow = agent_flow(scene, IPPROTO_UDP, 1);

	agent_prove(scene, flow, 0, 0);
	agent_prove(scene, flow, 1, 1);
	agent_lose_marks(scene, flow, 1, 1);
	agent_until(scene, agent_state(scene, flow, 1) == OFFLOAD_SOFTWARE);
	return flow;
}

static void a_direction_says_that_its_rule_stayed(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = flow_that_fell_out(&scene);

	/* it waits for 100 ms; in the first 64 turns all may have been on its way */
	for (unsigned i = 0; i < 63; i++) {
		agent_packet(&scene, flow, 1, 1, true);
		agent_pass_ms(&scene, 1);
	}
	for (unsigned i = 0; i < STALE_MARKED; i++) {
		assert_int_equal(n_stale(&scene, 1), 0);
		agent_pass_ms(&scene, 1);
		assert_int_equal(agent_state(&scene, flow, 1), OFFLOAD_SOFTWARE);
		agent_packet(&scene, flow, 1, 1, true);
	}
	assert_int_equal(n_stale(&scene, 1), 1);
	assert_int_equal(n_stale(&scene, 0), 0);
	agent_until(&scene, opened(&scene, 1) == 1);
	assert_int_equal(atomic_load(&installer_health(scene.installer[1])->why), OFFLOAD_STALE);
	/* the installers' time is the machine's: after a second it flushes, and tries */
	agent_until(&scene, atomic_load(&agent_nics[1].n_flushed) == 1);
	agent_until(&scene, health_state(installer_health(scene.installer[1])) == HEALTH_TRYING);
	assert_int_equal(atomic_load(&agent_nics[0].n_flushed), 0);
	assert_int_equal(opened(&scene, 0), 0);
	agent_scene_end(&scene);
}

static void where_flushing_fails_it_stays_open(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	struct health *health = installer_health(scene.installer[0]);

	atomic_store(&agent_nics[0].flush_result, -EIO);
	health_stale(&health->worker[0]);
	agent_until(&scene, atomic_load(&health->opened) == 2);
	assert_int_equal(atomic_load(&agent_nics[0].n_flushed), 1);
	assert_int_equal(health_state(health), HEALTH_OPEN);
	const struct refusal *refusal =
		refusal_of(installer_refusals(scene.installer[0]), atomic_load(&health->why));

	assert_non_null(refusal);
	assert_int_equal(refusal->error, EIO);
	/* a port that has no such call is tried without */
	atomic_store(&agent_nics[0].flush_result, -EOPNOTSUPP);
	agent_until(&scene, atomic_load(&agent_nics[0].n_flushed) == 2);
	agent_until(&scene, health_state(health) == HEALTH_TRYING);
	agent_scene_end(&scene);
}

/* The flow that had the mark has ended, and its slot is free: the next one of its key is marked by its rule. */
static void a_ghost_of_ours_says_so_too(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	uint32_t mark = agent_mark(&scene, flow);

	agent_end(&scene, flow);
	agent_until(&scene, scene.agent->wire[0].slots.n_used == 0);
	flow = agent_flow(&scene, IPPROTO_UDP, 1);
	agent_pass_ms(&scene, 100);
	/* it is not asked in: what it has from its beginning is no rate yet */
	offload_set_back_off(agent_record(&scene, flow), 0, OFFLOAD_NEVER);
	for (unsigned i = 0; i < STALE_MARKED; i++) {
		assert_int_equal(n_stale(&scene, 0), 0);
		agent_pass_ms(&scene, 1);
		/* a mark that never was ours is no sign of anything of ours */
		agent_packet_with(&scene, flow, 0, 0, i % 8 == 0 ? 3 : mark);
	}
	for (unsigned i = 0; i < 4; i++)
		agent_packet_with(&scene, flow, 0, 0, mark);
	assert_int_equal(n_stale(&scene, 0), 1);
	/* where offload is off there is nobody to tell */
	scene.agent->port[0].installer = NULL;
	for (unsigned i = 0; i < 2 * STALE_MARKED; i++)
		agent_packet_with(&scene, flow, 0, 0, mark);
	assert_int_equal(n_stale(&scene, 0), 1);
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enough_of_its_marks_tell),
		cmocka_unit_test(what_was_on_its_way_tells_nothing),
		cmocka_unit_test(counters_may_begin_anew),
		cmocka_unit_test(one_opens_the_breaker),
		cmocka_unit_test(a_direction_says_that_its_rule_stayed),
		cmocka_unit_test(where_flushing_fails_it_stays_open),
		cmocka_unit_test(a_ghost_of_ours_says_so_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
