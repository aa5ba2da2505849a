/* SPDX-License-Identifier: BSD-3-Clause */
/* What is over is over for the agent: waits, reasons, rules that a NIC keeps, late answers. */
#include "agent_scene.h"

static const char *reason_told(struct agent_scene *scene, uint32_t flow)
{
	struct flow_offload view;

	agent_view(scene->agent, agent_record(scene, flow), &view);
	return offload_reason_name(view.reason[0]);
}

/* Rules that cannot be deleted are no canaries: others are tried in their place. */
static void rules_that_stay_do_not_keep_canaries_away(void **state)
{
	struct agent_scene scene;
	uint32_t flows[HEALTH_CANARIES], canary;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	for (unsigned i = 0; i < HEALTH_CANARIES; i++) {
		flows[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_prove(&scene, flows[i], 0, 0);
	}
	canary = agent_flow(&scene, IPPROTO_UDP, 100);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], -EIO);
	for (unsigned i = 0; i < HEALTH_CANARIES; i++)
		agent_lose_marks(&scene, flows[i], 0, 0);
	agent_until(
		&scene, atomic_load(&agent_nics[0].n_asked[INSTALLER_REMOVE]) >= HEALTH_CANARIES);
	for (unsigned i = 0; i < HEALTH_CANARIES; i++)
		assert_int_equal(agent_state(&scene, flows[i], 0), OFFLOAD_LEAVING);
	atomic_store(&installer_health(scene.installer[0])->state, HEALTH_TRYING);
	agent_prove(&scene, canary, 0, 0);
	assert_int_equal(agent_record(&scene, canary)->reason[0], OFFLOAD_CANARY);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], 0);
	agent_scene_end(&scene);
}

/* Rules of before the port was put to software, as many as canaries: they leave, and canaries come. */
static void rules_of_before_leave(void **state)
{
	struct agent_scene scene;
	uint32_t flows[HEALTH_CANARIES], canary;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	struct health *health = installer_health(scene.installer[0]);

	for (unsigned i = 0; i < HEALTH_CANARIES; i++) {
		flows[i] = agent_flow(&scene, IPPROTO_UDP, (uint16_t)(i + 1));
		agent_prove(&scene, flows[i], 0, 0);
	}
	canary = agent_flow(&scene, IPPROTO_UDP, 100);
	agent_pass_ms(&scene, 10);
	/* no sweep has come by while it was open */
	atomic_store(&health->since_us, scene.now_us);
	atomic_store(&health->state, HEALTH_TRYING);
	agent_pass_ms(&scene, 510);
	for (unsigned i = 0; i < HEALTH_CANARIES; i++) {
		agent_until(&scene, agent_state(&scene, flows[i], 0) == OFFLOAD_SOFTWARE);
		assert_int_equal(agent_record(&scene, flows[i])->reason[0], OFFLOAD_BREAKER);
	}
	/* those that were proven before would come first */
	agent_pass_ms(&scene, 490);
	agent_prove(&scene, canary, 0, 0);
	agent_pass_ms(&scene, 510);
	assert_int_equal(agent_state(&scene, canary, 0), OFFLOAD_PROVEN);
	agent_scene_end(&scene);
}

static void a_reason_that_is_over_is_not_told(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t fell = agent_flow(&scene, IPPROTO_UDP, 1);
	uint32_t broke = agent_flow(&scene, IPPROTO_UDP, 2);
	struct health *health = installer_health(scene.installer[0]);

	agent_prove(&scene, fell, 0, 0);
	agent_prove(&scene, broke, 0, 0);
	agent_lose_marks(&scene, fell, 0, 0);
	agent_until(&scene, agent_state(&scene, fell, 0) == OFFLOAD_SOFTWARE);
	assert_string_equal(reason_told(&scene, fell), "quarantine");
	agent_pass_ms(&scene, 100);
	assert_string_equal(reason_told(&scene, fell), "quiet");

	atomic_store(&health->retry_us, UINT64_MAX);
	atomic_store(&health->state, HEALTH_OPEN);
	agent_pass_ms(&scene, 1000);
	agent_until(&scene, agent_state(&scene, broke, 0) == OFFLOAD_SOFTWARE);
	assert_string_equal(reason_told(&scene, broke), "breaker");
	atomic_store(&health->state, HEALTH_CLOSED);
	assert_string_equal(reason_told(&scene, broke), "quiet");
	agent_scene_end(&scene);
}

