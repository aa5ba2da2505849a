/* SPDX-License-Identifier: BSD-3-Clause */
/* Who makes a place for another worker's flow, and whose it is then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "offload/share.h"

enum { WORKERS = 3, ROOM = 8 };

/* The first has four rules and little to do, the second four busier ones, the third none. */
static void begin(struct share *share)
{
	const struct share_told told[WORKERS] = {
		{.rules = 4, .bar = 100}, {.rules = 4, .bar = 200}, {.bar = SHARE_NOBODY}};

	share_init(share, 0);
	for (unsigned i = 0; i < WORKERS; i++)
		share_tell(share, i, &told[i]);
}

static void tell_waits(
	struct share *share, unsigned worker, uint32_t rules, uint32_t bar, uint32_t rate)
{
	const struct share_told told = {.rules = rules, .bar = bar, .waits = rate};

	share_tell(share, worker, &told);
}

static void assert_asked(const struct share *share, uint32_t first, uint32_t second, uint32_t third)
{
	assert_int_equal(share_asks(share, WORKERS, 0, ROOM), first);
	assert_int_equal(share_asks(share, WORKERS, 1, ROOM), second);
	assert_int_equal(share_asks(share, WORKERS, 2, ROOM), third);
}

static void nobody_is_asked_at_first(void **state)
{
	struct share share;

	(void)state;
	share_init(&share, 0);
	assert_asked(&share, 0, 0, 0);
	assert_int_equal(share_bar(&share, WORKERS, 0), SHARE_NOBODY);
	assert_int_equal(share_rules(&share, WORKERS, 0), 0);
	begin(&share);
	assert_asked(&share, 0, 0, 0);
	assert_int_equal(share_rules(&share, WORKERS, 0), 4);
	assert_int_equal(share_rules(&share, WORKERS, 2), 8);
	assert_int_equal(share_bar(&share, WORKERS, 0), 200);
	assert_int_equal(share_bar(&share, WORKERS, 2), 100);
}

static void the_least_busy_gives_way(void **state)
{
	struct share share;

	(void)state;
	begin(&share);
	tell_waits(&share, 2, 0, SHARE_NOBODY, 99);
	assert_asked(&share, 0, 0, 0);
	tell_waits(&share, 2, 0, SHARE_NOBODY, 300);
	assert_asked(&share, 300, 0, 0);
	/* of equal ones the first */
	tell_waits(&share, 0, 4, 200, 0);
	assert_asked(&share, 300, 0, 0);
	/* who has nothing to lose, or may not */
	tell_waits(&share, 0, 4, SHARE_NOBODY, 0);
	assert_asked(&share, 0, 300, 0);
}

static void one_at_a_time(void **state)
{
	const struct share_told leaves = {.rules = 4, .leaving = 1, .bar = 150};
	struct share share;

	(void)state;
	begin(&share);
	tell_waits(&share, 2, 0, SHARE_NOBODY, 300);
	assert_false(share_is_served(&share, WORKERS, 2, 300));
	share_tell(&share, 0, &leaves);
	assert_asked(&share, 0, 0, 0);
	assert_true(share_is_served(&share, WORKERS, 2, 300));
	/* who comes behind it has to be as busy */
	assert_false(share_is_served(&share, WORKERS, 2, 299));
	assert_false(share_is_served(&share, WORKERS, 1, 300));
	/* it has gone: there is a place */
	tell_waits(&share, 0, 3, 150, 0);
	assert_asked(&share, 0, 0, 0);
	tell_waits(&share, 2, 1, SHARE_NOBODY, 300);
	assert_asked(&share, 300, 0, 0);
}

static void a_place_is_left_to_who_asked(void **state)
{
	struct share share;

	(void)state;
	begin(&share);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(share_before(&share, WORKERS, i), 0);
	tell_waits(&share, 2, 0, SHARE_NOBODY, 300);
	assert_int_equal(share_before(&share, WORKERS, 0), 1);
	assert_int_equal(share_before(&share, WORKERS, 1), 1);
	assert_int_equal(share_before(&share, WORKERS, 2), 0);
	/* two that wait: the busier one first, of equal ones the first */
	tell_waits(&share, 1, 4, 400, 301);
	assert_int_equal(share_before(&share, WORKERS, 0), 2);
	assert_int_equal(share_before(&share, WORKERS, 1), 0);
	assert_int_equal(share_before(&share, WORKERS, 2), 1);
	tell_waits(&share, 1, 4, 400, 300);
	assert_int_equal(share_before(&share, WORKERS, 1), 0);
	assert_int_equal(share_before(&share, WORKERS, 2), 1);
	assert_asked(&share, 300, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_asked_at_first),
		cmocka_unit_test(the_least_busy_gives_way),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(a_place_is_left_to_who_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
