/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void test_grouped(void **state)
{
	char buffer[TEXT_NUMBER_MAX];

	(void)state;
	assert_string_equal(text_grouped(buffer, 0), "0");
	assert_string_equal(text_grouped(buffer, 999), "999");
	assert_string_equal(text_grouped(buffer, 1000), "1,000");
	assert_string_equal(text_grouped(buffer, 82582), "82,582");
	assert_string_equal(text_grouped(buffer, 1000000), "1,000,000");
	assert_string_equal(text_grouped(buffer, UINT64_MAX), "18,446,744,073,709,551,615");
}

static void test_units(void **state)
{
	char buffer[TEXT_NUMBER_MAX];

	(void)state;
	assert_string_equal(text_bytes(buffer, 0), "0 B");
	assert_string_equal(text_bytes(buffer, 999), "999 B");
	assert_string_equal(text_bytes(buffer, 1000), "1.0 kB");
	assert_string_equal(text_bytes(buffer, 99949), "99.9 kB");
	assert_string_equal(text_bytes(buffer, 99999), "100 kB");
	assert_string_equal(text_bytes(buffer, 999499), "999 kB");
	assert_string_equal(text_bytes(buffer, 999999), "1.0 MB");
	assert_string_equal(text_bytes(buffer, 5512362), "5.5 MB");
	assert_string_equal(text_bytes(buffer, UINT64_MAX), "18.4 EB");
	assert_string_equal(text_rate(buffer, 1376366.7), "1.4 M");
	assert_string_equal(text_rate(buffer, 912), "912 ");
	assert_string_equal(text_rate(buffer, 0), "0 ");
	assert_string_equal(text_rate(buffer, -1), "0 ");
	assert_string_equal(text_rate(buffer, (double)INFINITY), "0 ");
	assert_string_equal(text_rate(buffer, (double)NAN), "0 ");
}

static void test_printable(void **state)
{
	char buffer[8];

	(void)state;
	assert_string_equal(text_printable(buffer, 8, "a\nb\x7f\x1b"), "a?b??");
	assert_string_equal(text_printable(buffer, 8, "gr\xc3\xbc"), "gr\xc3\xbc");
	assert_string_equal(text_printable(buffer, 8,
				    "a\xc2\x9b"
				    "1\xc2\xa0"),
		"a??1\xc2\xa0");
	assert_string_equal(text_printable(buffer, 8, "\xe2\x82\xac\x9b"), "\xe2\x82\xac\x9b");
	assert_string_equal(text_printable(buffer, 8, "0123456789"), "0123456");
	assert_string_equal(text_printable(buffer, 1, "0123456789"), "");
}

static void test_visible(void **state)
{
	char buffer[32];

	(void)state;
	assert_string_equal(text_visible(buffer, 32,
				    "\xef\xbb\xbf"
				    "flow"),
		"<U+FEFF>flow");
	assert_string_equal(text_visible(buffer, 32,
				    "a\xc2\xa0\xe2\x80\x8b"
				    "b\n"),
		"a<U+00A0><U+200B>b?");
	/* what is shown, or is no UTF-8 */
	assert_string_equal(
		text_visible(buffer, 32, "gr\xc3\xbc \xe2\x82\xac"), "gr\xc3\xbc \xe2\x82\xac");
	assert_string_equal(text_visible(buffer, 32, "\xc2"), "\xc2");
	assert_string_equal(text_visible(buffer, 32, "\xef\xbb"), "\xef\xbb");
	assert_string_equal(text_visible(buffer, 6, "ab\xc2\xa0z"), "ab<U+");
	assert_int_equal(text_byte_order_mark("\xef\xbb\xbf", 3), 3);
	assert_int_equal(text_byte_order_mark("\xef\xbb\xbf", 2), 0);
	assert_int_equal(text_byte_order_mark("flow", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grouped),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_printable),
		cmocka_unit_test(test_visible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