/* 2^31 ms are 25 days, 2^32 ms 50: a wait of 0.1 s has been over for long. */
static void a_wait_does_not_come_back_after_weeks(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	agent_lose_marks(&scene, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	scene.now_us += (UINT64_C(1) << 31) * 1000 + 200000;
	agent_turn(scene.agent, scene.now_us);
	agent_prove(&scene, flow, 0, 0);
	agent_scene_end(&scene);
}

/* A refusal keeps the driver's words, whatever else would keep the flow out now. */
static void a_refusal_keeps_its_reason(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	atomic_store(&agent_nics[1].result[INSTALLER_INSERT], -ENOSPC);
	agent_ask_in(&scene, flow, 1, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_REFUSED);
	uint8_t refusal = agent_record(&scene, flow)->reason[0];

	assert_true(refusal >= OFFLOAD_REFUSALS);
	/* its wait is over, and the queue is full */
	for (uint16_t i = 0; i < QUEUE_SIZE; i++)
		agent_sample(scene.agent, agent_flow(&scene, IPPROTO_UDP, 100 + i), 1, 0);
	scene.now_us += 200000;
	scene.agent->now_us = scene.now_us;
	agent_sample(scene.agent, flow, 1, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_REFUSED);
	assert_int_equal(agent_record(&scene, flow)->reason[0], refusal);
	assert_int_equal(scene.agent->port[1].counters.flows[OFFLOAD_REFUSED], 1);
	/* by the other port it is another matter: the direction is where its packets arrive */
	agent_prove(&scene, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	assert_int_equal(scene.agent->port[0].counters.flows[OFFLOAD_PROVEN], 1);
	agent_scene_end(&scene);
}

/* A flow that was suspect and fell silent leaves like any other that slowed down. */
static void a_suspect_that_falls_silent_leaves(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	scene.agent->config.threshold = 1000;
	agent_packet(&scene, flow, 0, 0, false);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_SUSPECT);
	agent_pass_ms(&scene, 4000);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	assert_int_equal(agent_record(&scene, flow)->reason[0], OFFLOAD_QUIET);
	assert_int_equal(atomic_load(&agent_nics[0].n_rules), 0);
	agent_scene_end(&scene);
}

/* Changes of that kind so far; the newest one's reason. */
static unsigned n_told(const struct agent_scene *scene, enum change_kind kind, uint8_t *reason)
{
	const struct change_ring *ring = &scene->agent->changes;
	unsigned n = 0;

	assert_true(ring->n <= CHANGE_RING);
	for (uint64_t i = 0; i < ring->n; i++) {
		if (ring->change[i].kind != kind)
			continue;
		*reason = (uint8_t)ring->change[i].reason;
		n++;
	}
	return n;
}

/* Ten seconds, in which a counter is read at least twice. */
static void read_counters(struct agent_scene *scene, uint32_t flow)
{
	const struct slot *slot =
		&scene->agent->wire[0].slots.slots[agent_record(scene, flow)->slot];
	unsigned before = atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]);

	for (unsigned i = 0; i < 10; i++) {
		agent_pass_ms(scene, 1000);
		agent_until(scene, !slot->direction[0].count_awaited);
	}
	assert_true(atomic_load(&agent_nics[0].n_asked[INSTALLER_COUNT]) >= before + 2);
}

/* That counters cannot be read is told once, until one can be again; the flow stays. */
static void unread_counters_are_told_once(void **state)
{
	struct agent_scene scene;
	uint8_t reason = 0;

	(void)state;
	agent_scene_begin(&scene, 64, true);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	const struct agent_port *port = &scene.agent->port[0];

	agent_prove(&scene, flow, 0, 0);
	atomic_store(&agent_nics[0].counter, 1);
	for (unsigned round = 1; round <= 2; round++) {
		const struct refusal *refusal;

		atomic_store(&agent_nics[0].result[INSTALLER_COUNT], -EIO);
		read_counters(&scene, flow);
		assert_true(port->unread);
		assert_int_equal(n_told(&scene, CHANGE_COUNTER_REFUSED, &reason), round);
		refusal = refusal_of(installer_refusals(scene.installer[0]), reason);
		assert_non_null(refusal);
		assert_int_equal(refusal->error, EIO);
		atomic_store(&agent_nics[0].result[INSTALLER_COUNT], 0);
		read_counters(&scene, flow);
		assert_false(port->unread);
		assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	}
	agent_scene_end(&scene);
}

