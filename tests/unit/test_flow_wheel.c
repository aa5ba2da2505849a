/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "flow/wheel.h"

enum { RECORDS = 3000 };

#define A_YEAR (31536000 * CLOCK_TICKS_PER_S)

/* The real due time of each record; a wheel asks about it when it may have come. */
struct clockwork {
	struct wheel wheel;
	struct flow_record *records;
	uint64_t due[RECORDS]; /* UINT64_MAX: not on the wheel */
	uint64_t tick;
	uint64_t asked;
	unsigned ended;
	unsigned budget; /* records in one piece of a tick */
};

static void ask(void *context, uint32_t position)
{
	struct clockwork *clockwork = context;

	clockwork->asked++;
	if (clockwork->due[position] > clockwork->tick) {
		wheel_add(&clockwork->wheel, position, clockwork->due[position]);
		return;
	}
	assert_int_equal(clockwork->due[position], clockwork->tick);
	clockwork->due[position] = UINT64_MAX;
	clockwork->ended++;
}

static struct clockwork *make(void)
{
	struct clockwork *clockwork = calloc(1, sizeof(*clockwork));

	clockwork->records = aligned_alloc(64, RECORDS * sizeof(struct flow_record));
	memset(clockwork->records, 0, RECORDS * sizeof(struct flow_record));
	memset(clockwork->due, 0xff, sizeof(clockwork->due));
	clockwork->budget = UINT32_MAX;
	wheel_init(&clockwork->wheel, clockwork->records);
	return clockwork;
}

static void destroy(struct clockwork *clockwork)
{
	free(clockwork->records);
	free(clockwork);
}

static void run_to(struct clockwork *clockwork, uint64_t until)
{
	while (clockwork->tick < until) {
		clockwork->tick = wheel_next_tick(&clockwork->wheel, until);
		assert_true(clockwork->tick <= until);
		while (!wheel_turn(&clockwork->wheel, clockwork->tick, ask, clockwork,
			&(unsigned){clockwork->budget}))
			;
	}
}

static void add(struct clockwork *clockwork, uint32_t position, uint64_t in)
{
	clockwork->due[position] = clockwork->tick + in;
	wheel_add(&clockwork->wheel, position, clockwork->due[position]);
}

static void every_distance(unsigned budget)
{
	static const uint64_t distances[] = {1, 2, 510, 511, 512, 513, 1023, 1024, 130559, 130560,
		131071, 131072, 131073, 262143, 262144, 8388607, 8388608, 8388609, A_YEAR};

	for (uint64_t start = 0; start < 600; start += 37) {
		struct clockwork *clockwork = make();
		unsigned n = sizeof(distances) / sizeof(distances[0]);

		clockwork->budget = budget;
		run_to(clockwork, start * 1000 + start);
		for (uint32_t i = 0; i < n; i++)
			add(clockwork, i, distances[i]);
		run_to(clockwork, clockwork->tick + A_YEAR);
		assert_int_equal(clockwork->ended, n);
		assert_int_equal(clockwork->wheel.count, 0);
		/* once at each level on the way down; from 0 on some begin where a slot does */
		assert_int_equal(clockwork->asked, start == 0 ? 40 : 49);
		destroy(clockwork);
	}
}

static void every_distance_is_exact(void **state)
{
	(void)state;
	every_distance(UINT32_MAX);
	every_distance(1);
}

static void random_life(void **state)
{
	(void)state;
	struct clockwork *clockwork = make();

	srandom(7);
	clockwork->budget = 3;
	for (unsigned i = 0; i < 300000; i++) {
		uint32_t position = (uint32_t)random() % RECORDS;

		if (clockwork->due[position] == UINT64_MAX) {
			uint64_t span = UINT64_C(1) << random() % 20;

			add(clockwork, position, 1 + (uint64_t)random() % span);
		} else if (random() % 4 == 0) {
			wheel_remove(&clockwork->wheel, position);
			clockwork->due[position] = UINT64_MAX;
		} else {
			clockwork->due[position] += (uint64_t)random() % 1000; /* packets came */
		}
		if (random() % 3 == 0)
			run_to(clockwork, clockwork->tick + (uint64_t)random() % 50);
	}
	run_to(clockwork, clockwork->tick + (1 << 23));
	assert_int_equal(clockwork->wheel.count, 0);
	for (unsigned i = 0; i < WHEEL_WORDS; i++)
		assert_int_equal(clockwork->wheel.occupied[i], 0);
	destroy(clockwork);
}

