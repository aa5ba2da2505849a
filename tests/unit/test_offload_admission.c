/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "offload/admission.h"
#include "traffic/draw.h"

#define N 64

static void the_least_busy_one_gives_way(void **state)
{
	struct admission admission;

	(void)state;
	assert_int_equal(admission_init(&admission, N), 0);
	assert_int_equal(admission_bar(&admission), UINT32_MAX);
	assert_int_equal(admission_least(&admission, UINT32_MAX), ADMISSION_NONE);
	admission_hold(&admission, 3, 1600);
	admission_hold(&admission, 4, 160);
	admission_hold(&admission, 5, 16000);
	/* none is there for long enough */
	assert_int_equal(admission_least(&admission, UINT32_MAX), ADMISSION_NONE);
	admission_look(&admission, 5, 16000, true);
	assert_int_equal(admission_least(&admission, UINT32_MAX), 5);
	admission_look(&admission, 3, 1600, true);
	admission_look(&admission, 4, 160, true);
	assert_int_equal(admission_least(&admission, UINT32_MAX), 4);
	/* not for one that is as busy, or hardly busier */
	assert_int_equal(admission_least(&admission, 160), ADMISSION_NONE);
	assert_int_equal(admission_least(&admission, 180), ADMISSION_NONE);
	assert_int_equal(admission_least(&admission, 240), 4);
	assert_in_range(admission_bar(&admission), 160 * 5 / 4, 160 * 3 / 2);
	assert_int_equal(admission_least(&admission, admission_bar(&admission)), 4);
	assert_int_equal(
		admission_least(&admission, admission_bar(&admission) - 1), ADMISSION_NONE);
	/* it became busier than another */
	admission_look(&admission, 4, 3200, true);
	assert_int_equal(admission_least(&admission, UINT32_MAX), 3);
	admission_release(&admission, 3);
	admission_release(&admission, 3);
	assert_int_equal(admission.n_held, 2);
	assert_int_equal(admission_least(&admission, UINT32_MAX), 4);
	/* who holds nothing is looked at in vain */
	admission_look(&admission, 3, 1, true);
	assert_int_equal(admission_least(&admission, UINT32_MAX), 4);
	assert_int_equal(admission_rank(&admission, 16000), 1);
	assert_int_equal(admission_rank(&admission, 4000), 2);
	assert_int_equal(admission_rank(&admission, 1), 3);
	admission_fini(&admission);
}

/* Beside a plain list: after each of many steps the same one is the least busy, within a step. */
static void it_is_the_least_busy_of_all(void **state)
{
	struct draw draw = {.seed = 11};
	struct admission admission;
	uint32_t rate[N] = {0};
	bool held[N] = {false}, settled[N] = {false};

	(void)state;
	assert_int_equal(admission_init(&admission, N), 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t slot = draw_below(draw_next(&draw), N);
		uint32_t now = (uint32_t)draw_next(&draw) >> draw_below(draw_next(&draw), 32);
		uint32_t least = UINT32_MAX, busier = 0, n = 0;

		switch (draw_below(draw_next(&draw), 4)) {
		case 0:
			admission_hold(&admission, slot, now);
			held[slot] = true;
			settled[slot] = false;
			rate[slot] = now;
			break;
		case 1:
			admission_release(&admission, slot);
			held[slot] = false;
			break;
		default:
			admission_look(&admission, slot, now, i % 8 != 0);
			settled[slot] = i % 8 != 0;
			rate[slot] = now;
			break;
		}
		for (unsigned j = 0; j < N; j++) {
			n += held[j];
			busier += held[j] && rate[j] / 5 * 4 > now;
			if (held[j] && settled[j] && rate[j] < least)
				least = rate[j];
		}
		assert_int_equal(admission.n_held, n);
		assert_true(admission_rank(&admission, now) >= busier + 1);
		assert_true(admission_rank(&admission, now) <= n + 1);
		uint32_t told = admission_least(&admission, UINT32_MAX);

		if (told == ADMISSION_NONE) {
			assert_true(least > UINT32_MAX / 2);
			continue;
		}
		assert_true(held[told] && settled[told]);
		assert_true(rate[told] <= least + least / 4 + 1);
	}
	admission_fini(&admission);
}

/* No second has more than its rules, wherever it begins, and whenever they are asked for. */
static void the_budget_is_never_passed(void **state)
{
	const uint32_t limits[] = {1, 7, 90, 1000, 45454};

	(void)state;
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const uint32_t limit = limits[i];
		struct admission_budget budget = {.per_s = limit};
		struct draw draw = {.seed = i + 1};
		uint64_t begin_us = UINT64_C(1) << 40, now_us = begin_us, n = 0;
		/* when each of the last `limit` was asked for */
		uint64_t *asked_us = calloc(limit, sizeof(*asked_us));

		for (unsigned step = 0; now_us < begin_us + 20 * CLOCK_US_PER_S; step++) {
			while (admission_affords(&budget, now_us, 1)) {
				admission_charge(&budget);
				assert_true(n < limit ||
					    now_us - asked_us[n % limit] >= CLOCK_US_PER_S - 1);
				asked_us[n++ % limit] = now_us;
			}
			/* now and then nobody asks for long */
			now_us += 1 +
				  draw_below(draw_next(&draw), step % 1000 == 999 ? 1500000 : 5000);
		}
		assert_true(n >= 14ul * limit);
		free(asked_us);
	}
	struct admission_budget none = {.per_s = 0};

	assert_true(admission_affords(&none, 0, 2));
	admission_charge(&none);
	assert_true(admission_affords(&none, 0, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_busy_one_gives_way),
		cmocka_unit_test(it_is_the_least_busy_of_all),
		cmocka_unit_test(the_budget_is_never_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
