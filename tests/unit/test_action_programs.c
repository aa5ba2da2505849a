/* SPDX-License-Identifier: BSD-3-Clause */

/* The set of programs: numbers, references, and when a number is used again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>

#include "action/programs.h"
#include "unit/action_reader.h"

/* A program that differs from all others. */
static struct action_program program_of(uint32_t which)
{
	const struct action list[] = {
		{.kind = ACTION_SET_IPV4_SRC,
			.address = {10, (uint8_t)(which >> 16), (uint8_t)(which >> 8),
				(uint8_t)which}},
		{.kind = ACTION_POLICE, .number = which},
	};
	struct action_program program;
	struct error error;

	assert_int_equal(action_program_compile(&program, list, 2, &error), 0);
	return program;
}

static int intern(struct programs *programs, uint32_t which, uint16_t *number)
{
	struct action_program program = program_of(which);
	struct error error;

	return programs_intern(programs, &program, number, &error);
}

static uint16_t interned(struct programs *programs, uint32_t which)
{
	uint16_t number;

	assert_int_equal(intern(programs, which, &number), 0);
	return number;
}

static void check_program(const struct programs *programs, uint16_t number, uint32_t which)
{
	struct action_program program = program_of(which);

	assert_memory_equal(programs_get(programs, number), &program, sizeof(program));
}

static void same_number(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct programs *programs = programs_create(10, qsbr);
	struct action_program plain;
	struct error error;
	uint16_t number;

	(void)state;
	assert_int_equal(action_program_compile(&plain, NULL, 0, &error), 0);
	assert_memory_equal(programs_get(programs, 0), &plain, sizeof(plain));
	assert_int_equal(programs_intern(programs, &plain, &number, &error), 0);
	assert_int_equal(number, 0);
	programs_hold(programs, 0);
	programs_release(programs, 0);
	assert_int_equal(programs_count(programs), 0);

	uint16_t a = interned(programs, 1), b = interned(programs, 2);

	assert_int_not_equal(a, 0);
	assert_int_not_equal(a, b);
	assert_int_equal(interned(programs, 1), a);
	assert_int_equal(programs_count(programs), 2);
	assert_int_equal(programs_references(programs, a), 2);
	programs_hold(programs, a);
	assert_int_equal(programs_references(programs, a), 3);
	for (unsigned i = 0; i < 3; i++)
		programs_release(programs, a);
	assert_int_equal(programs_count(programs), 1);
	/* nobody needed the number meanwhile */
	assert_int_equal(interned(programs, 1), a);
	check_program(programs, a, 1);
	programs_destroy(programs);
	programs_destroy(NULL);
	free(qsbr);
}

static void full(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct programs *programs = programs_create(2, qsbr);
	struct action_program third = program_of(3);
	struct error error;
	uint16_t number;

	(void)state;
	assert_int_equal(rte_rcu_qsbr_thread_register(qsbr, 0), 0);
	rte_rcu_qsbr_thread_online(qsbr, 0);

	uint16_t a = interned(programs, 1), b = interned(programs, 2);

	assert_int_equal(programs_intern(programs, &third, &number, &error), -ENOSPC);
	assert_string_equal(error.text, "programs: all 2 are in use");
	programs_release(programs, a);
	assert_int_equal(programs_intern(programs, &third, &number, &error), -EAGAIN);
	assert_string_equal(error.text, "programs: 1 of 2 are in use, and workers may still run "
					"the others; try again");
	/* the worker may run it yet */
	check_program(programs, a, 1);
	/* taken up again, it is not free when the worker passes */
	assert_int_equal(interned(programs, 1), a);
	rte_rcu_qsbr_quiescent(qsbr, 0);
	assert_int_equal(programs_intern(programs, &third, &number, &error), -ENOSPC);
	programs_release(programs, b);
	rte_rcu_qsbr_quiescent(qsbr, 0);
	assert_int_equal(programs_intern(programs, &third, &number, &error), 0);
	assert_int_equal(number, b);
	check_program(programs, b, 3);
	check_program(programs, a, 1);
	/* the old program of that number is known no longer */
	assert_int_equal(intern(programs, 2, &number), -ENOSPC);
	rte_rcu_qsbr_thread_offline(qsbr, 0);
	programs_destroy(programs);
	errno = 0;
	assert_null(programs_create(0, qsbr));
	assert_int_equal(errno, EINVAL);
	assert_null(programs_create(65536, qsbr));
	free(qsbr);
}

