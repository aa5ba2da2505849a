/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that come before the rules of who had their key are gone: they say that they wait behind these. */
#include "agent_scene.h"
#include "traffic/draw.h"

static uint8_t reason_of(struct agent_scene *scene, uint32_t flow, unsigned side)
{
	struct flow_offload view;

	agent_view(scene->agent, agent_record(scene, flow), &view);
	return view.reason[side];
}

/* Since when; 0: it is not known. There is such a rule. */
static uint64_t older_since(struct agent_scene *scene, uint32_t flow, unsigned side)
{
	uint64_t since_us = 1;

	assert_true(agent_has_older_rule(scene->agent, agent_record(scene, flow), side, &since_us));
	return since_us;
}

/* A flow with a rule at the first side ends, and begins anew. */
static uint32_t end_and_begin(struct agent_scene *scene, uint32_t flow)
{
	agent_end(scene, flow);
	return agent_flow(scene, IPPROTO_UDP, 1);
}

/* The delete takes its time: whoever comes with the same key says so all along, and nobody else does. */
static void it_waits_behind_a_delete(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_BUSY);
	atomic_store(&agent_nics[0].shut, true);
	agent_pass_ms(&scene, 7);
	const uint64_t ended_us = scene.now_us;

	flow = end_and_begin(&scene, flow);
	uint32_t other = agent_flow(&scene, IPPROTO_UDP, 2);

	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_SHORT);
	agent_sample(scene.agent, other, 0, 0);
	agent_sample(scene.agent, flow, 0, 0);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_QUEUED);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_OLDER_RULE);
	assert_int_equal(reason_of(&scene, other, 0), OFFLOAD_BUSY);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_INSTALLING);
	agent_pass_ms(&scene, 30);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_OLDER_RULE);
	assert_int_equal(older_since(&scene, flow, 0), ended_us);
	assert_int_equal(reason_of(&scene, other, 0), OFFLOAD_BUSY);
	/* at the other side it had none */
	agent_ask_in(&scene, flow, 1, 1);
	assert_int_equal(reason_of(&scene, flow, 1), OFFLOAD_BUSY);
	atomic_store(&agent_nics[0].shut, false);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_BUSY);
	agent_scene_end(&scene);
}

/* The NIC does not let the older one go: the newer one's rule is there, and says so until its mark comes. */
static void it_is_accepted_beside_one_that_stays(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], -EIO);
	const uint64_t ended_us = scene.now_us;

	flow = end_and_begin(&scene, flow);
	agent_ask_in(&scene, flow, 0, 0);
	agent_pass_ms(&scene, 1200);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_ACCEPTED);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_OLDER_RULE);
	assert_int_equal(older_since(&scene, flow, 0), ended_us);
	agent_packet(&scene, flow, 0, 0, true);
	assert_int_equal(agent_state(&scene, flow, 0), OFFLOAD_PROVEN);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_BUSY);
	atomic_store(&agent_nics[0].result[INSTALLER_REMOVE], 0);
	agent_scene_end(&scene);
}

/* The NIC has not answered the older one's insert: since when that is to go is not said. */
static void it_waits_behind_an_insert(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	atomic_store(&agent_nics[0].shut, true);
	agent_sample(scene.agent, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_INSTALLING);
	flow = end_and_begin(&scene, flow);
	agent_sample(scene.agent, flow, 0, 0);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_INSTALLING);
	assert_int_equal(reason_of(&scene, flow, 0), OFFLOAD_OLDER_RULE);
	assert_int_equal(older_since(&scene, flow, 0), 0);
	atomic_store(&agent_nics[0].shut, false);
	agent_until(&scene, agent_state(&scene, flow, 0) == OFFLOAD_ACCEPTED);
	agent_until(&scene, reason_of(&scene, flow, 0) == OFFLOAD_BUSY);
	agent_scene_end(&scene);
}

enum { SLOTS = 300, KEYS = 12, STEPS = 20000 };

/* Slots that are severed, by the key that each has; as many of a key as may be. */
struct model {
	unsigned key[SLOTS]; /* 0: not taken */
	bool severed[SLOTS];
	uint64_t when[SLOTS], steps;
};

