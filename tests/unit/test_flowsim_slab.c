/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory whose handles are known, whatever pointer comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drivers/flowsim/rules/slab.h"

#define N 20000 /* several chunks */

static void test_has(void **state)
{
	struct sim_slab slab;
	uint8_t **objects = calloc(N, sizeof(*objects));

	(void)state;
	assert_non_null(objects);
	sim_slab_init(&slab, 180);
	assert_false(sim_slab_has(&slab, NULL));
	assert_false(sim_slab_has(&slab, &slab));
	for (unsigned i = 0; i < N; i++) {
		objects[i] = sim_slab_alloc(&slab, 180);
		assert_non_null(objects[i]);
		memset(objects[i], 0xa5, 180);
	}
	for (unsigned i = 0; i < N; i++) {
		assert_true(sim_slab_has(&slab, objects[i]));
		assert_false(sim_slab_has(&slab, objects[i] + 1));
		assert_false(sim_slab_has(&slab, objects[i] + 16));
		assert_false(sim_slab_has(&slab, objects[i] - 16));
	}
	for (unsigned i = 0; i < N; i += 2)
		sim_slab_free(&slab, objects[i]);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(sim_slab_has(&slab, objects[i]), i % 2 == 1);
	/* pointers into nowhere, and to every place of a chunk */
	assert_false(sim_slab_has(&slab, (void *)(uintptr_t)0x10));
	assert_false(sim_slab_has(&slab, (void *)UINTPTR_MAX));
	for (uintptr_t at = (uintptr_t)objects[1] & ~((uintptr_t)(1 << 18) - 1), i = 0; i < 4096;
		i++)
		(void)sim_slab_has(&slab, (void *)(at + i * 61));
	sim_slab_fini(&slab);
	assert_false(sim_slab_has(&slab, objects[1]));
	free(objects);
}

/* A place comes again, but not before so many others were freed. */
static void test_quarantine(void **state)
{
	struct sim_slab slab;
	uint8_t *first, *object;
	unsigned after = 0;

	(void)state;
	sim_slab_init(&slab, 64);
	first = sim_slab_alloc(&slab, 64);
	first[63] = 7;
	sim_slab_free(&slab, first);
	do {
		object = sim_slab_alloc(&slab, 64);
		assert_non_null(object);
		if (object == first)
			break;
		sim_slab_free(&slab, object);
		assert_false(sim_slab_has(&slab, first));
		after++;
		assert_true(after < 4 * SIM_SLAB_QUARANTINE);
	} while (true);
	assert_true(after >= SIM_SLAB_QUARANTINE);
	assert_int_equal(object[63], 0);
	assert_true(sim_slab_has(&slab, first));
	sim_slab_fini(&slab);
}

static void test_zeroed(void **state)
{
	struct sim_slab slab;

	(void)state;
	sim_slab_init(&slab, 1000);
	for (unsigned i = 0; i < 3 * SIM_SLAB_QUARANTINE; i++) {
		uint8_t *object = sim_slab_alloc(&slab, 700);

		for (unsigned at = 0; at < 700; at++)
			assert_int_equal(object[at], 0);
		memset(object, 0xff, 1000);
		sim_slab_free(&slab, object);
	}
	sim_slab_free(&slab, NULL);
	sim_slab_fini(&slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_has),
		cmocka_unit_test(test_quarantine),
		cmocka_unit_test(test_zeroed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
