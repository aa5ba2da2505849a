/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel of slots, against a list of what is filed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_common.h>

#include "offload/due.h"
#include "traffic/draw.h"

enum { SLOTS = 300 };

/* A slot that is due later than the wheel reaches is looked at in between. */
#define REACH ((uint64_t)DUE_ROW * (DUE_ROWS - 1))

struct scene {
	struct due due;
	struct draw draw;
	uint64_t now_us;
	uint64_t tick[SLOTS]; /* when each is due, at the earliest, 0: it is not filed */
	uint64_t late[SLOTS]; /* and at the latest */
	bool hurried;
};

static uint64_t below(struct scene *scene, uint64_t n)
{
	return draw_next(&scene->draw) % n;
}

static void file(struct scene *scene, uint32_t slot, uint64_t at_us, bool hasten)
{
	uint64_t tick = RTE_MAX(at_us >> DUE_TICK_BITS, scene->due.tick + 1);

	if (!hasten)
		due_file(&scene->due, slot, at_us);
	else
		due_hasten(&scene->due, slot, at_us);
	if (hasten && scene->tick[slot] != 0 && at_us >> DUE_TICK_BITS >= scene->tick[slot])
		return;
	scene->late[slot] = tick;
	scene->tick[slot] = RTE_MIN(tick, scene->due.tick + REACH);
}

/* Takes what is due in that many steps; each was due, and all that had to be taken was. */
static void take(struct scene *scene, unsigned steps)
{
	const uint64_t now = scene->now_us >> DUE_TICK_BITS;
	uint32_t slots[16];
	unsigned budget = steps, n;

	while ((n = due_take(&scene->due, scene->now_us, slots, RTE_DIM(slots), &budget)) != 0)
		for (unsigned i = 0; i < n; i++) {
			assert_int_not_equal(scene->tick[slots[i]], 0);
			assert_true(scene->hurried || scene->tick[slots[i]] <= now);
			scene->tick[slots[i]] = 0;
		}
	for (uint32_t slot = 0; budget != 0 && slot < SLOTS; slot++)
		if (scene->tick[slot] != 0)
			assert_true(scene->late[slot] > now);
}

static void run(uint64_t seed, uint64_t most_us, uint64_t step_us, unsigned steps)
{
	struct scene scene = {.draw = {.seed = seed}, .now_us = 1000000};

	assert_int_equal(due_init(&scene.due, SLOTS), 0);
	take(&scene, 1);
	for (unsigned i = 0; i < 20000; i++) {
		const uint32_t slot = (uint32_t)below(&scene, SLOTS);
		const uint64_t at_us = scene.now_us + below(&scene, most_us);
		const uint64_t kind = below(&scene, 8);

		if (kind == 0) {
			due_remove(&scene.due, slot);
			scene.tick[slot] = 0;
		} else {
			file(&scene, slot, at_us, kind < 4);
		}
		scene.now_us += below(&scene, step_us);
		take(&scene, steps);
	}
	/* after any pause all are due */
	scene.now_us += UINT64_C(5000000000);
	take(&scene, UINT32_MAX);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		assert_int_equal(scene.tick[slot], 0);
	due_fini(&scene.due);
}

static void each_is_taken_when_it_is_due(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		run(seed, 3000, 200, UINT32_MAX);
		run(seed, 600000, 2000, UINT32_MAX);
		run(seed, 60000000, 100000, UINT32_MAX);
		run(seed, 200000000, 5000000, UINT32_MAX);
	}
}

/* With few steps at a time a slot may be late, and none is forgotten. */
static void few_at_a_time(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		run(seed, 600000, 300, 1);
		run(seed, 60000000, 100000, 2);
	}
}

/* Whatever is filed is looked at within a row. */
static void what_hurries_is_looked_at_soon(void **state)
{
	struct scene scene = {.draw = {.seed = 7}, .now_us = 1000000, .hurried = true};

	(void)state;
	assert_int_equal(due_init(&scene.due, SLOTS), 0);
	take(&scene, 1);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		file(&scene, slot, scene.now_us + below(&scene, 60000000), false);
	due_hurry(&scene.due);
	for (unsigned i = 0; i <= DUE_ROW; i++) {
		scene.now_us += DUE_TICK_US;
		take(&scene, UINT32_MAX);
	}
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		assert_int_equal(scene.tick[slot], 0);
	due_fini(&scene.due);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_taken_when_it_is_due),
		cmocka_unit_test(few_at_a_time),
		cmocka_unit_test(what_hurries_is_looked_at_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
