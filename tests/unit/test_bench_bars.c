/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/bars.h"

static const char *const panels[] = {"some & more", "none"};
static const char *const series[] = {"one", "two"};
static const struct bars_names names = {
	.panels = panels, .n_panels = 2, .series = series, .n_series = 2};

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)) != NULL; text += strlen(word))
		n++;
	return n;
}

static void the_largest_is_as_high_as_the_panel(void **state)
{
	static char text[16384];
	char path[] = "bars-XXXXXX";
	struct error error;
	struct bars *bars;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "what was there", 14), 14);
	assert_int_equal(bars_create(&bars, path, &names, &error), 0);
	bars_add(bars, 0, 0, 1); /* of no group */
	bars_group(bars, "a load");
	bars_add(bars, 0, 0, 100);
	bars_add(bars, 0, 1, 50);
	bars_group(bars, "another");
	bars_add(bars, 0, 1, 2.5);
	bars_add(bars, 0, 0, NAN);
	bars_add(bars, 2, 0, 1);
	bars_add(bars, 0, 2, 1);
	assert_int_equal(bars_finish(bars, "a title", "a machine", &error), 0);
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	close(fd);
	unlink(path);
	assert_true(n > 0 && n < (ssize_t)sizeof(text) - 1);
	assert_int_equal(strncmp(text, "<svg ", 5), 0);
	assert_int_equal(count(text, "</svg>"), 1);
	assert_int_equal(count(text, "class=\"panel\""), 2);
	assert_int_equal(count(text, "some &amp; more"), 1);
	/* three bars, the background, and nothing that was never measured */
	assert_int_equal(count(text, "<rect "), 4);
	assert_int_equal(count(text, ">100</text>"), 1);
	assert_int_equal(count(text, ">50</text>"), 1);
	assert_int_equal(count(text, ">2.5</text>"), 1);
	const char *high = strstr(strstr(text, "class=\"s0\" x"), "height=");
	const char *half = strstr(strstr(text, "class=\"s1\" x"), "height=");

	assert_true(fabs(atof(high + 8) - 2 * atof(half + 8)) < 0.2);
}

static void a_path_that_cannot_be_is_told(void **state)
{
	struct error error;
	struct bars *bars;

	(void)state;
	assert_true(bars_create(&bars, "not-there/bars.svg", &names, &error) < 0);
	assert_null(bars);
	assert_non_null(strstr(error.text, "--plot not-there/bars.svg: No such file"));
}

/* More groups than there is room for are left out. */
static void too_many_are_left_out(void **state)
{
	struct error error;
	struct bars *bars;

	(void)state;
	assert_int_equal(bars_create(&bars, "/dev/full", &names, &error), 0);
	for (unsigned i = 0; i < 2 * BARS_MAX_GROUPS; i++) {
		bars_group(bars, "load");
		bars_add(bars, 0, 0, i);
	}
	assert_true(bars_finish(bars, "a title", "a machine", &error) < 0);
	assert_non_null(strstr(error.text, "No space left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_is_as_high_as_the_panel),
		cmocka_unit_test(a_path_that_cannot_be_is_told),
		cmocka_unit_test(too_many_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
