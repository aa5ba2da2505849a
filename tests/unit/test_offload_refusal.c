/* SPDX-License-Identifier: BSD-3-Clause */
/* What drivers say when they refuse: the answer that is made of it, and the words that are kept. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/refusal.h"
#include "rteflow/answer.h"

static void answers_to_inserts(void **state)
{
	static const struct {
		int error, first, later;
	} cases[] = {
		{ENOSPC, -ENOSPC, -ENOSPC},
		{ENOBUFS, -ENOSPC, -ENOSPC},
		{ENOMEM, -ENOSPC, -ENOSPC},
		{EINVAL, -EOPNOTSUPP, -ENOSPC},
		{ENOSYS, -EOPNOTSUPP, -ENOSPC},
		{ENOTSUP, -EOPNOTSUPP, -ENOSPC},
		{EPERM, -EOPNOTSUPP, -ENOSPC},
		{EEXIST, -EAGAIN, -EAGAIN},
		{EAGAIN, -EAGAIN, -EAGAIN},
		{EBUSY, -EAGAIN, -EAGAIN},
		{EIO, -EIO, -EIO},
		{ENODEV, -EIO, -EIO},
		{ETIMEDOUT, -EIO, -EIO},
		{ENOENT, -EIO, -EIO},
		{E2BIG, -EIO, -EIO},
		{0, -EIO, -EIO},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(answer_insert(cases[i].error, false), cases[i].first);
		assert_int_equal(answer_insert(cases[i].error, true), cases[i].later);
	}
}

static void answers_to_others(void **state)
{
	(void)state;
	/* what is not there is gone */
	assert_int_equal(answer_remove(ENOENT), 0);
	assert_int_equal(answer_remove(EBUSY), -EAGAIN);
	assert_int_equal(answer_remove(ENOMEM), -EAGAIN);
	assert_int_equal(answer_remove(EIO), -EIO);
	assert_int_equal(answer_remove(EINVAL), -EIO);
	assert_int_equal(answer_remove(ENOTSUP), -EIO);
	assert_int_equal(answer_query(ENOTSUP), -EOPNOTSUPP);
	assert_int_equal(answer_query(ENOSYS), -EOPNOTSUPP);
	assert_int_equal(answer_query(EAGAIN), -EAGAIN);
	assert_int_equal(answer_query(EIO), -EIO);
	assert_int_equal(answer_query(EINVAL), -EIO);
}

static void words_as_the_driver_left_them(void **state)
{
	struct rte_flow_error said = {0};
	struct provider_why why;
	char longer[300];

	(void)state;
	memset(&why, 0x55, sizeof(why));
	answer_why(&why, EINVAL, &said);
	assert_int_equal(why.error, EINVAL);
	assert_string_equal(why.words, "");
	said.message = "no such\tmask\xff!";
	answer_why(&why, 0, &said);
	assert_int_equal(why.error, EIO);
	assert_string_equal(why.words, "no such?mask?!");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	answer_words(&why, ENOSPC, longer);
	assert_int_equal(strlen(why.words), sizeof(why.words) - 1);
}

static void a_refusal_has_one_number(void **state)
{
	static struct refusals refusals;
	uint8_t one, two, three;

	(void)state;
	memset(&refusals, 0, sizeof(refusals));
	assert_null(refusal_of(&refusals, OFFLOAD_REFUSALS));
	one = refusal_note(&refusals, EINVAL, "no");
	two = refusal_note(&refusals, ENOTSUP, "no");
	three = refusal_note(&refusals, EINVAL, NULL);
	assert_int_equal(one, OFFLOAD_REFUSALS);
	assert_true(two != one && three != one && three != two);
	assert_int_equal(refusal_note(&refusals, EINVAL, "no"), one);
	assert_int_equal(refusal_note(&refusals, EINVAL, ""), three);
	assert_int_equal(refusal_of(&refusals, one)->times, 2);
	assert_int_equal(refusal_of(&refusals, two)->times, 1);
	assert_int_equal(refusal_of(&refusals, one)->error, EINVAL);
	assert_string_equal(refusal_of(&refusals, one)->words, "no");
	assert_null(refusal_of(&refusals, (uint8_t)(OFFLOAD_REFUSALS + 3)));
	assert_null(refusal_of(&refusals, OFFLOAD_REFUSALS - 1));
	assert_null(refusal_of(&refusals, 0));
	/* what was cleaned is found again */
	one = refusal_note(&refusals, EIO, "a\nb");
	assert_string_equal(refusal_of(&refusals, one)->words, "a?b");
	assert_int_equal(refusal_note(&refusals, EIO, "a\nb"), one);
}

static void more_refusals_than_numbers(void **state)
{
	static struct refusals refusals;
	char words[400];
	uint8_t last = 0;

	(void)state;
	memset(&refusals, 0, sizeof(refusals));
	memset(words, 'x', sizeof(words));
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(words, sizeof(words), "rule %u", i);
		last = refusal_note(&refusals, EINVAL, words);
		if (i < OFFLOAD_N_REFUSALS - 1)
			assert_string_equal(refusal_of(&refusals, last)->words, words);
	}
	assert_int_equal(last, 255);
	assert_int_equal(refusals.n, OFFLOAD_N_REFUSALS);
	/* the last one is in nobody's words */
	assert_null(strstr(refusal_of(&refusals, last)->words, "rule"));
	assert_int_equal(refusal_of(&refusals, last)->times, 1000 - OFFLOAD_N_REFUSALS + 1);
	assert_int_equal(refusal_note(&refusals, EINVAL, "rule 5"), OFFLOAD_REFUSALS + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_to_inserts),
		cmocka_unit_test(answers_to_others),
		cmocka_unit_test(words_as_the_driver_left_them),
		cmocka_unit_test(a_refusal_has_one_number),
		cmocka_unit_test(more_refusals_than_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