/* A NIC that refuses a delete has answered: that is told as what it is, once a second. */
static void a_refused_delete_is_not_late(void **state)
{
	struct agent_scene scene;
	uint8_t reason = 0;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	struct agent_nic *nic = &agent_nics[0];
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	atomic_store(&nic->result[INSTALLER_REMOVE], -EIO);
	agent_lose_marks(&scene, flow, 0, 0);
	agent_until(&scene, n_told(&scene, CHANGE_DELETE_REFUSED, &reason) == 1);
	const struct refusal *refusal = refusal_of(installer_refusals(scene.installer[0]), reason);

	assert_non_null(refusal);
	assert_int_equal(refusal->error, EIO);
	for (unsigned tries = 1; tries < 8; tries++) {
		uint32_t slot = agent_record(&scene, flow)->slot;
		const struct slot_direction *direction =
			&scene.agent->wire[0].slots.slots[slot].direction[0];

		agent_pass_ms(&scene, 500);
		agent_until(&scene, !direction->awaited);
	}
	assert_true(atomic_load(&nic->n_asked[INSTALLER_REMOVE]) > 4);
	assert_in_range(n_told(&scene, CHANGE_DELETE_REFUSED, &reason), 2, 5);
	assert_int_equal(n_told(&scene, CHANGE_STALLED, &reason), 0);
	assert_int_equal(scene.agent->port[0].counters.stalled, 0);
	atomic_store(&nic->result[INSTALLER_REMOVE], 0);
	agent_pass_ms(&scene, 600);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	agent_scene_end(&scene);
}

/* However often somebody looks whether it came. */
static void a_late_answer_counts_once(void **state)
{
	struct agent_scene scene;
	uint8_t reason;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	const struct agent_counters *counters = &scene.agent->port[0].counters;
	struct agent_nic *nic = &agent_nics[0];
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	atomic_store(&nic->shut, true);
	agent_sample(scene.agent, flow, 0, 0);
	agent_pass_ms(&scene, 300);
	assert_int_equal(counters->stalled, 0);
	agent_pass_ms(&scene, 4000);
	assert_int_equal(counters->stalled, 1);
	assert_int_equal(n_told(&scene, CHANGE_STALLED, &reason), 1);
	assert_int_equal(reason, OFFLOAD_STALLED);
	atomic_store(&nic->shut, false);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	/* the delete is another one */
	agent_packet(&scene, flow, 0, 0, true);
	atomic_store(&nic->shut, true);
	agent_lose_marks(&scene, flow, 0, 0);
	agent_pass_ms(&scene, 4000);
	assert_int_equal(counters->stalled, 2);
	atomic_store(&nic->shut, false);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_SOFTWARE);
	agent_scene_end(&scene);
}

static void few_packets_are_not_worth_a_rule(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	scene.agent->config.min_packets = 8;
	scene.agent->config.threshold = 100;
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);
	struct flow_record *record = agent_record(&scene, flow);

	/* two hundred a second, for half a second */
	for (unsigned i = 0; i < 100; i++) {
		record->count[0].packets_low++;
		agent_sample(scene.agent, flow, 0, 0);
		agent_pass_ms(&scene, 5);
		if (record->count[0].packets_low < 8)
			assert_string_equal(reason_told(&scene, flow), "short");
	}
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	agent_scene_end(&scene);
}

/* A report while it goes on begins the flow's counters anew, and its start; who waited waits on. */
static void an_active_report_does_not_end_a_wait(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_sample(scene.agent, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_QUEUED);
	agent_record(&scene, flow)->start_us += CLOCK_US_PER_S;
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_that_stay_do_not_keep_canaries_away),
		cmocka_unit_test(rules_of_before_leave),
		cmocka_unit_test(a_reason_that_is_over_is_not_told),
		cmocka_unit_test(a_wait_does_not_come_back_after_weeks),
		cmocka_unit_test(a_refusal_keeps_its_reason),
		cmocka_unit_test(a_suspect_that_falls_silent_leaves),
		cmocka_unit_test(unread_counters_are_told_once),
		cmocka_unit_test(a_refused_delete_is_not_late),
		cmocka_unit_test(a_late_answer_counts_once),
		cmocka_unit_test(few_packets_are_not_worth_a_rule),
		cmocka_unit_test(an_active_report_does_not_end_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
