/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that has the driver in it, into which the library is loaded besides. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/flowsim/copy.h"

extern unsigned net_flowsim_copies;

/* EAL does it so, with a file that -d names. */
static void the_library_finds_our_copy(void **state)
{
	void *library;

	(void)state;
	assert_int_equal(net_flowsim_copies, 1);
	assert_true(sim_copy_is_first());
	library = dlopen(FLOWSIM_LIBRARY, RTLD_NOW);
	assert_non_null(library);
	assert_int_equal(net_flowsim_copies, 2);
	assert_true(sim_copy_is_first());
	assert_int_equal(dlclose(library), 0);
}

/* What the program has under its own names stays its own. */
static void nothing_else_is_exported(void **state)
{
	void *library = dlopen(FLOWSIM_LIBRARY, RTLD_NOW);

	(void)state;
	assert_non_null(library);
	assert_null(dlsym(library, "sim_copy_is_first"));
	assert_null(dlsym(library, "error_set"));
	assert_int_equal(dlclose(library), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_finds_our_copy),
		cmocka_unit_test(nothing_else_is_exported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