static struct flow_key key_of(unsigned number)
{
	return (struct flow_key){.port = {(rte_be16_t)number, 9}, .proto = IPPROTO_UDP};
}

/* All of a key, in the order in which they were severed, the last one first. */
static void check_key(const struct slots *slots, const struct model *model, unsigned number)
{
	const struct flow_key key = key_of(number);
	uint32_t slot = SLOT_NONE;
	uint64_t before = UINT64_MAX;
	unsigned n = 0, found = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		n += model->key[i] == number && model->severed[i];
	while ((slot = slots_severed(slots, &key, slot)) != SLOT_NONE) {
		assert_int_equal(model->key[slot], number);
		assert_true(model->severed[slot] && model->when[slot] < before);
		before = model->when[slot];
		found++;
	}
	/* where other keys lie between them not all are found */
	assert_true(found <= n && (found > 0 || n == 0));
}

static void step(struct slots *slots, struct model *model, struct draw *draw)
{
	uint32_t slot = draw_below(draw_next(draw), SLOTS);

	model->steps++;
	if (model->key[slot] == 0) {
		unsigned number = 1 + draw_below(draw_next(draw), KEYS);
		const struct flow_key key = key_of(number);

		slot = slots_take(slots, &key, 0);
		if (slot != SLOT_NONE)
			model->key[slot] = number;
	} else if (!model->severed[slot]) {
		slots_sever(slots, slot);
		model->severed[slot] = true;
		model->when[slot] = model->steps;
	} else {
		slots_give_back(slots, slot);
		model->severed[slot] = false;
		model->key[slot] = 0;
	}
}

static void severed_slots_are_found_by_key(void **state)
{
	const struct slots_config config = {
		.n = SLOTS, .n_workers = 1, .mark_max = 0xffffef, .random = 7};
	struct draw draw = {.seed = 11};
	static struct model model;
	uint64_t now_us = 0;
	struct slots slots;

	(void)state;
	assert_int_equal(slots_init(&slots, &config), 0);
	assert_int_equal(slots.n, SLOTS);
	for (unsigned i = 0; i < STEPS; i++) {
		step(&slots, &model, &draw);
		slots_turn(&slots, now_us += SLOT_DRAIN_US);
		check_key(&slots, &model, 1 + i % KEYS);
	}
	slots_fini(&slots);
}

/*
 * The NIC's answer to a remove was never told, and the rule did not go: all of the direction's packets come with the
 * mark that the other direction's rule has, too. They are looked at, as those without a mark are.
 */
static void marks_of_a_rule_that_did_not_go_are_samples(void **state)
{
	struct agent_scene scene;

	(void)state;
	agent_scene_begin(&scene, 64, false);
	uint32_t flow = agent_flow(&scene, IPPROTO_UDP, 1);

	agent_prove(&scene, flow, 0, 0);
	agent_prove(&scene, flow, 1, 1);
	agent_lose_marks(&scene, flow, 1, 1);
	agent_until(&scene, agent_state(&scene, flow, 1) == OFFLOAD_SOFTWARE);
	/* it waits as others do */
	agent_packet(&scene, flow, 1, 1, true);
	assert_int_equal(agent_state(&scene, flow, 1), OFFLOAD_SOFTWARE);
	agent_pass_ms(&scene, 100);
	agent_packet(&scene, flow, 1, 1, true);
	assert_int_equal(agent_state(&scene, flow, 1), OFFLOAD_QUEUED);
	agent_until(&scene, agent_state(&scene, flow, 1) == OFFLOAD_ACCEPTED);
	agent_packet(&scene, flow, 1, 1, true);
	assert_int_equal(agent_state(&scene, flow, 1), OFFLOAD_PROVEN);
	agent_scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_waits_behind_a_delete),
		cmocka_unit_test(it_is_accepted_beside_one_that_stays),
		cmocka_unit_test(it_waits_behind_an_insert),
		cmocka_unit_test(severed_slots_are_found_by_key),
		cmocka_unit_test(marks_of_a_rule_that_did_not_go_are_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
