/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/suggest.h"

static void test_suggest(void **state)
{
	static const char *const known[] = {"replay", "run", "bench", "flow", "offload",
		"offload-verify", "offload-rules", "offload-rules-per-second", "flow-table-size",
		"offload-size", "verity"};
	static const struct {
		const char *word, *meant;
	} rows[] = {
		{"replya", "replay"},
		{"repaly", "replay"},
		{"relay", "replay"},
		{"replays", "replay"},
		{"rplay", "replay"},
		{"runn", "run"},
		{"rnu", "run"},
		{"flwo", "flow"},
		{"ofload", "offload"},
		{"x", NULL},
		{"", NULL},
		{"play", "replay"},
		{"configuration", NULL},
		{"verify", "offload-verify"},
		{"rules", "offload-rules"},
		{"table-size", "flow-table-size"},
		{"size", NULL},
		{"ify", NULL},
		{"a-word-that-is-longer-than-any-known-one", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *meant = suggest(rows[i].word, known, sizeof(known) / sizeof(known[0]));

		if (rows[i].meant)
			assert_string_equal(meant ? meant : "", rows[i].meant);
		else
			assert_null(meant);
	}
	assert_null(suggest("x", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
