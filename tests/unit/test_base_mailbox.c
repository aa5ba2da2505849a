/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mailbox.h"

struct element {
	uint32_t words[5];
};

static void test_sizes(void **state)
{
	(void)state;
	assert_null(mailbox_create("x", 6, 8));
	assert_int_equal(errno, EINVAL);
	assert_null(mailbox_create("x", 0, 8));
	assert_null(mailbox_create("x", 4, 0));
	assert_null(mailbox_create("x", 4, UINT32_MAX));
	mailbox_destroy(NULL);
}

/* It holds as many as were asked for, first in first out, round after round. */
static void test_capacity(void **state)
{
	(void)state;
	for (unsigned count = 1; count < 40; count++) {
		struct mailbox *mailbox =
			mailbox_create("a name that is longer than rings may have", 20, count);
		struct element in[64], out[64];
		uint32_t next_in = 0, next_out = 0;

		assert_non_null(mailbox);
		for (unsigned round = 0; round < 200; round++) {
			for (unsigned i = 0; i < 64; i++)
				for (unsigned j = 0; j < 5; j++)
					in[i].words[j] = next_in + i + j;
			unsigned inside = mailbox_count(mailbox);
			unsigned pushed = mailbox_push(mailbox, in, 64);

			assert_int_equal(inside + pushed, count);
			next_in += pushed;
			assert_int_equal(mailbox_push(mailbox, in, 1), 0);
			unsigned popped = mailbox_pop(mailbox, out, 1 + round % 50);

			for (unsigned i = 0; i < popped; i++, next_out++)
				for (unsigned j = 0; j < 5; j++)
					assert_int_equal(out[i].words[j], next_out + j);
			assert_int_equal(mailbox_count(mailbox), next_in - next_out);
		}
		while (mailbox_pop(mailbox, out, 64) > 0)
			;
		assert_int_equal(mailbox_pop(mailbox, out, 1), 0);
		mailbox_destroy(mailbox);
	}
}

#define N_ELEMENTS 300000

static void *produce(void *arg)
{
	struct mailbox *mailbox = arg;

	for (uint32_t next = 0; next < N_ELEMENTS;) {
		struct element burst[8];
		unsigned n = 0;

		for (; n < 8 && next + n < N_ELEMENTS; n++)
			for (unsigned j = 0; j < 5; j++)
				burst[n].words[j] = next + n + j;
		unsigned pushed = mailbox_push(mailbox, burst, n);

		if (pushed == 0)
			sched_yield();
		next += pushed;
	}
	return NULL;
}

static void test_two_threads(void **state)
{
	struct mailbox *mailbox = mailbox_create("threads", sizeof(struct element), 100);
	struct element out[32];
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, produce, mailbox), 0);
	for (uint32_t next = 0; next < N_ELEMENTS;) {
		unsigned n = mailbox_pop(mailbox, out, 32);

		if (n == 0)
			sched_yield();
		for (unsigned i = 0; i < n; i++, next++)
			for (unsigned j = 0; j < 5; j++)
				assert_int_equal(out[i].words[j], next + j);
	}
	pthread_join(thread, NULL);
	assert_int_equal(mailbox_count(mailbox), 0);
	mailbox_destroy(mailbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
