/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gets the rules of a NIC that has too few: the busiest, within what it has room and time for. */
#include "agent_crowd.h"

/* What is waited for at first after a rule stayed. */
#define STAYS_US 1000000

static void the_busiest_have_the_rules(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 8);
	crowd_pass(&crowd, 5000);
	assert_in_range(crowd_n_held(&crowd), 7, 8);
	crowd_assert_busiest(&crowd);
	/* who comes is not who stays */
	crowd_turn_around(&crowd);
	crowd_pass(&crowd, 5000);
	assert_in_range(crowd_n_held(&crowd), 7, 8);
	crowd_assert_busiest(&crowd);
	assert_int_equal(crowd.most_rules, 8);
	/* nothing moves while nothing changes, but for a look now and then whether there is more room */
	unsigned inserts = atomic_load(&crowd_nic()->n_asked[INSTALLER_INSERT]);

	crowd_pass(&crowd, 5000);
	assert_true(atomic_load(&crowd_nic()->n_asked[INSTALLER_INSERT]) - inserts <= 8);
	crowd_end(&crowd);
}

/* A NIC that lets no rule go: few leave for nothing, and nobody waits for their places. */
static void nobody_waits_for_rules_that_stay(void **state)
{
	struct crowd crowd;
	unsigned queued = 0;

	(void)state;
	crowd_begin(&crowd, 1, 8);
	crowd_pass(&crowd, 5000);
	const struct agent_port *port = &crowd.scene[0].agent->port[0];

	atomic_store(&crowd_nic()->result[INSTALLER_REMOVE], -EIO);
	crowd_turn_around(&crowd);
	for (unsigned i = 0; i < 50; i++) {
		crowd_pass(&crowd, 100);
		queued += port->counters.flows[OFFLOAD_QUEUED] != 0;
	}
	assert_in_range(port->n_stay, 1, 8);
	assert_int_equal(port->n_stay, port->counters.flows[OFFLOAD_LEAVING]);
	assert_true(port->stay_us > STAYS_US);
	assert_in_range(queued, 0, 3);
	/* it does as it is told again: so does everybody */
	atomic_store(&crowd_nic()->result[INSTALLER_REMOVE], 0);
	crowd_pass(&crowd, 8000);
	assert_int_equal(port->n_stay, 0);
	assert_in_range(crowd_n_held(&crowd), 7, 8);
	crowd_assert_busiest(&crowd);
	crowd_end(&crowd);
}

/* Two that are nearly alike do not change places all the time. */
static void nearly_alike_stay_where_they_are(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 12);
	for (unsigned i = 0; i < CROWD_FLOWS; i++)
		crowd.pps[i] = 1000 + 5 * i;
	crowd_pass(&crowd, 3000);
	unsigned removes = atomic_load(&crowd_nic()->n_asked[INSTALLER_REMOVE]);

	crowd_pass(&crowd, 5000);
	assert_true(atomic_load(&crowd_nic()->n_asked[INSTALLER_REMOVE]) - removes <= 2);
	assert_in_range(crowd_n_held(&crowd), 11, 12);
	crowd_end(&crowd);
}

static void a_limit_is_kept(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 0);
	crowd.scene[0].agent->config.rules = 5;
	crowd_pass(&crowd, 4000);
	crowd_turn_around(&crowd);
	crowd_pass(&crowd, 4000);
	assert_int_equal(crowd.most_rules, 5);
	crowd_assert_busiest(&crowd);
	assert_int_equal(crowd.scene[0].agent->port[0].counters.refused, 0);
	crowd_end(&crowd);
}

/* What other workers' flows have of it is known a moment later: no refusal of the NIC's, and nothing to hide. */
static void others_have_what_there_may_be(void **state)
{
	const struct agent_scene as = {.threshold = 0, .limit = 2};
	struct agent_scene scene;
	uint32_t flow[3];

	(void)state;
	agent_scene_begin_as(&scene, 64, false, &as);
	for (unsigned i = 0; i < RTE_DIM(flow); i++) {
		flow[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_ask_in(&scene, flow[i], 0, 0);
	}
	assert_int_equal(agent_state(&scene, flow[1], 0), OFFLOAD_ACCEPTED);
	assert_int_equal(agent_state(&scene, flow[2], 0), OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(&scene, flow[2])->reason[0], OFFLOAD_OUTRANKED);
	assert_int_equal(scene.agent->port[0].counters.refused, 0);
	assert_int_equal(atomic_load(&crowd_nic()->n_rules), 2);
	agent_scene_end(&scene);
}

static unsigned n_asked(void)
{
	return atomic_load(&crowd_nic()->n_asked[INSTALLER_INSERT]) +
	       atomic_load(&crowd_nic()->n_asked[INSTALLER_REMOVE]);
}

/* Ten rules a second: made, or taken away for others, or since flows end. */
static void no_second_has_more_rules_than_it_may(void **state)
{
	enum { A_SECOND = 10, SECONDS = 8, PARTS = 10 };
	unsigned asked[SECONDS * PARTS + 1];
	uint64_t us[SECONDS * PARTS + 1];
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 8);
	crowd.scene[0].agent->port[0].budget.per_s = A_SECOND;
	asked[0] = n_asked();
	us[0] = crowd.scene[0].now_us;
	for (unsigned i = 1; i <= SECONDS * PARTS; i++) {
		if (i == 30 || i == 65)
			crowd_turn_around(&crowd);
		for (unsigned j = 0; i == 50 && j < CROWD_FLOWS; j++)
			crowd.pps[j] = j % 3 == 0 ? 5000 : 1;
		crowd_pass(&crowd, 1000 / PARTS);
		asked[i] = n_asked();
		us[i] = crowd.scene[0].now_us;
		for (unsigned j = 0; j < i; j++)
			assert_true((uint64_t)(asked[i] - asked[j]) * CLOCK_US_PER_S <=
				    (us[i] - us[j]) * A_SECOND + CLOCK_US_PER_S);
	}
	assert_true(asked[SECONDS * PARTS] >= 4 * A_SECOND);
	crowd_end(&crowd);
}