static void all_numbers(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct programs *programs = programs_create(PROGRAMS_MAX, qsbr);
	bool *seen = calloc(65536, sizeof(*seen));
	uint16_t number;

	(void)state;
	assert_non_null(programs);
	for (unsigned round = 0; round < 3; round++) {
		memset(seen, 0, 65536 * sizeof(*seen));
		for (uint32_t i = 0; i < PROGRAMS_MAX; i++) {
			number = interned(programs, round * 100000 + i);
			assert_false(number == 0 || seen[number]);
			seen[number] = true;
		}
		assert_int_equal(intern(programs, 99999, &number), -ENOSPC);
		for (uint32_t i = 0; i < PROGRAMS_MAX; i++) {
			number = interned(programs, round * 100000 + i);
			check_program(programs, number, round * 100000 + i);
			programs_release(programs, number);
			programs_release(programs, number);
		}
		assert_int_equal(programs_count(programs), 0);
	}
	free(seen);
	programs_destroy(programs);
	free(qsbr);
}

/* Against a list of who has what. */
static void random_changes(void **state)
{
	enum { MAX = 50, KINDS = 120 };
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct programs *programs = programs_create(MAX, qsbr);
	uint32_t references[KINDS] = {0}, in_use = 0;
	uint16_t number_of[KINDS] = {0};

	(void)state;
	srand(5);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned which = (unsigned)rand() % KINDS;
		uint16_t number;

		if (references[which] > 0 && rand() % 2) {
			programs_release(programs, number_of[which]);
			in_use -= --references[which] == 0;
			continue;
		}

		int code = intern(programs, which, &number);

		if (references[which] == 0 && in_use == MAX) {
			assert_int_equal(code, -ENOSPC);
			continue;
		}
		assert_int_equal(code, 0);
		if (references[which]++ == 0)
			in_use++;
		else
			assert_int_equal(number, number_of[which]);
		number_of[which] = number;
		for (unsigned other = 0; other < KINDS; other++)
			if (other != which && references[other] > 0)
				assert_int_not_equal(number_of[other], number);
		check_program(programs, number, which);
		assert_int_equal(programs_count(programs), in_use);
		assert_int_equal(programs_references(programs, number), references[which]);
	}
	programs_destroy(programs);
	free(qsbr);
}

struct verdict {
	struct programs *programs;
	atomic_uint number; /* as a worker is told it */
};

/* A worker's look: the program of its number is whole and stays as it is. */
static void look(void *context)
{
	struct verdict *verdict = context;
	uint16_t number = (uint16_t)atomic_load_explicit(&verdict->number, memory_order_acquire);
	const struct action_program *program = programs_get(verdict->programs, number);
	struct action_program first;

	memcpy(&first, program, sizeof(first));
	if (number == 0 ||
		first.policer != ((uint32_t)first.addr[0][1] << 16 |
					 (uint32_t)first.addr[0][2] << 8 | first.addr[0][3]))
		abort();
	for (unsigned i = 0; i < 20; i++)
		if (memcmp(program, &first, sizeof(first)) != 0)
			abort();
}

static void numbers_wait_for_workers(void **state)
{
	struct rte_rcu_qsbr *qsbr = action_qsbr_create(1);
	struct programs *programs = programs_create(3, qsbr);
	struct verdict verdict = {.programs = programs};
	struct action_reader reader = {.qsbr = qsbr, .look = look, .context = &verdict};
	uint16_t number, old;

	(void)state;
	old = interned(programs, 0);
	atomic_init(&verdict.number, old);
	action_reader_start(&reader);
	for (uint32_t i = 1; i < 100000; i++) {
		int code;

		while ((code = intern(programs, i, &number)) == -EAGAIN)
			sched_yield();
		assert_int_equal(code, 0);
		atomic_store_explicit(&verdict.number, number, memory_order_release);
		programs_release(programs, old);
		old = number;
	}
	action_reader_stop(&reader);
	assert_true(atomic_load(&reader.looks) > 0);
	programs_destroy(programs);
	free(qsbr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_number),
		cmocka_unit_test(full),
		cmocka_unit_test(all_numbers),
		cmocka_unit_test(random_changes),
		cmocka_unit_test(numbers_wait_for_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
