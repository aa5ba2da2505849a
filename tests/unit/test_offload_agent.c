/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent makes of answers and packets, one side of a flow apart from the other. */
#include "agent_scene.h"

/* Packets without the mark until the direction has left the NIC. */
static void fall_out(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	for (unsigned i = 0; i < 3; i++)
		agent_packet(scene, flow, side, from, false);
	agent_until(scene, agent_state(scene, flow, side) == OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(scene, flow)->reason[side], OFFLOAD_QUARANTINE);
}

static bool may_be_asked(struct agent_scene *scene, uint32_t flow, unsigned side, unsigned from)
{
	agent_sample(scene->agent, flow, side, from);
	return agent_state(scene, flow, side) == OFFLOAD_QUEUED;
}

/* A side that is well does not make the other's wait shorter, nor does one that fell out make it longer. */
static void each_side_waits_for_itself(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct flow_record *record = agent_record(&scene, flow);

	agent_prove(&scene, flow, 0, 0);
	agent_prove(&scene, flow, 1, 1);
	for (unsigned i = 0; i < 3; i++) {
		fall_out(&scene, flow, 1, 1);
		agent_pass_ms(&scene, (100u << i) - 1);
		assert_false(may_be_asked(&scene, flow, 1, 1));
		agent_pass_ms(&scene, 1);
		agent_prove(&scene, flow, 1, 1);
	}
	assert_int_equal(offload_back_off(record, 0), 0);
	assert_int_equal(offload_back_off(record, 1), 3);
	fall_out(&scene, flow, 1, 1);
	/* the first side is true for long */
	for (unsigned i = 0; i < 120; i++) {
		agent_pass_ms(&scene, 100);
		agent_packet(&scene, flow, 0, 0, true);
	}
	assert_int_equal(offload_back_off(record, 1), 4);
	/* and when it falls out its wait is the shortest */
	fall_out(&scene, flow, 0, 0);
	assert_int_equal(offload_back_off(record, 0), 1);
	agent_pass_ms(&scene, 99);
	assert_false(may_be_asked(&scene, flow, 0, 0));
	assert_true(may_be_asked(&scene, flow, 1, 1));
	agent_pass_ms(&scene, 1);
	assert_true(may_be_asked(&scene, flow, 0, 0));
	agent_scene_end(&scene);
}

/* What one port refuses for ever the other may take, and the other way round. */
static void never_is_said_by_one_side(void **state)
{
	(void)state;
	for (unsigned side = 0; side < 2; side++) {
		struct agent_scene scene;

		agent_scene_begin(&scene, 64, false);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		atomic_store(&agent_nics[side].result[INSTALLER_INSERT], -EOPNOTSUPP);
		agent_ask_in(&scene, flow, side, side);
		assert_int_equal(agent_state(&scene, flow, side), OFFLOAD_REFUSED);
		agent_prove(&scene, flow, !side, !side);
		/* the other one falls out, and comes back */
		fall_out(&scene, flow, !side, !side);
		agent_pass_ms(&scene, 100);
		agent_prove(&scene, flow, !side, !side);
		agent_pass_ms(&scene, 100000);
		assert_false(may_be_asked(&scene, flow, side, side));
		agent_scene_end(&scene);
	}
}

/* Without a slot the record keeps the later of the times for which its sides wait. */
static void waits_outlive_the_slot(void **state)
{
	static const struct {
		bool was_in[2]; /* and fell out, the second one 50 ms later */
		unsigned wait_ms[2];
	} cases[] = {
		{{true, false}, {50, 0}},
		{{false, true}, {0, 100}},
		{{true, true}, {100, 100}},
	};

	(void)state;
	for (unsigned i = 0; i < 2 * RTE_DIM(cases); i++) {
		const unsigned side = i % 2, wait_ms = cases[i / 2].wait_ms[side];
		struct agent_scene scene;

		agent_scene_begin(&scene, 1, false);
		uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

		for (unsigned k = 0; k < 2; k++)
			if (cases[i / 2].was_in[k])
				agent_prove(&scene, flow, k, k);
		for (unsigned k = 0; k < 2; k++) {
			if (cases[i / 2].was_in[k])
				fall_out(&scene, flow, k, k);
			agent_pass_ms(&scene, k == 0 ? 50 : 0);
		}
		assert_false(offload_has_slot(agent_record(&scene, flow)));
		if (wait_ms != 0) {
			agent_pass_ms(&scene, wait_ms - 1);
			assert_false(may_be_asked(&scene, flow, side, side));
			agent_pass_ms(&scene, 1);
		}
		assert_true(may_be_asked(&scene, flow, side, side));
		agent_scene_end(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_side_waits_for_itself),
		cmocka_unit_test(never_is_said_by_one_side),
		cmocka_unit_test(waits_outlive_the_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