/* The NIC's table was full, and is so no more. */
static void more_room_is_found(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 4);
	crowd_pass(&crowd, 3000);
	assert_int_equal(crowd.most_rules, 4);
	unsigned refused = (unsigned)crowd.scene[0].agent->port[0].counters.refused;

	crowd_pass(&crowd, 4000);
	/* once it is known to be full, it is asked for one more now and then */
	assert_true(crowd.scene[0].agent->port[0].counters.refused - refused <= 4);
	atomic_store(&crowd_nic()->room, 20);
	for (unsigned i = 0; i < 20 && crowd_n_held(&crowd) < 20; i++)
		crowd_pass(&crowd, 1000);
	assert_int_equal(crowd_n_held(&crowd), 20);
	crowd_end(&crowd);
}

static void ranks_are_told(void **state)
{
	struct flow_offload view;
	struct agent_rank rank;
	struct crowd crowd;

	(void)state;
	crowd_begin(&crowd, 1, 8);
	crowd_pass(&crowd, 6000);
	agent_rank(crowd.scene[0].agent, crowd.flow[CROWD_FLOWS - 1], 0, &rank);
	assert_in_range(rate_pps(rank.rate), 2300, 2500);
	assert_int_equal(rank.rank, 1);
	assert_in_range(rank.held, 7, 8);
	assert_in_range(rank.room, 8, 9);
	agent_rank(crowd.scene[0].agent, crowd.flow[1], 0, &rank);
	assert_in_range(rate_pps(rank.rate), 150, 250);
	assert_in_range(rank.rank, 8, 9);
	assert_true(rank.rate < rank.bar);
	agent_view(crowd.scene[0].agent, agent_record(&crowd.scene[0], crowd.flow[1]), &view);
	assert_int_equal(view.state[0], OFFLOAD_SOFTWARE);
	assert_string_equal(offload_reason_name(view.reason[0]), "outranked");
	/* what any flow would need */
	const uint32_t needed = rank.bar;

	assert_true(agent_bar(crowd.scene[0].agent, 0, &rank));
	assert_int_equal(rank.bar, needed);
	assert_false(rank.has_room);
	assert_int_equal(rank.rank, 0);
	/* of the other direction nothing came */
	agent_rank(crowd.scene[0].agent, crowd.flow[1], 1, &rank);
	assert_int_equal(rank.rate, 0);
	crowd_end(&crowd);
}

/* Where the queue is full as well a flow says so, and what it would take, as long as that is so. */
static void no_place_in_the_queue(void **state)
{
	struct agent_scene scene;
	struct flow_offload view;
	struct agent_rank rank;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	scene.agent->config.threshold = 0;
	for (uint16_t i = 1; i <= QUEUE_SIZE; i++)
		agent_sample(scene.agent, agent_flow(&scene, IPPROTO_UDP, i), 0, 1);
	uint32_t flow = agent_flow(&scene, IPPROTO_TCP, 1);

	agent_sample(scene.agent, flow, 0, 0);
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_equal(view.state[0], OFFLOAD_SOFTWARE);
	assert_int_equal(view.reason[0], OFFLOAD_DISPLACED);
	agent_rank(scene.agent, flow, 0, &rank);
	assert_true(rank.crowded);
	assert_int_equal(rank.bar, queue_needs(&scene.agent->port[0].queue));
	/* of nobody's getting in while the port is given no flows */
	struct health *health = installer_health(scene.agent->port[0].installer);

	atomic_store(&health->retry_us, UINT64_MAX);
	atomic_store(&health->state, HEALTH_OPEN);
	agent_rank(scene.agent, flow, 0, &rank);
	assert_int_equal(rank.bar, UINT32_MAX);
	atomic_store(&health->state, HEALTH_CLOSED);
	/* one of those that wait has gone */
	scene.agent->port[0].queue.n--;
	agent_view(scene.agent, agent_record(&scene, flow), &view);
	assert_int_not_equal(view.reason[0], OFFLOAD_DISPLACED);
	agent_rank(scene.agent, flow, 0, &rank);
	assert_false(rank.crowded);
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_busiest_have_the_rules),
		cmocka_unit_test(nobody_waits_for_rules_that_stay),
		cmocka_unit_test(nearly_alike_stay_where_they_are),
		cmocka_unit_test(a_limit_is_kept),
		cmocka_unit_test(others_have_what_there_may_be),
		cmocka_unit_test(no_second_has_more_rules_than_it_may),
		cmocka_unit_test(more_room_is_found),
		cmocka_unit_test(ranks_are_told),
		cmocka_unit_test(no_place_in_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