static void oldest_come_first(void **state)
{
	(void)state;
	struct clockwork *clockwork = make();
	uint32_t found[RECORDS];
	unsigned ranks = 0;

	run_to(clockwork, 1000);
	assert_int_equal(wheel_oldest(&clockwork->wheel, found, RECORDS), 0);
	for (uint32_t i = 0; i < RECORDS; i++)
		add(clockwork, i, 1 + (i * UINT64_C(7919)) % 200000);
	assert_int_equal(wheel_oldest(&clockwork->wheel, found, 16), 16);
	for (unsigned i = 0; i < 16; i++) {
		unsigned earlier = 0;

		for (uint32_t j = 0; j < RECORDS; j++)
			earlier += clockwork->due[j] < clockwork->due[found[i]];
		assert_in_range(earlier, 0, 15);
		ranks |= 1u << earlier;
	}
	/* each of the first sixteen once */
	assert_int_equal(ranks, 0xffff);
	assert_int_equal(wheel_oldest(&clockwork->wheel, found, RECORDS), RECORDS);
	destroy(clockwork);
}

/* What a tick that is not finished still has is the oldest there is. */
static void a_tick_in_pieces_keeps_its_order(void **state)
{
	(void)state;
	struct clockwork *clockwork = make();
	uint32_t found[2];
	unsigned budget = 3;

	run_to(clockwork, 511);
	for (uint32_t i = 0; i < 5; i++)
		add(clockwork, i, 1);
	add(clockwork, 9, 2);
	clockwork->tick = wheel_next_tick(&clockwork->wheel, 1000);
	assert_int_equal(clockwork->tick, 512);
	assert_false(wheel_turn(&clockwork->wheel, 512, ask, clockwork, &budget));
	assert_int_equal(budget, 0);
	assert_int_equal(clockwork->ended, 3);
	assert_int_equal(wheel_oldest(&clockwork->wheel, found, 2), 2);
	assert_int_equal(found[0], 3);
	assert_int_equal(found[1], 4);
	wheel_remove(&clockwork->wheel, 3);
	add(clockwork, 3, 512); /* the same slot's next round is not now */
	budget = 3;
	assert_true(wheel_turn(&clockwork->wheel, 512, ask, clockwork, &budget));
	assert_int_equal(clockwork->ended, 4);
	assert_int_equal(wheel_oldest(&clockwork->wheel, found, 2), 2);
	assert_int_equal(found[0], 9);
	run_to(clockwork, 1200);
	assert_int_equal(clockwork->ended, 6);
	destroy(clockwork);
}

static void empty_wheels_jump(void **state)
{
	(void)state;
	struct clockwork *clockwork = make();

	assert_int_equal(wheel_next_tick(&clockwork->wheel, UINT64_C(1) << 40), UINT64_C(1) << 40);
	run_to(clockwork, UINT64_C(1) << 40);
	add(clockwork, 1, 5);
	assert_int_equal(wheel_next_tick(&clockwork->wheel, UINT64_MAX), (UINT64_C(1) << 40) + 5);
	wheel_remove(&clockwork->wheel, 1);
	destroy(clockwork);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_distance_is_exact),
		cmocka_unit_test(random_life),
		cmocka_unit_test(oldest_come_first),
		cmocka_unit_test(a_tick_in_pieces_keeps_its_order),
		cmocka_unit_test(empty_wheels_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
