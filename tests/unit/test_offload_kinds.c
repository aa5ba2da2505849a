/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of flows whose rules never mark, whatever their actions: the installer's part. */
#include "installer_world.h"

/* The clock runs so fast: a second of it is 5 ms, ten are 50. */
#define FAST 200

#define BAD PROVIDER_IPV6_TCP
#define GOOD PROVIDER_IPV4_UDP

/* So many flows of the bad kind fall out, and the port is tried again. */
static void fall_out(struct health_worker *worker, unsigned n, unsigned change)
{
	for (unsigned i = 0; i < n; i++) {
		health_kind_unseen(worker, BAD);
		health_failed(worker, OFFLOAD_UNSEEN);
	}
	world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNSEEN);
	world_change(change, change == CHANGE_SHAPE ? OFFLOAD_UNSEEN : OFFLOAD_MARKLESS);
	world_change(CHANGE_BREAKER_TRIES, OFFLOAD_UNSEEN);
}

static struct health_worker *begin(unsigned n_actions)
{
	fake_begin(false);
	fake.n_actions = n_actions;
	world_make(1, FAST, false);
	assert_int_equal(installer_wait(world, 20000), 0);
	return &installer_health(world)->worker[0];
}

/* Neither before all of its actions were tried, nor with it a kind that is marked. */
static void a_kind_that_never_marks_is_out(void **state)
{
	(void)state;
	for (unsigned n_actions = 1; n_actions <= 4; n_actions++) {
		struct health_worker *worker = begin(n_actions);
		const struct health *health = installer_health(world);

		health_kind_proven(worker, GOOD);
		health_kind_unseen(worker, GOOD);
		for (unsigned i = 1; i < n_actions; i++) {
			fall_out(worker, i == 1 ? 8 : 1, CHANGE_SHAPE);
			assert_int_equal(health_kind_out(health, BAD), 0);
		}
		fall_out(worker, n_actions == 1 ? 8 : 1, CHANGE_KIND_OUT);
		assert_true(health_kind_out(health, BAD) > 0);
		assert_int_equal(health_kind_out(health, GOOD), 0);
		assert_int_equal(fake_shapes(BAD), n_actions);
		assert_int_equal(fake_shapes(GOOD), 0);
		world_end();
	}
}

/* ... and is tried again and again, with each of its actions, until one of its packets has a mark. */
static void a_kind_that_is_out_is_tried(void **state)
{
	struct health_worker *worker = begin(2);
	const struct health *health = installer_health(world);
	uint32_t number;

	(void)state;
	fall_out(worker, 8, CHANGE_SHAPE);
	fall_out(worker, 1, CHANGE_KIND_OUT);
	/* nobody came whom to try: the same actions */
	number = health_kind_out(health, BAD);
	world_until(health_kind_out(health, BAD) > number + 2);
	assert_int_equal(fake_shapes(BAD), 2);
	for (unsigned i = 3; i < 6; i++) {
		health_kind_unseen(worker, BAD);
		world_until(fake_shapes(BAD) == i);
		number = health_kind_out(health, BAD);
		world_until(health_kind_out(health, BAD) > number + 1);
		assert_int_equal(fake_shapes(BAD), i);
	}
	assert_int_equal(health_state(health), HEALTH_TRYING);
	world_no_change();
	health_kind_proven(worker, BAD);
	world_change(CHANGE_KIND_IN, OFFLOAD_MARKLESS);
	assert_int_equal(health_kind_out(health, BAD), 0);
	/* once and for all: what fails now is no matter of actions */
	health_kind_unseen(worker, BAD);
	health_failed(worker, OFFLOAD_UNSEEN);
	world_change(CHANGE_BREAKER_OPEN, OFFLOAD_UNSEEN);
	world_change(CHANGE_BREAKER_TRIES, OFFLOAD_UNSEEN);
	assert_int_equal(fake_shapes(BAD), 5);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kind_that_never_marks_is_out),
		cmocka_unit_test(a_kind_that_is_out_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
