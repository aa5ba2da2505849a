/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/flowsim/port/fault_text.h"

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *line;
	} bad[] = {
		{"", "no fault is named"},
		{"/", "no fault is named"},
		{"loose", "there is no fault 'loose': did you mean 'lose'?"},
		{"xyzzy", "there is no fault 'xyzzy'"},
		{"lose:everx=3", "there is no word 'everx': did you mean 'every'?"},
		{"lose:every", "every of lose has no value"},
		{"lose:every=", "every of lose has no value"},
		{"lose:every=0", "every=0 is not from 1 to 18446744073709551615"},
		{"lose:every=-1", "every= takes a number, not '-1'"},
		{"lose:every=1x", "every= takes a number, not '1x'"},
		{"lose:every=99999999999999999999",
			"every= takes a number, not '99999999999999999999'"},
		{"lose:ms=5", "lose takes no ms="},
		{"dead:every=2", "dead takes no every="},
		{"stop_mark:mark=4294967296", "mark=4294967296 is not from 0 to 4294967295"},
		{"fail:errno=EFOO", "errno= takes an errno, not 'EFOO'"},
		{"fail:errno=134", "errno=134 is not from 1 to 133"},
		{"fail:op=creat", "there is no operation 'creat': did you mean 'create'?"},
		{"wrap:bits=64", "bits=64 is not from 1 to 63"},
		{"late:ms=1\n", "ms= takes a number, not '1?'"},
		{"lose:every=3/dead:xyzzy=1", "there is no word 'xyzzy'"},
		{"lose:off=1", "there is no word 'off'"},
	};
	struct sim_fault_order order;
	struct error error;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(sim_fault_read(&order, bad[i].text, &error), -EINVAL);
		assert_string_equal(error.text, bad[i].line);
	}
}

static void test_settings(void **state)
{
	struct sim_fault_order order;
	struct error error;

	(void)state;
	assert_int_equal(
		sim_fault_read(&order, "fail:every=3,errno=ENOSPC:op=create/late", &error), 0);
	assert_true(order.said[SIM_FAULT_FAIL]);
	assert_true(order.said[SIM_FAULT_LATE]);
	assert_false(order.said[SIM_FAULT_LOSE]);
	assert_int_equal(order.to[SIM_FAULT_FAIL].every, 3);
	assert_int_equal(order.to[SIM_FAULT_FAIL].value, ENOSPC);
	assert_int_equal(order.to[SIM_FAULT_FAIL].op, SIM_OP_CREATE);
	assert_string_equal(order.to[SIM_FAULT_FAIL].told, "every=3,errno=ENOSPC:op=create");
	assert_int_equal(order.to[SIM_FAULT_LATE].value, 100);
	assert_int_equal(sim_fault_read(&order, "lose:every:10:times=2", &error), 0);
	assert_int_equal(order.to[SIM_FAULT_LOSE].every, 10);
	assert_int_equal(order.to[SIM_FAULT_LOSE].times, 2);
	assert_int_equal(sim_fault_read(&order, "lose:every=2/lose:off", &error), 0);
	assert_false(order.to[SIM_FAULT_LOSE].on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests_name("flowsim faults as text", tests, NULL, NULL);
}
